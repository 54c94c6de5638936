"""The pattern of text deltas: which events it matches, with which text, and that sessions read alike with it."""

from __future__ import annotations

import pytest

from tests.build import chunk, some, sse
from wirelint.apis.delta_pattern import DeltaPattern
from wirelint.engine import Session
from wirelint.events import Delta, Frame

EVENT = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'


def _delta(text: str, raw: bytes, block: int = 0) -> Delta:
    return Delta(block, text, Frame(3, raw, None, raw[6:-2].decode()))


def _like(text: str, form: bytes = EVENT) -> DeltaPattern | None:
    return DeltaPattern.of(_delta(text, form % text.encode()))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(EVENT % b" harbour", " harbour", id="another text"),
        pytest.param(EVENT % "Fähre 渡し船".encode(), "Fähre 渡し船", id="beyond ASCII"),
        pytest.param(EVENT % b"", None, id="no text"),
        pytest.param(EVENT.replace(b"}}]}", b"}}]     }") % b" quay", " quay", id="blanks between brackets"),
        pytest.param(EVENT.replace(b'"index"', b' "index"') % b" quay", " quay", id="blanks elsewhere"),
        pytest.param(EVENT % b'x"}}],"usage":{"a":"', None, id="more than a text"),
        pytest.param(EVENT % b'a\\n\\"\\u00e9\\"', 'a\n"é"', id="escapes"),
        pytest.param(EVENT % b"a\\", None, id="half an escape"),
        pytest.param(EVENT % b"\\ud83d", None, id="half a pair"),
        pytest.param(EVENT % b"a\nb", None, id="a line end"),
        pytest.param(EVENT % b"a\tb", None, id="a control character"),
        pytest.param(EVENT % b"\xc3", None, id="half a character"),
        pytest.param(EVENT % b"x" + EVENT % b"y", None, id="two events"),
        pytest.param(EVENT[:-1] % b"x", None, id="no blank line"),
        pytest.param(EVENT.replace(b'"index":0', b'"index":1') % b"x", None, id="another choice"),
        pytest.param(EVENT.replace(b'"index":0', b'"index":false') % b"x", None, id="a value of another type"),
        pytest.param(EVENT.replace(b'"index"', b'\r"index"') % b"x", None, id="a line end amid the document"),
        pytest.param(b"data: [DONE]\n\n", None, id="the end"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_text_of_what_is_alike(raw: bytes, text: str | None) -> None:
    like = some(_like(" ferry"))
    assert like.text(raw) == text


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Delta(0, "b", None), id="without a frame"),
        pytest.param(_delta("", EVENT % b""), id="without a text"),
        pytest.param(_delta("a", EVENT % b"a"), id="a text that is another value too"),
        pytest.param(_delta("a", EVENT % b"\\u0061"), id="spelt otherwise, another value as text"),
        pytest.param(_delta("a/b", EVENT.replace(b'"a"', b'"a/b"') % b"a\\/b"), id="a slash spelt otherwise"),
        pytest.param(_delta("b", EVENT.replace(b"\n", b"\r") % b"b"), id="ended by CR"),
        pytest.param(_delta("b", EVENT.replace(b'"id"', b'"p":"b","id"') % b"z"), id="in a value that nobody reads"),
    ],
)
def test_events_that_show_nothing(event: Delta) -> None:
    assert DeltaPattern.of(event) is None


