"""Names of called tools, put right; calls of tools that nobody has, taken out.

Theory of operation. A name may come in pieces, so a call whose name is not known waits until its arguments begin (or the
call ends): nearly always one frame. Then the name is judged, once. A call that is renamed keeps everything but its name;
one that is taken out leaves a sentence in its place, and a candidate that was to end with calls and has none left ends as
an answer does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start
from wirelint.fix import AppliedFix, RewriteContext
from wirelint.fixes.finish import without_calls
from wirelint.model import Request
from wirelint.text.escaping import printable
from wirelint.text.excerpts import excerpt

_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)
_LISTED = 20
"""Names of tools that a sentence lists."""
_MOST_WAITING = 256
"""Events that wait for the name of a call; none is so long in coming."""


@dataclass(frozen=True, slots=True)
class Rename:
    """The right name, and the record of the change."""

    name: str
    repair: AppliedFix


@dataclass(frozen=True, slots=True)
class TakeOut:
    """What the client reads in the place of the call, and the record of the change."""

    text: str
    repair: AppliedFix


Judge = Callable[[Start, str, str], "Rename | TakeOut | None"]
"""Judges a call by its start, its name, and the name as clients join it from pieces; None leaves the call alone."""


def farewell(name: str, request: Request) -> str:
    """What a client reads in the place of a call of a tool that it does not have."""
    names = [f"`{_shown(tool.name)}`" for tool in request.client_tools]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    offered = ", ".join(names[:_LISTED]) + more if names else "no tools at all"
    why = f"because this request declares no such tool; it declares {offered}"
    return f"wirelint took out a call of `{_shown(name)}`, {why}."


def _shown(name: str) -> str:
    return printable(excerpt(name)).replace("`", "'")


def joined_name(pieces: Sequence[str | None]) -> str:
    """A name as clients join it from pieces; servers that say all of it again and again mean it once."""
    said = [piece for piece in pieces if piece]
    return said[0] if len(set(said)) == 1 else "".join(said)


def may_repeat(frame: Frame | None, text: str) -> bool:
    """Return True if a frame may say an id or a name again, in any way that JSON can write it."""
    return frame is not None and frame.data is not None and (text in frame.data or not _PLAIN.fullmatch(text))


class Names:
    """Renames calls and takes calls out, as a rule judges."""

    patient: ClassVar[bool] = True

    def __init__(self, context: RewriteContext, judge: Judge, knows: Callable[[str], bool], phase: int = 2) -> None:
        """`knows`: whether a name needs no judgement, at once."""
        self.phase = phase
        self._situation = context
        self._judge, self._knows = judge, knows
        self._held: list[Event] = []
        self._names: dict[int, str] = {}
        """Calls that were renamed, with the names that they came under."""
        self._gone: set[int] = set()
        self._left: dict[int, int] = {}
        self._emptied: set[int] = set()
        self._texts: dict[int, tuple[int, int]] = {}
        """The text block of each candidate, with its place in the frame."""

    @property
    def held(self) -> int | None:
        return self._held[0].frame.number if self._held and self._held[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._held:
            return self._take(event)
        start = self._held[0]
        assert isinstance(start, Start)
        if not settles(start, event) and len(self._held) < _MOST_WAITING:
            self._held.append(event)
            return ()
        held, self._held = self._held, []
        out = list(self._decide(start, held))
        for one in (*held[1:], event):
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        held, self._held = self._held, []
        out: list[Event] = []
        for event in held:
            if isinstance(event, Start) and event.kind == "tool_call":
                self._left[event.choice] = self._left.get(event.choice, 0) + 1
                out.append(event)
            else:
                out += self._take(event)
        return out

    def _take(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                if event.name and self._knows(event.name):
                    self._left[event.choice] = self._left.get(event.choice, 0) + 1
                    return (event,)
                if not self._situation.streamed:
                    return self._decide(event, [event])  # its name is complete, whether or not the reply says its end
                self._held.append(event)
                return ()
            case Start(kind="text"):
                self._texts[event.choice] = (event.block, event.item)
            case Delta() | CallUpdate() | Close() if event.block in self._gone:
                return ()
            case Delta() if event.block in self._names:
                return (event._replace(),) if may_repeat(event.frame, self._names[event.block]) else (event,)
            case CallUpdate() if event.block in self._names and event.name:
                return (event._replace(name=None),) if event.id else ()
            case Finish() if event.choice in self._emptied and not self._left.get(event.choice):
                right = without_calls(self._situation.exchange.api, event.reason)
                return (event._replace(reason=right),) if right else (event,)
            case _:
                pass
        return (event,)

    def _decide(self, start: Start, held: list[Event]) -> Iterable[Event]:
        """What becomes of the start of a call, now that its name is known."""
        labels = [event for event in held if isinstance(event, CallUpdate) and event.block == start.block]
        names = [start.name, *(label.name for label in labels)]
        name = next(filter(None, names), "")
        verdict = self._judge(start, name, joined_name(names))
        if verdict is not None:
            self._situation.repairs.append(verdict.repair)
        match verdict:
            case TakeOut():
                self._gone.add(start.block)
                self._emptied.add(start.choice)
                return self._say(start, verdict.text)
            case Rename():
                self._names[start.block] = name
                id_ = start.id or next((label.id for label in labels if label.id), None)
                start = start._replace(name=verdict.name, id=id_)
            case None:
                pass
        self._left[start.choice] = self._left.get(start.choice, 0) + 1
        return (start,)

    def _say(self, start: Start, text: str) -> Iterable[Event]:
        """A sentence in the place of a call: in the text that there is, or where the API has blocks, in one of its own."""
        own = traits(self._situation.exchange.api)
        blocks = own.blocks
        known = self._texts.get(start.choice)
        if known is not None and not blocks:
            block, item = known
            return (Delta(block, f"\n\n{text}", start.frame, item),)
        block = self._situation.new_block()
        if not blocks:
            self._texts[start.choice] = (block, -1)
        pointer = own.text_at.format(start.choice)
        begun = Start(block, "text", pointer, start.choice, start.frame)
        said = Delta(block, text, start.frame)
        return (begun, said, Close(block, start.frame)) if blocks else (begun, said)


def settles(start: Start, event: Event) -> bool:
    """Return True if the name of a call is complete by now."""
    match event:
        case Delta(block=block, text=text):
            return block == start.block and bool(text)
        case Close(block=block):
            return block == start.block
        case Start(choice=choice) | Finish(choice=choice):
            return choice == start.choice
        case Done():
            return True
        case _:
            return False
