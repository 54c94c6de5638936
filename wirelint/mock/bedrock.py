"""Amazon Bedrock's Converse: a JSON body, or the messages of an AWS event stream.

A content block is told by its one member. In a stream only the block of a tool has a start; `messageStop` has the reason
and `metadata` the usage. Every event has padding `p` of varying length, as the vendor's have.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from wirelint.mock.answer import Event, Headers, Tag
from wirelint.mock.api import (
    Ability,
    Envelope,
    count_of,
    decode_object,
    messages_of,
    object_of,
    objects_in,
    string_of,
    text_of,
)
from wirelint.mock.framing import encode_message
from wirelint.mock.ids import random_text
from wirelint.mock.plan import Ask, Choice, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json

_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "end_turn"}
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Bedrock:
    name = "bedrock.converse"
    path = r"/model/(?P<model>.+)/converse(-stream)?"
    abilities: frozenset[Ability] = frozenset({"text", "reasons", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 429
    ping = encode_message(Event("ping", "{}", "ping"))

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        path = target.partition("?")[0]
        found = re.fullmatch(self.path, path)
        blocks = [block for message in messages for block in objects_in(message.get("content"))]
        calls = [object_of(block["toolUse"]) for block in blocks if "toolUse" in block]
        last = objects_in(messages[-1].get("content"))
        results = [object_of(block["toolResult"]) for block in last if "toolResult" in block]
        names = {string_of(call.get("toolUseId")): string_of(call.get("name")) for call in calls}
        config = object_of(body.get("toolConfig"))
        choice = object_of(config.get("toolChoice"))
        users = [text_of(one.get("content")) for one in messages if one.get("role") == "user"]
        return Ask(
            model=unquote(found["model"]) if found else "",
            tools=tuple(_read_tools(config)),
            choice=_read_choice(choice),
            forced=string_of(object_of(choice.get("tool")).get("name")) or None,
            user_text=next((text for text in reversed(users) if text), ""),
            result="\n".join(_text_of_result(one) for one in results) if results else None,
            result_tool=names.get(string_of(results[-1].get("toolUseId")), "the tool") if results else "the tool",
            calls_before=len(calls),
            stream=path.endswith("-stream"),
            framing="messages",
            limit=count_of(object_of(body.get("inferenceConfig")).get("maxTokens")),
            usage=True,
            thinking="thinking" in object_of(body.get("additionalModelRequestFields")),
            preamble=True,
            prompt_tokens=max(len(dump_json([body.get("messages"), config])) // 4, 1),
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return f"tooluse_{random_text(rng, 22)}"

    def make_headers(self, envelope: Envelope) -> Headers:
        parts = (random_text(envelope.rng, size, "0123456789abcdef") for size in (8, 4, 4, 4, 12))
        return (("x-amzn-requestid", "-".join(parts)),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            content.append({"reasoningContent": {"reasoningText": {"text": reply.reasoning, "signature": "c2lnbmVk"}}})
        if reply.text or reply.refusal:
            content.append({"text": reply.text or reply.refusal})
        for call in reply.calls:
            given = decode_object(call.start + call.arguments)
            content.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": given}})
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": _STOP_REASONS[reply.finish],
            "usage": _make_usage(reply, ask),
            "metrics": {"latencyMs": 512},
        }

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        writer = _Writer(envelope.rng)
        writer.add("open", "messageStart", {"role": "assistant"})
        if reply.reasoning:
            said: list[Json] = [{"reasoningContent": {"text": piece}} for piece in split_pieces(reply.reasoning)]
            writer.add_block([*said, {"reasoningContent": {"signature": "c2lnbmVk"}}])
        if reply.text or reply.refusal:
            writer.add_block([{"text": piece} for piece in split_pieces(reply.text or reply.refusal)])
        for call in reply.calls:
            pieces: list[Json] = [{"toolUse": {"input": one}} for one in split_pieces(call.start + call.arguments)]
            writer.add_block(pieces, {"toolUse": {"toolUseId": call.id, "name": call.name}})
        writer.add("finish", "messageStop", {"stopReason": _STOP_REASONS[reply.finish]})
        writer.add("done", "metadata", {"usage": _make_usage(reply, ask), "metrics": {"latencyMs": 512}})
        return writer.events

    def make_error(self, status: int, message: str) -> Json:
        return {"message": message}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        kind = "throttlingException" if status == 429 else "modelStreamErrorException"
        return [Event("error", dump_json(self.make_error(status, message)), kind)]


def _read_tools(config: dict[str, Json]) -> list[Tool]:
    specs = [object_of(tool.get("toolSpec")) for tool in objects_in(config.get("tools"))]
    return [
        Tool(string_of(spec.get("name")), object_of(object_of(spec.get("inputSchema")).get("json")))
        for spec in specs
        if spec.get("name")
    ]


def _read_choice(choice: dict[str, Json]) -> Choice:
    return "required" if "any" in choice else "auto"


def _text_of_result(result: dict[str, Json]) -> str:
    parts = objects_in(result.get("content"))
    return "\n".join(string_of(part.get("text")) or dump_json(part.get("json")) for part in parts)


def _make_usage(reply: Reply, ask: Ask) -> Json:
    total = ask.prompt_tokens + reply.tokens
    return {"inputTokens": ask.prompt_tokens, "outputTokens": reply.tokens, "totalTokens": total}


@dataclass(slots=True)
class _Writer:
    """Collects the events of one stream; numbers its blocks."""

    rng: random.Random
    events: list[Event] = field(default_factory=list)
    blocks: int = 0

    def add(self, tag: Tag, name: str, value: dict[str, Json]) -> None:
        padding = _PADDING[: self.rng.randrange(1, len(_PADDING))]
        self.events.append(Event(tag, dump_json({**value, "p": padding}), name))

    def add_block(self, deltas: list[Json], start: Json = None) -> None:
        place: dict[str, Json] = {"contentBlockIndex": self.blocks}
        self.blocks += 1
        if start is not None:
            self.add("start", "contentBlockStart", {**place, "start": start})
        for delta in deltas:
            self.add("delta", "contentBlockDelta", {**place, "delta": delta})
        self.add("stop", "contentBlockStop", place)
