"""Functions addressed in plain text."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_leak(name: str, arguments: dict[str, Json]) -> str:
    return f"assistant to=functions.{name} commentary json\n{json.dumps(arguments, ensure_ascii=False)}"


def write_multi(name: str, arguments: dict[str, Json]) -> str:
    uses = {"tool_uses": [{"recipient_name": f"functions.{name}", "parameters": arguments}]}
    return f"multi_tool_use.parallel({json.dumps(uses, ensure_ascii=False)})"


JSON_WRITERS = [("openai_functions_leak", write_leak), ("multi_tool_use", write_multi)]
SOUP = {
    "headers": "assistant to=functions.x commentary json\n",
    "with-brace": "\nassistant to=functions.x json {",
    "with-key": '\nassistant to=functions.x json {"y": "',
    "single-quoted": "\nassistant to=functions.x json {'y': 'z', ",
    "words": " to=functions.x",
    "junk": ' to=functions.x 天天{"y": ',
    "parallel": "multi_tool_use.parallel({",
    "parallel-uses": ' multi_tool_use.parallel({"tool_uses": [{',
    "plugin": '\nfunctions.x({"y": ',
    "payload": '</think>{"tool_uses": [{"y": ',
}
