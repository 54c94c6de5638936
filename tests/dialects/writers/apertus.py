"""An array of objects with one key, the name."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_apertus(name: str, arguments: dict[str, Json]) -> str:
    return f"<|tools_prefix|>{json.dumps([{name: arguments}], ensure_ascii=False)}<|tools_suffix|>"


JSON_WRITERS = [("apertus", write_apertus)]
SOUP = {
    "tokens": "<|tools_prefix|>",
    "tokens-with-brace": "<|tools_prefix|>[{",
    "tokens-with-name": '<|tools_prefix|>[{"x": {"y": ',
    "tokens-single-quoted": "<|tools_prefix|>[{'x': {",
    "tokens-unclosed": '<|tools_prefix|>[{"x": {}}]',
}
