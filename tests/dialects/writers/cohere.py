"""A list between tokens, or in a fence after `Action:`."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_cohere_action(name: str, arguments: dict[str, Json]) -> str:
    row = json.dumps({"tool_call_id": "0", "tool_name": name, "parameters": arguments}, ensure_ascii=False)
    return f"<|START_ACTION|>[\n    {row}\n]<|END_ACTION|>"


def write_cohere_action_fence(name: str, arguments: dict[str, Json]) -> str:
    row = json.dumps({"tool_name": name, "parameters": arguments}, ensure_ascii=False)
    return f"Action: ```json\n[\n    {row}\n]```"


JSON_WRITERS = [("cohere_action", write_cohere_action), ("cohere_action_fence", write_cohere_action_fence)]
SOUP = {
    "tokens": "<|START_ACTION|>",
    "tokens-with-brackets": "<|START_ACTION|>[",
    "tokens-with-rows": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "x", "parameters": {',
    "tokens-with-strings": '<|START_ACTION|>[{"tool_name": "',
    "idle": '<|START_ACTION|>[{"tool_name": "directly_answer", "parameters": {}}]',
    "actions": "Action: ```json\n[",
    "actions-with-rows": 'Action: ```json\n[{"tool_name": "x", "parameters": {',
    "actions-single-quoted": "Action: ```json\n[{'tool_name': ",
    "bare-rows": '[\n    {"tool_call_id": "0", "tool_name": "x", "parameters": {',
    "bare-lists": '[{"tool_call_id": "0", "tool_name": "z", "parameters": {}}]',
}
