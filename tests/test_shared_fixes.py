"""Repairs against the labelled cases and recordings that may lie beside a checkout; skipped where they do not."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import wirelint.apis
from tests.build import REGISTRY
from tests.cuts import cuts
from tests.fixes.drive import UNSAFE, run
from tests.shared import SHARED, cases, some_traffic, traffic_labels
from wirelint.apis import channel_of
from wirelint.apis.traits import traits
from wirelint.capture.record import Record
from wirelint.events import Event, Other, StreamViolation
from wirelint.fix import RewriteContext, Rewriter
from wirelint.model import Reply
from wirelint.rule import Rule

pytestmark = pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason="no ../shared beside this checkout")

APIS = tuple(api.name for api in wirelint.apis.APIS if channel_of(api.name) == "model")
NAMES = {rule.name for rule in REGISTRY.rules}
RIGHTLY = {"real-3ab520630ea519f6": "a blank stands before its first event, which strict clients lose for it"}
"""Recordings that are changed though no label calls them an anomaly."""


def _wanted() -> list[Any]:
    if not (SHARED / "cases").is_dir():
        return []
    found = []
    with (SHARED / "cases" / "anomalies.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            expect = case["expect"]
            if (
                case["api"] not in APIS
                or traits(case["api"]).calls_at is None
                or expect.get("where") != "response"
                or case["kind"] not in NAMES
            ):
                continue
            if expect.get("fix") and "framing" not in expect["fix"]:
                found.append(pytest.param(case["id"], expect["fix"], id=case["id"]))
    return found


CASES = {case.id: case for case in cases("anomalies", APIS)} if (SHARED / "cases").is_dir() else {}


@pytest.mark.parametrize(("id_", "wanted"), _wanted())
def test_a_labelled_fault_is_repaired_as_labelled(id_: str, wanted: Mapping[str, Any]) -> None:
    result = run(list(CASES[id_].records))
    assert not result.faults
    assert result.after.reply is not None
    choice = result.after.reply.choices[0]
    assert [(call.name, call.arguments.value) for call in choice.calls] == [
        (call["name"], call["arguments"]) for call in wanted["tool_calls"]
    ]
    assert (choice.text.strip() or None) == wanted["content"]
    assert wanted["finish_reason"] in (None, choice.finish_reason)
    if "reasoning" in wanted:
        assert choice.reasoning.strip() == wanted["reasoning"]
    ids = [call.id for call in choice.calls]
    assert not traits(result.after.api).call_ids or (all(ids) and len(set(ids)) == len(ids))
    again = run([*CASES[id_].records[:-1], _with_body(CASES[id_].records[-1], result.delivered)])
    assert again.delivered == result.delivered


@pytest.mark.parametrize("id_", [id_ for id_, case in CASES.items() if case.where == "response"])
def test_a_repaired_stream_is_that_of_every_cut(id_: str) -> None:
    records = list(CASES[id_].records)
    whole = run(records)
    for places in list(cuts(len(records[-1].response_body or b"")))[-14:]:
        assert run(records, cuts=places).delivered == whole.delivered


def test_clean_cases_leave_byte_for_byte() -> None:
    for case in cases("clean", APIS):
        result = run(list(case.records), permit=UNSAFE)
        assert result.delivered == (case.records[-1].response_body or b""), case.id
        assert result.repairs == (), case.id


def test_recordings_leave_byte_for_byte_unless_they_are_labelled() -> None:
    labels = traffic_labels()
    changed = []
    for _, record in some_traffic(APIS):
        try:
            result = run(record, permit=UNSAFE)
        except AssertionError:
            continue  # no request, or none that is understood
        assert result.faults == (), record.id
        labelled = labels.get(record.id, {}).get("verdict") == "real anomaly"
        if result.changed and not labelled and record.id not in RIGHTLY:
            changed.append((record.id, [repair.name for repair in result.repairs]))
    assert changed == []


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
    for _, record in some_traffic(APIS):
        try:
            result = run(record, [_AnewRule()])
        except AssertionError:
            continue  # no request, or none that is understood
        before, after = result.before.reply, result.after.reply
        assert (before is None) == (after is None), record.id
        if before is None or after is None:
            continue
        count += 1
        assert _all_that_is_said(before) == _all_that_is_said(after), record.id
        assert [fault.kind for fault in after.faults] in ([], [fault.kind for fault in before.faults]), record.id
    assert count > 300


def _all_that_is_said(reply: Reply) -> tuple[Any, ...]:
    return reply.id, reply.model, reply.usage, reply.error, reply.terminated, [
        (
            choice.index,
            choice.finish_reason,
            [
                (type(part), part.pointer, getattr(part, "text", None), getattr(part, "id", None))
                for part in choice.parts
            ],
            [(call.name, call.arguments.text, call.form) for call in choice.calls],
        )
        for choice in reply.choices
    ]  # fmt: skip


def _with_body(record: Record, body: bytes) -> Record:
    return dataclasses.replace(record, response_body=body)
