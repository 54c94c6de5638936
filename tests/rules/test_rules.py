"""Tests of every rule: manual, example, cases that must fire and must not fire, equal findings at every cut."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from tests.build import REGISTRY, lint
from tests.cuts import findings_at_cuts
from tests.rules.case import Fires, cases, expand, fires, in_form, silent
from tests.selection import is_complete, rotated, sampled
from wirelint.registry import shipped, summary
from wirelint.rule import Finding, Rule


def _found(rule: Rule, records: list[Mapping[str, Any]]) -> list[Finding]:
    return [finding for finding in lint(records, [rule.name]) if finding.code in (rule.code, "IN000")]


EACH = pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
"""One test for all cases of a rule, so that the number of tests stays small; a failure names the case."""


@EACH
def test_must_fire_at_every_cut(rule: Rule) -> None:
    """In one form, whole; 2 cases byte by byte. With `--all` each form of each case, at other places too."""
    all_cases = [*fires([rule])]
    cut_cases = sampled([id_ for id_, _, _ in all_cases], 2)
    for id_, _, expected in all_cases:
        for label, records in expand(expected.case, rotated(expected.forms, id_)):
            with in_form(f"{id_}: {label}"):
                found = _found(rule, records)
                _check(rule, expected, found)
                cuts = findings_at_cuts(records, rule, only_bytes=not is_complete()) if id_ in cut_cases else ()
                for place, findings in cuts:
                    assert findings == found, place


def _check(rule: Rule, expected: Fires, found: list[Finding]) -> None:
    assert [finding.name for finding in found] == [rule.name] * expected.count, found
    for finding in found:
        assert expected.says in finding.message, finding
        assert expected.pointer in (None, finding.pointer), finding
        assert expected.severity in (None, finding.severity), finding
        assert expected.layer in (None, finding.layer), finding
        assert expected.fix in (None, finding.fix.safety if finding.fix else "none"), finding
        assert finding.message
        assert "\n" not in finding.message


@EACH
def test_must_not_fire(rule: Rule) -> None:
    for id_, _, expected in silent([rule]):
        for label, records in expand(expected.case, rotated(expected.forms, id_)):
            with in_form(f"{id_}: {label}"):
                assert _found(rule, records) == []


@EACH
def test_manual_examples_and_enough_cases_on_both_sides(rule: Rule) -> None:
    assert len(cases(rule)["fires"]) >= 3
    assert len(cases(rule)["silent"]) >= 5
    manual = inspect.getdoc(rule) or ""
    assert 10 < len(summary(rule)) < 100
    assert manual.count("\n## ") >= 5
    assert lint(_passed(rule.example.fires), [rule.name]), "the manual's example does not fire"
    assert lint(_passed(rule.example.silent), [rule.name]) == (), "the manual's counterexample fires"


def _passed(example: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """An example behind the records that pass before it."""
    return [*example.get("prior", ()), example]


def test_the_directory_is_the_registry() -> None:
    names = {f"{rule.code.lower()}_{rule.name.replace('-', '_')}" for rule in REGISTRY.rules}
    for suffix in ("py", "json"):
        assert {path.stem for path in shipped("rules").glob(f"[a-z]*.{suffix}")} == names
