"""One harness for all rules: manual, examples, must-fire and must-not-fire cases, and the same findings for every cut."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.build import REGISTRY, lint
from tests.cuts import findings_at_cuts
from tests.rules.case import Fires, Silent, expand
from wirelint.registry import shipped, summary
from wirelint.rule import Finding, Rule

RULES = {rule.name: rule for rule in REGISTRY.rules}


def _module(rule: Rule) -> ModuleType:
    return importlib.import_module(f"tests.rules.{rule.name.replace('-', '_')}")


def _runs(kind: str) -> list[Any]:
    runs = []
    for rule in REGISTRY.rules:
        for id_, case in getattr(_module(rule), kind).items():
            wrapped = case if isinstance(case, Fires | Silent) else (Fires if kind == "FIRES" else Silent)(case)
            for label, records in expand(wrapped.case, wrapped.forms):
                runs.append(pytest.param(rule, wrapped, records, id=f"{rule.name}-{id_}{' ' + label if label else ''}"))
    return runs


def _found(rule: Rule, records: list[Mapping[str, Any]]) -> list[Finding]:
    return [finding for finding in lint(records, [rule.name]) if finding.code in (rule.code, "IN000")]


@pytest.mark.parametrize(("rule", "expected", "records"), _runs("FIRES"))
def test_must_fire(rule: Rule, expected: Fires, records: list[Mapping[str, Any]]) -> None:
    found = _found(rule, records)
    assert [finding.name for finding in found] == [rule.name] * expected.count, found
    for finding in found:
        assert expected.says in finding.message, finding
        assert expected.pointer in (None, finding.pointer), finding
        assert expected.severity in (None, finding.severity), finding
        assert expected.layer in (None, finding.layer), finding
        assert expected.fix in (None, finding.fix.safety if finding.fix else "none"), finding
        assert finding.message
        assert "\n" not in finding.message


@pytest.mark.parametrize(("rule", "expected", "records"), _runs("SILENT"))
def test_must_not_fire(rule: Rule, expected: Silent, records: list[Mapping[str, Any]]) -> None:
    assert _found(rule, records) == []


@pytest.mark.parametrize(("rule", "expected", "records"), _runs("FIRES"))
def test_every_cut_gives_the_same_findings(rule: Rule, expected: Fires, records: list[Mapping[str, Any]]) -> None:
    whole = _found(rule, records)
    for cut, findings in findings_at_cuts(records, rule.name):
        assert findings == whole, cut


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_manual_and_examples(rule: Rule) -> None:
    manual = inspect.getdoc(rule) or ""
    assert 10 < len(summary(rule)) < 100
    assert manual.count("\n## ") >= 5
    assert [finding.name for finding in lint(_passed(rule.fires), [rule.name])], "the manual's example does not fire"
    assert lint(_passed(rule.silent), [rule.name]) == (), "the manual's counterexample fires"


def _passed(example: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """An example behind the records that pass before it."""
    return [*example.get("prior", ()), example]


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_enough_cases_on_both_sides(rule: Rule) -> None:
    module = _module(rule)
    assert len(module.FIRES) >= 3
    assert len(module.SILENT) >= 5


def test_the_directory_is_the_registry() -> None:
    files = {path.stem for path in shipped("rules").glob("[a-z]*.py")}
    assert files == {f"{rule.code.lower()}_{rule.name.replace('-', '_')}" for rule in REGISTRY.rules}
