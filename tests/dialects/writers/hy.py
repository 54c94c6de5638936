"""Hunyuan's pairs of tags, the older with a separator, the newer with a suffix."""

from __future__ import annotations


def write_separated(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{text}</arg_value>\n" for key, text in arguments.items())
    return f"<tool_calls>\n<tool_call>{name}<tool_sep>\n{inside}</tool_call>\n</tool_calls>"


def write_suffixed(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(
        f"<arg_key:k3>{key}</arg_key:k3><arg_value:k3>{text}</arg_value:k3>" for key, text in arguments.items()
    )
    return f"<tool_calls:k3><tool_call:k3>{name}{inside}</tool_call:k3></tool_calls:k3>"


TEXT_WRITERS = [("hy_v3", write_separated), ("hy_v4", write_suffixed)]
SOUP = {
    "wrappers": "<tool_calls:k>",
    "calls": "<tool_calls><tool_call>x<tool_sep>",
    "suffixed": "<tool_call:k>x<arg_key:k>y",
    "pairs": "<tool_call>x<tool_sep><arg_key>y</arg_key><arg_value>z</arg_value>",
}
