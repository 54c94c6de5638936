"""Ollama's own API, chat and generate: JSON lines unless the request declines the stream.

A call comes whole, in a line of its own, its arguments a value; a reply with calls ends with `stop` like any other. The
last line has `done: true`, the reason and the counts. An error is a string, in a stream a line of its own.
https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers
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
from wirelint.mock.ids import mint_call_id
from wirelint.mock.plan import Ask, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json


class _Ollama:
    """What chat and generate have in common. A line says pieces of a message, under the name `_words` where it is text."""

    abilities: frozenset[Ability] = frozenset({"chat", "calls", "counts", "ends"})
    busy_status = 503
    ping = KEEP_ALIVE
    _words = "content"

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        """None stands on the wire; markup that leaks may show one."""
        return mint_call_id(model, rng, name, number, position)

    def make_headers(self, envelope: Envelope) -> Headers:
        return ()

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        said: dict[str, Json] = {self._words: reply.text or reply.refusal}
        if reply.reasoning:
            said["thinking"] = reply.reasoning
        if reply.calls:
            said["tool_calls"] = _make_calls(reply)
        return self._make_line(said, envelope, self._make_end(reply, ask))

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        said: list[dict[str, Json]] = [{"thinking": piece} for piece in split_pieces(reply.reasoning)]
        said += [{self._words: piece} for piece in split_pieces(reply.text or reply.refusal)]
        said += [{"tool_calls": [call]} for call in _make_calls(reply)]
        lines = [self._make_line({self._words: "", **one}, envelope) for one in said]
        last = self._make_line({self._words: ""}, envelope, self._make_end(reply, ask))
        return [*(Event("delta", dump_json(line)) for line in lines), Event("done", dump_json(last))]

    def make_error(self, status: int, message: str) -> Json:
        return {"error": message}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json(self.make_error(status, message)))]

    def _make_line(self, said: dict[str, Json], envelope: Envelope, end: Json = None) -> dict[str, Json]:
        created = datetime.fromtimestamp(envelope.created, UTC).isoformat().replace("+00:00", "Z")
        return {"model": envelope.model, "created_at": created, **self._place(said), "done": False, **object_of(end)}

    def _place(self, said: dict[str, Json]) -> dict[str, Json]:
        return {"message": {"role": "assistant", **said}}

    def _make_end(self, reply: Reply, ask: Ask) -> Json:
        return {
            "done": True,
            "done_reason": "length" if reply.finish == "length" else "stop",
            "total_duration": 812_000_000,
            "load_duration": 21_000_000,
            "prompt_eval_count": ask.prompt_tokens,
            "prompt_eval_duration": 90_000_000,
            "eval_count": reply.tokens,
            "eval_duration": 700_000_000,
        }


class OllamaChat(_Ollama):
    name = "ollama.chat"
    path = "/api/chat"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        users = [text_of(one.get("content")) for one in messages if one.get("role") == "user"]
        ask = _read_ask(body, next(reversed(users), ""))
        if messages[-1].get("role") == "tool":
            result, tool = text_of(messages[-1].get("content")), string_of(messages[-1].get("tool_name"), "the tool")
            ask = replace(ask, result=result, result_tool=tool)
        tools = [object_of(tool.get("function")) for tool in objects_in(body.get("tools"))]
        declared = (Tool(string_of(one.get("name")), object_of(one.get("parameters"))) for one in tools)
        return replace(ask, tools=tuple(declared), calls_before=len(calls))


class OllamaGenerate(_Ollama):
    name = "ollama.generate"
    path = "/api/generate"
    abilities = frozenset({"chat", "counts", "ends"})
    _words = "response"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        return _read_ask(body, string_of(body.get("prompt")))

    def _place(self, said: dict[str, Json]) -> dict[str, Json]:
        return said


def _read_ask(body: dict[str, Json], user_text: str) -> Ask:
    model = string_of(body.get("model"))
    if not model:
        raise RequestError("model is required")
    return Ask(
        model=model,
        user_text=user_text,
        stream=body.get("stream") is not False,
        framing="lines",
        limit=count_of(object_of(body.get("options")).get("num_predict")),
        usage=True,
        thinking=body.get("think") not in (None, False),
        prompt_tokens=max(len(dump_json(body)) // 4, 1),
    )


def _make_calls(reply: Reply) -> list[Json]:
    return [
        {"function": {"index": at, "name": call.name, "arguments": decode_object(call.start + call.arguments)}}
        for at, call in enumerate(reply.calls)
    ]
