"""Every fault of a reply in every API that can have it, whole and streamed: found, fixed as claimed, and gone afterwards.

A fault is a `Talk`, or a healthy stream with something changed in its documents. What the client has in the end is told in
the vocabulary of the model; that it is the same in the vocabulary of the vendor is what `traits` is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.apis import talk_bedrock_converse as converse
from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, schema, some
from tests.fixes import test_contract as contract
from tests.fixes.drive import run
from tests.selection import in_batches, is_complete, rotated
from wirelint.apis import APIS, channel_of
from wirelint.apis.traits import Ending, ending, traits
from wirelint.model import Choice

ALL = tuple(api.name for api in APIS if channel_of(api.name) == "model")
RAW = ("openai.completions", "deepinfra.inference")
PLAIN = (*RAW, "ollama.generate")
"""APIs without calls."""
CALLING = tuple(api for api in ALL if api not in PLAIN)
TEXTS = tuple(api for api in CALLING if traits(api).arguments == "text")
"""APIs that have arguments as text, which can be damaged; a stream of blocks has so too."""
BLOCKS = tuple(api for api in CALLING if traits(api).arguments == "block")
OBJECTS = tuple(api for api in CALLING if traits(api).arguments == "object")
SSE = tuple(api for api in ALL if not api.startswith("ollama") and api != "bedrock.converse")

RULES = {rule.name: rule for rule in REGISTRY.rules}

ASK = (User("What is the weather in Oslo?"),)
TOOLS = {"get_weather": ("Tells the weather of a city.", schema(["city"], city="string", days="integer"))}
WHERE = {"city": "Oslo"}
MARKUP = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'

Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Fault:
    """A faulty reply of a rule's, in the APIs that can hold it, and what a client has when it is repaired.

    `calls`, `text`, `reasoning` and `ends` are None where they do not matter. `change`: what is done to the documents of
    the healthy stream; such a fault has no whole form. `safety` is that of the fix, None where there is none.
    """

    rule: str
    talk: Talk
    apis: Sequence[str]
    safety: str | None
    calls: tuple[tuple[str, Any], ...] | None = None
    text: str | None = None
    reasoning: str | None = None
    ends: Ending | None = None
    change: Change | None = None
    forms: Sequence[bool] = (False, True)


def in_calls(change: Callable[[int, dict[str, Any]], None]) -> Change:
    """A change of every object of a stream, however deep, given the number of its document."""

    def walk(value: Any, number: int) -> None:
        if isinstance(value, dict):
            change(number, value)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner, number)

    def changed(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for number, document in enumerate(documents):
            walk(document, number)
        return documents

    return changed


def _one_index(_: int, value: dict[str, Any]) -> None:
    for name in ("index", "contentBlockIndex", "output_index"):
        if value.get(name) == 1:
            value[name] = 0


def _other_id(_: int, value: dict[str, Any]) -> None:
    """Another id in each later event: OpenAI's deltas go on under an index, Responses repeats the item."""
    if "function" in value and "index" in value and "id" not in value:
        value["id"] = "call_TheSecondOfTwoIds00000"
    if value.get("type") == "function_call" and value.get("status") == "completed" and value["arguments"]:
        value["call_id"] = "call_TheSecondOfTwoIds00000"


def _late_id(_: int, value: dict[str, Any]) -> None:
    """No id in the first event of a call: OpenAI's deltas get it with the arguments, Responses with the whole item."""
    if "function" in value and "index" in value:
        id_ = value.pop("id", None)
        if id_ is None and value["function"]["arguments"].endswith("}"):
            value["id"] = TWO[0].id
    if value.get("type") == "function_call" and not value["arguments"]:
        value["call_id"] = ""


