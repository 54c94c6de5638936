"""Nemotron's array in a tag."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_nemotron(name: str, arguments: dict[str, Json]) -> str:
    return f"<TOOLCALL>{json.dumps([{'name': name, 'arguments': arguments}], ensure_ascii=False)}</TOOLCALL>"


JSON_WRITERS = [("nemotron_toolcall", write_nemotron)]
SOUP = {
    "openers": "<TOOLCALL>",
    "arrays": '<TOOLCALL>[{"name": "x", "arguments": {',
    "elements": '<TOOLCALL>[{"name": "x", "arguments": {}},',
    "nested": "<TOOLCALL>" + "[" * 30,
}
