"""A request that is read again by what is new in it: as if all of it had been read."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from wirelint.apis import rereading
from wirelint.apis.openai_request import read_request
from wirelint.model import Request

CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
BODY: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "Find it."}, {"role": "assistant", "tool_calls": [CALL]}],
    "tools": [TOOL],
    "max_tokens": 9,
    "usage": {"include": False},
}
LACKING: dict[str, dict[str, Any]] = {
    "the counts": {"usage": None},
    "the tools": {"tools": None},
    "the limit": {"max_tokens": None},
}
NEW: dict[str, dict[str, Any]] = {
    "counts": {"stream_options": {"include_usage": True}},
    "no counts": {"stream_options": {"include_usage": False}},
    "counts in another way": {"usage": {"include": True}},
    "nonsense": {"stream_options": 1},
    "nothing": {},
    "counts and a model": {"stream_options": {"include_usage": True}, "model": "n:online"},
    "counts and a limit": {"stream_options": {"include_usage": True}, "max_completion_tokens": 7},
    "counts and messages": {"stream_options": {"include_usage": True}, "messages": BODY["messages"][:1]},
    "counts and tools": {"stream_options": {"include_usage": True}, "tools": [*BODY["tools"], {"type": "mcp"}]},
    "functions": {"functions": [{"name": "old"}]},
    "a choice": {"tool_choice": "required"},
    "one at a time": {"parallel_tool_calls": False},
    "whole": {"stream": False},
    "a search": {"web_search_options": {"depth": 1}},
}


def _told(request: Request) -> dict[str, Any]:
    told = {field.name: getattr(request, field.name) for field in dataclasses.fields(request)}
    worked_out = {"turn": request.turn, "history": request.has_history, "user": request.last_user}
    return {**told, "tools": [(tool.name, tool.type, tool.hosted) for tool in request.tools], **worked_out}


@pytest.mark.parametrize("name", NEW)
def test_what_is_new_is_read(name: str) -> None:
    before, body = read_request(BODY), {**BODY, **NEW[name]}
    api = rereading("openai.chat")
    assert api is not None
    asked = _told(before)
    again = api.read_request_again(body, before)
    assert _told(again) == _told(read_request(body))
    assert _told(before) == asked
    assert (again.messages is before.messages) == ("messages" not in NEW[name])
    assert again.body is body


@pytest.mark.parametrize("name", LACKING)
def test_what_is_gone_is_not_told_any_more(name: str) -> None:
    body = {member: value for member, value in BODY.items() if member not in LACKING[name]}
    api = rereading("openai.chat")
    assert api is not None
    assert _told(api.read_request_again(body, read_request(BODY))) == _told(read_request(body))
