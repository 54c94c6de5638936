"""The grammar of scenarios: what is read, and which word an error names."""

from __future__ import annotations

import pytest

from tests.tables import rows, tables
from wirelint.mock.faults import resolve
from wirelint.mock.plan import Options
from wirelint.mock.scenario import ScenarioError, parse_scenario

GOOD: list[tuple[str, str | None, Options]] = [
    ("", None, Options()),
    ("healthy", None, Options()),
    ("xml-leak", "xml-leak", Options()),
    ("fault=xml-leak", "xml-leak", Options()),
    ("xml-leak+dialect=kimi_k2+chunk=7", "xml-leak", Options(dialect="kimi_k2", chunk=7)),
    (" xml-leak + place=reasoning + ", "xml-leak", Options(place="reasoning")),
    ("crlf+bom=1+comments=0", None, Options(crlf=True, bom=True)),
    ("stream-stall+seconds=0.5+pace=2", "stream-stall", Options(seconds=0.5, pace=2.0)),
    ("cut=0+content_length+calls=0", None, Options(cut=0, content_length=True, calls=0)),
    ("http-error+status=529", "http-error", Options(status=529)),
    ("encoding=zstd+model=a/b+azure+reasoning+refusal",
     None, Options(encoding="zstd", model="a/b", azure=True, reasoning=True, refusal=True)),
    ("concatenated-json+mode=differing", "concatenated-json", Options(mode="differing")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault", "options"), GOOD, ids=[text or "empty" for text, _, _ in GOOD])
def test_a_scenario_is_read_and_written_back(text: str, fault: str | None, options: Options) -> None:
    scenario = parse_scenario(text)
    resolve(scenario)
    assert (scenario.fault, scenario.options) == (fault, options)
    assert parse_scenario(scenario.text) == scenario
    assert parse_scenario(text.replace("+", ";"), separator=";") == scenario


@rows(tables(__file__)["bad"])
def test_a_wrong_scenario_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        resolve(parse_scenario(text))
    said = str(caught.value)
    assert said.startswith(message)
    assert said.isascii()
    assert "\n" not in said
    assert len(said) < 300
