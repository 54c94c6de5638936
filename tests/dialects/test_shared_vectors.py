"""Agreement with the shared vectors, if they lie beside the repository.

Each class of expectation is taken at its strictest: `call` is read without salvage, to the same calls and the same rest
of the text; `salvage` likewise, however damaged; `detect_only` is found and holds no complete call of a declared tool;
`none`, `reasoning` and `control_token` leave nothing outside quotations. Differences are listed, with a reason each, in
`shared_differences.jsonl` (keys `dialect`, `case`, `reason`); a listed one that has gone is a failure too. The reasoning of
`reasoning` is found, every token of `control_token` is found at its place and counts, and no rule reports `none`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import shared
from tests.build import FORMS, Talk, lint, some
from tests.dialects.test_dialects import calls_in, without
from tests.fixes.drive import run
from tests.selection import in_batches, rotated
from wirelint.dialects.reader import Block
from wirelint.dialects.scan import FAMILIES, find, is_damaged, may_hold_markup
from wirelint.model import Json, Tool
from wirelint.text import control_tokens, thinking
from wirelint.text.framing import Framer
from wirelint.text.quoting import is_quoted

HERE = Path(__file__).parent
SHARED = shared.SHARED / "vectors.jsonl"
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
    row: dict[str, Any]

    @property
    def tools(self) -> tuple[Tool, ...]:
        offered = enumerate(self.row.get("tools", ()))
        return tuple(Tool(tool["name"], f"/tools/{n}", schema=tool.get("parameters")) for n, tool in offered)


def load() -> Iterator[Vector]:
    for line in SHARED.read_text(encoding="utf-8").splitlines() if SHARED.exists() else ():
        row = json.loads(line)
        yield Vector(row["dialect"], row["case"], row["expect"], row["text"], row)


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
                read(blocks) == vector.row["calls"]
                and without(vector.text, blocks).split()
                == vector.row["remaining_text"].split()  # white space around markup is framing
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
    assert all(call in vector.row["calls"] for call in read(blocks))


# --- reasoning and control tokens -------------------------------------------------------------------------------------

MODELS = {"claude-*": "claude-sonnet-4-5"}
"""Models for globs of families with and without reasoning."""


def expecting(kind: str) -> list[object]:
    return named([vector for vector in ALL if vector.expect == kind and vector.text])


def talk(vector: Vector) -> Talk:
    tools = {tool.name: tool.schema or {"type": "object"} for tool in vector.tools}
    glob = vector.row["model_family"].split("|")[0]
    return Talk(text=vector.text, tools=tools, model=MODELS.get(glob, glob.replace("*", "")))


@in_batches("vector", expecting("reasoning"))
def test_reasoning_is_found(vector: Vector) -> None:
    found = some(thinking.find(vector.text))
    assert vector.text[slice(*found.body)].strip() == vector.row["reasoning"].strip()


@in_batches("vector", expecting("control_token"))
def test_tokens_are_found(vector: Vector) -> None:
    head = run(talk(vector).record("openai.chat", False), ["control-token-leak"]).before
    framing = some(Framer(head, some(head.request)).framing(vector.text))
    counted = {place for token in framing.tokens for place in range(token.start, token.end)}
    place = 0
    for token in vector.row["control_tokens"]:
        place = vector.text.index(token, place)
        assert counted.issuperset(range(place, place + len(token))), token
        place += len(token)
    assert control_tokens.find(vector.text)


@in_batches("vector", expecting("none"))
def test_plain_text_is_silent(vector: Vector) -> None:
    for api, stream in rotated(FORMS, vector.text, 4):
        findings = lint([talk(vector).record(api, stream)])
        assert not [finding for finding in findings if finding.severity != "info"], (api, stream)
