"""Liquid's tokens."""

from __future__ import annotations

from tests.dialects.writers.pythonic import call


def write_lfm2(name: str, arguments: dict[str, str]) -> str:
    return f"<|tool_call_start|>[{call(name, arguments)}]<|tool_call_end|>"


TEXT_WRITERS = [("lfm2", write_lfm2)]
SOUP = {
    "starts": "<|tool_call_start|>",
    "calls": "<|tool_call_start|>[x(",
    "strings": "<|tool_call_start|>[x(y='",
    "json": '<|tool_call_start|>[{"name": "x", "arguments": {',
    "closed": "<|tool_call_start|>[x(y={'a': <|tool_call_end|>",
    "ends": "<|tool_call_end|> x ",
}
