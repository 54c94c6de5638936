"""One prompt sent many times side by side, as evaluation harnesses do: no sample is taken for another one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, as_record, schema, some
from tests.selection import is_complete
from wirelint.capture.offline import Fixed, fix
from wirelint.capture.record import Record
from wirelint.fix import FixPolicy
from wirelint.rule import Finding

ASK = User("Look bed 4 up.")
TOOLS = {"look": schema([], bed={"type": "integer"})}
SAMPLES = 50 if is_complete() else 8
DRAWN = "call_{0:03d}d2mWq8ZsLp0RbYxN4c{0:03d}"
Ids = Callable[[int, int], str]
"""The id of a call by its sample and its turn."""


def conversation(sample: int, issued: Ids, kept: Ids, **more: Any) -> list[Talk]:
    """Two calls one after the other and an answer; `issued` are the ids of the upstream, `kept` those of the client."""
    talks: list[Talk] = []
    history: tuple[Any, ...] = (ASK,)
    for turn in range(2):
        talks.append(Talk(history, "", (Call("look", {"bed": 4 + turn}, issued(sample, turn)),), tools=TOOLS, **more))
        call = Call("look", {"bed": 4 + turn}, kept(sample, turn))
        history = (*history, Assistant(calls=(call,)), Result(kept(sample, turn), f"{turn} leeks"))
    return [*talks, Talk(history, "Leeks.", tools=TOOLS, **more)]


def interleaved(talks: list[list[Talk]], api: str, stream: bool) -> list[tuple[int, Record]]:
    """The exchanges of all samples in an order in which they may end, each with the number of its sample."""
    draw = random.Random(5)
    left = [(number, list(some)) for number, some in enumerate(talks)]
    made: list[tuple[int, Record]] = []
    while left:
        number, some = left[draw.randrange(len(left))]
        record = {**some.pop(0).record(api, stream), "id": f"{number}/{len(some)}"}
        made.append((number, as_record(record)))
        left = [one for one in left if one[1]]
    return made


def told(fixed: Fixed) -> list[Finding]:
    return [finding for finding in fixed.findings if finding.severity != "info"]


def run(records: list[tuple[int, Record]]) -> list[tuple[int, Fixed]]:
    fixed = list(fix((one for _, one in records), REGISTRY.select(()), FixPolicy("unsafe")))
    return [(number, item) for (number, _), item in zip(records, fixed, strict=True) if isinstance(item, Fixed)]


HEALTHY: dict[str, tuple[Ids, Ids]] = {
    "ids that were drawn": (lambda n, t: DRAWN.format(100 * t + n), lambda n, t: DRAWN.format(100 * t + n)),
    "short ids": (lambda n, t: f"c{n}-{t}", lambda n, t: f"c{n}-{t}"),
    "counted ids, equal in all samples": (lambda n, t: f"functions.look:{t}", lambda n, t: f"functions.look:{t}"),
    "the client's own ids": (lambda n, t: DRAWN.format(100 * t + n), lambda n, t: f"step-{t}"),
    "the client's own ids, of each sample": (lambda n, t: DRAWN.format(100 * t + n), lambda n, t: f"s{n}-{t}"),
}


@pytest.mark.parametrize(("api", "stream"), [("openai.chat", True), ("anthropic.messages", False)])
@pytest.mark.parametrize("ids", HEALTHY)
def test_no_sample_is_taken_for_another_and_nothing_is_found(ids: str, api: str, stream: bool) -> None:
    issued, kept = HEALTHY[ids]
    talks = [conversation(number, issued, kept) for number in range(SAMPLES)]
    passed = run(interleaved(talks, api, stream))
    assert len(passed) == 3 * SAMPLES
    assert not [finding for _, item in passed for finding in item.findings if finding.name != "missing-usage"]
    assert not [item.record.fixes for _, item in passed if item.record.forwarded or item.record.delivered]
    by_id = {item.record.id: number for number, item in passed}
    samples: dict[str | None, set[int]] = {}
    for number, item in passed:
        exchange = some(item.exchange)
        samples.setdefault(exchange.conversation, set()).add(number)
        assert exchange.link is None or by_id[exchange.link.exchange] == number
        assert exchange.link is not None or ids != "ids that were drawn" or item.record.id.endswith("/2")
    if ids in ("ids that were drawn", "the client's own ids, of each sample"):
        assert all(len(numbers) == 1 for numbers in samples.values())


STRIPPED: dict[str, tuple[Ids, Ids]] = {
    "known by what is left of them": (
        lambda n, t: DRAWN.format(100 * t + n),
        lambda n, t: DRAWN.format(100 * t + n).replace("_", ""),
    ),
    "known by their form": (lambda n, t: f"functions.look:{t}", lambda n, t: f"functionslook{t}"),
}


@pytest.mark.parametrize("ids", STRIPPED)
def test_an_id_that_was_mangled_in_a_known_way_is_restored_to_that_of_its_own_sample(ids: str) -> None:
    issued, kept = STRIPPED[ids]
    talks = [conversation(number, issued, kept, model="kimi-k2") for number in range(SAMPLES)]
    passed = run(interleaved(talks, "openai.chat", False))
    for number, item in passed:
        before = 2 - int(item.record.id.rpartition("/")[2])
        assert [finding.name for finding in told(item)] == ["mangled-id"] * before
        if before:
            messages = json.loads(some(item.record.forwarded).body or b"")["messages"]
            results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
            assert results == [issued(number, turn) for turn in range(before)]


OTHERS: dict[str, dict[str, Any]] = {
    "another model": {"model": "other"},
    "another host": {"host": "other.test"},
    "another key": {"headers": {"authorization": "Bearer [redacted:0a1b2c3d]"}},
    "another client": {"headers": {"user-agent": "other/1"}},
}


@pytest.mark.parametrize("other", OTHERS)
def test_two_clients_with_the_same_prompt_are_two(other: str) -> None:
    """The first call of one client has passed; the other one's has not, and has the same function and arguments."""
    more = OTHERS[other]
    one = Talk((ASK,), "", (Call("look", {"bed": 4}, DRAWN.format(1)),), tools=TOOLS, model="kimi-k2")
    history = (ASK, Assistant(calls=(Call("look", {"bed": 4}, "step-1"),)), Result("step-1", "leeks"))
    model = more.get("model", "kimi-k2")
    two = Talk(history, "Leeks.", tools=TOOLS, model=model).record("openai.chat", False)
    two["request"]["url"] = two["request"]["url"].replace("llm.test", more.get("host", "llm.test"))
    two["request"]["headers"] |= more.get("headers", {})
    first = as_record({**one.record("openai.chat", False), "id": "one"})
    (_, _), (_, item) = run([(1, first), (2, as_record({**two, "id": "two"}))])
    assert some(item.exchange).link is None
    assert item.record.forwarded is None
    assert not told(item)


def test_one_client_whose_own_id_the_model_minds_gets_the_original_back() -> None:
    one = Talk((ASK,), "", (Call("look", {"bed": 4}, "functions.look:0"),), tools=TOOLS, model="kimi-k2")
    history = (ASK, Assistant(calls=(Call("look", {"bed": 4}, "step-1"),)), Result("step-1", "leeks"))
    two = Talk(history, "Leeks.", tools=TOOLS, model="kimi-k2")
    records = [as_record({**t.record("openai.chat", False), "id": f"{n}"}) for n, t in enumerate((one, two))]
    (_, _), (_, item) = run(list(enumerate(records)))
    assert [finding.name for finding in told(item)] == ["mangled-id"]
    assert item.record.forwarded is not None
