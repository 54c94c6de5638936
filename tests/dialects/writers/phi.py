"""An array after `functools`, or between the tokens of a tool turn."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_phi4_functools(name: str, arguments: dict[str, Json]) -> str:
    return "functools" + json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)


def write_phi4_tool_call(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)
    return f"<|tool_call|>{body}<|/tool_call|>"


JSON_WRITERS = [("phi4_functools", write_phi4_functools), ("phi4_tool_call", write_phi4_tool_call)]
SOUP = {
    "words": "functools[{",
    "words-with-key": ' functools[{"name',
    "words-with-call": ' functools[{"name": "x", "arguments": {',
    "words-single-quoted": " functools[{'name': ",
    "words-with-array": ' functools[{"name": "x", "arguments": {}}]',
    "tokens": "<|tool_call|>",
    "tokens-with-bracket": "<|tool_call|>[",
    "tokens-with-call": '<|tool_call|>[{"name": "x", "arguments": {',
    "tokens-unclosed": '<|tool_call|>[{"name": "x", "arguments": {}}]',
}
