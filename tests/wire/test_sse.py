"""Server-sent events: nothing lost, the same frames for every cut, and what the standard says an event is."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from wirelint.events import Frame
from wirelint.wire import EventStream

BOM = b"\xef\xbb\xbf"


def frames(pieces: Iterable[bytes]) -> list[Frame]:
    stream = EventStream()
    found = [frame for piece in pieces for frame in stream.feed(piece)]
    return found + stream.close()


def dispatched(body: bytes) -> list[tuple[str | None, str]]:
    return [(frame.event, frame.data) for frame in frames([body]) if frame.data is not None]


# (bytes, [(event name, data)] in the order in which they are dispatched)
GRAMMAR: dict[str, tuple[bytes, list[tuple[str | None, str]]]] = {
    "LF": (b"data: a\n\ndata: b\n\n", [(None, "a"), (None, "b")]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(None, "a"), (None, "b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [(None, "a"), (None, "b")]),
    "line ends mixed": (b"data: a\r\n\ndata: b\n\r\ndata: c\n\rdata: d\r\n\r", [(None, c) for c in "abcd"]),
    "no blank after the colon": (b"data:a\n\n", [(None, "a")]),
    "one blank is taken off": (b"data:  a \n\n", [(None, " a ")]),
    "a tab is not": (b"data:\ta\n\n", [(None, "\ta")]),
    "several data lines": (b"data: a\ndata\ndata: b\n\n", [(None, "a\n\nb")]),
    "empty data": (b"data:\n\ndata\n\n", [(None, ""), (None, "")]),
    "event name": (b"event: ping\ndata: {}\n\n", [("ping", "{}")]),
    "the last event name counts": (b"event: a\nevent: b\ndata: x\n\n", [("b", "x")]),
    "the name comes after the data": (b"data: x\nevent: a\n\n", [("a", "x")]),
    "the name does not outlive its event": (b"event: a\n\ndata: x\n\n", [(None, "x")]),
    "comments": (b": hello\n\n:\ndata: a\n: between\ndata: b\n\n", [(None, "a\nb")]),
    "a colon in the data": (b'data: {"a": ":"}\n\n', [(None, '{"a": ":"}')]),
    "id and retry": (b"id: 4\nretry: 10\ndata: a\n\n", [(None, "a")]),
    "byte order mark": (BOM + b"data: a\n\n", [(None, "a")]),
    "a second mark is text": (BOM + b"data: \xef\xbb\xbfa\n\n", [(None, "\ufeffa")]),
    "blank lines": (b"\n\n\r\n\rdata: a\n\n\n\n\ndata: b\n\n", [(None, "a"), (None, "b")]),
    "other separators of lines are text": ("data: a\u2028\x0b\x0c\x85b\n\n".encode(), [(None, "a\u2028\x0b\x0c\x85b")]),
    "wide characters": ("data: 你好 🎉\n\n".encode(), [(None, "你好 🎉")]),
    "nothing": (b"", []),
    "only line ends": (b"\r\n\n\r", []),
    "white space before the field": (b"  data: a\n\n\tdata: b\n\n", [(None, "a"), (None, "b")]),
    "cut off": (b"data: a\n\ndata: b", [(None, "a"), (None, "b")]),
    "cut off after the line": (b"data: a\n\ndata: b\n", [(None, "a"), (None, "b")]),
}


@pytest.mark.parametrize(("body", "expected"), GRAMMAR.values(), ids=GRAMMAR)
def test_events_follow_the_standard(body: bytes, expected: list[tuple[str | None, str]]) -> None:
    assert dispatched(body) == expected


# (bytes, faults of all frames in order)
FAULTS: dict[str, tuple[bytes, list[str]]] = {
    "healthy": (b"id: 1\r\nevent: a\r\ndata: b\r\n\r\n: c\r\n\r\n", []),
    "leading blank": (b" data: a\n\n", ["leading-space"]),
    "leading tab": (b"data: a\n\n\tevent: b\ndata: c\n\n", ["leading-space"]),
    "a mark in the middle": (b"data: a\n\n" + BOM + b"data: b\n\n", ["leading-space"]),
    "unknown field": (b"priority: 1\ndata: a\n\n", ["unknown-field"]),
    "no field": (b'{"a": 1}\n\n', ["unknown-field"]),
    "another case": (b"Data: a\n\n", ["unknown-field"]),
    "a line of blanks": (b"   \ndata: a\n\n", []),
    "no UTF-8": (b"data: \xff\n\n", ["bad-utf8"]),
    "half a character": (b"data: \xf0\x9f\n\ndata: \x8e\x89\n\n", ["bad-utf8", "bad-utf8"]),
    "no blank line": (b"data: a\n\ndata: b\n", ["cut-event"]),
    "no line end": (b"data: a", ["cut-event"]),
    "a comment without a line end": (b"data: a\n\n: b", []),
    "CR LF CR LF at the very end": (b"data: a\r\n\r\n", []),
    "CR CR at the very end": (b"data: a\r\r", []),
    "LF CR at the very end": (b"data: a\n\r", []),
    "CR LF CR at the very end": (b"data: a\r\n\r", []),
}


@pytest.mark.parametrize(("body", "expected"), FAULTS.values(), ids=FAULTS)
def test_departures_from_the_standard_are_noted(body: bytes, expected: list[str]) -> None:
    assert [kind for frame in frames([body]) for kind, _ in frame.faults] == expected


@pytest.mark.parametrize("body", [body for body, _ in (*GRAMMAR.values(), *FAULTS.values())], ids=[*GRAMMAR, *FAULTS])
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


RUN_ON = {
    "data lines": (b'data: {"a":{}}\ndata: {"b":1}\ndata: [DONE]\n\n', ['{"a":{}}', '{"b":1}', "[DONE]"]),
    "named events": (b'event: x\ndata: {"a":1}\nevent: y\ndata: {"b":1}\n\n', ['{"a":1}', '{"b":1}']),
    "any line end": (
        b'data: {"a":1}\r\ndata: {"b":1}\r\n\r\ndata: {}\rdata: {}\r\r',
        ['{"a":1}', '{"b":1}', "{}", "{}"],
    ),
    "one document over lines": (b'data: {"a":{}\ndata: ,"b":1}\n\n', ['{"a":{}\n,"b":1}']),
    "an array over lines": (b'data: [{"a":1},\ndata: {"b":1}]\n\n', ['[{"a":1},\n{"b":1}]']),
    "the name after the data": (b'data: {"a":1}\nevent: late\n\n', ['{"a":1}']),
}


@pytest.mark.parametrize(("body", "documents"), RUN_ON.values(), ids=RUN_ON)
def test_events_that_lost_their_blank_line_are_told_apart_for_every_cut(body: bytes, documents: list[str]) -> None:
    def read(*places: int) -> list[Frame]:
        stream, edges = EventStream(), [0, *places, len(body)]
        frames = [frame for start, end in itertools.pairwise(edges) for frame in stream.feed(body[start:end])]
        return frames + stream.close()

    frames = read()
    assert [frame.data for frame in frames] == documents
    assert b"".join(frame.raw for frame in frames) == body
    for place in range(1, len(body)):
        assert read(place) == frames
    assert read(*range(1, len(body))) == frames


@pytest.mark.parametrize("line", [b"\r", b"\n", b"\r\n", b"\r\r", b":\r", b"data: \r"], ids=repr)
@pytest.mark.parametrize("step", [1 << 20, 64])
def test_lines_without_end_are_read_once(line: bytes, step: int) -> None:
    """Half a megabyte of one line: searched again for each line, it took minutes."""
    body = line * ((1 << 19) // len(line))
    start = time.thread_time()
    stream = EventStream()
    frames = [frame for at in range(0, len(body), step) for frame in stream.feed(body[at : at + step])]
    frames += stream.close()
    assert b"".join(frame.raw for frame in frames) == body
    assert time.thread_time() - start < 2
