"""The faults by name: of a reply's content (markup, tokens and thinking in the text; actions and results that never
happened; ids, arguments, names, indexes and finish reasons of calls), of its events, and of the bytes that carry it.

The texts are worded as models write, not after a linter's patterns. Add a fault as an entry of `faults.toml` and a
function in the table of its stage.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import jsonschema_rs

from wirelint.mock.answer import Answer, Event, Pause, Step, json_answer
from wirelint.mock.apis import Ability, Turn
from wirelint.mock.plan import (
    MARKUP,
    SAMPLES,
    Call,
    Reply,
    decode_value,
    dump_json,
    load_table,
    make_calls,
    write_markup,
)
from wirelint.mock.scenario import FAULT_OPTIONS, HEALTHY, Scenario, ScenarioError, near
from wirelint.model import Json


class NotApplicableError(Exception):
    """The fault cannot be applied to this request; the reply stays healthy, and its header has the reason."""


Message = dict[str, Json]
ReplyStage = Callable[[Reply, Turn], Reply]
EventStage = Callable[[list[Event], Turn], list[Event]]
AnswerStage = Callable[[Answer, Turn], Answer]
McpStage = Callable[[list[Message], list[Message], str], list[Message]]
"""(requests, answers, mode) -> answers"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault; `faults.toml` explains its facts. The stages run in the order of the fields; most faults have one."""

    doc: str
    text: str = ""
    reply: ReplyStage | None = None
    events: EventStage | None = None
    answer: AnswerStage | None = None
    tools: McpStage | None = None
    modes: Sequence[str] = ()
    takes: Sequence[str] = ()
    calls: int = 0
    stream: bool = False
    needs: Sequence[Ability] = ()


# --- changes of a reply -----------------------------------------------------------------------------------------------


def _with_first(reply: Reply, **changes: Any) -> Reply:
    return replace(reply, calls=(replace(reply.calls[0], **changes), *reply.calls[1:]))


def _with_all(reply: Reply, change: Callable[[int, Call], Call]) -> Reply:
    """Change every call. `change` takes the position of a call among those of the reply."""
    return replace(reply, calls=tuple(change(at, call) for at, call in enumerate(reply.calls)))


def _leak_markup(reply: Reply, turn: Turn) -> Reply:
    markup = write_markup(turn.options.dialect, reply.calls)
    if turn.options.place == "reasoning":
        return Reply(f"{reply.reasoning or f'This needs {reply.calls[0].name}.'}\n{markup}")
    return Reply(reply.reasoning, f"{reply.text or 'Let me look that up.'}\n\n{markup}")


def _leak_control_token(reply: Reply, turn: Turn) -> Reply:
    if turn.options.mode == "name":
        if not reply.calls:
            raise NotApplicableError("mode=name needs a tool call")
        return _with_all(reply, lambda _, call: replace(call, name=f"{call.name}<|channel|>json"))
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
    return _with_all(reply, lambda at, call: replace(call, later_id=turn.mint(call.name, first + at)))


