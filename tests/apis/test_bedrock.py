"""Bedrock: what belongs to it, what its requests say, and replies that are written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.apis.rewriting import BLOCK, Change, instead, renamed, rewrite, the, unchanged, without
from tests.apis.shapes import ANTHROPIC
from tests.apis.shapes_bedrock import (
    BEDROCK,
    CLAUDE_EVENTS,
    LOOK,
    SHAPES_CLAUDE_ON_BEDROCK,
    body,
    call,
    carried,
    stream,
)
from tests.apis.talk_bedrock_converse import USAGE, called, delta, said, stop, thought
from tests.apis.test_contract import essence, understood
from tests.build import REGISTRY, Call, exchange, read
from wirelint.apis import recognise
from wirelint.engine import Session
from wirelint.events import Close, Delta, Event, Finish, Start
from wirelint.fix import FixPolicy
from wirelint.model import HostedCall, HostedResult, Opaque, Reasoning, Text, ToolCall, ToolResult
from wirelint.rewrite import ReplyStream
from wirelint.state.ledger import Ledger
from wirelint.wire import aws_eventstream

SAY: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]}
NOVA = {**SAY, "inferenceConfig": {"max_new_tokens": 9}}
CLAUDE = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
VERTEX = {**CLAUDE, "anthropic_version": "vertex-2023-10-16"}
AT_VERTEX = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-acme@1:"

PATHS = {
    "Converse": ("/model/acme.one-v1%3A0/converse", SAY, "bedrock.converse", "acme.one-v1:0", False),
    "streamed": ("/model/acme.one-v1:0/converse-stream", SAY, "bedrock.converse", "acme.one-v1:0", True),
    "a profile": (
        "/model/arn:aws:bedrock:eu-west-1:1:inference-profile/eu.acme.one/converse",
        SAY,
        "bedrock.converse",
        "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.acme.one",
        False,
    ),
    "behind a gateway": ("/llm/bedrock/model/acme.one/converse", SAY, "bedrock.converse", "acme.one", False),
    "a stored prompt": ("/model/acme/converse", {"promptVariables": {}}, "bedrock.converse", "acme", False),
    "Nova's endpoint": ("/model/amazon.nova-lite-v1%3A0/invoke", NOVA, "bedrock.converse", "amazon.nova-lite-v1:0", False),
    "Nova's endpoint, streamed": (
        "/model/amazon.nova-lite/invoke-with-response-stream",
        NOVA,
        "bedrock.converse",
        "amazon.nova-lite",
        True,
    ),
    "Claude": ("/model/anthropic.claude-acme/invoke", CLAUDE, "anthropic.messages", "anthropic.claude-acme", False),
    "Claude, streamed": (
        "/model/anthropic.claude-acme/invoke-with-response-stream",
        CLAUDE,
        "anthropic.messages",
        "anthropic.claude-acme",
        True,
    ),
    "Claude over Vertex": (f"{AT_VERTEX}rawPredict", VERTEX, "anthropic.messages", "claude-acme@1", False),
    "Claude over Vertex, streamed": (f"{AT_VERTEX}streamRawPredict", VERTEX, "anthropic.messages", "claude-acme@1", True),
    "a prompt of Claude's past": ("/model/anthropic.claude-v2/invoke", {"prompt": "Hi"}, None, "", False),
    "another model": ("/model/amazon.titan/invoke", {"inputText": "Hi"}, None, "", False),
    "tokens counted": ("/model/acme/count-tokens", {"input": {"converse": SAY}}, None, "", False),
    "tokens counted at Vertex": (
        "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
        {"anthropic_version": "vertex-2023-10-16", "messages": [{"role": "user", "content": "Hi"}]},
        None,
        "",
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "asked", "api", "model", "streamed"), PATHS.values(), ids=PATHS)
def test_whose_it_is(path: str, asked: dict[str, Any], api: str | None, model: str, streamed: bool) -> None:
    found = recognise("POST", path, {}, asked)
    assert (found.name if found is not None else None) == api
    if api is None:
        return
    session = Session.begin(
        id="1", method="POST", url=f"http://llm.test{path}", headers={}, body=json.dumps(asked).encode()
    )
    assert session is not None
    assert session.request is not None
    assert session.request.model == model
    assert session.request.stream == streamed


ASKED: dict[str, Any] = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "What is on it?"},
                {"image": {"format": "png", "source": {"bytes": "Zm9v"}}},
                {"guardContent": {"text": {"text": "Mind this."}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "I should look.", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "Zm9v"}},
                {"text": "Looking."},
                {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "x"}}},
                {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": "s1", "content": [], "type": "nova_grounding_result"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "t1",
                        "content": [{"text": "a tree"}, {"json": {"n": 1}}],
                        "status": "error",
                    }
                }
            ],
        },
    ],
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object"}}}},
            {"systemTool": {"name": "nova_grounding"}},
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"tool": {"name": "look"}},
    },
}


def test_what_a_request_says() -> None:
    request = the("bedrock.converse").read_request(ASKED)
    system, user, assistant, answer = request.messages
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert system.parts == (Text("Be brief.", "/system/0/text"),)
    assert user.parts == (
        Text("What is on it?", "/messages/0/content/0/text"),
        Opaque("image", "/messages/0/content/1"),
        Text("Mind this.", "/messages/0/content/2/guardContent/text/text"),
    )
    thought_, sealed, words, made, hosted, given = assistant.parts
    assert thought_ == Reasoning("I should look.", "/messages/1/content/0/reasoningContent/reasoningText/text")
    assert sealed == Reasoning("", "/messages/1/content/1", opaque=True)
    assert words == Text("Looking.", "/messages/1/content/2/text")
    assert isinstance(made, ToolCall)
    assert (made.id, made.name, made.arguments.mapping) == ("t1", "look", {"at": "x"})
    assert hosted == HostedCall("s1", "nova_grounding", "/messages/1/content/4")
    assert given == HostedResult("s1", "/messages/1/content/5", "nova_grounding_result")
    assert answer.parts == (ToolResult("t1", 'a tree\n{"n":1}', "/messages/2/content/0", None, True),)
    assert [(tool.name, tool.hosted) for tool in request.tools] == [("look", False), ("nova_grounding", True)]
    assert request.tools[0].schema == {"type": "object"}
    assert (request.tool_choice.mode, request.tool_choice.name) == ("named", "look")
    assert request.hosted


CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "auto": ({"auto": {}}, "auto"),
    "any": ({"any": {}}, "required"),
    "absent": ({}, "auto"),
}


@pytest.mark.parametrize(("given", "mode"), CHOICES.values(), ids=CHOICES)
def test_tool_choice(given: dict[str, Any], mode: str) -> None:
    asked = {**SAY, "toolConfig": {"tools": [], "toolChoice": given}}
    assert the("bedrock.converse").read_request(asked).tool_choice.mode == mode


# --- written again ----------------------------------------------------------------------------------------------------


def add_call(event: Event) -> Iterable[Event]:
    """A call at the end, as a repair promotes one."""
    if not isinstance(event, Finish):
        return [event]
    made = Start(BLOCK, "tool_call", "/output/message/content", 0, event.frame, None, "tooluse_9", "ask", None)
    return [made, Delta(BLOCK, '{"q":1}', event.frame), Close(BLOCK, event.frame), event._replace(reason="tool_use")]


def finish(reason: str) -> Change:
    return lambda event: [event._replace(reason=reason)] if isinstance(event, Finish) else [event]


TALK = ({"text": "Hello"}, called(LOOK))
STREAM = (delta(0, said("Hel")), delta(0, said("lo")), stop(0), *call(1, LOOK, '{"at"', ':"x"}'))
DEEP = (delta(0, thought("Greet.")), delta(0, {"reasoningContent": {"signature": "c2ln"}}), stop(0))
HELLO, LOOKED, ASKED_TOO = ("text", "Hello"), ("call", 'look {"at":"x"}'), ("call", 'ask {"q":1}')

CHANGES: dict[str, tuple[bytes, bytes, Change, list[tuple[str, str]], str]] = {
    "a text cut": (
        json.dumps(body({"text": "Hello"})).encode(), stream(*STREAM[:3]), instead("lo", ""), [("text", "Hel")], "end_turn",
    ),
    "a text gone": (
        json.dumps(body(*TALK, reason="tool_use")).encode(), stream(*STREAM, reason="tool_use"), without(0), [LOOKED],
        "tool_use",
    ),
    "a call gone": (
        json.dumps(body(*TALK, reason="tool_use")).encode(), stream(*STREAM, reason="tool_use"),
        lambda event: [other for one in without(1)(event) for other in finish("end_turn")(one)], [HELLO], "end_turn",
    ),
    "a call added": (
        json.dumps(body({"text": "Hello"})).encode(), stream(*STREAM[:3]), add_call, [HELLO, ASKED_TOO], "tool_use",
    ),
    "a call added to nothing": (json.dumps(body()).encode(), stream(), add_call, [ASKED_TOO], "tool_use"),
    "a name": (
        json.dumps(body(*TALK, reason="tool_use")).encode(), stream(*STREAM, reason="tool_use"), renamed(1, name="see"),
        [HELLO, ("call", 'see {"at":"x"}')], "tool_use",
    ),
    "a reason": (
        json.dumps(body(*TALK)).encode(), stream(*STREAM), finish("tool_use"), [HELLO, LOOKED], "tool_use",
    ),
    "thinking gone": (
        json.dumps(body({"reasoningContent": {"reasoningText": {"text": "Greet."}}}, {"text": "Hello"})).encode(),
        stream(*DEEP, delta(1, said("Hello")), stop(1)), without(0), [HELLO], "end_turn",
    ),
    "a text gone before thinking": (
        json.dumps(
            body({"text": "Oh"}, {"reasoningContent": {"reasoningText": {"text": "Greet.", "signature": "c2ln"}}})
        ).encode(),
        stream(
            delta(0, said("Oh")), stop(0), delta(1, thought("Greet.")),
            delta(1, {"reasoningContent": {"signature": "c2ln"}}), stop(1),
        ),
        without(0), [("reasoning", "Greet.")], "end_turn",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("whole", "streamed", "change", "parts", "reason"), CHANGES.values(), ids=CHANGES)
def test_changes(
    whole: bytes, streamed: bytes, change: Change, parts: list[tuple[str, str]], reason: str, form: str
) -> None:
    if form == "stream":
        pytest.importorskip("botocore")
    elif change is CHANGES["a text cut"][2]:
        change = instead("Hello", "Hel")
    made = rewrite("bedrock.converse", whole if form == "whole" else streamed, change)
    _, _, reply = understood(the("bedrock.converse"), [made])
    assert reply is not None
    assert essence(reply) == [parts]
    assert reply.choices[0].finish_reason == reason
    assert reply.usage == USAGE
    assert not reply.faults
    if form == "stream":
        well_formed(made)
        assert [shown for shown in as_the_sdk_reads(made) if shown[1]] == parts
    else:
        assert json.loads(made)["metrics"] == {"latencyMs": 41}


def test_no_text_is_left_of_a_block_and_it_is_still_one() -> None:
    pytest.importorskip("botocore")
    made = rewrite("bedrock.converse", stream(*call(0, LOOK, "{}"), delta(1, said("Oh")), stop(1)), instead("Oh", ""))
    well_formed(made)
    assert as_the_sdk_reads(made) == [("call", "look {}"), ("text", "")]


def test_a_text_that_goes_on_after_a_call_is_another_block() -> None:
    pytest.importorskip("botocore")

    def change(event: Event) -> Iterable[Event]:
        if not (isinstance(event, Delta) and event.text == "lo"):
            return [event]
        made = Start(BLOCK, "tool_call", "", 0, event.frame, None, "tooluse_9", "ask", {})
        return [made, Close(BLOCK, event.frame), event]

    made = rewrite("bedrock.converse", stream(*STREAM[:3]), change)
    well_formed(made)
    assert as_the_sdk_reads(made) == [("text", "Hel"), ("call", "ask {}"), ("text", "lo")]


def as_the_sdk_reads(made: bytes) -> list[tuple[str, str]]:
    """What boto3's own parser makes of a stream."""
    parsers = pytest.importorskip("botocore.parsers")
    session = pytest.importorskip("botocore.session").get_session()
    reader = pytest.importorskip("botocore.eventstream")
    model = session.get_service_model("bedrock-runtime").operation_model("ConverseStream")
    shape = model.get_event_stream_output()

    class Body:
        def stream(self) -> Iterator[bytes]:
            yield made

    blocks: dict[int, tuple[str, list[str]]] = {}
    parser = parsers.create_parser("rest-json")._event_stream_parser
    for event in reader.EventStream(Body(), shape, parser, "ConverseStream"):
        if told := event.get("contentBlockStart"):
            name = told["start"]["toolUse"]["name"]
            blocks[told["contentBlockIndex"]] = ("call", [f"{name} "])
        if told := event.get("contentBlockDelta"):
            piece = told["delta"]
            kind = "call" if "toolUse" in piece else "reasoning" if "reasoningContent" in piece else "text"
            words = piece.get("text") or piece.get("toolUse", {}).get("input") or ""
            words = words or piece.get("reasoningContent", {}).get("text", "")
            blocks.setdefault(told["contentBlockIndex"], (kind, []))[1].append(words)
    shown = {index: (kind, "".join(words)) for index, (kind, words) in blocks.items()}
    return [
        (kind, f"{words}{{}}" if kind == "call" and words.endswith(" ") else words) for kind, words in shown.values()
    ]


