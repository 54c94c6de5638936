"""Agreement with the shared vectors, if they lie beside the repository.

Each class of expectation is taken at its strictest: `call` is read without salvage, to the same calls and the same rest
of the text; `salvage` likewise, however damaged; `detect_only` is found and holds no complete call of a declared tool;
`none`, `reasoning` and `control_token` leave nothing outside quotations. Differences are listed, with a reason each, in
`shared_differences.jsonl` (keys `dialect`, `case`, `reason`); a listed one that has gone is a failure too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.dialects.test_dialects import calls_in, without
from tests.selection import in_batches
from wirelint.dialects.reader import Block
from wirelint.dialects.scan import FAMILIES, find, is_damaged, may_hold_markup
from wirelint.model import Json, Tool
from wirelint.text.quoting import is_quoted

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / ".." / "shared" / "vectors.jsonl"
SAME_BYTES = {"ernie45": "hermes_json", "llama3_custom_function_tag": "functionary_v3_1"}
"""Dialects that no bytes tell from another."""
OURS = {dialect: dialect for family in FAMILIES for dialect in family.speakers} | SAME_BYTES
DIFFERENCES = {
    (row["dialect"], row["case"]): row["reason"]
    for row in map(json.loads, (HERE / "shared_differences.jsonl").read_text(encoding="utf-8").splitlines())
}


class Vector(NamedTuple):
    dialect: str
    case: str
    expect: str
    text: str
    tools: tuple[Tool, ...]
    calls: list[Json]
    rest: str


def load() -> Iterator[Vector]:
    if not SHARED.exists():
        return
    for line in SHARED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tools = tuple(
            Tool(tool["name"], f"/tools/{n}", schema=tool.get("parameters"))
            for n, tool in enumerate(row.get("tools", ()))
        )
        yield Vector(
            row["dialect"], row["case"], row["expect"], row["text"], tools, row["calls"], row["remaining_text"]
        )


ALL = list(load())
pytestmark = pytest.mark.skipif(not ALL, reason="no ../shared/vectors.jsonl beside this checkout")


def agrees(vector: Vector) -> bool:
    blocks = find(vector.text, vector.tools)
    if not blocks:
        return vector.expect in ("none", "reasoning", "control_token")
    if not may_hold_markup(vector.text, vector.tools):
        return False
    declared = {tool.name for tool in vector.tools}
    match vector.expect:
        case "call" | "salvage":
            return (
                read(blocks) == vector.calls
                and without(vector.text, blocks).split() == vector.rest.split()  # white space around markup is framing
                and {block.dialect for block in blocks} == {OURS[vector.dialect]}
                and (vector.expect == "salvage" or not any(is_damaged(vector.text, block) for block in blocks))
            )
        case "detect_only":
            return not any(call.complete and call.name in declared for block in blocks for call in block.calls)
        case _:
            return all(is_quoted(vector.text, block.start, block.end) for block in blocks)


def read(blocks: tuple[Block, ...]) -> list[Json]:
    complete = (block._replace(calls=tuple(call for call in block.calls if call.complete)) for block in blocks)
    return list(calls_in(complete))


def named(vectors: list[Vector]) -> list[object]:
    return [pytest.param(vector, id=f"{vector.dialect}-{vector.case}") for vector in vectors]


@in_batches("vector", named([vector for vector in ALL if vector.dialect in OURS]))
def test_agreement(vector: Vector) -> None:
    listed = DIFFERENCES.get((vector.dialect, vector.case))
    assert agrees(vector) == (listed is None), listed


@in_batches("vector", named([vector for vector in ALL if vector.dialect not in OURS]))
def test_other_dialects_are_not_misread(vector: Vector) -> None:
    """Their markup may be claimed where the bytes are shared, but never with calls that they do not make."""
    blocks = find(vector.text, vector.tools)
    quoted = all(is_quoted(vector.text, block.start, block.end) for block in blocks)
    if vector.expect in ("none", "reasoning", "control_token"):
        assert quoted
        return
    assert all(call in vector.calls for call in read(blocks))
