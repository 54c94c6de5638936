"""RWKV: a heading and a fence."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_rwkv(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"**Tool Call:**\n```json\n{body}\n```"


JSON_WRITERS = [("rwkv_markdown", write_rwkv)]
SOUP = {
    "headings": "**Tool Call:**",
    "with-fence": "**Tool Call:**\n```json\n",
    "with-brace": '**Tool Call:**\n```json\n{"name": "x", ',
    "single-quoted": "**Tool Call:**\n```json\n{'name': 'x', ",
    "no-fence": '**Tool Call:** {"name": "x", "arguments": {}}',
}
