"""Granite's arrays, and objects behind a tag that nothing closes."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_granite_token(name: str, arguments: dict[str, Json]) -> str:
    return "<|tool_call|>" + json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)


def write_granite_tag(name: str, arguments: dict[str, Json]) -> str:
    return "<tool_call>" + json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)


def write_granite_20b(name: str, arguments: dict[str, Json]) -> str:
    return "<function_call> " + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def write_glaive(name: str, arguments: dict[str, Json]) -> str:
    return f'<functioncall> {{"name": "{name}", "arguments": \'{json.dumps(arguments)}\'}}'


JSON_WRITERS = [
    ("granite3_array", write_granite_token),
    ("granite3_array", write_granite_tag),
    ("granite_20b_fc", write_granite_20b),
    ("glaive_functioncall", write_glaive),
]
SOUP = {
    "tokens": "<|tool_call|>[",
    "token-arrays": '<|tool_call|>[{"name": "x", "arguments": {',
    "tag-arrays": '<tool_call>[{"name": "x", "arguments": {}},',
    "objects": '<function_call> {"name": "x", "arguments": {',
    "quoted": '<functioncall> {"name": "x", "arguments": \'{"a": ',
    "quoted-strings": '<functioncall> {"name": "x", "arguments": \'{"',
}
