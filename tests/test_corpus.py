"""Two corpora, written apart from the rules: traffic that only looks broken, and traffic with one labelled fault each.

`captures/clean/*.jsonl` is healthy; every rule stays silent on it, exchange by exchange and file by file (a file is one
ledger scope). Each line of `tests/corpus/anomalies.jsonl` is found by the rule of its `label`, and by no other rule that
is not in its `also`. `prior` holds exchanges that passed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.build import REGISTRY, as_record
from tests.command import read_lines
from tests.selection import in_batches, sampled
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.rule import Finding

ROOT = Path(__file__).resolve().parents[1]
CLEAN_FILES = sorted((ROOT / "captures" / "clean").glob("*.jsonl"))
ANOMALIES = ROOT / "tests" / "corpus" / "anomalies.jsonl"

KNOWN: Mapping[str, str] = {}
"""Exchange id → why rules and label differ, and which of them is right. An entry that no longer differs fails."""

Line = Mapping[str, Any]


def cases(lines: Iterable[Line]) -> list[Any]:
    marks = {id_: [pytest.mark.xfail(reason=why)] for id_, why in KNOWN.items()}
    return [pytest.param(line, id=line["id"], marks=marks.get(line["id"], [])) for line in lines]


def findings(engine: Engine, line: Line) -> tuple[Finding, ...]:
    exchange = replay(as_record(line))
    assert (exchange is None) == line.get("foreign", False), f"{line['id']}: not read as it should be"
    return () if exchange is None else engine.check(exchange)


def told(found: Iterable[Finding]) -> list[str]:
    return [
        f"{finding.name} ({finding.severity}): {finding.message}" for finding in found if finding.severity != "info"
    ]


CLEAN = [line for path in CLEAN_FILES for line in read_lines(path)]
FAULTY = read_lines(ANOMALIES)


@in_batches("line", sampled(cases(CLEAN), 120))
def test_healthy_exchange_is_silent(line: Line) -> None:
    assert told(findings(Engine(REGISTRY.rules), line)) == [], line["note"]


@pytest.mark.parametrize("path", CLEAN_FILES, ids=lambda path: path.stem)
def test_healthy_file_is_silent_as_one_scope(path: Path) -> None:
    engine = Engine(REGISTRY.rules)
    noisy = {line["id"]: told(findings(engine, line)) for line in read_lines(path) if line["id"] not in KNOWN}
    assert {id_: found for id_, found in noisy.items() if found} == {}


@in_batches("line", cases(FAULTY))
def test_labelled_fault_is_found_alone(line: Line) -> None:
    engine = Engine(REGISTRY.rules)
    for prior in line.get("prior", ()):
        findings(engine, {"id": f"{line['id']}/prior", **prior})
    found = findings(engine, line)
    assert line["label"] in {finding.name for finding in found}, f"missed: {line['note']}"
    allowed = {line["label"], *line["also"]}
    assert told(finding for finding in found if finding.name not in allowed) == [], line["note"]


def test_lines_are_told_apart() -> None:
    ids = [line["id"] for line in (*CLEAN, *FAULTY)]
    assert len(ids) == len(set(ids))
    assert KNOWN.keys() <= set(ids)


def test_labels_are_rules_and_every_rule_has_some() -> None:
    names = {rule.name for rule in REGISTRY.rules}
    labels = [line["label"] for line in FAULTY]
    assert set(labels) == names
    assert min(labels.count(name) for name in names) >= 6
