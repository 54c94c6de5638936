"""Fixes of markup in earlier turns of the assistant, and markup that stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Assistant, Call, Result, Talk, User, as_record, read, schema
from tests.rewrite.mending import SAFE, UNSAFE
from tests.selection import in_batches
from wirelint.fix import FixPolicy
from wirelint.model import Reasoning
from wirelint.rewrite.request import Mended, mend_request
from wirelint.state.ledger import Ledger

ELSEWHERE = ("openai.responses", "cohere.chat", "bedrock.converse", "google.generate_content", "ollama.chat")
TOOLS = {"find_ship": schema(name="string"), "berths": schema(["port"], port="string", limit="integer")}
ASK, NOW = User("Where is the Aurora?"), User("And the Boreas?")
ONE = '<tool_call>\n{"name": "find_ship", "arguments": {"name": "Aurora"}}\n</tool_call>'
TWO = (
    "<tool_call>\n<function=berths>\n<parameter=port>Oslo</parameter>\n<parameter=limit>3</parameter>\n</function>\n"
    "</tool_call>"
)
FIND = Call("find_ship", {"name": "Aurora"}, "call_Rw4kTz8QnXv2LbYc6MsPdHfG")
BERTHS = Call("berths", {"port": "Oslo", "limit": 3}, "call_Zx9QmN4vTb7RkLw2CsHdPfYg")
AT = Result(FIND.id, "in Oslo")
FREE = Result(BERTHS.id, "berth 4")


def mend(history: list[Any], api: str, permit: FixPolicy = UNSAFE, **more: Any) -> tuple[bytes, Mended]:
    record = Talk(history, text="Far out.", tools=TOOLS, **more).record(api, False)
    body = as_record(record).request_body or b""
    for call in (FIND, BERTHS):  # a result of Gemini's says whose it is, call or no call
        body = body.replace(
            f'{{"id": "{call.id}", "name": "unknown"'.encode(), f'{{"id": "{call.id}", "name": "{call.name}"'.encode()
        )
    record["request"]["body"] = body.decode()
    return body, mend_request(read(record), body, REGISTRY.rules, Ledger(), permit)


def turns(body: bytes) -> list[Any]:
    """The messages after the first, with the calls' arguments as values."""
    messages: list[Any] = json.loads(body)["messages"][1:]
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


# A history, and the history that it is to become: both said once, and written in every API's own shape.
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "says twice what it calls": ([ASK, Assistant(ONE, (FIND,)), AT, NOW], [ASK, Assistant("", (FIND,)), AT, NOW]),
    "the words around it stay": (
        [ASK, Assistant(f"I look. {ONE} One moment.", (FIND,)), AT, NOW],
        [ASK, Assistant("I look.  One moment.", (FIND,)), AT, NOW],
    ),
    "two calls, both said twice": (
        [ASK, Assistant(f"{ONE}\n{TWO}", (FIND, BERTHS)), AT, FREE],
        [ASK, Assistant("", (FIND, BERTHS)), AT, FREE],
    ),
    "only one of two said twice": (
        [ASK, Assistant(ONE, (FIND, BERTHS)), AT, FREE],
        [ASK, Assistant("", (FIND, BERTHS)), AT, FREE],
    ),
    "answered by a result": ([ASK, Assistant(ONE), AT, NOW], [ASK, Assistant("", (FIND,)), AT, NOW]),
    "answered, with words": (
        [ASK, Assistant(f"I look.\n{ONE}"), AT, NOW],
        [ASK, Assistant("I look.\n", (FIND,)), AT, NOW],
    ),
    "two calls, both answered": (
        [ASK, Assistant(f"{ONE} then {TWO}"), AT, FREE],
        [ASK, Assistant(" then ", (FIND, BERTHS)), AT, FREE],
    ),
    "at the end": ([ASK, Assistant(ONE), AT], [ASK, Assistant("", (FIND,)), AT]),
    "in two turns": (
        [ASK, Assistant(ONE), AT, NOW, Assistant(TWO), FREE],
        [ASK, Assistant("", (FIND,)), AT, NOW, Assistant("", (BERTHS,)), FREE],
    ),
    "thought about": (
        [ASK, Assistant(ONE, reasoning="I need the register."), AT],
        [ASK, Assistant("", (FIND,), reasoning="I need the register."), AT],
    ),
}
LEFT: dict[str, list[Any]] = {
    "the last word": [ASK, Assistant(ONE)],
    "the user sends the result": [ASK, Assistant(ONE), User("<tool_response>in Oslo</tool_response>")],
    "the user tells the result": [ASK, Assistant(ONE), User("find_ship says that it is in Oslo.")],
    "the user asks about the markup": [ASK, Assistant(ONE), User("Why do I see <tool_call> in your answer?")],
    "another call than the structured one": [ASK, Assistant(TWO, (FIND,)), AT],
    "other arguments than the structured ones": [ASK, Assistant(ONE.replace("Aurora", "Boreas"), (FIND,)), AT],
    "cut off": [ASK, Assistant(ONE[:50], (FIND,)), AT],
    "in a fence": [ASK, Assistant(f"It is written so:\n```\n{ONE}\n```\n", (FIND,)), AT],
    "in inline code": [ASK, Assistant(f"I write `{ONE}` now.".replace("\n", " "), (FIND,)), AT],
    "the user's own": [User(ONE), Assistant("", (FIND,)), AT],
    "asked for": [User(f"Repeat {ONE} word for word."), Assistant(ONE), NOW],
}


