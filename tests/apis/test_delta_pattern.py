"""The pattern of text deltas: which events it matches, with which text, and that sessions read alike with it."""

from __future__ import annotations

import pytest

from tests.build import chunk, some, sse
from wirelint.apis.delta_pattern import DeltaPattern
from wirelint.engine import Session
from wirelint.events import Delta, Frame

EVENT = '{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}'


def _frame(data: str, name: str | None = None) -> Frame:
    return Frame(3, b"", name, data)


def _delta(text: str, data: str) -> Delta:
    return Delta(0, text, _frame(data))


LIKE = some(DeltaPattern.of(_delta(" ferry", EVENT % " ferry")))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(EVENT % " harbour", " harbour", id="another text"),
        pytest.param(EVENT % "Fähre 渡し船", "Fähre 渡し船", id="beyond ASCII"),
        pytest.param(EVENT % "", "", id="no text"),
        pytest.param(EVENT.replace("}}]}", "}}]     }") % " quay", " quay", id="blanks between brackets"),
        pytest.param(EVENT.replace('"index"', ' "index"') % " quay", " quay", id="blanks elsewhere"),
        pytest.param(EVENT % 'x"}}],"usage":{"a":"', "", id="more than a text"),
        pytest.param(EVENT % r"a\n\"\u00e9\"", 'a\n"é"', id="escapes"),
        pytest.param(EVENT % "a\\", "", id="half an escape"),
        pytest.param(EVENT % "\\ud83d", "", id="half a pair"),
        pytest.param(EVENT % "a\tb", "", id="a control character"),
        pytest.param(EVENT.replace('"index":0', '"index":1') % "x", "", id="another choice"),
        pytest.param(EVENT.replace('"index":0', '"index":false') % "x", "", id="a value of another type"),
        pytest.param(EVENT.replace('"%s"', '["%s"]') % "x", "", id="a text in a list"),
        pytest.param("[DONE]", "", id="the end"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_text_of_what_is_alike(data: str, text: str) -> None:
    assert LIKE.text(_frame(data)) == text
    assert not LIKE.text(_frame(data, "ping"))
    assert not LIKE.text(_frame(data)._replace(faults=(("leading-space", " data"),)))


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Delta(0, "b", None), id="without a frame"),
        pytest.param(_delta("", EVENT % ""), id="without a text"),
        pytest.param(_delta("a", EVENT % "a"), id="a text that is another value too"),
        pytest.param(_delta("a", EVENT % r"\u0061"), id="spelt otherwise, another value as text"),
        pytest.param(_delta("b", EVENT.replace('"id"', '"p":"b","id"') % "z"), id="in a value that nobody reads"),
    ],
)
def test_events_that_show_nothing(event: Delta) -> None:
    assert DeltaPattern.of(event) is None


IDLE_EVENT = (
    '{"id":"a","created":%d,"system_fingerprint":"fp_%s","choices":[{"delta":{"content":"%s"}}],'
    '"sequence_number": %d,"obfuscation":"%s"}'
)
IGNORING = some(DeltaPattern.of(_delta(" ferry", IDLE_EVENT % (2, "8", " ferry", 10, "x8"))))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(IDLE_EVENT % (30, "9 a", " harbour", 11, "Q0"), " harbour", id="other values"),
        pytest.param(IDLE_EVENT % (0, "", r"a \"b\"", 0, ""), 'a "b"', id="empty values, an escaped text"),
        pytest.param(IDLE_EVENT.replace('n":"%s', 'n":["%s"],"p":"') % (1, "7", "a", 1, "c"), "a", id="of other types"),
        pytest.param(IDLE_EVENT % (1, "7", 'a","b":"', 1, "c"), "", id="more than a text"),
        pytest.param(IDLE_EVENT % (1, '7","x":"', "a", 1, "c"), "", id="a member more before the text"),
        pytest.param(IDLE_EVENT % (1, "7", "a", 1, 'c","x":"'), "", id="a member more behind the text"),
        pytest.param(IDLE_EVENT % (1, "7", "a", 1, "c\\"), "", id="a value that does not end"),
        pytest.param(IDLE_EVENT.replace('"a"', '"b"') % (1, "7", "a", 1, "c"), "", id="another id"),
    ],
)
def test_values_that_nobody_reads_may_differ(data: str, text: str) -> None:
    assert IGNORING.text(_frame(data)) == text


@pytest.mark.parametrize(
    "form",
    [
        pytest.param('{"delta":{"content":"%s","p":"%s"}}', id="not of the document itself"),
        pytest.param('{"delta":{"content":"%s"},"id":"%s"}', id="a value that is read"),
    ],
)
def test_no_other_values_may_differ(form: str) -> None:
    like = some(DeltaPattern.of(_delta("b", form % ("b", "1"))))
    assert like.text(_frame(form % ("c", "1"))) == "c"
    assert not like.text(_frame(form % ("c", "2")))


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
