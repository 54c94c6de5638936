r"""The Model Context Protocol over HTTP: messages between clients and servers of tools.

Theory of operation. Each message is JSON-RPC 2.0.

    {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look","arguments":{}}}
    data: {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"blue"}]}}

*Streamable HTTP*: a client posts a message, or a batch of messages (revision 2025-03-26). The answer to a request is a
document, or a stream of server-sent events, each a message, with notifications before the answer. Notifications and answers
are accepted with status 202 and no body. `GET` opens a stream for messages of the server, `DELETE` ends the session in
`Mcp-Session-Id`. *HTTP with SSE* (revision 2024-11-05): `GET` opens the stream. Its first event, `endpoint`, has the URL to
post to. Posts are accepted with 202, and the answers come on the stream. The ledger pairs answers with requests.

A JSON-RPC message of a request reads as one message of the assistant, since the model causes it. A batch reads as an object
whose members are its messages by number, so that pointers stay valid. A call of a tool is a `ToolCall` whose id is the
message's, its result a `ToolResult`; other messages are `Rpc`. Ids are kept as JSON text, since `7` and `"7"` differ. A
reply is one candidate without a finish reason. No fix changes replies of this API: they are forwarded unchanged.
Sources: JSON-RPC 2.0; the protocol's schema in its revisions from 2024-11-05 to 2025-11-25.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from wirelint.apis.reading import ApiSpec, ReplyReader, ReplyWriter
from wirelint.events import Delta, Done, Event, Frame, Other, Start, part_of
from wirelint.jsonvalues import decode_json, mapping, mappings, text
from wirelint.lexicon import load
from wirelint.model import Json, Message, Request

SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_POSTS = ("/messages", "/message")
"""Paths at which servers of the older transport take messages, as their libraries define them."""
_STREAMS = ("/sse", "/mcp")
_METHODS = frozenset(load("apis")["mcp_methods"].split())
_RESULTS = {
    **dict.fromkeys(("tools", "prompts", "resources", "resourceTemplates", "contents", "roots"), list),
    "serverInfo": dict,
}
"""Members that identify a result of the protocol, with their types."""


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if SESSION in headers:
        return True
    if not _is_message(body):
        return False
    return _VERSION in headers or claims_reply(body) or ("method" not in body and path.endswith(_POSTS))


def claims_other(method: str, path: str, headers: Mapping[str, str], body: Json) -> bool:
    """Return True for a batch, the opening of a stream, and the end of a session."""
    match method:
        case "POST":
            messages = [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []
            return any(_is_message(item) and claims(path, headers, item) for item in messages)
        case "GET":
            if "text/event-stream" not in headers.get("accept", ""):
                return False
            return SESSION in headers or _VERSION in headers or path.endswith(_STREAMS)
        case "DELETE":
            return SESSION in headers
        case _:
            return False


def claims_reply(document: Mapping[str, Json]) -> bool:
    """Return True if a message alone shows that it belongs to this protocol."""
    if not _is_message(document):
        return False
    method = document.get("method")
    if isinstance(method, str):
        if method == "initialize":  # the language server protocol has one too
            return "protocolVersion" in mapping(document.get("params"))
        return method in _METHODS
    result = mapping(document.get("result"))
    if isinstance(result.get("content"), list):
        return all("type" in block for _, block in mappings(result.get("content")))
    return any(isinstance(result.get(name), kind) for name, kind in _RESULTS.items())


def _is_message(document: Mapping[str, Json]) -> bool:
    if document.get("jsonrpc") != "2.0":
        return False
    return isinstance(document.get("method"), str) or "result" in document or "error" in document


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    messages: list[Message] = []
    for one, place in _messages(body):
        parts = [part_of(start, words) for start, words in _parts(one, place)]
        messages.append(Message("assistant", tuple([part for part in parts if part is not None]), place or "/"))
    return Request(model="", messages=tuple(messages), tools=(), body=body, tools_known=False)


def _messages(body: Mapping[str, Json]) -> Iterator[tuple[Mapping[str, Json], str]]:
    if "jsonrpc" in body or not all(name.isdecimal() for name in body):
        yield body, ""
        return
    for name, message in body.items():
        if isinstance(message, dict):
            yield message, f"/{name}"


def _parts(message: Mapping[str, Json], place: str) -> Iterator[tuple[Start, str]]:
    """Yield the parts of a message: the start of each, and its text. `place`: its pointer."""
    id_ = None if message.get("id") is None else _compact(message["id"])
    method = text(message.get("method"))
    if method is not None:
        params = message.get("params")
        name, given = text(mapping(params).get("name")), mapping(params).get("arguments")
        if method == "tools/call" and id_ is not None and name is not None:
            yield Start(0, "tool_call", f"{place}/params", 0, None, None, id_, name, {} if given is None else given), ""
        else:
            form = "notification" if id_ is None else "request"
            yield Start(0, "rpc", f"{place}/method", 0, None, None, id_, method, params, form), ""
    elif message.get("error") is not None:
        yield Start(0, "rpc", f"{place}/error", 0, None, None, id_, "", message["error"], "error"), ""
    elif "result" in message:
        result = mapping(message["result"])
        if isinstance(result.get("content"), list):
            yield from _result(id_, result, f"{place}/result")
        else:
            yield Start(0, "rpc", f"{place}/result", 0, None, None, id_, "", message["result"], "result"), ""


def _result(id_: str | None, result: Mapping[str, Json], place: str) -> Iterator[tuple[Start, str]]:
    """Yield the result of a tool: the text, or the structured value if there is no text, and media as opaque parts."""
    error, value = result.get("isError"), result.get("structuredContent")
    blocks = mappings(result.get("content"))
    lines = [words for _, block in blocks if (words := _words(block)) is not None]
    form = "error" if error is True else "ok" if error is False else ""
    shown = _compact(value) if not lines and value is not None else "\n".join(lines)
    yield Start(0, "tool_result", place, 0, None, id=id_, form=form), shown
    for n, block in blocks:
        if _words(block) is None:
            yield Start(0, "opaque", f"{place}/content/{n}", 0, None, name=text(block.get("type")) or "", form=""), ""


def _words(block: Mapping[str, Json]) -> str | None:
    words = text(block.get("text"))
    return words if words is not None else text(mapping(block.get("resource")).get("text"))


def _compact(value: Json) -> str:
    """Return JSON without blanks. Unlike orjson, `json` takes numbers of any size."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Reader(ReplyReader):
    """Reader of replies: one block for each part of each message.

    The first answer has the pointer of a single answer. Pointers of all other messages of a stream or a batch begin with
    their number.
    """

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self._messages = 0
        self._answered = False

    def read(self, frame: Frame) -> list[Event]:
        data, self.frame = frame.data, frame
        if data is None:
            return super().read(frame)
        if frame.event == "endpoint":
            name = "endpoint"
            return [Start(self.next_block(), "rpc", f"/{name}", 0, frame, None, None, name, data, "notification")]
        batch = decode_json(data) if data.lstrip().startswith("[") else None
        if isinstance(batch, list):
            events = [event for n, message in enumerate(batch) for event in self._message(message, f"/{n}")]
            return events or [Other(frame)]
        if not self.streamed and not data.lstrip().startswith("{"):
            return [Other(frame)]  # `Accepted`, in the older transport
        return super().read(frame)

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        return self._message(document, None)

    def _message(self, document: Json, place: str | None) -> Iterator[Event]:
        number, self._messages = self._messages, self._messages + 1
        if not isinstance(document, dict):
            return
        answers = "method" not in document
        if place is None:
            place = "" if not self.streamed or (answers and not self._answered) else f"/{number}"
        self._answered = self._answered or answers
        for start, words in _parts(document, place):
            if start.kind == "tool_call":  # no server has a reason to send one
                value = {"name": start.name, "arguments": start.input}
                start = start._replace(kind="rpc", name="tools/call", form="request", input=value)
            yield (start := start._replace(block=self.next_block(), frame=self.frame))
            if words:
                yield Delta(start.block, words, self.frame)
        if answers and self.streamed:
            yield Done(self.frame)  # a client may disconnect after the answer


API = ApiSpec(
    "mcp",
    claims,
    claims_reply,
    read_request,
    Reader,
    ReplyWriter,
    ReplyWriter,
    claims_other=claims_other,
    channel="mcp",
)
