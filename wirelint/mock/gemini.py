"""Gemini's `generateContent` as Google shapes it, at the paths of the Gemini API and of Vertex AI.

A stream is server-sent events with `?alt=sse` and one JSON array without; every event is a reply of its own with more
parts. Calls come whole, arguments as a value, without ids. Nothing ends a stream but the finish reason.
https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.api import (
    Ability,
    Envelope,
    RequestError,
    count_of,
    decode_object,
    object_of,
    objects_in,
    string_of,
    text_of,
)
from wirelint.mock.ids import random_text
from wirelint.mock.plan import Ask, Call, Choice, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json

_CHOICES: dict[str, Choice] = {"NONE": "none", "ANY": "required"}
_FINISH = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "refusal": "STOP"}
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


class Gemini:
    name = "google.generate_content"
    path = r"/.*models/(?P<model>[^/:]+):(generateContent|streamGenerateContent)"
    abilities: frozenset[Ability] = frozenset({"chat", "calls", "counts", "ends"})
    busy_status = 503
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        contents = objects_in(body.get("contents"))
        if not contents:
            raise RequestError("GenerateContentRequest.contents: contents is not specified")
        path, _, query = target.partition("?")
        found = re.fullmatch(self.path, path)
        parts = [part for content in contents for part in objects_in(content.get("parts"))]
        results = [
            part["functionResponse"] for part in objects_in(contents[-1].get("parts")) if "functionResponse" in part
        ]
        config = object_of(object_of(body.get("toolConfig")).get("functionCallingConfig"))
        allowed = config.get("allowedFunctionNames")
        users = [text_of(one.get("parts")) for one in contents if one.get("role", "user") == "user"]
        thinking = object_of(object_of(body.get("generationConfig")).get("thinkingConfig"))
        return Ask(
            model=unquote(found["model"]) if found else "",
            tools=tuple(_read_tools(body)),
            choice=_CHOICES.get(string_of(config.get("mode")).upper(), "auto"),
            forced=string_of(allowed[0]) if isinstance(allowed, list) and len(allowed) == 1 else None,
            user_text=next((text for text in reversed(users) if text), ""),
            result="\n".join(dump_json(object_of(one).get("response")) for one in results) if results else None,
            result_tool=string_of(object_of(results[-1]).get("name"), "the tool") if results else "the tool",
            calls_before=sum("functionCall" in part for part in parts),
            stream=path.endswith(":streamGenerateContent"),
            framing="events" if parse_qs(query).get("alt") == ["sse"] else "array",
            limit=count_of(object_of(body.get("generationConfig")).get("maxOutputTokens")),
            usage=True,
            thinking=thinking.get("includeThoughts") is True,
            prompt_tokens=max(len(dump_json([body.get("contents"), body.get("tools")])) // 4, 1),
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        """None stands on the wire; markup that leaks may show one."""
        return f"{name}-{number}"

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("server", "scaffolding on HTTPServer2"), ("vary", "Origin"))

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        text = reply.text or reply.refusal
        said: list[Json] = []
        if reply.reasoning:
            said.append({"text": reply.reasoning, "thought": True})
        if text or not reply.calls:
            said.append({"text": text})
        return _make_reply([*said, *_make_calls(reply, envelope.rng)], reply, ask, _make_head(envelope), ends=True)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply, head = replies[0], _make_head(envelope)
        events: list[Event] = []

        def add(tag: Tag, *parts: Json, ends: bool = False) -> None:
            events.append(Event(tag, dump_json(_make_reply(list(parts), reply, ask, head, ends=ends))))

        for piece in split_pieces(reply.reasoning):
            add("delta", {"text": piece, "thought": True})
        for piece in split_pieces(reply.text or reply.refusal):
            add("delta", {"text": piece})
        for call in _make_calls(reply, envelope.rng):
            add("delta", call)
        add("finish", {"text": ""}, ends=True)
        return events

    def make_error(self, status: int, message: str) -> Json:
        return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "UNAVAILABLE")}}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json(self.make_error(status, message)))]


def _read_tools(body: dict[str, Json]) -> list[Tool]:
    declared = [one for tool in objects_in(body.get("tools")) for one in objects_in(tool.get("functionDeclarations"))]
    return [Tool(string_of(one.get("name")), _read_schema(one)) for one in declared if one.get("name")]


def _read_schema(declared: dict[str, Json]) -> dict[str, Json]:
    """The SDK for Python writes some members in snake case."""
    plain = declared.get("parametersJsonSchema") or declared.get("parameters_json_schema")
    return object_of(plain) or object_of(_lower_types(declared.get("parameters")))


def _lower_types(schema: Json) -> Json:
    """Google's own schemas name types in capitals."""
    if isinstance(schema, list):
        return [_lower_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _lower_types(value)
        for name, value in schema.items()
    }


def _make_head(envelope: Envelope) -> dict[str, Json]:
    return {"modelVersion": envelope.model, "responseId": random_text(envelope.rng, 22)}


def _make_reply(parts: list[Json], reply: Reply, ask: Ask, head: dict[str, Json], *, ends: bool) -> dict[str, Json]:
    finish: dict[str, Json] = {"finishReason": _FINISH[reply.finish]} if ends else {}
    usage: dict[str, Json] = {
        "promptTokenCount": ask.prompt_tokens,
        "totalTokenCount": ask.prompt_tokens + reply.tokens,
    }
    if ends:
        usage["candidatesTokenCount"] = reply.tokens
    content: Json = {"parts": parts, "role": "model"}
    return {"candidates": [{"content": content, **finish, "index": 0}], "usageMetadata": usage, **head}


def _make_calls(reply: Reply, rng: random.Random) -> list[Json]:
    """The parts with calls; the first one carries the signature of the thought that led to them."""
    return [_make_call(call) | ({} if at else {"thoughtSignature": _sign(rng)}) for at, call in enumerate(reply.calls)]


def _make_call(call: Call) -> dict[str, Json]:
    return {"functionCall": {"name": call.name, "args": decode_object(call.start + call.arguments)}}


def _sign(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(48)).decode()