def well_formed(made: bytes) -> None:
    """Blocks one after the other, numbered from 0; each has something in it, and an end."""
    frames, _, _ = understood(the("bedrock.converse"), [made])
    told = [(frame.event, json.loads(frame.data or "{}")) for frame in frames]
    assert told[0][0] == "messageStart"
    assert [name for name, _ in told[-2:]] == ["messageStop", "metadata"]
    number, begun = 0, False
    for name, event in told[1:-2]:
        assert event["contentBlockIndex"] == number
        assert begun or name != "contentBlockStop"
        assert not (begun and name == "contentBlockStart")
        begun = name != "contentBlockStop"
        number += name == "contentBlockStop"
    assert not begun


HEALTHY = [pytest.param(name, id=name) for name, shape in BEDROCK.items() if shape.stream and not shape.faults]


@pytest.mark.parametrize("name", HEALTHY)
def test_what_nobody_changes_stays(name: str) -> None:
    made = BEDROCK[name].stream
    raw = made.encode() if isinstance(made, str) else made or b""
    assert rewrite("bedrock.converse", raw, unchanged) == raw


FORMS = ("Nova's own endpoint", "written down by a client")


@pytest.mark.parametrize("name", FORMS)
def test_events_leave_in_the_framing_in_which_they_came(name: str) -> None:
    pytest.importorskip("botocore")
    made = BEDROCK[name].stream
    raw = made.encode() if isinstance(made, str) else made or b""
    again = rewrite(
        "bedrock.converse", raw, lambda event: [one for x in instead("lo", "p")(event) for one in add_call(x)]
    )
    frames, _, reply = understood(the("bedrock.converse"), [again])
    assert reply is not None
    assert essence(reply) == [[("text", "Help"), ASKED_TOO]]
    assert {frame.event for frame in frames} == ({"chunk"} if name == FORMS[0] else {None})
    assert not reply.faults