IDLE_EVENT = (
    b'data: {"id":"a","created":%d,"system_fingerprint":"fp_%s","choices":[{"delta":{"content":"%s"}}],'
    b'"sequence_number": %d,"obfuscation":"%s"}\n\n'
)
IGNORING = DeltaPattern.of(_delta(" ferry", IDLE_EVENT % (2, b"8", b" ferry", 10, b"x8")))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(IDLE_EVENT % (30, b"9 a", b" harbour", 11, b"Q0"), " harbour", id="other values"),
        pytest.param(IDLE_EVENT % (0, b"", b'a \\"b\\"', 0, b""), 'a "b"', id="empty values, an escaped text"),
        pytest.param(
            IDLE_EVENT.replace(b'"%s"}\n', b'["%s"]}\n') % (1, b"7", b"a", 1, b"c"), "a", id="neither string nor number"
        ),
        pytest.param(IDLE_EVENT % (1, b"7", b'a","b":"', 1, b"c"), None, id="more than a text"),
        pytest.param(IDLE_EVENT % (1, b'7","x":"', b"a", 1, b"c"), None, id="a member more before the text"),
        pytest.param(IDLE_EVENT % (1, b"7", b"a", 1, b'c","x":"'), None, id="a member more behind the text"),
        pytest.param(IDLE_EVENT % (1, b"7", b"a", 1, b"c\\"), None, id="a value that does not end"),
        pytest.param(IDLE_EVENT % (1, b"\xc3", b"a", 1, b"c"), None, id="a value that is no UTF-8"),
        pytest.param(IDLE_EVENT % (1, b"7\n", b"a", 1, b"c"), None, id="a line end in a value"),
        pytest.param(IDLE_EVENT.replace(b": %d", b": 0%d") % (1, b"7", b"a", 1, b"c"), None, id="no JSON number"),
        pytest.param(IDLE_EVENT.replace(b'"a"', b'"b"') % (1, b"7", b"a", 1, b"c"), None, id="another id"),
    ],
)
def test_values_that_nobody_reads_may_differ(raw: bytes, text: str | None) -> None:
    assert some(IGNORING).text(raw) == text


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(b'data: {"delta":{"content":"%s","p":"%s"}}\n\n', id="not of the document itself"),
        pytest.param(b'data: {"delta":{"content":"%s"},"id":"%s"}\n\n', id="a value that is read"),
    ],
)
def test_no_other_values_may_differ(form: bytes) -> None:
    like = some(DeltaPattern.of(_delta("b", form % (b"b", b"1"))))
    assert like.text(form % (b"c", b"1")) == "c"
    assert like.text(form % (b"c", b"2")) is None


WORDS = ["The", " ferry", " leaves", ' at "nine"', "\n", " sharp", "…", " daily", "", " and", " late", "\u2028", "."]
_PLAIN = [chunk({"content": word}) for word in WORDS]
FORMS = {
    "alike": _PLAIN,
    "two choices": [
        {**chunk({"content": word}), "choices": [{"index": number % 2, "delta": {"content": word}}]}
        for number, word in enumerate(word for word in WORDS for _ in range(4))
    ],
    "ids change": [{**event, "id": f"c{number}"} for number, event in enumerate(_PLAIN)],
    "idle values": [
        {"created": number // 3, "system_fingerprint": f"fp_{number % 4}", **event, "obfuscation": "x" * (number % 5)}
        for number, event in enumerate(_PLAIN)
    ],
    "usage between": [
        {**event, "usage": {"total_tokens": number}} if number % 5 == 4 else event
        for number, event in enumerate(_PLAIN)
    ],
    "on after the end": [*_PLAIN[:4], chunk({}, "stop"), *_PLAIN],
}


@pytest.mark.parametrize("cut", ["by event", "whole", "by byte"])
@pytest.mark.parametrize("form", FORMS)
def test_a_session_reads_the_same_with_it_and_without(form: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = sse(*FORMS[form]).encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    again = events[1:4]  # after `[DONE]`
    pieces = {
        "by event": [*events, *again],
        "whole": [b"".join((*events, *again))],
        "by byte": [bytes([byte]) for event in (*events, *again) for byte in event],
    }
    quick = _read(pieces[cut])
    monkeypatch.setattr(DeltaPattern, "of", classmethod(lambda cls, event: None))
    assert quick == _read(pieces[cut])


def _read(pieces: list[bytes]) -> str:
    body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "When?"}]}'
    url = "https://llm.example/v1/chat/completions"
    session = some(Session.begin(id="x", method="POST", url=url, headers={}, body=body))
    session.respond(200, {"content-type": "text/event-stream"})
    for number, piece in enumerate(pieces):
        session.feed(piece, float(number))
    exchange = session.finish()
    return repr((exchange.reply, exchange.chunks, exchange.timing))
