"""Every fault of a request that is repaired, in every API that can have it: what is told, what goes out, and only once.

A history is said once and written in every API's own shape. What a repair makes must be what the right history would have
been, to the byte: so the order and the values of all that is not at fault stay, and members that nobody knows, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, as_record, lint, read, schema
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.rewrite.request import Mended, mend_request
from wirelint.state.ledger import Ledger

NAMED = ("openai.chat", "anthropic.messages", "openai.responses", "cohere.chat", "bedrock.converse")
"""APIs whose calls have ids, at targets that take ids of nearly any form."""
WITH_IDS = (*NAMED, "google.generate_content")
BLOCKS = ("anthropic.messages", "bedrock.converse", "google.generate_content")
ROWS = ("openai.chat", "openai.responses", "cohere.chat", "ollama.chat")
ALL = (*WITH_IDS, "ollama.chat", "mistral.chat")
UNSAFE, SAFE = FixPolicy("unsafe"), FixPolicy("safe")
CLEAN = FixPolicy("unsafe", clean_history=True)

ASK, NOW, OK = User("Dig."), User("And now?"), Assistant("Well.")
A, B = "call_9QfXb2LmZt7RkVw3Nc8HsYpD", "call_Kp2ZtNv9QmXc4RbWs7LdHfYg"
NINE, NEXT = "a1B2c3D4e", "Zy9Xw8Vu7"
KIMI, CLAUDE = "kimi-k2.5", "anthropic.claude-opus-5"
TOOLS = {"dig": schema(n="integer")}
MARKUP = '<tool_call>\n{"name": "dig", "arguments": {"n": 0}}\n</tool_call>'


def called(*ids: str | None, name: str = "dig", text: str = "") -> Assistant:
    return Assistant(text, tuple(Call(name, {"n": n}, id_) for n, id_ in enumerate(ids)))


def told(*ids: str | None) -> list[Result]:
    return [Result(id_, f"root {n}") for n, id_ in enumerate(ids)]


def turn(*ids: str | None, **more: Any) -> list[Any]:
    return [called(*ids, **more), *told(*ids)]


@dataclass(frozen=True)
class Fault:
    """`finds`: the codes of what is told, `made`: those of the repairs, each in order of their places."""

    came: list[Any]
    wanted: list[Any]
    finds: str
    made: str | None = None
    apis: tuple[str, ...] = NAMED
    model: str = "acme-1"
    url: str | None = None
    permit: FixPolicy = UNSAFE

    @property
    def repairs(self) -> list[str]:
        return (self.finds if self.made is None else self.made).split()


LONG = "call_" + "b4" * 40
FAULTS: dict[str, Fault] = {
    # altered ids
    "both altered": Fault([ASK, *turn("functionsdig0"), NOW], [ASK, *turn("functions.dig:0"), NOW], "ID301", apis=WITH_IDS),
    "both altered, safely": Fault([ASK, *turn("functions_dig_7")], [ASK, *turn("functions.dig:7")], "ID301", permit=SAFE),
    "the result's altered": Fault(
        [ASK, called("functions.dig:3"), *told("functions_dig_3"), NOW], [ASK, *turn("functions.dig:3"), NOW], "ID301",
        apis=WITH_IDS,
    ),
    "the result's cut": Fault([ASK, called(A), *told(A[:22]), NOW], [ASK, *turn(A), NOW], "ID301", apis=WITH_IDS),
    "the result's is the word for none": Fault(
        [ASK, called(A), *told("undefined"), NOW], [ASK, *turn(A), NOW], "ID301", apis=WITH_IDS
    ),
    "two, crosswise": Fault(
        [ASK, called("functionsdig0", "functionsdig1"), Result("functionsdig1", "b"), Result("functionsdig0", "a")],
        [ASK, called("functions.dig:0", "functions.dig:1"), Result("functions.dig:1", "b"), Result("functions.dig:0", "a")],
        "ID301 ID301", apis=WITH_IDS,
    ),
    "two ids joined": Fault(
        [ASK, *turn(f"{A}|fc_41d0b7c9e2f3486aa5b1c2d3e4f50617"), NOW], [ASK, *turn(A), NOW], "ID301",
        apis=("openai.chat", "openai.responses", "cohere.chat", "google.generate_content"),
    ),
    "another id, by place alone": Fault(
        [ASK, called(A, B), *told("adk-1", "adk-2"), NOW], [ASK, *turn(A, B), NOW], "ID301 ID301",
        apis=("google.generate_content",),
    ),
    "for mistral, the result's altered": Fault(
        [ASK, called(NINE), *told("a1-B2-c3-D4-e"), NOW], [ASK, *turn(NINE), NOW], "ID301", apis=("mistral.chat",)
    ),
    # forms that a target refuses
    "kimi's short form": Fault(
        [ASK, *turn("dig:7"), NOW], [ASK, *turn("functions.dig:7"), NOW], "ID302", apis=WITH_IDS, model=KIMI
    ),
    "too many characters for converse": Fault(
        [ASK, *turn(LONG), NOW], [ASK, *turn(f"{LONG[:55]}_1ea45a9c"), NOW], "ID302", apis=("bedrock.converse",)
    ),
    "strange characters for converse": Fault(
        [ASK, *turn("dig 1/2"), NOW], [ASK, *turn("dig_1_2"), NOW], "ID302", apis=("bedrock.converse",)
    ),
    "a dot for claude": Fault(
        [ASK, *turn("functions.dig:0"), NOW], [ASK, *turn("functions_dig_0"), NOW], "ID302",
        apis=("anthropic.messages", "bedrock.converse"), model=CLAUDE,
    ),
    "not nine for mistral": Fault([ASK, *turn(A), NOW], [ASK, *turn(A[-9:]), NOW], "ID302", apis=("mistral.chat",)),
    "too many characters for openai": Fault(
        [ASK, *turn(LONG), NOW], [ASK, *turn(LONG[:64]), NOW], "ID302", apis=("openai.chat", "openai.responses"),
        url="https://api.openai.com",
    ),
    # results without calls
    "trimmed at the front": Fault([*told(A), NOW], [NOW], "ID303", apis=ALL),
    "a foreign one behind a good one": Fault(
        [ASK, *turn(NINE), Result(NEXT, "a stone"), NOW], [ASK, *turn(NINE), NOW], "ID303",
        apis=(*WITH_IDS, "mistral.chat"),
    ),
    "a row loses it": Fault([ASK, OK, *told(A), OK, NOW], [ASK, OK, OK, NOW], "ID303", apis=(*ROWS, "mistral.chat")),
    "a message goes with its only block": Fault([ASK, OK, *told(A), NOW], [ASK, OK, NOW], "ID303", apis=BLOCKS),
    "two trimmed": Fault([*told(A, B), NOW], [NOW], "ID303 ID303", apis=ALL),
    "more results than calls, and no ids": Fault(
        [ASK, called(None), *told(None, None), NOW], [ASK, called(None), *told(None), NOW], "ID303",
        apis=("google.generate_content",),
    ),
    "nothing was called, and no ids": Fault(
        [ASK, OK, NOW, *told(None), NOW], [ASK, OK, NOW, NOW], "ID303", apis=("google.generate_content", "ollama.chat")
    ),
    # shared ids
    "two calls of one message": Fault(
        [ASK, *turn("dig", "dig"), NOW], [ASK, *turn("dig", "dig_2"), NOW], "ID305", apis=WITH_IDS
    ),
    "two turns": Fault(
        [ASK, *turn(A), NOW, *turn(A, name="cut"), NOW], [ASK, *turn(A), NOW, *turn(f"{A}_2", name="cut"), NOW], "ID305",
        apis=WITH_IDS,
    ),
    "three, counted": Fault(
        [ASK, *turn("dig:0", "dig:0", "dig:0")], [ASK, *turn("dig:0", "dig:1", "dig:2")], "ID305", model="kimi-k3"
    ),
    "two for mistral": Fault([ASK, *turn(NINE, NINE)], [ASK, *turn(NINE, "1B2c3D4e2")], "ID305", apis=("mistral.chat",)),
    # several faults at once
    "short and shared": Fault(
        [ASK, *turn("dig:0", "dig:0")], [ASK, *turn("functions.dig:0", "functions.dig:1")], "ID302 ID305", model=KIMI
    ),
    "altered, and one too many": Fault(
        [ASK, *turn("functionsdig0"), Result("lost", "x"), NOW], [ASK, *turn("functions.dig:0"), NOW], "ID301 ID303",
        apis=WITH_IDS,
    ),
    # printed parts
    "a question printed": Fault(
        [User("[{'type': 'text', 'text': 'Where?'}]")], [User("Where?")], "LK104", apis=(*ALL, "openai.completions")
    ),
    "an answer printed": Fault(
        [ASK, Assistant("[TextBlock(text='Here.', type='text')]"), NOW], [ASK, Assistant("Here."), NOW], "LK104", apis=ALL
    ),
    # markup in the history
    "the call beside it": Fault(
        [ASK, Assistant(f"I dig.{MARKUP}", called(NINE).calls), *told(NINE), NOW],
        [ASK, *turn(NINE, text="I dig."), NOW], "LK101", apis=ALL, permit=CLEAN,
    ),
    "the call beside it, and no words": Fault(
        [ASK, Assistant(MARKUP, called(NINE).calls), *told(NINE), NOW], [ASK, *turn(NINE), NOW], "LK101", apis=ALL,
        permit=CLEAN,
    ),
}  # fmt: skip


def _runs() -> list[Any]:
    return [pytest.param(fault, api, id=f"{name}-{api}") for name, fault in FAULTS.items() for api in fault.apis]


def _record(history: list[Any], api: str, fault: Fault) -> dict[str, Any]:
    tools = {} if api == "openai.completions" else TOOLS
    made = Talk(history, text="Nothing.", model=fault.model, tools=tools).record(api, False)
    if fault.url:
        made["request"]["url"] = made["request"]["url"].replace("http://llm.test", fault.url)
    return made


def _mend(record: Mapping[str, Any], permit: FixPolicy) -> tuple[bytes, Mended]:
    body = as_record(record).request_body or b""
    return body, mend_request(read(record), body, REGISTRY.rules, Ledger(), permit)


def _with_body(record: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    return {**record, "request": {**record["request"], "body": body.decode()}}


def _told(record: Mapping[str, Any]) -> list[str]:
    """The faults of the request, but for its tools, which a raw prompt cannot have."""
    return sorted(one.code for one in lint([record]) if one.side == "request" and one.name != "tools-on-raw-endpoint")


@pytest.mark.parametrize(("fault", "api"), _runs())
def test_a_fault_is_told_and_mended_once(fault: Fault, api: str) -> None:
    record = _record(fault.came, api, fault)
    assert _told(record) == sorted(fault.finds.split())
    _, made = _mend(record, fault.permit)
    assert made.faults == ()
    assert made.body.decode() == as_record(_record(fault.wanted, api, fault)).request_body.decode()  # type: ignore[union-attr]
    assert sorted(repair.code for repair in made.repairs) == sorted(fault.repairs)
    mended = _with_body(record, made.body)
    assert _told(mended) == []
    assert _mend(mended, fault.permit)[1].body == made.body


@pytest.mark.parametrize(("fault", "api"), _runs())
def test_members_that_nobody_knows_stay(fault: Fault, api: str) -> None:
    came, wanted = (_marked(_record(history, api, fault)) for history in (fault.came, fault.wanted))
    _, made = _mend(came, fault.permit)
    assert made.body == as_record(wanted).request_body


def _marked(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a member in every object of the history that no reader knows, and one beside the history."""
    body = json.loads(record["request"]["body"])
    for name in ("messages", "input", "contents"):
        if isinstance(body.get(name), list):
            body[name] = [_mark(item) for item in body[name]]
    body["x_beside"] = {"n": 1.50, "m": None}
    return _with_body(record, json.dumps(body, ensure_ascii=False).encode())


