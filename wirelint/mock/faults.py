"""The faults by name, with those of the transport: broken framing, streams that end or fall silent, misplaced errors.

Add a fault as an entry of `faults.toml` and a function in the stage table of its module.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from wirelint.mock.answer import Answer, Event, Pause, Step, json_answer
from wirelint.mock.fault import AnswerStage, EventStage, Fault, NotApplicableError, Turn
from wirelint.mock.plan import MARKUP, Reply, dump_json
from wirelint.mock.reply_faults import REPLY_STAGES
from wirelint.mock.scenario import FAULT_OPTIONS, HEALTHY, Scenario, ScenarioError, near
from wirelint.mock.schema_values import load_table
from wirelint.mock.tools import MCP_STAGES
from wirelint.model import Json


def _drop_events(events: list[Event], turn: Turn) -> list[Event]:
    match turn.options.mode:
        case "no-done":
            return [event for event in events if event.tag != "done"]
        case "after-done":
            return [*events, next((event for event in events if event.tag == "delta"), events[0])]
        case "missing-start":
            if not any(event.tag == "start" for event in events):
                raise NotApplicableError(f"{turn.api.name} has no event that starts a block")
            return [event for event in events if event.tag != "start"]
        case _:
            return events


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
    del turn
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
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
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
    """Send everything at once after a pause, like a proxy that buffers the stream."""
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


# --- the table ---------------------------------------------------------------------------------------------------------


_FACTS: dict[str, Callable[[Any], Any]] = {"modes": tuple, "takes": frozenset, "needs": frozenset}


def _replace(text: str, reply: Reply, turn: Turn) -> Reply:
    """Replace the reply by a text without calls."""
    return Reply(reply.reasoning, text.format(tool=reply.calls[0].name, topic=turn.topic.phrase))


def _load() -> dict[str, Fault]:
    return {
        name: Fault(
            **{key: _FACTS.get(key, lambda fact: fact)(fact) for key, fact in row.items()},
            reply=partial(_replace, row["text"]) if "text" in row else REPLY_STAGES.get(name),
            events=EVENT_STAGES.get(name),
            answer=ANSWER_STAGES.get(name),
            tools=MCP_STAGES.get(name),
        )
        for name, row in load_table("faults").items()
    }


FAULTS: dict[str, Fault] = _load()

_HISTORY = "the client writes the history of a request; send one that is wrong"
_PROMPT = "the client writes the prompt of a request; send one that is wrong"

NOT_PLAYED: dict[str, str] = {
    "mangled-id": _HISTORY,
    "orphan-result": _HISTORY,
    "missing-result": _HISTORY,
    "role-order": _HISTORY,
    "content-repr-leak": _PROMPT,
    "missing-generation-prompt": _PROMPT,
    "unexecuted-call": "the client has to invent a result and not call its MCP server",
    "altered-result": "the client has to change the answer of its MCP server",
    "mcp-error-swallowed": "the client or the model has to hide an error of the MCP server",
}
"""Rules that no reply of this server can break, and why."""


def resolve(scenario: Scenario) -> Fault | None:
    """Return the fault of a scenario, None for a healthy one. Raises ScenarioError for words that no fault knows."""
    options, name = scenario.options, scenario.fault or HEALTHY
    fault = FAULTS.get(name)
    if name in NOT_PLAYED:
        raise ScenarioError(f"{name} is not a fault of a model's reply: {NOT_PLAYED[name]}")
    if fault is None and name != HEALTHY:
        raise ScenarioError(f"unknown fault {name[:60]!a}{near(name, FAULTS)}")
    known = fault.takes | ({"mode"} if fault.modes else set()) if fault else set()
    for option in sorted((scenario.given & FAULT_OPTIONS) - known):
        raise ScenarioError(f"{name} has no option '{option}'")
    if fault and options.mode and options.mode not in fault.modes:
        modes = ", ".join(fault.modes)
        raise ScenarioError(f"{name} has no mode {options.mode[:60]!a}{near(options.mode, fault.modes)} ({modes})")
    if options.dialect not in MARKUP:
        dialects = ", ".join(MARKUP)
        raise ScenarioError(f"unknown dialect {options.dialect[:60]!a} ({dialects})")
    return fault
