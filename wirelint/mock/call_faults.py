"""Faults of tool calls: ids, arguments, names, indexes, and the finish reason that belongs to them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import jsonschema_rs
import orjson

from wirelint.mock.fault import Fault, NotApplicableError, Turn
from wirelint.mock.plan import Call, Reply, dump_json, make_calls
from wirelint.mock.schema_values import Topic
from wirelint.model import Json


def _change_id(reply: Reply, turn: Turn) -> Reply:
    first = turn.ask.calls_before + len(reply.calls)
    calls = (replace(one, later_id=turn.mint(one.name, first + at)) for at, one in enumerate(reply.calls))
    return replace(reply, calls=tuple(calls))


def _concatenate(reply: Reply, turn: Turn) -> Reply:
    call, *others = reply.calls
    value: Json = orjson.loads(call.arguments)
    members = value if isinstance(value, dict) else {}
    match turn.options.mode or "same":
        case "start-and-delta":
            call = replace(call, start=call.arguments)
        case "continuation":
            head = dict(list(members.items())[:1])
            rest = {key: one for key, one in members.items() if key not in head} or {"limit": 5}
            call = replace(call, start=dump_json(head), arguments=f",{dump_json(rest)[1:]}")
        case "differing":
            other = _other_arguments(call, turn)
            call = replace(call, arguments=call.arguments + other)
        case _:
            call = replace(call, arguments=call.arguments * 2)
    return replace(reply, calls=(call, *others))


def _other_arguments(call: Call, turn: Turn) -> str:
    ask = replace(turn.ask, forced=call.name)
    for salt in range(1, 4):
        other = make_calls(ask, 1, Topic.of(ask.user_text), turn.mint, salt=salt)[0].arguments
        if other != call.arguments:
            return other
    raise NotApplicableError(f"{call.name!a} has only one set of valid arguments")


def _break_json(reply: Reply, turn: Turn) -> Reply:
    call, *others = reply.calls
    text = call.arguments
    match turn.options.mode or "cut":
        case "quotes":
            broken = str(orjson.loads(text))  # a Python literal: {'city': 'Lisbon', 'days': None}
        case "comma":
            broken = f"{text[:-1]},}}" if text != "{}" else "{,}"
        case "twice":
            broken = dump_json(text)
        case _:
            broken = text[: max(len(text) * 2 // 3, 1)].rstrip("}")
    return replace(reply, calls=(replace(call, arguments=broken), *others))


def _violate_schema(reply: Reply, turn: Turn) -> Reply:
    call, *others = reply.calls
    schema = next(tool.schema for tool in turn.ask.tools if tool.name == call.name)
    value: Json = orjson.loads(call.arguments)
    members = value if isinstance(value, dict) else {}
    try:
        validator = jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise NotApplicableError(f"the schema of {call.name!a} cannot be compiled") from error
    for broken in _wrong_arguments(members, turn.options.mode or "type"):
        if not validator.is_valid(broken):
            return replace(reply, calls=(replace(call, arguments=dump_json(broken)), *others))
    raise NotApplicableError(f"the schema of {call.name!a} allows what was tried")


def _wrong_arguments(members: dict[str, Json], mode: str) -> list[dict[str, Json]]:
    """Candidates in the order of likelihood; those that happen to be valid are skipped."""
    missing = [{key: one for key, one in members.items() if key != left} for left in members]
    typed: list[dict[str, Json]] = []
    for key, one in members.items():
        # Models write numbers as words and lists as text; text becomes a list or an object.
        wrong: list[Json] = [[one], {"value": one}] if isinstance(one, str) else [dump_json(one), None]
        typed += [members | {key: other} for other in wrong]
    other = [members | {key: "something else"} for key in members]
    extra: list[dict[str, Json]] = [members | {"reason": "needed for the answer"}]
    order = {"type": typed + missing, "missing": missing, "value": other + typed, "extra": extra}
    return order[mode]


_FOREIGN_NAMES = ("open_browser", "read_clipboard", "take_screenshot", "schedule_meeting")


def _rename_tool(reply: Reply, turn: Turn) -> Reply:
    declared = {tool.name for tool in turn.ask.tools}
    call, *others = reply.calls
    recased = (call.name.swapcase(), call.name.title(), call.name.upper())
    names: tuple[str, ...] = recased if turn.options.mode == "case" else _FOREIGN_NAMES
    name = next((one for one in names if one not in declared), None)
    if name is None:
        raise NotApplicableError("every other name is declared too")
    number = turn.ask.calls_before
    return replace(reply, calls=(replace(call, name=name, id=turn.mint(name, number)), *others))


def _contradict_finish(reply: Reply, turn: Turn) -> Reply:
    mode = turn.options.mode or ("stop" if reply.calls else "calls")
    if mode == "stop" and not reply.calls:
        raise NotApplicableError("mode=stop needs a tool call")
    if mode == "stop":
        return replace(reply, finish="stop")
    text = reply.text or "There is nothing to look up for this one."
    return replace(reply, text=text, calls=(), finish="tool_calls")


def _collide(reply: Reply, turn: Turn) -> Reply:
    place: Literal["first", "none"] = "none" if turn.options.mode == "missing" else "first"
    return replace(reply, calls=tuple(replace(call, place=place) for call in reply.calls))


_FREE = frozenset({"query", "text", "content", "message", "body", "prompt", "code", "command", "pattern", "title", "q"})
"""Parameters in which everything may be meant."""


def _stand_in(reply: Reply, turn: Turn) -> Reply:
    call, *others = reply.calls
    schema = next((tool.schema for tool in turn.ask.tools if tool.name == call.name), {})
    value: Json = orjson.loads(call.arguments)
    members = value if isinstance(value, dict) else {}
    validator = jsonschema_rs.validator_for(schema)
    for key, one in members.items():
        if not isinstance(one, str) or key.lower() in _FREE:
            continue
        stand_ins = {"slot": f"<{key}>", "null": "null", "here": f"YOUR_{key.upper()}_HERE"}
        broken = members | {key: stand_ins[turn.options.mode or "here"]}
        if validator.is_valid(broken):
            return replace(reply, calls=(replace(call, arguments=dump_json(broken)), *others))
    raise NotApplicableError(f"{call.name!a} takes no text that a model could have to invent")


def _share_id(reply: Reply, turn: Turn) -> Reply:
    del turn
    return replace(reply, calls=tuple(replace(call, id=reply.calls[0].id) for call in reply.calls))


def _shorten_ids(reply: Reply, turn: Turn) -> Reply:
    model = turn.options.model or turn.ask.model
    if not re.search(r"kimi[-_ ]?k2(?!\d)", model, re.IGNORECASE):
        raise NotApplicableError("it needs a Kimi K2 model, whose ids have a form of their own; name one with model=")
    count = turn.ask.calls_before
    return replace(
        reply, calls=tuple(replace(one, id=f"{one.name}:{count + at}") for at, one in enumerate(reply.calls))
    )


def _disobey(reply: Reply, turn: Turn) -> Reply:
    ask = turn.ask
    topic = Topic.of(ask.user_text)
    others = tuple(tool for tool in ask.tools if tool.name != ask.forced)
    if not ask.tools:
        raise NotApplicableError("it needs a tool and a tool choice")
    if ask.choice == "none":
        return replace(reply, calls=make_calls(ask, 1, topic, turn.mint), finish="tool_calls")
    if ask.forced and others:
        calls = make_calls(replace(ask, forced=None, tools=others), 1, topic, turn.mint)
        return replace(reply, calls=calls, finish="tool_calls")
    if ask.forced or ask.choice == "required":
        return Reply(reply.reasoning, f"It is not necessary to look anything up about {topic.phrase}.")
    if not ask.parallel:
        return replace(reply, calls=make_calls(ask, 2, topic, turn.mint), finish="tool_calls")
    raise NotApplicableError("the request leaves it to the model whether to call; set its tool choice")


CALL_FAULTS: dict[str, Fault] = {
    "id-unstable": Fault(
        doc="the id of a call changes while it streams",
        reply=_change_id,
        calls=1,
        stream=True,
        needs=frozenset({"calls", "numbers"}),
    ),
    "concatenated-json": Fault(
        doc="the arguments of a call hold two JSON values, or go on after the first",
        reply=_concatenate,
        modes=("same", "differing", "start-and-delta", "continuation"),
        calls=1,
        needs=frozenset({"calls", "text"}),
    ),
    "invalid-json-arguments": Fault(
        doc="the arguments are cut off, in single quotes, with a trailing comma, or encoded twice",
        reply=_break_json,
        modes=("cut", "quotes", "comma", "twice"),
        calls=1,
        needs=frozenset({"calls", "text"}),
    ),
    "schema-violation": Fault(
        doc="the arguments break the declared schema: wrong type, missing, wrong value, extra",
        reply=_violate_schema,
        modes=("type", "missing", "value", "extra"),
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "undeclared-tool": Fault(
        doc="the call names a tool that the request does not declare, or writes it in another case",
        reply=_rename_tool,
        modes=("unknown", "case"),
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "finish-reason-mismatch": Fault(
        doc="calls that end with stop, or text that ends with calls (the default without tools)",
        reply=_contradict_finish,
        modes=("stop", "calls"),
        needs=frozenset({"calls", "reasons"}),
    ),
    "tool-index-collision": Fault(
        doc="two calls share an index in the stream, or have none",
        reply=_collide,
        modes=("shared", "missing"),
        calls=2,
        stream=True,
        needs=frozenset({"calls", "numbers"}),
    ),
    "placeholder-argument": Fault(
        doc="a text among the arguments stands in for one that the model does not know",
        reply=_stand_in,
        modes=("here", "slot", "null"),
        calls=1,
        needs=frozenset({"calls"}),
    ),
    "duplicate-id": Fault(
        doc="parallel calls share an id",
        reply=_share_id,
        calls=2,
        needs=frozenset({"calls", "ids"}),
    ),
    "nonconforming-id": Fault(
        doc="Kimi K2 leaves the prefix out of the ids of its calls",
        reply=_shorten_ids,
        calls=1,
        needs=frozenset({"calls", "ids"}),
    ),
    "tool-choice-violation": Fault(
        doc="the reply does what the tool choice forbids, or not what it demands",
        reply=_disobey,
        needs=frozenset({"calls"}),
    ),
}
