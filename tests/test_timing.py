"""What is known of when events came: gaps between them, what counts as one, and how much of it is kept."""

from __future__ import annotations

import pytest

from tests.tables import rows
from wirelint.events import Frame, says_nothing
from wirelint.timing import ArrivalLog, Gap


def log(*chunks: tuple[float, int, tuple[int, ...]]) -> ArrivalLog:
    """(when, how many events were complete then, which of those said nothing)."""
    made = ArrivalLog()
    idle: set[int] = set()
    for at, count, pings in chunks:
        made.add(at, b"data")
        made.count(count)
        idle |= set(pings)
    for number in sorted(idle):
        made.idle.append(number)
    return made


GAPS: dict[str, tuple[ArrivalLog, list[Gap]]] = {
    "nothing": (log(), []),
    "from the request to the first event": (log((50, 1, ())), [Gap(None, 0, 0, 50, 0)]),
    "two in one chunk": (log((50, 2, ()), (70, 3, ())), [Gap(None, 0, 0, 50, 0), Gap(1, 2, 50, 70, 0)]),
    "half an event": (log((50, 0, ()), (70, 1, ())), [Gap(None, 0, 0, 70, 0)]),
    "a ping between": (log((50, 1, ()), (60, 2, (1,)), (80, 3, ())), [Gap(None, 0, 0, 50, 0), Gap(0, 2, 50, 80, 1)]),
    "pings before all": (log((20, 1, (0,)), (40, 2, (1,)), (60, 3, ())), [Gap(None, 2, 0, 60, 2)]),
    "a ping with the event": (log((50, 1, ()), (80, 3, (1,))), [Gap(None, 0, 0, 50, 0), Gap(0, 2, 50, 80, 0)]),
    "a ping at the time of the event": (
        log((50, 1, ()), (80, 2, (1,)), (80, 3, ())),
        [Gap(None, 0, 0, 50, 0), Gap(0, 2, 50, 80, 0)],
    ),
    "a ping behind the event": (log((50, 2, (1,)), (80, 3, ())), [Gap(None, 0, 0, 50, 0), Gap(0, 2, 50, 80, 1)]),
    "pings at the end": (log((50, 1, ()), (70, 2, (1,)), (90, 3, (2,))), [Gap(None, 0, 0, 50, 0)]),
    "too short": (log((5, 1, ()), (14, 2, ())), []),
}


@rows(GAPS)
def test_gaps_are_measured_between_events(made: ArrivalLog, gaps: list[Gap]) -> None:
    assert list(made.arrivals(framed=True).gaps(10)) == gaps


REST: dict[str, tuple[ArrivalLog, Gap]] = {
    "nothing came": (log(), Gap(None, None, 0, 100, 0)),
    "after an event": (log((50, 1, ())), Gap(0, None, 50, 100, 0)),
    "pings since": (log((50, 1, ()), (60, 2, (1,)), (70, 3, (2,))), Gap(0, None, 50, 100, 2)),
    "pings before and since": (log((10, 1, (0,)), (50, 2, ()), (60, 3, (2,))), Gap(1, None, 50, 100, 1)),
    "nothing but pings": (log((10, 1, (0,)), (50, 2, (1,))), Gap(None, None, 0, 100, 2)),
    "half an event": (log((50, 1, ()), (90, 1, ())), Gap(0, None, 50, 100, 0)),
}


@rows(REST)
def test_the_time_after_the_last_event(made: ArrivalLog, gap: Gap) -> None:
    assert made.arrivals(framed=True).rest(100) == gap


def test_chunks_are_joined_above_a_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of the times is what a capture has of them: both give the same gaps."""
    monkeypatch.setattr("wirelint.timing._MOST_CHUNKS", 3)
    made, again = ArrivalLog(), ArrivalLog()
    for number, at in enumerate((0, 10, 20, 30, 40, 1500, 1600, 40_000)):
        made.add(float(at), b"event")
        made.count(number + 1)
    assert list(made.chunks) == [(0, 5), (10, 5), (20, 15), (1500, 10), (40_000, 5)]
    counted = 0
    for when, size in made.chunks:
        counted += size // 5
        again.add(when, b"e" * size)
        again.count(counted)
    assert list(made.arrivals(framed=True).gaps(1000)) == list(again.arrivals(framed=True).gaps(1000))


FRAMES: dict[str, tuple[Frame, bool]] = {
    "a comment": (Frame(0, b"", None, None), True),
    "no data": (Frame(0, b"", "ping", ""), True),
    "a name": (Frame(0, b"", "ping", "{}"), True),
    "a name, and words": (Frame(0, b"", "keepalive", "still here"), True),
    "a type": (Frame(0, b"", None, '{"type": "ping"}'), True),
    "a type further on": (Frame(0, b"", None, '{"sequence_number":7,"type":"keepalive"}'), True),
    "a method": (Frame(0, b"", "message", '{"jsonrpc":"2.0","id":1,"method":"ping"}'), True),
    "an empty document": (Frame(0, b"", None, " {} "), True),
    "broken": (Frame(0, b"", None, None, (("broken-json", "x"),)), False),
    "progress": (Frame(0, b"", None, '{"type": "response.web_search_call.searching"}'), False),
    "a word of the model": (Frame(0, b"", None, '{"delta": "ping"}'), False),
    "something unknown": (Frame(0, b"", "status", '{"queue": 3}'), False),
    "a long one": (Frame(0, b"", None, '{"type": "ping", "text": "' + "x" * 400 + '"}'), False),
}


@rows(FRAMES)
def test_pings_and_comments_say_nothing(frame: Frame, nothing: bool) -> None:
    assert says_nothing(frame) is nothing