def _concatenate(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    match turn.options.mode:
        case "start-and-delta":
            return _with_first(reply, start=call.arguments)
        case "continuation":
            head = dict(list(call.members.items())[:1])
            rest = {key: one for key, one in call.members.items() if key not in head} or {"limit": 5}
            return _with_first(reply, start=dump_json(head), arguments=f",{dump_json(rest)[1:]}")
        case "differing":
            return _with_first(reply, arguments=call.arguments + _other_arguments(call, turn))
        case _:
            return _with_first(reply, arguments=call.arguments * 2)


def _other_arguments(call: Call, turn: Turn) -> str:
    ask = replace(turn.ask, forced=call.name)
    for salt in range(1, 4):
        (other,) = make_calls(ask, 1, turn.topic, turn.mint, salt=salt)
        if other.arguments != call.arguments:
            return other.arguments
    raise NotApplicableError(f"{call.name!a} has only one set of valid arguments")


def _break_json(reply: Reply, turn: Turn) -> Reply:
    text = reply.calls[0].arguments
    match turn.options.mode or "cut":
        case "quotes":
            broken = str(decode_value(text))  # a Python literal: {'city': 'Lisbon', 'days': None}
        case "comma":
            broken = f"{text[:-1]},}}" if text != "{}" else "{,}"
        case "twice":
            broken = dump_json(text)
        case _:
            broken = text[: max(len(text) * 2 // 3, 1)].rstrip("}")
    return _with_first(reply, arguments=broken)


def _validator(call: Call, turn: Turn) -> jsonschema_rs.Validator:
    schema = next((tool.schema or {} for tool in turn.ask.tools if tool.name == call.name), {})
    try:
        return jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise NotApplicableError(f"the schema of {call.name!a} cannot be compiled") from error


def _violate_schema(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    validator = _validator(call, turn)
    for broken in _wrong_arguments(call.members, turn.options.mode or "type"):
        if not validator.is_valid(broken):
            return _with_first(reply, arguments=dump_json(broken))
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
    return _with_first(reply, name=name, id=turn.mint(name, turn.ask.calls_before))


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
    return _with_all(reply, lambda _, call: replace(call, place=place))


def _use_placeholder(reply: Reply, turn: Turn) -> Reply:
    call = reply.calls[0]
    validator = _validator(call, turn)
    for key, one in call.members.items():
        if not isinstance(one, str) or key.lower() in SAMPLES["free_parameters"]:
            continue
        placeholders = {"slot": f"<{key}>", "null": "null", "here": f"YOUR_{key.upper()}_HERE"}
        broken = call.members | {key: placeholders[turn.options.mode or "here"]}
        if validator.is_valid(broken):
            return _with_first(reply, arguments=dump_json(broken))
    raise NotApplicableError(f"{call.name!a} takes no text that a model could have to invent")


def _shorten_ids(reply: Reply, turn: Turn) -> Reply:
    if not re.search(r"kimi[-_ ]?k2(?!\d)", turn.options.model or turn.ask.model, re.IGNORECASE):
        raise NotApplicableError("it needs a Kimi K2 model, whose ids have their own form; name one with model=")
    return _with_all(reply, lambda at, call: replace(call, id=f"{call.name}:{turn.ask.calls_before + at}"))


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
    "duplicate-id": lambda reply, turn: _with_all(reply, lambda _, call: replace(call, id=reply.calls[0].id)),
    "nonconforming-id": _shorten_ids,
    "tool-choice-violation": _disobey,
    # Only a long text makes a burst visible.
    "stream-burst": lambda reply, turn: replace(reply, text=f"{reply.text} {SAMPLES['long']}".strip()),
}


# --- changes of events and bytes --------------------------------------------------------------------------------------


def _drop_events(events: list[Event], turn: Turn) -> list[Event]:
    if turn.options.mode == "after-done":
        return [*events, next((event for event in events if event.tag == "delta"), events[0])]
    left_out = {"no-done": "done", "missing-start": "start"}.get(turn.options.mode)
    kept = [event for event in events if event.tag != left_out]
    if left_out == "start" and kept == events:
        raise NotApplicableError(f"{turn.api.name} has no event that starts a block")
    return kept


def _break_frames(answer: Answer, turn: Turn) -> Answer:
    if not answer.server_sent:
        raise NotApplicableError(f"{turn.api.name} does not stream server-sent events here")
    steps = list(answer.steps)
    middle = len(steps) // 2
    frame = steps[middle]
    assert isinstance(frame, bytes)
    match turn.options.mode or "single-newline":
        case "single-newline":
            steps = [step[:-1] if isinstance(step, bytes) and step.endswith(b"\n\n") else step for step in steps]
        case "leading-space":
            steps[middle] = b"".join(b"  " + line if line.strip() else line for line in frame.splitlines(keepends=True))
        case "split-json":
            cut = frame.index(b"data: ") + (len(frame) - frame.index(b"data: ")) // 2
            cut = next(at for at in range(cut, len(frame)) if frame[at] & 0xC0 != 0x80)
            steps[middle : middle + 1] = [frame[:cut] + b"\n\n", b"data: " + frame[cut:]]
    return replace(answer, steps=tuple(steps))


def _truncate(events: list[Event], turn: Turn) -> list[Event]:
    """End in the middle of the deltas, without a finish reason."""
    deltas = [at for at, event in enumerate(events) if event.tag == "delta"]
    if not deltas:
        raise NotApplicableError("the stream has no delta that could be cut off")
    return events[: deltas[len(deltas) // 2] + 1]


def _leave_out_counts(events: list[Event], turn: Turn) -> list[Event]:
    if not turn.ask.usage:
        raise NotApplicableError("the request does not ask for token counts; set stream_options.include_usage")
    return [replace(event, data=_without_counts(event.data)) for event in events if event.tag != "usage"]


def _without_counts(text: str) -> str:
    """Remove the token counts of an event. Bedrock carries Anthropic's events in `{"bytes": "<base64>"}`."""
    value = decode_value(text)
    if isinstance(value, str):
        return text
    if isinstance(value, dict) and isinstance(carried := value.get("bytes"), str):
        inner = _without_counts(base64.b64decode(carried).decode())
        return dump_json(value | {"bytes": base64.b64encode(inner.encode()).decode()})
    return dump_json(_strip(value))


def _strip(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {
        key: _strip(one) if key in ("message", "response", "delta") else one
        for key, one in value.items()
        if key not in ("usage", "usageMetadata", "prompt_eval_count", "eval_count")
    }


_BUSY = "The model is overloaded right now. Please retry shortly."


def _fail_midway(events: list[Event], turn: Turn) -> list[Event]:
    deltas = [at for at, event in enumerate(events) if event.tag == "delta"]
    begun = events[: deltas[min(1, len(deltas) - 1)] + 1] if deltas and turn.options.mode != "at-once" else []
    return [*begun, *turn.api.make_error_events(turn.options.status or 500, _BUSY)]


def _fail(answer: Answer, turn: Turn, *, as_success: bool = False) -> Answer:
    """Answer with an error, `as_success` with status 200 unless `_fail_midway` has put it into the stream."""
    if as_success and answer.streamed:
        return answer
    status = turn.options.status or (500 if as_success else turn.api.busy_status)
    error = turn.api.make_error(status, _BUSY)
    return json_answer(200, error) if as_success else json_answer(status, error, (("retry-after", "1"),))


def _stall(answer: Answer, turn: Turn) -> Answer:
    middle = (len(answer.steps) + 1) // 2
    return replace(answer, steps=(*answer.steps[:middle], *_silence(turn), *answer.steps[middle:]))


def _hang(answer: Answer, turn: Turn) -> Answer:
    if turn.options.mode in ("", "no-head"):
        return replace(answer, delay=turn.options.seconds)
    if not answer.streamed:
        raise NotApplicableError("a whole body has no first event")
    return replace(answer, steps=(answer.steps[0], *_silence(turn), *answer.steps[1:]))


def _silence(turn: Turn) -> tuple[Step, ...]:
    """Return a pause, or with `mode=pings` keep-alives over the same time."""
    seconds = turn.options.seconds
    if turn.options.mode != "pings":
        return (Pause(seconds),)
    count = max(int(seconds), 2)
    return (*(turn.api.ping, Pause(seconds / count)) * count,)


def _burst(answer: Answer, turn: Turn) -> Answer:
    body = b"".join(step for step in answer.steps if isinstance(step, bytes))
    return replace(answer, steps=(Pause(turn.options.seconds), body))


EVENT_STAGES: dict[str, EventStage] = {
    "sse-framing": _drop_events,
    "truncated-stream": _truncate,
    "missing-usage": _leave_out_counts,
    "error-in-200": _fail_midway,
}
ANSWER_STAGES: dict[str, AnswerStage] = {
    "sse-framing": _break_frames,
    "truncated-stream": lambda answer, turn: replace(answer, dies=turn.options.mode == "abort"),
    "error-in-200": partial(_fail, as_success=True),
    "http-error": _fail,
    "stream-stall": _stall,
    "stream-burst": _burst,
    "silent-hang": _hang,
}


# --- changes of MCP answers -------------------------------------------------------------------------------------------


def _mistake_id(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    ids: list[Json] = [one["id"] for one in answers]
    if mode == "type":
        others: list[Json] = [str(one) if isinstance(one, int) else 7 for one in ids]
    else:
        others = [one + 1000 if isinstance(one, int) else f"{one}-other" for one in ids]
    return [one | {"id": other} for one, other in zip(answers, others, strict=True)]


def _answer_notifications(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    if answers or not any("method" in one and "id" not in one for one in requests):
        return answers
    return [{"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}]


def _hide_error(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    calls = {dump_json(one["id"]) for one in requests if one.get("method") == "tools/call" and "id" in one}
    content: Json = [{"type": "text", "text": "Error: the index of notes is offline"}]
    failed: Message = {"result": {"content": content, "isError": False}}
    return [one | failed if dump_json(one["id"]) in calls else one for one in answers]


MCP_STAGES: dict[str, McpStage] = {
    "mcp-unknown-id": _mistake_id,
    "mcp-lifecycle": _answer_notifications,
    "mcp-error-not-flagged": _hide_error,
}


# --- the table ---------------------------------------------------------------------------------------------------------


def _replace(text: str, reply: Reply, turn: Turn) -> Reply:
    return Reply(reply.reasoning, text.format(tool=reply.calls[0].name, topic=turn.topic.phrase))


FAULTS: dict[str, Fault] = {
    name: Fault(
        **row,
        reply=partial(_replace, row["text"]) if "text" in row else REPLY_STAGES.get(name),
        events=EVENT_STAGES.get(name),
        answer=ANSWER_STAGES.get(name),
        tools=MCP_STAGES.get(name),
    )
    for name, row in load_table("faults").items()
}

NOT_PLAYED: dict[str, str] = load_table("not_played")
"""Rules that no reply of this server can break, and why."""


def resolve(scenario: Scenario) -> Fault | None:
    """Return the fault of a scenario, None for a healthy one. Raises ScenarioError for words that no fault knows."""
    options, name = scenario.options, scenario.fault or HEALTHY
    fault = FAULTS.get(name)
    if name in NOT_PLAYED:
        raise ScenarioError(f"{name} is not a fault of a model's reply: {NOT_PLAYED[name]}")
    if fault is None and name != HEALTHY:
        raise ScenarioError(f"unknown fault {name[:60]!a}{near(name, FAULTS)}")
    known = {*fault.takes, *(["mode"] if fault.modes else [])} if fault else set()
    for option in sorted((scenario.given & FAULT_OPTIONS) - known):
        raise ScenarioError(f"{name} has no option '{option}'")
    if fault and options.mode and options.mode not in fault.modes:
        modes = ", ".join(fault.modes)
        raise ScenarioError(f"{name} has no mode {options.mode[:60]!a}{near(options.mode, fault.modes)} ({modes})")
    if options.dialect not in MARKUP:
        dialects = ", ".join(MARKUP)
        raise ScenarioError(f"unknown dialect {options.dialect[:60]!a} ({dialects})")
    return fault
