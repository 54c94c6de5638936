"""Records of calls whose arguments come in given pieces, for the tests of argument repairs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.build import Talk, User, chunk, exchange, schema, sse
from tests.selection import sampled

SHELF = schema(("name",), name="string", row="integer", fresh="boolean", tags={"type": "array"})
TOOLS: Mapping[str, Any] = {"shelf": SHELF, "nap": schema()}
APIS = ("openai.chat", "anthropic.messages")


def request(api: str, stream: bool, tools: Mapping[str, Any] = TOOLS, **more: Any) -> dict[str, Any]:
    made = Talk((User("Pantry?"),), tools=tools).record(api, stream)
    body: dict[str, Any] = json.loads(made["request"]["body"])
    body.pop("stream_options", None)
    return body | more


def piece(text: str | Mapping[str, Any] | None, index: int = 0, **more: Any) -> dict[str, Any]:
    """An OpenAI chunk with a piece of arguments; `first=True` announces the call."""
    call: dict[str, Any] = {"index": index, "function": {"arguments": text}}
    if more.get("first"):
        call |= {"id": f"call_{index:08}", "type": "function"}
        call["function"]["name"] = more.get("name", "shelf")
    return chunk({"tool_calls": [call]}) if "choice" not in more else _of_choice(call, more["choice"])


def _of_choice(call: Mapping[str, Any], choice: int) -> dict[str, Any]:
    return {"choices": [{"index": choice, "delta": {"tool_calls": [call]}, "finish_reason": None}]}


def openai(
    *documents: Mapping[str, Any], finish: str | None = "tool_calls", done: bool = True, **more: Any
) -> dict[str, Any]:
    tail = [chunk({}, finish)] if finish else []
    reply = sse(chunk({"role": "assistant", "content": None}), *documents, *tail, done=done)
    return exchange(
        "/v1/chat/completions", request("openai.chat", True, **more), reply, content_type="text/event-stream"
    )


def block(
    start: Any, *deltas: str, index: int = 0, name: str = "shelf", id_: str = "", stop: bool = True
) -> list[dict[str, Any]]:
    begin = {"type": "tool_use", "id": id_ or f"toolu_{index:08}", "name": name, "input": start}
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": index, "content_block": begin},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}
            for text in deltas
        ),
        {"type": "content_block_stop", "index": index},
    ]
    return events if stop else events[:-1]


def anthropic(*events: Mapping[str, Any], stop: str | None = "tool_use", **more: Any) -> dict[str, Any]:
    last = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    tail = [last, {"type": "message_stop"}] if stop else []
    head: dict[str, Any] = {"type": "message", "role": "assistant", "id": "msg_1", "model": "acme-1", "content": []}
    head["usage"] = {"input_tokens": 11, "output_tokens": 1}
    reply = sse({"type": "message_start", "message": head}, *events, *tail, named=True)
    return exchange(
        "/v1/messages",
        request("anthropic.messages", True, **more),
        reply,
        request_headers={"anthropic-version": "2023-06-01"},
        content_type="text/event-stream",
    )


def streamed(api: str, *pieces: str, finish: str = "tool", **more: Any) -> dict[str, Any]:
    """One call of `shelf` whose arguments come in these pieces."""
    if api == "openai.chat":
        documents = [piece("", first=True), *map(piece, pieces)]
        return openai(*documents, finish="tool_calls" if finish == "tool" else finish, **more)
    return anthropic(*block({}, *pieces), stop="tool_use" if finish == "tool" else finish, **more)


def whole(*texts: Any, finish: str = "tool_calls", **more: Any) -> dict[str, Any]:
    """A whole body of OpenAI with a call for each text."""
    calls = [
        {"id": f"call_{index:08}", "type": "function", "function": {"name": "shelf", "arguments": text}}
        for index, text in enumerate(texts)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    reply = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return exchange("/v1/chat/completions", request("openai.chat", False, **more), reply)


def message(*inputs: Any, stop: str = "tool_use", **more: Any) -> dict[str, Any]:
    """A whole body of Anthropic with a call for each input."""
    content = [
        {"type": "tool_use", "id": f"toolu_{number:08}", "name": "shelf", "input": given}
        for number, given in enumerate(inputs)
    ]
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop}
    return exchange(
        "/v1/messages",
        request("anthropic.messages", False, **more),
        reply,
        request_headers={"anthropic-version": "2023-06-01"},
    )


def cuts(text: str) -> Iterator[Sequence[str]]:
    """A text whole, in two pieces (`--all`: cut at every place), character by character."""
    yield [text]
    yield from ([text[:place], text[place:]] for place in sampled(range(1, len(text)), 2))
    yield list(text)
