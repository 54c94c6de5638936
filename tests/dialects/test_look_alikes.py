"""Text that only looks like markup: documentation of every dialect, sources of parsers, logs, prose, JSON.

Each line of `tests/corpus/look_alikes.jsonl` is what a model answered (`text`) to what a user asked (`user`), with tools
declared or without. Nothing of it was meant as a call, so no leak is reported, and no repair touches a byte.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Talk, User, as_record
from tests.fixes.drive import run
from wirelint.capture.replay import replay
from wirelint.engine import Engine

LINES = Path(__file__).parents[1] / "corpus" / "look_alikes.jsonl"
TOPICS: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _line in LINES.read_text(encoding="utf-8").splitlines():
    _row = json.loads(_line)
    TOPICS[_row["topic"]].append(_row)

LEAKS = [rule for rule in REGISTRY.rules if rule.code.startswith("LK")]


def talk(row: dict[str, Any]) -> Talk:
    tools = {tool["name"]: tool["parameters"] for tool in row["tools"]}
    asked = (User(row.get("user") or "Please go on."),)
    return Talk(asked, row["text"], tools=tools, system=row.get("system") or "", step=5)


@pytest.mark.parametrize("topic", TOPICS)
def test_nothing_is_said_of_it(topic: str) -> None:
    for number, row in enumerate(TOPICS[topic]):
        api = APIS[number % len(APIS)]
        exchange = replay(as_record(talk(row).record(api, False)))
        assert exchange is not None
        # Announcing a call in prose is a fault of another kind (FB203), and so is not looked at here.
        told = [one for one in Engine(LEAKS).check(exchange) if one.severity != "info"]
        assert not told, (row["id"], told)


@pytest.mark.parametrize("topic", TOPICS)
def test_nothing_of_it_is_changed(topic: str) -> None:
    for number, row in enumerate(TOPICS[topic]):
        api, streamed = APIS[number % len(APIS)], number % 4 < 2
        record = talk(row).record(api, streamed)
        result = run(record)
        assert result.delivered == record["response"]["body"].encode(), row["id"]
        assert not result.faults, row["id"]
