from __future__ import annotations

from typing import Any

from tests.rules.case import Fires
from tests.rules.mcp import call, called, error, listed, note, post, request, result, streamed, text

TOOLS: dict[str, Any] = {"tools": []}

OPENED = {"accept": "text/event-stream", "mcp-session-id": "s"}
HELLO = post(
    request("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"}),
    result({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}, 0),
    headers={"mcp-session-id": "s"},
)
TAKEN = post(call("slow", id_=7), "", status=202, headers={"mcp-session-id": "s"})


def heard(*ids: object, **more: str) -> dict[str, Any]:
    """A stream of the session, with answers of these ids."""
    answers = [result(text("x"), id_) for id_ in ids]
    return post(None, answers, stream=True, method="GET", headers={**OPENED, **more}, end="client-left")


FIRES = {
    "on a stream of the session": Fires([HELLO, TAKEN, heard(8, 7)], says="no request of the session waits"),
    "on a stream, with another type": [HELLO, TAKEN, heard("7", 7)],
    "a result without an id": Fires(post(call("search", id_=12), result(text("20 results"), None)), says="has no id"),
    "another number": Fires(
        post(call("search", id_=12), result(text("20 results"), 11)), says="the answer has the id 11", pointer="/result"
    ),
    "a number for a string": Fires(
        streamed(result(TOOLS, 1), asked=request("tools/list", "1")), says="another type", layer="tool"
    ),
    "a string for a number": Fires(post(request("tools/list", 1), result(TOOLS, "1")), says="another type"),
    "an error under another id": post(request("tools/list", 1), error("Busy", 7)),
    "after a notification": streamed(
        note("notifications/progress", progress=1), result(text("x"), 9), asked=call("look")
    ),
    "one of a batch": Fires(
        post([request("tools/list", 1), request("prompts/list", 2)], [result(TOOLS, 1), result({"prompts": []}, 3)]),
        says="prompts/list 2",
    ),
    "nothing of a batch is said of one": Fires(
        post([request("tools/list", 1), request("prompts/list", 2)], [result(TOOLS, 1)]),
        says="does not answer prompts/list",
    ),
    "a stream of notifications alone": Fires(
        streamed(note("notifications/message", data="working"), asked=call("look")),
        says="does not answer",
        severity="warning",
    ),
    "answered twice": Fires(
        streamed(result(text("x"), 2), result(text("y"), 2), asked=call("look")), says="answered twice"
    ),
    "taken, and never answered": Fires(
        post(call("look"), "", status=202, headers={"mcp-protocol-version": "2025-06-18"}),
        says="202",
        severity="warning",
    ),
    "an empty body": Fires(post(call("look"), ""), says="empty body"),
    "a notification for an answer": post(call("look"), note("notifications/message", data="done")),
}

SILENT = {
    "on a stream of the session": [HELLO, TAKEN, heard(7)],
    "the last on a stream, whose post is under way": [HELLO, TAKEN, heard(7, 8)],
    "on a stream whose session began elsewhere": [TAKEN, heard(8)],
    "on a stream that is resumed": [HELLO, TAKEN, heard(8, **{"last-event-id": "4"})],
    "requests of the server on a stream": [
        HELLO,
        post(None, [request("ping", 99), note("notifications/message")], stream=True, method="GET", headers=OPENED),
    ],
    "as it should be": post(request("tools/list", 1), result(TOOLS, 1)),
    "a string id": post(request("tools/list", "a-1"), result(TOOLS, "a-1")),
    "a number in another spelling": post(request("tools/list", 1), result(TOOLS, 1.0)),
    "zero": post(request("tools/list", 0), result(TOOLS, 0)),
    "a batch in another order": post(
        [request("tools/list", 1), request("prompts/list", 2)], [result({"prompts": []}, 2), result(TOOLS, 1)]
    ),
    "progress before the answer": streamed(
        note("notifications/progress", progress=1), result(text("x"), 2), asked=call("look")
    ),
    "the server asks first": streamed(request("sampling/createMessage", 900), result(text("x"), 2), asked=call("look")),
    "an error without an id": post(request("tools/list", 1), error("Parse error", None)),
    "a refusal by HTTP": post(request("tools/list", 1), error("Bad Request", "server-error"), status=400),
    "taken, to be answered on the stream": post(call("look"), "", status=202),
    "cut off": streamed(note("notifications/message", data="x"), asked=call("look"), end="upstream-died"),
    "the client left": streamed(note("notifications/message", data="x"), asked=call("look"), end="client-left"),
    "to be asked for again": streamed(
        note("notifications/message", data="x"), asked=call("look"), headers={"mcp-protocol-version": "2025-11-25"}
    ),
    "a notification": post(note(), "", status=202),
    "an answer to the server": post(result({"roots": []}, 4), "", status=202),
    "no message at all": post(request("tools/list", 1), {"detail": "not here"}),
    "the answer to an earlier call": [
        post(call("slow", id_=7), "", status=202, headers={"mcp-session-id": "s"}),
        streamed(
            result(text("late"), 7), result(TOOLS, 8), asked=request("tools/list", 8), headers={"mcp-session-id": "s"}
        ),
    ],
    "another session before it": [listed({}), called("look", {}, "x", 5)],
}
