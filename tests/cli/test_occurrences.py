"""A fault that a client sends again with every turn is told once, in every format; `--all-occurrences` tells each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.test_check import write
from tests.command import Wirelint, read_lines
from tests.state.test_issues import mangled

COUNTS: dict[str, Callable[[str], object]] = {
    "concise": lambda out: out.count("mangled-id"),
    "full": lambda out: out.count("ID301"),
    "github": lambda out: out.count("::warning"),
    "gitlab": lambda out: len({issue["fingerprint"] for issue in json.loads(out)}),
    "json": lambda out: len(json.loads(out)),
    "jsonl": lambda out: len(out.splitlines()),
    "junit": lambda out: ElementTree.fromstring(out).get("failures"),
    "sarif": lambda out: len(json.loads(out)["runs"][0]["results"]),
}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Four turns. The three calls come back mangled: 1 + 2 + 3 findings on three faults."""
    return write(tmp_path / "session.jsonl", *mangled(4))


@pytest.mark.parametrize("output_format", COUNTS)
def test_each_fault_is_told_once(wirelint: Wirelint, session: Path, output_format: str) -> None:
    ran = wirelint("check", "--select=ID301", "--output-format", output_format, session)
    assert ran.status == 1
    grouped = {"full": "2", "github": "1", "gitlab": "1", "sarif": "1"}  # `full` has a list at its end
    expected = grouped.get(output_format, "3")
    assert str(COUNTS[output_format](ran.out)) == expected
    assert expected == "3" or "3 exchanges, first e1, last e3" in ran.out or '"occurrenceCount":3' in ran.out
    assert "3 warnings (3 more known from earlier turns; --all-occurrences shows them)" in ran.err
    every = wirelint("check", "--select=ID301", "--all-occurrences", "--output-format", output_format, session)
    assert every.status == 1
    assert str(COUNTS[output_format](every.out)) == ("3" if output_format == "junit" else "6")
    assert "6 warnings" in every.err


def test_programs_get_the_totals(wirelint: Wirelint, session: Path) -> None:
    found = json.loads(wirelint("check", "--select=ID301", "--output-format=json", session).out)
    told = [(one["exchange"], one["first_seen"], one["last_seen"], one["count"]) for one in found]
    assert told == [("e1", "e1", "e3", 3), ("e2", "e2", "e3", 2), ("e3", "e3", "e3", 1)]
    assert len({one["issue"] for one in found}) == 3
    assert len({one["fingerprint"] for one in found}) == 1, "ids are no part of it: they change from run to run"


def test_show_tells_how_often_a_fault_was_found_again(wirelint: Wirelint, session: Path) -> None:
    first = wirelint("show", session, "e1").out
    assert "first seen here; 2 later turns, the last in e3" in first
    last = wirelint("show", session, "e3").out
    assert "+ 2 known from earlier turns" in last
    assert last.count("mangled-id") == 1
    every = wirelint("show", session, "e3", "--all-occurrences").out
    assert every.count("mangled-id") == 3
    assert "first seen in e1; 2 later turns" in every


def test_a_repair_is_recorded_on_every_turn(wirelint: Wirelint, session: Path, tmp_path: Path) -> None:
    wirelint("fix", session, "--select=ID301", "-o", tmp_path / "fixed.jsonl")
    lines = read_lines(tmp_path / "fixed.jsonl")
    assert [len(line.get("fixes", ())) for line in lines] == [0, 1, 2, 3]
