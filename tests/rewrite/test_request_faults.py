"""Every fault of a request that is repaired, in every API that can have it: what is told, what goes out, and only once.

A history is said once and written in every API's own shape. What a repair makes must be what the right history would have
been, to the byte: so the order and the values of all that is not at fault stay, and members that nobody knows, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.build import REGISTRY, Assistant, Call, Result, Talk, Turn, User, as_record, lint, read, schema
from tests.selection import in_batches, rotated
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.rewrite.request import Mended, mend_request
from wirelint.state.ledger import Ledger

UNSAFE, CLEAN = FixPolicy("unsafe"), FixPolicy("unsafe", clean_history=True)
PERMITS = {"unsafe": UNSAFE, "safe": FixPolicy("safe"), "clean": CLEAN}
ASK, NOW = User("Dig."), User("And now?")
TURNS: dict[str, Turn] = {"ASK": ASK, "NOW": NOW, "OK": Assistant("Well.")}
TOOLS = {"dig": schema(n="integer")}
MARKUP = '<tool_call>\n{"name": "dig", "arguments": {"n": 0}}\n</tool_call>'
TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("request_faults.json").read_text(encoding="utf-8"))
GROUPS: dict[str, list[str]] = TABLES["apis"]
"""`NAMED`: APIs whose calls have ids, at targets that take ids of nearly any form."""


def _turns(told: Any) -> list[Turn]:
    """The messages of an item of a history: calls by their ids, their results, both."""
    match told:
        case str():
            return [TURNS[told]]
        case {"result": text, "id": id_}:
            return [Result(id_, text)]
        case {"told": ids}:
            return [Result(id_, f"root {number}") for number, id_ in enumerate(ids)]
        case {"user": text}:
            return [User(text)]
    ids = told.get("turn") or told.get("called", ())
    calls = tuple(Call(told.get("name", "dig"), {"n": number}, id_) for number, id_ in enumerate(ids))
    return [Assistant(told.get("text", ""), calls), *(_turns({"told": ids}) if "turn" in told else ())]


@dataclass(frozen=True)
class Fault:
    """`finds`: the codes of the findings and of the repairs."""

    came: list[Turn]
    wanted: list[Turn]
    finds: list[str]
    apis: tuple[str, ...]
    model: str
    url: str | None
    permit: FixPolicy


def _fault(told: dict[str, Any]) -> Fault:
    came, wanted = ([turn for item in told[name] for turn in _turns(item)] for name in ("came", "wanted"))
    apis = tuple(api for group in told.get("apis", ["NAMED"]) for api in GROUPS.get(group, (group,)))
    permit = PERMITS[told.get("permit", "unsafe")]
    return Fault(
        came, wanted, sorted(told["finds"].split()), apis, told.get("model", "acme-1"), told.get("url"), permit
    )


FAULTS = {name: _fault(told) for name, told in TABLES["faults"].items()}


def _runs() -> list[Any]:
    return [
        pytest.param(fault, api, id=f"{name}-{api}")
        for name, fault in FAULTS.items()
        for api in rotated(fault.apis, name, 3)
    ]


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


@in_batches(("fault", "api"), _runs())
def test_a_fault_is_told_and_mended_once(fault: Fault, api: str) -> None:
    record = _record(fault.came, api, fault)
    assert _told(record) == fault.finds
    _, made = _mend(record, fault.permit)
    assert made.faults == ()
    assert made.body.decode() == as_record(_record(fault.wanted, api, fault)).request_body.decode()  # type: ignore[union-attr]
    assert sorted(repair.code for repair in made.repairs) == fault.finds
    mended = _with_body(record, made.body)
    assert _told(mended) == []
    assert _mend(mended, fault.permit)[1].body == made.body


@in_batches(("fault", "api"), _runs())
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


@pytest.mark.parametrize("api", GROUPS["WITH_IDS"])
def test_ids_of_a_client_that_agree_with_each_other_stay(api: str) -> None:
    """The client has put ids of its own in the place of those that it was given, on the call and its result alike."""
    engine = Engine(REGISTRY.rules)
    call = Call("dig", {"n": 0}, "0qx7hb2m")
    engine.check(read(Talk([ASK], calls=[call], tools=TOOLS).record(api, False)))
    record = Talk([ASK, *_turns({"turn": ["tool-1"]}), NOW], tools=TOOLS).record(api, False)
    body = as_record(record).request_body or b""
    placed = engine.ledger.place(read(record))
    assert mend_request(placed, body, REGISTRY.rules, engine.ledger, UNSAFE).body is body
    assert "ID301" not in {finding.code for finding in engine.check(read(record))}
