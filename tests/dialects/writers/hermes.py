"""A JSON object in a tag."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_hermes_json(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def write_longcat(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<longcat_tool_call>{body}</longcat_tool_call>"


JSON_WRITERS = [("hermes_json", write_hermes_json), ("longcat", write_longcat)]
SOUP = {
    "half-openers": "<tool_call",
    "openers": "<tool_call>",
    "openers-with-brace": "<tool_call>{",
    "openers-with-key": '<tool_call>{"a',
    "openers-with-name": '<tool_call>{"name": "x", "arguments": {',
    "openers-in-lists": '<tool_call>[{"name":',
    "openers-single-quoted": "<tool_call>{'name': ",
    "orphans": '{"name": "x", "arguments":\n',
    "weak": '<json>{"name": "x", "arguments": {}}',
    "weak-in-weak": '<tools>{"name": "x", "arguments": {"a": ',
    "requests": '[TOOL_REQUEST]{"name": "',
    "longcat": '<longcat_tool_call>{"name": "x", "arguments": {"',
    "line-end-tokens": "<tool_call><0x0A>{" + "<0x0A>" * 20,
    "surplus": '<tool_call>{"name": "x", "arguments": {}}}}}}]],',
    "brackets": "<tool_call>" + "[" * 40,
    "blanks": "<tool_call>" + " " * 400,
}
