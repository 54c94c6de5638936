"""Name and arguments on lines of their own, between flowers."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_qwen_agent_flower(name: str, arguments: dict[str, Json]) -> str:
    return f"✿FUNCTION✿: {name}\n✿ARGS✿: {json.dumps(arguments, ensure_ascii=False)}\n✿RESULT✿"


JSON_WRITERS = [("qwen_agent_flower", write_qwen_agent_flower)]
SOUP = {
    "functions": "✿FUNCTION✿: x\n",
    "functions-with-arguments": "✿FUNCTION✿: x\n✿ARGS✿: ",
    "functions-with-brace": "✿FUNCTION✿: x\n✿ARGS✿: {",
    "functions-with-string": '✿FUNCTION✿: x\n✿ARGS✿: {"y": "',
    "whole": '✿FUNCTION✿: x\n✿ARGS✿: {"y": "z"}\n',
    "flowers": "✿",
}
