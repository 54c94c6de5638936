"""Replies in the shapes that servers of the Model Context Protocol give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.apis.shape import Shape


def answer(result: Any, id_: Any = 3) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def said(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def note(method: str = "notifications/progress", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def events(*documents: Any) -> str:
    return "".join(f"event: message\ndata: {json.dumps(document, ensure_ascii=False)}\n\n" for document in documents)


def both(document: Any) -> dict[str, Any]:
    return {"whole": document, "stream": events(document)}


TOOLS = {"tools": [{"name": "query", "description": "Ask.", "inputSchema": {"type": "object", "properties": {}}}]}
DENIED = {"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "Unknown tool: qery"}}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
NO_FINISH = [None]

SHAPES_MCP: dict[str, Mapping[str, Shape]] = {
    "mcp": {
        "a result": Shape([[("result", "2 hits")]], NO_FINISH, **both(answer(said("2 hits")))),
        "a result in pieces": Shape([[("result", "one\ntwo")]], NO_FINISH, **both(answer(said("one", "two")))),
        "nothing in it": Shape([[("result", "")]], NO_FINISH, **both(answer({"content": []}))),
        "a failure": Shape([[("result", "no such file")]], NO_FINISH, **both(answer(said("no such file", isError=True)))),
        "a string id": Shape([[("result", "2 hits")]], NO_FINISH, **both(answer(said("2 hits"), "b-3"))),
        "an image beside text": Shape(
            [[("result", "see"), ("opaque", "image")]],
            NO_FINISH,
            **both(answer({"content": [*said("see")["content"], IMAGE]})),
        ),
        "a resource inside": Shape(
            [[("result", "inside")]],
            NO_FINISH,
            **both(answer({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]})),
        ),
        "a value alone": Shape(
            [[("result", '{"n":2}')]], NO_FINISH, **both(answer({"content": [], "structuredContent": {"n": 2}}))
        ),
        "tools": Shape([[("rpc", "result ")]], NO_FINISH, **both(answer(TOOLS))),
        "an error": Shape([[("rpc", "error ")]], NO_FINISH, **both(DENIED)),
        "notifications before the answer": Shape(
            [[("rpc", "notification notifications/progress"), ("result", "done")]],
            NO_FINISH,
            stream=events(note(progressToken=1, progress=50), answer(said("done"))),
        ),
        "the server asks": Shape(
            [[("rpc", "request sampling/createMessage"), ("result", "done")]],
            NO_FINISH,
            stream=events({**note("sampling/createMessage"), "id": 0}, answer(said("done"))),
        ),
        "only notifications": Shape(
            [[("rpc", "notification notifications/message")]],
            NO_FINISH,
            stream=": ping\n\n" + events(note("notifications/message", level="info", data="up")),
            terminated=False,
        ),
        "the older transport": Shape(
            [[("rpc", "notification endpoint"), ("result", "done"), ("rpc", "result ")]],
            NO_FINISH,
            stream="event: endpoint\ndata: /messages?session_id=7c1f\n\n" + events(answer(said("done"), 1), answer({}, 2)),
        ),
        "a batch": Shape(
            [[("result", "one"), ("rpc", "result ")]], NO_FINISH, whole=[answer(said("one"), 1), answer(TOOLS, 2)]
        ),
        "a batch in a stream": Shape(
            [[("result", "one"), ("rpc", "error ")]], NO_FINISH, stream=events([answer(said("one"), 1), DENIED])
        ),
        "no message": Shape((), (), whole={"detail": "Not Found"}),
    }
}  # fmt: skip