@pytest.mark.parametrize("api", [*APIS, *ELSEWHERE])
@in_batches(("came", "wanted"), CASES.values(), ids=CASES.keys())
def test_markup_in_a_history_is_removed_or_becomes_calls(came: list[Any], wanted: list[Any], api: str) -> None:
    body, made = mend(came, api)
    expected, kept = mend(wanted, api, FixPolicy(None))
    assert list(said(made)) == list(said(kept))
    if api in APIS:
        assert turns(made.body) == turns(expected)
    assert {repair.code for repair in made.repairs} == {"LK101"}
    assert made.faults == ()
    again = mend_request(_read(made.body, api), made.body, REGISTRY.rules, Ledger(), UNSAFE)
    assert again.body is made.body
    assert made.body != body


def said(made: Mended) -> Iterator[tuple[Any, ...]]:
    assert made.request is not None
    for message in made.request.messages:
        calls = [(call.id, call.name, call.arguments.value) for call in message.calls]
        thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
        yield message.role, message.text, thoughts, calls, [(each.call_id, each.text) for each in message.results]


@pytest.mark.parametrize("api", [*APIS, *ELSEWHERE])
@in_batches("history", LEFT.values(), ids=LEFT.keys())
def test_uncertain_markup_stays(history: list[Any], api: str) -> None:
    body, made = mend(history, api)
    assert made.body is body


FORGOTTEN: dict[str, tuple[list[Any], list[Any]]] = {
    "nothing else": ([ASK, Assistant(ONE), NOW], [ASK, NOW]),
    "thought about": ([ASK, Assistant(ONE, reasoning="I need the register."), NOW], [ASK, NOW]),
    "with words": ([ASK, Assistant(f"I look.\n{ONE}"), NOW], [ASK, Assistant("I look.\n"), NOW]),
    "two": ([ASK, Assistant(f"I look. {ONE}\n{TWO}"), NOW], [ASK, Assistant("I look. "), NOW]),
}


@pytest.mark.parametrize("api", [*APIS, *ELSEWHERE])
@in_batches(("history", "wanted"), FORGOTTEN.values(), ids=FORGOTTEN.keys())
def test_calls_that_never_ran_are_removed(history: list[Any], wanted: list[Any], api: str) -> None:
    body, made = mend(history, api)
    assert made.faults == ()
    if len(wanted) == 2 and api in ("bedrock.converse", "google.generate_content"):
        assert made.body is body  # roles alternate there
        return
    assert list(said(made)) == list(said(mend(wanted, api, FixPolicy(None))[1]))
    assert mend_request(_read(made.body, api), made.body, REGISTRY.rules, Ledger(), UNSAFE).body is made.body


@pytest.mark.parametrize("model", ["google/gemma-3-27b-it", "mistralai/Mixtral-8x7B-Instruct", "sonar-pro"])
def test_a_message_stays_where_the_model_needs_roles_that_alternate(model: str) -> None:
    body, made = mend([ASK, Assistant(ONE), NOW], "openai.chat", model=model)
    assert made.body is body
    _, made = mend([ASK, Assistant(f"I look.\n{ONE}"), NOW], "openai.chat", model=model)
    assert [message["role"] for message in turns(made.body)] == ["assistant", "user"]
    assert {repair.code for repair in made.repairs} == {"LK101"}


@pytest.mark.parametrize("permit", [FixPolicy("unsafe", clean_history=False), SAFE], ids=["kept", "safe"])
@pytest.mark.parametrize("api", APIS)
def test_a_history_is_cleaned_only_with_permission(permit: FixPolicy, api: str) -> None:
    body, made = mend([ASK, Assistant(ONE, (FIND,)), AT], api, permit)
    assert made.body is body


ODD: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "fewer results than calls": ([ASK, Assistant(f"{ONE}{TWO}"), AT, NOW], {}),
    "more results than calls": ([ASK, Assistant(ONE), AT, FREE, NOW], {}),
    "the result of another call": ([ASK, Assistant(ONE), Assistant("", (FIND,)), AT, NOW], {}),
    "somebody speaks in between": ([ASK, Assistant(ONE), NOW, AT, NOW], {}),
    "a tool that is not declared": ([ASK, Assistant(ONE.replace("find_ship", "sink_ship")), AT, NOW], {}),
    "an id that the target refuses": (
        [ASK, Assistant(ONE), Result("find_ship:0", "in Oslo"), NOW], {"model": "kimi-k2.5"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("api", APIS)
@in_batches(("history", "more"), ODD.values(), ids=ODD.keys())
def test_no_call_is_invented(history: list[Any], more: dict[str, Any], api: str) -> None:
    """Results that answer nothing are dropped."""
    _, made = mend(history, api, **more)
    _, before = mend(history, api, FixPolicy(None), **more)
    _, kept = mend(history, api, FixPolicy("unsafe", clean_history=False), **more)
    assert [calls for *_, calls, _ in said(made) if calls] == [calls for *_, calls, _ in said(before) if calls]
    assert "LK101" not in {repair.code for repair in kept.repairs}


def _read(body: bytes, api: str) -> Any:
    record = Talk().record(api, False)
    record["request"]["body"] = body.decode()
    return read(record)


def test_a_loop_in_the_history_stays_and_later_markup_is_cleaned() -> None:
    stuck = Assistant("<tool_call>{" * 5000)
    body, mended = mend([ASK, stuck, NOW, Assistant(ONE, (FIND,)), AT, NOW], "openai.chat")
    before, after = json.loads(body)["messages"], json.loads(mended.body)["messages"]
    assert after[1] == before[1]
    assert [message.get("content") for message in after[3:4]] in ([""], [None])
