"""A message per call, whose object names the tool again."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_inkling(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "args": arguments}, ensure_ascii=False, separators=(",", ":"))
    return f"<|message_model|>{name}<|content_invoke_tool_json|>{body}<|end_message|>"


JSON_WRITERS = [("inkling", write_inkling)]
SOUP = {
    "headers": "<|message_model|>x<|content_invoke_tool_json|>",
    "headers-alone": "<|message_model|>x",
    "headers-with-brace": "<|message_model|>x<|content_invoke_tool_json|>{",
    "headers-with-call": '<|message_model|>x<|content_invoke_tool_json|>{"name":"x","args":{"y":',
    "contents-with-string": '<|content_invoke_tool_json|>{"name":"',
    "texts": "<|message_model|>x<|content_invoke_tool_text|>y",
}
