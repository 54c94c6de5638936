"""Faults of a reply's content: markup, tokens and thinking in the text; actions and results that never happened; ids,
arguments, names, indexes and finish reasons of calls.

The wording is that of models in general, not of a linter's patterns.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import jsonschema_rs
import orjson

from wirelint.mock.fault import NotApplicableError, ReplyStage, Turn
from wirelint.mock.plan import Call, Reply, dump_json, make_calls, write_markup
from wirelint.mock.schema_values import SAMPLES
from wirelint.model import Json


def _with_first(reply: Reply, call: Call) -> Reply:
    """Return the reply with another first call."""
    return replace(reply, calls=(call, *reply.calls[1:]))


def _leak_markup(reply: Reply, turn: Turn) -> Reply:
    markup = write_markup(turn.options.dialect, reply.calls)
    if turn.options.place == "reasoning":
        return Reply(f"{reply.reasoning or f'This needs {reply.calls[0].name}.'}\n{markup}")
    return Reply(reply.reasoning, f"{reply.text or 'Let me look that up.'}\n\n{markup}")


def _leak_control_token(reply: Reply, turn: Turn) -> Reply:
    if turn.options.mode == "name":
        if not reply.calls:
            raise NotApplicableError("mode=name needs a tool call")
        return replace(reply, calls=tuple(replace(call, name=f"{call.name}<|channel|>json") for call in reply.calls))
    return replace(reply, text=f"{reply.text or 'One moment.'}{SAMPLES['control_tokens'][turn.options.mode or 'end']}")


def _leak_thinking(reply: Reply, turn: Turn) -> Reply:
    opener = "" if turn.options.mode == "orphan" else "<think>\n"
    thinking = f"The user wants to know about {turn.topic.phrase}. Keep it short."
    return replace(reply, reasoning="", text=f"{opener}{thinking}\n</think>\n\n{reply.text}")


def _fabricate_call(reply: Reply, turn: Turn) -> Reply:
    words = reply.calls[0].name.replace("-", "_").lower().split("_")
    claim, past = f"I called {reply.calls[0].name}", SAMPLES["past"]
    if words[0] in past:
        claim = f"I {past[words[0]]} the {' '.join(words[1:]) or 'everything available'}"
    text = f'{claim} for "{turn.topic.phrase}" and found 0 results. There may be nothing on this subject.'
    return Reply(reply.reasoning, text)


def _fabricate_result(reply: Reply, turn: Turn) -> Reply:
    ask, topic = turn.ask, turn.topic.phrase
    mode = turn.options.mode or ("written" if ask.result is None else "contradiction")
    if mode == "contradiction":
        if ask.result is None:
            raise NotApplicableError("mode=contradiction needs a tool result at the end of the request")
        failed = "error" in ask.result.lower() or "not found" in ask.result.lower()
        end = "completed successfully." if failed else "returned 0 results, so there is nothing to report."
        return Reply(reply.reasoning, f"The call to {ask.result_tool} {end}")
    if mode == "observation":
        name = reply.calls[0].name if reply.calls else "search"
        arguments = reply.calls[0].arguments if reply.calls else dump_json({"query": topic})
        steps = f"Thought: {name} will know.\nAction: {name}\nAction Input: {arguments}"
        return Reply(reply.reasoning, f"{steps}\nObservation: 3 matches for {topic}\nAnswer: There are 3 matches.")
    result = dump_json({"matches": 3, "best": topic})
    text = f"<tool_response>\n{result}\n</tool_response>\nThere are 3 matches; the best one is {topic}."
    return Reply(reply.reasoning, text)


def _change_id(reply: Reply, turn: Turn) -> Reply:
    first = turn.ask.calls_before + len(reply.calls)
    calls = (replace(one, later_id=turn.mint(one.name, first + at)) for at, one in enumerate(reply.calls))
    return replace(reply, calls=tuple(calls))


def _concatenate(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    match turn.options.mode or "same":
        case "start-and-delta":
            call = replace(call, start=call.arguments)
        case "continuation":
            head = dict(list(call.members.items())[:1])
            rest = {key: one for key, one in call.members.items() if key not in head} or {"limit": 5}
            call = replace(call, start=dump_json(head), arguments=f",{dump_json(rest)[1:]}")
        case "differing":
            call = replace(call, arguments=call.arguments + _other_arguments(call, turn))
        case _:
            call = replace(call, arguments=call.arguments * 2)
    return _with_first(reply, call)


def _other_arguments(call: Call, turn: Turn) -> str:
    ask = replace(turn.ask, forced=call.name)
    for salt in range(1, 4):
        other = make_calls(ask, 1, turn.topic, turn.mint, salt=salt)[0].arguments
        if other != call.arguments:
            return other
    raise NotApplicableError(f"{call.name!a} has only one set of valid arguments")


def _break_json(reply: Reply, turn: Turn) -> Reply:
    text = reply.calls[0].arguments
    match turn.options.mode or "cut":
        case "quotes":
            broken = str(orjson.loads(text))  # a Python literal: {'city': 'Lisbon', 'days': None}
        case "comma":
            broken = f"{text[:-1]},}}" if text != "{}" else "{,}"
        case "twice":
            broken = dump_json(text)
        case _:
            broken = text[: max(len(text) * 2 // 3, 1)].rstrip("}")
    return _with_first(reply, replace(reply.calls[0], arguments=broken))


def _validator(call: Call, turn: Turn) -> jsonschema_rs.Validator:
    schema = next((tool.schema for tool in turn.ask.tools if tool.name == call.name), {})
    try:
        return jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise NotApplicableError(f"the schema of {call.name!a} cannot be compiled") from error


def _violate_schema(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    validator = _validator(call, turn)
    for broken in _wrong_arguments(call.members, turn.options.mode or "type"):
        if not validator.is_valid(broken):
            return _with_first(reply, replace(call, arguments=dump_json(broken)))
    raise NotApplicableError(f"the schema of {call.name!a} allows all wrong values that were tried")


def _wrong_arguments(members: dict[str, Json], mode: str) -> list[dict[str, Json]]:
    """Return candidates in the order of likelihood. Some may be valid."""
    missing = [{key: one for key, one in members.items() if key != left} for left in members]
    typed: list[dict[str, Json]] = []
    for key, one in members.items():
        # Models write numbers as words and lists as text; text becomes a list or an object.
        wrong: list[Json] = [[one], {"value": one}] if isinstance(one, str) else [dump_json(one), None]
        typed += [members | {key: other} for other in wrong]
    other = [members | {key: "something else"} for key in members]
    extra: list[dict[str, Json]] = [members | {"reason": "needed for the answer"}]
    return {"type": typed + missing, "missing": missing, "value": other + typed, "extra": extra}[mode]


def _rename_tool(reply: Reply, turn: Turn) -> Reply:
    call, declared = reply.calls[0], {tool.name for tool in turn.ask.tools}
    recased = (call.name.swapcase(), call.name.title(), call.name.upper())
    names = recased if turn.options.mode == "case" else SAMPLES["foreign_tools"]
    name = next((one for one in names if one not in declared), None)
    if name is None:
        raise NotApplicableError("every other name is declared too")
    return _with_first(reply, replace(call, name=name, id=turn.mint(name, turn.ask.calls_before)))


def _contradict_finish(reply: Reply, turn: Turn) -> Reply:
    mode = turn.options.mode or ("stop" if reply.calls else "calls")
    if mode == "calls":
        text = reply.text or "There is nothing to look up for this one."
        return replace(reply, text=text, calls=(), finish="tool_calls")
    if not reply.calls:
        raise NotApplicableError("mode=stop needs a tool call")
    return replace(reply, finish="stop")


def _collide(reply: Reply, turn: Turn) -> Reply:
    place: Literal["first", "none"] = "none" if turn.options.mode == "missing" else "first"
    return replace(reply, calls=tuple(replace(call, place=place) for call in reply.calls))


def _use_placeholder(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    validator = _validator(call, turn)
    for key, one in call.members.items():
        if not isinstance(one, str) or key.lower() in SAMPLES["free_parameters"]:
            continue
        placeholders = {"slot": f"<{key}>", "null": "null", "here": f"YOUR_{key.upper()}_HERE"}
        broken = call.members | {key: placeholders[turn.options.mode or "here"]}
        if validator.is_valid(broken):
            return _with_first(reply, replace(call, arguments=dump_json(broken)))
    raise NotApplicableError(f"{call.name!a} takes no text that a model could have to invent")


def _shorten_ids(reply: Reply, turn: Turn) -> Reply:
    if not re.search(r"kimi[-_ ]?k2(?!\d)", turn.options.model or turn.ask.model, re.IGNORECASE):
        raise NotApplicableError("it needs a Kimi K2 model, whose ids have their own form; name one with model=")
    count = turn.ask.calls_before
    calls = (replace(one, id=f"{one.name}:{count + at}") for at, one in enumerate(reply.calls))
    return replace(reply, calls=tuple(calls))


def _disobey(reply: Reply, turn: Turn) -> Reply:
    ask, topic = turn.ask, turn.topic
    others = tuple(tool for tool in ask.tools if tool.name != ask.forced)
    if not ask.tools:
        raise NotApplicableError("it needs a tool and a tool choice")
    if ask.choice == "none":
        calls = make_calls(ask, 1, topic, turn.mint)
    elif ask.forced and others:
        calls = make_calls(replace(ask, forced=None, tools=others), 1, topic, turn.mint)
    elif ask.forced or ask.choice == "required":
        return Reply(reply.reasoning, f"It is not necessary to look anything up about {topic.phrase}.")
    elif not ask.parallel:
        calls = make_calls(ask, 2, topic, turn.mint)
    else:
        raise NotApplicableError("the request leaves it to the model whether to call; set its tool choice")
    return replace(reply, calls=calls, finish="tool_calls")


REPLY_STAGES: dict[str, ReplyStage] = {
    "xml-leak": _leak_markup,
    "control-token-leak": _leak_control_token,
    "think-leak": _leak_thinking,
    "fabricated-call": _fabricate_call,
    "fabricated-result": _fabricate_result,
    "empty-response": lambda reply, turn: Reply(),
    "id-unstable": _change_id,
    "concatenated-json": _concatenate,
    "invalid-json-arguments": _break_json,
    "schema-violation": _violate_schema,
    "undeclared-tool": _rename_tool,
    "finish-reason-mismatch": _contradict_finish,
    "tool-index-collision": _collide,
    "placeholder-argument": _use_placeholder,
    "duplicate-id": lambda reply, turn: replace(
        reply, calls=tuple(replace(call, id=reply.calls[0].id) for call in reply.calls)
    ),
    "nonconforming-id": _shorten_ids,
    "tool-choice-violation": _disobey,
    # Only a long text makes a burst visible.
    "stream-burst": lambda reply, turn: replace(reply, text=f"{reply.text} {SAMPLES['long']}".strip()),
}
