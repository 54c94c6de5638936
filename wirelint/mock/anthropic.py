"""Anthropic's Messages as the vendor shapes it, streams included.

`message_start`, then every content block with `content_block_start`, deltas and `content_block_stop` (a `ping` after
the first start), `message_delta` with the stop reason and the usage, `message_stop`. The `input` of a started tool use
is `{}` and comes as `input_json_delta` text, the first one empty.
https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from dataclasses import dataclass

from wirelint.mock.answer import Event, Headers, Tag
from wirelint.mock.api import (
    Ability,
    Envelope,
    RequestError,
    count_of,
    decode_object,
    messages_of,
    object_of,
    objects_in,
    string_of,
    text_of,
)
from wirelint.mock.ids import mint_anthropic_id
from wirelint.mock.plan import Ask, Call, Choice, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


class Anthropic:
    name = "anthropic.messages"
    path = "/v1/messages"
    abilities: frozenset[Ability] = frozenset({"numbers", "text", "reasons", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 529
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        model = body.get("model")
        if not isinstance(model, str) or not model:
            raise RequestError("model: Field required")
        choice = object_of(body.get("tool_choice"))
        blocks = [block for message in messages for block in objects_in(message.get("content"))]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        results = [one for one in objects_in(messages[-1].get("content")) if one.get("type") == "tool_result"]
        answered = next((one for one in calls if results and one.get("id") == results[-1].get("tool_use_id")), {})
        return Ask(
            model=model,
            tools=tuple(_read_tools(body)),
            choice=_CHOICES.get(string_of(choice.get("type")), "auto"),
            forced=string_of(choice.get("name")) or None,
            parallel=choice.get("disable_parallel_tool_use") is not True,
            user_text=_last_user_text(messages),
            result="\n".join(text_of(one.get("content")) for one in results) if results else None,
            result_tool=string_of(answered.get("name"), "the tool"),
            calls_before=len(calls),
            stream=body.get("stream") is True,
            limit=count_of(body.get("max_tokens")),
            usage=True,
            thinking=object_of(body.get("thinking")).get("type") in ("enabled", "adaptive"),
            preamble=True,
            prompt_tokens=count_tokens(body),
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        """Always the vendor's own form: the API takes no other, whatever model stands behind it."""
        del model, name, number, position
        return mint_anthropic_id(rng)

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("request-id", mint_anthropic_id(envelope.rng, "req")),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            thinking: Json = {"type": "thinking", "thinking": reply.reasoning, "signature": _sign(envelope.rng)}
            content.append(thinking)
        if reply.text or reply.refusal:
            content.append({"type": "text", "text": reply.text or reply.refusal})
        for call in reply.calls:
            value = decode_object(call.start + call.arguments)
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": value})
        message = _make_message(ask, envelope)
        return message | {
            "content": content,
            "stop_reason": _STOP_REASONS[reply.finish],
            "usage": _make_usage(ask, reply.tokens),
        }

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        message = _make_message(ask, envelope)
        writer = _Writer(envelope.rng, [])
        writer.add("open", {"type": "message_start", "message": message})
        index = 0
        if reply.reasoning:
            block: Json = {"type": "thinking", "thinking": "", "signature": ""}
            deltas: list[Json] = [
                {"type": "thinking_delta", "thinking": piece} for piece in split_pieces(reply.reasoning)
            ]
            writer.add_block(index, block, [*deltas, {"type": "signature_delta", "signature": _sign(envelope.rng)}])
            index += 1
        if reply.text or reply.refusal:
            deltas = [{"type": "text_delta", "text": piece} for piece in split_pieces(reply.text or reply.refusal)]
            writer.add_block(index, {"type": "text", "text": ""}, deltas)
            index += 1
        for position, call in enumerate(reply.calls):
            writer.add_call(index if call.place == "first" else index + position, call)
        stop: Json = {"stop_reason": _STOP_REASONS[reply.finish], "stop_sequence": None}
        writer.add("finish", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": reply.tokens}})
        writer.add("done", {"type": "message_stop"})
        return writer.events

    def make_error(self, status: int, message: str) -> Json:
        return {"type": "error", "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json(self.make_error(status, message)), "error")]


def count_tokens(body: dict[str, Json]) -> int:
    """A believable count of the input tokens, for `usage` and `count_tokens`."""
    return max(len(dump_json([body.get("system"), body.get("messages"), body.get("tools")])) // 4, 1)


_CHOICES: dict[str, Choice] = {"none": "none", "any": "required"}


def _read_tools(body: dict[str, Json]) -> list[Tool]:
    """The tools that the client runs; those with a versioned type and no schema are run by the provider."""
    return [
        Tool(string_of(tool.get("name")), object_of(tool.get("input_schema")))
        for tool in objects_in(body.get("tools"))
        if tool.get("name") and "input_schema" in tool
    ]


def _last_user_text(messages: list[dict[str, Json]]) -> str:
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") != "user":
            continue
        texts = [one for one in objects_in(content) if one.get("type") == "text"]
        text = content if isinstance(content, str) else "\n".join(string_of(one.get("text")) for one in texts)
        if text:
            return text
    return ""


def _make_message(ask: Ask, envelope: Envelope) -> dict[str, Json]:
    return {
        "id": mint_anthropic_id(envelope.rng, "msg"),
        "type": "message",
        "role": "assistant",
        "model": envelope.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _make_usage(ask, 1),
    }


def _make_usage(ask: Ask, output: int) -> Json:
    cache: Json = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": ask.prompt_tokens, **object_of(cache), "output_tokens": output, "service_tier": "standard"}


def _sign(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(96)).decode()


@dataclass(frozen=True, slots=True)
class _Writer:
    """Collects the events of one stream."""

    rng: random.Random
    events: list[Event]

    def add(self, tag: Tag, value: dict[str, Json]) -> None:
        # The vendor pads its JSON with spaces before the last brace, against traffic analysis.
        text = dump_json(value)
        kind = string_of(value.get("type"))
        self.events.append(Event(tag, f"{text[:-1]}{' ' * self.rng.randrange(12)}}}", kind))

    def add_start(self, place: dict[str, Json], block: Json) -> None:
        first = not any(event.tag == "start" for event in self.events)
        self.add("start", {"type": "content_block_start", **place, "content_block": block})
        if first:
            self.events.append(Event("ping", '{"type": "ping"}', "ping"))

    def add_block(self, index: int | None, block: Json, deltas: list[Json], again: Json = None) -> None:
        """One content block. `again` is a second start for the same block, which no healthy stream has."""
        place: dict[str, Json] = {} if index is None else {"index": index}
        self.add_start(place, block)
        if again is not None:
            self.add_start(place, again)
        for delta in deltas:
            self.add("delta", {"type": "content_block_delta", **place, "delta": delta})
        self.add("stop", {"type": "content_block_stop", **place})

    def add_call(self, index: int, call: Call) -> None:
        block: dict[str, Json] = {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": decode_object(call.start or "{}"),
        }
        again: Json = block | {"id": call.later_id} if call.later_id else None
        deltas: list[Json] = [
            {"type": "input_json_delta", "partial_json": piece} for piece in ("", *split_pieces(call.arguments))
        ]
        self.add_block(None if call.place == "none" else index, block, deltas, again)
