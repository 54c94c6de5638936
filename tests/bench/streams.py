"""Streamed replies in the shapes that six APIs send them in: sizes, padding and cuts of the text as in recorded traffic.

One row of `SHAPES` describes an API. `cuts` are the lengths of its text deltas, in characters, in turn. The text has list
items, headings and bold words, since those are the places where a leaked call could begin and text may be held back.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.apis.talk_bedrock_converse import packed
from tests.bench.payloads import text

_ANSWER = (
    "The survey lists **nine crossings**, two of which close in winter:\n\n- the old ford, at km 4.5\n- the chain ferry "
    "(see `routes.csv`)\n\n### Before you go\n1. Ask at the hut whether the bridge is open.\n2. Bring a map."
)
_TOKENS = (4, 1, 5, 3, 8, 4, 2, 6, 3, 9)
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CHAT = {
    "id": "chatcmpl-D0benchmark0000000000000000",
    "object": "chat.completion.chunk",
    "created": 1767225600,
    "model": "gpt-4.1-mini-2025-04-14",
    "service_tier": "default",
    "system_fingerprint": "fp_b6f445fc1c",
}
_ITEM = {"item_id": "msg_0123456789abcdef0123456789abcdef0123456789abcdef01", "output_index": 0}
_PART = {"type": "output_text", "annotations": [], "logprobs": []}
_USAGE = {"input_tokens": 700, "output_tokens": 90, "total_tokens": 790}

Events = Iterator[tuple[bytes, bool]]
"""Bytes of an event, and whether it is a text delta."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How one API streams: where to ask, and the events for some pieces of text."""

    path: str
    events: Callable[[list[str]], Events]
    cuts: tuple[int, ...] = _TOKENS
    head: Mapping[str, str] = field(default_factory=lambda: {"content_type": "text/event-stream; charset=utf-8"})

    def stream(self, deltas: int) -> list[tuple[bytes, bool]]:
        """The events of a reply with this many text deltas."""
        lengths = list(itertools.islice(itertools.cycle(self.cuts), deltas))
        rest = iter(text(sum(lengths), _ANSWER))
        return list(self.events(["".join(itertools.islice(rest, length)) for length in lengths]))


def _dense(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _data(document: Any, name: str = "", blanks: int = 0) -> bytes:
    """A server-sent event; `blanks` pad the document before its last brace, as Anthropic pads it."""
    made = f"{_dense(document)[:-1]}{' ' * blanks}}}"
    return (f"event: {name}\n" if name else "").encode() + f"data: {made}\n\n".encode()


def _openai_chat(pieces: list[str]) -> Events:
    def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**_CHAT, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": "", "refusal": None}), False
    for piece in pieces:
        yield chunk({"content": piece}, obfuscation=_ALPHABET[: max(0, 16 - len(piece))]), True
    yield chunk({}, "stop"), False
    yield b"data: [DONE]\n\n", False


def _anthropic(pieces: list[str]) -> Events:
    def event(kind: str, blanks: int = 0, **members: Any) -> bytes:
        return _data({"type": kind, **members}, kind, blanks)

    message = {"model": "claude-sonnet-4-5-20250929", "id": "msg_01Benchmark", "type": "message", "role": "assistant"}
    counts = {"input_tokens": 700, "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}
    yield event("message_start", 3, message={**message, "content": [], "stop_reason": None, "usage": counts}), False
    yield event("content_block_start", 8, index=0, content_block={"type": "text", "text": ""}), False
    yield b'event: ping\ndata: {"type": "ping"}\n\n', False
    for number, piece in enumerate(pieces):
        delta = {"type": "text_delta", "text": piece}
        yield event("content_block_delta", number * 7 % 16, index=0, delta=delta), True
    yield event("content_block_stop", 9, index=0), False
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 90}), False
    yield event("message_stop", 6), False


