"""Mistral's chat completions: OpenAI's shape with content lists for thinking, calls in one piece, errors of its own.

It has OpenAI's path, so what counts is the host, or the name by which the vendor's SDK introduces itself.
https://docs.mistral.ai/api/#tag/chat
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.api import Ability, Envelope, string_of
from wirelint.mock.ids import random_text
from wirelint.mock.openai_chat import OpenAIChat
from wirelint.mock.plan import Ask, Call, Reply, dump_json, split_pieces
from wirelint.model import Json

_FINISH = {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "stop"}


class Mistral:
    name = "mistral.chat"
    path = "/v1/(chat|agents)/completions"
    abilities: frozenset[Ability] = frozenset({"text", "reasons", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        host = headers.get("host", "").partition(":")[0]
        return host.endswith("mistral.ai") or headers.get("user-agent", "").startswith(("mistral-client", "mistralai"))

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        model = string_of(body.get("model")) or string_of(body.get("agent_id"))
        ask = OpenAIChat().read_request({**body, "model": model}, target)
        return (
            replace(ask, choice="required", usage=True)
            if body.get("tool_choice") == "any"
            else replace(ask, usage=True)
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        del model, name, number, position
        return random_text(rng, 9)

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("mistral-correlation-id", random_text(envelope.rng, 32, "0123456789abcdef")),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        choices: list[Json] = [
            {"index": index, "message": _make_message(reply), "finish_reason": _FINISH[reply.finish]}
            for index, reply in enumerate(replies)
        ]
        return _make_head(envelope, "chat.completion") | {"choices": choices, "usage": _make_usage(replies, ask)}

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = _make_head(envelope, "chat.completion.chunk")
        events: list[Event] = []

        def add(tag: Tag, index: int, delta: Json, finish: str | None = None) -> None:
            choice: Json = {"index": index, "delta": delta, "finish_reason": finish}
            usage: dict[str, Json] = {"usage": _make_usage(replies, ask)} if finish else {}
            events.append(Event(tag, dump_json(head | {"choices": [choice]} | usage)))

        for index, reply in enumerate(replies):
            add("open", index, {"role": "assistant", "content": ""})
            for piece in split_pieces(reply.reasoning):
                add("delta", index, {"content": [_make_thinking(piece)]})
            for piece in split_pieces(reply.text or reply.refusal):
                add("delta", index, {"content": piece})
            if reply.calls:
                calls: list[Json] = [_make_call(call) | {"index": at} for at, call in enumerate(reply.calls)]
                add("delta", index, {"content": "", "tool_calls": calls})
            add("finish", index, {"content": ""}, _FINISH[reply.finish])
        return [*events, Event("done", "[DONE]")]

    def make_error(self, status: int, message: str) -> Json:
        kind = "invalid_request_error" if status < 429 else "service_tier_capacity_exceeded"
        return {"object": "error", "message": message, "type": kind, "param": None, "code": "3505"}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json(self.make_error(status, message)))]


def _make_head(envelope: Envelope, kind: str) -> dict[str, Json]:
    return {
        "id": random_text(envelope.rng, 32, "0123456789abcdef"),
        "object": kind,
        "created": envelope.created,
        "model": envelope.model,
    }


def _make_message(reply: Reply) -> Json:
    text = reply.text or reply.refusal
    content: Json = text
    if reply.reasoning:
        content = [_make_thinking(reply.reasoning), {"type": "text", "text": text}]
    calls: list[Json] = [_make_call(call) for call in reply.calls]
    return {"role": "assistant", "content": content, "tool_calls": calls or None}


def _make_thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _make_call(call: Call) -> dict[str, Json]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.start + call.arguments},
    }


def _make_usage(replies: tuple[Reply, ...], ask: Ask) -> Json:
    completion = sum(reply.tokens for reply in replies)
    counts = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": completion}
    return {**counts, "total_tokens": ask.prompt_tokens + completion}
