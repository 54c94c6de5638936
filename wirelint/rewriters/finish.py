"""Finish reasons that say what a candidate holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, assert_never

from wirelint.apis.traits import ending, traits
from wirelint.events import Delta, Event, Failure, Offence, Start, Stop
from wirelint.model import Kind

MARKUP = ("<", "[TOOL", "```")
"""What the text of a call that was lost on the way holds."""

UNREAD = frozenset({"broken-json", "unknown-field", "cut-event"})
"""Faults after which it is not known what a reply holds."""


_TAIL = max(map(len, MARKUP)) - 1


def without_calls(api: str, reason: str) -> str | None:
    """What a reply says that promised calls by its reason and has none; None for a reason that promises nothing.

    Where the API has no form for calls, nobody but the server knows what it means.
    """
    own = traits(api)
    return own.ended if own.calls_at is not None and ending(reason) == "calls" else None


@dataclass(slots=True)
class Held:
    """What a candidate has held so far: forms of its calls, whether it has text, markup, or parts that may hide a call."""

    forms: set[str] = field(default_factory=set)
    text: bool = False
    markup: bool = False
    hidden: bool = False
    tails: dict[Kind, str] = field(default_factory=dict)

    def say(self, text: str, kind: Kind) -> None:
        """Takes in visible text or reasoning."""
        self.text = self.text or (kind == "text" and bool(text.strip()))
        if not self.markup:
            joined = self.tails.get(kind, "") + text
            self.markup = any(mark in joined for mark in MARKUP)
            self.tails[kind] = joined[-_TAIL:]


class FinishReasons:
    """Asks a rule about every finish reason, with what the candidate holds, and puts the right one in its place."""

    phase: ClassVar[int] = 5
    patient: ClassVar[bool] = True
    held: int | None = None

    def __init__(self, right: Callable[[Stop, Held], str | None]) -> None:
        """`right` gives the right reason, None for one that is right, or that nobody can put right."""
        self._right = right
        self._kinds: dict[int, tuple[int, Kind]] = {}
        self._choices: dict[int, Held] = {}
        self._unread = False
        """Whether something came that may have held a call and could not be read."""

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start():
                self._begin(event)
            case Delta() if (known := self._kinds.get(event.block)) is not None:
                choice, kind = known
                if kind in ("text", "reasoning"):
                    self._choices[choice].say(event.text, kind)
            case Failure():
                self._unread = True
            case Offence(kind=kind) if kind in UNREAD:
                self._unread = True
            case Stop():
                return (self._stop(event),)
            case _:
                pass
        return (event,)

    def release(self) -> Iterable[Event]:
        return ()

    def _begin(self, start: Start) -> None:
        self._kinds[start.block] = (start.choice, start.kind)
        held = self._choices.setdefault(start.choice, Held())
        match start.kind:
            case "tool_call":
                held.forms.add(start.form)
            case "hosted_call" | "hosted_result" | "opaque":
                held.hidden = True
            case "text" | "reasoning" | "refusal" | "tool_result" | "rpc":
                pass
            case _:
                assert_never(start.kind)

    def _stop(self, stop: Stop) -> Stop:
        held = self._choices.setdefault(stop.choice, Held())
        if self._unread and not held.forms:
            return stop
        right = self._right(stop, held)
        return stop if right is None else stop._replace(reason=right)
