"""The faults of time: where the mock is silent, and what it says then. What a rule makes of it is told by the rule."""

from __future__ import annotations

import json

import pytest

from tests.build import REGISTRY, as_record
from tests.mock.client import make_body
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.mock.answer import Answer, Pause
from wirelint.mock.service import Service
from wirelint.rule import Limits

APIS = ("openai", "anthropic")
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
LIMITS = Limits(stall=3, burst=3, hang=3)


def answer(api: str, scenario: str, stream: bool) -> Answer:
    body = json.dumps(make_body(api, stream=stream)).encode()
    return Service.of(0).answer(1, "POST", PATHS[api], {"x-wirelint-mock": scenario}, body)


def findings(api: str, played: Answer, stream: bool) -> set[str]:
    """What the rules say of an answer as it is played: a chunk a step, at the times that the pauses make."""
    now, chunks, body = played.delay * 1000, [], b""
    for step in played.steps:
        if isinstance(step, Pause):
            now += step.seconds * 1000
        else:
            chunks.append([now, len(step)])
            body += step
    record = {
        "request": {"url": f"http://llm.test{PATHS[api]}", "body": make_body(api, stream=stream)},
        "response": {"status": played.status, "headers": dict(played.headers), "body": body, "chunks": chunks},
        "timing": {"first_byte_ms": played.delay * 1000, "duration_ms": now},
    }
    exchange = replay(as_record(record))
    assert exchange is not None
    timed = [rule.within(LIMITS) for rule in REGISTRY.select(["stream-stall", "stream-burst", "silent-hang"])]
    return {finding.name for finding in Engine(timed).check(exchange)}


# What bursts has hung before. What goes on after its head, however late, has stalled.
FOUND = {
    "stream-stall": {"stream-stall"},
    "stream-stall;mode=pings": {"stream-stall"},
    "stream-burst": {"stream-burst", "silent-hang"},
    "silent-hang": {"silent-hang"},
    "silent-hang;mode=head": {"stream-stall"},
    "silent-hang;mode=pings": {"stream-stall"},
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("scenario", FOUND)
def test_its_rule_finds_it(api: str, scenario: str) -> None:
    played = answer(api, f"{scenario};seconds=5", True)
    assert findings(api, played, True) == FOUND[scenario]
    assert findings(api, answer(api, f"{scenario};seconds=1", True), True) == set()


@pytest.mark.parametrize("api", APIS)
def test_a_whole_answer_comes_late(api: str) -> None:
    assert findings(api, answer(api, "silent-hang;seconds=9", False), False) == {"silent-hang"}


@pytest.mark.parametrize("scenario", ["stream-stall", "stream-burst", "silent-hang;mode=head"])
def test_what_a_whole_answer_cannot_be(scenario: str) -> None:
    said = dict(answer("openai", f"{scenario};seconds=1", False).headers)["x-wirelint-mock"]
    assert said.startswith("healthy (")


def test_the_silences_add_up() -> None:
    pauses = [step.seconds for step in answer("openai", "stream-stall;mode=pings;seconds=7.5", True).steps
              if isinstance(step, Pause)]  # fmt: skip
    assert sum(pauses) == pytest.approx(7.5)
    assert max(pauses) < 1.5
