"""Gemma's notation of keys and values."""

from __future__ import annotations

QUOTE = '<|"|>'


def body(name: str, arguments: dict[str, str], delimiter: str) -> str:
    inside = ",".join(f"{key}:{delimiter}{text}{delimiter}" for key, text in arguments.items())
    return f"call:{name}{{{inside}}}"


def write_gemma4(name: str, arguments: dict[str, str]) -> str:
    return f"<|tool_call>{body(name, arguments, QUOTE)}<tool_call|>"


def write_functiongemma(name: str, arguments: dict[str, str]) -> str:
    return f"<start_function_call>{body(name, arguments, '<escape>')}<end_function_call>"


TEXT_WRITERS = [("gemma4", write_gemma4), ("functiongemma", write_functiongemma)]
SOUP = {
    "starts": "<|tool_call>",
    "objects": "<|tool_call>call:x{a:{",
    "lists": "<|tool_call>call:x{a:[[",
    "strings": '<|tool_call>call:x{a:<|"|>b',
    "plain-strings": '<|tool_call>call:x{a:"b',
    "escapes": "<|tool_call>call:x{a:'\\'",
    "bare": "<|tool_call>call:x{a:b",
    "bare-in-parentheses": "<|tool_call>call:x(a:b, ",
    "keys": "<|tool_call>call:x{" + "a:1," * 40,
    "function-starts": "<start_function_call>call:x{a:<escape>",
    "json": '<|tool_call>{"name": "x", "arguments": {',
    "shown": "\n[Calling tool: x({",
}
