"""Arrival times of a reply: the time of each event, the gaps between events, and how the exchange ended.

Theory of operation. Bytes arrive in chunks, and each chunk has a time. The time of an event is that of the chunk with
its last byte, so the number of complete events after each chunk is enough to know the time of all events. The numbers
of events without content (comments, pings) are recorded: they show that a connection is alive, not that the reply makes
progress.

A whole body has no events before its end. Its chunks are used instead, and chunks of white space, by which servers keep
a connection open, count as events without content.

Times are in milliseconds after the request; callers pass them in. The same bytes at the same times give the same
arrivals, live and from a capture. The number of chunks is bounded in the same way for both.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

_MOST_CHUNKS = 1 << 16
"""Number of chunks that are recorded one by one. Later chunks are joined, those of one second into one."""

_JOINED = 1000.0


End = Literal["complete", "client-left", "upstream-died", "unread", "unknown"]
"""How an exchange ended. `unread`: the body exceeds the size limit, or could not be decoded."""


@dataclass(frozen=True, slots=True)
class Timing:
    """`started` is a Unix time in seconds; the others are milliseconds after it. None = not known."""

    started: float | None = None
    first_byte: float | None = None
    first_token: float | None = None
    duration: float | None = None


NO_TIMING = Timing()


class Gap(NamedTuple):
    """A period without an event that has content. `before` is the number of the event before the gap (None: the
    request), `after` that of the event that ended it (None: no event did). `idle` counts the events without content in
    the gap."""

    before: int | None
    after: int | None
    start: float
    end: float
    idle: int

    @property
    def length(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Arrivals of one reply. `times[n]` is the time of chunk n, `counts[n]` the number of events complete then.

    `idle` are the numbers of events without content, in order. `answer` is the number of the first event with generated
    content, a finish reason or an error; None without one. The first event of a message (`message_start`) does not
    count, since some servers send it long before any content. `framed` is False for a whole body.
    """

    times: Sequence[float] = ()
    counts: Sequence[int] = ()
    idle: Sequence[int] = ()
    answer: int | None = None
    framed: bool = True

    def __bool__(self) -> bool:
        return bool(self.times)

    def at(self, event: int) -> float | None:
        chunk = bisect.bisect_right(self.counts, event)
        return self.times[chunk] if chunk < len(self.times) else None

    @property
    def answered(self) -> float | None:
        return None if self.answer is None else self.at(self.answer)

    @property
    def begun(self) -> float | None:
        """Time of the first event with content."""
        first = next((number for number, idle in enumerate(self.idle) if idle != number), len(self.idle))
        return self.at(first)

    def last(self) -> tuple[int, float] | None:
        """Number and time of the last event with content."""
        number, pings = (self.counts[-1] if self.counts else 0) - 1, len(self.idle) - 1
        while number >= 0:
            if pings < 0 or self.idle[pings] != number:
                at = self.at(number)
                return (number, at) if at is not None else None
            number, pings = number - 1, pings - 1
        return None

    def gaps(self, least: float) -> Iterator[Gap]:
        """Return the gaps of at least `least` milliseconds between events, in order, without the time after the last
        event.
        """
        before: int | None = None
        start = now = 0.0
        first = pings = idle = fresh = 0  # fresh: keep-alives in the chunk of the last event
        for at, count in zip(self.times, self.counts, strict=True):
            told: int | None = None
            if at != now:
                now, idle, fresh = at, idle + fresh, 0
            for number in range(first, count):
                if pings < len(self.idle) and self.idle[pings] == number:
                    pings, fresh = pings + 1, fresh + 1
                    continue
                if told is None and at - start >= least:
                    yield Gap(before, number, start, at, idle)
                told, idle, fresh = number, 0, 0
            if told is not None:
                before, start = told, at
            first = count

    def rest(self, end: float) -> Gap:
        """Return the gap from the last event with content, or from the request, to `end`."""
        number, at = self.last() or (None, 0.0)
        since = 0 if number is None else number + 1
        return Gap(number, None, at, max(end, at), len(self.idle) - bisect.bisect_left(self.idle, since))


NO_ARRIVALS = Arrivals()


class ArrivalLog:
    """Recorder of arrivals while a reply is read."""

    __slots__ = ("_blank", "_counts", "_sizes", "_speaks", "_times", "answer", "idle", "now")

    def __init__(self) -> None:
        self._times, self._sizes, self._counts, self.idle = array("d"), array("Q"), array("Q"), array("Q")
        self._blank, self._speaks = 0, False
        self.answer: int | None = None
        """First event of the answer; the reader of the reply sets it, and adds events without content to `idle`."""
        self.now: float | None = None
        """Arrival time of the bytes that are being read."""

    def add(self, at: float, data: bytes) -> None:
        """Record a chunk. Times do not decrease."""
        times = self._times
        if len(times) >= _MOST_CHUNKS and at - times[-1] < _JOINED:
            self._sizes[-1] += len(data)
            return
        self._counts.append(self._counts[-1] if times else 0)
        times.append(at)
        self._sizes.append(len(data))
        self.now = at
        if not self._speaks:
            self._speaks = not data.isspace()
            self._blank += not self._speaks

    def count(self, events: int) -> None:
        """Record that `events` events are complete with the last chunk."""
        if self._counts:
            self._counts[-1] = events

    @property
    def first(self) -> float | None:
        return self._times[0] if self._times else None

    @property
    def chunks(self) -> tuple[tuple[float, int], ...]:
        """The chunks as (milliseconds, bytes)."""
        return tuple(zip(self._times, self._sizes, strict=True))

    def arrivals(self, *, framed: bool) -> Arrivals:
        """Return the arrivals so far. `framed`: the body is a stream of events."""
        if framed:
            return Arrivals(self._times[:], self._counts[:], self.idle[:], self.answer)
        chunks, blank = len(self._times), self._blank
        return Arrivals(
            self._times[:], range(1, chunks + 1), range(blank), blank if blank < chunks else None, framed=False
        )
