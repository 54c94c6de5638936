"""Functionary's recipients."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_tokens(name: str, arguments: dict[str, Json]) -> str:
    return f"<|recipient|>{name}\n<|content|>{json.dumps(arguments, ensure_ascii=False)}<|stop|>"


def write_lines(name: str, arguments: dict[str, str]) -> str:
    return f"{name}\n{json.dumps(arguments, ensure_ascii=False)}"


JSON_WRITERS = [("functionary_v2", write_tokens)]
TEXT_WRITERS = [("functionary_v3_2", write_lines)]
SOUP = {
    "headers": "<|recipient|>x\n<|content|>",
    "headers-with-object": '<|recipient|>x\n<|content|>{"y": {',
    "headers-with-code": "<|recipient|>python\n<|content|>y = (",
    "from": "<|from|>assistant\n",
    "lines": ">>>x\n{",
    "lines-after-thought": '</think>x\n{"y": "',
    "all": "</think>all\n",
    "code": ">>>python\ny = 1\n",
    "whole-lines": '>>>x\n{"y": "a"}',
}
