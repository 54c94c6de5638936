"""Cohere's chat, version 2, streams included.

Content blocks and calls are numbered apart, each told by its start, deltas and end; what the model plans before its calls
comes in `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
https://docs.cohere.com/v2/docs/streaming
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.api import Ability, Envelope, RequestError, object_of, objects_in, string_of, text_of
from wirelint.mock.ids import random_text
from wirelint.mock.openai_chat import OpenAIChat
from wirelint.mock.plan import Ask, Choice, Reply, dump_json, split_pieces
from wirelint.model import Json

_CHOICES: dict[str, Choice] = {"NONE": "none", "REQUIRED": "required"}
_FINISH = {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS", "refusal": "COMPLETE"}


class Cohere:
    name = "cohere.chat"
    path = "/v2/chat"
    abilities: frozenset[Ability] = frozenset({"text", "reasons", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        if not string_of(body.get("model")):
            raise RequestError("invalid request: model is required")
        ask = OpenAIChat().read_request(body, target)
        result = ask.result
        if result is not None:
            last = objects_in(body.get("messages"))[-1]
            documents = [object_of(one.get("document")) for one in objects_in(last.get("content"))]
            result = "\n".join(string_of(one.get("data")) for one in documents if one) or text_of(last.get("content"))
        thinks = object_of(body.get("thinking")).get("type") == "enabled"
        choice = _CHOICES.get(string_of(body.get("tool_choice")), "auto")
        return replace(ask, result=result, choice=choice, thinking=thinks, usage=True, choices=1)

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return f"{name}_{random_text(rng, 12, 'abcdefghijklmnopqrstuvwxyz0123456789')}"

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("x-debug-trace-id", random_text(envelope.rng, 32, "0123456789abcdef")),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        message: dict[str, Json] = {"role": "assistant"}
        text = reply.text or reply.refusal
        if reply.calls:
            message["tool_plan"] = reply.reasoning
            message["tool_calls"] = [_make_call(one.id, one.name, one.start + one.arguments) for one in reply.calls]
        content: list[Json] = []
        if reply.reasoning and not reply.calls:
            content.append({"type": "thinking", "thinking": reply.reasoning})
        if text:
            content.append({"type": "text", "text": text})
        if content or not reply.calls:
            message["content"] = content
        head: dict[str, Json] = {"id": _mint_id(envelope), "message": message}
        return {**head, "finish_reason": _FINISH[reply.finish], "usage": _make_usage(reply, ask)}

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        writer = _Writer()
        empty: Json = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        writer.add("open", "message-start", {"id": _mint_id(envelope), "delta": {"message": empty}})
        if reply.calls:
            for piece in split_pieces(reply.reasoning):
                writer.say("delta", "tool-plan-delta", None, {"tool_plan": piece})
        elif reply.reasoning:
            writer.add_content("thinking", reply.reasoning)
        if reply.text or reply.refusal:
            writer.add_content("text", reply.text or reply.refusal)
        for number, call in enumerate(reply.calls):
            writer.say("start", "tool-call-start", number, {"tool_calls": _make_call(call.id, call.name, "")})
            for piece in split_pieces(call.start + call.arguments):
                writer.say("delta", "tool-call-delta", number, {"tool_calls": {"function": {"arguments": piece}}})
            writer.add("stop", "tool-call-end", {"index": number})
        end: Json = {"finish_reason": _FINISH[reply.finish], "usage": _make_usage(reply, ask)}
        writer.add("finish", "message-end", {"delta": end})
        return [*writer.events, Event("done", "[DONE]")]

    def make_error(self, status: int, message: str) -> Json:
        return {"id": "5c1f3e0a-7d2b-4e86-9f14-0b6a8d3c7e21", "message": message}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        value: Json = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": message}}
        return [Event("error", dump_json(value), "message-end")]


def _mint_id(envelope: Envelope) -> str:
    return "-".join(random_text(envelope.rng, size, "0123456789abcdef") for size in (8, 4, 4, 4, 12))


def _make_call(id_: str, name: str, arguments: str) -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def _make_usage(reply: Reply, ask: Ask) -> Json:
    counts: Json = {"input_tokens": ask.prompt_tokens, "output_tokens": reply.tokens}
    return {"billed_units": counts, "tokens": counts}


@dataclass(slots=True)
class _Writer:
    """Collects the events of one stream; numbers its content blocks."""

    events: list[Event] = field(default_factory=list)
    blocks: int = 0

    def add(self, tag: Tag, kind: str, value: dict[str, Json]) -> None:
        self.events.append(Event(tag, dump_json({"type": kind, **value}), kind))

    def say(self, tag: Tag, kind: str, index: int | None, message: Json) -> None:
        number: dict[str, Json] = {} if index is None else {"index": index}
        self.add(tag, kind, {**number, "delta": {"message": message}})

    def add_content(self, kind: str, text: str) -> None:
        index = self.blocks
        self.blocks += 1
        self.say("start", "content-start", index, {"content": {"type": kind, kind: ""}})
        for piece in split_pieces(text):
            self.say("delta", "content-delta", index, {"content": {kind: piece}})
        self.add("stop", "content-end", {"index": index})
