"""Kimi's calls: tokens, `<arg>` markup, and K3's tags."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_kimi_k2(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{body}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    )


def write_kimi_invoke_arg(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<arg name="{key}">{text}</arg>' for key, text in arguments.items())
    return f'<invoke name="{name}">{inside}</invoke>'


def write_kimi_k3(name: str, arguments: dict[str, Json]) -> str:
    inside = "".join(write_k3_argument(key, value) for key, value in arguments.items())
    call = f'<|open|>call tool="{name}" index="1"<|sep|>{inside}<|close|>call<|sep|>'
    return f"<|open|>tools<|sep|>{call}<|close|>tools<|sep|>"


def write_k3_argument(key: str, value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    name = "string" if isinstance(value, str) else "null" if value is None else "object"
    quoted = key.replace("&", "&amp;").replace('"', "&quot;")
    return f'<|open|>argument key="{quoted}" type="{name}"<|sep|>{text}<|close|>argument<|sep|>'


def write_kimi_k3_text(name: str, arguments: dict[str, str]) -> str:
    return write_kimi_k3(name, dict(arguments))


JSON_WRITERS = [("kimi_k2", write_kimi_k2)]
TEXT_WRITERS = [("kimi_invoke_arg", write_kimi_invoke_arg), ("kimi_k3_xtml", write_kimi_k3_text)]
SOUP = {
    "begin": "<|tool_call_begin|>",
    "end": "<|tool_call_end|> x ",
    "headers": "<|tool_call_begin|>functions.x:0<|tool_call_argument_begin|>{",
    "plain-begin": "<tool_call_begin>",
    "plain-header": "<tool_call_begin>functions.x:0<tool_call_arg>{",
    "stripped": "functions.x:0{",
    "k3-tools": "<|open|>tools<|sep|>",
    "k3-calls": '<|open|>call tool="x" index="1"<|sep|>',
    "k3-arguments": '<|open|>tools<|sep|><|open|>call tool="x"<|sep|><|open|>argument key="y"<|sep|>z',
    "k3-values": '<|open|>call tool="x"<|sep|><|open|>argument key="y"<|sep|>argument ',
    "k3-attributes": '<|open|>call tool="',
}
