"""Replies without a fault: no rewriter for whole ones, and text deltas of streams that leave before they are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tests.build import REGISTRY, Talk, as_record, chunk, exchange, schema, sse
from tests.fixes.drive import UNSAFE, run
from wirelint.apis.delta_pattern import DeltaPattern
from wirelint.capture.record import Record
from wirelint.engine import Session, lower
from wirelint.events import Delta, Event
from wirelint.fix import RewriteContext, Rewriter
from wirelint.model import Exchange
from wirelint.rewrite import ReplyStream
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

WEATHER = {"get_weather": schema(city="string")}
WHOLE = Talk(text="The ferry leaves at nine.", tools=WEATHER)


class _Spy(Rule):
    """Finds what it is told to find, and counts how often its rewriter is asked for."""

    code = "XX902"
    name = "spy"
    severity = "info"
    layer = "model"

    def __init__(self, find: str) -> None:
        self.find = find
        self.asked = 0

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        if self.find == "fails":
            raise LookupError("nothing here")
        assert exchange.reply is not None
        return [self.finding("response", "found")] if self.find in exchange.reply.choices[0].text else []

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        self.asked += 1
        return None


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize(
    ("find", "streamed", "asked"),
    [
        pytest.param("tram", False, 0, id="nothing found"),
        pytest.param("ferry", False, 1, id="something found"),
        pytest.param("fails", False, 1, id="the look fails"),
        pytest.param("tram", True, 1, id="a stream, of which nobody knows yet"),
    ],
)
def test_rewriters_of_a_whole_reply_are_asked_where_their_rule_finds_something(
    api: str, find: str, streamed: bool, asked: int
) -> None:
    spy = _Spy(find)
    result = run(WHOLE.record(api, streamed), [spy])
    assert spy.asked == asked
    assert not result.changed
    assert not result.faults


def test_a_rule_that_only_rewrites_is_asked_all_the_same() -> None:
    class Silent(_Spy):
        check_reply = Rule.check_reply

    spy = Silent("")
    run(WHOLE.record("openai.chat", False), [spy])
    assert spy.asked == 1


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


def _text(session: Session) -> str:
    reply = session.reply()
    return reply.choices[0].text if reply is not None and reply.choices else ""


def test_quiet_events_leave_before_they_are_read() -> None:
    record = _stream(PROSE)
    session, rewriting = _begin(record)
    events = _events(record)
    out = [rewriting.feed(event, float(number)) for number, event in enumerate(events[:-2])]
    assert out[4:] == [[event] for event in events[4:-2]]
    said = f" {' '.join(PROSE)}"
    assert len(_text(session)) < len(said)
    rewriting.catch_up()
    assert _text(session) == said
    assert [number for number, _ in session.finish().chunks] == [float(number) for number in range(len(events) - 2)]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(lambda rewriting: rewriting.flush(), id="flushed"),
        pytest.param(lambda rewriting: rewriting.end(), id="ended"),
        pytest.param(lambda rewriting: rewriting.feed(b": ping\n\n"), id="another event"),
        pytest.param(lambda rewriting: rewriting.feed(b"dat"), id="a piece of one"),
    ],
)
def test_what_has_left_is_read_before_anything_else_is_done(how: object) -> None:
    record = _stream(PROSE)
    session, rewriting = _begin(record)
    for event in _events(record)[:-2]:
        rewriting.feed(event)
    assert callable(how)
    how(rewriting)
    assert _text(session) == f" {' '.join(PROSE)}"


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


class _Late:
    """Says that quiet text may come late, and acts on it all the same."""

    phase = 3
    patient = True
    held: int | None = None

    def push(self, event: Event) -> Iterable[Event]:
        return [event._replace(text=event.text.upper())] if type(event) is Delta and len(event.text) > 40 else [event]

    def release(self) -> Iterable[Event]:
        return []


class _MadeLate(_Spy):
    check_reply = Rule.check_reply

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return _Late()


def test_what_has_left_unread_does_not_leave_again_when_it_is_failed_at() -> None:
    record = _stream(PROSE)
    events = _events(record)
    _, rewriting = _begin(record, [_MadeLate("")])
    out = [piece for event in events for piece in rewriting.feed(event)] + rewriting.end()
    assert b"".join(out) == record.response_body
    assert [fault.message for fault in rewriting.faults] == [
        "the repair of harmless text failed: ValueError: a rewriter acts on text that has left already"
    ]
