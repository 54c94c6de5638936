"""Records of MCP traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.build import schema

URL = "http://127.0.0.1:8765/mcp"
QUERY = schema(query="string")


def post(
    body: Any,
    reply: Any = "",
    *,
    url: str = URL,
    status: int | None = 200,
    stream: bool = False,
    headers: Mapping[str, str] | None = None,
    end: str = "complete",
    method: str = "POST",
    kind: str = "",
) -> dict[str, Any]:
    """A POST and its reply: one document, or the documents of a stream."""
    if stream:
        text = "".join(f"event: message\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in reply)
    else:
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    kind = kind or ("text/event-stream" if stream else "application/json")
    return {
        "request": {"method": method, "url": url, "headers": dict(headers or {}), "body": body},
        "response": {"status": status, "headers": {"content-type": kind}, "body": text},
        "end": end,
    }


def request(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def note(method: str = "notifications/initialized", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})


def result(value: Any, id_: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def error(message: str, id_: Any = 1, code: int = -32602) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def text(*texts: str, is_error: bool | None = None) -> dict[str, Any]:
    flag = {} if is_error is None else {"isError": is_error}
    return {"content": [{"type": "text", "text": one} for one in texts], **flag}


def call(name: str, arguments: Any = None, id_: Any = 2) -> dict[str, Any]:
    return request("tools/call", id_, name=name, arguments=arguments or {})


def called(name: str, arguments: Any, answer: str | Mapping[str, Any], id_: Any = 2, **more: Any) -> dict[str, Any]:
    """A `tools/call` with what the tool answered."""
    value = text(answer) if isinstance(answer, str) else answer
    return post(call(name, arguments, id_), result(value, id_), **more)


def listed(tools: Mapping[str, tuple[str, Any]], *, url: str = URL) -> dict[str, Any]:
    """A server that lists its tools: name to (description, schema)."""
    served = [
        {"name": name, "description": described, "inputSchema": parameters}
        for name, (described, parameters) in tools.items()
    ]
    return post(request("tools/list"), result({"tools": served}), url=url)


def introduced(name: str, *, url: str = URL) -> dict[str, Any]:
    """The handshake of a server that says who it is."""
    value = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": name, "version": "1"}}
    asked = request(
        "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"}
    )
    return post(asked, result(value, 0), url=url)
