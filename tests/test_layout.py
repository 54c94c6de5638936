"""The house: what stands at the top, which way imports point, what a module may weigh."""

from __future__ import annotations

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "wirelint"

TOP = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "addons",
    "captures",
    "compose.yaml",
    "docs",
    "mkdocs.yml",
    "pyproject.toml",
    "rules",
    "tests",
    "wirelint",
}
"""What git tracks at the top, hidden files aside."""

# Imports point from a later row to an earlier one, or stay within a row.
ROWS = (
    {"timing", "jsonvalues", "lexicon", "tables"},
    {"model"},
    {"events"},
    {"wire"},
    {"apis", "dialects"},
    {"text", "claims", "arguments", "history", "state", "fix", "policy", "prices"},
    {"rule"},
    {"fixes", "guard"},
    {"registry"},
    {"settings"},
    {"engine"},
    {"rewrite"},
    {"capture"},
    {"view"},
    {"addon", "mock", "testing", "launch"},
    {"cli", "__main__", "pytest_plugin"},
)  # fmt: skip
MITMPROXY = {"wirelint/addon", "wirelint/capture/readers/flows.py", "wirelint/capture/writers/flows.py"}
FREE_OF_RICH = {name for row in ROWS[:13] for name in row}


_DOCSTRING = re.compile(r'(?:#.*\n|\n)*r?"""\S')


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _home(module: Path) -> str:
    """The name in ROWS of the part of the package that a module belongs to."""
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def _text(module: Path) -> str:
    return module.read_text(encoding="utf-8")


@functools.cache
def _imports(module: Path) -> list[str]:
    """Modules that a module imports, by their dotted names. A type checker's imports do not count."""
    text = re.sub(r"(?m)^if TYPE_CHECKING:\n(?:(?: .*)?\n)*", "", _text(module))
    names = [
        name for pair in re.findall(r"(?m)^ *(?:from (\S+) import\b|import (\S.*))", text) for name in pair if name
    ]
    assert not any(name.startswith(".") for name in names), f"{module}: imports are absolute"
    return [part.split()[0] for name in names for part in name.split(",")]


def test_the_top_level_says_it_all() -> None:
    seen = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    made = {"dist", "build", "site", "__pycache__"} | {path.name for path in ROOT.glob("*.egg-info")}
    assert seen - made == TOP


def test_every_part_has_its_row() -> None:
    parts = {_home(module) for module in _modules()} - {"__init__"}
    assert parts == set().union(*ROWS)


def test_imports_point_one_way() -> None:
    for module in _modules():
        home = _home(module)
        if home == "__init__":
            continue
        allowed = set().union(*ROWS[: next(n for n, row in enumerate(ROWS) if home in row) + 1])
        for name in _imports(module):
            parts = name.split(".")
            if parts[0] == "wirelint" and len(parts) > 1:
                assert parts[1] in allowed, f"{module.relative_to(ROOT)} must not import {name}"


def test_mitmproxy_and_rich_stay_in_their_places() -> None:
    for module in _modules():
        where = module.relative_to(ROOT).as_posix()
        for name in _imports(module):
            if name.split(".")[0] == "mitmproxy":
                assert any(where.startswith(place) for place in MITMPROXY), f"{where} imports {name}"
            if name.split(".")[0] == "rich":
                assert _home(module) not in FREE_OF_RICH, f"{where} imports {name}"


def test_rules_import_little() -> None:
    allowed = set().union(*ROWS[:8])
    for rule in (ROOT / "rules").glob("*.py"):
        for name in _imports(rule):
            parts = name.split(".")
            assert parts[0] != "mitmproxy", rule.name
            assert parts[0] != "wirelint" or parts[1] in allowed, f"{rule.name} must not import {name}"


def test_every_module_has_a_docstring_and_at_most_800_lines() -> None:
    assert [module for module in _modules() if not _DOCSTRING.match(_text(module))] == [], "no docstring"
    assert [module for module in _modules() if len(_text(module).splitlines()) > 800] == []


def test_nothing_is_left_open() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "Not" + "ImplementedError", "X" + "XX")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("wirelint", "rules", "addons", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert found == []
