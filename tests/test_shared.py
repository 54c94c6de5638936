"""The labelled cases and recordings that may lie beside a checkout, judged and repaired; skipped where they do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

import wirelint.apis
from tests.build import REGISTRY, some
from tests.cuts import cuts
from tests.fixes.drive import run
from tests.selection import in_batches, is_complete
from tests.shared import SHARED, Case, cases, some_traffic, traffic_labels
from wirelint.apis import channel_of
from wirelint.apis.traits import traits
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.events import Event, Other, StreamViolation
from wirelint.fix import FixPolicy, RewriteContext, Rewriter
from wirelint.model import Reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Finding, Rule
from wirelint.wire import Sniffer

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no labelled cases beside this checkout")

APIS = tuple(api.name for api in wirelint.apis.APIS)
MODELS = tuple(name for name in APIS if channel_of(name) == "model")
NAMES = {rule.name for rule in REGISTRY.rules}
REQUESTS = FixPolicy("unsafe", lambda code: code != "ST605", clean_history=True)
"""All but what asks for token counts, which many clients never asked for."""
OLD = "https://api.cohere.com/v1/"
"""Endpoints of a version that is not read."""
RIGHTLY = {
    "real-11351f80ed9c1799": "the API refused the request for its order, and says so",
    "real-3ab520630ea519f6": "a blank stands before its first event, which strict clients lose for it",
    "real-f7af9ce742ec7e5d": "the request turns its tools off, and the model makes the weather up",
}
"""Recordings in which something is found or changed though no label calls them an anomaly."""

FAULTY = [case for case in cases("anomalies", APIS) if case.kind in NAMES] if SHARED.is_dir() else []
CLEAN = list(cases("clean", APIS)) if SHARED.is_dir() else []
OF_REPLIES = [case for case in FAULTY if case.api in MODELS and case.where == "response"]
REWRITTEN = [
    case for case in OF_REPLIES if case.fix and "framing" not in case.fix and traits(case.api).calls_at is not None
]


def judge(records: Sequence[Record]) -> tuple[Finding, ...]:
    """Return the findings on the last of several exchanges."""
    engine = Engine(REGISTRY.rules)
    found: tuple[Finding, ...] = ()
    for record in records:
        exchange = replay(record)
        found = engine.check(exchange) if exchange is not None else ()
    return found


def mended(records: Sequence[Record]) -> bytes | None:
    """The request of the last of some exchanges, repaired."""
    engine = Engine(REGISTRY.rules)
    for record in records[:-1]:
        if (exchange := replay(record)) is not None:
            engine.check(exchange)
    exchange, body = replay(records[-1]), records[-1].request_body
    if exchange is None or body is None:
        return body
    return mend_request(exchange, body, REGISTRY.rules, engine.ledger, REQUESTS).body


@in_batches("case", FAULTY, ids=lambda case: case.id)
def test_a_labelled_fault_is_found_alone(case: Case) -> None:
    found = judge(case.records)
    assert case.kind in {finding.name for finding in found}
    assert not [one for one in found if one.name not in {case.kind} | case.also and one.severity != "info"]


@in_batches("case", CLEAN, ids=lambda case: case.id, size=20)
def test_a_look_alike_is_left_alone(case: Case) -> None:
    assert judge(case.records) == ()
    assert mended(case.records) is case.records[-1].request_body
    if case.api in MODELS:
        result = run(list(case.records))
        assert (result.delivered, result.repairs) == (case.records[-1].response_body or b"", ())


@in_batches("case", REWRITTEN, ids=lambda case: case.id, size=20)
def test_a_labelled_fault_is_repaired_as_labelled(case: Case) -> None:
    result, wanted = run(list(case.records)), case.fix
    assert wanted is not None
    assert not result.faults
    choice = some(result.after.reply).choices[0]
    assert [{"name": call.name, "arguments": call.arguments.value} for call in choice.calls] == [
        {name: call[name] for name in ("name", "arguments")} for call in wanted["tool_calls"]
    ]
    assert (choice.text.strip() or None) == wanted["content"]
    assert wanted["finish_reason"] in (None, choice.finish_reason)
    assert choice.reasoning.strip() == wanted.get("reasoning", choice.reasoning.strip())
    ids = [call.id for call in choice.calls]
    assert not traits(result.after.api).has_call_ids or (all(ids) and len(set(ids)) == len(ids))
    again = dataclasses.replace(case.records[-1], response_body=result.delivered)
    assert run([*case.records[:-1], again]).delivered == result.delivered


@in_batches("case", OF_REPLIES, ids=lambda case: case.id, size=20)
def test_a_stream_is_repaired_the_same_at_every_cut(case: Case) -> None:
    whole = run(list(case.records))
    for places in list(cuts(len(case.records[-1].response_body or b"")))[-(14 if is_complete() else 2) :]:
        assert run(list(case.records), cuts=places).delivered == whole.delivered


def test_recordings_are_read_without_loss_and_only_real_anomalies_are_blamed_and_changed() -> None:
    labels, wrong, count = traffic_labels(), [], 0
    for _, record in some_traffic(APIS):
        count += 1
        exchange = replay(record)
        if exchange is None and record.url.startswith(OLD):
            continue
        assert exchange is not None, (record.id, record.url)
        assert exchange.request is not None
        assert exchange.reply is not None or not record.response_body, record.id
        sniffer = Sniffer({})
        frames = [*sniffer.feed(record.response_body or b""), *sniffer.close()]
        assert b"".join(frame.raw for frame in frames) == (record.response_body or b""), record.id
        if labels.get(record.id, {}).get("verdict") == "real anomaly" or record.id in RIGHTLY:
            continue
        wrong += [
            (record.id, finding.name, finding.message) for finding in judge([record]) if finding.severity != "info"
        ]
        if exchange.api in MODELS:
            result = run(record)
            assert result.faults == (), record.id
            wrong += [(record.id, repair.name, repair.title) for repair in result.repairs if result.changed]
    assert count > 150
    assert wrong == []


class _Anew:
    """Has every frame written anew from its events."""

    phase = 3
    held: int | None = None

    def push(self, event: Event) -> Iterable[Event]:
        return [event if isinstance(event, (Other, StreamViolation)) else event._replace()]

    def release(self) -> Iterable[Event]:
        return []


class _AnewRule(Rule):
    code = "XX902"
    name = "written-anew"
    severity = "info"
    layer = "model"

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        return _Anew()


def test_recordings_that_are_written_anew_say_the_same() -> None:
    count = 0
    for _, record in some_traffic(MODELS):
        if replay(record) is None:
            continue
        result = run(record, [_AnewRule()])
        before, after = result.before.reply, result.after.reply
        assert (before is None) == (after is None), record.id
        if before is None or after is None:
            continue
        count += 1
        assert _all_that_is_said(before) == _all_that_is_said(after), record.id
        assert [fault.kind for fault in after.faults] in ([], [fault.kind for fault in before.faults]), record.id
    assert count > 150


def _all_that_is_said(reply: Reply) -> tuple[Any, ...]:
    parts = [
        (
            choice.index,
            choice.finish_reason,
            type(part),
            part.pointer,
            getattr(part, "text", None),
            getattr(part, "id", None),
        )
        for choice in reply.choices
        for part in choice.parts
    ]
    calls = [(call.name, call.arguments.text, call.form) for choice in reply.choices for call in choice.calls]
    return reply.id, reply.model, reply.usage, reply.error, reply.terminated, parts, calls
