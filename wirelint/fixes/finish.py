"""Finish reasons that say what a candidate holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, assert_never

from wirelint.apis.traits import ending, traits
from wirelint.arguments.argument_faults import UNREAD
from wirelint.arguments.json_continuation import Scanner
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Start, StreamViolation
from wirelint.fix import RewriteContext
from wirelint.model import Kind

MARKUP = ("<", "[TOOL", "```")
"""What the text of a call that was lost on the way holds."""

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
    stopped: bool = False
    last: int = -1
    """The block of its last call."""
    given: bool = False
    """Whether the arguments of that call came with its start."""
    scanner: Scanner = field(default_factory=Scanner)
    """Follows the arguments of that call."""

    @property
    def unstated(self) -> bool:
        """Whether it holds calls, all of them whole, and has not said why it ended (`text.argument_faults`)."""
        scanner = self.scanner
        whole = scanner.closed is not None and scanner.second is None and scanner.top == "{"
        return bool(self.forms) and not self.stopped and (self.given or not scanner.top or whole)

    def call(self, start: Start) -> None:
        """Takes in that a call begins."""
        self.forms.add(start.form)
        self.last, self.scanner = start.block, Scanner()
        self.given = start.form == "custom" or start.input not in (None, {}, "", [])

    def say(self, text: str, kind: Kind) -> None:
        """Takes in visible text or reasoning."""
        self.text = self.text or (kind == "text" and bool(text.strip()))
        if not self.markup:
            joined = self.tails.get(kind, "") + text
            self.markup = any(mark in joined for mark in MARKUP)
            self.tails[kind] = joined[-_TAIL:]


class FinishReasons:
    """Asks a rule about every finish reason, with what the candidate holds, and puts the right one in its place.

    A candidate with whole calls that ends without a reason gets one: before the terminator of a stream, or in a whole body.
    """

    phase: ClassVar[int] = 5
    patient: ClassVar[bool] = True
    held: int | None = None

    def __init__(
        self,
        context: RewriteContext,
        right: Callable[[Finish, Held], str | None],
        unsaid: Callable[[int, Frame | None, Held], Finish],
    ) -> None:
        """`right` gives the right reason, None for one that is right, or that nobody can put right. `unsaid` makes the end
        of a candidate that has none."""
        self._situation = context
        self._right, self._unsaid = right, unsaid
        self._frame: Frame | None = None
        self._kinds: dict[int, tuple[int, Kind]] = {}
        self._choices: dict[int, Held] = {}
        self._unread = False
        """Whether something came that may have held a call and could not be read."""

    def push(self, event: Event) -> Iterable[Event]:
        self._frame = event.frame
        if isinstance(event, Done) and self._situation.streamed:
            return [*self._stops(event.frame), event]
        if isinstance(event, Finish):
            return (self._stop(event),)
        self._observe(event)
        return (event,)

    def _observe(self, event: Event) -> None:
        match event:
            case Start():
                self._begin(event)
            case Delta() if (known := self._kinds.get(event.block)) is not None:
                choice, kind = known
                held = self._choices[choice]
                if kind in ("text", "reasoning"):
                    held.say(event.text, kind)
                elif event.block == held.last:
                    held.scanner.feed(event.text)
            case Finish(choice=choice):
                self._choices.setdefault(choice, Held()).stopped = True
            case Failure():
                self._unread = True
            case StreamViolation(kind=kind) if kind in UNREAD:
                self._unread = True
            case _:
                pass

    def _stops(self, frame: Frame | None) -> list[Finish]:
        if self._unread or not traits(self._situation.exchange.api).tells_calls:
            return []
        ended = [(choice, held) for choice, held in self._choices.items() if held.unstated]
        for _, held in ended:
            held.stopped = True  # a second terminator ends nothing
        return [self._unsaid(choice, frame, held) for choice, held in ended]

    def release(self) -> Iterable[Event]:
        """The ends that the candidates of a whole body lack, by what is left of it."""
        return () if self._situation.streamed else self._stops(self._frame)

    def _begin(self, start: Start) -> None:
        self._kinds[start.block] = (start.choice, start.kind)
        held = self._choices.setdefault(start.choice, Held())
        match start.kind:
            case "tool_call":
                held.call(start)
            case "hosted_call" | "hosted_result" | "opaque":
                held.hidden = True
            case "text" | "reasoning" | "refusal" | "tool_result" | "rpc":
                pass
            case _:
                assert_never(start.kind)

    def _stop(self, stop: Finish) -> Finish:
        held = self._choices.setdefault(stop.choice, Held())
        held.stopped = True
        if self._unread and not held.forms:
            return stop
        right = self._right(stop, held)
        return stop if right is None else stop._replace(reason=right)
