"""How a body is framed is decided by its first bytes, for any cut of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from wirelint.events import Frame
from wirelint.wire import Sniffer, looks_like_events

EVENTS, JSON, PLAIN = "text/event-stream; charset=utf-8", "application/json", "text/plain"
BOM = b"\xef\xbb\xbf"

# (content type, body, whether it is a stream of events, the data of its frames)
BODIES: dict[str, tuple[str | None, bytes, bool, list[str]]] = {
    "stream": (EVENTS, b"data: {}\n\n", True, ["{}"]),
    "stream without a type": (None, b"data: {}\n\n", True, ["{}"]),
    "stream as plain text": (PLAIN, b"event: ping\ndata: {}\n\n", True, ["{}"]),
    "stream as JSON": (JSON, b"data: {}\n\ndata: [DONE]\n\n", True, ["{}", "[DONE]"]),
    "comment first": (None, b": waiting\n\ndata: {}\n\n", True, ["{}"]),
    "id first": (None, b"id: 1\ndata: {}\n\n", True, ["{}"]),
    "retry first": (None, b"retry: 1\n\ndata: {}\n\n", True, ["{}"]),
    "mark first": (PLAIN, BOM + b"data: {}\n\n", True, ["{}"]),
    "blank lines first": (PLAIN, b"\n\r\n \ndata: {}\n\n", True, ["{}"]),
    "blanks before the field": (PLAIN, b"   data: {}\n\n", True, ["{}"]),
    "declared, and a field of tomorrow first": (EVENTS, b"priority: 1\ndata: {}\n\n", True, ["{}"]),
    "declared, and empty": (EVENTS, b"", True, []),
    "declared, and blank lines only": (EVENTS, b"\n\n", True, []),
    "declared, and JSON": (EVENTS, b'{"error": {}}', False, ['{"error": {}}']),
    "declared, and JSON after white space": (EVENTS, b'\n \n{"error": {}}', False, ['\n \n{"error": {}}']),
    "declared, and an array": (EVENTS, b"[1]", False, ["[1]"]),
    "JSON": (JSON, b'{"a": 1}', False, ['{"a": 1}']),
    "JSON after a mark": (JSON, BOM + b'{"a": 1}', False, ['{"a": 1}']),
    "JSON after keep-alive white space": (JSON, b'\n\n   \n{"a": 1}', False, ['\n\n   \n{"a": 1}']),
    "JSON without a type": (None, b'{"a": 1}', False, ['{"a": 1}']),
    "JSON that holds an event": (JSON, b'{"a": "data: x"}', False, ['{"a": "data: x"}']),
    "prose": (PLAIN, b"database is down", False, ["database is down"]),
    "prose that begins like a field": (PLAIN, b"data", False, ["data"]),
    "HTML": ("text/html", b"<html>\n\ndata: x\n\n</html>", False, ["<html>\n\ndata: x\n\n</html>"]),
    "empty": (JSON, b"", False, []),
    "white space only": (JSON, b" \n", False, [" \n"]),
    "half a mark": (JSON, BOM[:2], False, ["\ufffd"]),
    "no UTF-8": (JSON, b"\xff{}", False, ["\ufffd{}"]),
}


def frames(kind: str | None, pieces: list[bytes]) -> tuple[bool, list[Frame]]:
    sniffer = Sniffer({} if kind is None else {"content-type": kind})
    found = [frame for piece in pieces for frame in sniffer.feed(piece)]
    found += sniffer.close()
    return sniffer.streamed, found


@pytest.mark.parametrize(("kind", "body", "streamed", "data"), BODIES.values(), ids=BODIES)
def test_framing(kind: str | None, body: bytes, streamed: bool, data: list[str]) -> None:
    whole = frames(kind, [body])
    assert whole[0] == streamed
    assert [frame.data for frame in whole[1] if frame.data is not None] == data
    assert b"".join(frame.raw for frame in whole[1]) == body
    for place in range(len(body) + 1):
        assert frames(kind, split(body, [place])) == whole, place
    assert frames(kind, split(body, range(1, len(body)))) == whole


@settings(deadline=None)
@given(st.sampled_from([EVENTS, JSON, None]), st.binary(max_size=40), st.data())
def test_any_bytes_any_cut(kind: str | None, body: bytes, data: st.DataObject) -> None:
    whole = frames(kind, [body])
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    assert frames(kind, split(body, places)) == whole
    assert b"".join(frame.raw for frame in whole[1]) == body


def test_frames_come_before_the_end() -> None:
    sniffer = Sniffer({})
    assert sniffer.feed(b"da") == []
    assert [frame.data for frame in sniffer.feed(b"ta: a\n\nda")] == ["a"]


# Undecided, while it can still be both.
HEADS = {
    b"": None,
    b"\xef": None,
    b"\xef\xbb\xbf": None,
    b" \n": None,
    b"d": None,
    b"data": None,
    b"even": None,
    b"data:": True,
    b":": True,
    b"{": False,
    b"dat{": False,
    b"\xef\xbb{": False,
}


@pytest.mark.parametrize(("head", "verdict"), HEADS.items(), ids=map(repr, HEADS))
def test_looks_like_events(head: bytes, verdict: bool | None) -> None:
    assert looks_like_events(head) is verdict
