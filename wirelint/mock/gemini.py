"""Gemini's `generateContent`, at the paths of the Gemini API and of Vertex AI.

A stream is server-sent events with `?alt=sse` and one JSON array without; every event is a reply of its own with more
parts. Calls come whole, arguments as a value, without ids. Only the finish reason ends a stream.
https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import base64
from urllib.parse import parse_qs

from wirelint.mock.answer import Event, Tag
from wirelint.mock.api import (
    Api,
    Envelope,
    RequestError,
    find,
    last_user_text,
    object_of,
    objects_in,
    read_results,
    read_tools,
    string_of,
    usage_of,
)
from wirelint.mock.plan import Ask, Reply, dump_json, mint_id, split_pieces
from wirelint.model import Json


class Gemini(Api):
    key = "gemini"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        contents = objects_in(body.get("contents"))
        if not contents:
            raise RequestError("GenerateContentRequest.contents: contents is not specified")
        path, _, query = target.partition("?")
        parts = [part for content in contents for part in objects_in(content.get("parts"))]
        calls = [object_of(part["functionCall"]) for part in parts if "functionCall" in part]
        last = objects_in(contents[-1].get("parts"))
        results = [object_of(part["functionResponse"]) for part in last if "functionResponse" in part]
        calling = object_of(find(body, "toolConfig.functionCallingConfig"))
        allowed = calling.get("allowedFunctionNames")
        functions = (
            one for row in objects_in(body.get("tools")) for one in objects_in(row.get("functionDeclarations"))
        )
        # The SDK for Python writes some members in snake case.
        names = ("parametersJsonSchema", "parameters_json_schema")
        declared = (
            one | {"schema": one.get(names[0]) or one.get(names[1]) or _lower_types(one.get("parameters"))}
            for one in functions
        )
        return self.ask(
            body,
            self.model_in(target)[0],
            tools=read_tools(declared, "schema"),
            choice=self.read_choice(string_of(calling.get("mode")).upper()),
            forced=string_of(allowed[0]) if isinstance(allowed, list) and len(allowed) == 1 else None,
            user_text=last_user_text(contents, "parts"),
            stream=path.endswith(":streamGenerateContent"),
            framing="events" if parse_qs(query).get("alt") == ["sse"] else "array",
            **read_results(results, calls, lambda one: dump_json(one.get("response")), call_id=""),
        )

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        parts: list[Json] = [{"text": reply.reasoning, "thought": True}] if reply.reasoning else []
        if reply.shown or not reply.calls:
            parts.append({"text": reply.shown})
        return self._reply([*parts, *_write_calls(reply, envelope)], reply, ask, self._head(envelope), ends=True)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply, head = replies[0], self._head(envelope)

        def event(tag: Tag, part: Json) -> Event:
            return Event(tag, dump_json(self._reply([part], reply, ask, head, ends=tag == "finish")))

        parts: list[Json] = [{"text": piece, "thought": True} for piece in split_pieces(reply.reasoning)]
        parts += [{"text": piece} for piece in split_pieces(reply.shown)]
        parts += _write_calls(reply, envelope)
        return [*(event("delta", part) for part in parts), event("finish", {"text": ""})]

    def _head(self, envelope: Envelope) -> dict[str, Json]:
        return self.fill("head", {"model": envelope.model, "id": mint_id(envelope.rng, "{alnum 22}")})

    def _reply(self, parts: list[Json], reply: Reply, ask: Ask, head: dict[str, Json], *, ends: bool) -> Json:
        counts = usage_of((reply,), ask)
        usage: dict[str, Json] = {"promptTokenCount": counts["prompt"], "totalTokenCount": counts["total"]}
        finish: dict[str, Json] = {}
        if ends:
            usage["candidatesTokenCount"] = counts["completion"]
            finish["finishReason"] = self.finish[reply.finish]
        content: Json = {"parts": parts, "role": "model"}
        return {"candidates": [{"content": content, **finish, "index": 0}], "usageMetadata": usage, **head}


def _lower_types(schema: Json) -> Json:
    """Return a copy of a schema with types in lower case; Google's own schemas have capitals."""
    if isinstance(schema, list):
        return [_lower_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _lower_types(value)
        for name, value in schema.items()
    }


def _write_calls(reply: Reply, envelope: Envelope) -> list[Json]:
    """Return the parts with calls; the first one carries the signature of the thought before them."""
    parts: list[Json] = []
    for call in reply.calls:
        part: dict[str, Json] = {"functionCall": {"name": call.name, "args": call.value}}
        if not parts:
            part["thoughtSignature"] = base64.b64encode(envelope.rng.randbytes(48)).decode()
        parts.append(part)
    return parts
