"""Server-sent events: nothing lost, the same frames for every cut, and what the standard says an event is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from tests.selection import in_batches
from tests.tables import tables
from wirelint.events import Frame
from wirelint.wire import EventStream

TABLES = tables(__file__)


def rows(name: str) -> dict[str, tuple[bytes, list[Any]]]:
    """Return bodies, each with what is read in it."""
    return {case: (body.encode("utf-8", "surrogateescape"), read) for case, (body, read) in TABLES[name].items()}


BOM = b"\xef\xbb\xbf"


def frames(pieces: Iterable[bytes]) -> list[Frame]:
    stream = EventStream()
    found = [frame for piece in pieces for frame in stream.feed(piece)]
    return found + stream.close()


def dispatched(body: bytes) -> list[tuple[str | None, str]]:
    return [(frame.event, frame.data) for frame in frames([body]) if frame.data is not None]


# (bytes, [(event name, data)] in the order in which they are dispatched)
GRAMMAR = rows("grammar")


@in_batches(("body", "expected"), GRAMMAR.values(), ids=GRAMMAR)
def test_events_follow_the_standard(body: bytes, expected: list[list[str | None]]) -> None:
    assert [[*event] for event in dispatched(body)] == expected


# (bytes, faults of all frames in order)
FAULTS = rows("faults")


@in_batches(("body", "expected"), FAULTS.values(), ids=FAULTS)
def test_departures_from_the_standard_are_noted(body: bytes, expected: list[str]) -> None:
    assert [kind for frame in frames([body]) for kind, _ in frame.faults] == expected


# (bytes of events without a blank line between them, data of the frames)
RUN_ON = rows("run_on")


@pytest.mark.parametrize(("body", "documents"), RUN_ON.values(), ids=RUN_ON)
def test_events_that_lost_their_blank_line_are_told_apart(body: bytes, documents: list[str]) -> None:
    assert [frame.data for frame in frames([body])] == documents


ALL = GRAMMAR | FAULTS | RUN_ON


@in_batches("body", [body for body, _ in ALL.values()], ids=ALL)
def test_every_cut_gives_the_same_frames(body: bytes) -> None:
    whole = frames([body])
    assert b"".join(frame.raw for frame in whole) == body
    for place in range(len(body) + 1):
        assert frames(split(body, [place])) == whole, place
    assert frames(split(body, range(1, len(body)))) == whole
    assert frames(part for byte in body for part in (bytes([byte]), b"")) == whole


PIECES = st.sampled_from([
    b"data: x", b"data:", b"data", b"event: e", b"id: 1", b"retry: 2", b": c", b":", b" data: y", b"\tdata: z", b"foo: bar",
    b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\n\r", b"\r\r", b"{", b" ", BOM, "é".encode(), b"\xc3", b"\xf0\x9f",
    b"\xff", b"\0",
])  # fmt: skip
BODIES = st.one_of(st.binary(max_size=80), st.lists(PIECES, max_size=30).map(b"".join))


@settings(deadline=None)
@given(BODIES, st.data())
def test_lossless_and_cut_invariant(body: bytes, data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    whole = frames([body])
    assert b"".join(frame.raw for frame in whole) == body
    assert [frame.number for frame in whole] == list(range(len(whole)))
    assert frames(split(body, places)) == whole
    assert frames(split(body, range(1, len(body)))) == whole


def by_the_standard(body: bytes) -> Iterator[tuple[str | None, str]]:
    """The dispatch algorithm of the HTML standard, 9.2.6, word for word over the whole text."""
    text = body.removeprefix(BOM).decode("utf-8", "replace")
    lines = re.split(r"\r\n|\n|\r", text)
    data: list[str] = []
    event: str | None = None
    for line in lines[:-1]:  # what has no line end is never processed
        if not line:
            if data:
                yield event, "\n".join(data)
            data, event = [], None
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                data.append(value)
            elif name == "event":
                event = value


@settings(deadline=None)
@given(BODIES)
def test_dispatches_what_the_standard_says(body: bytes) -> None:
    found = frames([body])
    kinds = {kind for frame in found for kind, _ in frame.faults}
    if "leading-space" in kinds:
        return  # read leniently on purpose
    complete = [frame for frame in found if "cut-event" not in {kind for kind, _ in frame.faults}]
    assert [(f.event, f.data) for f in complete if f.data is not None] == list(by_the_standard(body))


def test_frames_come_as_soon_as_they_are_complete() -> None:
    stream = EventStream()
    assert stream.feed(b"data: a\n") == []
    assert [frame.data for frame in stream.feed(b"\ndata: b")] == ["a"]
    assert [frame.data for frame in stream.feed(b"\n\n")] == ["b"]
    assert stream.close() == []


@pytest.mark.parametrize("line", [b"\r", b"\n", b"\r\n", b"\r\r", b":\r", b"data: \r"], ids=repr)
@in_batches("step", [1 << 20, 64])
def test_lines_without_end_are_read_once(line: bytes, step: int) -> None:
    """128 KB of one line: searched again for each line, it took a quarter of a minute."""
    body = line * ((1 << 17) // len(line))
    start = time.thread_time()
    found = frames(body[at : at + step] for at in range(0, len(body), step))
    assert b"".join(frame.raw for frame in found) == body
    assert time.thread_time() - start < 1
