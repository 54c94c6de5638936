"""Agreement with the vectors of reasoning and control tokens that lie beside the repository, when they do.

`reasoning`: the thought that is named is found, and with both rules permitted to repair, a whole body and a stream give the
named content and that thought. `control_token`: every named token is found at its place, counts, and is not part of what is
left. `none`: no rule finds anything worth a warning in it, whoever says it. Differences are listed, with a reason each; a
listed one that has gone is a failure too.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import FORMS, Talk, lint
from tests.fixes.drive import run
from tests.shared import SHARED
from wirelint.text import control_tokens
from wirelint.text.framing import Framer
from wirelint.text.thinking import find

VECTORS = SHARED / "vectors.jsonl"
ALL = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()] if VECTORS.exists() else []
pytestmark = pytest.mark.skipif(not ALL, reason="no ../shared/vectors.jsonl beside this checkout")

MODELS = {"claude-*": "claude-sonnet-4-5"}
"""Globs that name families of which not every model thinks."""

CONTENT_DIFFERS = {
    "inst": "the user's turn stands at the beginning: without its token it would pass for the answer",
    "tool_results": "an invented tool result: without its tokens it would pass for the answer",
    "tool_outputs": "an invented tool result: without its token it would pass for the answer",
    "im_start": "the role after the token is framing too, and is taken off with it",
}
STREAM_DIFFERS = {
    "think_close_only": "the thought has gone out as text before its only tag comes",
}


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


def given(vector: dict[str, Any], api: str, stream: bool) -> tuple[str, str]:
    """Text and reasoning that a client gets, repaired."""
    reply = run(talk(vector).record(api, stream), ["think-leak", "control-token-leak"]).after.reply
    assert reply is not None
    return reply.choices[0].text.strip(), reply.choices[0].reasoning.strip()


@pytest.mark.parametrize("vector", named("reasoning"))
def test_thoughts_are_found(vector: dict[str, Any]) -> None:
    found = find(vector["text"])
    assert found is not None
    assert vector["text"][slice(*found.body)].strip() == vector["reasoning"].strip()


@pytest.mark.parametrize(("api", "stream"), FORMS)
@pytest.mark.parametrize("vector", named("reasoning"))
def test_thoughts_are_told_from_the_answer(vector: dict[str, Any], api: str, stream: bool) -> None:
    text, thought = given(vector, api, stream)
    agrees = thought == vector["reasoning"].strip() and text == vector.get("content", text).strip()
    assert agrees is not (stream and vector["case"] in STREAM_DIFFERS), (text, thought)


@pytest.mark.parametrize("vector", named("control_token"))
def test_tokens_are_found(vector: dict[str, Any]) -> None:
    text = vector["text"]
    head = run(talk(vector).record("openai.chat", False), ["control-token-leak"]).before
    assert head.request is not None
    framing = Framer(head, head.request).framing(text)
    assert framing is not None
    counted = {place for token in framing.tokens for place in range(token.start, token.end)}
    place = 0
    for token in vector["control_tokens"]:
        place = text.index(token, place)
        assert counted.issuperset(range(place, place + len(token))), token
        place += len(token)
    assert control_tokens.find(text)


@pytest.mark.parametrize(("api", "stream"), FORMS)
@pytest.mark.parametrize("vector", named("control_token"))
def test_tokens_are_told_from_the_answer(vector: dict[str, Any], api: str, stream: bool) -> None:
    text, _ = given(vector, api, stream)
    expected = vector.get("content", vector["text"].replace(vector["control_tokens"][0], ""))
    assert (text == expected.strip()) is not (vector["case"] in CONTENT_DIFFERS), text


@pytest.mark.parametrize("vector", named("none"))
def test_what_stays_text_is_left_alone(vector: dict[str, Any]) -> None:
    for api, stream in FORMS:
        findings = lint([talk(vector).record(api, stream)])
        assert not [finding for finding in findings if finding.severity != "info"], (api, stream)


def test_every_kind_is_there() -> None:
    assert min(len(named("reasoning")), len(named("control_token")), len(named("none"))) > 10
