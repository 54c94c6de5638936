"""Which event of a stream carried which character of a text: two integers an event, however many events there are."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable, Iterator, Sequence


class Offsets:
    """Pairs of (offset at which an event's text begins, event number), in order. Nothing is added once it is shared."""

    __slots__ = ("_events", "_starts")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._starts, self._events = array("Q"), array("Q")
        for start, event in pairs:
            self.add(start, event)

    def add(self, start: int, event: int) -> None:
        """Record that the text of `event` begins at `start`, which is not below the last start."""
        self._starts.append(start)
        self._events.append(event)

    def add_all(self, starts: Iterable[int], events: Iterable[int]) -> None:
        """Record the starts of several events."""
        self._starts.extend(starts)
        self._events.extend(events)

    @property
    def starts(self) -> Sequence[int]:
        """The offsets, in order."""
        return self._starts

    def event_at(self, offset: int) -> int | None:
        """Return the event that carried the character at `offset`; None where nothing is known (no stream)."""
        if not self._starts:
            return None
        return self._events[max(bisect.bisect_right(self._starts, offset) - 1, 0)]

    def copy(self) -> Offsets:
        made = Offsets()
        made._starts, made._events = self._starts[:], self._events[:]
        return made

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._events, strict=True)

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Offsets) and (self._starts, self._events) == (other._starts, other._events)

    def __hash__(self) -> int:
        return hash((self._starts.tobytes(), self._events.tobytes()))

    def __repr__(self) -> str:
        return f"Offsets({list(self)!r})"


NOWHERE = Offsets()
"""Of a text that came in one piece."""
