"""The benchmark runs to its end and prints its tables; what the figures are is nobody's business here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import payloads
from tests.bench.offline import exchange_costs, markup_throughput, throughput
from tests.bench.online import METRICS, Metric, Outcome
from tests.bench.wire import Take
from wirelint.registry import Registry

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.bench", *arguments]
    wide = {**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, encoding="utf-8", timeout=150)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_engine() -> None:
    out = run("engine", "--tiny")
    assert "openai.chat" in out
    assert "orjson" in out


@pytest.mark.live
@pytest.mark.complete
def test_live() -> None:
    out = run("live", "--tiny")
    for metric in METRICS:
        assert metric.scenario.split()[0] in out
    assert "wirelint" in out


def test_every_rule_has_its_cost() -> None:
    steps = [cost.step for cost in exchange_costs(0.0001)]
    assert sorted(step for step in steps if step.startswith("rule ")) == sorted(
        f"rule {rule.name}" for rule in Registry.load().rules
    )


def test_texts_without_markup_are_measured() -> None:
    for result in markup_throughput(2_000, 0.0001):
        assert result.size == 2_000
        assert all(speed > 0 for speed in result.ways.values())


def test_all_of_a_body_is_measured() -> None:
    for result in throughput(20_000, 0.0001):
        assert 8_000 < result.size < 60_000, result.what
        assert all(speed > 0 for speed in result.ways.values())


@pytest.mark.parametrize("api", payloads.PATHS)
def test_streams_have_their_events(api: payloads.Api) -> None:
    pieces = payloads.stream(api, "prose", 50)
    assert 50 <= len(pieces) <= 57
    assert all(piece.endswith(b"\n\n") and piece.count(b"\n\n") == 1 for piece in pieces)
    assert b"".join(payloads.blocks(pieces, 700)) == b"".join(pieces)


def test_latency_is_that_of_each_event_but_the_first() -> None:
    take = Take(asked=1.0, sent=[1.0, 2.0, 3.0], got=[1.5, 2.25, 3.5])
    assert take.first == 0.5
    assert take.latencies == [0.25, 0.5]


def test_ratios_are_made_within_a_round() -> None:
    metric = Metric("s", "m", "base")
    figures = {"base": {("s", "m"): [1.0, 10.0, 100.0]}, "ours": {("s", "m"): [2.0, 20.0, 100.0]}}
    outcome = Outcome(3, figures)
    assert outcome.ratio("ours", metric) == 2.0
    assert outcome.median("base", metric) == 10.0
