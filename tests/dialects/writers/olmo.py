"""Olmo's tags."""

from __future__ import annotations

from tests.dialects.writers.pythonic import call


def write_olmo3(name: str, arguments: dict[str, str]) -> str:
    return f"<function_calls>{call(name, arguments)}</function_calls>"


TEXT_WRITERS = [("olmo3", write_olmo3)]
SOUP = {
    "calls": "<function_calls>x(",
    "other-calls": "<function_calls>z(",
    "whole-calls": "<function_calls>z(y=1)",
    "strings": '<function_calls>x(y="',
    "brackets": "<function_calls>z(y=[{(",
    "lines": "<function_calls>" + "z()\n" * 40,
}
