"""Requests for the mock server."""

from __future__ import annotations

import json
from typing import Any

from tests.build import Talk, User, schema

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
NAMES = {"openai": "openai.chat", "anthropic": "anthropic.messages"}
TOOLS = {
    "get_weather": schema(
        city="string",
        unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
        days={"type": "integer", "minimum": 1, "maximum": 7},
    ),
    "search_news": schema(query="string"),
}


def make_body(api: str, *, stream: bool, tools: bool = True, model: str = "some-model", **more: Any) -> dict[str, Any]:
    talk = Talk((User("What is the weather in Paris like?"),), tools=TOOLS if tools else {}, model=model)
    body: dict[str, Any] = json.loads(talk.record(NAMES[api], stream)["request"]["body"])
    body.pop("stream_options", None)
    return body | {"stream": stream} | more


def with_result(body: dict[str, Any], result: str) -> dict[str, Any]:
    """The second turn of an OpenAI conversation: one call of get_weather and its result."""
    call = {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    more: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_a", "content": result},
    ]
    return body | {"messages": [*body["messages"], *more]}
