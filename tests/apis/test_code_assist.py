"""Gemini's bodies in the wrapper of Code Assist: read, judged and fixed like bodies without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.harness import Shape
from tests.apis.shapes import wrapped
from tests.apis.talk_google_generate_content import record
from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, as_record, some
from wirelint.capture.offline import Fixed, fix
from wirelint.fix import FixPolicy

TOOLS = {"read_note": ("Read a note.", {"type": "object", "properties": {"id": {"type": "integer"}}})}
READ = Call("read_note", {"id": 1})
LEAK = 'Now.\n<tool_call>\n{"name": "read_note", "arguments": {"id": 7}}\n</tool_call>'
REPR = User("[{'type': 'text', 'text': 'And then?'}]")
# (talk, whether the request and the reply are fixed)
TALKS = {
    "clean": (Talk((User("Hi"),), "Hello."), False, False),
    "leaked": (Talk((User("Read it."),), LEAK, tools=TOOLS), False, True),
    "control tokens": (Talk((User("Hi"),), "Hello.<|im_end|>"), False, True),
    "a history": (
        Talk((User("Read."), Assistant("", (READ,)), Result(READ.id, "May"), REPR), "June.", tools=TOOLS), True, False,
    ),
}  # fmt: skip


def wrap(made: dict[str, Any], stream: bool) -> dict[str, Any]:
    model = made["request"]["url"].rpartition("/")[2].partition(":")[0]
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    asked = {"model": model, "project": "p", "request": json.loads(made["request"]["body"])}
    body = made["response"]["body"]
    shape = wrapped(Shape(whole=None if stream else json.loads(body), stream=body if stream else None))
    url = f"https://cloudcode-pa.googleapis.com/v1internal:{method}"
    reply = shape.stream if stream else json.dumps(shape.whole)
    return {
        "request": {**made["request"], "url": url, "body": json.dumps(asked)},
        "response": {**made["response"], "body": reply},
    }


def fixed(made: dict[str, Any]) -> Fixed:
    (one,) = fix([as_record({**made, "id": "one"})], REGISTRY.select(()), FixPolicy("unsafe"))
    assert isinstance(one, Fixed)
    assert one.exchange is not None
    return one


def inner(body: bytes | None, name: str) -> list[Any]:
    """Return the wrapped bodies, of a body or of the events of a stream."""
    text = (body or b"").decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line] if text.startswith("data") else [text]
    return [json.loads(line)[name] if name else json.loads(line) for line in lines if line]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TALKS)
def test_the_wrapper_changes_nothing(name: str, stream: bool) -> None:
    talk, *changed = TALKS[name]
    made = record(talk, stream)
    bare, within = fixed(made), fixed(wrap(made, stream))
    assert within.exchange is not None
    assert (within.exchange.api, within.exchange.model) == ("google.generate_content", some(bare.exchange).model)
    assert [one.name for one in within.findings] == [one.name for one in bare.findings]
    for one, other in zip(within.findings, bare.findings, strict=True):
        prefix = "/request" if one.side == "request" else "/response"
        assert one.pointer in (other.pointer, f"{prefix}{other.pointer}")
    for side, word, expected in (("forwarded", "request", changed[0]), ("delivered", "response", changed[1])):
        ours, theirs = getattr(within.record, side), getattr(bare.record, side)
        assert (ours is not None) == (theirs is not None) == expected
        if ours is not None:
            assert inner(ours.body, word) == inner(theirs.body, "")
    assert [one.name for one in within.remaining] == [one.name for one in bare.remaining]
