"""Replies of Cohere's chat, version 2, and what a client makes of each."""

from __future__ import annotations

from typing import Any

from tests.apis.shape import Shape
from tests.build import sse

ID = "0b3c6d1e-52f7-4c8a-9d10-7e2f4a6b8c91"
BILLED = {"billed_units": {"input_tokens": 5, "output_tokens": 2}, "tokens": {"input_tokens": 60, "output_tokens": 4}}
CITED = {"start": 0, "end": 5, "text": "Hello", "sources": [{"type": "tool", "id": "look_a1:0", "tool_output": {}}]}
ONE = [[("text", "Hello")]]
SAY = {"type": "text", "text": "Hello"}


def whole(reason: str | None = "COMPLETE", **message: Any) -> dict[str, Any]:
    return {"id": ID, "message": {"role": "assistant", **message}, "finish_reason": reason, "usage": BILLED}


def call(name: str, arguments: str, id_: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    number = {} if index is None else {"index": index}
    return {"type": kind, **number, **({"delta": {"message": message}} if message else {})}


BEGIN = {"id": ID, **event("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])}


def content(index: int, *pieces: str, kind: str = "text") -> list[dict[str, Any]]:
    return [
        event("content-start", index, content={"type": kind, kind: ""}),
        *(event("content-delta", index, content={kind: piece}) for piece in pieces),
        event("content-end", index),
    ]


def called(index: int, name: str, id_: str, *pieces: str) -> list[dict[str, Any]]:
    return [
        event("tool-call-start", index, tool_calls=call(name, "", id_)),
        *(event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}}) for piece in pieces),
        event("tool-call-end", index),
    ]


def over(reason: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": BILLED, **more}}


def stream(*events: Any, done: bool = True) -> str:
    flat = [one for event_ in events for one in (event_ if isinstance(event_, list) else [event_])]
    return sse(*flat, named=True) + ("data: [DONE]\n\n" if done else "")


COHERE: dict[str, Shape] = {
    "text": Shape(
        ONE, ["COMPLETE"], whole(content=[SAY]), stream(BEGIN, content(0, "Hel", "lo"), over()), usage=BILLED, id=ID
    ),
    "no [DONE]": Shape(
        ONE, ["COMPLETE"], stream=stream(BEGIN, content(0, "Hello"), over(), done=False), usage=BILLED, id=ID
    ),
    "no event names": Shape(
        ONE, ["COMPLETE"], stream=sse(BEGIN, *content(0, "Hello"), over()), usage=BILLED, id=ID
    ),
    "thinking": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["COMPLETE"],
        whole(content=[{"type": "thinking", "thinking": "Greet."}, SAY]),
        stream(BEGIN, content(0, "Gre", "et.", kind="thinking"), content(1, "Hello"), over()),
        usage=BILLED,
        id=ID,
    ),
    "a plan and calls": Shape(
        [[("reasoning", "I look."), ("call", 'look {"at":"x"}'), ("call", "ask {}")]],
        ["TOOL_CALL"],
        whole("TOOL_CALL", tool_plan="I look.", tool_calls=[call("look", '{"at":"x"}', "look_a1"),
                                                            call("ask", "{}", "ask_b2")]),
        stream(
            BEGIN,
            event("tool-plan-delta", tool_plan="I "),
            event("tool-plan-delta", tool_plan="look."),
            called(0, "look", "look_a1", '{"at"', ':"x"}'),
            called(1, "ask", "ask_b2", "{}"),
            over("TOOL_CALL"),
        ),
        usage=BILLED,
        id=ID,
    ),
    "a call without arguments": Shape(
        [[("call", "ask ")]],
        ["TOOL_CALL"],
        whole("TOOL_CALL", tool_calls=[call("ask", "", "ask_b2")]),
        stream(BEGIN, called(0, "ask", "ask_b2"), over("TOOL_CALL")),
        usage=BILLED,
        id=ID,
    ),
    "citations": Shape(
        [[("text", "Hello"), ("opaque", "citations")]],
        ["COMPLETE"],
        whole(content=[SAY], citations=[CITED, CITED]),
        stream(
            BEGIN,
            content(0, "Hello")[:-1],
            event("citation-start", 0, citations=CITED),
            event("citation-end", 0),
            event("citation-start", 1, citations=CITED),
            event("citation-end", 1),
            event("content-end", 0),
            over(),
        ),
        usage=BILLED,
        id=ID,
    ),
    "cut by length": Shape(
        [[("text", "Hel")]],
        ["MAX_TOKENS"],
        whole("MAX_TOKENS", content=[{"type": "text", "text": "Hel"}]),
        stream(BEGIN, content(0, "Hel"), over("MAX_TOKENS")),
        usage=BILLED,
        id=ID,
    ),
    "content of tomorrow": Shape(
        [[("opaque", "hologram"), ("text", "Hello")]],
        ["COMPLETE"],
        whole(content=[{"type": "hologram", "url": "x"}, SAY]),
        stream(
            BEGIN,
            event("content-start", 0, content={"type": "hologram", "url": "x"}),
            event("content-end", 0),
            content(1, "Hello"),
            over(),
        ),
        usage=BILLED,
        id=ID,
    ),
    "error body": Shape(whole={"id": "e1", "message": "invalid request: no model"}, error=True, id="e1"),
    "error at the end": Shape(
        [[("text", "Hel")]],
        ["ERROR"],
        stream=stream(BEGIN, content(0, "Hel"), over("ERROR", error="the model failed")),
        usage=BILLED,
        error=True,
        id=ID,
    ),
    "cut off": Shape(
        [[("text", "Hel")]], [None], stream=stream(BEGIN, content(0, "Hel")[:-1], done=False), terminated=False, id=ID
    ),
    "no start": Shape(
        ONE,
        ["COMPLETE"],
        stream=stream(BEGIN, content(0, "Hel", "lo")[1:-1], over()),
        usage=BILLED,
        faults=["undeclared-part", "unfinished-part"],
        id=ID,
    ),
    "two calls under one index": Shape(
        [[("call", "look {}{}")]],
        ["TOOL_CALL"],
        stream=stream(BEGIN, called(0, "look", "look_a1", "{}"), called(0, "ask", "ask_b2", "{}"), over("TOOL_CALL")),
        usage=BILLED,
        faults=["restarted-part"],
        id=ID,
    ),
    "events after the end": Shape(
        ONE,
        ["COMPLETE"],
        stream=stream(BEGIN, content(0, "Hello"), over(), event("content-delta", 0, content={"text": "!"})),
        usage=BILLED,
        faults=["after-end"],
        id=ID,
    ),
    "a name that is another's": Shape(
        ONE,
        ["COMPLETE"],
        stream=stream(BEGIN, content(0, "Hello"), over()).replace("event: content-end", "event: content-delta"),
        usage=BILLED,
        faults=["event-mismatch"],
        id=ID,
    ),
    "empty body": Shape(whole={}),
}  # fmt: skip

SHAPES_COHERE = {"cohere.chat": COHERE}
