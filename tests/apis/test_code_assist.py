"""Gemini's bodies within others: read, judged and repaired as those that stand alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.shape import Shape
from tests.apis.shapes_gemini import wrapped
from tests.apis.talk_google_generate_content import record
from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, as_record
from wirelint.capture.offline import Fixed, fix
from wirelint.fix import FixPolicy

TOOLS = {"read_note": ("Read a note.", {"type": "object", "properties": {"id": {"type": "integer"}}})}
READ = Call("read_note", {"id": 1})
TALKS = {
    "clean": Talk((User("Hi"),), "Hello."),
    "a call": Talk((User("Read it."),), "", (READ,), tools=TOOLS),
    "leaked": Talk(
        (User("Read it."),),
        'Now.\n<tool_call>\n{"name": "read_note", "arguments": {"id": 7}}\n</tool_call>',
        tools=TOOLS,
    ),
    "control tokens": Talk((User("Hi"),), "Hello.<|im_end|>"),
    "a history": Talk(
        (
            User("Read."),
            Assistant("", (READ,)),
            Result(READ.id, "May"),
            User("[{'type': 'text', 'text': 'And then?'}]"),
        ),
        "June.",
        tools=TOOLS,
    ),
    "undeclared": Talk((User("Read."),), "", (Call("Read_Note", {"id": 1}),), tools=TOOLS),
}


def within(made: dict[str, Any], stream: bool) -> dict[str, Any]:
    """An exchange of Gemini's as one of Code Assist's."""
    model = made["request"]["url"].rpartition("/")[2].partition(":")[0]
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    asked = {"model": model, "project": "p", "request": json.loads(made["request"]["body"])}
    body = made["response"]["body"]
    told = wrapped(Shape(whole=None if stream else json.loads(body), stream=body if stream else None))
    return {
        "request": {
            **made["request"],
            "url": f"https://cloudcode-pa.googleapis.com/v1internal:{method}",
            "body": json.dumps(asked),
        },
        "response": {**made["response"], "body": told.stream if stream else json.dumps(told.whole)},
    }


def fixed(made: dict[str, Any]) -> Fixed:
    (one,) = fix([as_record({**made, "id": "one"})], REGISTRY.select(()), FixPolicy("unsafe"))
    assert isinstance(one, Fixed)
    assert one.exchange is not None
    return one


def inner(body: bytes | None, name: str) -> list[Any]:
    """What stands within a body, or within the events of a stream."""
    text = (body or b"").decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line] if text.startswith("data") else [text]
    return [json.loads(line)[name] if name else json.loads(line) for line in lines if line]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TALKS)
def test_the_same_is_found_and_repaired(name: str, stream: bool) -> None:
    made = record(TALKS[name], stream)
    alone, within_another = fixed(made), fixed(within(made, stream))
    assert within_another.exchange is not None
    assert alone.exchange is not None
    assert within_another.exchange.api == "google.generate_content"
    assert within_another.exchange.model == alone.exchange.model
    assert [one.name for one in within_another.findings] == [one.name for one in alone.findings]
    for one, other in zip(within_another.findings, alone.findings, strict=True):
        prefix = "/request" if one.side == "request" else "/response"
        assert one.pointer in (other.pointer, f"{prefix}{other.pointer}")
    for side, word in (("forwarded", "request"), ("delivered", "response")):
        ours, theirs = getattr(within_another.record, side), getattr(alone.record, side)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert inner(ours.body, word) == inner(theirs.body, "")
    assert [one.name for one in within_another.remaining] == [one.name for one in alone.remaining]


def test_something_is_repaired() -> None:
    assert fixed(within(record(TALKS["leaked"], True), True)).record.delivered is not None
    assert fixed(within(record(TALKS["a history"], True), True)).record.forwarded is not None
