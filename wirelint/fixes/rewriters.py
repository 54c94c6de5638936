"""Base classes of rewriters: one that passes every event on, and one that waits for a deciding event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from wirelint.events import Close, Delta, Done, Event, Finish, Start


class PassingRewriter:
    """A rewriter that holds nothing back. A subclass overrides `push`."""

    phase: ClassVar[float] = 1
    heeds_text: ClassVar[bool] = True

    @property
    def held(self) -> int | None:
        return None

    def push(self, event: Event) -> Iterable[Event]:
        return (event,)

    def release(self) -> Iterable[Event]:
        return ()


class WaitingRewriter:
    """A rewriter that holds an event and all later ones until a later event decides about the first.

    `take` gets the events while nothing is held. To start holding it calls `wait_for` and returns nothing. `decides` then
    gets each later event; once it returns True or False, or too many events wait, `settle` returns the events to send
    instead of the first, and the others are pushed again.
    """

    phase: float = 1
    heeds_text: ClassVar[bool] = False
    most_waiting: ClassVar[int] = 256

    def __init__(self) -> None:
        self._held: list[Event] = []

    @property
    def held(self) -> int | None:
        return first_frame(self._held)

    def push(self, event: Event) -> Iterable[Event]:
        if not self._held:
            return self.take(event)
        decided = self.decides(self._held[0], event)
        if decided is None and len(self._held) < self.most_waiting:
            self._held.append(event)
            return ()
        held, self._held = self._held, []
        out = list(self.settle(held, event, bool(decided)))
        for one in (*held[1:], event):
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        held, self._held = self._held, []
        return held

    def wait_for(self, event: Event) -> Iterable[Event]:
        """Start to hold events back, from this one on."""
        self._held.append(event)
        return ()

    def take(self, event: Event) -> Iterable[Event]:
        """Return the events to send instead of `event` while nothing is held."""
        return (event,)

    def decides(self, first: Event, event: Event) -> bool | None:
        """Return the decision on the first held event, given the next event; None if it is still open."""
        return False

    def settle(self, held: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        """Return the events to send instead of the first of `held`. `event` is the event that decided."""
        return held[:1]


def first_frame(events: Iterable[Event]) -> int | None:
    """Return the lowest number of a frame of which one of some waiting events is; None without one.

    It need not be the first: an event that another rewriter held may wait behind events of later frames.
    """
    return min((event.frame.number for event in events if event.frame is not None), default=None)


def ends_call(start: Start, event: Event) -> bool:
    """Return True if an event shows that a call is over: its block closes, another part begins, its candidate ends."""
    match event:
        case Close(block=block):
            return block == start.block
        case Start(choice=choice) | Finish(choice=choice):
            return choice == start.choice
        case Done():
            return True
        case _:
            return False


def completes_name(start: Start, event: Event) -> bool:
    """Return True if an event shows that the name of a call is complete: its arguments begin, or it is over."""
    if isinstance(event, Delta):
        return event.block == start.block and bool(event.text)
    return ends_call(start, event)
