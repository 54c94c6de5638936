"""Mistral's chat completions: whose they are, and where they differ from OpenAI's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.shapes_mistral import HEAD, MISTRAL, USAGE, chunk, says, thinks, whole
from tests.apis.talk_mistral_chat import record
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
)
from tests.build import Call, Talk, read, schema, sse
from wirelint.apis import recognise
from wirelint.model import ToolChoice

NAME = "mistral.chat"
CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}

# (path, headers, host of the URL, the API's name)
TRAFFIC: dict[str, tuple[str, dict[str, str], str, str]] = {
    "host header": (CHAT, {"host": "api.mistral.ai"}, "", NAME),
    "host with a port": (CHAT, {"host": "api.mistral.ai:443"}, "", NAME),
    "host of the URL": (CHAT, {}, "api.mistral.ai", NAME),
    "another host of the vendor": (CHAT, {}, "codestral.mistral.ai", NAME),
    "the vendor's client, elsewhere": (CHAT, {"user-agent": "mistral-client-python/1.9.10"}, "gateway.test", NAME),
    "an agent": ("/v1/agents/completions", {}, "api.mistral.ai", NAME),
    "the header counts": (CHAT, {"host": "llm.test"}, "api.mistral.ai", "openai.chat"),
    "a name that ends alike": (CHAT, {}, "notmistral.ai", "openai.chat"),
    "its model elsewhere": (CHAT, {}, "llm.test", "openai.chat"),
}


@pytest.mark.parametrize(("path", "headers", "host", "name"), TRAFFIC.values(), ids=TRAFFIC)
def test_recognised(path: str, headers: dict[str, str], host: str, name: str) -> None:
    api = recognise("POST", path, headers, BODY, host)
    assert api is not None
    assert name == api.name


@pytest.mark.parametrize("streamed", [False, True])
def test_an_exchange(streamed: bool) -> None:
    talk = Talk(
        text="Looking.",
        reasoning="First look.",
        calls=(Call("look", {"at": "x"}, "aB3dE5fG7"),),
        tools={"look": schema(at="string")},
        tool_choice="any",
    )
    exchange = read(record(talk, streamed))
    assert exchange.api == NAME
    assert exchange.request is not None
    assert exchange.request.api == NAME
    assert exchange.request.tool_choice == ToolChoice("required")
    assert exchange.reply is not None
    place = "/choices/0/message"
    assert [part.pointer for part in exchange.reply.choices[0].parts] == [
        f"{place}/content/0/thinking", f"{place}/content/1/text", f"{place}/tool_calls/0",
    ]  # fmt: skip
    assert said(exchange.reply) == [
        ("reasoning", "First look."), ("text", "Looking."), ("call", 'look {"at": "x"}'), "tool_calls",
    ]  # fmt: skip


def test_calls_without_numbers_have_ids_and_places() -> None:
    calls = reply_of(NAME, body_of(MISTRAL["calls without numbers"], "stream")).choices[0].calls
    assert [(one.id, one.pieces[0].index) for one in calls] == [("aB3dE5fG7", 0), ("hJ9kL1mN3", 1)]


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "shape", "form"), params(NAME, MISTRAL))
def test_what_is_not_changed_is_not_written(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    assert trip(api, body, untouched) == body


@pytest.mark.parametrize(("api", "shape", "form"), params(NAME, MISTRAL))
def test_written_anew_it_says_the_same(api: str, shape: Any, form: str) -> None:
    body = body_of(shape, form)
    before, after = reply_of(api, body), reply_of(api, trip(api, body, rebuilt))
    assert said(after) == said(before)
    assert (after.usage, after.error, after.terminated, after.id) == (
        before.usage, before.error, before.terminated, before.id,
    )  # fmt: skip


TEXT = (whole("Hello"), sse(chunk("Hel"), chunk("lo"), chunk("", "stop")))
THOUGHT = (
    whole([thinks("Greet."), says("Hello")]),
    sse(chunk([thinks("Gre")]), chunk([thinks("et.")]), chunk("Hel"), chunk("lo"), chunk("", "stop")),
)
HELLO, GREET, GO = ("text", "Hello"), ("reasoning", "Greet."), ("call", "go {}")


def silenced(text: str) -> str:
    return ""


# ((whole, stream), change, what a client makes of it)
CHANGES: dict[str, tuple[Any, Any, list[Any]]] = {
    "text reworded": (TEXT, lambda: reworded("text", str.upper), [("text", "HELLO"), "stop"]),
    "a call made": (TEXT, lambda: calling(("go", "{}")), [HELLO, GO, "tool_calls"]),
    "text beside thoughts reworded": (
        THOUGHT, lambda: reworded("text", str.upper), [GREET, ("text", "HELLO"), "stop"],
    ),
    "text beside thoughts taken out": (THOUGHT, lambda: reworded("text", silenced), [GREET, "stop"]),
    "thoughts reworded": (
        THOUGHT, lambda: reworded("reasoning", str.upper), [("reasoning", "GREET."), HELLO, "stop"],
    ),
    "thoughts taken out": (THOUGHT, lambda: reworded("reasoning", silenced), [HELLO, "stop"]),
    "a call made after thoughts": (THOUGHT, lambda: calling(("go", "{}")), [GREET, HELLO, GO, "tool_calls"]),
}  # fmt: skip


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("bodies", "change", "expected"), CHANGES.values(), ids=CHANGES)
def test_changed(bodies: Any, change: Any, expected: list[Any], form: str) -> None:
    given = bodies[form == "stream"]
    written = trip(NAME, raw(given), change())
    reply = reply_of(NAME, written)
    assert said(reply) == expected
    assert not reply.faults
    assert (reply.usage, reply.id, reply.model) == (USAGE, HEAD["id"], HEAD["model"])
    assert b"reasoning" not in written


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_text_that_was_thought_is_a_chunk(form: str) -> None:
    given = TEXT[form == "stream"]
    written = trip(NAME, raw(given), thinking("!"))
    thought = "Hel" if form == "stream" else "Hello"
    assert said(reply_of(NAME, written)) == [("reasoning", thought), ("text", "!"), "stop"]
    assert json.dumps(thinks(thought), separators=(",", ":")).encode() in written
    assert b"reasoning" not in written


BESIDE = sse(chunk([thinks("Greet."), says("Hel")]), chunk([says("lo")]), chunk("", "stop"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("text", [GREET, ("text", "HELLO"), "stop"]), ("reasoning", [("reasoning", "GREET."), HELLO, "stop"])],
)
def test_what_stands_beside_it_in_a_list_stays(kind: Any, expected: list[Any]) -> None:
    assert said(reply_of(NAME, trip(NAME, BESIDE.encode(), reworded(kind, str.upper)))) == expected


WORDS = ["content", "thinking", "text", "tool_calls", "function", "arguments", "name", "id", "index", "type"]
DELTA = documents(WORDS, ["", "x", "{}", "text", "thinking"])
CHUNK = st.builds(
    lambda delta, content, calls: chunk(content, tool_calls=calls, **{k: v for k, v in delta.items() if k == "id"}),
    DELTA,
    st.sampled_from(["", "Hel"]) | st.lists(DELTA | st.just(thinks("x")) | st.just(says("y")), max_size=3),
    st.lists(DELTA, max_size=2),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(CHUNK, min_size=1, max_size=5))
def test_anything_at_all(made: list[dict[str, Any]]) -> None:
    body = sse(*made, chunk("", "stop")).encode()
    for given_ in (json.dumps(made[0]).encode(), body, body[: len(body) // 2]):
        survives(NAME, given_)
