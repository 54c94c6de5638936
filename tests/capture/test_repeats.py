"""What was seen before may save a look, and never hides a secret: with it and without it the same bytes come out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.test_probe import SHAPES, documents, sample, texts
from tests.selection import sampled
from wirelint.capture import repeats
from wirelint.capture.redact import Redactor

FILLER = [{"role": "user" if number % 2 else "assistant", "content": f"word {number} " * 9} for number in range(12)]
TOOLS = [
    {"type": "function", "function": {"name": f"tool_{number}", "description": "does it " * 9}} for number in range(9)
]


def request(messages: list[dict[str, Any]], **options: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [*FILLER, *messages], "tools": TOOLS, **options}).encode()


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_only_what_is_new_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(text: str) -> bool:
        seen.append(len(text))
        return True

    monkeypatch.setattr(repeats, "harmless", look)
    redactor = Redactor(b"k")
    bodies = [request([said(f"turn {number} " * 5) for number in range(turn)]) for turn in range(1, 6)]
    for body in bodies:
        assert redactor.body(body, streamed=False) == body
    assert seen[0] == len(bodies[0])
    assert max(seen[1:]) < 600
    seen.clear()
    redactor.body(request([said("another conversation")]), streamed=False)
    assert max(seen) < 600


def redacted(bodies: list[bytes]) -> None:
    """Each of the bodies, after all that came before it, is what it would be if nothing had come."""
    redactor = Redactor(b"k")
    for body in bodies:
        assert redactor.body(body, streamed=False) == Redactor(b"k").body(body, streamed=False)


@pytest.mark.parametrize("name", SHAPES)
def test_a_secret_that_is_new(name: str) -> None:
    before = request([said("hello"), said("x = 1; and so on")])
    for text in (f"it is {sample(name)} ", sample(name)):
        plain = request([said("hello"), said(text), said("x = 1; and so on")])
        redacted([before, plain, before, plain])
        redacted([before, request([said("hello"), said(json.dumps({"inner": text}))]), plain])
        redacted([before, before.replace(b'"hello"', json.dumps(f"hello {text}").encode())])
        redacted([before.replace(b'"m"', json.dumps(text).encode()), before, plain])


@pytest.mark.parametrize("name", SHAPES)
def test_a_secret_of_which_a_part_was_there_before(name: str) -> None:
    text = f"so: {sample(name)} "
    whole = request([said(text), said("and so on")])
    for cut in sampled(range(1, len(text), 3), 4):
        head, tail = request([said(text[:cut]), said("and so on")]), request([said(text[cut:]), said("and so on")])
        redacted([head, tail, whole])


@given(st.lists(st.one_of(texts(), documents()), min_size=1, max_size=5), st.data())
def test_any_turns(written: list[str], data: st.DataObject) -> None:
    bodies = []
    for _ in range(4):
        turn = data.draw(st.lists(st.sampled_from(written), max_size=4))
        pieces = [text[: data.draw(st.integers(0, len(text)))] for text in turn]
        bodies.append(request([said(text) for text in (*turn, *pieces)]))
    redacted(bodies)


def test_documents_of_any_size_and_order() -> None:
    body = request([])
    redacted([body[:size] for size in (2100, 2048, 3000, 2500, len(body), 2047, 10)])
    redacted([body, body[700:], body, body[:-900], b"[" + body + b"]"])
