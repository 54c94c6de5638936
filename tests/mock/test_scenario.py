"""The grammar of scenarios: what is read, and which word an error names."""

from __future__ import annotations

from typing import Any

from tests.build import complaint
from tests.tables import rows, tables
from wirelint.mock.faults import resolve
from wirelint.mock.plan import Options
from wirelint.mock.scenario import ScenarioError, parse_scenario

TABLES = tables(__file__)


@rows(TABLES["good"])
def test_a_scenario_is_read_and_written_back(text: str, fault: str | None, options: dict[str, Any]) -> None:
    scenario = parse_scenario(text)
    resolve(scenario)
    assert (scenario.fault, scenario.options) == (fault, Options(**options))
    assert parse_scenario(scenario.text) == scenario
    assert parse_scenario(text.replace("+", ";"), separator=";") == scenario


@rows(TABLES["bad"])
def test_a_wrong_scenario_is_refused_in_one_line(text: str, message: str) -> None:
    said = complaint(ScenarioError, lambda: resolve(parse_scenario(text)))
    assert said.startswith(message)
    assert said.isascii()
    assert len(said) < 300