def _mark(value: Any) -> Any:
    if isinstance(value, list):
        return [_mark(item) for item in value]
    if not isinstance(value, dict) or "data" in value or set(value) == {"output"}:
        return value  # what a tool gave, or was given, is not ours to add to
    return {
        "x_first": "é",
        **{key: item if key in ("args", "input", "arguments") else _mark(item) for key, item in value.items()},
    }


def test_gemini_gets_no_call_that_it_would_want_signed() -> None:
    talk = Talk([ASK, Assistant(MARKUP), Result("x", "a root"), NOW], tools=TOOLS)
    for model, codes in (("gemini-2.5-flash", ["LK101"]), ("gemini-3-pro-preview", ["ID303"])):
        made = replace(talk, model=model).record("google.generate_content", False)
        body = json.loads(made["request"]["body"])
        body["contents"][2]["parts"][0]["functionResponse"]["name"] = "dig"
        _, mended = _mend(_with_body(made, json.dumps(body).encode()), CLEAN)
        assert [repair.code for repair in mended.repairs] == codes


@pytest.mark.parametrize("api", WITH_IDS)
def test_ids_of_a_client_that_agree_with_each_other_stay(api: str) -> None:
    """The client has put ids of its own in the place of those that it was given, on the call and its result alike."""
    engine = Engine(REGISTRY.rules)
    call = Call("dig", {"n": 0}, "0qx7hb2m")
    engine.check(read(Talk([ASK], calls=[call], tools=TOOLS).record(api, False)))
    record = Talk([ASK, *turn("tool-1"), NOW], tools=TOOLS).record(api, False)
    body = as_record(record).request_body or b""
    placed = engine.ledger.place(read(record))
    assert mend_request(placed, body, REGISTRY.rules, engine.ledger, UNSAFE).body is body
    assert "ID301" not in {finding.code for finding in engine.check(read(record))}
