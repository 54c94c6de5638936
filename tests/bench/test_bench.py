"""The benchmark runs to its end and prints its tables; its figures are not checked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.online import METRICS, Metric, Outcome
from wirelint.registry import Registry

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, program: str = "tests.bench") -> str:
    command = [sys.executable, "-m", program, *arguments]
    wide = {**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, encoding="utf-8", timeout=150)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_engine_is_measured_on_every_body() -> None:
    out = run("engine", "--tiny")
    assert all(body in out for body in ("openai.chat, leak", "anthropic.messages, tool call", "openai.chat, whole"))
    assert f"{len(Registry.load().rules) - 9} more rules" in out


@pytest.mark.complete
def test_entered_functions_are_counted_for_replies_and_the_command() -> None:
    lines = run(program="tests.bench.entered").splitlines()
    assert len(lines) == 5
    assert all(re.search(r": [1-9]\d* modules, [1-9]\d* functions, [1-9]\d* calls$", line) for line in lines), lines


@pytest.mark.live
@pytest.mark.complete
def test_mitmdump_is_measured_in_every_scenario() -> None:
    lines = run("live", "--tiny").splitlines()
    rows = [line for line in lines if any(metric.name in line for metric in METRICS)]
    assert len(rows) == len(METRICS)
    assert all(re.search(r" [\d,.]+ +[\d,.]+ +[-+]?\d+\.\d+ ", row) for row in rows), lines


def test_ratios_are_made_within_a_round() -> None:
    metric = Metric("s", "m", "base")
    figures = {"base": {("s", "m"): [1.0, 10.0, 100.0]}, "ours": {("s", "m"): [2.0, 20.0, 100.0]}}
    outcome = Outcome(3, figures)
    assert outcome.compared("ours", metric) == 2.0
    assert outcome.median("base", metric) == 10.0
