"""Harmony: a message to a function."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_harmony(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{body}<|call|>"


JSON_WRITERS = [("harmony", write_harmony)]
SOUP = {
    "channels": "<|channel|>commentary",
    "headers": "<|channel|>commentary to=functions.x <|constrain|>json<|message|>",
    "with-brace": "<|channel|>commentary to=functions.x<|message|>{",
    "with-key": '<|channel|>commentary to=functions.x<|message|>{"y": "',
    "raw": "<|channel|>commentary to=functions.x<|message|>y ",
    "single-quoted": "<|channel|>commentary to=functions.x<|message|>{'y': ",
    "starts": "<|end|><|start|>assistant",
    "starts-to": "<|end|><|start|>assistant to=functions.x<|message|>{",
    "after-thinking": "<|channel|>analysis<|message|>y<|end|><|start|>assistant<|channel|>commentary to=x<|message|>{}",
    "to-nobody": '<|channel|>commentary<|message|>{"y": 1}',
    "stripped": "\ncommentary to=functions.x json{",
    "stripped-glued": 'assistantcommentary to=functions.x json{"y": ',
}
