"""Replies of Mistral's chat completions, and what a client makes of each."""

from __future__ import annotations

from typing import Any

from tests.apis.shape import Shape
from tests.build import sse

ID = "3f1c9e7ab25d4c60"
HEAD = {"id": ID, "object": "chat.completion.chunk", "created": 1767225600, "model": "acme-medium"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
ONE = [[("text", "Hello")]]
BOTH = [[("reasoning", "Greet."), ("text", "Hello")]]


def thinks(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def chunk(content: Any = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {**({} if content is None else {"content": content}), **more}
    made: dict[str, Any] = {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return made if reason is None else {**made, "usage": USAGE}


def whole(content: Any = "", reason: str = "stop", calls: Any = None) -> dict[str, Any]:
    message = {"role": "assistant", "tool_calls": calls, "content": content}
    choices = [{"index": 0, "finish_reason": reason, "message": message}]
    return {**HEAD, "object": "chat.completion", "usage": USAGE, "choices": choices}


def call(name: str, arguments: str, id_: str, index: int | None = None) -> dict[str, Any]:
    number = {} if index is None else {"index": index}
    return {"id": id_, "function": {"name": name, "arguments": arguments}, **number}


CALLS = [[("call", 'look {"at":"x"}'), ("call", "ask {}")]]
PAIR = [call("look", '{"at":"x"}', "aB3dE5fG7"), call("ask", "{}", "hJ9kL1mN3")]
NUMBERED = [call("look", '{"at":"x"}', "aB3dE5fG7", 0), call("ask", "{}", "hJ9kL1mN3", 1)]

MISTRAL: dict[str, Shape] = {
    "text": Shape(
        ONE, ["stop"], whole("Hello"), sse(chunk("", role="assistant"), chunk("Hel"), chunk("lo"), chunk("", "stop")),
        usage=USAGE, id=ID,
    ),
    "padding": Shape(
        ONE, ["stop"], stream=sse({**chunk("Hel"), "p": "abc"}, {**chunk("lo"), "p": "a"}, chunk("", "stop")),
        usage=USAGE, id=ID,
    ),
    "thinking": Shape(
        BOTH,
        ["stop"],
        whole([thinks("Greet."), says("Hello")]),
        sse(chunk("", role="assistant"), chunk([thinks("Gre")]), chunk([thinks("et.")]),
            chunk([{"type": "thinking", "thinking": []}]), chunk("Hel"), chunk("lo"), chunk("", "stop")),
        usage=USAGE, id=ID,
    ),
    "thinking and text in lists": Shape(
        BOTH, ["stop"], stream=sse(chunk([thinks("Greet.")]), chunk([says("Hello")]), chunk("", "stop")),
        usage=USAGE, id=ID,
    ),
    "calls": Shape(
        CALLS, ["tool_calls"], whole("", "tool_calls", NUMBERED), sse(chunk("", "tool_calls", tool_calls=NUMBERED)),
        usage=USAGE, id=ID,
    ),
    "calls without numbers": Shape(
        CALLS, ["tool_calls"], whole("", "tool_calls", PAIR), sse(chunk("", "tool_calls", tool_calls=PAIR)),
        usage=USAGE, id=ID,
    ),
    "calls without numbers, a chunk each": Shape(
        CALLS,
        ["tool_calls"],
        stream=sse(chunk(tool_calls=PAIR[:1]), chunk(tool_calls=PAIR[1:]), chunk("", "tool_calls")),
        usage=USAGE, id=ID,
    ),
    "a call without a number, piece by piece": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["tool_calls"],
        stream=sse(chunk(tool_calls=[call("look", '{"at"', "aB3dE5fG7")]),
                   chunk(tool_calls=[call("look", ':"x"}', "aB3dE5fG7")]), chunk("", "tool_calls")),
        faults=["said-again"], usage=USAGE, id=ID,
    ),
    "too long for the model": Shape(
        [[("text", "Hel")]], ["model_length"], whole("Hel", "model_length"), sse(chunk("Hel"), chunk("", "model_length")),
        usage=USAGE, id=ID,
    ),
    "error": Shape(
        whole={"object": "error", "message": "Service tier capacity exceeded", "type": "service_tier_capacity_exceeded"},
        error=True,
    ),
    "error in a stream": Shape(
        [[("text", "Hel")]],
        [None],
        stream=sse(chunk("Hel"), {"object": "error", "message": "busy", "code": 3505}, done=False),
        error=True, terminated=False, id=ID,
    ),
}  # fmt: skip

SHAPES_MISTRAL = {"mistral.chat": MISTRAL}
