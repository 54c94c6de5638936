"""Cohere's chat, version 2: requests, what is particular about replies, and replies that were changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.shapes_cohere import BEGIN, BILLED, CITED, COHERE, call, called, content, event, over, stream, whole
from tests.apis.talk_cohere_chat import record
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
from wirelint.apis import by_name, recognise, recognise_reply
from wirelint.model import Opaque, Reasoning, Text, ToolCall, ToolChoice, ToolResult

NAME = "cohere.chat"

# (path, the API's name)
PATHS = {"/v2/chat": NAME, "/proxy/v2/chat/": NAME, "/v2/embed": "openai.chat", "/v1/chat/completions": "openai.chat"}


@pytest.mark.parametrize(("path", "name"), PATHS.items(), ids=PATHS)
def test_recognised(path: str, name: str) -> None:
    api = recognise("POST", path, {}, {"model": "m", "messages": [{"role": "user", "content": "x"}]})
    assert (api and api.name) == name


def test_a_reply_is_recognised_without_its_request() -> None:
    assert recognise_reply(whole(content=[])) is by_name(NAME)
    assert recognise_reply(BEGIN) is by_name(NAME)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_request(streamed: bool) -> None:
    talk = Talk(
        system="Be brief.",
        history=(
            User("Look."),
            Assistant("Yes.", (Call("look", {"at": "x"}, "look_a1"),), reasoning="I look."),
            Result("look_a1", "a wall"),
        ),
        tools={"look": ("Looks.", schema(at="string"))},
        tool_choice="required",
        request={"safety_mode": "OFF", "unheard": [1]},
    )
    exchange = read(record(talk, streamed))
    assert exchange.api == NAME
    made = exchange.request
    assert made is not None
    assert (made.stream, made.tool_choice) == (streamed, ToolChoice("required"))
    assert [message.role for message in made.messages] == ["system", "user", "assistant", "tool"]
    assert [type(part) for part in made.messages[2].parts] == [Reasoning, Text, ToolCall]
    assert made.messages[2].parts[0].pointer == "/messages/2/tool_plan"
    assert made.messages[3].parts == (ToolResult("look_a1", "a wall", "/messages/3"),)
    assert [(tool.name, tool.description, tool.schema) for tool in made.tools] == [
        ("look", "Looks.", schema(at="string"))
    ]


RESULTS: dict[str, tuple[Any, str]] = {
    "text": ("a wall", "a wall"),
    "text in a list": ([{"type": "text", "text": "a wall"}], "a wall"),
    "documents": (
        [{"type": "document", "document": {"id": "1", "data": "a wall"}}, {"document": {"data": {"n": 1}}}],
        'a wall\n{"n":1}',
    ),
    "a bare document": ([{"type": "document", "document": {"n": 1}}], '{"n":1}'),
    "nothing": (None, ""),
    "no document": ([], ""),
}


@pytest.mark.parametrize(("given", "shown"), RESULTS.values(), ids=RESULTS)
def test_what_a_tool_gave(given: Any, shown: str) -> None:
    api = by_name(NAME)
    assert api is not None
    made = api.read_request({"messages": [{"role": "tool", "tool_call_id": "a", "content": given}]})
    assert [result.text for result in made.messages[0].results] == [shown]


def test_pictures_and_thoughts_of_the_history() -> None:
    api = by_name(NAME)
    assert api is not None
    parts: list[Any] = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "thinking", "thinking": "Hm."}]
    made = api.read_request({"messages": [{"role": "user", "content": parts}]})
    place = "/messages/0/content"
    assert made.messages[0].parts == (Opaque("image_url", f"{place}/0"), Reasoning("Hm.", f"{place}/1/thinking"))


def test_places() -> None:
    reply = reply_of(NAME, body_of(COHERE["a plan and calls"], "stream"))
    assert [part.pointer for part in reply.choices[0].parts] == [
        "/message/tool_plan", "/message/tool_calls/0", "/message/tool_calls/1",
    ]  # fmt: skip
    assert [one.id for one in reply.choices[0].calls] == ["look_a1", "ask_b2"]
    reply = reply_of(NAME, body_of(COHERE["thinking"], "stream"))
    assert [part.pointer for part in reply.choices[0].parts] == [
        "/message/content/0/thinking",
        "/message/content/1/text",
    ]
    assert reply.choices[0].finish_pointer == "/finish_reason"


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "shape", "form"), params(NAME, COHERE))
def test_what_is_not_changed_is_not_written(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    assert trip(api, body, untouched) == body


@pytest.mark.parametrize(("api", "shape", "form"), params(NAME, COHERE, sound=True))
def test_written_anew_it_says_the_same(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    before, after = reply_of(api, body), reply_of(api, trip(api, body, rebuilt))
    assert said(after) == said(before)
    assert (after.usage, after.error, after.terminated, after.id) == (
        before.usage, before.error, before.terminated, before.id,
    )  # fmt: skip


TEXT = (whole(content=[{"type": "text", "text": "Hello"}]), stream(BEGIN, content(0, "Hel", "lo"), over()))
THOUGHT = (
    whole(content=[{"type": "thinking", "thinking": "Greet."}, {"type": "text", "text": "Hello"}]),
    stream(BEGIN, content(0, "Gre", "et.", kind="thinking"), content(1, "Hel", "lo"), over()),
)
CALLS = (
    whole("TOOL_CALL", tool_plan="I look.", tool_calls=[call("look", '{"at":"x"}', "a1"), call("ask", "{}", "b2")]),
    stream(
        BEGIN,
        event("tool-plan-delta", tool_plan="I "),
        event("tool-plan-delta", tool_plan="look."),
        called(0, "look", "a1", '{"at"', ':"x"}'),
        called(1, "ask", "b2", "{}"),
        over("TOOL_CALL"),
    ),
)
LOOK, ASK, GO = ("call", 'look {"at":"x"}'), ("call", "ask {}"), ("call", "go {}")
HELLO, PLAN, GREET = ("text", "Hello"), ("reasoning", "I look."), ("reasoning", "Greet.")

# ((whole, stream), change, what a client makes of it)
CHANGES: dict[str, tuple[Any, Any, list[Any]]] = {
    "text taken out": (TEXT, lambda: without("text"), ["COMPLETE"]),
    "text reworded": (TEXT, lambda: reworded("text", str.upper), [("text", "HELLO"), "COMPLETE"]),
    "a call made": (TEXT, lambda: calling(("go", "{}")), [HELLO, GO, "TOOL_CALL"]),
    "calls made": (
        TEXT, lambda: calling(("go", "{}"), ("look", '{"at":"x"}')), [HELLO, GO, LOOK, "TOOL_CALL"],
    ),
    "a call made after others": (CALLS, lambda: calling(("go", "{}")), [PLAN, LOOK, ASK, GO, "TOOL_CALL"]),
    "a reason of its own": (TEXT, lambda: calling(reason="length"), [HELLO, "MAX_TOKENS"]),
    "thoughts taken out": (THOUGHT, lambda: without("reasoning"), [HELLO, "COMPLETE"]),
    "thoughts reworded": (
        THOUGHT, lambda: reworded("reasoning", str.lower), [("reasoning", "greet."), HELLO, "COMPLETE"],
    ),
    "a plan taken out": (CALLS, lambda: without("reasoning"), [LOOK, ASK, "TOOL_CALL"]),
    "a call taken out": (CALLS, lambda: without("tool_call", 1), [PLAN, ASK, "TOOL_CALL"]),
    "calls taken out": (CALLS, lambda: without("tool_call"), [PLAN, "TOOL_CALL"]),
    "arguments reworded": (
        CALLS, lambda: reworded("tool_call", lambda text: text.replace("x", "y")),
        [PLAN, ("call", 'look {"at":"y"}'), ASK, "TOOL_CALL"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("bodies", "change", "expected"), CHANGES.values(), ids=CHANGES)
def test_changed(bodies: Any, change: Any, expected: Sequence[Any], form: str) -> None:
    given = bodies[form == "stream"]
    written = trip(NAME, raw(given), change())
    reply = reply_of(NAME, written)
    assert said(reply) == expected
    assert not reply.faults
    assert reply.terminated
    assert reply.usage == BILLED
    if form == "stream":
        assert written.endswith(b"data: [DONE]\n\n")
        assert numbers(written) == {kind: list(range(len(found))) for kind, found in numbers(written).items()}


def numbers(written: bytes) -> dict[str, list[int]]:
    """The index of each block that begins, and that no block begins within another."""
    found: dict[str, list[int]] = {}
    within: tuple[str, int] | None = None
    for one in written.decode().split("\n\n"):
        name, _, data = one.partition("\ndata: ")
        if not name.startswith("event: "):
            continue
        document = json.loads(data)
        kind, _, what = name.removeprefix("event: ").rpartition("-")
        if kind in ("content", "tool-call"):
            place = (kind, document["index"])
            if what == "start":
                assert within is None
                found.setdefault(kind, []).append(document["index"])
                within = place
            else:
                assert within == place
                within = None if what == "end" else within
    assert within is None
    return found


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_text_that_was_thought(form: str) -> None:
    given = TEXT[form == "stream"]
    written = trip(NAME, raw(given), thinking("!"))
    reply = reply_of(NAME, written)
    assert said(reply) == [("reasoning", "Hel" if form == "stream" else "Hello"), ("text", "!"), "COMPLETE"]
    assert not reply.faults


def test_citations_stay() -> None:
    body = body_of(COHERE["citations"], "stream")
    written = trip(NAME, body, reworded("text", str.upper))
    assert said(reply_of(NAME, written)) == [("text", "HELLO"), ("Opaque", "/message/citations"), "COMPLETE"]
    assert written.count(json.dumps(CITED).encode()) == body.count(json.dumps(CITED).encode()) == 2
    assert written.count(b"citation-start") == body.count(b"citation-start")


WORDS = ["message", "content", "thinking", "text", "tool_calls", "function", "arguments", "name", "id", "index", "type",
         "tool_plan", "citations", "delta", "finish_reason", "usage", "error"]  # fmt: skip
TYPES = ["message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
         "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug", "news"]  # fmt: skip
DOCUMENT = documents(WORDS, ["COMPLETE", "", "x", "{}", "text", "thinking", "function", *TYPES])
EVENT = st.builds(
    lambda kind, index, message, content_, call_: {
        "type": kind,
        "index": index,
        "delta": {"message": {**message, "content": content_, "tool_calls": call_, "tool_plan": "x"}},
    },
    st.sampled_from(TYPES),
    st.none() | st.integers(-1, 3),
    DOCUMENT,
    DOCUMENT | st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["", "Hello"])),
    DOCUMENT | st.builds(lambda text: {"function": {"arguments": text}}, st.sampled_from(["", "{}"])),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(DOCUMENT | EVENT, min_size=1, max_size=8), DOCUMENT)
def test_anything_at_all(made: list[dict[str, Any]], message: dict[str, Any]) -> None:
    body = stream(*({"type": "news", **one} for one in made)).encode()
    for given_ in (json.dumps({**made[0], "message": message}).encode(), body, body[: len(body) // 2]):
        survives(NAME, given_)
