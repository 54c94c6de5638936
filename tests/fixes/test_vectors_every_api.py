"""The vectors beside the repository, in every API with text and calls, whole and streamed.

A vector is the text of a reply. One of class `call` is found as leaked markup, and repaired the client has the calls that
it says; one of class `none`, `reasoning` or `control_token` is no leaked call. What a dialect of its own cannot tell is
listed with the vectors (`tests/dialects/shared_differences.jsonl`). Texts are cut into pieces of different sizes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import REGISTRY, Talk, User
from tests.dialects.test_shared_vectors import ALL, DIFFERENCES, Vector
from tests.fixes.drive import run
from tests.fixes.test_every_api import CALLING
from tests.selection import rotated

STEPS = (1, 3, 7, 16)
UNTOLD = {
    "fenced_json_call-prose_before_after": "a fence amid prose shows something; the rule takes it for a quotation",
    "fenced_json_call-stream_split": "the same",
}
"""What a dialect reads and the rule does not report."""
RULES = REGISTRY.select(["xml-leak"])
pytestmark = pytest.mark.skipif(not ALL, reason="no ../shared/vectors.jsonl beside this checkout")


def talk(vector: Vector, step: int) -> Talk:
    tools: dict[str, Any] = {tool.name: tool.schema or {"type": "object"} for tool in vector.tools}
    return Talk((User("Please go on."),), text=vector.text, tools=tools, step=step)


def vectors(api: str, *classes: str) -> list[tuple[int, Vector]]:
    """The vectors that are taken in an API, numbered."""
    chosen = [one for one in ALL if one.expect in classes and (one.dialect, one.case) not in DIFFERENCES]
    return [(number, one) for number, one in enumerate(chosen) if api in rotated(CALLING, name(one))]


def name(vector: Vector) -> str:
    return f"{vector.dialect}-{vector.case}"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CALLING)
def test_calls_are_made(api: str, streamed: bool) -> None:
    """The default run takes a vector in one API, another for each."""
    if api == "bedrock.converse":
        pytest.importorskip("botocore")
    missed: list[str] = []
    for number, vector in vectors(api, "call"):
        result = run(talk(vector, STEPS[number % len(STEPS)]).record(api, streamed), RULES)
        assert result.after.reply is not None
        assert not result.faults, (name(vector), result.faults)
        calls = [(call.name, call.arguments.value) for choice in result.after.reply.choices for call in choice.calls]
        wanted = [(call["name"], call["arguments"]) for call in _objects(vector.calls)]
        if not result.findings:
            missed.append(name(vector))
        elif _may_be_made(vector) and [one[0] for one in calls] != [one[0] for one in wanted]:
            missed.append(f"{name(vector)}: {json.dumps(calls, ensure_ascii=False, default=str)[:120]}")
    assert sorted(missed) == sorted(UNTOLD.keys() & {name(vector) for _, vector in vectors(api, "call")})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", CALLING)
def test_text_without_calls_stays(api: str, streamed: bool) -> None:
    if api == "bedrock.converse":
        pytest.importorskip("botocore")
    changed: list[str] = []
    for number, vector in vectors(api, "none", "reasoning", "control_token"):
        record = talk(vector, STEPS[number % len(STEPS)]).record(api, streamed)
        result = run(record, RULES)
        assert not result.faults, (name(vector), result.faults)
        if result.repairs or result.changed:
            changed.append(name(vector))
    assert changed == []


def _objects(calls: list[Any]) -> list[dict[str, Any]]:
    return [call for call in calls if isinstance(call, dict)]


def _may_be_made(vector: Vector) -> bool:
    """Return True if all of its calls are of declared tools."""
    names = {tool.name for tool in vector.tools}
    return all(call["name"] in names for call in _objects(vector.calls))
