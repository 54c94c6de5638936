"""K2-Horizon's tags, with types and without."""

from __future__ import annotations


def write_ifm(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(
        f"<ifm|arg_key>{key}</ifm|arg_key>\n<ifm|arg_type>string</ifm|arg_type>\n<ifm|arg_value>{text}</ifm|arg_value>\n"
        for key, text in arguments.items()
    )
    return f"<ifm|tool_calls>\n<ifm|tool_call>{name}\n{inside}</ifm|tool_call>\n</ifm|tool_calls>"


TEXT_WRITERS = [("k2_horizon_ifm", write_ifm)]
SOUP = {
    "wrappers": "<ifm|tool_calls>",
    "calls": "<ifm|tool_call>x",
    "keys": "<ifm|tool_call>x<ifm|arg_key>y",
    "braces": '<ifm|tool_call>{"name": "x", "arguments": {',
}
