"""A fixed stream adds up to the content of the fixed whole body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Call, Talk, User, chunk, forms, schema, sse
from tests.fixes.drive import Result, run
from tests.rules.case import Case, Fires, Silent, expand, fires, in_form, silent
from tests.selection import rotated, sampled
from wirelint.rule import Rule

# What only one of the two forms can have, or where text had gone out before it was known for what it was.
DIFFERENT: dict[str, str] = {
    "control-token-leak-both sides of a dialogue": "tokens that people write too are told by what follows, much later",
    "control-token-leak-Kimi's beginning": "the other half of the pair may come yet, and then both are spoken of",
}


def _cases(rule: Rule) -> Iterator[tuple[str, str, Case]]:
    """Cases of a rule that can be said in both forms: id, API, case."""
    cases: list[tuple[str, Rule, Fires | Silent]] = [*fires([rule]), *sampled([*silent([rule])], 4)]
    for name, _, wrapped in cases:
        items = wrapped.case if isinstance(wrapped.case, Sequence) else [wrapped.case]
        apis = [api for api in APIS if {(api, False), (api, True)} <= set(wrapped.forms)]
        if any(isinstance(one, Talk) for one in items):
            yield from ((name, api, wrapped.case) for api in rotated(apis, name))


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_streamed_is_whole(rule: Rule) -> None:
    for name, api, case in _cases(rule):
        with in_form(f"{name} {api}"):
            one, other = (run(records) for _, records in expand(case, forms(api)))
            assert not one.faults
            assert not other.faults
            same = _assembled(one) == _assembled(other)
            assert same is (name not in DIFFERENT), (_assembled(one), _assembled(other))


def _assembled(result: Result) -> list[tuple[Any, ...]]:
    reply = result.after.reply
    return [
        (
            choice.text.strip(),
            choice.reasoning.strip(),
            [(call.id, call.name, call.arguments.value, call.arguments.rest) for call in choice.calls],
            choice.finish_reason,
        )
        for choice in (reply.choices if reply is not None else ())
    ]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("said", [{"text": "<|im_end|>"}, {"text": "Ready.", "reasoning": "<|im_end|>"}])
def test_a_call_that_another_rule_removes_decides_alike(api: str, said: dict[str, Any]) -> None:
    """The request declares no tools, so `undeclared-tool` removes the call beside the token."""
    talk = Talk((User("Go on."),), calls=(Call("get_weather", {"city": "Oslo"}),), **said)
    whole, streamed = (run([talk.record(api, stream)]) for stream in (False, True))
    assert _assembled(whole) == _assembled(streamed)


def test_a_candidate_without_a_numeric_index_is_written_once() -> None:
    """`"index": "tool_calls"` counts as the position in `choices`, for the reader and for the writer."""
    leak = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    last = json.dumps({"choices": [{"index": "tool_calls", "delta": {}, "finish_reason": "stop"}]})
    talk = Talk((User("Go on."),), leak, tools={"get_weather": schema(city="string")})
    record = talk.record("openai.chat", True)
    text = record["response"]["body"]
    record["response"]["body"] = re.sub(r'data: [^\n]*"finish_reason": "stop"[^\n]*', lambda _: f"data: {last}", text)
    assert record["response"]["body"] != text
    result = run([record])
    assert result.after.reply is not None
    assert [call.name for choice in result.after.reply.choices for call in choice.calls] == ["get_weather"]
    assert result.delivered.count(b'"get_weather"') == 1


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("before", ["at <tool_call> so ", "now <tool_call> I [TOOL_CALLS] ", '<invoke name="gone">so '])
@pytest.mark.parametrize("step", [1, 7, 200])
def test_a_call_behind_an_opener_that_begins_nothing(api: str, before: str, step: int) -> None:
    """The first opener may be a call of an undeclared tool until the text is over; the call behind it is promoted."""
    leak = f'Well, {before}<tool_call>{{"name": "get_weather", "arguments": {{"city": "Oslo"}}}}</tool_call>'
    talk = Talk((User("Go on."),), leak, tools={"get_weather": schema(city="string")}, step=step)
    whole, streamed = (run([talk.record(api, stream)]) for stream in (False, True))
    assert _assembled(whole) == _assembled(streamed)


LATE = {
    "the end of a thought": ({"content": "so\n"}, {"content": "</think>"}),
    "arguments once more": (
        {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "noop", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ),
}


@pytest.mark.parametrize("deltas", LATE.values(), ids=LATE)
def test_events_behind_the_finish_reason_stay_unchanged(deltas: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """A repair decides at the finish reason. A second repair of its result finds nothing more to do."""
    first, late = deltas
    ends = {"content": "stop"}.get(next(iter(first)), "tool_calls")
    events = [chunk(first), chunk(first), chunk({}, ends), chunk(late)]
    record = Talk((User("Go on."),), "x", tools={"noop": schema()}).record("openai.chat", True)
    record["response"]["body"] = sse(*events, done=True)
    once = run([record])
    assert json.dumps(late).encode() in once.delivered
    again = {**record, "response": {**record["response"], "body": once.delivered.decode()}}
    assert run([again]).delivered == once.delivered