# --- Claude over Bedrock ----------------------------------------------------------------------------------------------


def test_claudes_events_are_carried_again() -> None:
    pytest.importorskip("botocore")

    def change(event: Event) -> Iterable[Event]:
        if isinstance(event, Finish):
            made = Start(BLOCK, "tool_call", "/content", 0, event.frame, None, "toolu_9", "ask", {})
            return [made, Delta(BLOCK, '{"q":1}', event.frame), Close(BLOCK, event.frame), event]
        return instead("lo", "p")(event)

    raw = carried(*CLAUDE_EVENTS)
    assert rewrite("anthropic.messages", raw, unchanged) == raw
    made = rewrite("anthropic.messages", raw, change)
    frames, _, reply = understood(the("anthropic.messages"), [made])
    assert reply is not None
    assert essence(reply) == [[("text", "Help"), LOOKED, ASKED_TOO]]
    assert not reply.faults
    assert reply.terminated
    assert all(aws_eventstream.looks_like_messages(frame.raw) for frame in frames)


def test_an_exception_stays_one() -> None:
    pytest.importorskip("botocore")
    raw = SHAPES_CLAUDE_ON_BEDROCK["over Bedrock, an exception"].stream
    assert isinstance(raw, bytes)
    made = rewrite("anthropic.messages", raw, instead("Hel", "Hi"))
    _, _, reply = understood(the("anthropic.messages"), [made])
    assert reply is not None
    assert reply.error == {"type": "throttlingException", "message": "Too many tokens."}
    assert essence(reply) == [[("text", "Hi")]]


