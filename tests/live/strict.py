"""A client that forgives nothing: it takes a reply apart by the vendors' own rules, and asserts every one of them.

What the SDKs tolerate (gaps in indexes, two finish reasons, blocks out of turn) fails here, so that a rewritten stream is
proven to be one that the vendor could have sent.
"""

from __future__ import annotations

import json
from typing import Any

from tests.build import events_of
from tests.live.scenes import OPENAI, Seen


def assemble(api: str, stream: bool, body: bytes) -> Seen:
    """What a reply says; of several candidates, the first. Raises AssertionError where it breaks a rule."""
    if api == OPENAI:
        return _openai_stream(body) if stream else _openai_whole(json.loads(body))
    return _anthropic_stream(body) if stream else _anthropic_whole(json.loads(body))


def _openai_whole(reply: dict[str, Any]) -> Seen:
    assert reply["object"] == "chat.completion"
    choice = reply["choices"][0]
    message = choice["message"]
    assert message["role"] == "assistant"
    calls = message.get("tool_calls")
    assert calls is None or calls, "an empty list of calls"
    for call in calls or ():
        assert set(call) <= {"id", "type", "function", "index"}, call
        assert call["type"] == "function"
    made = tuple(
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls or ()
    )
    return Seen(message["content"] or "", message.get("reasoning_content") or "", made, choice["finish_reason"])


def _openai_stream(body: bytes) -> Seen:
    *parts, (_, last) = events_of(body.decode())
    assert last == "[DONE]", last
    chunks = [json.loads(data) for _, data in parts]
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == 0]
    assert choices[0]["delta"].get("role") == "assistant", choices[0]
    assert not [choice for choice in choices[1:] if choice["delta"].get("role", "assistant") != "assistant"]
    finishes = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    assert len(finishes) == 1, finishes
    assert choices[-1]["finish_reason"], "something comes after the finish reason"
    said = {"content": "", "reasoning_content": ""}
    calls: list[dict[str, str]] = []
    for choice in choices:
        delta = choice["delta"]
        for key in said:
            said[key] += delta.get(key) or ""
        for piece in delta.get("tool_calls") or ():
            _add_piece(calls, piece)
    made = tuple((call["id"], call["name"], json.loads(call["arguments"] or "{}")) for call in calls)
    return Seen(said["content"], said["reasoning_content"], made, finishes[0])


def _add_piece(calls: list[dict[str, str]], piece: dict[str, Any]) -> None:
    function = piece.get("function", {})
    if piece["index"] == len(calls):
        assert piece["id"], piece
        assert piece["type"] == "function", piece
        assert function["name"], piece
        calls.append({"id": piece["id"], "name": function["name"], "arguments": function.get("arguments") or ""})
        return
    call = calls[piece["index"]]
    assert piece.get("id") in (None, "", call["id"]), piece
    assert function.get("name") in (None, "", call["name"]), piece
    call["arguments"] += function.get("arguments") or ""


def _anthropic_whole(reply: dict[str, Any]) -> Seen:
    assert (reply["type"], reply["role"]) == ("message", "assistant")
    return of_blocks(reply["content"], reply["stop_reason"])


def _anthropic_stream(body: bytes) -> Seen:
    blocks: list[dict[str, Any]] = []
    documents = []
    for name, data in events_of(body.decode()):
        document = json.loads(data)
        assert name == document["type"], (name, data)
        if name != "ping":
            documents.append(document)
    assert documents[0]["type"] == "message_start"
    assert [document["type"] for document in documents[-2:]] == ["message_delta", "message_stop"]
    is_open = False
    for document in documents[1:-2]:
        kind = document["type"]
        if kind == "content_block_start":
            assert not is_open, document
            assert document["index"] == len(blocks), document
            blocks.append({**document["content_block"], "_json": ""})
        else:
            assert is_open, document
            assert document["index"] == len(blocks) - 1, document
        if kind == "content_block_delta":
            _add_delta(blocks[-1], document["delta"])
        is_open = kind != "content_block_stop"
    assert not is_open
    for block in blocks:
        if text := block.pop("_json"):
            assert block["input"] in ({}, None), "a start with input, and deltas too"
            block["input"] = json.loads(text)
    return of_blocks(blocks, documents[-2]["delta"]["stop_reason"])


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if delta["type"] == "input_json_delta":
        assert block["type"] == "tool_use", (block, delta)
        block["_json"] += delta["partial_json"]
        return
    kind, key = _DELTAS[delta["type"]]
    assert block["type"] == kind, (block, delta)
    block[key] = block.get(key, "") + delta[key]


def of_blocks(blocks: list[dict[str, Any]], finish: str) -> Seen:
    calls = tuple((block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    assert all(isinstance(value, dict) for _, _, value in calls), calls
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    return Seen(text, thinking, calls, finish)
