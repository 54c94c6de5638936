"""Llama's bare JSON, python tag and custom tag."""

from __future__ import annotations

import json

from tests.dialects.writers.pythonic import call
from wirelint.model import Json


def write_object(name: str, arguments: dict[str, str]) -> str:
    return json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)


def write_tagged_object(name: str, arguments: dict[str, Json]) -> str:
    return "<|python_tag|>" + json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)


def write_method(name: str, arguments: dict[str, str]) -> str:
    return "<|python_tag|>" + call(f"{name}.call", arguments)


def write_custom(name: str, arguments: dict[str, Json]) -> str:
    return f"<function={name}>{json.dumps(arguments, ensure_ascii=False)}</function>"


JSON_WRITERS = [("llama3_python_tag_json", write_tagged_object), ("functionary_v3_1", write_custom)]
TEXT_WRITERS = [("llama3_json", write_object), ("llama3_python_tag_builtin", write_method)]
SOUP = {
    "objects": '{"name": "x", "parameters": {',
    "objects-after-thought": '</think>{"name": "x", "parameters": {"y": "',
    "whole-after-thought": '</think>{"name": "x", "parameters": {}};',
    "damaged-after-thought": "</think>{'name': 'x', 'parameters': {",
    "tags": "<|python_tag|>",
    "tags-with-object": '<|python_tag|>{"name": "x", "parameters": {',
    "tags-with-method": "<|python_tag|>x.call(",
    "tags-with-call": "<|python_tag|>x(",
    "tags-with-code": "<|python_tag|>y = 1\n",
    "functions": "<function=x>{",
    "functions-with-key": '<function=x>{"y',
    "functions-with-string": '<function=z>{"y": "\\"',
    "whole-functions": '<function=z>{"y": 1}',
}
