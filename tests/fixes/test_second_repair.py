"""A reply that was repaired needs no second repair: bodies for which that takes some care."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests import build
from tests.fixes.drive import run

CHAT, MESSAGES = "https://llm.test/v1/chat/completions", "https://llm.test/v1/messages"
RESPONSES = "https://llm.test/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent"


def chunk(delta: dict[str, Any], id_: str = "chatcmpl-1", reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    document = {"id": id_, "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return build.sse(document, done=False).encode()


def call(name: str, id_: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}]}


def block(kind: str, index: int = 0, **more: Any) -> bytes:
    return build.sse({"type": f"content_block_{kind}", "index": index, **more}, named=True).encode()


def text_delta(text: str) -> bytes:
    return block("delta", delta={"type": "text_delta", "text": text})


END = chunk({}, reason="tool_calls")
ROWING = chunk(call("rowing", "c_1"))
UNNUMBERED = chunk(call("find", "c_1")).replace(b'"index": 0, "id"', b'"id"').removesuffix(b"\n")
SILENT_ENTRY = {"tool_calls": [{"index": 0, "function": False}]}
MISNAMED_ENTRY = {"tool_calls": [{"index": 0, "function": {"argument": "{}"}}]}
UNNAMED_ENTRY = {"tool_calls": [{"index": 0, "function": {"arguments": ': "9"}'}}]}
EMPTY_ENTRY = {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
LATE_ENTRY = {"tool_calls": [{"index": 0, "id": "c_2", "function": {"arguments": "8"}}]}
MESSAGE_START = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m_1","content":[]}}\n '
PARTED_START = MESSAGE_START + block("start", content_block={"type": "thinking", "thinking": "", "signature": ""})
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": "{}"}
OUTPUT = [{"type": "reasoning", "id": "rs_1", "summary": []}, CALL]
DONE = build.sse({"type": "response.output_item.done", "output_index": 1, "item": CALL}, done=False)
ENDED = build.sse({"type": "response.completed", "response": {"id": "r_1", "output": OUTPUT}}, done=False)
ADDED = build.sse({"type": "response.output_item.added", "output_index": 0, "item": CALL}, done=False)
MISNAMED = ADDED.replace('"find"', '"fin\'d"')
OTHER = {"type": "response.output_item.done", "output_index": 0, "item": {**CALL, "call_id": "call_2"}}
UNPLACED = build.sse({name: value for name, value in OTHER.items() if name != "output_index"}, done=False).encode()
TWO_LINES = [ADDED.encode(), *(build.sse(OTHER, done=False).encode().strip() + one for one in (b"\nt: x\n", b"\n\n"))]
STOP = build.sse({"type": "message_stop"}, named=True).encode()
BODIES: dict[str, tuple[str, str, list[bytes]]] = {
    "a thought whose closing tag comes after the block has stopped": (
        MESSAGES,
        "m",
        [
            block("start", content_block={"type": "text", "text": ""}),
            *map(text_delta, ("<", "think", ">Which pier is it")),
            block("stop"),
            text_delta("?</thin"),
            text_delta("k>\n\nPier 9"),
        ],
    ),
    "a call that stops after the finish reason, and is removed": (
        MESSAGES,
        "m",
        [
            block("start", content_block={"type": "tool_use", "id": "toolu_1", "name": "fly", "input": {}}),
            build.sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, named=True).encode(),
            block("stop"),
        ],
    ),
    "a damaged type beside the right name of an event": (
        RESPONSES,
        "m",
        [b'event: response.output_text.delta\ndata: {"type": "{}", "delta": ".", "output_index": 0}\n\n'],
    ),
    "a type with a brace too many beside the right name of an event": (
        RESPONSES,
        "m",
        [b'event: response.created\ndata: {"type": "response.created}", "response": {"id": "r_1", "output": []}}\n\n'],
    ),
    "a backslash in place of the bracket that closes an array of events": (
        GEMINI,
        "m",
        [b'[{"candidates": [{"content": {"parts": [{"text": "9"}], "role": "model"}, "finishReason": "STOP"}]}\n\\'],
    ),
    "an empty text within a fabricated result": (
        MESSAGES,
        "m",
        [
            block("start", content_block={"type": "text", "text": ""}),
            *map(text_delta, ("I asked.\n<function", "_results>\n", "8", "", ".", " Two")),
            block("stop"),
        ],
    ),
    "text after the stop of its block, and a block that does not stop": (
        MESSAGES,
        "m",
        [
            block("start", content_block={"type": "text", "text": ""}),
            block("stop"),
            block("start", 2, content_block={"type": "text", "text": ""}),
            text_delta("\n\n"),
            STOP,
        ],
    ),
    "arguments before the start of their call, and within those of another": (
        MESSAGES,
        "m",
        [
            block("start", content_block={"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}),
            block("delta", 1, delta={"type": "input_json_delta", "partial_json": "9"}),
            block("delta", delta={"type": "input_json_delta", "partial_json": "8"}),
            block("start", 1, content_block={"type": "tool_use", "id": "toolu_2", "name": "find", "input": {}}),
        ],
    ),
    "arguments without a number, of the call that is open": (
        MESSAGES,
        "m",
        [
            block("delta", 2, delta={"type": "input_json_delta", "partial_json": "9"}),
            block("delta", delta={"type": "thinking_delta", "thinking": "Nine?"}),
            block("start", content_block={"type": "text", "text": ""}).replace(b'"index": 0, ', b""),
            block("start", 2, content_block={"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}),
            block("delta", delta={"type": "input_json_delta", "partial_json": "8"}).replace(b'"index": 0, ', b""),
            block("delta", 2, delta={"type": "input_json_delta", "partial_json": "7"}),
        ],
    ),
    "empty arguments twice, of a call without a name before another": (
        CHAT,
        "m",
        [
            chunk(EMPTY_ENTRY),
            chunk(EMPTY_ENTRY),
            chunk({"tool_calls": [{**call("find", "c_1")["tool_calls"][0], "index": 1}]}),
        ],
    ),
    "an entry without a function, of a removed call": (CHAT, "m", [ROWING, chunk(SILENT_ENTRY), END]),
    "a call whose name comes in pieces, each with the id": (
        CHAT,
        "m",
        [chunk(call("findfind", "c_1")), chunk(call("f]]]]]indfind", "c_1")), END],
    ),
    "an entry without arguments, of a call that is removed, in a chunk with another id": (
        CHAT,
        "m",
        [
            chunk({"content": ""}),
            chunk(call("rowing", "c_1"), "chatcmpl-2"),
            chunk(MISNAMED_ENTRY),
            chunk({}, reason="tool_calls"),
        ],
    ),
    "another id in a chunk without text, with a byte that is no UTF-8": (
        CHAT,
        "m",
        [
            chunk({"content": ""}),
            chunk({"content": "A"}, "chatcmpl-2"),
            chunk({"conteXt": "B"}, "chatcmpl-2").replace(b"X", b"\xb4"),
        ],
    ),
    "more of a removed call after the finish reason": (CHAT, "m", [ROWING, END, chunk(LATE_ENTRY)]),
    "a block that does not stop, in one event with the start of its message": (MESSAGES, "m", [PARTED_START, STOP]),
    "an item that only the whole response has": (RESPONSES, "m", [DONE.strip().encode(), b"\n", ENDED.encode()]),
    "two documents in one event, with a line that is no field": (RESPONSES, "m", TWO_LINES),
    "the end of an item without its number": (RESPONSES, "m", [ADDED.encode(), UNPLACED]),
    "two chunks in one event, the second with another id, while the arguments of the first are held": (
        CHAT,
        "m",
        [chunk(UNNAMED_ENTRY).strip() + b"\n:\n" + chunk({}, "chatcmpl-2", "tool_calls").strip() + b"\n"],
    ),
    "a finish reason after the terminator, in a document that is no JSON": (
        CHAT,
        "m",
        [chunk(call("findfind", "c_1")), b"data: [DONE]\n\n", END.replace(b"chatcmpl-1", b"chatcmpl-\\ud8001")],
    ),
    "another id and another name at the end of a Responses call": (
        RESPONSES,
        "m",
        [MISNAMED.encode(), build.sse(OTHER, done=False).encode()],
    ),
    "two terminators as one event without an end": (CHAT, "m", [b"data: [DONE]\ndata: [DONE]\n"]),
    "an id without its prefix, a name that ends in `\\r`": (CHAT, "kimi-k2", [chunk(call("row", "row:0")), END]),
    "the finish reason in a line that is no field": (CHAT, "m", [UNNUMBERED, b"}" + END, b"data: [DONE]\n\n"]),
    "a thought that goes on in content that is an object": (
        CHAT,
        "gemma-4",
        [
            chunk({"content": "thought\nThe user wants "}),
            chunk({"content": {"type": "text", "text": "to row to pier "}}),
            chunk({"content": 9}),
            chunk(call("row\r", "c_1")),
        ],
    ),
    "reasoning in a value of a call that leaked into the text": (
        CHAT,
        "hermes-3",
        [
            chunk({"content": '<tool_call>\n{"name": "find", "arguments": {"pier": "9<think>Is it nine or ten?"}}\n'}),
            chunk({"content": "</tool_call>"}),
            chunk({}, reason="stop"),
        ],
    ),
    "the name of a channel in two events, which only together begin a call": (
        CHAT,
        "gpt-oss",
        [chunk({"content": piece}) for piece in ('on{"pier":"9"}', "comment", "ary to=functions.fi")],
    ),
    "two cut tokens at the end": (
        CHAT,
        "m",
        [chunk({"content": "Pier 9"}), chunk({"content": "<|im"}), chunk({"content": "<|im_"}, reason="length")],
    ),
    "two cut tokens at the end, apart": (
        CHAT,
        "m",
        [chunk({"content": "Pier 9"}), chunk({"content": "<|im_end|"}), chunk({"content": "\n<|im_"}, reason="length")],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_second_repair_changes_nothing(name: str) -> None:
    assert_repaired_once(*BODIES[name], tools=("row\r", "find"))


def test_a_block_that_two_rewriters_held_is_sent_in_its_place() -> None:
    pieces = [
        block("delta", 1, delta={"type": "input_json_delta", "partial_json": '{"pier": "nine'}),
        block("start", content_block={"type": "text", "text": ""}),
        block("delta", 1, delta={"type": "input_json_delta", "partial_json": ' or ten"}'}),
        build.sse({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}, named=True).encode(),
    ]
    assert_repaired_once(MESSAGES, "m", pieces, tools=())


def assert_repaired_once(url: str, model: str, pieces: list[bytes], tools: tuple[str, ...]) -> None:
    asked: dict[str, Any] = {"model": model, "stream": True, "max_tokens": 9}
    asked["input" if url == RESPONSES else "messages"] = [{"role": "user", "content": "Row."}]
    shape = {"type": "object"}
    tool = {"type": "function", "parameters": shape, "input_schema": shape}
    asked["tools"] = [{**tool, "name": name, "function": {"name": name, "parameters": shape}} for name in tools]
    headers = {"anthropic-version": "2023-06-01"} if url == MESSAGES else {}
    request = {"url": url, "headers": headers, "body": json.dumps(asked)}
    response = {"headers": {"content-type": "application/json" if url == GEMINI else "text/event-stream"}, "body": ""}
    record = build.as_record({"request": request, "response": response})
    first = run(dataclasses.replace(record, response_body=b"".join(pieces)))
    second = run(dataclasses.replace(record, response_body=first.delivered))
    assert second.delivered == first.delivered
    assert not first.faults
    assert not second.faults
