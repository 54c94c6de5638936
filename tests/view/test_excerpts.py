"""Findings as compilers print them: the source around the evidence, carets beneath."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from tests.build import REGISTRY, as_record, judged
from tests.rules.case import read, read_item
from tests.tables import rows, tables
from wirelint.capture.offline import Checked, check
from wirelint.view.bodies import Evidence, Source, excerpt_lines, windowed

TABLES = read(tables(__file__))


def found_in(case: dict[str, Any], rule: str) -> Checked:
    record: Any = read_item(dict(case))
    return judged(record, rule)


def shown(found: Checked, width: int = 60) -> list[str]:
    evidence = Source(found).evidence(found.findings[0])
    return [line.plain.rstrip() for line in excerpt_lines(evidence, width, "red")]


@rows(TABLES["cases"])
def test_what_a_finding_shows(case: dict[str, Any], rule: str, lines: list[str]) -> None:
    assert shown(found_in(case, rule)) == lines


@pytest.mark.parametrize("width", [30, 44, 80, 160])
@pytest.mark.parametrize("name", TABLES["cases"])
def test_it_fits_and_the_carets_stand_under_the_evidence(name: str, width: int) -> None:
    case, rule, _ = TABLES["cases"][name]
    found = found_in(case, rule)
    lines = shown(found, width)
    assert max(map(len, lines)) <= max(width, 32)
    for evidence in Source(found).evidence(found.findings[0]):
        window = windowed(evidence, width)
        under = window.text[window.start : window.start + window.size]
        assert evidence.text[evidence.start : evidence.end].startswith(under.rstrip("…").replace("↵", "\n"))


@rows(TABLES["windows"])
def test_a_window_is_cut_around_the_evidence(source: tuple[str, int, int], room: int, window: list[Any]) -> None:
    made = windowed(Evidence(*source), room)
    assert list(made) == window
    assert cell_len(made.text) <= room


def test_every_finding_of_the_examples_can_be_shown() -> None:
    """Of every rule, whatever its example is: nothing raises, and nothing is wider than the terminal."""
    for rule in REGISTRY.rules:
        prior = rule.example.fires.get("prior", ())
        records = [as_record(dict(one)) for one in (*prior, rule.example.fires)]  # type: ignore[misc]
        for item in check(records, [rule]):
            assert isinstance(item, Checked)
            source = Source(item)
            for finding in item.findings:
                for line in excerpt_lines(source.evidence(finding), 60, "red"):
                    assert cell_len(line.plain) <= 60, (rule.name, line.plain)
