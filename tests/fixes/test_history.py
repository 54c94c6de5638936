"""Fixes of markup in earlier turns of the assistant, and markup that stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.build import APIS, REGISTRY, Call, Result, Talk, User, as_record, read, schema, turns_of
from tests.rewrite.mending import SAFE, UNSAFE
from tests.selection import in_batches
from tests.tables import tables
from wirelint.fix import FixPolicy
from wirelint.model import Reasoning
from wirelint.rewrite.request import Mended, mend_request
from wirelint.state.ledger import Ledger

ELSEWHERE = ("openai.responses", "cohere.chat", "bedrock.converse", "google.generate_content", "ollama.chat")
TOOLS = {"find_ship": schema(name="string"), "berths": schema(["port"], port="string", limit="integer")}
ONE = '<tool_call>\n{"name": "find_ship", "arguments": {"name": "Aurora"}}\n</tool_call>'
TWO = (
    "<tool_call>\n<function=berths>\n<parameter=port>Oslo</parameter>\n<parameter=limit>3</parameter>\n</function>\n"
    "</tool_call>"
)
FIND = Call("find_ship", {"name": "Aurora"}, "call_Rw4kTz8QnXv2LbYc6MsPdHfG")
BERTHS = Call("berths", {"port": "Oslo", "limit": 3}, "call_Zx9QmN4vTb7RkLw2CsHdPfYg")
KNOWN = {
    "ASK": User("Where is the Aurora?"),
    "NOW": User("And the Boreas?"),
    "FIND": FIND,
    "BERTHS": BERTHS,
    "AT": Result(FIND.id, "in Oslo"),
    "FREE": Result(BERTHS.id, "berth 4"),
}
MARKUP = {
    "%one%": ONE,
    "%two%": TWO,
    "%other%": ONE.replace("Aurora", "Boreas"),
    "%sink%": ONE.replace("find_ship", "sink_ship"),
}
TABLES = tables(__file__)


def mend(history: list[Any], api: str, permit: FixPolicy = UNSAFE, **more: Any) -> tuple[bytes, Mended]:
    written = re.sub("%[a-z]+%", lambda name: json.dumps(MARKUP[name[0]])[1:-1], json.dumps(history))
    turns = turns_of(json.loads(written), KNOWN)
    record = Talk(turns, text="Far out.", tools=TOOLS, **more).record(api, False)
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


@pytest.mark.parametrize("api", [*APIS, *ELSEWHERE])
@in_batches(("came", "wanted"), TABLES["cases"].values(), ids=TABLES["cases"])
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
@in_batches(("history",), TABLES["left"].values(), ids=TABLES["left"])
def test_uncertain_markup_stays(history: list[Any], api: str) -> None:
    body, made = mend(history, api)
    assert made.body is body


@pytest.mark.parametrize("api", [*APIS, *ELSEWHERE])
@in_batches(("history", "wanted"), TABLES["forgotten"].values(), ids=TABLES["forgotten"])
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
    body, made = mend(["ASK", {"text": "%one%"}, "NOW"], "openai.chat", model=model)
    assert made.body is body
    _, made = mend(["ASK", {"text": "I look.\n%one%"}, "NOW"], "openai.chat", model=model)
    assert [message["role"] for message in turns(made.body)] == ["assistant", "user"]
    assert {repair.code for repair in made.repairs} == {"LK101"}


@pytest.mark.parametrize("permit", [FixPolicy("unsafe", clean_history=False), SAFE], ids=["kept", "safe"])
@pytest.mark.parametrize("api", APIS)
def test_a_history_is_cleaned_only_with_permission(permit: FixPolicy, api: str) -> None:
    body, made = mend(["ASK", {"text": "%one%", "calls": ["FIND"]}, "AT"], api, permit)
    assert made.body is body


@pytest.mark.parametrize("api", APIS)
@in_batches(("history", "more"), TABLES["odd"].values(), ids=TABLES["odd"])
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
    stuck, clear = {"text": "<tool_call>{" * 5000}, {"text": "%one%", "calls": ["FIND"]}
    body, mended = mend(["ASK", stuck, "NOW", clear, "AT", "NOW"], "openai.chat")
    before, after = json.loads(body)["messages"], json.loads(mended.body)["messages"]
    assert after[1] == before[1]
    assert [message.get("content") for message in after[3:4]] in ([""], [None])
