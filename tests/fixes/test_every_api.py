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
from tests.build import REGISTRY, Call, Talk, User, schema, some, turns_of
from tests.fixes import test_contract as contract
from tests.fixes.drive import run
from tests.selection import in_batches, is_complete, rotated
from tests.tables import tables
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

TABLES = tables(__file__)
RULES = {rule.name: rule for rule in REGISTRY.rules}

ASK = (User("What is the weather in Oslo?"),)
TOOLS = {"get_weather": ("Tells the weather of a city.", schema(["city"], city="string", days="integer"))}
WHERE = {"city": "Oslo"}
MARKUP = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'

Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
REASON_MEMBERS = {"finish_reason", "stop_reason", "stopReason"}


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
    calls: Sequence[Any] | None = None
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


def _empty_reason(number: int, value: dict[str, Any]) -> None:
    for name in REASON_MEMBERS & value.keys():
        if isinstance(value[name], str):
            value[name] = None if number % 2 else ""


def _no_reason(_: int, value: dict[str, Any]) -> None:
    for name in REASON_MEMBERS:
        value.pop(name, None)


def _one_item_id(_: int, value: dict[str, Any]) -> None:
    for name in ("id", "item_id"):
        if str(value.get(name)).startswith("fc_"):
            value[name] = "fc_1"


def _said_again(_: int, value: dict[str, Any]) -> None:
    if "function" in value and "index" in value:
        value |= {"id": TWO[0].id, "type": "function"}
        value["function"]["name"] = TWO[0].name


TWO = (
    Call("get_weather", WHERE, "call_Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1"),
    Call("get_weather", {"city": "Rome"}, "call_Bb2Bb2"),
)

CHANGES: dict[str, Change] = {
    "growing": _growing,
    "reason emptied": in_calls(_empty_reason),
    "no reason": in_calls(_no_reason),
    "one item id": in_calls(_one_item_id),
    "one index": in_calls(_one_index),
    "other id": in_calls(_other_id),
    "late id": in_calls(_late_id),
    "said again": in_calls(_said_again),
    "cut": lambda documents: documents[: len(documents) * 2 // 3],
}
GROUPS = {"ALL": ALL, "CALLING": CALLING, "TEXTS": TEXTS, "BLOCKS": BLOCKS, "OBJECTS": OBJECTS} | {
    "COOKED": tuple(api for api in ALL if api not in RAW),
    "REASONS": tuple(api for api in CALLING if traits(api).has_reason_for_calls),
    "IDS": tuple(api for api in CALLING if traits(api).has_call_ids),
    "INDEXED": tuple(api for api in CALLING if traits(api).has_call_index and not traits(api).has_repeated_calls),
}


def _talk(said: dict[str, Any]) -> Talk:
    calls = [Call(*call) for call in said.get("calls", ())]
    history = turns_of(said["history"], {}) if "history" in said else ASK
    return Talk(**{"tools": TOOLS, **said, "history": history, "calls": calls})


def _fault(row: dict[str, Any]) -> Fault:
    """A row of the table. `apis`: names of APIs and of groups; those behind a minus are taken out again."""
    apis: list[str] = []
    for word in row["apis"].split():
        names = GROUPS.get(word.removeprefix("-"), (word.removeprefix("-"),))
        apis = [api for api in apis if api not in names] if word[0] == "-" else [*apis, *names]
    change = CHANGES[row["change"]] if "change" in row else None
    return Fault(**{"talk": _talk(row.pop("said")), "safety": None, **row, "apis": apis, "change": change})


FAULTS = {name: _fault(row) for name, row in TABLES["faults"].items()}
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
        assert [[call.name, call.arguments.value] for call in choice.calls] == fault.calls
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
    # what stands before the third event, how its field begins
    "white space before a field": ("END", "  data: "),
    "a field's name twice": ("END", "data: data: "),
    "no blank line between two": ("\n", "data: "),
}


@pytest.mark.parametrize(("gap", "field_"), FRAMINGS.values(), ids=FRAMINGS)
@in_batches("api", SSE)
def test_framing_is_fixed_in_every_api(api: str, gap: str, field_: str) -> None:
    record = Talk(ASK, "It rains, and it will rain on until the day after tomorrow.").record(api, True)
    end = "\r\n\r\n" if api.startswith("google") else "\n\n"
    one, two, third, *rest = record["response"]["body"].split(end)
    third = third.replace("data: ", field_, 1)
    record["response"]["body"] = f"{one}{end}{two}{gap.replace('END', end)}{end.join([third, *rest])}"
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


CLEAN = {name: _talk(said) for name, said in TABLES["clean"].items()}
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
