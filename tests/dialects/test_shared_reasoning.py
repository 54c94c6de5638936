"""Agreement with the shared vectors of reasoning and control tokens, if they lie beside the repository.

`reasoning`: the expected reasoning is found. `control_token`: every expected token is found at its place and counts.
`none`: no rule reports a warning in any API.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import FORMS, Talk, lint, some
from tests.fixes.drive import run
from tests.selection import in_batches, rotated
from tests.shared import SHARED
from wirelint.text import control_tokens
from wirelint.text.framing import Framer
from wirelint.text.thinking import find

VECTORS = SHARED / "vectors.jsonl"
ALL = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()] if VECTORS.exists() else []
pytestmark = pytest.mark.skipif(not ALL, reason="no ../shared/vectors.jsonl beside this checkout")

MODELS = {"claude-*": "claude-sonnet-4-5"}
"""Models for globs of families with and without reasoning."""


def named(*kinds: str) -> list[Any]:
    return [
        pytest.param(vector, id=f"{vector['dialect']}-{vector['case']}")
        for vector in ALL
        if vector["expect"] in kinds and vector["text"]
    ]


def talk(vector: dict[str, Any]) -> Talk:
    tools = {tool["name"]: tool.get("parameters") or {"type": "object"} for tool in vector.get("tools", ())}
    glob = vector["model_family"].split("|")[0]
    return Talk(text=vector["text"], tools=tools, model=MODELS.get(glob, glob.replace("*", "")))


@in_batches("vector", named("reasoning"))
def test_reasoning_is_found(vector: dict[str, Any]) -> None:
    found = some(find(vector["text"]))
    assert vector["text"][slice(*found.body)].strip() == vector["reasoning"].strip()


@in_batches("vector", named("control_token"))
def test_tokens_are_found(vector: dict[str, Any]) -> None:
    text = vector["text"]
    head = run(talk(vector).record("openai.chat", False), ["control-token-leak"]).before
    framing = some(Framer(head, some(head.request)).framing(text))
    counted = {place for token in framing.tokens for place in range(token.start, token.end)}
    place = 0
    for token in vector["control_tokens"]:
        place = text.index(token, place)
        assert counted.issuperset(range(place, place + len(token))), token
        place += len(token)
    assert control_tokens.find(text)


@in_batches("vector", named("none"))
def test_plain_text_is_silent(vector: dict[str, Any]) -> None:
    for api, stream in rotated(FORMS, vector["text"], 4):
        findings = lint([talk(vector).record(api, stream)])
        assert not [finding for finding in findings if finding.severity != "info"], (api, stream)
