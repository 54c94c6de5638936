"""Requests of whole corpora: what is right keeps every byte, what is wrong is mended as its label says, and once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import shared
from tests.build import REGISTRY, as_record, read
from tests.rules.case import expand, fires, in_form, silent
from tests.selection import in_batches, rotated, sampled
from wirelint.apis import APIS
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.fix import Edit, FixPolicy
from wirelint.model import Exchange
from wirelint.rewrite.edits import apply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Rule
from wirelint.text.pointers import at

UNSAFE = FixPolicy("unsafe")
FIXABLE = FixPolicy("unsafe", lambda code: code != "ST605")
NAMES = tuple(api.name for api in APIS)
RULES = [rule for rule in REGISTRY.rules if type(rule).fix_request is not Rule.fix_request]
NEEDS_SHARED = pytest.mark.skipif(not shared.SHARED.is_dir(), reason="no shared cases beside this checkout")


def _judged(records: Sequence[Mapping[str, Any]]) -> tuple[Engine, Exchange, bytes]:
    engine = Engine(REGISTRY.rules)
    for number, record in enumerate(records[:-1], 1):
        engine.check(read(record, number))
    return engine, engine.ledger.place(read(records[-1], len(records))), as_record(records[-1]).request_body or b""


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_all_rules_together_leave_nothing_to_do(rule: Rule) -> None:
    well = [(id_, case.case, case.forms) for id_, _, case in silent([rule])]
    wrong = [(id_, case.case, case.forms) for id_, _, case in fires([rule])]
    for id_, case, every in sampled([*well, *wrong], 14) if rule in RULES else sampled(well, 4):
        forms = [form for form in every if not form[1]]
        for label, records in expand(case, rotated(forms, id_)):
            with in_form(f"{id_} {label}"):
                _leaves_nothing_to_do(records)


def _leaves_nothing_to_do(records: Sequence[Mapping[str, Any]]) -> None:
    engine, exchange, body = _judged(records)
    made = mend_request(exchange, body, REGISTRY.rules, engine.ledger, FIXABLE)
    mended = dataclasses.replace(exchange, request=made.request)
    assert mend_request(mended, made.body, REGISTRY.rules, engine.ledger, FIXABLE).body is made.body
    offered = [
        one for one in engine.judge(exchange) if one.side == "request" and one.fix is not None and one.code != "ST605"
    ]
    assert (made.body is body) == (not offered)


ROOT = Path(__file__).resolve().parents[2]
CLEAN = sorted((ROOT / "captures" / "clean").glob("*.jsonl"))


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_the_clean_corpus_keeps_every_byte(path: Path) -> None:
    engine = Engine(REGISTRY.rules)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        record = as_record(json.loads(line), number)
        exchange = replay(record)
        if exchange is not None and record.request_body is not None:
            permit = FixPolicy("unsafe", clean_history=True)
            made = mend_request(exchange, record.request_body, REGISTRY.rules, engine.ledger, permit)
            assert made.body is record.request_body, record.id
            engine.check(exchange)


# --- the shared cases and recordings ----------------------------------------------------------------------------------


def _fixed_cases() -> list[Any]:
    if not shared.SHARED.is_dir():
        return []
    names = {rule.name for rule in RULES}
    return [
        pytest.param(case, id=case.id)
        for case in shared.cases("anomalies", NAMES)
        if case.where == "request" and case.fix and case.kind in names
    ]


def _edits(fix: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[Edit]:
    """What a label says: values set (None: removed), places dropped, a text replaced within a field."""
    for one in fix.get("set", ()):
        yield Edit("remove" if one["value"] is None else "replace", one["path"], one["value"])
    yield from (Edit("remove", pointer) for pointer in fix.get("drop", ()))
    if added := fix.get("append"):
        yield Edit("replace", added["field"], str(at(body, added["field"])) + added["text"])
    if replaced := fix.get("replace"):
        field = replaced["field"]
        yield Edit("replace", field, str(at(body, field)).replace(replaced["old"], replaced["new"]))


@NEEDS_SHARED
@in_batches("case", _fixed_cases())
def test_a_labelled_request_is_repaired_as_labelled(case: Any) -> None:
    engine = Engine(REGISTRY.rules)
    for prior in case.records[:-1]:
        exchange = replay(prior)
        if exchange is not None:
            engine.check(exchange)
    exchange, body = replay(case.records[-1]), case.records[-1].request_body
    assert exchange is not None
    wanted = apply(body, list(_edits(case.fix, json.loads(body))))
    assert mend_request(exchange, body, REGISTRY.select([case.kind]), engine.ledger, UNSAFE).body == wanted
    made = json.loads(mend_request(exchange, body, REGISTRY.rules, engine.ledger, UNSAFE).body)
    if not case.also:
        assert made == json.loads(wanted)
