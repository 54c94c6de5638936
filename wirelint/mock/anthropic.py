"""Anthropic's Messages, at the vendor's path and at the paths of Bedrock and Vertex AI.

A stream has `message_start`, each content block as `content_block_start`, deltas and `content_block_stop` (a `ping` after
the first start), `message_delta` with the stop reason and the usage, and `message_stop`. The `input` of a started tool
use is `{}`; its arguments come as `input_json_delta` text, the first one empty. Vertex streams these events unchanged;
Bedrock puts each into a message of an AWS event stream, base64 in JSON.
https://docs.anthropic.com/en/docs/build-with-claude/streaming
https://docs.anthropic.com/en/api/claude-on-amazon-bedrock
"""

from __future__ import annotations

import base64
import random
from dataclasses import replace
from typing import ClassVar

from wirelint.mock.answer import Event, encode_message
from wirelint.mock.api import (
    Api,
    Envelope,
    EventWriter,
    last_user_text,
    messages_of,
    objects_in,
    read_results,
    read_tools,
    string_of,
    text_of,
    usage_of,
)
from wirelint.mock.plan import Ask, Call, Reply, decode_value, dump_json, mint_id, split_pieces
from wirelint.model import Json

_PING = Event("ping", '{"type": "ping"}', "ping")


class Anthropic(Api):
    key = "anthropic"
    ping = _PING.encode()

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        blocks = [block for message in messages for block in objects_in(message.get("content"))]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        results = [one for one in objects_in(messages[-1].get("content")) if one.get("type") == "tool_result"]
        # Tools with a versioned type and no schema are run by the provider.
        declared = (tool for tool in objects_in(body.get("tools")) if "input_schema" in tool)
        return self.ask(
            body,
            string_of(body.get("model")),
            tools=read_tools(declared, "input_schema"),
            user_text=last_user_text(messages),
            **read_results(results, calls, lambda one: text_of(one.get("content")), id_member="tool_use_id"),
        )

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            content.append({"type": "thinking", "thinking": reply.reasoning, "signature": _sign(envelope.rng)})
        if reply.shown:
            content.append({"type": "text", "text": reply.shown})
        content += [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.value} for one in reply.calls]
        return self._message(ask, envelope, reply.tokens, content, self.finish[reply.finish])

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        """Make the events; a ping follows the first start. JSON is padded against traffic analysis."""
        reply, rng = replies[0], envelope.rng
        writer = EventWriter(
            lambda name, value: f"{dump_json({'type': name, **value})[:-1]}{' ' * rng.randrange(12)}}}"
        )
        writer.add("open", "message_start", {"message": self._message(ask, envelope, 1, [], None)})
        blocks: list[tuple[list[Json], list[Json]]] = []
        if reply.reasoning:
            deltas: list[Json] = [{"type": "thinking_delta", "thinking": one} for one in split_pieces(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": _sign(envelope.rng)})
            blocks.append(([{"type": "thinking", "thinking": "", "signature": ""}], deltas))
        if reply.shown:
            pieces: list[Json] = [{"type": "text_delta", "text": piece} for piece in split_pieces(reply.shown)]
            blocks.append(([{"type": "text", "text": ""}], pieces))
        first = len(blocks)
        blocks += [_write_call(call) for call in reply.calls]
        for index, (starts, deltas) in enumerate(blocks):
            call = reply.calls[index - first] if index >= first else None
            place: dict[str, Json] = {"index": first if call is not None and call.place == "first" else index}
            begun: list[Json] = [{"content_block": block} for block in starts]
            writer.add_block(_BLOCK, {} if call is not None and call.place == "none" else place, begun, deltas)
        end: dict[str, Json] = {"finish": self.finish[reply.finish], "completion": reply.tokens}
        writer.add("finish", "message_delta", self.fill("end", end))
        writer.add("done", "message_stop", {})
        for at in [at for at, event in enumerate(writer.events, 1) if event.tag == "start"][:1]:
            writer.events.insert(at, _PING)
        return writer.events

    def _message(self, ask: Ask, envelope: Envelope, tokens: int, content: list[Json], finish: str | None) -> Json:
        values: dict[str, Json] = {"id": mint_id(envelope.rng, "msg_01{alnum 22}"), "model": envelope.model}
        values |= {"content": content, "finish": finish, **usage_of((), ask), "completion": tokens}
        return self.fill("message", values)


def _sign(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(96)).decode()


_BLOCK = ("content_block_start", "content_block_delta", "content_block_stop")


def _write_call(call: Call) -> tuple[list[Json], list[Json]]:
    """Return the starts and the deltas of a tool use. A second start of one block is a fault (`id-unstable`)."""
    block: dict[str, Json] = {"type": "tool_use", "id": call.id, "name": call.name}
    block["input"] = decode_value(call.start or "{}")
    starts: list[Json] = [block, block | {"id": call.later_id}] if call.later_id else [block]
    pieces = ("", *split_pieces(call.arguments))
    return starts, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


class VertexAnthropic(Anthropic):
    key = "vertex_anthropic"
    streaming_verb: ClassVar[str] = "streamRawPredict"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        model, verb = self.model_in(target)
        ask = super().read_request({**body, "model": model}, target)
        return replace(ask, stream=ask.stream or verb == self.streaming_verb)


class BedrockAnthropic(VertexAnthropic):
    key = "bedrock_anthropic"
    ping = encode_message(Event("ping", "{}", "ping"))
    streaming_verb = "invoke-with-response-stream"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        return replace(super().read_request(body, target), framing="messages")

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        return [
            Event(event.tag, dump_json({"bytes": base64.b64encode(event.data.encode()).decode()}), "chunk")
            for event in super().make_events(replies, ask, envelope)
        ]

    def make_error_events(self, status: int, message: str) -> list[Event]:
        kind = "throttlingException" if status == 429 else "modelStreamErrorException"
        return [Event("error", dump_json({"message": message}), kind)]
