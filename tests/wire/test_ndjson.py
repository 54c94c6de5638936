"""JSON lines: nothing lost, the same for every cut, and recognised where nobody declares them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from wirelint.events import Frame
from wirelint.wire import Sniffer

LINES, JSON, PLAIN, EVENTS = "application/x-ndjson", "application/json", "text/plain", "text/event-stream"
BOM = b"\xef\xbb\xbf"

# (content type, body, whether it is lines, (data, faults) of its frames)
BODIES: dict[str, tuple[str | None, bytes, bool, list[tuple[str | None, list[str]]]]] = {
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


def frames(kind: str | None, pieces: list[bytes]) -> tuple[bool, list[Frame]]:
    sniffer = Sniffer({} if kind is None else {"content-type": kind})
    found = [frame for piece in pieces for frame in sniffer.feed(piece)]
    found += sniffer.close()
    assert sniffer.waiting == b""
    return sniffer.streamed, found


@pytest.mark.parametrize(("kind", "body", "streamed", "expected"), BODIES.values(), ids=BODIES)
def test_framing(kind: str | None, body: bytes, streamed: bool, expected: list[tuple[str | None, list[str]]]) -> None:
    whole = frames(kind, [body])
    assert whole[0] == streamed
    assert [(frame.data, [fault for fault, _ in frame.faults]) for frame in whole[1]] == expected
    assert b"".join(frame.raw for frame in whole[1]) == body
    for place in range(len(body) + 1):
        assert frames(kind, split(body, [place])) == whole, place
    assert frames(kind, split(body, range(1, len(body)))) == whole


@settings(deadline=None)
@given(
    st.sampled_from([LINES, PLAIN, None]),
    st.lists(st.sampled_from([b'{"a":1}', b"{}", b"\n", b"\r\n", b" ", b"{", b'"', b"\xff", BOM, b"x"])).map(b"".join),
    st.data(),
)
def test_any_bytes_any_cut(kind: str | None, body: bytes, data: st.DataObject) -> None:
    whole = frames(kind, [body])
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    assert frames(kind, split(body, places)) == whole
    assert b"".join(frame.raw for frame in whole[1]) == body
    assert [frame.number for frame in whole[1]] == list(range(len(whole[1])))


@pytest.mark.parametrize("kind", [LINES, PLAIN])
def test_lines_come_as_they_are_complete(kind: str) -> None:
    sniffer = Sniffer({"content-type": kind})
    assert sniffer.feed(b'{"a"') == []
    early = sniffer.feed(b":1}\n")
    assert sniffer.waiting == (b"" if kind == LINES else b'{"a":1}\n')
    assert [frame.data for frame in [*early, *sniffer.feed(b'{"b":2}\n{"c"')]] == ['{"a":1}', '{"b":2}']
    assert sniffer.waiting == b'{"c"'
