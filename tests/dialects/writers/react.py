"""Lines of a ReAct agent."""

from __future__ import annotations

import json


def write_react(name: str, arguments: dict[str, str]) -> str:
    return f"Thought: this needs a tool.\nAction: {name}\nAction Input: {json.dumps(arguments, ensure_ascii=False)}"


TEXT_WRITERS = [("react", write_react)]
SOUP = {
    "thoughts": "Thought: y\n",
    "actions": "Action: x\n",
    "inputs": "Action: x\nAction Input: ",
    "with-brace": 'Action: x\nAction Input: {"y": ',
    "single-quoted": "Action: x\nAction Input: {'y': ",
    "plain": "Thought: so\nAction: x\nAction Input: y\n",
    "observed": "Observation: y\nAction: x\nAction Input: {}\n",
    "blobs": 'Action:\n```json\n{"action": "x", ',
    "one-line-thought": "Thought: y ",
}
