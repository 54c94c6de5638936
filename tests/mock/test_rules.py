"""Every fault at every API that can show it, judged offline: it breaks the rule of its name, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.build import REGISTRY, Talk, lint
from tests.mock.test_apis import QUESTION, ROUTES, TOOLS, WITHOUT_TOOLS, Route, ask
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.mock import FAULTS
from wirelint.mock.answer import Answer, Pause
from wirelint.mock.apis import APIS
from wirelint.mock.faults import MCP_STAGES, NOT_PLAYED
from wirelint.mock.scenario import HEADER
from wirelint.mock.service import Service

NO_RULES = {"http-error"}
"""What a server may well say."""


TABLES = tables(__file__)
"""`choices`: how each API demands a call; Ollama has no words for it. `posts`: requests to a server of tools."""
COMPANIONS = {
    # What two calls at one index say piles up in the arguments of the first.
    "tool-index-collision": {"concatenated-json"},
}
IN_MODES = {("control-token-leak", "name"): {"undeclared-tool"}}
AT_ONE_API = {
    # The vendor's event of an error is the end of the message, and the call before it has had none.
    ("error-in-200", "cohere.chat"): {"sse-framing"},
}

SECONDS = {"stream-stall": 35, "stream-burst": 20, "silent-hang": 70}


def cases() -> Iterator[tuple[str, Route, bool]]:
    for name, fault in FAULTS.items():
        for route in ROUTES:
            if name in NO_RULES or not abilities(route).issuperset(fault.needs):
                continue
            if name == "xml-leak" and route.api in WITHOUT_TOOLS:
                continue  # calls are text there, so it is played and is no fault
            if name == "nonconforming-id" and "claude" in route.name:
                continue  # the path says that it is no Kimi
            for stream in (False, True):
                if stream or not fault.stream:
                    yield name, route, stream


def abilities(route: Route) -> frozenset[str]:
    return next(frozenset(api.abilities) for api in APIS if api.name == route.api)


def demand(route: Route, fault: str, stream: bool) -> dict[str, Any]:
    """What a request must say for this fault to be one."""
    if fault == "tool-choice-violation":
        demanded: dict[str, Any] = TABLES["choices"].get(route.api, {})
        return demanded
    if stream and route.api in ("openai.chat", "openai.completions"):
        return {"stream_options": {"include_usage": True}}
    return {}


def timed(answer: Answer, record: dict[str, Any], *, leaves: bool) -> dict[str, Any]:
    """The record with the times at which a client would have seen the steps; no time passes.

    With `leaves` the client gives up in the last of the silences.
    """
    now = answer.delay * 1000 + 200.0
    chunks: list[Any] = []
    steps = answer.steps
    if leaves:
        steps = steps[: max(at for at, step in enumerate(steps) if isinstance(step, Pause)) + 1]
    for step in steps:
        if isinstance(step, Pause):
            now += step.seconds * 1000
        else:
            chunks.append([now, len(step)])
            now += 15.0
    body = b"".join(step for step in steps if not isinstance(step, Pause))
    response = {**record["response"], "chunks": chunks, "body": body}
    timing = {"started": 1_760_000_000.0, "duration_ms": now}
    return {**record, "response": response, "timing": timing, "end": "client-left" if leaves else "complete"}


CASES = list(cases())
STRICT = {name: {**one, "additionalProperties": False} for name, one in TOOLS.items()}


def found(fault: str, route: Route, stream: bool, options: str = "") -> tuple[str, set[str]]:
    """What the server says that it did, and what is found."""
    model = "kimi-k2-instruct" if fault == "nonconforming-id" else "acme-1"
    tools = {} if route.api in WITHOUT_TOOLS else STRICT
    talk = Talk(history=(QUESTION,), tools=tools, model=model, request=demand(route, fault, stream))
    seconds = f";seconds={SECONDS[fault]}" if fault in SECONDS else ""
    kimi = ";model=kimi-k2-instruct" if fault == "nonconforming-id" else ""
    answer, record = ask(route, talk, stream, f"fault={fault}{seconds}{kimi}{options}")
    record.pop("timing", None)
    # A stream of which the head came and that goes on after all has stalled; it hangs where nobody waits so long.
    leaves = fault == "silent-hang" and "mode=" in options and "healthy" not in dict(answer.headers)[HEADER]
    judged = lint([timed(answer, record, leaves=leaves)])
    return dict(answer.headers)[HEADER], {finding.name for finding in judged}


@in_batches("fault", [name for name in FAULTS if name not in NO_RULES and name not in MCP_STAGES])
def test_a_fault_breaks_the_rule_of_its_name(fault: str) -> None:
    pytest.importorskip("botocore")
    wrong, shown = [], 0
    for name, route, stream in CASES:
        if name != fault:
            continue
        said, rules = found(name, route, stream)
        if said.startswith("healthy"):
            wrong += [] if excused(fault, route, said) else [(route.id, stream, said)]
            continue
        shown += 1
        also = COMPANIONS.get(fault, set()) | AT_ONE_API.get((fault, route.api), set())
        if fault not in rules or rules - {fault} - also:
            wrong.append((route.id, stream, str(sorted(rules))))
    assert wrong == []
    assert shown


def excused(fault: str, route: Route, said: str) -> bool:
    """What an API has no words for in a way that its abilities do not tell."""
    no_events = fault == "sse-framing" and "server-sent" in said
    no_choice = fault == "tool-choice-violation" and route.api == "ollama.chat"
    return no_events or no_choice


MODES = [
    (name, mode) for name, fault in FAULTS.items() for mode in fault.modes[1:] if name not in (*NO_RULES, *MCP_STAGES)
]


@in_batches(("fault", "mode"), MODES, ids=lambda value: str(value))
def test_every_mode_breaks_it(fault: str, mode: str) -> None:
    """At the two APIs that most clients speak, in a stream where there is a difference."""
    shown = 0
    for route in ROUTES[:2]:
        said, rules = found(fault, route, True, f";mode={mode}")
        if said.startswith("healthy"):
            continue
        shown += 1
        assert rules - COMPANIONS.get(fault, set()) - IN_MODES.get((fault, mode), set()) == {fault}, (route.id, rules)
    assert shown or (fault, mode) == ("fabricated-result", "contradiction")


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"], ids=["json", "sse"])
@rows(TABLES["at_tools"])
def test_faults_of_a_server_of_tools_break_their_rules(fault: str, options: str, where: list[str], accept: str) -> None:
    shown = set()
    for method, rest in TABLES["posts"].items():
        body = json.dumps({"jsonrpc": "2.0", "method": method, **rest}).encode()
        head = {"content-type": "application/json", "accept": accept}
        answer = Service().answer(1, "POST", "/mcp", {**head, HEADER: f"fault={fault}{options}"}, body)
        assert answer.streamed == (accept == "text/event-stream" and answer.status == 200)
        sent = b"".join(step for step in answer.steps if isinstance(step, bytes))
        record = {
            "request": {"url": "http://tools.test/mcp", "headers": head, "body": body},
            "response": {"status": answer.status, "headers": dict(answer.headers), "body": sent},
            "end": "complete",
        }
        found = {finding.name for finding in lint([record])}
        assert found == ({fault} if method in where else set()), method
        shown |= {method} if found else set()
        assert dict(answer.headers)[HEADER].startswith("healthy") == (method not in where)
    assert shown == set(where)


def test_every_rule_is_played_or_not_for_a_reason() -> None:
    names = {rule.name for rule in REGISTRY.rules}
    assert (set(FAULTS) | set(NOT_PLAYED)) - NO_RULES == names
    assert not set(FAULTS) & set(NOT_PLAYED)


def test_what_is_not_played_says_why() -> None:
    from tests.mock.test_apis import ask as send

    answer, record = send(Route("openai.chat"), Talk(history=(QUESTION,)), False, "fault=orphan-result")
    assert answer.status == 400
    assert "the client writes the history" in json.loads(record["response"]["body"])["error"]["message"]
