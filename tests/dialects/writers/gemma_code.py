"""Python in a fence, with and without Gemini's namespace."""

from __future__ import annotations

from tests.dialects.writers.pythonic import call


def write_tool_code(name: str, arguments: dict[str, str]) -> str:
    return f"```tool_code\n{call(name, arguments)}\n```"


def write_default_api(name: str, arguments: dict[str, str]) -> str:
    return f"```tool_code\nprint(default_api.{call(name, arguments)})\n```"


TEXT_WRITERS = [("gemma_tool_code", write_tool_code), ("gemini_default_api", write_default_api)]
SOUP = {
    "fences": "```tool_code\n",
    "calls": "```tool_code\nx(",
    "whole-calls": "```tool_code\nz(y=1)\n",
    "strings": "```tool_code\nx(y='",
    "prints": "\nprint(default_api.x(",
    "whole-prints": "\nprint(default_api.x(y=1))",
    "words": "tool_code\n",
    "comments": "```tool_code\n#\n",
    "echoes": "```tool_code\nx()\n" + "print(a)\n" * 40,
    "notations": "\ncall:default_api:x{y:",
    "declarations": "\ndeclaration:default_api:x{y:[",
}
