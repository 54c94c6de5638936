"""Calls as plain JSON."""

from __future__ import annotations

import json


def _body(name: str, arguments: dict[str, str]) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def write_array(name: str, arguments: dict[str, str]) -> str:
    return f"[{_body(name, arguments)}]"


def write_envelope(name: str, arguments: dict[str, str]) -> str:
    return f'{{"tool_calls": [{_body(name, arguments)}]}}'


def write_fence(name: str, arguments: dict[str, str]) -> str:
    return f"```json\n{_body(name, arguments)}\n```"


TEXT_WRITERS = [
    ("bare_json_array", write_array),
    ("generic_json_envelope", write_envelope),
    ("fenced_json_call", write_fence),
]
SOUP = {
    "arrays": "[{",
    "arrays-thought": '</think>[{"name": "x", "arguments": {',
    "arrays-thought-strings": '</think>[{"name": "x", "arguments": {"y": "',
    "arrays-single-quoted": "</think>[{'name': 'x', 'arguments': {'y': ",
    "envelopes": '</think>{"tool_calls": [{"name": "x", ',
    "contents": '</think>{"content": "y',
    "fences": "```json\n{",
    "fences-with-name": '```json\n{"name": "x", "arguments": {',
    "fences-single-quoted": "```json\n{'name': 'x', 'arguments': {'y': ",
    "fences-unclosed": '```json\n{"name": "x", "arguments": {}}\n',
    "values": '[{"name": "x", "arguments": {}}]',
    "ticks": "`",
}
