"""The vendor errs because of what it is sent, and wirelint helps because it changes just that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.selection import is_complete
from tests.tables import rows, tables
from wirelint.launch.demo.vendor import FAILED, ODDS, RUNS, FixingWire, Habit, Score, Task, Vendor, compare, play
from wirelint.registry import Registry

TABLES = tables(__file__)
"""Odds of mistakes, the others never happen."""
NEVER = dict.fromkeys(ODDS, 0.0)
REGISTRY = Registry.load()
USER = {"role": "user", "content": "Search my notes, one search each: “tide”, “quay”."}
TOOL = {"type": "function", "function": {"name": "search_notes", "parameters": {"type": "object"}}}


def say(odds: dict[str, float], *history: dict[str, Any]) -> dict[str, Any]:
    """The vendor's choice for a conversation."""
    body = {"model": "kimi-k2", "messages": [*history], "tools": [TOOL]}
    kind, reply = Vendor(0, NEVER | odds).answer(json.dumps(body).encode())
    assert kind == "application/json"
    choice: dict[str, Any] = json.loads(reply)["choices"][0]
    return choice


def called(id_: str, content: str = "", result: str = "2 notes") -> tuple[dict[str, Any], ...]:
    function = {"name": "search_notes", "arguments": '{"query": "tide", "limit": 5}'}
    call = {"id": id_, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id_, "content": result},
    )


def test_a_healthy_vendor_does_what_is_asked() -> None:
    choice = say({}, USER)
    call = choice["message"]["tool_calls"][0]
    assert (choice["finish_reason"], call["id"]) == ("tool_calls", "functions.search_notes:0")
    assert json.loads(call["function"]["arguments"]) == {"query": "tide", "limit": 5}
    second = say({}, USER, *called("functions.search_notes:0"))["message"]["tool_calls"][0]
    assert json.loads(second["function"]["arguments"])["query"] == "quay"
    again = say({}, USER, *called("functions.search_notes:0", result=f"{FAILED}no"))["message"]["tool_calls"][0]
    assert json.loads(again["function"]["arguments"])["query"] == "tide"


@rows(TABLES["causes"])
def test_what_is_sent_decides(odds: dict[str, float], id_: str, content: str) -> None:
    broken = say(odds, USER, *called(id_, content))
    assert (broken["finish_reason"], broken["message"].get("tool_calls")) == ("stop", None)
    sound = say(odds, USER, *called("functions.search_notes:0", ""))
    assert (sound["finish_reason"], len(sound["message"]["tool_calls"])) == ("tool_calls", 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@rows(TABLES["repairable"])
def test_one_mistake_alone(odds: dict[str, float], habit: Habit, stream: bool) -> None:
    """Each of these alone costs every run something without wirelint, and nothing with it."""
    made = [Task(("tide", "quay", f"salt {number}"), habit, stream) for number in range(3 if is_complete() else 2)]
    vendor = Vendor(0, NEVER | odds)
    without = play(made, vendor.answer)
    assert without.succeeded <= without.runs  # at most the first call of each run comes to pass
    score = Score()
    repaired = play(made, FixingWire(vendor.answer, REGISTRY.rules, REGISTRY.permit("unsafe"), score), score)
    assert (repaired.succeeded, repaired.refused) == (repaired.needed, 0)
    assert repaired.repairs


def test_hundreds_of_runs_without_and_with() -> None:
    """As reported: fewer than one call in five comes to pass, then three in four."""
    without, repaired = compare(RUNS if is_complete() else 20)
    assert without.needed == repaired.needed == (1300 if is_complete() else 80)
    assert 0.12 < without.share < 0.22
    assert 0.65 < repaired.share < 0.85
    assert repaired.succeeded > 3 * without.succeeded
