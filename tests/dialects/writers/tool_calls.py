"""JSON in `<tool_calls>`, as an array and a line each."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_array(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)
    return f"<tool_calls>{body}</tool_calls>"


def write_lines(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_calls>\n{body}\n</tool_calls>"


JSON_WRITERS = [("tool_calls_array", write_array), ("minimax_m1", write_lines)]
SOUP = {
    "openers": "<tool_calls>",
    "arrays": '<tool_calls>[{"name": "x", "arguments": {',
    "lines": '<tool_calls>\n{"name": "x", "arguments": {}}\n',
    "tagged": '<tool_calls><tool_call>{"name": "x", "arguments": {}}</tool_call>',
    "single-quoted": "<tool_calls>[{'name': ",
}