# --- without the decoder ----------------------------------------------------------------------------------------------


def test_without_its_decoder_a_stream_passes_unread_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_eventstream, "_botocore", lambda: None)
    record = exchange("/model/acme/converse-stream", SAY, "", content_type="application/vnd.amazon.eventstream")
    record["response"]["body"] = stream(*STREAM)
    found = read(record)
    assert found.request is not None
    assert found.reply is None
    assert found.end == "unread"
    assert found.notes == (aws_eventstream.NO_DECODER,)


def test_a_call_is_one_of_the_request_and_the_reply() -> None:
    record = exchange("/model/acme/converse", ASKED, body(called(Call("look", {"at": "y"}, "t2")), reason="tool_use"))
    found = read(record)
    assert found.api == "bedrock.converse"
    assert found.model == "acme"
    assert found.reply is not None
    assert [one.id for one in found.reply.choices[0].calls] == ["t2"]


# --- on the way to a client -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_token_is_taken_off_while_the_stream_passes(size: int) -> None:
    pytest.importorskip("botocore")
    body = stream(
        delta(0, said("Hello there, all is ")), delta(0, said("well.<|im_")), delta(0, said("end|>")), stop(0)
    )
    session = Session.begin(
        id="1",
        method="POST",
        url="http://llm.test/model/acme/converse-stream",
        headers={},
        body=json.dumps(SAY).encode(),
    )
    assert session is not None
    session.respond(200, {"content-type": aws_eventstream.CONTENT_TYPE})
    rewriting = ReplyStream.begin(session, REGISTRY.select(["control-token-leak"]), Ledger(), FixPolicy("unsafe"))
    assert rewriting is not None
    made = b"".join(b"".join(rewriting.feed(body[at : at + size], 1.0)) for at in range(0, len(body), size))
    made += b"".join(rewriting.end())
    assert not rewriting.faults
    well_formed(made)
    assert as_the_sdk_reads(made) == [("text", "Hello there, all is well.")]


def test_a_signature_goes_with_its_thinking() -> None:
    raw = ANTHROPIC["thinking"].stream
    assert isinstance(raw, str)
    made = rewrite("anthropic.messages", raw.encode(), without(0))
    _, _, reply = understood(the("anthropic.messages"), [made])
    assert reply is not None
    assert essence(reply) == [[("text", "Hello")]]
    assert b"signature" not in made
