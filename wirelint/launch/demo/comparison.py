"""Agents against a faulty vendor, without and with wirelint in between: how many tool calls come to pass."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from wirelint.capture.record import Record, Sent
from wirelint.capture.replay import begin, delivered_reply, finish, respond
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.launch.demo.agent import Habit, Task, Wire, run
from wirelint.launch.demo.vendor import Vendor
from wirelint.registry import Registry
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Rule

RUNS = 325
CALLS_EACH = 4
_HABITS: Sequence[tuple[Habit, int]] = (("plain", 6), ("imported", 8), ("strips ids", 4), ("prints parts", 2))
"""What clients do to the history, and how many of twenty do it."""
_URL = "http://vendor.test/v1/chat/completions"
_JSON = (("content-type", "application/json"),)
_WORDS = (
    "the ferry", "harbour fees", "high tide", "the lighthouse", "mooring rights", "the pilot boat", "salt prices",
    "the net loft", "fog signals", "the slipway", "crane hire", "the customs house",
)  # fmt: skip


@dataclass(slots=True)
class Score:
    """`needed` calls in `runs` conversations; of these `succeeded`, and `refused` ones that the client could not run.

    `finishes` counts finish reasons, `repairs` what wirelint changed, by rule.
    """

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


def tasks(runs: int = RUNS, seed: int = 0) -> list[Task]:
    """The runs that are played; each asks for other things, in other words, and every second one streams."""
    habits = [habit for habit, many in _HABITS for _ in range(many)]
    made = []
    for number in range(runs):
        chance = random.Random(f"{seed}/{number}")
        items = tuple(f"{word}, {number + 1}.{at}" for at, word in enumerate(chance.sample(_WORDS, CALLS_EACH)))
        made.append(Task(items, habits[number % len(habits)], stream=chance.random() < 0.5))
    return made


def play(made: Iterable[Task], wire: Wire, score: Score | None = None) -> Score:
    """Runs tasks over a wire."""
    score = score or Score()
    for task in made:
        outcome = run(task, wire)
        score.runs += 1
        score.needed += len(task.items)
        score.succeeded += outcome.succeeded
        score.refused += outcome.refused
        score.replies += len(outcome.finishes)
        score.finishes.update(outcome.finishes)
    return score


class Mender:
    """A wire with wirelint on it: what the proxy does to an exchange, without the proxy."""

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
        mended = mend_request(session.head(), body, self._rules, ledger, self._permit)
        kind, reply = self._wire(mended.body)
        headers = (("content-type", kind),)
        record = replace(record, status=200, response_headers=headers, response_body=reply, end="complete")
        respond(session, record)
        rewritten = rewrite_reply(session, reply, self._rules, ledger, self._permit)
        if rewritten.body is not reply:
            record = replace(record, delivered=Sent(headers, rewritten.body))
        self._engine.check(finish(session, record, delivered_reply(record)))
        self._score.repairs.update(repair.name for repair in (*mended.repairs, *rewritten.repairs))
        return kind, rewritten.body


def compare(runs: int = RUNS, seed: int = 0) -> tuple[Score, Score]:
    """The same tasks against the same vendor: without wirelint, and with all its repairs."""
    registry = Registry.load()
    made, vendor, mended = tasks(runs, seed), Vendor(seed), Score()
    wire = Mender(vendor.answer, registry.rules, registry.permit("unsafe"), mended)
    return play(made, vendor.answer), play(made, wire, mended)
