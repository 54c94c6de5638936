from __future__ import annotations

from tests.rules.case import Fires
from tests.rules.mcp import call, called, error, note, post, request, result, streamed, text

HELLO = request(
    "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"}
)
WELCOME = result({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}, 0)
NO_ID = {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}

FIRES = {
    "an error for a notification": Fires(post(note(), NO_ID), says="Method not found", layer="tool"),
    "an error with a null id": Fires(post(note(), error("Method not found", None)), says="was answered"),
    "a result for a notification": Fires(post(note(), result({}, None)), says="a result"),
    "an answer in a stream": streamed(result({}, 1), asked=note("notifications/cancelled", requestId=3)),
    "a batch of notifications": post([note(), note("notifications/roots/list_changed")], [NO_ID]),
    "never settled, the client gave up": Fires(
        post(note(), "", status=None, end="client-left"), says="never settled"
    ),
    "never settled, the server died": post(note(), "", status=None, end="upstream-died"),
    "a stream that says nothing": Fires(
        post(note(), [], stream=True, end="client-left"), says="a stream was opened"
    ),
    **{
        f"a reply that does not end: {id_}": Fires({**record, "timing": {"duration_ms": 60_000}}, says=says)
        for id_, record, says in (
            ("202", post(note(), "", status=202, end="client-left"), "status 202 came, and the reply did not end in 60 s"),
            ("200 without a body", post(note(), "", end="client-left"), "did not end"),
            ("half a document", post(note(), '{"jsonrpc":"2.0",', end="client-left"), "did not end"),
            ("pings", post(note(), ": ping\n\n: ping\n\n", end="client-left", kind="text/event-stream"), "nothing came"),
            (
                "a stream of other things",
                post(note(), [note("notifications/message", data="x")], stream=True, end="client-left"),
                "a stream was opened that did not end",
            ),
            ("the server broke off", post(note(), "", status=202, end="upstream-died"), "did not end"),
        )
    },
    "refused for want of a session": post(
        request("tools/list"), error("Bad Request: No valid session ID provided", None, -32000), status=400
    ),
    "called in one batch with the handshake": Fires(
        post([HELLO, call("look")], [WELCOME, result(text("x"), 2)]), says="before the session exists", layer="client"
    ),
    "asked in one batch with the handshake": Fires(
        post([HELLO, request("prompts/list", 2)], [WELCOME, result({"prompts": []}, 2)]), says="prompts/list is requested"
    ),
    "refused as too early": Fires(
        post(request("tools/list"), error("Received request before initialization was complete")),
        says="before initialization",
        layer="client",
    ),
    "refused as not initialized": post(call("look"), error("Server not initialized", 2, -32002)),
}  # fmt: skip

SILENT = {
    "settled": post(note(), "", status=202),
    "settled with a word": post(note(), "Accepted", status=202),
    "settled with 200 and nothing": post(note(), "", status=200),
    "settled with 204": post(note(), "", status=204),
    "a client that leaves soon": {**post(note(), "", status=202, end="client-left"), "timing": {"duration_ms": 900}},
    "a refusal that does not end": post(note(), "", status=503, end="client-left"),
    "a request whose stream does not end": post(
        call("look"), [note("notifications/message", data="x")], stream=True, end="client-left"
    ),
    "refused by HTTP": post(note(), NO_ID, status=404),
    "a stream that ended": post(note(), [], stream=True),
    "a session that is over": post(call("look"), error("Session not found", 2, -32001), status=404),
    "an unknown session": post(note(), error("Session not found", None), status=404),
    "the handshake": post(HELLO, WELCOME),
    "the handshake, streamed": streamed(WELCOME, asked=HELLO),
    "notifications of the server": streamed(
        note("notifications/message", data="x"), result(text("y"), 2), asked=call("look")
    ),
    "a call": called("look", {}, "there"),
    "a tool that speaks of initialization": called("look", {}, "The database is not initialized."),
    "another error": post(call("look"), error("Unknown tool: look", 2)),
    "an error about the arguments": post(call("look"), error("variable x is used before it is set", 2)),
    "a notification beside a request": post([note(), request("tools/list")], [result({"tools": []})]),
    "an answer of the client": post(result({"roots": []}, 3), "", status=202),
    "a request that nobody answered": post(call("look"), "", status=None, end="client-left"),
    "an end that is not known": post(note(), "", status=None, end="unknown"),
}
