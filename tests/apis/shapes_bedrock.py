"""Replies of Bedrock: Converse as a body and as an event stream, Nova's own endpoint, Claude's events within `chunk`s."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.apis.harness import ITEMS, Shape
from tests.apis.talk_bedrock_converse import USAGE, Event, called, delta, messages, packed, said, start, stop, thought
from tests.build import Call

ONE = [[("text", "Hello")]]
LOOK = Call("look", {"at": "x"}, "tooluse_1")
BEGIN: Event = ("messageStart", {"role": "assistant", "p": "ab"})
SEARCH = {"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use"}


def body(*blocks: Any, reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    spoken = {"message": {"role": "assistant", "content": list(blocks)}}
    return {"output": spoken, "stopReason": reason, "usage": USAGE, "metrics": {"latencyMs": 41}, **more}


def ended(reason: str = "end_turn") -> tuple[Event, ...]:
    return ("messageStop", {"stopReason": reason, "p": "abcd"}), ("metadata", {"usage": USAGE, "p": "a"})


def stream(*told: Event, reason: str = "end_turn") -> bytes:
    return messages(BEGIN, *told, *ended(reason))


def carried(*documents: Mapping[str, Any]) -> bytes:
    """Events of another API in messages of Bedrock."""
    return messages(*(
        ("chunk", {"bytes": base64.b64encode(json.dumps(document).encode()).decode(), "p": "abc"})
        for document in documents
    ))  # fmt: skip


def exception(kind: str, words: str) -> bytes:
    payload = json.dumps({"message": words}).encode()
    return packed(payload, exception_type=kind, content_type="application/json", message_type="exception")


def call(index: int, made: Call, *pieces: str) -> tuple[Event, ...]:
    return (start(index, made), *(delta(index, {"toolUse": {"input": piece}}) for piece in pieces), stop(index))


HELLO = (delta(0, said("Hel")), delta(0, said("lo")), stop(0))

BEDROCK: dict[str, Shape] = {
    "text": Shape(ONE, ["end_turn"], body({"text": "Hello"}), stream(*HELLO), usage=USAGE),
    "thinking": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["end_turn"],
        body({"reasoningContent": {"reasoningText": {"text": "Greet.", "signature": "c2ln"}}}, {"text": "Hello"}),
        stream(
            delta(0, thought("Gre")), delta(0, thought("et.")), delta(0, {"reasoningContent": {"signature": "c2ln"}}),
            stop(0), delta(1, said("Hello")), stop(1),
        ),
        usage=USAGE,
    ),
    "redacted thinking": Shape(
        [[("sealed", ""), ("text", "Hello")]],
        ["end_turn"],
        body({"reasoningContent": {"redactedContent": "Zm9v"}}, {"text": "Hello"}),
        stream(delta(0, {"reasoningContent": {"redactedContent": "Zm9v"}}), stop(0), delta(1, said("Hello")), stop(1)),
        usage=USAGE,
    ),
    "one call": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["tool_use"],
        body(called(LOOK), reason="tool_use"),
        stream(*call(0, LOOK, "", '{"at"', ':"x"}'), reason="tool_use"),
        usage=USAGE,
    ),
    "call without parameters": Shape(
        [[("call", "look {}")]],
        ["tool_use"],
        body(called(Call("look", {}, "tooluse_1")), reason="tool_use"),
        stream(*call(0, LOOK, ""), reason="tool_use"),
        usage=USAGE,
    ),
    "text and parallel calls": Shape(
        [[("text", "Hello"), ("call", 'look {"at":"x"}'), ("call", 'ask {"q":1}')]],
        ["tool_use"],
        body({"text": "Hello"}, called(LOOK), called(Call("ask", {"q": 1}, "tooluse_2")), reason="tool_use"),
        stream(
            *HELLO, *call(1, LOOK, '{"at":"x"}'), *call(2, Call("ask", {}, "tooluse_2"), '{"q"', ":1}"),
            reason="tool_use",
        ),
        usage=USAGE,
    ),
    "run by the provider": Shape(
        [[("hosted", "nova_grounding"), ("hosted", "nova_grounding_result"), ("text", "Hello")]],
        ["end_turn"],
        body(
            {"toolUse": {**SEARCH, "input": {}}},
            {"toolResult": {"toolUseId": "s1", "content": [], "status": "success", "type": "nova_grounding_result"}},
            {"text": "Hello"},
        ),
        stream(
            ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": SEARCH}}),
            delta(0, {"toolUse": {"input": '{"query":"x"}'}}), stop(0),
            ("contentBlockStart", {
                "contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "s1", "type": "nova_grounding_result"}},
            }),
            delta(1, {"toolResult": [{"json": {"hits": 2}}]}), stop(1),
            delta(2, said("Hello")), stop(2),
        ),
        usage=USAGE,
    ),
    "cited": Shape(
        ONE,
        ["end_turn"],
        body({"citationsContent": {"content": [{"text": "Hel"}, {"text": "lo"}], "citations": [{"title": "t"}]}}),
        stream(delta(0, {"citation": {"title": "t"}}), *HELLO),
        usage=USAGE,
    ),
    "a block of tomorrow": Shape(
        [[("opaque", "hologram"), ("text", "Hello")]],
        ["end_turn"],
        body({"hologram": {"bytes": "Zm9v"}}, {"text": "Hello"}),
        stream(
            ("contentBlockStart", {"contentBlockIndex": 0, "start": {"hologram": {}}}),
            delta(0, {"hologram": {"bytes": "Zm9v"}}), stop(0), delta(1, said("Hello")), stop(1), ("weather", {"p": "a"}),
        ),
        usage=USAGE,
    ),
    "stopped by a guardrail": Shape(
        [[("text", "I must not say.")]],
        ["guardrail_intervened"],
        body({"text": "I must not say."}, reason="guardrail_intervened", trace={"guardrail": {"actionReason": "x"}}),
        stream(delta(0, said("I must not say.")), stop(0), reason="guardrail_intervened"),
        usage=USAGE,
    ),
    "nothing": Shape([[]], ["end_turn"], body(), stream(), usage=USAGE),
    "Nova's own endpoint": Shape(
        ONE, ["end_turn"],
        stream=carried(*({name: told} for name, told in (BEGIN, *HELLO, *ended()))),
        usage=USAGE,
    ),
    "written down by a client": Shape(
        ONE, ["end_turn"],
        stream="".join(f"data: {json.dumps({name: told})}\n\n" for name, told in (BEGIN, *HELLO, *ended())),
        usage=USAGE,
    ),
    "an exception": Shape(
        [[("text", "Hel")]], [None],
        stream=messages(BEGIN, delta(0, said("Hel"))) + exception("modelStreamErrorException", "the model fell over"),
        error=True, terminated=False,
    ),
    "refused": Shape(whole={"message": "The provided model identifier is invalid."}, error=True),
    "call never started": Shape(
        [[("call", 'None {"at":1}')]], ["tool_use"],
        stream=stream(delta(0, {"toolUse": {"input": '{"at":1}'}}), stop(0), reason="tool_use"),
        usage=USAGE, faults=["undeclared-part"],
    ),
    "two calls under one index": Shape(
        [[("call", "look {}{}")]], ["tool_use"],
        stream=stream(*call(0, LOOK, "{}"), *call(0, Call("look", {}, "tooluse_2"), "{}"), reason="tool_use"),
        usage=USAGE, faults=["restarted-part"],
    ),
    "never stopped": Shape(
        ONE, ["end_turn"], stream=stream(*HELLO[:2]), usage=USAGE, faults=["unfinished-part"],
    ),
    "more after the end": Shape(
        ONE, ["end_turn"], stream=stream(*HELLO) + messages(delta(1, said("Oh"))), usage=USAGE, faults=["after-end"],
    ),
    "cut within a message": Shape(
        [[("text", "Hel")]], [None],
        stream=messages(BEGIN, delta(0, said("Hel"))) + messages(delta(0, said("lo")))[:-9],
        faults=["cut-event"], terminated=False,
    ),
    "a damaged message": Shape(
        [[("text", "lo")]], ["end_turn"],
        stream=messages(BEGIN) + messages(delta(0, said("Hel")))[:-1] + b"\x2a" + messages(*HELLO[1:], *ended()),
        usage=USAGE, faults=["broken-json"],
    ),
    "framing lost": Shape(
        [[("text", "Hel")]], [None],
        stream=messages(BEGIN, delta(0, said("Hel"))) + b"\x00\x00\x00\x10 and nothing that could be read",
        faults=["broken-json"], terminated=False,
    ),
    "empty body": Shape(whole={}),
}  # fmt: skip


def claude(*documents: Mapping[str, Any]) -> Shape:
    """Claude's events as Bedrock carries them, the last of them with Bedrock's own measures."""
    return Shape(
        [[("text", "Hello"), ("call", 'look {"at":"x"}')]],
        ["tool_use"],
        stream=carried(*documents),
        usage={"input_tokens": 3, "output_tokens": 2},
        id="msg_bdrk_1",
    )


CLAUDE_EVENTS: list[dict[str, Any]] = ITEMS["claude_events"]

SHAPES_BEDROCK = {"bedrock.converse": BEDROCK}
SHAPES_CLAUDE_ON_BEDROCK = {
    "over Bedrock": claude(*CLAUDE_EVENTS),
    "over Bedrock, an exception": Shape(
        [[("text", "Hel")]],
        [None],
        stream=carried(*CLAUDE_EVENTS[:3]) + exception("throttlingException", "Too many tokens."),
        usage={"input_tokens": 3},
        error=True,
        terminated=False,
        id="msg_bdrk_1",
    ),
}
