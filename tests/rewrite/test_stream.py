"""The pipeline of a reply: what it hands out when, and that no byte is lost or doubled, whatever a rewriter does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from tests.build import FORMS, Call, Talk, schema, some
from tests.cuts import between_events, cuts, events_of
from tests.fixes.drive import run
from tests.selection import in_batches, is_complete
from wirelint.events import Delta, Event, Finish, Start
from wirelint.fix import RewriteContext, Rewriter
from wirelint.rule import Rule

WEATHER = {"get_weather": schema(city="string")}
TALKS = {
    "text": Talk(text="The ferry to Nesodden leaves at nine, and at ten past.", tools=WEATHER),
    "call": Talk(text="Let me look.", calls=[Call("get_weather", {"city": "Oslo"})], tools=WEATHER),
    "thought": Talk(reasoning="Nine or ten?", text="Nine.", finish="stop"),
}
RUNS = [
    pytest.param(talk.record(api, stream), id=f"{name}-{api}{'-streamed' if stream else ''}")
    for name, talk in TALKS.items()
    for api, stream in FORMS
]
STREAMS = [run_ for run_ in RUNS if str(run_.id).endswith("-streamed")]


class _Idle:
    """A rewriter that does nothing, to be made worse."""

    phase = 3
    held: int | None = None

    def __init__(self, context: RewriteContext) -> None:
        self.context = context

    def push(self, event: Event) -> Iterable[Event]:
        return [event]

    def release(self) -> Iterable[Event]:
        return []


class _Made(Rule):
    """A rule that is only there for its rewriter."""

    code = "XX901"
    name = "made-up"
    severity = "info"
    layer = "model"

    def __init__(self, make: Callable[[RewriteContext], Rewriter]) -> None:
        self._make = make

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return self._make(context)


class _Shout(_Idle):
    def push(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Delta):
            return [event._replace(text=event.text.upper())]
        return [event]


class _Hold(_Idle):
    """Holds everything back until the reply stops."""

    def __init__(self, context: RewriteContext) -> None:
        super().__init__(context)
        self._kept: list[Event] = []

    def push(self, event: Event) -> Iterable[Event]:
        self._kept.append(event)
        if isinstance(event, Finish):
            return self.release()
        if self.held is None:
            self.held = event.frame.number if event.frame is not None else 0
        return []

    def release(self) -> Iterable[Event]:
        kept, self._kept, self.held = self._kept, [], None
        return kept


class _FailsAt(_Hold):
    """Holds, and raises at the nth event; `release` raises too where `deep`."""

    def __init__(self, context: RewriteContext, nth: int, *, deep: bool) -> None:
        super().__init__(context)
        self._left = nth
        self._deep = deep

    def push(self, event: Event) -> Iterable[Event]:
        self._left -= 1
        if self._left < 0:
            raise ValueError("as the test wants it")
        return super().push(event)

    def release(self) -> Iterable[Event]:
        if self._deep:
            raise ValueError("as the test wants it")
        return super().release()


class _Late(_Hold):
    """Says that it may get text late, and fails at it, with the text in its hands."""

    patient = True

    def push(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Delta) and "leaves" in event.text:
            self._kept.append(event)
            raise ValueError("as the test wants it")
        return [event]


class _TakesOut(_Idle):
    """Takes the first text out, and gives it back only when it is told to release."""

    patient = True
    phase = 2

    def __init__(self, context: RewriteContext) -> None:
        super().__init__(context)
        self._taken: list[Event] = []
        self._first = True

    def push(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Delta) and self._first:
            self._first = False
            self._taken = [event]
            return []
        return [event]

    def release(self) -> Iterable[Event]:
        taken, self._taken = self._taken, []
        return taken


def _body(record: Mapping[str, Any]) -> bytes:
    return str(record["response"]["body"]).encode()


@pytest.mark.parametrize("record", RUNS)
def test_without_a_change_bytes_leave_as_they_came_for_every_cut(record: Mapping[str, Any]) -> None:
    body = _body(record)
    for places in [(), *cuts(len(body))]:
        result = run(record, [_Made(_Idle)], cuts=places)
        assert result.delivered == body
        assert not result.changed
        assert b"" not in result.pieces


@pytest.mark.parametrize("record", STREAMS)
def test_a_complete_event_is_handed_out_at_once(record: Mapping[str, Any]) -> None:
    body = _body(record)
    assert run(record, [_Made(_Idle)], cuts=between_events(body)).pieces == tuple(events_of(body))


@pytest.mark.parametrize("record", RUNS)
def test_a_change_is_the_same_for_every_cut(record: Mapping[str, Any]) -> None:
    body = _body(record)
    whole = run(record, [_Made(_Shout)])
    assert whole.changed
    assert some(whole.after.reply).choices[0].text == whole.before.reply.choices[0].text.upper()  # type: ignore[union-attr]
    for places in cuts(len(body)):
        assert run(record, [_Made(_Shout)], cuts=places).delivered == whole.delivered


@pytest.mark.parametrize("record", RUNS)
@pytest.mark.parametrize("deep", [False, True], ids=["release works", "release fails"])
@in_batches("nth", [0, 1, 3, 5])
def test_a_rewriter_that_fails_costs_nobody_a_byte(record: Mapping[str, Any], nth: int, deep: bool) -> None:
    body = _body(record)
    rule = _Made(lambda context: _FailsAt(context, nth, deep=deep))
    result = run(record, [rule], cuts=range(11, len(body), 11))
    assert result.delivered == body
    if result.faults:
        assert "made-up" in result.faults[0].message
        assert result.faults[0].layer == "wirelint"
    if nth == 0:
        assert result.faults


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize("cut", [1, 0], ids=["an event a piece", "in one piece"])
def test_text_that_had_left_does_not_leave_again_when_it_is_failed_at(api: str, cut: int) -> None:
    record = TALKS["text"].record(api, True)
    body = _body(record)
    edges = between_events(body) if cut else []
    result = run(record, [_Made(_Late)], cuts=edges)
    assert result.faults
    assert result.delivered == body
    # What another one had taken out before comes back, once.
    both = run(record, [_Made(_TakesOut), _Made(_Late)], cuts=edges)
    assert both.faults
    said, meant = some(both.after.reply).choices[0].text, TALKS["text"].text
    assert sorted(said) == sorted(meant)


@pytest.mark.parametrize("record", RUNS)
def test_a_rule_that_cannot_make_its_rewriter_is_told_of(record: Mapping[str, Any]) -> None:
    def refuse(context: RewriteContext) -> Rewriter:
        raise LookupError("nothing here")

    result = run(record, [_Made(refuse)])
    assert result.delivered == _body(record)
    assert [fault.message for fault in result.faults] == ["the repair of made-up failed: LookupError: nothing here"]


@pytest.mark.parametrize("record", STREAMS)
def test_an_upstream_that_dies_gets_everything_out(record: Mapping[str, Any]) -> None:
    body = _body(record)
    for end in range(0, len(body), 37):
        cut = {**record, "response": {**record["response"], "body": body[:end].decode("utf-8", "ignore")}}
        result = run(cut, [_Made(_Hold)], cuts=range(50, max(end, 50), 50), complete=False)
        assert result.delivered == _body(cut)


def test_what_is_held_too_long_is_released_and_noted() -> None:
    record = TALKS["text"].record("openai.chat", True)
    body = _body(record)
    edges = [body.index(b"\n\n") + 2, body.index(b"\n\n", 400) + 2]
    result = run(record, [_Made(_Hold)], cuts=edges, step=20_000)
    assert result.delivered == body
    assert result.notes == ("text was held for 40 s and released unchanged",)
    assert run(record, [_Made(_Hold)], cuts=edges, step=10_000).notes == ()


@pytest.mark.parametrize("rule", [_Idle, _Hold, _Shout])
@in_batches("record", STREAMS)
def test_a_flush_in_mid_stream_loses_and_doubles_nothing(record: Mapping[str, Any], rule: type[_Idle]) -> None:
    body = _body(record)
    for place in range(0, len(body), 23 if is_complete() else 211):
        result = run(record, [_Made(rule)], cuts=[place], flush=True)
        if rule is not _Shout:
            assert result.delivered == body
        else:
            assert result.delivered.lower() == run(record, [_Made(_Shout)]).delivered.lower() or result.changed
            assert result.after.reply is not None
            assert result.after.reply.terminated
            said = (result.after.reply.choices[0].text, result.before.reply.choices[0].text)  # type: ignore[union-attr]
            assert said[0].lower() == said[1].lower()


def test_an_event_without_end_is_passed_on() -> None:
    record = TALKS["text"].record("openai.chat", True)
    body = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * (3 << 20)
    endless = {**record, "response": {**record["response"], "body": body.decode()}}
    result = run(endless, [_Made(_Idle)], cuts=range(1 << 16, len(body), 1 << 16), complete=False)
    assert result.delivered == body
    assert max(map(len, result.pieces)) < 1 << 21
    assert result.notes == ("an event of more than 1 MiB was forwarded unchanged",)


class _Adds(_Idle):
    """Puts a call before the end."""

    def push(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, Finish):
            return [event]
        block = self.context.new_block()
        start = Start(block, "tool_call", "/made", 0, event.frame, None, "made_1", "get_weather")
        return [start, Delta(block, '{"city":"Bergen"}', event.frame), event]


@pytest.mark.parametrize("record", RUNS)
def test_calls_that_are_added_are_numbered_on(record: Mapping[str, Any]) -> None:
    result = run(record, [_Made(_Adds)])
    before, after = result.before.reply, result.after.reply
    assert before is not None
    assert after is not None
    calls = after.choices[0].calls
    assert [call.id for call in calls] == [*(call.id for call in before.choices[0].calls), "made_1"]
    assert calls[-1].arguments.value == {"city": "Bergen"}
    assert after.choices[0].text == before.choices[0].text
    assert after.faults == ()
    assert [call.pieces[0].index for call in calls if call.pieces] == sorted(
        {call.pieces[0].index or 0 for call in calls if call.pieces}
    )


def test_events_beyond_a_bound_do_not_wait() -> None:
    """All that waits leaves in one call, in which nobody else behind the proxy is served."""
    record = Talk(text="x" * 5000, step=1).record("openai.chat", True)
    body = _body(record)
    result = run(record, [_Made(_Hold)], cuts=range(1 << 16, len(body), 1 << 16))
    assert result.delivered == body
    assert len(result.pieces) > 4096
    assert result.notes == ("more than 3072 events waited for a repair; they were forwarded unchanged",)


@pytest.mark.parametrize("record", STREAMS)
def test_a_block_that_nobody_began_ends_nothing(record: Mapping[str, Any]) -> None:
    class Odd(_Idle):
        def push(self, event: Event) -> Iterable[Event]:
            return [event._replace(block=77)] if isinstance(event, Delta) else [event]

    body = _body(record)
    result = run(record, [_Made(Odd)], cuts=range(30, len(body), 30))
    assert result.delivered.endswith(body[-20:])


@pytest.mark.parametrize("method", ["MarkupPromoter.ending", "MarkupDecider._release"])
def test_markup_that_was_cut_when_its_repair_fails_arrives_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(f"wirelint.fixes.promote_markup.{method}", fails)
    call = '<invoke name="get_weather"><arg name="city">Oslo</arg></invoke>'
    record = Talk(text=f"Let me look.\n\n{call}", tools=WEATHER, step=7).record("openai.chat", True)
    passage = run(record, cuts=between_events(record["response"]["body"].encode()))
    assert [fault.name for fault in passage.faults] == ["internal-error"]
    assert passage.delivered == record["response"]["body"].encode()
