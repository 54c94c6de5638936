"""InternLM's action tokens."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_internlm(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)
    return f"<|action_start|><|plugin|>\n{body}<|action_end|>"


JSON_WRITERS = [("internlm2", write_internlm)]
SOUP = {
    "tokens": "<|action_start|>",
    "plugins": "<|action_start|><|plugin|>{",
    "objects": '<|action_start|><|plugin|>{"name": "x", "parameters": {',
    "code": "<|action_start|><|interpreter|>```python\n",
}
