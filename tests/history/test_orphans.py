"""What can be done about results that answer no call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import APIS, Assistant, Call, Result, Talk, User, exchange, read
from wirelint.fix import Edit
from wirelint.history.pairing import keeps_words, orphans, removals
from wirelint.model import Json, Request

ASK, SAID = User("Go."), Assistant("Well.")
LOST = Result("lost", "a root")
CALL, ANSWER = Assistant(calls=(Call("dig", {}, "a1"),)), Result("a1", "a stone")
GO, WORDS = "go", "words"

CASES: dict[str, tuple[list[Any], str, str]] = {
    # the history, and what becomes of the results in OpenAI's chat and with Anthropic
    "first": ([LOST, ASK], "/messages/0", "/messages/0"),
    "first, the assistant next": ([LOST, SAID, ASK], "/messages/0", "= /messages/0/content"),
    "between answers": ([ASK, SAID, LOST, SAID, ASK], "/messages/2", "= /messages/2/content"),
    "behind an answer": ([ASK, SAID, LOST, ASK], "/messages/2", "/messages/2"),
    "last": ([ASK, SAID, LOST], "/messages/2", "= /messages/2/content"),
    "behind the user": ([ASK, LOST], "/messages/1", "/messages/1"),
    "beside a good one": ([ASK, CALL, ANSWER, LOST, ASK], "/messages/3", "/messages/2/content/1"),
    "two of one message": ([ASK, SAID, LOST, LOST, ASK], "/messages/2 /messages/3", "/messages/2 /messages/2"),
    "with nothing to say": ([Result("lost", " "), SAID, ASK], "/messages/0", ""),
    "alone": ([LOST], "", "= /messages/0/content"),
    "redacted": ([Result("[redacted:id]", "x"), ASK], "", ""),
}


def request(*turns: Any, api: str) -> Request:
    found = read(Talk(turns).record(api, False)).request
    assert found is not None
    return found


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("history", "openai", "anthropic"), CASES.values(), ids=CASES.keys())
def test_removals(history: list[Any], openai: str, anthropic: str, api: str) -> None:
    made = request(*history, api=api)
    edits = [edit for some in removals(made, orphans(made)).values() for edit in some]
    shown = [f"{'= ' if keeps_words([edit]) else ''}{edit.pointer}" for edit in edits]
    assert " ".join(shown) == (openai if api == "openai.chat" else anthropic)


# What becomes of them where messages are blocks, too, and where results are items of a row.
SHAPES = {
    "openai.responses": ("/input/{0}", "openai"),
    "cohere.chat": ("/messages/{0}", "openai"),
    "bedrock.converse": ("/messages/{0}", "anthropic"),
    "google.generate_content": ("/contents/{0}", "anthropic"),
}


@pytest.mark.parametrize("api", SHAPES)
@pytest.mark.parametrize(("history", "openai", "anthropic"), CASES.values(), ids=CASES.keys())
def test_removals_elsewhere(history: list[Any], openai: str, anthropic: str, api: str) -> None:
    made = request(*history, api=api)
    edits = [edit for some in removals(made, orphans(made)).values() for edit in some]
    shown = " ".join(f"{'= ' if keeps_words([edit]) else ''}{edit.pointer}" for edit in edits)
    place, like = SHAPES[api]
    wanted = openai if like == "openai" else anthropic
    if api == "google.generate_content":
        wanted = wanted.replace("/content", "/parts")
    assert shown == wanted.replace("/messages/", place.format(""))


def test_words_of_results_elsewhere() -> None:
    """What may stand in a user message of Converse stays as it is; JSON becomes text, there and at Gemini."""
    blocks: list[Json] = [
        {"text": "look"},
        {"text": " "},
        {"json": {"n": 1}},
        {"image": {"format": "png", "source": {}}},
    ]
    told = {"toolResult": {"toolUseId": "lost", "content": blocks, "status": "success"}}
    body: dict[str, Any] = {"messages": [{"role": "user", "content": [told]}], "inferenceConfig": {}}
    made = read(exchange("/model/acme-1/converse", body, {})).request
    assert made is not None
    kept: list[Json] = [{"text": "look"}, {"text": '{"n":1}'}, {"image": {"format": "png", "source": {}}}]
    assert list(removals(made, orphans(made)).values()) == [(Edit("replace", "/messages/0/content", kept),)]

    part = {"functionResponse": {"name": "dig", "response": {"root": 3, "stone": None}}}
    body = {"contents": [{"role": "function", "parts": [part]}, {"role": "model", "parts": [{"text": "Well."}]}]}
    made = read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request
    assert made is not None
    wanted = (
        Edit("replace", "/contents/0/parts", [{"text": '{"root":3,"stone":null}'}]),
        Edit("replace", "/contents/0/role", "user"),
    )
    assert list(removals(made, orphans(made)).values()) == [wanted]


def test_an_object_in_the_place_of_a_row_stays() -> None:
    body = {"contents": {"role": "user", "parts": {"functionResponse": {"name": "dig", "response": {}}}}}
    made = read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request
    assert made is not None
    assert len(orphans(made)) == 1
    assert removals(made, orphans(made)) == {}


def test_pictures_stay_with_the_words() -> None:
    picture: Json = {"type": "image", "source": {"type": "url", "url": "https://img.test/a.png"}}
    blocks = [{"type": "text", "text": "look"}, {"type": "text", "text": ""}, picture, {"type": "tool_reference"}]
    messages = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": blocks}]},
        {"role": "assistant", "content": "Well."},
    ]
    body = {"model": "acme-1", "max_tokens": 9, "messages": messages}
    made = read(exchange("/v1/messages", body, {})).request
    assert made is not None
    wanted = Edit("replace", "/messages/0/content", [{"type": "text", "text": "look"}, picture])
    assert list(removals(made, orphans(made)).values()) == [(wanted,)]
