"""Ollama's own API: requests, what is particular about replies, and replies that were changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.shapes_ollama import CHAT, GENERATE, call, lines, over, says, whole, wrote, wrote_all
from tests.apis.talk_ollama_chat import record as chat_record
from tests.apis.trips import (
    body_of,
    calling,
    documents,
    params,
    raw,
    rebuilt,
    reply_of,
    reworded,
    said,
    survives,
    thinking,
    trip,
    untouched,
    without,
)
from tests.build import Assistant, Call, Result, Talk, User, read, schema
from wirelint.apis import recognise
from wirelint.model import Opaque, Reasoning, Request, Text, ToolCall, ToolResult
from wirelint.wire import Sniffer

FORMS = [*params("ollama.chat", CHAT), *params("ollama.generate", GENERATE)]
SOUND = [*params("ollama.chat", CHAT, sound=True), *params("ollama.generate", GENERATE, sound=True)]

# (path, body, the API's name)
REQUESTS: dict[str, tuple[str, Any, str | None]] = {
    "chat": ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, "ollama.chat"),
    "chat behind a path": ("/ollama/api/chat", {"model": "m", "messages": []}, "ollama.chat"),
    "generate": ("/api/generate", {"model": "m", "prompt": "x"}, "ollama.generate"),
    "a model to be loaded": ("/api/generate", {"model": "m"}, "ollama.generate"),
    "its OpenAI endpoint": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user"}]}, "openai.chat"),
    "another's /api/chat": ("/api/chat", {"id": "c1", "messages": [{"role": "user", "content": "x"}]}, None),
    "embeddings": ("/api/embed", {"model": "m", "input": "x"}, None),
}


@pytest.mark.parametrize(("path", "body", "name"), REQUESTS.values(), ids=REQUESTS)
def test_recognised(path: str, body: Any, name: str | None) -> None:
    api = recognise("POST", path, {}, body)
    assert (api and api.name) == name


def request(path: str, body: dict[str, Any]) -> Request:
    api = recognise("POST", path, {}, body)
    assert api is not None
    return api.read_request(body)


def test_a_chat_request() -> None:
    talk = Talk(
        system="Be brief.",
        history=(
            User("Look."),
            Assistant("Yes.", (Call("look", {"at": "x"}),), reasoning="Hm."),
            Result("call_8Zr2kQmVw4TnXc1LbYd6HsPe", "a wall"),
        ),
        tools={"look": ("Looks.", schema(at="string"))},
        request={"keep_alive": "5m", "options": {"num_ctx": 8192}, "think": True, "unheard": [1]},
    )
    exchange = read(chat_record(talk, True))
    assert exchange.api == "ollama.chat"
    made = exchange.request
    assert made is not None
    assert [message.role for message in made.messages] == ["system", "user", "assistant", "tool"]
    assert [type(part) for part in made.messages[2].parts] == [Reasoning, Text, ToolCall]
    asked = made.messages[2].calls[0]
    assert (asked.id, asked.name, asked.arguments.value, asked.pointer) == (
        None, "look", {"at": "x"}, "/messages/2/tool_calls/0",
    )  # fmt: skip
    assert made.messages[3].parts == (ToolResult(None, "a wall", "/messages/3", "look"),)
    assert [(tool.name, tool.description, tool.schema) for tool in made.tools] == [
        ("look", "Looks.", schema(at="string"))
    ]


@pytest.mark.parametrize(("said_", "streams"), [({}, True), ({"stream": True}, True), ({"stream": False}, False)])
def test_streams_unless_declined(said_: dict[str, bool], streams: bool) -> None:
    assert request("/api/generate", {"model": "m", "prompt": "x", **said_}).stream is streams


def test_a_prompt() -> None:
    body = {"model": "m", "system": "Be brief.", "prompt": "Who?", "images": ["aGk="], "raw": True, "format": "json"}
    made = request("/api/generate", body)
    assert [(message.role, message.pointer) for message in made.messages] == [
        ("system", "/system"),
        ("user", "/prompt"),
    ]
    assert made.messages[1].parts == (Text("Who?", "/prompt"), Opaque("image", "/images/0"))
    assert made.body["raw"] is True


def test_ids_and_pictures_of_recent_servers() -> None:
    messages = [
        {"role": "user", "content": "Look.", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [call("look", {}, 0, "call_a1")]},
        {"role": "tool", "tool_call_id": "call_a1", "tool_name": "look", "content": "a wall"},
    ]
    made = request("/api/chat", {"model": "m", "messages": messages})
    assert made.messages[0].parts[1] == Opaque("image", "/messages/0/images/0")
    assert [one.id for one in made.messages[1].calls] == ["call_a1"]
    assert [one.call_id for one in made.messages[2].results] == ["call_a1"]


def test_calls_are_numbered_by_place() -> None:
    """Two calls under one number are two calls: each is whole."""
    reply = reply_of("ollama.chat", body_of(CHAT["calls under one number"], "stream"))
    calls = reply.choices[0].calls
    assert [one.pointer for one in calls] == ["/message/tool_calls/0", "/message/tool_calls/1"]
    assert [one.pieces[0].index for one in calls] == [0, 1]
    assert [one.arguments.mapping for one in calls] == [{"at": "x"}, {}]


def test_places() -> None:
    reply = reply_of("ollama.generate", body_of(GENERATE["thinking"], "stream"))
    assert [part.pointer for part in reply.choices[0].parts] == ["/thinking", "/response"]
    assert reply.choices[0].finish_pointer == "/done_reason"
    assert reply.model == "acme:4b"


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/x-ndjson; charset=utf-8", "text/plain", ""])
def test_lines_come_before_the_end(kind: str) -> None:
    sniffer = Sniffer({"content-type": kind})
    first, second = lines(says("Hel")).encode(), lines(says("lo")).encode()
    found = [*sniffer.feed(first), *sniffer.feed(second)]
    assert [frame.raw for frame in found] == [first, second]
    assert sniffer.streamed


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "shape", "form"), FORMS)
def test_what_is_not_changed_is_not_written(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    assert trip(api, body, untouched) == body


@pytest.mark.parametrize(("api", "shape", "form"), SOUND)
def test_written_anew_it_says_the_same(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    before, after = reply_of(api, body), reply_of(api, trip(api, body, rebuilt))
    assert said(after) == said(before)
    assert (after.usage, after.error, after.terminated) == (before.usage, before.error, before.terminated)


TEXT = (whole(content="Hello"), lines(says("Hel"), says("lo"), over()))
LAST = (TEXT[0], lines(says("Hel"), over(content="lo")))
CALLS = (
    whole(tool_calls=[call("look", {"at": "x"}, 0), call("ask", {}, 1), call("go", {}, 2)]),
    lines(
        says(tool_calls=[call("look", {"at": "x"}, 0), call("ask", {}, 1)]),
        says(tool_calls=[call("go", {}, 2)]),
        over(),
    ),
)
RAW = (wrote_all("Hello"), lines(wrote("Hel"), wrote("lo"), wrote_all()))
LOOK, GO = ("call", 'look {"at":"y"}'), ("call", "go {}")

# (API, (whole, stream), change, what a client makes of it)
CHANGES: dict[str, tuple[str, Any, Any, list[Any]]] = {
    "text taken out": ("ollama.chat", TEXT, lambda: without("text"), ["stop"]),
    "text reworded": (
        "ollama.chat", TEXT, lambda: reworded("text", str.upper), [("text", "HELLO"), "stop"],
    ),
    "text of the last line": ("ollama.chat", LAST, lambda: reworded("text", str.upper), [("text", "HELLO"), "stop"]),
    "a call made": (
        "ollama.chat", TEXT, lambda: calling(("look", '{"at":"y"}')), [("text", "Hello"), LOOK, "stop"],
    ),
    "calls made": (
        "ollama.chat", TEXT, lambda: calling(("look", '{"at":"y"}'), ("go", "{}")), [("text", "Hello"), LOOK, GO, "stop"],
    ),
    "a call taken out": ("ollama.chat", CALLS, lambda: without("tool_call", 1), [("call", "ask {}"), GO, "stop"]),
    "calls taken out": ("ollama.chat", CALLS, lambda: without("tool_call"), ["stop"]),
    "text that was thought": (
        "ollama.chat", TEXT, lambda: thinking("!"), [("reasoning", "Hel"), ("text", "!"), "stop"],
    ),
    "generated text reworded": (
        "ollama.generate", RAW, lambda: reworded("text", str.upper), [("text", "HELLO"), "stop"],
    ),
    "generated text that was thought": (
        "ollama.generate", RAW, lambda: thinking("!"), [("reasoning", "Hel"), ("text", "!"), "stop"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("api", "bodies", "change", "expected"), CHANGES.values(), ids=CHANGES)
def test_changed(api: str, bodies: Any, change: Any, expected: list[Any], form: str) -> None:
    given = bodies[form == "stream"]
    body = raw(given)
    written = trip(api, body, change())
    reply = reply_of(api, written)
    if form == "whole" and ("reasoning", "Hel") in expected:
        expected = [("reasoning", "Hello"), *expected[1:]]  # there it is one piece
    assert said(reply) == expected
    assert not reply.faults
    assert reply.terminated
    assert reply.usage == {"prompt_eval_count": 9, "eval_count": 4}
    documents = [json.loads(line) for line in written.splitlines()]
    assert [document["done"] for document in documents] == [False] * (len(documents) - 1) + [True]
    assert all(document["model"] == "acme:4b" and "created_at" in document for document in documents)
    assert documents[-1]["total_duration"] == 81


@pytest.mark.parametrize("body", CALLS, ids=["whole", "stream"])
def test_calls_are_numbered_anew(body: Any) -> None:
    written = trip("ollama.chat", raw(body), without("tool_call", 1))
    calls = [one for line in written.splitlines() for one in json.loads(line)["message"].get("tool_calls", ())]
    assert [one["function"] for one in calls] == [
        {"index": 0, "name": "ask", "arguments": {}},
        {"index": 1, "name": "go", "arguments": {}},
    ]


def test_a_made_call_is_an_object_in_a_line_of_its_own() -> None:
    written = trip("ollama.chat", TEXT[1].encode(), calling(("look", '{"at":"y"}')))
    first, second, third, last = map(json.loads, written.splitlines())
    assert (first["message"]["content"], second["message"]["content"]) == ("Hel", "lo")
    assert third["message"]["tool_calls"] == [
        {"function": {"index": 0, "name": "look", "arguments": {"at": "y"}}, "id": "call_1"}
    ]
    assert (last["message"], last["done_reason"]) == ({"role": "assistant", "content": ""}, "stop")


WORDS = ["message", "content", "thinking", "tool_calls", "function", "arguments", "name", "id", "index", "images", "role",
         "response", "done", "done_reason", "model", "error", "eval_count", "created_at"]  # fmt: skip
DOCUMENT = documents(WORDS, ["stop", "", "x", "{}", '{"a":', "call_1"])
LINE = st.builds(
    lambda document, message, calls: {**document, "message": {**message, "tool_calls": calls}},
    DOCUMENT,
    DOCUMENT,
    st.lists(DOCUMENT, max_size=3),
)


@pytest.mark.parametrize("api", ["ollama.chat", "ollama.generate"])
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(DOCUMENT | LINE, min_size=1, max_size=5), st.booleans())
def test_anything_at_all(api: str, made: list[dict[str, Any]], ends: bool) -> None:
    body = lines(*made, *([{"done": True}] if ends else [])).encode()
    for given_ in (json.dumps(made[0]).encode(), body, body[: len(body) // 2]):
        survives(api, given_)
