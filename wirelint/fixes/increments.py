"""Argument deltas that each repeat all that came before: what each of them adds is passed on.

Theory of operation. `{"ci`, `{"city":"O`, `{"city":"Oslo"}` are the deltas of one call; joined they are no JSON. The first
one passes. The second begins like the first and breaks the JSON, which may still be damage of another kind, so it waits for
what comes next: a delta that begins like both of them, or the end of the call, if the second alone is an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from wirelint.arguments.argument_faults import breaks
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Start
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.model import Arguments

_MOST_WAITING = 256
"""Events that wait for what follows a second delta."""


@dataclass(slots=True)
class _Call:
    """`told` is the last delta, `state` what is known of the deltas."""

    start: Start
    told: str = ""
    state: Literal["open", "grows", "plain"] = "open"


class Increments:
    """Passes on what each delta adds. `repaired` is called once per call: (start, the second delta)."""

    phase: ClassVar[int] = 4
    heeds_text: ClassVar[bool] = False

    def __init__(self, context: RewriteContext, repaired: Callable[[Start, Delta], None]) -> None:
        self._repaired = repaired
        self._streamed = context.streamed
        self._calls: dict[int, _Call] = {}
        self._waiting: list[Event] = []

    @property
    def held(self) -> int | None:
        return self._waiting[0].frame.number if self._waiting and self._waiting[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._waiting:
            return self._take(event)
        second = self._waiting[0]
        assert isinstance(second, Delta)
        grows = self._grows(second, event)
        if grows is None and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(event)
            return ()
        waiting, self._waiting = [*self._waiting[1:], event], []
        out = list(self._decide(second, grows=bool(grows)))
        for one in waiting:
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        waiting, self._waiting = self._waiting, []
        for event in waiting[:1]:
            assert isinstance(event, Delta)
            self._calls[event.block].state = "plain"
        return waiting

    def _take(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Start):
            if event.kind == "tool_call" and event.form != "custom" and event.input in (None, {}, "", []):
                self._calls[event.block] = _Call(event)
            return (event,)
        call = self._calls.get(event.block) if isinstance(event, Delta) else None
        if (
            call is None
            or not isinstance(event, Delta)
            or call.state == "plain"
            or not self._streamed
            or not event.text
        ):
            return (event,)
        told, text = call.told, event.text
        if not text.startswith(told) or len(text) > MOST_HELD or (call.state == "open" and told == text):
            call.state, call.told = "plain", ""
            return (event,)
        if call.state == "grows":
            return self._add(call, event)
        if not told:
            call.told = text
            return (event,)
        if not breaks(told + text):
            call.state, call.told = "plain", ""
            return (event,)
        self._waiting.append(event)
        return ()

    def _grows(self, second: Delta, event: Event) -> bool | None:
        """Whether the deltas of a call grow, now that an event follows the second one; None: more has to come."""
        match event:
            case Delta(block=block, text=text) if block == second.block and text:
                return text.startswith(second.text) and text != second.text
            case CallUpdate(block=block) | Close(block=block) if block == second.block:
                pass
            case Start(choice=choice) | Finish(choice=choice) if choice == self._calls[second.block].start.choice:
                pass
            case Done():
                pass
            case _:
                return None
        return Arguments(second.text).mapping is not None

    def _decide(self, second: Delta, *, grows: bool) -> Iterable[Event]:
        call = self._calls[second.block]
        if not grows:
            call.state, call.told = "plain", ""
            return (second,)
        call.state = "grows"
        self._repaired(call.start, second)
        return self._add(call, second)

    def _add(self, call: _Call, event: Delta) -> Iterable[Event]:
        added = event.text[len(call.told) :]
        call.told = event.text
        return (event._replace(text=added),) if added else ()
