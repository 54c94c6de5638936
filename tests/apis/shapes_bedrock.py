"""Replies of Bedrock: Converse as a body and as an event stream, Nova's own endpoint, Claude's events within `chunk`s."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.apis.harness import ITEMS, Shape
from tests.apis.talk_bedrock_converse import USAGE, Event, delta, messages, packed, said, stop

BEGIN: Event = ("messageStart", {"role": "assistant", "p": "ab"})


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


def events_of(text: str) -> bytes:
    """Return the event stream that a table writes as lines (see `shapes/bedrock.converse.toml`)."""
    written = b""
    for line in text.splitlines():
        name, _, words = line.partition(" ")
        if name == "!":
            written += exception(*words.split(" ", 1))
        elif name.startswith("{"):
            written += carried(json.loads(line))
        else:
            written += messages((name, json.loads(words)))
    return written


HELLO = (delta(0, said("Hel")), delta(0, said("lo")), stop(0))

SAID_HEL = messages(BEGIN, delta(0, said("Hel")))
DAMAGED = {
    "cut within a message": Shape(
        [[("text", "Hel")]],
        [None],
        stream=SAID_HEL + messages(delta(0, said("lo")))[:-9],
        faults=["cut-event"],
        terminated=False,
    ),
    "a damaged message": Shape(
        [[("text", "lo")]],
        ["end_turn"],
        stream=SAID_HEL[:-1] + b"\x2a" + messages(*HELLO[1:], *ended()),
        usage=USAGE,
        faults=["broken-json"],
    ),
    "framing lost": Shape(
        [[("text", "Hel")]],
        [None],
        stream=SAID_HEL + b"\x00\x00\x00\x10 and nothing that could be read",
        faults=["broken-json"],
        terminated=False,
    ),
}


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
