"""A server of tools at POST /mcp, over streamable HTTP: two tools that find and keep notes, and the faults of such servers.

It answers in JSON, or in an event stream to a client that takes nothing else.
https://modelcontextprotocol.io/specification/2025-06-18/basic/transports
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import orjson

from wirelint.mock.answer import Answer, Event, Headers, json_answer
from wirelint.mock.api import object_of, objects_in, string_of
from wirelint.mock.fault import Fault
from wirelint.mock.framing import stream_answer
from wirelint.mock.ids import random_text
from wirelint.mock.plan import dump_json
from wirelint.model import Json

PATH = "/mcp"
NAME = "mcp"
Message = dict[str, Json]

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
    """The answer to a post, and whether the fault had something to act on. Raises ValueError for what is no JSON-RPC."""
    document: Json = orjson.loads(body)
    asked = objects_in(document if isinstance(document, list) else [document])
    if not asked or not all(one.get("jsonrpc") == "2.0" for one in asked):
        raise ValueError("a message of JSON-RPC 2.0 is expected, or a list of them")
    answers = [_answer(one) for one in asked if "method" in one and "id" in one]
    played = False
    if fault is not None and fault.tools is not None:
        spoilt = fault.tools(asked, answers, mode)
        played, answers = spoilt != answers, spoilt
    fields: Headers = ()
    if any(one.get("method") == "initialize" for one in asked):
        fields = (("mcp-session-id", random_text(rng, 32, "0123456789abcdef")),)
    if not answers:
        return Answer(202, fields, (), length=0), played
    accepted = headers.get("accept", "")
    if "text/event-stream" in accepted and "application/json" not in accepted:
        return stream_answer([Event("delta", dump_json(one), "message") for one in answers], "events", fields), played
    whole: Json = list(answers) if isinstance(document, list) else answers[0]
    return json_answer(200, whole, fields), played


def refuse(reason: str) -> Answer:
    """What JSON-RPC says to a post that it cannot read."""
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
            text, failed = f"2 notes about {string_of(arguments.get('query'), 'that')}: Plans, Minutes of May", False
        case "add_note":
            text, failed = f"kept as {string_of(arguments.get('title'), 'Untitled')}", False
        case _:
            text, failed = f"Unknown tool: {name}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _mistake_id(asked: list[Message], answers: list[Message], mode: str) -> list[Message]:
    del asked
    return [one | {"id": _other(one["id"], mode)} for one in answers]


def _other(id_: Json, mode: str) -> Json:
    if mode == "type":
        return str(id_) if isinstance(id_, int) else 7
    return id_ + 1000 if isinstance(id_, int) else f"{id_}-other"


def _answer_notes(asked: list[Message], answers: list[Message], mode: str) -> list[Message]:
    """A server that takes notifications for requests."""
    del mode
    notes = [one for one in asked if "method" in one and "id" not in one]
    if not notes or answers:
        return answers
    return [{"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}]


def _hide_error(asked: list[Message], answers: list[Message], mode: str) -> list[Message]:
    del mode
    calls = {dump_json(one["id"]) for one in asked if one.get("method") == "tools/call" and "id" in one}
    text: Json = {"type": "text", "text": "Error: the index of notes is offline"}
    return [
        one | {"result": {"content": [text], "isError": False}} if dump_json(one["id"]) in calls else one
        for one in answers
    ]


TOOL_FAULTS: dict[str, Fault] = {
    "mcp-unknown-id": Fault(
        doc="a server of tools answers under another id, or the same in another type",
        tools=_mistake_id,
        modes=("number", "type"),
        needs=frozenset({"rpc"}),
    ),
    "mcp-lifecycle": Fault(
        doc="a server of tools answers a notification",
        tools=_answer_notes,
        needs=frozenset({"rpc"}),
    ),
    "mcp-error-not-flagged": Fault(
        doc="a server of tools gives an error as a result",
        tools=_hide_error,
        needs=frozenset({"rpc"}),
    ),
}
