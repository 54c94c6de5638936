"""The other commands: manuals, lists, paths, one exchange, the scaffold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.build import REGISTRY
from tests.cli.test_check import CUT, write
from tests.command import Wirelint
from tests.selection import sampled
from wirelint.registry import Registry


def test_rules_lists_them_all(wirelint: Wirelint) -> None:
    listed = wirelint("rules", columns=160).out
    assert all(rule.name in listed and rule.code in listed for rule in REGISTRY.rules)
    rows = json.loads(wirelint("rules", "--output-format", "json").out)
    assert [row["code"] for row in rows] == [rule.code for rule in REGISTRY.rules]


@pytest.mark.parametrize("rule", sampled(REGISTRY.rules), ids=lambda rule: rule.name)
def test_the_manual_of_a_rule(wirelint: Wirelint, rule: object) -> None:
    name, code = rule.name, rule.code  # type: ignore[attr-defined]
    by_name, by_code = wirelint("rule", name), wirelint("rule", code.lower())
    assert by_name.out == by_code.out
    assert by_name.status == 0
    for words in (code, "Why is this bad?", "Fires on", "Silent on", "nothing found"):
        assert words in by_name.out
    assert wirelint("rule", "--markdown", name).out.startswith(f"# {name} ({code})")


@pytest.mark.parametrize("what", ["addon", "rules"])
def test_where_names_a_path_that_exists(wirelint: Wirelint, what: str) -> None:
    assert Path(wirelint("where", what).out.strip()).exists()


def test_show_puts_findings_in_the_margin(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl", {**CUT, "id": "first"}, {**CUT, "id": "second"})
    assert all(id_ in wirelint("show", path).out for id_ in ("first", "second"))
    out = wirelint("show", path, "second").out
    assert any(line.startswith("ST604") and "Mercury" in line for line in out.splitlines())
    assert wirelint("show", "sec", "--captures", tmp_path).out == out


def test_new_rule_writes_a_working_draft(wirelint: Wirelint, tmp_path: Path) -> None:
    ran = wirelint("new-rule", "XX901", "odd-reply", "--severity", "info", "--folder", tmp_path / "mine")
    assert ran.status == 0
    (rule,) = Registry.load([tmp_path / "mine"]).select(["XX901"])
    assert (rule.name, rule.severity) == ("odd-reply", "info")
    again = wirelint("new-rule", "XX901", "odd-reply", "--folder", tmp_path / "mine")
    assert again.status == 2
    assert "nothing was overwritten" in again.err


def test_the_generated_pages_are_fresh(wirelint: Wirelint) -> None:
    ran = wirelint("docs", "--check")
    assert ran.out == ""
    assert ran.status == 0
