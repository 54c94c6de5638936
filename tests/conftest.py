"""Configuration of the test suite: the switch `--all` and the profiles of the property tests.

Property tests try the same examples every time, so that a red run means a change, not a die: `ci` is the default, `full`
goes with `--all`, and `pytest --hypothesis-profile=explore` looks for new ones.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import selection

_VECTOR = re.compile(
    r"(?:test_shared_vectors\.py::test_agreement"
    r"|test_shared_reasoning\.py::test_(?:thoughts_are_found|tokens_are_found|what_stays_text_is_left_alone))"
    r"\[(?P<id>.*?)(?:-(?:openai\.chat|anthropic\.messages)[\w-]*)?\]\Z"
)
_DIALECTS = Path(__file__).parent / "dialects"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="Run every test in every form (see tests/selection.py)")


def pytest_configure(config: pytest.Config) -> None:
    selection.select_everything(config.getoption("--all"))
    if selection.is_complete() and config.getoption("--hypothesis-profile") is None:
        settings.load_profile("full")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """For `-n auto` one more than there are processors: tests that talk with processes wait much of their time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `--all`, deselect tests that carry the marker `complete`."""
    if selection.is_complete():
        return
    left_out = [item for item in items if item.get_closest_marker("complete")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("complete")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many of the vectors beside the repository agree: for each class of expectation, per dialect."""
    shared = _DIALECTS.parents[1] / ".." / "shared" / "vectors.jsonl"
    passed = {
        match["id"] for report in terminalreporter.stats.get("passed", []) if (match := _VECTOR.search(report.nodeid))
    }
    if not passed or not shared.exists():
        return
    listed = [json.loads(line) for line in (_DIALECTS / "shared_differences.jsonl").read_text().splitlines()]
    passed -= {f"{row['dialect']}-{row['case']}" for row in listed}
    wanted, agreed = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    for vector in map(json.loads, shared.read_text(encoding="utf-8").splitlines()):
        there = f"{vector['dialect']}-{vector['case']}" in passed
        for group in ("", vector["dialect"]):
            wanted[group][vector["expect"]] += 1
            agreed[group][vector["expect"]] += there
    terminalreporter.section("shared vectors that agree")
    for group in sorted(wanted):
        if group:
            terminalreporter.write_line(f"{group}: {_counts(agreed[group], wanted[group])}")
    terminalreporter.write_line(f"all: {_counts(agreed[''], wanted[''])}")


def _counts(agreed: Counter[str], wanted: Counter[str]) -> str:
    return ", ".join(f"{expect} {agreed[expect]}/{count}" for expect, count in sorted(wanted.items()))


_STEADY = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _STEADY, max_examples=25)
settings.register_profile("full", _STEADY, max_examples=300)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("ci")
