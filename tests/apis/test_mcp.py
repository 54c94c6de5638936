"""What is recognised as traffic with servers of tools, what is not, and what a request of theirs says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import as_record
from wirelint.apis import by_name, channel_of, recognise
from wirelint.capture.replay import replay
from wirelint.model import Exchange, Json, Rpc, ToolCall, ToolResult

SESSION = {"mcp-session-id": "s-1"}
VERSION = {"mcp-protocol-version": "2025-06-18"}
STREAM = {"accept": "text/event-stream"}


def rpc(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id_ is None else {"id": id_})


OURS = {
    "a call": ("POST", "/mcp", {}, rpc("tools/call", name="look", arguments={})),
    "a list of tools, any path": ("POST", "/", {}, rpc("tools/list")),
    "initialize": ("POST", "/mcp", {}, rpc("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})),
    "a notification": ("POST", "/mcp", {}, rpc("notifications/initialized", None)),
    "ping, in a session": ("POST", "/mcp", SESSION, rpc("ping")),
    "ping, with the version": ("POST", "/mcp", VERSION, rpc("ping")),
    "a method of the server's own": ("POST", "/mcp", SESSION, rpc("acme/rebuild")),
    "a task": ("POST", "/mcp", VERSION, rpc("tasks/get", taskId="t")),
    "an answer": ("POST", "/mcp", SESSION, {"jsonrpc": "2.0", "id": 0, "result": {"roots": []}}),
    "an answer, in the older transport": ("POST", "/messages/", {}, {"jsonrpc": "2.0", "id": 0, "result": {}}),
    "a batch": ("POST", "/mcp", {}, [rpc("tools/list"), rpc("notifications/initialized", None)]),
    "a stream that is opened": ("GET", "/mcp", STREAM | SESSION, None),
    "a stream without a session": ("GET", "/api/tools", STREAM | VERSION, None),
    "the older transport's stream": ("GET", "/sse", STREAM, None),
    "a session's end": ("DELETE", "/mcp", SESSION, None),
}

OTHERS = {
    "Ethereum": ("POST", "/", {}, rpc("eth_blockNumber")),
    "a language server": ("POST", "/", {}, rpc("initialize", processId=1, rootUri="file:///", capabilities={})),
    "a language server's request": ("POST", "/", {}, rpc("textDocument/hover")),
    "agent to agent": ("POST", "/", {}, rpc("message/send", message={})),
    "an agent's task": ("POST", "/", {}, rpc("tasks/get", id="t")),
    "ping of anybody": ("POST", "/rpc", {}, rpc("ping")),
    "an answer of anybody": ("POST", "/rpc", {}, {"jsonrpc": "2.0", "id": 0, "result": "0x1"}),
    "JSON-RPC 1": ("POST", "/", {}, {"method": "tools/call", "params": [], "id": 1}),
    "a batch of others": ("POST", "/", {}, [rpc("eth_call"), rpc("eth_chainId")]),
    "an array": ("POST", "/", {}, [1, 2]),
    "a registration of a client": ("POST", "/register", VERSION, {"client_name": "x", "redirect_uris": []}),
    "metadata": ("GET", "/.well-known/oauth-authorization-server", VERSION | {"accept": "application/json"}, None),
    "somebody's stream": ("GET", "/events", STREAM, None),
    "a page": ("GET", "/mcp", {"accept": "text/html"}, None),
    "a deletion": ("DELETE", "/v1/files/1", {}, None),
    "an upload": ("PUT", "/mcp", SESSION, rpc("tools/list")),
}


@pytest.mark.parametrize(("method", "path", "headers", "body"), OURS.values(), ids=OURS)
def test_ours(method: str, path: str, headers: dict[str, str], body: Any) -> None:
    assert recognise(method, path, headers, body) is by_name("mcp")


@pytest.mark.parametrize(("method", "path", "headers", "body"), OTHERS.values(), ids=OTHERS)
def test_others(method: str, path: str, headers: dict[str, str], body: Any) -> None:
    assert recognise(method, path, headers, body) is None


def test_a_model_stays_a_model_whatever_headers_it_gets() -> None:
    body: Json = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    found = recognise("POST", "/v1/chat/completions", SESSION | VERSION, body)
    assert found is by_name("openai.chat")


def test_channels() -> None:
    assert channel_of("mcp") == "mcp"
    assert channel_of("openai.chat") == channel_of("anything") == "model"


def passed(request: Any, reply: Any = "", *, method: str = "POST", kind: str = "application/json") -> Exchange:
    sent = {"url": "http://t.test/mcp", "method": method, "headers": SESSION | STREAM, "body": request}
    answer = {"status": 200, "headers": {"content-type": kind}, "body": reply}
    exchange = replay(as_record({"request": sent, "response": answer}))
    assert exchange is not None
    assert exchange.api == "mcp"
    return exchange


def parts(exchange: Exchange) -> list[Any]:
    assert exchange.request is not None
    return [part for message in exchange.request.messages for part in message.parts]


def test_a_call_is_a_call() -> None:
    (call,) = parts(passed(rpc("tools/call", 7, name="look", arguments={"at": "sky"})))
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments.mapping, call.pointer) == ("7", "look", {"at": "sky"}, "/params")


def test_ids_keep_their_type() -> None:
    one, other = parts(passed([rpc("tools/list", 7), rpc("tools/list", "7")]))
    assert (one.id, other.id) == ("7", '"7"')


def test_a_batch_has_the_pointers_of_its_array() -> None:
    exchange = passed([rpc("notifications/initialized", None), rpc("tools/call", 2, name="look", arguments={})])
    note, call = parts(exchange)
    assert isinstance(note, Rpc)
    assert (note.form, note.method, note.pointer) == ("notification", "notifications/initialized", "/0/method")
    assert call.pointer == "/1/params"
    assert exchange.request is not None
    assert exchange.request.body["1"]["params"]["name"] == "look"  # type: ignore[index,call-overload]


def test_a_call_without_arguments() -> None:
    (call,) = parts(passed(rpc("tools/call", 1, name="look")))
    assert call.arguments.mapping == {}


def test_a_stream_that_is_opened_has_no_message() -> None:
    heard = f"event: message\ndata: {json.dumps(rpc('notifications/message', None, data='up'))}\n\n"
    exchange = passed(None, heard, method="GET", kind="text/event-stream")
    assert parts(exchange) == []
    assert exchange.reply is not None
    (note,) = exchange.reply.choices[0].parts
    assert isinstance(note, Rpc)
    assert note.event == 0


def test_taken_and_no_more() -> None:
    exchange = passed(rpc("notifications/initialized", None), "Accepted", kind="text/plain")
    assert exchange.reply is not None
    assert exchange.reply.choices == ()
    assert exchange.reply.faults == ()


def test_a_result_says_whether_it_failed() -> None:
    for said, known in (({"isError": True}, True), ({"isError": False}, False), ({}, None), ({"isError": "no"}, None)):
        reply = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x"}], **said}}
        exchange = passed(rpc("tools/call", 1, name="look", arguments={}), json.dumps(reply))
        assert exchange.reply is not None
        (result,) = exchange.reply.choices[0].parts
        assert isinstance(result, ToolResult)
        assert (result.is_error, result.call_id, result.pointer) == (known, "1", "/result")
