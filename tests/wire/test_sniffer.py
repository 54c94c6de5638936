"""How a body is framed is decided by its first bytes: events, lines, messages of AWS, or one document; for any cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from tests.selection import in_batches
from tests.tables import rows, tables
from tests.wire.test_aws_eventstream import ONE, TWO
from wirelint.events import Frame
from wirelint.wire import Sniffer, aws_eventstream, looks_like_events

TABLES = tables(__file__)


def decoded(name: str) -> dict[str, tuple[str | None, bytes, bool, list[Any]]]:
    table = TABLES[name].items()
    return {case: (kind, body.encode("utf-8", "surrogateescape"), *rest) for case, (kind, body, *rest) in table}


EVENTS, JSON, PLAIN = "text/event-stream; charset=utf-8", "application/json", "text/plain"
LINES = "application/x-ndjson"
BOM = b"\xef\xbb\xbf"

# (content type, body, whether it is a stream of events, the data of its frames)
EVENTFUL = decoded("eventful")

# (content type, body, whether it is lines, (data, faults) of its frames)
IN_LINES = decoded("in_lines")

# (content type, body, whether it is a stream, the data of its frames if all can be read)
MESSAGES: dict[str, tuple[str | None, bytes, bool]] = {
    "messages": (None, TWO, True),
    "messages, declared": (aws_eventstream.CONTENT_TYPE, TWO, True),
    "cut in the prelude, declared": (aws_eventstream.CONTENT_TYPE, ONE[:9], True),
    "an error under the type of a stream": (aws_eventstream.CONTENT_TYPE, b'{"message": "no"}', False),
    "zeros": (None, bytes(40), False),
}


def frames(kind: str | None, pieces: list[bytes]) -> tuple[bool, list[Frame]]:
    sniffer = Sniffer({} if kind is None else {"content-type": kind})
    found = [frame for piece in pieces for frame in sniffer.feed(piece)]
    found += sniffer.close()
    assert not sniffer.close()
    return sniffer.streamed, found


def framed(kind: str | None, body: bytes, streamed: bool) -> list[Frame]:
    """The frames of a body: the same for every cut, and with every byte of it."""
    whole = frames(kind, [body])
    assert whole[0] == streamed
    assert b"".join(frame.raw for frame in whole[1]) == body
    for place in range(len(body) + 1):
        assert frames(kind, split(body, [place])) == whole, place
    assert frames(kind, split(body, range(1, len(body)))) == whole
    return whole[1]


@in_batches(("kind", "body", "streamed", "data"), EVENTFUL.values(), ids=EVENTFUL)
def test_a_body_is_read_as_events_or_a_document(kind: str | None, body: bytes, streamed: bool, data: list[str]) -> None:
    assert [frame.data for frame in framed(kind, body, streamed) if frame.data is not None] == data


@in_batches(("kind", "body", "streamed", "expected"), IN_LINES.values(), ids=IN_LINES)
def test_a_body_is_read_as_lines_or_a_document(
    kind: str | None, body: bytes, streamed: bool, expected: list[Any]
) -> None:
    found = framed(kind, body, streamed)
    assert [[frame.data, [fault for fault, _ in frame.faults]] for frame in found] == expected


@pytest.mark.parametrize(("kind", "body", "streamed"), MESSAGES.values(), ids=MESSAGES)
def test_a_body_is_read_as_messages_or_a_document(kind: str | None, body: bytes, streamed: bool) -> None:
    pytest.importorskip("botocore")
    framed(kind, body, streamed)


BYTES = st.lists(
    st.sampled_from([b'{"a":1}', b"{}", b"\n", b"\r\n", b" ", b"{", b'"', b"\xff", BOM, b"x", b"data: ", b":"])
).map(b"".join)


@settings(deadline=None)
@given(st.sampled_from([EVENTS, LINES, JSON, PLAIN, None]), st.one_of(st.binary(max_size=40), BYTES), st.data())
def test_any_bytes_are_framed_the_same_at_any_cut(kind: str | None, body: bytes, data: st.DataObject) -> None:
    whole = frames(kind, [body])
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    assert frames(kind, split(body, places)) == whole
    assert b"".join(frame.raw for frame in whole[1]) == body
    assert [frame.number for frame in whole[1]] == list(range(len(whole[1])))


def test_frames_come_before_the_end() -> None:
    sniffer = Sniffer({})
    assert sniffer.feed(b"da") == []
    assert [frame.data for frame in sniffer.feed(b"ta: a\n\nda")] == ["a"]


@pytest.mark.parametrize("kind", [LINES, PLAIN, ""])
def test_lines_come_as_they_are_complete(kind: str) -> None:
    sniffer = Sniffer({"content-type": kind})
    assert sniffer.feed(b'{"a"') == []
    early = sniffer.feed(b":1}\n")
    assert len(early) == (kind == LINES)
    assert [frame.data for frame in [*early, *sniffer.feed(b'{"b":2}\n{"c"')]] == ['{"a":1}', '{"b":2}']
    assert [frame.raw for frame in sniffer.close()] == [b'{"c"']


def test_messages_without_their_decoder_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_eventstream, "_botocore", lambda: None)
    sniffer = Sniffer({})
    sniffer.feed(TWO[:5])
    assert sniffer.unreadable is None
    sniffer.feed(TWO[5:])
    assert sniffer.unreadable == aws_eventstream.NO_DECODER


# verdict: None as long as the head can be both
@rows(TABLES["heads"])
def test_a_head_is_undecided_while_it_can_be_both(head: str, verdict: bool | None) -> None:
    assert looks_like_events(head.encode("utf-8", "surrogateescape")) is verdict
