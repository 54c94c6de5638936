"""An array between two unnamed tokens."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_pangu_unused(name: str, arguments: dict[str, Json]) -> str:
    return f"[unused11]{json.dumps([{'name': name, 'arguments': arguments}], ensure_ascii=False)}[unused12]"


JSON_WRITERS = [("pangu_unused", write_pangu_unused)]
SOUP = {
    "tokens": "[unused11]",
    "tokens-with-brace": "[unused11][{",
    "tokens-with-call": '[unused11][{"name": "x", "arguments": {',
    "tokens-unclosed": '[unused11][{"name": "x", "arguments": {}}]',
}
