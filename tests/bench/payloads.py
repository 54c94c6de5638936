"""What the benchmarks send: synthetic requests and replies of both APIs, clean but for the one with leaked markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

Api = Literal["openai.chat", "anthropic.messages"]
Kind = Literal["prose", "code", "call", "markup"]

PATHS: dict[Api, str] = {"openai.chat": "/v1/chat/completions", "anthropic.messages": "/v1/messages"}

_PROSE = (
    "A river bends where the rock is soft, and after a flood it may bend elsewhere. The survey lists nine crossings; "
    "two of them are closed in winter. Whoever walks the northern path needs a map, since signs are rare up there. "
)
_CODE = (
    "for (i = 0; i < n && a[i] <= b; i++) { s <<= 1; t->next = <T>(u); } // List<Map<K, V>>, x <- y, <!-- kept -->\n"
)
_ARGUMENTS = {"region": "north", "season": "winter", "depth": 3}
_TOOLS = ("crossings", "weather", "distance", "ferries", "closures", "permits", "guides", "huts")


def text(size: int, source: str = _PROSE) -> str:
    return (source * (size // len(source) + 1))[:size]


def request(api: Api, size: int, *, stream: bool) -> bytes:
    """The body of a request of about `size` bytes: a system prompt, eight tools, a few turns."""
    properties = {
        "region": {"type": "string", "description": "Which part of the country, by its compass point."},
        "season": {"type": "string", "enum": ["spring", "summer", "autumn", "winter"]},
        "depth": {"type": "integer", "description": "How many neighbouring regions to take in."},
        "note": {"type": "string"},
    }
    schema = {"type": "object", "properties": properties, "required": ["region"]}
    described = [(name, f"Looks up {name} in the survey.") for name in _TOOLS]
    openai = api == "openai.chat"
    tools: list[Any] = (
        [{"type": "function", "function": {"name": n, "description": d, "parameters": schema}} for n, d in described]
        if openai
        else [{"name": name, "description": about, "input_schema": schema} for name, about in described]
    )
    system = "You answer questions of walkers, in short sentences."
    talk: list[Any] = [
        {"role": "user", "content": "Which crossings are there?"},
        {"role": "assistant", "content": "Nine, as far as the survey goes."},
        {"role": "user", "content": ""},
    ]
    body: dict[str, Any] = {"model": "bench-1", "stream": stream, "max_tokens": 4096, "messages": talk, "tools": tools}
    if openai:
        talk.insert(0, {"role": "system", "content": system})
    else:
        body["system"] = system
    talk[-1]["content"] = "Tell me more about them. " + text(max(size - len(json.dumps(body)) - 25, 0))
    return json.dumps(body).encode()


def whole(api: Api, size: int) -> bytes:
    """The body of a reply of about `size` bytes that is no stream."""
    words = text(max(size - 300, 16))
    if api == "openai.chat":
        message = {"role": "assistant", "content": words}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        usage = {"prompt_tokens": 900, "completion_tokens": 200, "total_tokens": 1100}
        return _json(
            {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1, "model": "bench-1"}
            | {"choices": [choice], "usage": usage}
        )
    return _json(
        {"id": "msg_bench", "type": "message", "role": "assistant", "model": "bench-1", "stop_reason": "end_turn"}
        | {"content": [{"type": "text", "text": words}], "usage": {"input_tokens": 900, "output_tokens": 200}}
    )


def stream(api: Api, kind: Kind, events: int, size: int = 16) -> list[bytes]:
    """The events of a streamed reply, one item each: about `events` deltas of `size` characters."""
    pieces = list(_pieces(kind, events, size))
    return list(_openai(kind, pieces) if api == "openai.chat" else _anthropic(kind, pieces))


def _pieces(kind: Kind, events: int, size: int) -> Iterator[str]:
    total = events * size
    match kind:
        case "prose":
            words = text(total)
        case "code":
            words = text(total, _CODE)
        case "call":
            words = json.dumps({**_ARGUMENTS, "note": text(max(total - 80, 0))})
        case "markup":
            call = "".join(f'<parameter name="{name}">{value}</parameter>\n' for name, value in _ARGUMENTS.items())
            note = f'<parameter name="note">{text(total // 2)}</parameter>\n'
            words = text(total // 2) + f'<invoke name="crossings">\n{call}{note}</invoke>'
    return (words[start : start + size] for start in range(0, len(words), size))


def _openai(kind: Kind, pieces: Iterable[str]) -> Iterator[bytes]:
    def event(delta: Any, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "bench-1"}
        return b"data: " + _json({**head, "system_fingerprint": "fp_bench", "choices": [choice]}) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    if kind == "call":
        function = {"name": "crossings", "arguments": ""}
        call = {"index": 0, "id": "call_9aWq2LmX7cVt4RbNz8YkPe5D", "type": "function", "function": function}
        yield event({"tool_calls": [call]})
    for piece in pieces:
        part = {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        yield event(part if kind == "call" else {"content": piece})
    yield event({}, "tool_calls" if kind == "call" else "stop")
    yield b"data: [DONE]\n\n"


def _anthropic(kind: Kind, pieces: Iterable[str]) -> Iterator[bytes]:
    def event(name: str, **fields: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (name.encode(), _json({"type": name, **fields}))

    head = {"id": "msg_bench", "type": "message", "role": "assistant", "model": "bench-1", "content": []}
    yield event("message_start", message={**head, "stop_reason": None, "usage": {"input_tokens": 900}})
    block = {"type": "tool_use", "id": "toolu_01Xq7LwB3nKfT5RcVzPm2Yda", "name": "crossings", "input": {}}
    yield event("content_block_start", index=0, content_block=block if kind == "call" else {"type": "text", "text": ""})
    for piece in pieces:
        part = {"type": "input_json_delta", "partial_json": piece}
        yield event(
            "content_block_delta", index=0, delta=part if kind == "call" else {"type": "text_delta", "text": piece}
        )
    yield event("content_block_stop", index=0)
    reason = "tool_use" if kind == "call" else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 200})
    yield event("message_stop")


def blocks(pieces: Iterable[bytes], size: int = 1 << 16) -> Iterator[bytes]:
    """The same bytes in blocks of `size`, as a file is read."""
    body = b"".join(pieces)
    return (body[start : start + size] for start in range(0, len(body), size))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
