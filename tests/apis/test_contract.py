"""One contract for all APIs: nothing lost, the same for every cut, whole = streamed, and no input that makes them fail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.shapes import SHAPES, Shape
from tests.build import FORMS, Call, Talk, as_record, read, schema
from tests.cuts import cuts, split
from tests.shared import SHARED, some_traffic
from wirelint.apis import APIS, ApiSpec, by_name, recognise, recognise_reply
from wirelint.apis.delta_pattern import IGNORED, DeltaPattern
from wirelint.capture.replay import replay
from wirelint.events import Delta, Event, Fold, Frame
from wirelint.model import (
    HostedCall,
    HostedResult,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Rpc,
    Text,
    ToolCall,
    ToolResult,
)
from wirelint.wire import Sniffer

CASES = [
    pytest.param(api, shape, form, id=f"{api}-{name}-{form}")
    for api, shapes in SHAPES.items()
    for name, shape in shapes.items()
    for form in ("whole", "stream")
    if getattr(shape, form) is not None
]


STREAMS = [
    pytest.param(api, shape, id=f"{api}-{name}")
    for api, shapes in SHAPES.items()
    for name, shape in shapes.items()
    if isinstance(shape.stream, str) and not (shape.error or shape.faults)
]
"""Streams of text in which nothing is wrong."""


def body_of(shape: Shape, form: str) -> bytes:
    made = json.dumps(shape.whole) if form == "whole" else shape.stream or ""
    if isinstance(made, str):
        return made.encode()
    pytest.importorskip("botocore", reason="event streams of AWS take a decoder")
    return made


def understood(api: ApiSpec, pieces: Sequence[bytes]) -> tuple[list[Frame], list[Event], Reply | None]:
    """What the engine makes of a body: its frames, the events they amount to, the reply."""
    sniffer = Sniffer({})
    frames = [frame for piece in pieces for frame in sniffer.feed(piece)] + sniffer.close()
    if not frames:
        return [], [], None
    reader, fold = api.reply_reader(streamed=sniffer.streamed), Fold(streamed=sniffer.streamed)
    events = [event for frame in frames for event in reader.read(frame)] + reader.close()
    for event in events:
        fold.push(event)
    return frames, events, fold.reply()


def facts(reply: Reply | None) -> Any:
    """A reply as a value that can be compared."""
    return reply and tuple(getattr(reply, name) for name in Reply.__dataclass_fields__)


def essence(reply: Reply) -> list[list[tuple[str, str]]]:
    return [[shown(part) for part in choice.parts] for choice in reply.choices]


def shown(part: Part) -> tuple[str, str]:
    match part:
        case Text(text):
            return "text", text
        case Reasoning(text, opaque=opaque):
            return ("sealed" if opaque else "reasoning"), text
        case Refusal(text):
            return "refusal", text
        case ToolCall():
            return "call", f"{part.name} {part.arguments.text}"
        case HostedCall():
            return "hosted", part.name or ""
        case HostedResult():
            return "hosted", part.kind
        case Rpc():
            return "rpc", f"{part.form} {part.method}"
        case Opaque():
            return "opaque", part.kind
        case ToolResult():
            return "result", part.text


def the(name: str) -> ApiSpec:
    api = by_name(name)
    assert api is not None
    return api


@pytest.mark.parametrize(("api", "shape", "form"), CASES)
def test_what_a_client_makes_of_it_whatever_the_cuts(api: str, shape: Shape, form: str) -> None:
    body = body_of(shape, form)
    frames, events, reply = understood(the(api), [body])
    assert reply is not None
    assert essence(reply) == [list(parts) for parts in shape.parts]
    assert [choice.finish_reason for choice in reply.choices] == list(shape.finish)
    assert (reply.error is not None) == shape.error
    assert reply.usage == shape.usage
    assert reply.id == shape.id
    assert [fault.kind for fault in reply.faults] == list(shape.faults)
    assert reply.terminated == shape.terminated
    assert reply.streamed == (form == "stream")
    _check_places(reply)
    # Frames join to the input, and every frame is carried by its events.
    assert b"".join(frame.raw for frame in frames) == body
    assert {event.frame.number for event in events if event.frame is not None} == {frame.number for frame in frames}
    # No cut matters.
    for places in cuts(len(body)):
        pieces = understood(the(api), split(body, places))
        assert pieces[0] == frames, places
        assert pieces[1] == events, places
        assert facts(pieces[2]) == facts(reply), places


@pytest.mark.parametrize(("api", "shape"), STREAMS)
def test_idle_members_say_nothing(api: str, shape: Shape) -> None:
    """Readers ignore these members, so events that differ in them match one pattern (`apis.delta_pattern`)."""
    body = body_of(shape, "stream")
    idle = {**dict.fromkeys(IGNORED, "q7"), "created": 7, "sequence_number": 7}
    other = b"\n".join(_with_members(line, idle) for line in body.split(b"\n"))
    _, events, reply = understood(the(api), [body])
    _, others, same = understood(the(api), [other])
    assert facts(same) == facts(reply)
    assert [type(event) for event in others] == [type(event) for event in events]


@pytest.mark.parametrize(("api", "shape"), STREAMS)
def test_an_event_like_the_ones_before_says_its_text_and_nothing_else(api: str, shape: Shape) -> None:
    """What two events have in common holds for a third one that came right behind them."""
    body = body_of(shape, "stream")
    frames, events, _ = understood(the(api), [body])
    said = [[event for event in events if event.frame is frame] for frame in frames]
    for number, following in enumerate(frames[1:], 1):
        text, another = said[number - 1][-1:], said[number]
        like = DeltaPattern.of(text[0]) if text and type(text[0]) is Delta else None
        if like is None or len(another) != 1 or type(another[0]) is not Delta or not like.is_confirmed_by(another[0]):
            continue
        other = following.raw.replace(_literal(another[0].text), _literal("other words"))
        assert like.text(other) == "other words"
        again, read, _ = understood(the(api), [*(one.raw for one in frames[: number + 1]), other])
        assert [one for one in read if one.frame is again[-1]] == [
            Delta(like.block, "other words", again[-1], like.item)
        ]


def _literal(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _with_members(line: bytes, members: dict[str, Any]) -> bytes:
    """A line of a stream with other values of some members of its document, if it has one that is an object."""
    name, mark, value = line.partition(b"data:") if line.startswith(b"data:") else (b"", b"", line)
    try:
        document = json.loads(value)
    except ValueError:
        return line
    return name + mark + json.dumps(document | members).encode() if isinstance(document, dict) else line


def _check_places(reply: Reply) -> None:
    for choice in reply.choices:
        pointers = [part.pointer for part in choice.parts]
        assert len(set(pointers)) == len(pointers)
        for part in choice.parts:
            assert part.pointer.startswith("/")
            if isinstance(part, Text | Reasoning | ToolCall):
                numbers = [number for _, number in part.events]
                assert numbers == sorted(numbers)
                assert all(number < reply.events for number in numbers)
                assert bool(numbers) <= reply.streamed
            if isinstance(part, ToolCall):
                assert bool(part.pieces) == reply.streamed


TALKS = {
    "text": Talk(text="Grüße, 世界 🎉\n\n  data: [DONE]"),
    "reasoning": Talk(reasoning="First greet,\nthen stop.", text="Hello."),
    "calls": Talk(
        text="Looking.",
        calls=(Call("look", {"at": 'the "sky"\n'}), Call("ask", {"q": [1, None, True]}, "call_2")),
        tools={"look": schema(at="string"), "ask": schema()},
    ),
    "cut by length": Talk(text="Once upon", finish="length"),
    "filtered": Talk(text="Once", finish="filter"),
    "nothing": Talk(),
    "no parameters": Talk(calls=(Call("look", {}),), tools={"look": schema()}),
}


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
@pytest.mark.parametrize("api", [api.name for api in APIS])
def test_whole_and_streamed_are_one(talk: Talk, api: str) -> None:
    whole, streamed = read(talk.record(api, stream=False)), read(talk.record(api, stream=True))
    assert whole.reply is not None
    assert streamed.reply is not None
    assert _places(whole.reply) == _places(streamed.reply)
    assert not streamed.reply.faults


def _places(reply: Reply) -> list[Any]:
    parts = [[(part.pointer, *shown(part)[:1], _words(part)) for part in choice.parts] for choice in reply.choices]
    return [
        parts,
        [(choice.finish_reason, choice.finish_pointer) for choice in reply.choices if choice.parts],
        reply.id,
    ]


def _words(part: Part) -> Any:
    return (part.id, part.name, part.arguments.mapping) if isinstance(part, ToolCall) else shown(part)[1]


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_a_request_is_recognised_and_so_is_its_reply(api: str, stream: bool) -> None:
    exchange = read(TALKS["calls"].record(api, stream))
    assert exchange.api == api
    assert exchange.request is not None
    assert [tool.name for tool in exchange.request.tools] == ["look", "ask"]
    lost = TALKS["calls"].record(api, stream)
    lost["request"] = {"url": "", "headers": {}, "body": None}
    assert read(lost).api == api


PATHS = (
    "/v1/messages", "/v1/chat/completions", "/v1/completions", "/v1/fim/completions", "/v1/agents/completions",
    "/v1/responses", "/v1/embeddings", "/api/chat", "/api/generate", "/v2/chat", "/v1/inference/acme/one", "/rpc", "",
    "/v1beta/models/acme-1:generateContent", "/v1beta/models/acme-1:countTokens", "/model/acme.one/converse",
    "/model/acme.one/invoke", "/model/acme.one", "/mcp",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("api", [api.name for api in APIS])
def test_an_api_that_claims_a_request_serves_its_path(api: str, path: str) -> None:
    for stream in (False, True):
        record = TALKS["calls"].record(api, stream)
        body = json.loads(as_record(record).request_body or b"{}")
        for members in (
            body,
            {**body, "prompt": "Go."},
            {**body, "input": "Go."},
            {**body, "model": "m", "messages": []},
        ):
            claimants = [one for one in APIS if one.claims(path, {}, members)]
            assert recognise("POST", path, {}, members) is next(iter(claimants), None)


# --- anything at all -------------------------------------------------------------------------------------------------

WORDS = [
    "choices", "message", "delta", "content", "tool_calls", "function", "custom", "function_call", "arguments", "input",
    "name", "id", "index", "type", "role", "finish_reason", "usage", "error", "text", "thinking", "reasoning",
    "reasoning_content", "reasoning_details", "refusal", "content_block", "partial_json", "stop_reason", "model",
    "messages",
    "tools", "tool_choice", "system", "parameters", "input_schema", "properties", "tool_call_id", "tool_use_id", "is_error",
    "jsonrpc", "method", "params", "result", "isError",
    "annotations", "citations", "audio", "data", "signature", "functions", "stream", "object", "mcp_servers",
]  # fmt: skip
VALUES = [
    "text", "tool_use", "message", "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "ping", "error", "text_delta", "input_json_delta", "thinking_delta", "assistant",
    "user",
    "tool", "system", "function", "custom", "stop", "tool_calls", "{}", '{"a":', "", "web_search_20250305",
    "2.0", "tools/call", "tools/list", "initialize", "notifications/initialized",
    "redacted_thinking", "server_tool_use", "web_search_tool_result", "none", "chat.completion",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.just(10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(VALUES),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)
DOCUMENT = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=6)


@st.composite
def anthropic_events(draw: st.DrawFn) -> dict[str, Any]:
    """Documents that get past the first look of a reader: the right type, and anything inside."""
    document = draw(DOCUMENT)
    document["type"] = draw(st.sampled_from(VALUES[3:12]))
    for name in ("content_block", "delta"):
        document[name] = {**draw(DOCUMENT), "type": draw(st.sampled_from(VALUES))}
    return document


@st.composite
def openai_chunks(draw: st.DrawFn) -> dict[str, Any]:
    made = {**draw(DOCUMENT), "index": draw(SCALARS)}
    name = draw(st.sampled_from(["delta", "message"]))
    made[name] = {**draw(DOCUMENT), "tool_calls": draw(st.lists(DOCUMENT, max_size=2))}
    return {**draw(DOCUMENT), "choices": [made]}


ANYTHING = st.one_of(DOCUMENT, anthropic_events(), openai_chunks())


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents=st.lists(ANYTHING, min_size=1, max_size=5), named=st.booleans())
def test_no_reply_makes_a_reader_fail(api: ApiSpec, documents: list[dict[str, Any]], named: bool) -> None:
    event = "event: content_block_delta\n" if named else ""
    stream = "".join(f"{event}data: {json.dumps(document)}\n\n" for document in documents).encode()
    for body in (json.dumps(documents[0]).encode(), stream, stream[: len(stream) // 2]):
        frames, _, reply = understood(api, [body])
        assert b"".join(frame.raw for frame in frames) == body
        assert facts(understood(api, split(body, range(1, len(body))))[2]) == facts(reply)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(ANYTHING, st.lists(ANYTHING, max_size=3), st.lists(ANYTHING, max_size=2))
def test_no_request_makes_a_reader_fail(
    document: dict[str, Any], messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> None:
    for request in (document, {**document, "messages": messages, "tools": tools}):
        for api in APIS:
            understood_ = api.read_request(request)
            assert understood_.api == api.name
            assert understood_.last_user is None or understood_.turn is not None
            assert api.claims_reply(request) in (True, False)
        recognise("POST", "/v1/messages", {"anthropic-version": "1"}, request)
        recognise_reply(request)


UNKNOWN = {"/v1/chat"}
"""Paths of Cohere's first version, which is passed by."""


@pytest.mark.skipif(not SHARED.is_dir(), reason="no recordings beside this checkout")
def test_recordings_are_understood_and_lossless() -> None:
    for name, record in _recordings():
        exchange = replay(record)
        if exchange is None and urlsplit(record.url).path in UNKNOWN:
            continue
        assert exchange is not None, (name, record.id)
        body = record.response_body or b""
        sniffer = Sniffer({})
        frames = [*sniffer.feed(body), *sniffer.close()]
        assert b"".join(frame.raw for frame in frames) == body, (name, record.id)


def _recordings() -> Iterator[tuple[str, Any]]:
    return some_traffic(tuple(api.name for api in APIS))
