"""Faults of the transport: broken framing, streams that end or fall silent, errors in the wrong place."""

from __future__ import annotations

import base64
from dataclasses import replace

import orjson

from wirelint.mock.answer import Answer, Event, Pause, Step, json_answer
from wirelint.mock.fault import Fault, NotApplicableError, Turn
from wirelint.mock.plan import Reply, dump_json
from wirelint.model import Json


def _drop_events(events: list[Event], turn: Turn) -> list[Event]:
    match turn.options.mode:
        case "no-done":
            return [event for event in events if event.tag != "done"]
        case "after-done":
            late = next((event for event in events if event.tag == "delta"), events[0])
            return [*events, late]
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
            return replace(answer, steps=tuple(_without_blank_line(step) for step in steps))
        case "leading-space":
            steps[middle] = b"".join(b"  " + line if line.strip() else line for line in frame.splitlines(keepends=True))
        case "split-json":
            cut = frame.index(b"data: ") + (len(frame) - frame.index(b"data: ")) // 2
            cut = next(at for at in range(cut, len(frame)) if frame[at] & 0xC0 != 0x80)
            steps[middle : middle + 1] = [frame[:cut] + b"\n\n", b"data: " + frame[cut:]]
    return replace(answer, steps=tuple(steps))


def _without_blank_line(step: Step) -> Step:
    return step[:-1] if isinstance(step, bytes) and step.endswith(b"\n\n") else step


def _truncate(events: list[Event], turn: Turn) -> list[Event]:
    """Ends in the middle of what is said; nothing after it says why."""
    del turn
    said = [at for at, event in enumerate(events) if event.tag == "delta"]
    if not said:
        raise NotApplicableError("the stream says nothing that could be cut off")
    return events[: said[len(said) // 2] + 1]


def _leave_out_counts(events: list[Event], turn: Turn) -> list[Event]:
    if not turn.ask.usage:
        raise NotApplicableError("the request does not ask for token counts; set stream_options.include_usage")
    return [replace(event, data=_without_counts(event.data)) for event in events if event.tag != "usage"]


_COUNTS = ("usage", "usageMetadata", "prompt_eval_count", "eval_count")


def _without_counts(text: str) -> str:
    """An event without token counts, wherever its API has them; Bedrock carries whole events of Anthropic's in others."""
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
        if key not in _COUNTS
    }


def _die_early(answer: Answer, turn: Turn) -> Answer:
    return replace(answer, dies=turn.options.mode == "abort")


_BUSY = "The model is overloaded right now. Please retry shortly."


def _fail_midway(events: list[Event], turn: Turn) -> list[Event]:
    said = [at for at, event in enumerate(events) if event.tag == "delta"]
    begun = events[: said[min(1, len(said) - 1)] + 1] if said and turn.options.mode != "at-once" else []
    return [*begun, *turn.api.make_error_events(turn.options.status or 500, _BUSY)]


def _fail_with_200(answer: Answer, turn: Turn) -> Answer:
    if answer.streamed:
        return answer
    return json_answer(200, turn.api.make_error(turn.options.status or 500, _BUSY))


def _fail(answer: Answer, turn: Turn) -> Answer:
    del answer
    status = turn.options.status or turn.api.busy_status
    return json_answer(status, turn.api.make_error(status, _BUSY), (("retry-after", "1"),))


def _stall(answer: Answer, turn: Turn) -> Answer:
    middle = (len(answer.steps) + 1) // 2
    return replace(answer, steps=(*answer.steps[:middle], *_silence(turn), *answer.steps[middle:]))


def _hang(answer: Answer, turn: Turn) -> Answer:
    if turn.options.mode in ("", "no-head"):
        return replace(answer, delay=turn.options.seconds)
    if not answer.streamed:
        raise NotApplicableError("a whole body has no head of its own")
    return replace(answer, steps=(answer.steps[0], *_silence(turn), *answer.steps[1:]))


def _silence(turn: Turn) -> tuple[Step, ...]:
    """Nothing for so many seconds, or nothing but keep-alives."""
    seconds = turn.options.seconds
    if turn.options.mode != "pings":
        return (Pause(seconds),)
    count = max(int(seconds), 2)
    return (*(turn.api.ping, Pause(seconds / count)) * count,)


def _burst(answer: Answer, turn: Turn) -> Answer:
    """What a proxy makes of a stream that it buffers."""
    body = b"".join(step for step in answer.steps if isinstance(step, bytes))
    return replace(answer, steps=(Pause(turn.options.seconds), body))


def _say_more(reply: Reply, turn: Turn) -> Reply:
    del turn
    return replace(reply, text=f"{reply.text} {_LONG}".strip())


_LONG = "There are a few things to keep in mind here, and they are best taken one at a time, beginning with the first."


STREAM_FAULTS: dict[str, Fault] = {
    "sse-framing": Fault(
        doc="events that the SSE grammar or the protocol does not allow",
        events=_drop_events,
        answer=_break_frames,
        modes=("single-newline", "leading-space", "split-json", "after-done", "no-done", "missing-start"),
        stream=True,
    ),
    "truncated-stream": Fault(
        doc="the stream ends in the middle, cleanly or with the connection",
        events=_truncate,
        answer=_die_early,
        modes=("clean", "abort"),
        stream=True,
    ),
    "missing-usage": Fault(
        doc="the stream ends without its token counts, though asked for them or at an API that always tells",
        events=_leave_out_counts,
        stream=True,
        needs=frozenset({"counts"}),
    ),
    "error-in-200": Fault(
        doc="an error object in a body or stream with status 200",
        events=_fail_midway,
        answer=_fail_with_200,
        modes=("midway", "at-once"),
        takes=frozenset({"status"}),
    ),
    "http-error": Fault(
        doc="an error status (429 for OpenAI, 529 for Anthropic, or status=N)",
        answer=_fail,
        takes=frozenset({"status"}),
    ),
    "stream-stall": Fault(
        doc="silence in the middle of the stream; ends when the client leaves",
        answer=_stall,
        modes=("silent", "pings"),
        takes=frozenset({"seconds"}),
        stream=True,
    ),
    "stream-burst": Fault(
        doc="nothing for long, then the whole stream at once",
        reply=_say_more,
        answer=_burst,
        takes=frozenset({"seconds"}),
        stream=True,
    ),
    "silent-hang": Fault(
        doc="no answer for long: nothing at all, or no more than the head of a message",
        answer=_hang,
        modes=("no-head", "head", "pings"),
        takes=frozenset({"seconds"}),
    ),
}
