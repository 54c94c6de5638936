"""Text that only looks like markup: documentation of every dialect, sources of parsers, logs, prose, JSON.

Each line of `tests/corpus/look_alikes.jsonl` is a model's answer (`text`) to a user's question (`user`), with or without
declared tools. It holds no call, so no leak is reported, and no fix changes a byte.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Talk, User, as_record, some
from tests.fixes.drive import run
from tests.selection import sampled
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
def test_no_leak_is_reported(topic: str) -> None:
    for number, row in enumerate(TOPICS[topic]):
        api = APIS[number % len(APIS)]
        exchange = some(replay(as_record(talk(row).record(api, False))))
        # An announced call in prose is another fault (FB203).
        found = [one for one in Engine(LEAKS).check(exchange) if one.severity != "info"]
        assert not found, (row["id"], found)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_byte_is_changed(topic: str) -> None:
    for number, row in sampled([*enumerate(TOPICS[topic])], 5):
        api, streamed = APIS[number % len(APIS)], number % 4 < 2
        record = talk(row).record(api, streamed)
        result = run(record)
        assert result.delivered == record["response"]["body"].encode(), row["id"]
        assert not result.faults, row["id"]
