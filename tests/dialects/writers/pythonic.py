"""A list of Python calls."""

from __future__ import annotations


def call(name: str, arguments: dict[str, str]) -> str:
    """Python's own spelling of a call."""
    return f"{name}({', '.join(f'{key}={text!r}' for key, text in arguments.items())})"


def write_list(name: str, arguments: dict[str, str]) -> str:
    return f"[{call(name, arguments)}]"


TEXT_WRITERS = [("pythonic_list", write_list)]
SOUP = {
    "lists": "[x(",
    "lists-after-thought": "</think>[x(",
    "calls-after-thought": "</think>x(y='",
    "brackets-after-thought": "</think>[x(y=((((",
    "tokens": "<|python_start|>[x(",
    "tokens-with-string": "<|python_start|>[x(y='",
    "tokens-with-escapes": "<|python_start|>[x(y=\\'",
    "tokens-with-triple-quotes": "<|python_start|>[x(y='''a''",
    "tokens-closed": "<|python_start|>[x(y=[1<|python_end|>",
    "arguments": "<|python_start|>[x(" + "y=1, " * 40,
    "comments": "<|python_start|>[x(#",
}
