"""A `Talk` written as a request of Bedrock's Converse with its reply: a body, or an event stream of AWS."""

from __future__ import annotations

import json
import struct
from binascii import crc32
from collections.abc import Iterator
from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, exchange, in_pieces

_REASONS = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "filter": "content_filtered"}
USAGE = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
Event = tuple[str, dict[str, Any]]


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    path = f"/model/{talk.model}/converse{'-stream' if stream else ''}"
    body = {**request(talk), **talk.request}
    if not stream:
        return exchange(path, body, whole(talk), status=talk.status)
    pytest.importorskip("botocore")
    made = exchange(path, body, "", content_type="application/vnd.amazon.eventstream", status=talk.status)
    made["response"]["body"] = messages(*events(talk))
    return made


def packed(payload: bytes, **headers: str) -> bytes:
    """A message as AWS frames it; `event_type` names the header `:event-type`."""
    head = b""
    for name, value in headers.items():
        key, words = f":{name.replace('_', '-')}".encode(), value.encode()
        head += struct.pack("!B", len(key)) + key + struct.pack("!BH", 7, len(words)) + words
    prelude = struct.pack("!II", len(head) + len(payload) + 16, len(head))
    made = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return made + struct.pack("!I", crc32(made))


def messages(*told: Event) -> bytes:
    return b"".join(
        packed(
            json.dumps(body, ensure_ascii=False).encode(),
            event_type=name,
            content_type="application/json",
            message_type="event",
        )
        for name, body in told
    )


def request(talk: Talk) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    for turn in talk.history:
        match turn:
            case User(text):
                said.append({"role": "user", "content": [{"text": text}]})
            case Assistant(text, calls, reasoning):
                said.append({"role": "assistant", "content": list(_blocks(reasoning, text, calls))})
            case Result(call_id, text, is_error):
                result: dict[str, Any] = {"toolUseId": call_id, "content": [{"text": text}]}
                if is_error is not None:
                    result["status"] = "error" if is_error else "success"
                if not (said and said[-1]["role"] == "user" and "toolResult" in said[-1]["content"][-1]):
                    said.append({"role": "user", "content": []})
                said[-1]["content"].append({"toolResult": result})
    body: dict[str, Any] = {"messages": said, "inferenceConfig": {"maxTokens": 512}}
    if talk.system:
        body["system"] = [{"text": talk.system}]
    if talk.tools:
        specs = [
            {"toolSpec": {"name": name, "description": described, "inputSchema": {"json": parameters}}}
            for name, described, parameters in talk.declared
        ]
        body["toolConfig"] = {"tools": specs}
        if talk.tool_choice is not None:
            choice = {"required": {"any": {}}, "auto": {"auto": {}}}.get(str(talk.tool_choice), talk.tool_choice)
            body["toolConfig"]["toolChoice"] = choice
    return body


def _blocks(reasoning: str, text: str, calls: Any) -> Iterator[dict[str, Any]]:
    if reasoning:
        yield {"reasoningContent": {"reasoningText": {"text": reasoning, "signature": "c2ln"}}}
    if text:
        yield {"text": text}
    yield from map(called, calls)


def called(call: Call) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.value}}


def whole(talk: Talk) -> dict[str, Any]:
    content = list(_blocks(talk.reasoning, talk.text, talk.calls))
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": talk.reason_in(_REASONS),
        "usage": USAGE,
        "metrics": {"latencyMs": 41},
    }


def events(talk: Talk) -> Iterator[Event]:
    yield "messageStart", {"role": "assistant", "p": "abc"}
    index = 0
    for text, make in ((talk.reasoning, thought), (talk.text, said)):
        if text:
            yield from (delta(index, make(piece)) for piece in in_pieces(text, talk.step))
            if make is thought:
                yield delta(index, {"reasoningContent": {"signature": "c2ln"}})
            yield stop(index)
            index += 1
    for call in talk.calls:
        yield start(index, call)
        yield from (delta(index, {"toolUse": {"input": piece}}) for piece in in_pieces(call.text, talk.step))
        yield stop(index)
        index += 1
    if (reason := talk.reason_in(_REASONS)) is not None:
        yield "messageStop", {"stopReason": reason}
    yield "metadata", {"usage": USAGE, "metrics": {"latencyMs": 41}}


def said(text: str) -> dict[str, Any]:
    return {"text": text}


def thought(text: str) -> dict[str, Any]:
    return {"reasoningContent": {"text": text}}


def start(index: int, call: Call) -> Event:
    return "contentBlockStart", {
        "contentBlockIndex": index,
        "start": {"toolUse": {"toolUseId": call.id, "name": call.name}},
    }


def delta(index: int, piece: dict[str, Any]) -> Event:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": piece, "p": "abcdef"[: 1 + index % 5]}


def stop(index: int) -> Event:
    return "contentBlockStop", {"contentBlockIndex": index}
