"""How a body is framed is decided by its first bytes: events, lines, messages of AWS, or one document; for any cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from tests.wire.test_aws_eventstream import ONE, TWO
from wirelint.events import Frame
from wirelint.wire import Sniffer, aws_eventstream, looks_like_events

EVENTS, JSON, PLAIN = "text/event-stream; charset=utf-8", "application/json", "text/plain"
LINES = "application/x-ndjson"
BOM = b"\xef\xbb\xbf"

# (content type, body, whether it is a stream of events, the data of its frames)
EVENTFUL: dict[str, tuple[str | None, bytes, bool, list[str]]] = {
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

# (content type, body, whether it is lines, (data, faults) of its frames)
IN_LINES: dict[str, tuple[str | None, bytes, bool, list[tuple[str | None, list[str]]]]] = {
    "lines": (LINES, b'{"a":1}\n{"b":2}\n', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "one line": (LINES, b'{"a":1}\n', True, [('{"a":1}', [])]),
    "no line feed at the end": (LINES, b'{"a":1}\n{"b":2}', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "cut off": (LINES, b'{"a":1}\n{"b"', True, [('{"a":1}', []), ('{"b"', ["cut-event"])]),
    "CRLF": (LINES, b'{"a":1}\r\n{"b":2}\r\n', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "blank lines": (LINES, b'\n{"a":1}\n \n\n{"b":2}\n\n', True, [('{"a":1}', []), ('{"b":2}', []), (None, [])]),
    "mark first": (LINES, BOM + b'{"a":1}\n{"b":2}\n', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "blanks around": (LINES, b'  {"a":1} \n\t{"b":2}\n', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "no UTF-8": (LINES, b'{"a":"\xff"}\n', True, [('{"a":"\ufffd"}', ["bad-utf8"])]),
    "no JSON in between": (LINES, b'{"a":1}\noops\n', True, [('{"a":1}', []), ("oops", [])]),
    "escaped line feeds": (LINES, b'{"a":"x\\ny"}\n', True, [('{"a":"x\\ny"}', [])]),
    "declared, and empty": (LINES, b"", True, []),
    "declared, and HTML": (LINES, b"<html>\n</html>", False, [("<html>\n</html>", [])]),
    "declared, and events": (LINES, b'data: {"a":1}\n\n', True, [('{"a":1}', [])]),
    "declared, and a mark behind a blank line": (LINES, b"\n" + BOM + b'{"a":1}\n', False, [('\n\ufeff{"a":1}\n', [])]),
    "another name": ("application/jsonl", b'{"a":1}\n', True, [('{"a":1}', [])]),
    "and another": ("application/stream+json; charset=utf-8", b'{"a":1}\n', True, [('{"a":1}', [])]),
    "undeclared": (None, b'{"a":1}\n{"b":2}\n', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "undeclared, CRLF": (PLAIN, b'{"a":1}\r\n\r\n{"b":2}', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "undeclared, blank lines first": (None, b'\n\n{"a":1}\n{"b":2}', True, [('{"a":1}', []), ('{"b":2}', [])]),
    "undeclared, one line": (None, b'{"a":1}\n', False, [('{"a":1}\n', [])]),
    "undeclared, and written out": (None, b'{\n "a": 1\n}\n', False, [('{\n "a": 1\n}\n', [])]),
    "undeclared, and something else behind": (None, b'{"a":1}\nbye\n', False, [('{"a":1}\nbye\n', [])]),
    "undeclared, and broken": (None, b'{"a":\n{"b":2}\n', False, [('{"a":\n{"b":2}\n', [])]),
    "declared as a document": (JSON, b'{"a":1}\n{"b":2}\n', False, [('{"a":1}\n{"b":2}\n', [])]),
    "declared as events": (EVENTS, b'{"a":1}\n{"b":2}\n', False, [('{"a":1}\n{"b":2}\n', [])]),
}

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
    assert sniffer.waiting == b""
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


@pytest.mark.parametrize(("kind", "body", "streamed", "data"), EVENTFUL.values(), ids=EVENTFUL)
def test_a_body_is_read_as_events_or_a_document(kind: str | None, body: bytes, streamed: bool, data: list[str]) -> None:
    assert [frame.data for frame in framed(kind, body, streamed) if frame.data is not None] == data


@pytest.mark.parametrize(("kind", "body", "streamed", "expected"), IN_LINES.values(), ids=IN_LINES)
def test_a_body_is_read_as_lines_or_a_document(
    kind: str | None, body: bytes, streamed: bool, expected: list[tuple[str | None, list[str]]]
) -> None:
    found = framed(kind, body, streamed)
    assert [(frame.data, [fault for fault, _ in frame.faults]) for frame in found] == expected


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


@pytest.mark.parametrize("kind", [LINES, PLAIN])
def test_lines_come_as_they_are_complete(kind: str) -> None:
    sniffer = Sniffer({"content-type": kind})
    assert sniffer.feed(b'{"a"') == []
    early = sniffer.feed(b":1}\n")
    assert sniffer.waiting == (b"" if kind == LINES else b'{"a":1}\n')
    assert [frame.data for frame in [*early, *sniffer.feed(b'{"b":2}\n{"c"')]] == ['{"a":1}', '{"b":2}']
    assert sniffer.waiting == b'{"c"'


def test_messages_without_their_decoder_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_eventstream, "_botocore", lambda: None)
    sniffer = Sniffer({})
    sniffer.feed(TWO[:5])
    assert sniffer.unreadable is None
    sniffer.feed(TWO[5:])
    assert sniffer.unreadable == aws_eventstream.NO_DECODER


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
def test_a_head_is_undecided_while_it_can_be_both(head: bytes, verdict: bool | None) -> None:
    assert looks_like_events(head) is verdict
