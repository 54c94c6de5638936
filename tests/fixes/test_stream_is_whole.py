"""A fixed stream adds up to the content of the fixed whole body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Call, Talk, User, forms, schema
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
    cases: list[tuple[str, Rule, Fires | Silent]] = [*sampled([*fires([rule])], 4), *sampled([*silent([rule])], 2)]
    for name, _, wrapped in cases:
        items = wrapped.case if isinstance(wrapped.case, Sequence) else [wrapped.case]
        apis = [api for api in APIS if {(api, False), (api, True)} <= set(wrapped.forms)]
        if any(isinstance(one, Talk) for one in items):
            yield from ((name, api, wrapped.case) for api in rotated(apis, name))


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_a_fixed_stream_says_what_the_fixed_body_says(rule: Rule) -> None:
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
@pytest.mark.parametrize("before", ["at <tool_call> so ", "now <tool_call> I [TOOL_CALLS] ", '<invoke name="gone">so '])
def test_a_call_behind_an_opener_that_begins_nothing(api: str, before: str) -> None:
    """The first opener may be a call of an undeclared tool until the text is over; the call behind it is promoted."""
    leak = f'Well, {before}<tool_call>{{"name": "get_weather", "arguments": {{"city": "Oslo"}}}}</tool_call>'
    for step in rotated([1, 7, 200], api + before):
        talk = Talk((User("Go on."),), leak, tools={"get_weather": schema(city="string")}, step=step)
        whole, streamed = (run([talk.record(api, stream)]) for stream in (False, True))
        assert _assembled(whole) == _assembled(streamed)


@pytest.mark.parametrize("api", APIS)
def test_text_behind_a_cut_is_cut_after_a_call(api: str) -> None:
    """Markup beside a structured call is put back into the text, behind the token at which the text was cut."""
    text = 'The tide turns. <|im_end|> <function=get_weather> {"name": "get_weather", "arguments": {"city": "Oslo"}}'
    text = f"{text} now <tool_call> get_weather </tool_call> ."
    calls = [Call("get_weather", {"city": "Oslo"})]
    talk = Talk((User("Go on."),), text, tools={"get_weather": schema(city="string")}, calls=calls, step=7)
    whole, streamed = (run([talk.record(api, stream)]) for stream in (False, True))
    assert _assembled(whole) == _assembled(streamed)
    assert _assembled(streamed)[0][0] == "The tide turns."
