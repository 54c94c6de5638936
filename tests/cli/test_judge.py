"""`--judge`: requests to the endpoint, verified answers, cache, budget, failures. `wirelint mock` plays the endpoint.

`judge.json` has the replies with the answers of the judge to them (the last one again if it is asked again), and failures.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.cli.test_check import write
from tests.command import Wirelint
from tests.selection import sampled
from tests.tables import tables
from tests.view.html.pages import unpacked
from wirelint.cli import judge
from wirelint.mock import serve
from wirelint.view.formats import FORMATS

CASES = tables(__file__)
REPLIES: dict[str, Any] = CASES["replies"]
SCRIPT: list[Any] = [
    {"when": {"text": case["says"].split()[-1]}, "text": answer, "times": 1}
    for case in REPLIES.values()
    for answer in (case["answers"] * 2)[:2]
]
SECRET = "hunter2hunter2"
CALL = Call("track", {"id": "77", "password": SECRET})


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The replies in a capture, and replies that no judge is asked about: explained by a rule, without tools, a call."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    turns = User(CASES["order"]), Assistant("", (CALL,)), Result(CALL.id, CASES["result"])
    tools = {"track": schema(id="string")}
    talks = {name: Talk(turns, tools=tools, text=case["says"]) for name, case in REPLIES.items()}
    talks["explained"] = Talk(turns[:1], tools=tools, text="I tracked parcel 77 and found 3 results.")
    talks |= {"no tools": Talk(text="Hi."), "call": Talk(turns[:1], tools=tools, calls=(CALL,))}
    return write(
        tmp_path / "run.jsonl", *({**talk.record("openai.chat", False), "id": id_} for id_, talk in talks.items())
    )


def _found(out: str) -> dict[str, str]:
    findings = [json.loads(line) for line in out.splitlines() if "(source: judge)" in line]
    assert {one["finding_source"] for one in findings} <= {"judge"}
    return {one["exchange"]: one["name"] for one in findings}


def test_verified_answers_are_findings_and_cached(wirelint: Wirelint, capture: Path) -> None:
    args = "check", capture, "--output-format=jsonl", "--ignore=ungrounded-answer", "--judge-model=m"
    expected = {id_: case["found"] for id_, case in REPLIES.items() if "found" in case}
    with serve(scenario={"reply": SCRIPT}) as endpoint:
        ran = wirelint(*args, "--judge", endpoint.url)
    with serve(scenario={"reply": SCRIPT}) as later:
        again = wirelint(*args, "--judge", f"{later.openai}/")
    assert len(later.exchanges) == 1, "only what was not understood is asked again"
    assert _found(ran.out) == expected
    assert {json.loads(exchange.request_body)["model"] for exchange in endpoint.exchanges} == {"m"}
    shown = b"".join(exchange.request_body for exchange in endpoint.exchanges).decode()
    assert (again.out, again.status) == (ran.out, 1)
    assert SECRET not in shown
    assert all(case["says"].split()[-1] in shown for case in REPLIES.values())
    assert "3 results" not in shown
    assert "1 reply not judged: the answer is not the requested JSON; name another model" in ran.err
    files = list((capture.parent / "cache" / "wirelint" / "judge").iterdir())
    assert len(files) == len(REPLIES) - 1
    files[0].write_text("[1")
    damaged = wirelint(*args, "--judge", "http://127.0.0.1:9")
    assert "1 reply asked again: damaged files in" in damaged.err
    assert "2 replies not judged: http://127.0.0.1:9/v1/chat/completions: " in damaged.err


def test_the_budget_and_the_exit_status(wirelint: Wirelint, capture: Path) -> None:
    args = "check", capture, "--select=fabricated-result", "--output-format=jsonl", "--judge"
    with serve(scenario={"reply": SCRIPT}) as endpoint:
        ran = wirelint(*args, endpoint.url, "--judge-budget", 3)
        assert (ran.status, list(_found(ran.out))) == (0, ["fault"])
        left = len(REPLIES) - 2 + 1  # of "explained" the rule is not in force
        assert f"{left} replies not judged: the budget of 3 calls is used up; raise --judge-budget" in ran.err
        assert wirelint(*args, endpoint.url, "--judge-budget", 0, "--judge-fails").status == 1
    assert len(endpoint.exchanges) == 3


def test_failures_are_one_line_and_change_nothing(
    wirelint: Wirelint, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "_TIMEOUT", 0.5)
    plain = wirelint("check", capture)
    for scenario, says in CASES["failures"]:
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(serve(scenario)).url if scenario else "http://127.0.0.1:9"
            ran = wirelint("check", capture, "--judge", url)
        assert (ran.status, ran.out) == (plain.status, plain.out)
        told = f"wirelint: judge: {len(REPLIES)} replies not judged: {url}/v1/chat/completions: {says}\n"
        assert ran.err == told + plain.err


@pytest.fixture
def endpoint() -> Iterator[str]:
    with serve(scenario={"reply": SCRIPT}) as server:
        yield server.url


def test_every_format_names_the_source(wirelint: Wirelint, capture: Path, endpoint: str, tmp_path: Path) -> None:
    args = capture, "--judge", endpoint, "--ignore=ungrounded-answer"
    first = wirelint("check", *args, columns=80)
    assert "      (source: judge) says 'left the depot'; evidence: request /messages/2\n" in first.out
    for name in sampled(list(FORMATS), 3):
        out = wirelint("check", *args, "--output-format", name, "--all-occurrences").out
        assert out.count("(source: judge) says ") == 3, name
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert "FB202 fabricated-result (judge)" in wirelint("check", *args, "--statistics").out
    assert "fabricated-call (judge)" in wirelint("stats", *args).out
    assert wirelint("report", *args, "-o", tmp_path / "page.html").status == 0
    data = [data for _, data in unpacked((tmp_path / "page.html").read_bytes())]
    assert json.dumps(data).count("(source: judge)") == 6, "of each finding in the list and in its exchange"
