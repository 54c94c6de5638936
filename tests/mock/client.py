"""Requests for the mock server, and what a naive client makes of its answers; the standard library is all it trusts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Current weather of a city",
    "schema": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
        },
        "required": ["city", "unit", "days"],
        "additionalProperties": False,
    },
}
NEWS: dict[str, Any] = {
    "name": "search_news",
    "description": "Search the news",
    "schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def scenario(self) -> str:
        return self.headers["x-wirelint-mock"]


@dataclass
class Said:
    """What a naive client makes of an answer, whole or streamed."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    finish: str | None = None
    ended: bool = False
    error: Any = None
    events: list[tuple[str | None, Any]] = field(default_factory=list)


def make_body(api: str, *, stream: bool, tools: bool = True, model: str = "some-model", **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "stream": stream,
        "messages": [{"role": "user", "content": "What is the weather in Paris like?"}],
    }
    if api == "anthropic":
        body["max_tokens"] = 1024
    if tools and api == "anthropic":
        body["tools"] = [{"name": one["name"], "input_schema": one["schema"]} for one in (WEATHER, NEWS)]
    elif tools:
        body["tools"] = [
            {"type": "function", "function": {"name": one["name"], "parameters": one["schema"]}}
            for one in (WEATHER, NEWS)
        ]
    return body | more


def with_result(api: str, body: dict[str, Any], result: str) -> dict[str, Any]:
    """The second turn of `body`: one call of get_weather and its result."""
    if api == "anthropic":
        call: Any = {"type": "tool_use", "id": "toolu_01aaaaaaaaaaaaaaaaaaaaaa", "name": "get_weather", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
        more: list[dict[str, Any]] = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    else:
        call = {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
        more = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_a", "content": result},
        ]
    return body | {"messages": [*body["messages"], *more]}


def parse_sse(text: str) -> list[tuple[str | None, str]]:
    """(event name, data) by the letter of the event-stream grammar; an event that no blank line ends is dropped."""
    events: list[tuple[str | None, str]] = []
    name: str | None = None
    data: list[str] = []
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    for line in text.split("\n"):
        if not line:
            if data:
                events.append((name, "\n".join(data)))
            name, data = None, []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
    return events


def understand(api: str, response: Response) -> Said:
    """Assembles an answer. Raises for event data that is not JSON."""
    streamed = "event-stream" in response.headers["content-type"]
    if api == "anthropic":
        return _anthropic_stream(response) if streamed else _anthropic_body(response.json)
    return _openai_stream(response) if streamed else _openai_body(response.json)


def _openai_body(body: Any) -> Said:
    said = Said(error=body.get("error"), ended=True)
    if said.error is None:
        choice = body["choices"][0]
        message = choice["message"]
        said.text, said.reasoning = message["content"] or "", message.get("reasoning_content", "")
        said.refusal = message["refusal"] or ""
        said.calls = [{"id": one["id"], **one["function"]} for one in message.get("tool_calls", ())]
        said.finish = choice["finish_reason"]
    return said


def _openai_stream(response: Response) -> Said:
    said = Said()
    calls: dict[int, dict[str, str]] = {}
    for name, data in parse_sse(response.body.decode()):
        if data == "[DONE]":
            said.ended = True
            continue
        event = json.loads(data)
        said.events.append((name, event))
        said.error = event.get("error", said.error)
        for choice in event.get("choices", ()):
            if choice["index"]:
                continue
            delta = choice["delta"]
            said.text += delta.get("content") or ""
            said.reasoning += delta.get("reasoning_content") or ""
            said.refusal += delta.get("refusal") or ""
            said.finish = choice["finish_reason"] or said.finish
            for one in delta.get("tool_calls", ()):
                call = calls.setdefault(one.get("index", 0), {"id": one.get("id", ""), "name": "", "arguments": ""})
                call["name"] = call["name"] or one["function"].get("name", "")
                call["arguments"] += one["function"]["arguments"]
    said.calls = list(calls.values())
    return said


def _input_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _anthropic_body(body: Any) -> Said:
    said = Said(error=body.get("error"), ended=True)
    for block in body.get("content", ()):
        said.text += block.get("text", "")
        said.reasoning += block.get("thinking", "")
        if block["type"] == "tool_use":
            arguments = _input_text(block["input"])
            said.calls.append({"id": block["id"], "name": block["name"], "arguments": arguments})
    said.finish = body.get("stop_reason")
    return said


def _anthropic_stream(response: Response) -> Said:
    said = Said()
    calls: dict[int, dict[str, str]] = {}
    for name, data in parse_sse(response.body.decode()):
        event = json.loads(data)
        said.events.append((name, event))
        delta = event.get("delta", {})
        match event["type"]:
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                block = event["content_block"]
                start = json.dumps(block["input"]) if block["input"] else ""
                calls.setdefault(event.get("index", 0), {"id": block["id"], "name": block["name"], "arguments": start})
            case "content_block_delta":
                said.text += delta.get("text", "")
                said.reasoning += delta.get("thinking", "")
                if "partial_json" in delta and event.get("index", 0) in calls:
                    calls[event.get("index", 0)]["arguments"] += delta["partial_json"]
            case "message_delta":
                said.finish = delta["stop_reason"]
            case "message_stop":
                said.ended = True
            case "error":
                said.error = event["error"]
    said.calls = list(calls.values())
    return said


Post = Callable[..., Response]
"""(API or path, body, scenario, headers) -> Response."""
