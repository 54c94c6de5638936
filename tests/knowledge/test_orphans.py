"""What can be done about results that answer no call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import APIS, Assistant, Call, Result, Talk, User, exchange, read
from wirelint.knowledge.orphans import keeps_words, orphans, removals
from wirelint.model import Json, Request
from wirelint.repair import Edit

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
