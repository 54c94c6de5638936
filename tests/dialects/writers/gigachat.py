"""GigaChat 3: an object after a header or a token."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_headed(name: str, arguments: dict[str, Json]) -> str:
    return f"<|message_sep|>\n\nfunction call<|role_sep|>\n{_body(name, arguments)}"


def write_token(name: str, arguments: dict[str, Json]) -> str:
    return f"<|function_call|>{_body(name, arguments)}"


def _body(name: str, arguments: dict[str, Json]) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


JSON_WRITERS = [("gigachat3", write_headed), ("gigachat3", write_token)]
SOUP = {
    "headers": "<|message_sep|>\n\nfunction call<|role_sep|>\n",
    "headers-with-brace": "function call<|role_sep|>\n{",
    "tokens": "<|function_call|>{",
    "tokens-with-name": '<|function_call|>{"name": "x", "arguments": {',
    "lines": 'function call {"name": ',
    "lines-apart": '\nfunction call {"name": "',
    "lines-with-arguments": '\nfunction call\n{"name": "x", "arguments": {',
    "lines-of-strangers": '\nfunction call {"name": "z", "arguments": {}}',
}
