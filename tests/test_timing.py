"""What is known of when events came: gaps between them, what counts as one, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.rules.case import read
from tests.tables import rows, tables
from wirelint.events import Frame, says_nothing
from wirelint.timing import ArrivalLog, Gap

TABLES = read(tables(__file__))
Chunk = tuple[float, int, Sequence[int]]
"""When it came, how many events were complete then, which of those said nothing."""


def log(*chunks: Chunk) -> ArrivalLog:
    made = ArrivalLog()
    idle: set[int] = set()
    for at, count, pings in chunks:
        made.add(at, b"data")
        made.count(count)
        idle |= set(pings)
    for number in sorted(idle):
        made.idle.append(number)
    return made


@rows(TABLES["gaps"])
def test_gaps_are_measured_between_events(chunks: list[Chunk], gaps: list[Any]) -> None:
    assert list(log(*chunks).arrivals(framed=True).gaps(10)) == [Gap(*gap) for gap in gaps]


@rows(TABLES["rest"])
def test_the_time_after_the_last_event(chunks: list[Chunk], gap: list[Any]) -> None:
    assert log(*chunks).arrivals(framed=True).rest(100) == Gap(*gap)


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


@rows(TABLES["frames"])
def test_pings_and_comments_say_nothing(event: str | None, data: str | None, nothing: bool) -> None:
    assert says_nothing(Frame(0, b"", event, data)) is nothing
    assert not says_nothing(Frame(0, b"", None, None, (("broken-json", "x"),)))
