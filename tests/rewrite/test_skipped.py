"""Replies without a fault: no rewriter for whole ones, and text deltas of streams that leave before they are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tests.build import REGISTRY, as_record, chunk, exchange, schema, sse
from tests.fixes.drive import UNSAFE
from wirelint.apis.delta_pattern import DeltaPattern
from wirelint.capture.record import Record
from wirelint.engine import Session, lower
from wirelint.rewrite import ReplyStream
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

# --- streams ----------------------------------------------------------------------------------------------------------

_SENTENCE = (
    "The ferry leaves at nine every morning even during winter storms since people over there need bread and milk"
)
PROSE = _SENTENCE.split()
_CALL = '<invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>'


def _stream(words: Iterable[str], *more: object) -> Record:
    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": f" {word}"}) for word in words)]
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Is it windy in Oslo?"}]}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": schema(city="string")}}]
    said = sse(*events, *more, chunk({}, "stop"))
    return as_record(exchange("/v1/chat/completions", {**body, "tools": tools}, said, content_type="text/event-stream"))


def _begin(record: Record, rules: Sequence[Rule] = REGISTRY.rules) -> tuple[Session, ReplyStream]:
    session = Session.begin(
        id="x", method="POST", url=record.url, headers=lower(record.request_headers), body=record.request_body or b""
    )
    assert session is not None
    session.respond(200, {"content-type": "text/event-stream"})
    rewriting = ReplyStream.begin(session, rules, Ledger(), UNSAFE)
    assert rewriting is not None
    return session, rewriting


def _events(record: Record) -> list[bytes]:
    return [event + b"\n\n" for event in (record.response_body or b"").split(b"\n\n") if event]


MIXED = {
    "a call in the text": [*PROSE, "\n", *(_CALL[n : n + 7] for n in range(0, len(_CALL), 7))],
    "lines": [word + "\n" * (number % 4 == 3) for number, word in enumerate(PROSE)],
    "brackets": [f"<{word}>" if number % 6 == 5 else word for number, word in enumerate(PROSE)],
    "escapes": [f'"{word}"' if number % 5 == 4 else word for number, word in enumerate(PROSE)],
    "a word over two events": ["my_func", "tions", *PROSE, "f", "unctions", ".read", ":0", "{}"],
}


@pytest.mark.parametrize("words", MIXED.values(), ids=MIXED)
def test_what_leaves_does_not_depend_on_when_it_is_read(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    record = _stream(words)
    quick = _all(record)
    monkeypatch.setattr(DeltaPattern, "of", classmethod(lambda cls, event: None))
    assert quick == _all(record)


def _all(record: Record) -> tuple[object, ...]:
    session, rewriting = _begin(record)
    out = [rewriting.feed(event, float(number)) for number, event in enumerate(_events(record))]
    out.append(rewriting.end())
    exchange = session.finish()
    told = (rewriting.repairs, rewriting.notes, rewriting.faults, rewriting.changed)
    return b"".join(piece for pieces in out for piece in pieces), repr(told), repr((exchange.reply, exchange.chunks))
