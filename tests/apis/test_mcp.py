"""Exchanges with servers of tools: parts of replies, and their pointers. Requests are in `requests.json`."""

from __future__ import annotations

import json
from typing import Any

from tests.build import as_record, some
from wirelint.capture.replay import replay
from wirelint.model import Exchange, Rpc, ToolResult

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look", "arguments": {}}}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "up"}}


def passed(request: Any, reply: Any = "", *, method: str = "POST", kind: str = "application/json") -> Exchange:
    headers = {"mcp-session-id": "s-1", "accept": "text/event-stream"}
    sent = {"url": "http://t.test/mcp", "method": method, "headers": headers, "body": request}
    answer = {"status": 200, "headers": {"content-type": kind}, "body": reply}
    exchange = some(replay(as_record({"request": sent, "response": answer})))
    assert exchange.api == "mcp"
    return exchange


def test_a_batch_has_the_pointers_of_its_array() -> None:
    exchange = passed([NOTE, CALL])
    assert exchange.request is not None
    assert [part.pointer for message in exchange.request.messages for part in message.parts] == [
        "/0/method",
        "/1/params",
    ]
    assert exchange.request.body["1"]["params"]["name"] == "look"  # type: ignore[index,call-overload]


def test_an_opened_stream_has_no_request_message() -> None:
    exchange = passed(None, f"event: message\ndata: {json.dumps(NOTE)}\n\n", method="GET", kind="text/event-stream")
    assert some(exchange.request).messages == ()
    (note,) = some(exchange.reply).choices[0].parts
    assert isinstance(note, Rpc)
    assert note.event == 0


def test_an_accepted_message_has_an_empty_reply() -> None:
    exchange = passed(NOTE, "Accepted", kind="text/plain")
    assert exchange.reply is not None
    assert exchange.reply.choices == ()
    assert exchange.reply.faults == ()


def test_a_result_has_its_outcome() -> None:
    for said, known in (({"isError": True}, True), ({"isError": False}, False), ({}, None), ({"isError": "no"}, None)):
        reply = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x"}], **said}}
        exchange = passed(CALL, json.dumps(reply))
        (result,) = some(exchange.reply).choices[0].parts
        assert isinstance(result, ToolResult)
        assert (result.is_error, result.call_id, result.pointer) == (known, "1", "/result")
