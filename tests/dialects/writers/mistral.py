"""An array after the marker, and one marker per call with and without an id."""

from __future__ import annotations

import json

from wirelint.model import Json


def write_mistral_array(name: str, arguments: dict[str, Json]) -> str:
    return "[TOOL_CALLS] " + json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)


def write_mistral_v11(name: str, arguments: dict[str, Json]) -> str:
    return f"[TOOL_CALLS]{name}[CALL_ID]aB3dE5gH7[ARGS]{json.dumps(arguments, ensure_ascii=False)}"


def write_mistral_v13(name: str, arguments: dict[str, Json]) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments, ensure_ascii=False)}"


JSON_WRITERS = [
    ("mistral_array", write_mistral_array),
    ("mistral_v11", write_mistral_v11),
    ("mistral_v13", write_mistral_v13),
]
SOUP = {
    "half-markers": "[TOOL_CALLS",
    "markers": "[TOOL_CALLS]",
    "markers-with-blank": "[TOOL_CALLS] ",
    "markers-with-name": "[TOOL_CALLS]x",
    "markers-with-args": "[TOOL_CALLS]x[ARGS]",
    "markers-with-brace": "[TOOL_CALLS]x[ARGS]{",
    "markers-with-key": '[TOOL_CALLS]x[CALL_ID]aB3dE5gH7[ARGS]{"y": "',
    "markers-with-array": '[TOOL_CALLS] [{"name": "x", "arguments": {',
    "markers-single-quoted": "[TOOL_CALLS] [{'name': 'x', ",
    "whole-calls": '[TOOL_CALLS]x[ARGS]{"y": "z"}',
    "stripped": '\nx[ARGS]{"y": ',
    "stripped-whole": '\nx[ARGS]{"y": "z"}',
    "args": "[ARGS]{",
    "results": "[TOOL_CALLS]x[ARGS][TOOL_RESULTS]",
}
