"""Solar Open 2's tokens."""

from __future__ import annotations


def write_solar(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(
        f"<|tool_arg:start|>{key}<|tool_arg:value|>{text}<|tool_arg:end|>\n" for key, text in arguments.items()
    )
    return f"<|tool_call:start|>{name}\n{inside}<|tool_call:end|>"


TEXT_WRITERS = [("solar_open2", write_solar)]
SOUP = {
    "starts": "<|tool_call:start|>",
    "names": "<|tool_call:start|>x\n",
    "keys": "<|tool_call:start|>x<|tool_arg:start|>y",
    "values": "<|tool_call:start|>x<|tool_arg:start|>y<|tool_arg:value|>z",
    "ends": "<|tool_call:end|> x ",
}
