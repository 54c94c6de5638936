"""Agents with a faulty vendor, without and with wirelint in between: how many tool calls succeed."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jsonschema_rs

from wirelint.capture.record import Record, Sent
from wirelint.capture.replay import begin, delivered_reply, finish, respond
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.launch.demo.clients import TABLE, read_chat
from wirelint.launch.demo.vendor import FAILED, MODEL, Vendor
from wirelint.registry import Registry
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Rule

# An agent like common clients of tool-calling APIs.
#
# It takes calls from the API's own fields, looks at the finish reason, runs calls that are declared and fit the schema,
# returns an error for other calls, and stops at a reply without calls. Markup in the text is not a call to it.

Wire = Callable[[bytes], tuple[str, bytes]]
"""Sends a request body; returns content type and body of the reply."""

Habit = Literal["plain", "imported", "strips ids", "prints parts"]
Json = dict[str, Any]

_TABLE = TABLE["agents"]
_TOOL = _TABLE["tool"]
_VALID = jsonschema_rs.validator_for(_TOOL["parameters"])
_EXTRA = 3
"""Turns that an agent allows beyond one per item."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a search per item. `habit` is how its client changes the history that it sends."""

    items: tuple[str, ...]
    habit: Habit
    stream: bool


@dataclass(slots=True)
class Score:
    """Counts of calls in runs, of finish reasons, and of fixes by rule (`repairs`). `refused`: the client cannot run it."""

    runs: int = 0
    needed: int = 0
    succeeded: int = 0
    refused: int = 0
    replies: int = 0
    finishes: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return self.succeeded / self.needed if self.needed else 0.0


def _run(task: Task, wire: Wire, score: Score) -> None:
    question = f"Search my notes, one search each: {', '.join(f'“{item}”' for item in task.items)}."
    messages = [*(_TABLE["imported"] if task.habit == "imported" else ()), {"role": "user", "content": question}]
    score.runs += 1
    score.needed += len(task.items)
    for _ in range(len(task.items) + _EXTRA):
        tools = [{"type": "function", "function": _TOOL}]
        body = {"model": MODEL, "messages": messages, "tools": tools, "stream": task.stream}
        if task.stream:
            body["stream_options"] = {"include_usage": True}
        kind, reply = wire(json.dumps(body, ensure_ascii=False).encode())
        lines = [line.removeprefix("data: ") for line in reply.decode().splitlines() if line.startswith("data: {")]
        documents = lines if kind.startswith("text/event-stream") else [reply]
        text, calls, finish = read_chat(map(json.loads, documents))
        score.replies += 1
        score.finishes[finish] += 1
        if finish != "tool_calls" or not calls:
            break
        messages.append(_keep(text, calls, task.habit))
        for call, kept in zip(calls, messages[-1]["tool_calls"], strict=True):
            result = _call(call)
            succeeded = not result.startswith(FAILED)
            score.succeeded += succeeded
            score.refused += not succeeded
            messages.append({"role": "tool", "tool_call_id": kept["id"], "content": result})


def _keep(content: str, calls: list[Json], habit: Habit) -> Json:
    if habit == "strips ids":
        calls = [{**call, "id": "".join(filter(str.isalnum, call["id"]))} for call in calls]
    if habit == "prints parts":
        content = str([{"type": "text", "text": content}])
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _call(call: Json) -> str:
    function = call["function"]
    if function["name"] != "search_notes":
        return f"{FAILED}there is no tool {function['name']}"
    try:
        arguments = json.loads(function["arguments"])
    except json.JSONDecodeError:
        return f"{FAILED}the arguments are not JSON"
    if not _VALID.is_valid(arguments):
        return f"{FAILED}the arguments do not fit"
    return f"2 notes on {arguments['query']}"


RUNS = 325
CALLS_EACH = 4
_URL = "http://vendor.test/v1/chat/completions"
_JSON = (("content-type", "application/json"),)


def tasks(runs: int = RUNS, seed: int = 0) -> list[Task]:
    """Return the tasks; each has other items, and about half of them stream."""
    habits = [habit for habit, many in _TABLE["habits"] for _ in range(many)]
    made = []
    for number in range(runs):
        chance = random.Random(f"{seed}/{number}")
        items = tuple(
            f"{word}, {number + 1}.{at}" for at, word in enumerate(chance.sample(_TABLE["words"], CALLS_EACH))
        )
        made.append(Task(items, habits[number % len(habits)], stream=chance.random() < 0.5))
    return made


def play(made: Iterable[Task], wire: Wire, score: Score | None = None) -> Score:
    score = score or Score()
    for task in made:
        _run(task, wire, score)
    return score


class FixingWire:
    """A wire with the fixes of the proxy, without a process."""

    def __init__(self, wire: Wire, rules: Sequence[Rule], permit: FixPolicy, score: Score) -> None:
        self._wire, self._rules, self._permit, self._score = wire, rules, permit, score
        self._engine = Engine(rules)
        self._number = 0

    def __call__(self, body: bytes) -> tuple[str, bytes]:
        self._number += 1
        record = Record(id=str(self._number), method="POST", url=_URL, request_headers=_JSON, request_body=body)
        session = begin(record)
        if session is None:
            return self._wire(body)
        ledger = self._engine.ledger
        fixed = mend_request(session.head(), body, self._rules, ledger, self._permit)
        kind, reply = self._wire(fixed.body)
        headers = (("content-type", kind),)
        record = replace(record, status=200, response_headers=headers, response_body=reply, end="complete")
        respond(session, record)
        rewritten = rewrite_reply(session, reply, self._rules, ledger, self._permit)
        if rewritten.body is not reply:
            record = replace(record, delivered=Sent(headers, rewritten.body))
        self._engine.check(finish(session, record, delivered_reply(record)))
        self._score.repairs.update(repair.name for repair in (*fixed.repairs, *rewritten.repairs))
        return kind, rewritten.body


def compare(runs: int = RUNS, seed: int = 0) -> tuple[Score, Score]:
    """Run the tasks twice with the same vendor: without wirelint, and with all fixes. Return both scores."""
    registry = Registry.load()
    made, vendor, fixed = tasks(runs, seed), Vendor(seed), Score()
    wire = FixingWire(vendor.answer, registry.rules, registry.permit("unsafe"), fixed)
    return play(made, vendor.answer), play(made, wire, fixed)
