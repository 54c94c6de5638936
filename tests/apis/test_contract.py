"""One contract for the readers of all APIs: lossless, any cut, whole = streamed, and no input makes them fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.harness import (
    Change,
    Shape,
    bodies,
    body_of,
    calling,
    essence,
    facts,
    rebuilt,
    reworded,
    rewrite,
    shown,
    thinking,
    understood,
    untouched,
    without,
)
from tests.apis.shapes import SHAPES
from tests.build import Call, Talk, as_record, read, schema, some
from tests.cuts import cuts, split
from tests.selection import in_batches, is_complete
from wirelint.apis import APIS, ApiSpec, recognise, recognise_reply
from wirelint.apis.reading import IGNORED
from wirelint.model import Part, Reasoning, Reply, Text, ToolCall

NAMES = [api.name for api in APIS]


@in_batches(("api", "shape", "form"), bodies(SHAPES))
def test_a_reply_reads_as_a_client_reads_it_whatever_the_cuts(api: str, shape: Shape, form: str) -> None:
    body = body_of(shape, form)
    frames, events, reply = understood(api, body)
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
    for places in cuts(len(body)):
        pieces = understood(api, *split(body, places))
        assert pieces[0] == frames, places
        assert pieces[1] == events, places
        assert facts(pieces[2]) == facts(reply), places


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


STREAMS = [
    pytest.param(api, shape, id=f"{api}-{name}")
    for api, shapes in SHAPES.items()
    for name, shape in shapes.items()
    if isinstance(shape.stream, str) and not (shape.error or shape.faults)
]
"""Text streams without errors and violations."""


@in_batches(("api", "shape"), STREAMS)
def test_ignored_members_change_nothing(api: str, shape: Shape) -> None:
    """Captures skip these members when they search a stream for secrets, since they are not part of the reply."""
    body = body_of(shape, "stream")
    idle = {**dict.fromkeys(IGNORED, "q7"), "created": 7, "sequence_number": 7}
    other = b"\n".join(_with_members(line, idle) for line in body.split(b"\n"))
    _, events, reply = understood(api, body)
    _, others, same = understood(api, other)
    assert facts(same) == facts(reply)
    assert [type(event) for event in others] == [type(event) for event in events]


def _with_members(line: bytes, members: dict[str, Any]) -> bytes:
    """Return a line of a stream with other values of some members, if it holds an object."""
    name, mark, value = line.partition(b"data:") if line.startswith(b"data:") else (b"", b"", line)
    try:
        document = json.loads(value)
    except ValueError:
        return line
    return name + mark + json.dumps(document | members).encode() if isinstance(document, dict) else line


# --- talks in every API -----------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("api", NAMES)
@in_batches("talk", TALKS.values(), ids=TALKS)
def test_whole_and_streamed_read_alike(talk: Talk, api: str) -> None:
    whole, streamed = read(talk.record(api, stream=False)), read(talk.record(api, stream=True))
    assert whole.api == streamed.api == api
    assert streamed.reply is not None
    assert _places(some(whole.reply)) == _places(streamed.reply)
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


WITHOUT_TOOLS = {"mcp", "ollama.generate"}
NO_MARK = {"mistral.chat", "ollama.generate", "mcp"}
"""APIs whose replies do not show the API, or whose talk is no call of tools."""


@pytest.mark.parametrize("stream", [False, True])
@in_batches("api", NAMES)
def test_a_request_is_recognised_and_so_is_its_reply(api: str, stream: bool) -> None:
    exchange = read(TALKS["calls"].record(api, stream))
    assert exchange.request is not None
    if api not in WITHOUT_TOOLS:
        assert [tool.name for tool in exchange.request.tools] == ["look", "ask"]
        assert [tool.schema for tool in exchange.request.tools][:1] == [schema(at="string")]
    lost = TALKS["calls"].record(api, stream)
    lost["request"] = {"url": "", "headers": {}, "body": None}
    if api not in NO_MARK:
        assert read(lost).api == api


# --- anything at all --------------------------------------------------------------------------------------------------


def _vocabulary(value: Any) -> set[str]:
    """Return the names and short texts of a document."""
    if isinstance(value, dict):
        return set(value).union(*map(_vocabulary, value.values()))
    if isinstance(value, list):
        return set().union(*map(_vocabulary, value))
    return {value} if isinstance(value, str) and len(value) < 30 else set()


def _lines(shape: Shape, form: str) -> list[tuple[str, Any]]:
    """Return the lines of a body as (prefix, document). A line without a document is a prefix alone."""
    given = json.dumps(shape.whole) if form == "whole" else shape.stream
    found: list[tuple[str, Any]] = []
    for line in str(given).split("\n"):
        prefix = line[: line.index("{")] if "{" in line else line
        try:
            found.append((prefix, json.loads(line[len(prefix) :])))
        except ValueError:
            found.append((line, None))
    return found


def anything(words: Sequence[str]) -> st.SearchStrategy[Any]:
    """JSON values whose names and texts are of a vocabulary."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-2, 3) | st.just(10**30) | st.sampled_from(words),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=4),
        max_leaves=9,
    )