def _openai_responses(pieces: list[str]) -> Events:
    numbers = itertools.count()

    def event(kind: str, **members: Any) -> bytes:
        return _data({"type": f"response.{kind}", **members, "sequence_number": next(numbers)}, f"response.{kind}")

    def response(kind: str, status: str, output: list[Any], **more: Any) -> bytes:
        head = {"id": "resp_0123456789abcdef", "object": "response", "status": status, "model": "gpt-5-2025-08-07"}
        return event(kind, response={**head, "instructions": None, "output": output, "prompt_cache_key": None, **more})

    item = {"id": _ITEM["item_id"], "type": "message", "role": "assistant"}
    whole = "".join(pieces)
    done = {**item, "status": "completed", "content": [{**_PART, "text": whole}]}
    yield response("created", "in_progress", []), False
    yield response("in_progress", "in_progress", []), False
    yield event("output_item.added", item={**item, "status": "in_progress", "content": []}, output_index=0), False
    yield event("content_part.added", content_index=0, **_ITEM, part={**_PART, "text": ""}), False
    for piece in pieces:
        padding = _ALPHABET[: max(0, 16 - len(piece))]
        more = {"delta": piece, "logprobs": [], "obfuscation": padding}
        yield event("output_text.delta", content_index=0, **_ITEM, **more), True
    yield event("output_text.done", content_index=0, **_ITEM, text=whole, logprobs=[]), False
    yield event("content_part.done", content_index=0, **_ITEM, part={**_PART, "text": whole}), False
    yield event("output_item.done", item=done, output_index=0), False
    yield response("completed", "completed", [done], usage=_USAGE), False


def _gemini(pieces: list[str]) -> Events:
    for number, piece in enumerate(pieces, 1):
        finish = {"finishReason": "STOP"} if number == len(pieces) else {}
        candidate = {"content": {"parts": [{"text": piece}], "role": "model"}, **finish, "index": 0}
        usage = {
            "promptTokenCount": 700,
            "candidatesTokenCount": 24 * number,
            "totalTokenCount": 1487 + 24 * number,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 700}],
            "thoughtsTokenCount": 787,
        }
        head = {"modelVersion": "gemini-2.5-pro", "responseId": "kQ3vaP2wD4Benchmark"}
        document = json.dumps({"candidates": [candidate], "usageMetadata": usage, **head}, separators=(",", ": "))
        yield f"data: {document}\r\n\r\n".encode(), True


def _bedrock(pieces: list[str]) -> Events:
    def message(event_type: str, pad: int, **members: Any) -> bytes:
        payload = _dense({**members, "p": _ALPHABET[:pad]}).encode()
        return packed(payload, event_type=event_type, content_type="application/json", message_type="event")

    yield message("messageStart", 35, role="assistant"), False
    for number, piece in enumerate(pieces):
        yield message("contentBlockDelta", 2 + number * 23 % 60, contentBlockIndex=0, delta={"text": piece}), True
    yield message("contentBlockStop", 21, contentBlockIndex=0), False
    yield message("messageStop", 12, stopReason="end_turn"), False
    usage = {"inputTokens": 700, "outputTokens": 90, "totalTokens": 790}
    yield message("metadata", 34, metrics={"latencyMs": 1845}, usage=usage), False


def _ollama(pieces: list[str]) -> Events:
    def line(number: int, piece: str, **more: Any) -> bytes:
        at = f"2026-01-05T10:00:{number // 50 % 60:02}.{number * 19_876_543 % 1_000_000_000:09}Z"
        message = {"role": "assistant", "content": piece}
        return f"{_dense({'model': 'llama3', 'created_at': at, 'message': message, **more})}\n".encode()

    for number, piece in enumerate(pieces):
        yield line(number, piece, done=False), True
    counts = {"total_duration": 1_900_000_000, "prompt_eval_count": 700, "eval_count": 90}
    yield line(len(pieces), "", done_reason="stop", done=True, **counts), False


SHAPES = {
    "openai.chat": Shape("/v1/chat/completions", _openai_chat),
    "anthropic.messages": Shape("/v1/messages", _anthropic, (3, 1, 10, 6, 39, 12, 3, 22, 8, 15)),
    "openai.responses": Shape("/v1/responses", _openai_responses),
    "google.generate_content": Shape(
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", _gemini, (99, 13, 110, 87, 279, 102)
    ),
    "bedrock.converse": Shape(
        "/model/anthropic.claude-sonnet-4-5/converse-stream",
        _bedrock,
        (5, 1, 4, 7, 17, 3, 6),
        {"content_type": "application/vnd.amazon.eventstream"},
    ),
    "ollama.chat": Shape("/api/chat", _ollama, _TOKENS, {"content_type": "application/x-ndjson"}),
}
