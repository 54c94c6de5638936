"""An MCP server at POST /mcp, over streamable HTTP: two tools that find and keep notes, and the faults of such servers.

It answers in JSON, or in an event stream for a client that accepts nothing else.
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import orjson

from wirelint.mock.answer import Answer, Event, Headers, json_answer, stream_answer
from wirelint.mock.api import object_of, objects_in, string_of
from wirelint.mock.fault import Fault, McpStage, Message
from wirelint.mock.plan import dump_json, mint_id
from wirelint.model import Json

PATH = "/mcp"
NAME = "mcp"

_VERSION = "2025-06-18"
_QUERY: Json = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_TITLE: Json = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
_TOOLS: Json = [
    {"name": "search_notes", "description": "Search the notes.", "inputSchema": _QUERY},
    {"name": "add_note", "description": "Keep a note.", "inputSchema": _TITLE},
]


def answer_tools(
    body: bytes, headers: Mapping[str, str], fault: Fault | None, mode: str, rng: random.Random
) -> tuple[Answer, bool]:
    """Return the answer to a POST, and True if the fault changed it. Raises ValueError for anything but JSON-RPC."""
    document: Json = orjson.loads(body)
    requests = objects_in(document if isinstance(document, list) else [document])
    if not requests or not all(one.get("jsonrpc") == "2.0" for one in requests):
        raise ValueError("a JSON-RPC 2.0 message is expected, or a list of them")
    healthy = [_answer(one) for one in requests if "method" in one and "id" in one]
    answers = fault.tools(requests, healthy, mode) if fault is not None and fault.tools is not None else healthy
    played = answers != healthy
    fields: Headers = ()
    if any(one.get("method") == "initialize" for one in requests):
        fields = (("mcp-session-id", mint_id(rng, "{hex 32}")),)
    if not answers:
        return Answer(202, fields, (), length=0), played
    accepted = headers.get("accept", "")
    if "text/event-stream" in accepted and "application/json" not in accepted:
        return stream_answer([Event("delta", dump_json(one), "message") for one in answers], "events", fields), played
    whole: Json = list(answers) if isinstance(document, list) else answers[0]
    return json_answer(200, whole, fields), played


def refuse(reason: str) -> Answer:
    """Return the JSON-RPC error for a body that is not JSON-RPC."""
    error: Json = {"code": -32700, "message": reason}
    return json_answer(400, {"jsonrpc": "2.0", "id": None, "error": error})


def _answer(request: Message) -> Message:
    head: Message = {"jsonrpc": "2.0", "id": request["id"]}
    params = object_of(request.get("params"))
    match request.get("method"):
        case "initialize":
            version = string_of(params.get("protocolVersion"), _VERSION)
            server: Json = {"name": "wirelint-mock", "version": "1"}
            return head | {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "ping":
            return head | {"result": {}}
        case "tools/list":
            return head | {"result": {"tools": _TOOLS}}
        case "tools/call":
            return head | {"result": _call(string_of(params.get("name")), object_of(params.get("arguments")))}
        case _:
            return head | {"error": {"code": -32601, "message": "Method not found"}}


def _call(name: str, arguments: Message) -> Json:
    match name:
        case "search_notes":
            text = f"2 notes about {string_of(arguments.get('query'), 'that')}: Plans, Minutes of May"
        case "add_note":
            text = f"kept as {string_of(arguments.get('title'), 'Untitled')}"
        case _:
            return {"content": [{"type": "text", "text": f"Unknown tool: {name}"}], "isError": True}
    return {"content": [{"type": "text", "text": text}], "isError": False}


def _mistake_id(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    del requests
    ids: list[Json] = [one["id"] for one in answers]
    if mode == "type":
        others: list[Json] = [str(one) if isinstance(one, int) else 7 for one in ids]
    else:
        others = [one + 1000 if isinstance(one, int) else f"{one}-other" for one in ids]
    return [one | {"id": other} for one, other in zip(answers, others, strict=True)]


def _answer_notifications(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    del mode
    if answers or not any("method" in one and "id" not in one for one in requests):
        return answers
    return [{"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}]


def _hide_error(requests: list[Message], answers: list[Message], mode: str) -> list[Message]:
    del mode
    calls = {dump_json(one["id"]) for one in requests if one.get("method") == "tools/call" and "id" in one}
    content: Json = [{"type": "text", "text": "Error: the index of notes is offline"}]
    failed: Message = {"result": {"content": content, "isError": False}}
    return [one | failed if dump_json(one["id"]) in calls else one for one in answers]


MCP_STAGES: dict[str, McpStage] = {
    "mcp-unknown-id": _mistake_id,
    "mcp-lifecycle": _answer_notifications,
    "mcp-error-not-flagged": _hide_error,
}