@st.composite
def mutants(draw: st.DrawFn, api: str) -> bytes:
    """Bodies of an API with a few values replaced, by anything from its own vocabulary."""
    shape = draw(st.sampled_from([one for one in SHAPES[api].values() if not isinstance(one.stream, bytes)]))
    form = draw(st.sampled_from([form for form in ("whole", "stream") if getattr(shape, form) is not None]))
    lines = _lines(shape, form)
    words = sorted(set().union(*(_vocabulary(document) for _, document in lines))) or [""]
    values = anything(words)

    def mutated(value: Any, depth: int = 0) -> Any:
        if not (isinstance(value, dict | list) and value) or draw(st.integers(0, 5)) < depth:
            return draw(values)
        place: Any = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        made = value.copy()
        made[place] = mutated(value[place], depth + 1)
        return made

    for place in draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=3)):
        prefix, document = lines[place]
        if isinstance(document, dict):
            lines[place] = prefix, mutated(document)
    return "\n".join(
        prefix if document is None else prefix + json.dumps(document) for prefix, document in lines
    ).encode()


CHANGES: dict[str, Callable[[], Change]] = {
    "rebuilt": lambda: rebuilt,
    "call inserted": lambda: calling(("go", "{}")),
    "call removed": lambda: without("tool_call", 1),
    "text changed": lambda: reworded("text", str.upper),
    "text turned into reasoning": lambda: thinking("!"),
}


@pytest.mark.parametrize("api", NAMES)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=300 if is_complete() else 10)
@given(data=st.data())
def test_no_reply_makes_an_api_fail(api: str, data: st.DataObject) -> None:
    body = data.draw(mutants(api))
    for given_ in (body, body[: len(body) // 2]):
        frames, _, reply = understood(api, given_)
        assert b"".join(frame.raw for frame in frames) == given_
        assert facts(understood(api, *split(given_, range(1, len(given_))))[2]) == facts(reply)
        if not given_:
            continue
        assert rewrite(api, given_, untouched) == given_
        for change in CHANGES.values():
            try:
                written = rewrite(api, given_, change())
            except ValueError:
                continue  # the API has no form for it, and the reply passes unchanged
            understood(api, written)


@pytest.mark.parametrize("api", APIS, ids=NAMES)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=300 if is_complete() else 6)
@given(data=st.data())
def test_no_request_makes_an_api_fail(api: ApiSpec, data: st.DataObject) -> None:
    talk = data.draw(st.sampled_from(list(TALKS.values())))
    record = as_record(talk.record(api.name, False))
    path, document = urlsplit(record.url).path, json.loads(record.request_body or b"{}")
    values = anything(sorted(_vocabulary(document)))
    for _ in range(3):
        document[data.draw(st.sampled_from(sorted(document)))] = data.draw(values)
    request = api.read_request(document, path)
    assert request.api == api.name
    assert request.last_user is None or request.turn is not None
    recognise("POST", path, {}, document)
    recognise_reply(document)


PATHS = (
    "/v1/messages", "/v1/chat/completions", "/v1/completions", "/v1/fim/completions", "/v1/agents/completions",
    "/v1/responses", "/v1/embeddings", "/api/chat", "/api/generate", "/v2/chat", "/v1/inference/acme/one", "/rpc", "",
    "/v1beta/models/acme-1:generateContent", "/v1beta/models/acme-1:countTokens", "/model/acme.one/converse",
    "/model/acme.one/invoke", "/model/acme.one", "/mcp",
)  # fmt: skip


@pytest.mark.parametrize("api", NAMES)
def test_an_api_that_claims_a_request_serves_its_path(api: str) -> None:
    body = json.loads(as_record(TALKS["calls"].record(api, False)).request_body or b"{}")
    for path in PATHS:
        for members in ({}, {"prompt": "Go."}, {"input": "Go."}, {"model": "m", "messages": []}):
            claimants = [one for one in APIS if one.paths.search(path) and one.claims(path, {}, body | members)]
            assert recognise("POST", path, {}, body | members) is next(iter(claimants), None)
