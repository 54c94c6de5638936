"""Scenario files, shares, and a server inside a test."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.build import complaint
from tests.mock.client import make_body
from tests.tables import rows, tables
from wirelint.mock import ScenarioError, serve
from wirelint.mock.scenario import HEADER, load_script, read_script
from wirelint.mock.service import Service

PATH = "/v1/chat/completions"


def played(service: Service, number: int, **body: Any) -> tuple[str, str]:
    """(what was played, the text or the calls)."""
    asked = {**make_body("openai", stream=False), **body}
    answer = service.answer(number, "POST", PATH, {}, json.dumps(asked).encode())
    message = json.loads(b"".join(step for step in answer.steps if isinstance(step, bytes)))["choices"][0]["message"]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return dict(answer.headers)[HEADER], json.dumps(calls) if calls else str(message["content"])


SCRIPT = """
faults = ["think-leak"]
[[reply]]
when = { model = "kimi-*", text = "PARIS" }
fault = "xml-leak+dialect=kimi_k2"
times = 1
[[reply]]
when = { model = "kimi-*" }
calls = [{ name = "get_weather", arguments = { city = "Oslo" } }]
[[reply]]
when = { tools = false, stream = false }
text = "Exactly this."
"""


def test_a_scenario_file_decides_the_reply(tmp_path: Path) -> None:
    file = tmp_path / "script.toml"
    file.write_text(SCRIPT)
    service = Service.of(0, script=load_script(file))
    assert played(service, 1, model="kimi-k2")[0] == "xml-leak+dialect=kimi_k2"
    assert played(service, 2, model="kimi-k2") == (
        "healthy",
        json.dumps([{"name": "get_weather", "arguments": '{"city":"Oslo"}'}]),
    )
    assert played(service, 3, tools=[]) == ("healthy", "Exactly this.")
    assert played(service, 4)[0] == "think-leak"


@rows(tables(__file__)["wrong"])
def test_what_is_wrong_with_a_file(document: dict[str, Any], message: str) -> None:
    assert complaint(ScenarioError, lambda: read_script(document)).startswith(message)


def test_a_file_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("= 1")
    with pytest.raises(ScenarioError, match=r"x\.toml: not TOML"):
        load_script(tmp_path / "x.toml")
    with pytest.raises(ScenarioError, match="No such file"):
        load_script(tmp_path / "y.toml")


def test_faults_by_proportion() -> None:
    service = Service.of(3, faults=("xml-leak=20%", "think-leak=0.3", "empty-response"))
    counts = Counter(played(service, number)[0] for number in range(1, 401))
    assert counts.keys() == {"xml-leak", "think-leak", "empty-response"}
    assert 50 < counts["xml-leak"] < 110
    assert 85 < counts["think-leak"] < 155
    again = Service.of(3, faults=("xml-leak=20%", "think-leak=0.3", "empty-response"))
    assert [played(again, number) for number in range(1, 30)] == [played(service, number) for number in range(1, 30)]
    with pytest.raises(ScenarioError, match="more than 1"):
        Service.of(0, faults=("xml-leak=0.7", "think-leak=0.7"))


def test_serve_inside_a_test() -> None:
    with serve("xml-leak", scenario={"reply": [{"when": {"tools": False}, "text": "Hi."}]}, chunk=50) as vendor:
        said = []
        for tools in (True, False):
            body = json.dumps(make_body("openai", stream=False, tools=tools)).encode()
            request = urllib.request.Request(f"{vendor.openai}/chat/completions", body)
            with urllib.request.urlopen(request, timeout=10) as reply:
                said.append(json.load(reply)["choices"][0]["message"]["content"])
    assert "<invoke" in said[0]
    assert said[1] == "Hi."
    assert [one.scenario for one in vendor.exchanges] == ["xml-leak", "healthy"]
    assert vendor.environment["OPENAI_BASE_URL"] == vendor.openai == f"{vendor.url}/v1"
