"""Loading and selecting rules; a rule of a user's own that is wrong is told in one line."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest

from tests.build import REGISTRY, Talk, complaint, read
from tests.tables import rows, tables
from wirelint.engine import Engine
from wirelint.registry import Registry, RuleError
from wirelint.rule import Rule

TABLES = tables(__file__)
TEMPLATES = Path(__file__).parents[1] / "wirelint" / "cli" / "templates"


def draft(folder: Path, code: str = "XX901", name: str = "odd-reply", old: str = "", new: str = "") -> Path:
    """A rule made of the scaffold's template, with one thing changed."""
    snake = name.replace("-", "_")
    words = {
        "code": code, "name": name, "snake": snake, "title": "OddReply", "words": "oddness", "severity": "warning",
        "layer": "model",
    }  # fmt: skip
    text, cases = (
        Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(words) for name in ("rule.txt", "cases.txt")
    )
    assert not old or old in text
    path = folder / f"{code.lower()}_{snake}.py"
    path.with_suffix(".json").write_text(cases, encoding="utf-8")
    path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return path


def test_codes_and_names_are_unique_and_sorted() -> None:
    codes = [rule.code for rule in REGISTRY.rules]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in REGISTRY.rules}) == len(codes)


def test_outlines_describe_the_rules_and_import_none() -> None:
    """`wirelint rules` lists what the rule files say, without the engine and without mitmproxy."""
    outlines = Registry.load(outlines=True).rules

    def facts(rule: Rule) -> tuple[object, ...]:
        return rule.code, rule.name, rule.severity, rule.layer, inspect.getdoc(rule), rule.case_file

    assert [facts(outline) for outline in outlines] == [facts(rule) for rule in REGISTRY.rules]
    code = "import sys; from wirelint.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, "rules"], capture_output=True, text=True, check=True, timeout=60)
    table, _, modules = run.stdout.rstrip().rpartition("\n")
    assert REGISTRY.rules[-1].name in table
    assert {"wirelint.registry", "rich.console"} <= set(modules.split())
    assert not {"wirelint.engine", "wirelint.dialects", "rich.progress", "mitmproxy"} & set(modules.split())


@rows(TABLES["selectors"])
def test_selectors_choose_rules(select: list[str], ignore: list[str], there: list[str], gone: list[str]) -> None:
    names = {rule.name for rule in REGISTRY.select(select, ignore)}
    assert names.issuperset(there)
    assert names.isdisjoint(gone)


@rows(TABLES["unknown"])
def test_unknown_selectors_name_the_cure(selector: str, says: str) -> None:
    with pytest.raises(RuleError, match=says):
        REGISTRY.select([selector])


def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    draft(tmp_path)
    registry = Registry.load([tmp_path])
    found = Engine(registry.select(["XX"])).check(read(Talk(text="evidence of oddness").record("openai.chat", True)))
    assert [finding.code for finding in found] == ["XX901"]


@rows(TABLES["broken"])
def test_a_broken_rule_is_one_line_with_its_place(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = draft(tmp_path, old=old, new=new)
    message = complaint(RuleError, lambda: Registry.load([tmp_path]))
    assert message.startswith(str(path))
    assert says in message


@rows(TABLES["examples"])
def test_a_missing_or_broken_example_is_one_line_with_its_place(text: str | None, says: str, tmp_path: Path) -> None:
    path = draft(tmp_path).with_suffix(".json")
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert complaint(RuleError, lambda: Registry.load([tmp_path])).startswith(f"{path}{says}")


def test_taken_codes_missing_folders_and_wrong_file_names(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such folder"):
        Registry.load([tmp_path / "nowhere"])
    draft(tmp_path, code="ST604", name="odd-reply")
    with pytest.raises(RuleError, match="ST604 is already taken"):
        Registry.load([tmp_path])
    other = tmp_path / "other"
    other.mkdir()
    (other / "shouting.py").write_text("")
    with pytest.raises(RuleError, match="call it <code>"):
        Registry.load([other])


def test_a_rule_that_raises_stands_on_the_exchange_and_is_told_once(tmp_path: Path) -> None:
    line = "        if exchange.reply is None"
    draft(tmp_path, old=line, new=f"        raise KeyError('boom')\n{line}")
    rules = Registry.load([tmp_path]).select(["XX", "ST"])
    told: list[str] = []
    engine = Engine(rules, report=lambda name, error: told.append(f"{name} {error!r}"))
    for _ in range(3):
        found = engine.check(read(Talk(text="hello").record("openai.chat", False)))
        assert [(finding.code, finding.layer) for finding in found] == [("IN000", "wirelint")]
        assert "odd-reply" in found[0].message
    assert told == ["odd-reply KeyError('boom')"]
