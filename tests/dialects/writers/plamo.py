"""Name and arguments, each between tokens of their own."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_plamo3(name: str, arguments: dict[str, Json]) -> str:
    inside = _between("tool_name", name) + _between(
        "tool_arguments", f"<|plamo:constrain|>json<|plamo:msg|>{json.dumps(arguments, ensure_ascii=False)}"
    )
    return _between("tool_requests", _between("tool_request", inside))


def _between(token: str, inside: str) -> str:
    return f"<|plamo:begin_{token}:plamo|>{inside}<|plamo:end_{token}:plamo|>"


JSON_WRITERS = [("plamo3", write_plamo3)]
SOUP = {
    "requests": "<|plamo:begin_tool_requests:plamo|>",
    "names": "<|plamo:begin_tool_name:plamo|>x",
    "arguments": "<|plamo:begin_tool_arguments:plamo|>",
    "arguments-with-brace": "<|plamo:begin_tool_arguments:plamo|>{",
    "arguments-with-string": '<|plamo:begin_tool_name:plamo|>x<|plamo:begin_tool_arguments:plamo|>{"y": "',
    "apart": "<|plamo:begin_tool_arguments:plamo|> x ",
}
