"""Round trips of the dialects that something around their call tells from others.

ERNIE's line ends come as a token, FireFunction's list stands behind a blank, GLM-4's lines before the token of its turn and
for a declared tool only. Written and read back like all others are in `test_dialects`.
"""

from __future__ import annotations

import json

from hypothesis import given

from tests.dialects.test_dialects import NAMES, OBJECTS
from wirelint.dialects import find
from wirelint.model import Json, Tool


def read(text: str, dialect: str, tools: tuple[Tool, ...] = ()) -> list[tuple[str, Json]]:
    (block,) = find(text, tools)
    assert block.dialect == dialect
    assert block.complete
    return [(call.name, call.arguments) for call in block.calls]


@given(name=NAMES, arguments=OBJECTS)
def test_ernie(name: str, arguments: dict[str, Json]) -> None:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    assert read(f"<tool_call><0x0A>{body}<0x0A></tool_call>", "ernie45") == [(name, arguments)]


@given(name=NAMES, arguments=OBJECTS)
def test_firefunction(name: str, arguments: dict[str, Json]) -> None:
    body = json.dumps([{"name": name, "arguments": arguments}], ensure_ascii=False)
    assert read(f" functools{body}", "firefunction_v2") == [(name, arguments)]


@given(name=NAMES, arguments=OBJECTS)
def test_glm_4(name: str, arguments: dict[str, Json]) -> None:
    properties: dict[str, Json] = {key: {} for key in arguments}
    tool = Tool(name, "/tools/0", schema={"type": "object", "properties": properties})
    body = json.dumps(arguments, ensure_ascii=False)
    assert read(f"{name}\n{body}<|observation|>", "glm4_0414", (tool,)) == [(name, arguments)]