def _growing(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Has each delta of arguments repeat all before it."""
    grown = ""

    def grow(_: int, value: dict[str, Any]) -> None:
        nonlocal grown
        whole = "done" in str(value.get("type")) or value.get("status") == "completed"
        is_delta = "function_call_arguments.delta" in str(value.get("type"))
        names = ("delta",) if is_delta else ("partial_json", "arguments", "input")
        for name in () if whole else names:
            if isinstance(value.get(name), str):
                grown = value[name] = grown + value[name]

    return in_calls(grow)(documents)


def _without_reason(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def empty(number: int, value: dict[str, Any]) -> None:
        for name in ("finish_reason", "stop_reason", "stopReason"):
            if isinstance(value.get(name), str):
                value[name] = None if number % 2 else ""

    return in_calls(empty)(documents)


def _no_reason(_: int, value: dict[str, Any]) -> None:
    for name in ("finish_reason", "stop_reason", "stopReason"):
        value.pop(name, None)


def _one_item_id(_: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def rename(_: int, value: dict[str, Any]) -> None:
        for name in ("id", "item_id"):
            if str(value.get(name)).startswith("fc_"):
                value[name] = "fc_1"

    return in_calls(rename)(_)


def _said_again(_: int, value: dict[str, Any]) -> None:
    if "function" in value and "index" in value:
        value |= {"id": TWO[0].id, "type": "function"}
        value["function"]["name"] = TWO[0].name


TWO = (
    Call("get_weather", WHERE, "call_Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1"),
    Call("get_weather", {"city": "Rome"}, "call_Bb2Bb2"),
)

FAULTS = {
    "markup": Fault("xml-leak", Talk(ASK, f"Let me look.\n{MARKUP}", tools=TOOLS), CALLING, "unsafe",
                    (("get_weather", WHERE),), "Let me look.", ends="calls"),
    "two in markup": Fault("xml-leak", Talk(ASK, f"{MARKUP}\n{MARKUP.replace('Oslo', 'Rome')}", tools=TOOLS), CALLING,
                           "unsafe", (("get_weather", WHERE), ("get_weather", {"city": "Rome"})), "", ends="calls"),
    "markup cut by length": Fault("xml-leak", Talk(ASK, MARKUP, tools=TOOLS, finish="length"), CALLING, "unsafe",
                                  (("get_weather", WHERE),), "", ends="length"),
    "markup in the reasoning": Fault("xml-leak", Talk(ASK, reasoning=f"I look.\n{MARKUP}", tools=TOOLS), CALLING, "unsafe",
                                     (("get_weather", WHERE),), "", "I look.", ends="calls"),
    "thought": Fault("think-leak", Talk(ASK, "<think>\nThey ask for Oslo.\n</think>\n\nIt rains."),
                     tuple(api for api in ALL if api not in RAW), "unsafe", (), "It rains.", "They ask for Oslo.", "ended"),
    "thought beside reasoning": Fault(
        "think-leak", Talk(ASK, "<think>\nOslo, then.\n</think>\n\nIt rains.", reasoning="A city."),
        tuple(api for api in ALL if api not in RAW), "unsafe", (), "It rains.", ends="ended"),
    "thought behind reasoning": Fault(
        "think-leak", Talk(ASK, "<think>\nOslo, then.\n</think>\n\nIt rains.", reasoning="A city. "),
        ("cohere.chat", "bedrock.converse"), "unsafe", (), "It rains.", "A city. Oslo, then.", "ended"),
    "end of a turn": Fault("control-token-leak", Talk(ASK, "It rains.<|im_end|>"),
                           tuple(api for api in ALL if api not in RAW), "safe", text="It rains."),
    "past the end of a turn": Fault(
        "control-token-leak", Talk(ASK, "It rains.<|im_end|>\n<|im_start|>user\nAnd in Rome?<|im_end|>\n"), ALL, "unsafe",
        text="It rains."),
    "token in a name": Fault(
        "control-token-leak", Talk(ASK, calls=(Call("get_weather<|channel|>json", WHERE),), tools=TOOLS),
        CALLING, "safe", (("get_weather", WHERE),), ends="calls"),
    "equal values": Fault("concatenated-json", Talk(ASK, calls=(Call("get_weather", json.dumps(WHERE) * 2),), tools=TOOLS),
                          TEXTS, "safe", (("get_weather", WHERE),), ends="calls"),
    "two values": Fault("concatenated-json",
                        Talk(ASK, calls=(Call("get_weather", '{"city": "Oslo"}{"city": "Rome"}'),), tools=TOOLS),
                        TEXTS, "unsafe", (("get_weather", WHERE), ("get_weather", {"city": "Rome"})), ends="calls"),
    "a comma too many": Fault("invalid-json-arguments",
                              Talk(ASK, calls=(Call("get_weather", '{"city": "Oslo",}'),), tools=TOOLS),
                              TEXTS, "unsafe", (("get_weather", WHERE),), ends="calls"),
    "a token behind the arguments": Fault(
        "invalid-json-arguments", Talk(ASK, calls=(Call("get_weather", '{"city": "Oslo"}<|tool_call_end|>'),), tools=TOOLS),
        TEXTS, "unsafe", (("get_weather", WHERE),), ends="calls"),
    "deltas that grow": Fault(
        "concatenated-json", Talk(ASK, calls=(Call("get_weather", {"city": "Oslo", "days": 3}),), tools=TOOLS, step=4),
        (*(api for api in TEXTS if api != "mistral.chat"), *BLOCKS), "safe",
        (("get_weather", {"city": "Oslo", "days": 3}),), ends="calls", change=_growing, forms=(True,)),
    "a number in quotes": Fault("schema-violation",
                                Talk(ASK, calls=(Call("get_weather", {"city": "Oslo", "days": "3"}),), tools=TOOLS),
                                CALLING, "unsafe", (("get_weather", {"city": "Oslo", "days": 3}),), ends="calls"),
    "a prefix": Fault("undeclared-tool", Talk(ASK, calls=(Call("functions.get_weather", WHERE),), tools=TOOLS),
                      CALLING, "safe", (("get_weather", WHERE),), ends="calls"),
    "a tool of nobody's": Fault("undeclared-tool", Talk(ASK, calls=(Call("open_window", {}),), tools=TOOLS),
                                CALLING, "unsafe", (), ends="ended"),
    "calls that end in stop": Fault(
        "finish-reason-mismatch", Talk(ASK, calls=(Call("get_weather", WHERE),), tools=TOOLS, finish="stop"),
        tuple(api for api in CALLING if traits(api).has_reason_for_calls), "safe", (("get_weather", WHERE),), ends="calls"),
    "calls that end in nothing": Fault(
        "finish-reason-mismatch", Talk(ASK, calls=(Call("get_weather", WHERE),), tools=TOOLS),
        tuple(api for api in CALLING if traits(api).has_reason_for_calls), "safe", (("get_weather", WHERE),), ends="calls",
        change=_without_reason, forms=(False, True)),
    "calls that end without a reason": Fault(
        "finish-reason-mismatch", Talk(ASK, calls=(Call("get_weather", WHERE),), tools=TOOLS),
        tuple(api for api in CALLING if traits(api).has_reason_for_calls), "safe", (("get_weather", WHERE),), ends="calls",
        change=in_calls(_no_reason), forms=(False, True)),
    "no call where one is promised": Fault(
        "finish-reason-mismatch", Talk(ASK, "It rains.", tools=TOOLS, finish="tool"),
        tuple(api for api in CALLING if traits(api).has_reason_for_calls), "safe", (), "It rains.", ends="ended"),
    "one id for two": Fault(
        "duplicate-id", Talk(ASK, calls=(TWO[0], Call("get_weather", {"city": "Rome"}, TWO[0].id)), tools=TOOLS),
        tuple(api for api in CALLING if api != "ollama.chat"), "unsafe",
        (("get_weather", WHERE), ("get_weather", {"city": "Rome"})), ends="calls"),
    "one item id for two": Fault(
        "duplicate-id", Talk(ASK, calls=(TWO[0], Call("get_weather", {"city": "Rome"}, TWO[0].id)), tools=TOOLS),
        ("openai.responses",), "unsafe", (("get_weather", WHERE), ("get_weather", {"city": "Rome"})), ends="calls",
        change=_one_item_id),
    "an empty id": Fault(
        "duplicate-id", Talk(ASK, calls=(Call("get_weather", WHERE, ""),), tools=TOOLS),
        tuple(api for api in CALLING if traits(api).has_call_ids), "unsafe", (("get_weather", WHERE),), ends="calls"),
    "an id and a name in each delta": Fault(
        "id-unstable", Talk(ASK, calls=TWO[:1], tools=TOOLS, step=4), ("openai.chat", "mistral.chat"), "safe",
        (("get_weather", WHERE),), ends="calls", change=in_calls(_said_again), forms=(True,)),
    "Kimi's short ids": Fault(
        "nonconforming-id", Talk(ASK, calls=(Call("get_weather", WHERE, "get_weather:0"),), tools=TOOLS, model="kimi-k2"),
        tuple(api for api in CALLING if api not in OBJECTS), "safe", (("get_weather", WHERE),), ends="calls"),
    "two calls under one index": Fault(
        "tool-index-collision", Talk(ASK, calls=TWO, tools=TOOLS),
        tuple(api for api in CALLING if traits(api).has_call_index and not traits(api).has_repeated_calls), "safe",
        (("get_weather", WHERE), ("get_weather", {"city": "Rome"})), ends="calls",
        change=in_calls(_one_index), forms=(True,)),
    "two items under one index": Fault(
        "tool-index-collision", Talk(ASK, calls=TWO, tools=TOOLS), ("openai.responses",), None,
        change=in_calls(_one_index), forms=(True,)),
    "an id that changes": Fault(
        "id-unstable", Talk(ASK, calls=TWO[:1], tools=TOOLS), ("openai.chat", "mistral.chat", "openai.responses"), "safe",
        (("get_weather", WHERE),), ends="calls", change=in_calls(_other_id), forms=(True,)),
    "an id that comes late": Fault(
        "id-unstable", Talk(ASK, calls=TWO[:1], tools=TOOLS), ("openai.chat", "mistral.chat", "openai.responses"), "safe",
        (("get_weather", WHERE),), ends="calls", change=in_calls(_late_id), forms=(True,)),
    "cut off": Fault("truncated-stream", Talk(ASK, "It rains, and it will rain on until the day after tomorrow."),
                     ALL, None, change=lambda documents: documents[: len(documents) * 2 // 3], forms=(True,)),
}  # fmt: skip


for _name in ("equal values", "two values", "a comma too many", "a token behind the arguments"):
    FAULTS[f"{_name} in a stream of blocks"] = replace(FAULTS[_name], apis=BLOCKS, forms=(True,))


def _changed(record: dict[str, Any], talk: Talk, api: str, change: Change) -> None:
    """Changes the documents of a streamed reply, in its framing."""
    response = record["response"]
    if api == "bedrock.converse":
        told = list(converse.events(talk))
        bodies = change([body for _, body in told])
        response["body"] = converse.messages(*((name, body) for (name, _), body in zip(told, bodies, strict=False)))
        return
    end = "\n" if api.startswith("ollama") else "\r\n\r\n" if api.startswith("google") else "\n\n"
    events = [event.rpartition("data: ") for event in response["body"].split(end) if event]
    documents = change([json.loads(text) for *_, text in events if text != "[DONE]"])
    lines = (f"{head}{word}{json.dumps(one)}{end}" for (head, word, _), one in zip(events, documents, strict=False))
    terminator = f"data: [DONE]{end}" if events[-1][2] == "[DONE]" and len(documents) == len(events) - 1 else ""
    response["body"] = "".join(lines) + terminator


def record_of(fault: Fault, api: str, streamed: bool) -> dict[str, Any]:
    record = fault.talk.record(api, streamed)
    if fault.change is not None and streamed:
        _changed(record, fault.talk, api, fault.change)
    elif fault.change is not None:
        body = record["response"]["body"]
        record["response"]["body"] = fault.change([json.loads(body) if isinstance(body, str) else body])[0]
    return record


def _table() -> Iterator[Any]:
    for name, fault in FAULTS.items():
        for api in rotated(fault.apis, name, 5):
            for streamed in rotated(fault.forms, name + api):
                form = "stream" if streamed else "whole"
                yield pytest.param(fault, api, streamed, id=f"{fault.rule}-{name}-{api}-{form}")


TABLE = list(_table())


@in_batches(("fault", "api", "streamed"), TABLE)
def test_a_fault_is_found_and_repaired(fault: Fault, api: str, streamed: bool) -> None:
    result = contract.check_reply(RULES[fault.rule], [record_of(fault, api, streamed)], cut_often=is_complete())
    assert [finding.name for finding in result.findings] == [fault.rule]
    assert [finding.fix.safety if finding.fix else None for finding in result.findings] == [fault.safety]
    assert result.faults == ()
    assert [repair.safety for repair in result.repairs] == ([] if fault.safety is None else [fault.safety])
    assert result.changed is (fault.safety is not None)
    if fault.safety is None:
        return
    assert result.left == (), result.delivered.decode("utf-8", "replace")
    reply = some(result.after.reply)
    assert [one.kind for one in reply.faults] == []
    _check(fault, api, reply.choices[0])


def _check(fault: Fault, api: str, choice: Choice) -> None:
    own = traits(api)
    if fault.calls is not None:
        assert [(call.name, call.arguments.value) for call in choice.calls] == list(fault.calls)
        ids = [call.id for call in choice.calls]
        assert len(set(ids)) == len(ids) or not own.has_call_ids
        assert all(ids) or not own.has_call_ids
    if fault.text is not None:
        assert choice.text.strip() == fault.text
    if fault.reasoning is not None:
        assert choice.reasoning.strip() == fault.reasoning
    if fault.ends == "calls":
        assert choice.finish_reason == own.calls
    elif fault.ends is not None:
        assert ending(choice.finish_reason) == fault.ends


FRAMINGS = {
    "white space before a field": lambda body, end: _nth(
        body, end, lambda event: event.replace("data: ", "  data: ", 1)
    ),
    "a field's name twice": lambda body, end: _nth(body, end, lambda event: event.replace("data: ", "data: data: ", 1)),
    "no blank line between two": lambda body, end: "\n".join(
        (end.join(body.split(end)[:3]), end.join(body.split(end)[3:]))
    ),
}


def _nth(body: str, end: str, change: Callable[[str], str]) -> str:
    """The body with its third event changed."""
    events = body.split(end)
    return end.join([*events[:2], change(events[2]), *events[3:]])


@pytest.mark.parametrize("damage", FRAMINGS.values(), ids=FRAMINGS)
@in_batches("api", SSE)
def test_framing_is_fixed_in_every_api(api: str, damage: Callable[[str, str], str]) -> None:
    record = Talk(ASK, "It rains, and it will rain on until the day after tomorrow.").record(api, True)
    end = "\r\n\r\n" if api.startswith("google") else "\n\n"
    record["response"]["body"] = damage(record["response"]["body"], end)
    result = contract.check_reply(RULES["sse-framing"], [record], cut_often=is_complete())
    assert [(finding.name, finding.fix.safety if finding.fix else None) for finding in result.findings] == [
        ("sse-framing", "safe")
    ]
    assert [repair.safety for repair in result.repairs] == ["safe"]
    assert result.left == (), result.delivered.decode()
    before, after = result.before.reply, result.after.reply
    assert [choice.text for choice in some(after).choices] == [choice.text for choice in some(before).choices]


@pytest.mark.parametrize("api", [api for api in ALL if traits(api).id_model is not None and api in CALLING])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_made_id_has_the_form_of_the_vendor(api: str, streamed: bool) -> None:
    result = run(record_of(FAULTS["markup"], api, streamed), ["xml-leak"])
    made, model = some(result.after.reply).choices[0].calls[0].id or "", traits(api).id_model or ""
    kept = model.rstrip("A")
    assert made.startswith(kept)
    assert len(made) == len(model)


@pytest.mark.parametrize("api", PLAIN)
@pytest.mark.parametrize("streamed", [False, True])
def test_raw_endpoints_show_native_markup(api: str, streamed: bool) -> None:
    raw = {"raw": True} if api == "ollama.generate" else {}
    talk = Talk(ASK, f"<think>\nOslo.\n</think>\n{MARKUP}", request=raw)
    result = run(talk.record(api, streamed))
    assert [(finding.name, finding.message) for finding in result.findings] == []
    assert not result.changed


HISTORY = (
    *ASK,
    Assistant(calls=(Call("get_weather", WHERE, "Aa1Aa1Aa1"),)),
    Result("Aa1Aa1Aa1", "rain, 4 °C"),
)
CLEAN = {
    "a call": Talk(ASK, calls=TWO[:1], tools=TOOLS),
    "parallel calls": Talk(ASK, calls=TWO, tools=TOOLS),
    "words before a call": Talk(ASK, "I look it up.", calls=TWO[:1], reasoning="Oslo, then.", tools=TOOLS),
    "an answer": Talk(HISTORY, "It rains in Oslo, 4 °C.", tools=TOOLS),
    "an answer after a thought": Talk(HISTORY, "It rains, 4 °C.", reasoning="The tool says rain.", tools=TOOLS),
    "cut by length": Talk(ASK, "It rains and", finish="length"),
    "markup shown in a fence": Talk(ASK, f"A call is written so:\n```\n{MARKUP}\n```\nNow you.", tools=TOOLS),
    "tags in words": Talk(ASK, "The tag `<think>` opens a thought."),
}


CLEAN_IN_EVERY_API = [
    pytest.param(talk, api, streamed, id=f"{name}-{api}-{'stream' if streamed else 'whole'}")
    for name, talk in CLEAN.items()
    for api in ALL
    for streamed in rotated([False, True], name + api)
    if not (talk.calls and api in PLAIN)
]


@in_batches(("talk", "api", "streamed"), CLEAN_IN_EVERY_API)
def test_a_healthy_reply_stays_unchanged(talk: Talk, api: str, streamed: bool) -> None:
    record = (replace(talk, tools={}) if api in PLAIN else talk).record(api, streamed)
    result = run(record)
    body = record["response"]["body"]
    assert [(finding.name, finding.message) for finding in result.findings if finding.severity != "info"] == []
    assert result.delivered == (body if isinstance(body, bytes) else body.encode())
    assert not result.changed
