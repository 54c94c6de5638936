"""dots: plain invokes or an object in a wrapper of their own."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_dots_json(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<dots_function_call>\n{body}\n</dots_function_call>"


def write_dots_tags(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<parameter name="{key}">{text}</parameter>\n' for key, text in arguments.items())
    return f'<dots_function_call>\n<invoke name="{name}">\n{inside}</invoke>\n</dots_function_call>'


JSON_WRITERS = [("dots_function_call", write_dots_json)]
TEXT_WRITERS = [("dots_function_call", write_dots_tags)]
SOUP = {
    "wrappers": "<dots_function_call>",
    "with-brace": "<dots_function_call>{",
    "with-name": '<dots_function_call>{"name": "x", "arguments": {',
    "with-parameter": '<dots_function_call><invoke name="x"><parameter name="y">',
    "closers": "</dots_function_call> x ",
}
