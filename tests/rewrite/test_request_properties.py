"""What holds for the repair of every request: it is done once, and tears no pair of call and result."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.build import CALLING, REGISTRY, Assistant, Call, Result, Talk, User, as_record, read, some
from tests.rewrite.mending import SAFE, UNSAFE
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.history.pairing import pair
from wirelint.model import Exchange, Request, ToolCall, ToolResult
from wirelint.rewrite.request import mend_request

IDS = st.sampled_from([
    "functions.dig:0", "functionsdig0", "functions_dig_0", "functions.dig:1", "functionsdig1", "dig:0", "dig:1", "dig", "0",
    "", "undefined", "call_9QfXb2LmZt7RkVw3Nc8HsYpD", "call_9qfxb2lmzt7rkvw3nc8hsypd", "call9QfXb2LmZt7RkVw3Nc8HsYpD",
    "call_9QfXb2LmZt7RkVw3Nc8HsYpD|fc_41d0b7c9e2f3486aa5b1c2d3e4f50617", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf", "a1B2c3D4e",
    "7f3c1a2b-7d4e-4f60-9a8b-1c2d3e4f5a6b", "call_" + "x1" * 35, "functions.cut:0", "dig_2", "functions.dig:0_2",
])  # fmt: skip
TURNS = st.lists(
    st.tuples(
        st.lists(st.tuples(IDS, st.sampled_from(["dig", "cut"]), st.integers(0, 1)), max_size=3),
        st.lists(st.tuples(IDS, st.sampled_from(["a root", "a stone", ""])), max_size=3),
        st.booleans(),
    ),
    max_size=4,
)
TARGETS = st.sampled_from([
    ("acme-1", "https://llm.test"), ("kimi-k2.5", "https://llm.test"), ("kimi-k3", "https://llm.test"),
    ("claude-opus-5", "https://llm.test"), ("mistral-large", "https://api.mistral.ai"), ("gpt-5", "https://api.openai.com"),
])  # fmt: skip


CALLED = st.lists(st.tuples(IDS, st.sampled_from(["dig", "cut"]), st.integers(0, 1)), max_size=2)


@given(TURNS, CALLED, TARGETS, st.sampled_from(CALLING), st.sampled_from([SAFE, UNSAFE]))
def test_mending_twice_changes_nothing_and_tears_no_pair(
    turns: list[Any], issued: list[Any], target: tuple[str, str], api: str, permit: FixPolicy
) -> None:
    model, host = target
    engine = Engine(REGISTRY.rules)
    passed = [Call(name, {"n": n}, id_) for id_, name, n in issued]
    engine.check(read(Talk((User("Dig."),), calls=passed, model=model).record(api, False)))
    history: list[Any] = [User("Dig.")]
    for calls, results, speaks in turns:
        history.append(Assistant("Well.", tuple(Call(name, {"n": n}, id_) for id_, name, n in calls)))
        history += [Result(id_, text) for id_, text in results]
        history += [User("And?")] if speaks else []
    record = Talk(history, model=model).record(api, False)
    record["request"]["url"] = record["request"]["url"].replace("http://llm.test", host)
    before, body = _head(record), as_record(record).request_body or b""
    first = mend_request(before, body, REGISTRY.rules, engine.ledger, permit)
    assert first.faults == ()
    record["request"]["body"] = first.body.decode()
    again = mend_request(_head(record), first.body, REGISTRY.rules, engine.ledger, permit)
    assert again.body is first.body, (first.repairs, again.repairs)
    if permit is SAFE:
        assert before.request is not None
        ids = {part.pointer: id_ for part, id_ in _ids(some(first.request))}
        for call, result in _answers(before.request):
            assert ids[call] == ids[result]


def _head(record: Mapping[str, Any]) -> Exchange:
    """The exchange as it is when its request has come and nothing else."""
    return dataclasses.replace(read(record), status=None, reply=None)


def _ids(request: Request) -> Iterator[tuple[ToolCall | ToolResult, str | None]]:
    for message in request.messages:
        yield from ((call, call.id) for call in message.calls)
        yield from ((result, result.call_id) for result in message.results)


def _answers(request: Request) -> set[tuple[str, str]]:
    """Which call is answered by which result, by their places, for calls that share their id with no other."""
    pairs = pair(request).pairs
    ids = Counter(each.call.id or "" for each in pairs)
    ids[""] = 2
    return {
        (each.call.pointer, each.answer.result.pointer)
        for each in pairs
        if each.answer is not None and ids[each.call.id or ""] == 1 and each.answer.match is None
    }
