"""Rewriter that corrects names of called tools and removes calls of tools that do not exist; removal of calls in general.

Theory of operation. A name may come in pieces (`"name":"get_"`, `"name":"weather"`), so a call with an unknown name waits
until its arguments begin or the call ends; nearly always that is in the same frame. Then the name is judged once. A renamed
call keeps everything but its name. A removed call leaves a sentence in its place, and a candidate that would end with calls
but has none left ends like an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Event, Finish, Frame, Start
from wirelint.fix import RewriteContext
from wirelint.fixes.finish import without_calls
from wirelint.fixes.rewriters import WaitingRewriter, completes_name
from wirelint.model import Request
from wirelint.text.escaping import printable
from wirelint.text.excerpts import excerpt, listed

_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Rename:
    """Give a call this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a call, and put this text in its place."""

    text: str


JudgeName = Callable[[Start, str, str], "Rename | Remove | None"]
"""Return the change of a call and record it, given its start, its name, and the name as clients join it from pieces."""


def removal_text(name: str, request: Request) -> str:
    """Return the sentence that replaces a call of an undeclared tool."""
    names = [f"`{_shown(tool.name)}`" for tool in request.client_tools]
    offered = listed(names, _MOST_LISTED) if names else "no tools at all"
    why = f"because this request declares no such tool; it declares {offered}"
    return f"wirelint took out a call of `{_shown(name)}`, {why}."


def _shown(name: str) -> str:
    return printable(excerpt(name)).replace("`", "'")


def joined_name(pieces: Sequence[str | None]) -> str:
    """Return a name as clients join it from pieces. Servers that repeat the whole name send equal pieces."""
    said = [piece for piece in pieces if piece]
    return said[0] if len(set(said)) == 1 else "".join(said)


def may_repeat(frame: Frame | None, text: str) -> bool:
    """Return True if a frame may repeat an id or a name, in any JSON notation."""
    return frame is not None and frame.data is not None and (text in frame.data or not _PLAIN.fullmatch(text))


class CallRemover:
    """Removes calls from a reply, with a text in the place of each, and corrects the finish reason."""

    def __init__(self, context: RewriteContext) -> None:
        self._context = context
        self._gone: set[int] = set()
        self._left: dict[int, int] = {}
        self._emptied: set[int] = set()
        self._texts: dict[int, tuple[int, int]] = {}
        """The text block of each candidate, with its place in the frame."""

    def note(self, start: Start) -> None:
        """Note a part that stays so far."""
        if start.kind == "tool_call":
            self._left[start.choice] = self._left.get(start.choice, 0) + 1
        elif start.kind == "text":
            self._texts[start.choice] = (start.block, start.item)

    def is_removed(self, event: Event) -> bool:
        """Return True if an event belongs to a removed call."""
        return isinstance(event, (Delta, CallUpdate, Close)) and event.block in self._gone

    def remove(self, start: Start, text: str) -> list[Event]:
        """Return the events to send instead of a noted call: its text, in a block of its own where the API has blocks."""
        choice, frame = start.choice, start.frame
        self._gone.add(start.block)
        self._emptied.add(choice)
        self._left[choice] -= 1
        own = traits(self._context.exchange.api)
        if choice in self._texts and not own.blocks:
            block, item = self._texts[choice]
            return [Delta(block, f"\n\n{text}", frame, item)]
        block = self._context.new_block()
        begun: list[Event] = [
            Start(block, "text", own.text_at.format(choice), choice, frame),
            Delta(block, text, frame),
        ]
        if own.blocks:
            return [*begun, Close(block, frame)]
        self._texts[choice] = (block, -1)
        return begun

    def finish(self, event: Finish) -> Finish:
        """Return the end of a candidate. One without its calls ends like an answer."""
        if event.choice in self._emptied and not self._left.get(event.choice):
            right = without_calls(self._context.exchange.api, event.reason)
            return event._replace(reason=right) if right else event
        return event


class Names(WaitingRewriter):
    """Renames and removes calls, as a rule judges."""

    phase: ClassVar[float] = 2
    heeds_text: ClassVar[bool] = True
    patient: ClassVar[bool] = True

    def __init__(self, context: RewriteContext, judge: JudgeName, is_known: Callable[[str], bool]) -> None:
        """`is_known` returns True for a name that needs no judgement."""
        super().__init__()
        self._context = context
        self._judge, self._is_known = judge, is_known
        self._names: dict[int, str] = {}
        """The original names of renamed calls."""
        self._remover = CallRemover(context)

    def decides(self, first: Event, event: Event) -> bool | None:
        assert isinstance(first, Start)
        return completes_name(first, event) or None

    def settle(self, held: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        """Return the events for the start of a call whose name is complete."""
        start = held[0]
        assert isinstance(start, Start)
        self._remover.note(start)
        updates = [one for one in held[1:] if isinstance(one, CallUpdate) and one.block == start.block]
        names = [start.name, *(update.name for update in updates)]
        name = next(filter(None, names), "")
        match self._judge(start, name, joined_name(names)):
            case Remove(text):
                return self._remover.remove(start, text)
            case Rename(right):
                self._names[start.block] = name
                id_ = start.id or next((update.id for update in updates if update.id), None)
                return (start._replace(name=right, id=id_),)
            case None:
                return (start,)

    def release(self) -> Iterable[Event]:
        held, self._held = self._held, []
        out: list[Event] = []
        for event in held:
            if isinstance(event, Start) and event.kind == "tool_call":
                self._remover.note(event)
                out.append(event)
            else:
                out += self.take(event)
        return out

    def take(self, event: Event) -> Iterable[Event]:
        if self._remover.is_removed(event):
            return ()
        match event:
            case Start(kind="tool_call") if not (event.name and self._is_known(event.name)):
                # The name is complete in a whole body, even if the end of the call is missing.
                return self.wait_for(event) if self._context.streamed else self.settle([event], event, True)
            case Start():
                self._remover.note(event)
            case Delta() if event.block in self._names and may_repeat(event.frame, self._names[event.block]):
                return (event._replace(),)
            case CallUpdate() if event.block in self._names and event.name:
                return (event._replace(name=None),) if event.id else ()
            case Finish():
                return (self._remover.finish(event),)
            case _:
                pass
        return (event,)
