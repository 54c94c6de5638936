"""Requests for the mock server."""

from __future__ import annotations

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


def with_result(body: dict[str, Any], result: str) -> dict[str, Any]:
    """The second turn of an OpenAI conversation: one call of get_weather and its result."""
    call = {"id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    more: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_a", "content": result},
    ]
    return body | {"messages": [*body["messages"], *more]}
