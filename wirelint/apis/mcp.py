"""The Model Context Protocol over HTTP: what clients and servers of tools say to each other.

Theory of operation. Everything is a message of JSON-RPC 2.0. *Streamable HTTP*: a message, or a batch of them (revision
2025-03-26), is posted; a request is answered by a document or by a stream of server-sent events, each a message, with
notifications before the answer; notifications and answers are taken with status 202 and no body. `GET` opens a stream on
which the server speaks unasked, `DELETE` ends the session that `Mcp-Session-Id` names. *HTTP with SSE* (revision
2024-11-05): `GET` opens the stream, whose first event, `endpoint`, names the URL to post to; what is posted there is taken
with 202, and the answers come on the stream. Which request an answer belongs to is for the ledger to say.

A request is one message of the assistant per JSON-RPC message, for it is the model's doing; a batch is read as an object
whose members are its messages by number, so that pointers mean the same. A reply is one candidate without a finish reason.
No repair changes replies of this channel: they leave as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.apis.mcp_messages import is_message, is_ours, parts_of
from wirelint.apis.reading import Documents
from wirelint.apis.spec import ApiSpec, Traits
from wirelint.events import Delta, Done, Event, Frame, Other, Start
from wirelint.model import Json, Kind, Message, Opaque, Part, Request, Rpc, ToolCall, ToolResult

__all__ = ["NAME", "channel", "claims", "claims_other", "claims_reply", "read_request", "reply_reader", "reply_writer"]

NAME = "mcp"
channel = "mcp"
SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
_POSTS = ("/messages", "/message")
"""Where servers of the older transport take messages, as their libraries have it."""
_STREAMS = ("/sse", "/mcp")
_ENDS: Mapping[bool | None, str] = {True: "error", False: "ok", None: ""}


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if SESSION in headers:
        return True
    if not is_message(body):
        return False
    return VERSION in headers or is_ours(body) or ("method" not in body and path.endswith(_POSTS))


def claims_other(method: str, path: str, headers: Mapping[str, str], body: Json) -> bool:
    """Whether a request that is no posted object is of this API: a batch, a stream that is opened, a session's end."""
    match method:
        case "POST":
            messages = [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []
            return any(is_message(item) and claims(path, headers, item) for item in messages)
        case "GET":
            if "text/event-stream" not in headers.get("accept", ""):
                return False
            return SESSION in headers or VERSION in headers or path.endswith(_STREAMS)
        case "DELETE":
            return SESSION in headers
        case _:
            return False


def is_stream(content_type: str) -> bool:
    """Return True if a reply of this type is a stream of events."""
    return content_type.startswith("text/event-stream")


def claims_reply(document: Mapping[str, Json]) -> bool:
    return is_ours(document)


def read_request(body: Mapping[str, Json]) -> Request:
    return Request(
        api=NAME,
        model="",
        messages=tuple(
            Message("assistant", tuple(parts_of(message, place)), place or "/") for message, place in messages_of(body)
        ),
        tools=(),
        body=body,
        tools_known=False,
    )


def messages_of(body: Mapping[str, Json]) -> Iterator[tuple[Mapping[str, Json], str]]:
    """The messages of a request with their pointers."""
    if "jsonrpc" in body or not all(name.isdecimal() for name in body):
        yield body, ""
        return
    for name, message in body.items():
        if isinstance(message, dict):
            yield message, f"/{name}"


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> _Writer:
    return _Writer()


class _Reader:
    """Frames to events: one block for each part of each message.

    The first answer has the place that it has in a body of its own; every other message of a stream or a batch, and what
    comes before that answer, stands under its number.
    """

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._messages = 0
        self._blocks = 0
        self._answered = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.event == "endpoint" and frame.data is not None:
            return [self._start("rpc", "/endpoint", frame, name="endpoint", form="notification", value=frame.data)]
        if frame.data is not None and (batch := _batch(frame.data)) is not None:
            events = [event for n, message in enumerate(batch) for event in self._message(message, frame, f"/{n}")]
            return events or [Other(frame)]
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        if not self._streamed and frame.data is not None and not frame.data.lstrip().startswith("{"):
            return [Other(frame)]  # `Accepted`, in the older transport
        reading = self.documents.read(frame)
        events = reading.violations
        for document, place in reading.documents:
            events += self._message(document, place, None)
        return events or [Other(frame)]

    def close(self) -> list[Event]:
        return self.documents.close()

    def _message(self, document: Json, frame: Frame, place: str | None) -> Iterator[Event]:
        number, self._messages = self._messages, self._messages + 1
        if not isinstance(document, dict):
            return
        answers = "method" not in document
        if place is None:
            place = "" if not self._streamed or (answers and not self._answered) else f"/{number}"
        self._answered = self._answered or answers
        for part in parts_of(document, place):
            yield from self._part(part, frame)
        if answers and self._streamed:
            yield Done(frame)  # whoever has the answer may leave

    def _part(self, part: Part, frame: Frame) -> Iterator[Event]:
        match part:
            case ToolResult(id_, words, pointer, _, error):
                start = self._start("tool_result", pointer, frame, id_=id_, form=_ENDS[error])
                yield start
                if words:
                    yield Delta(start.block, words, frame)
            case Rpc(form, id_, method, value, pointer):
                yield self._start("rpc", pointer, frame, id_=id_, name=method, form=form, value=value)
            case ToolCall(id_, name, arguments, pointer):  # no server has a reason to; it is a message all the same
                value = {"name": name, "arguments": arguments.value}
                yield self._start("rpc", pointer, frame, id_=id_, name="tools/call", form="request", value=value)
            case Opaque(kind, pointer):
                yield self._start("opaque", pointer, frame, name=kind)
            case _:
                pass

    def _start(
        self,
        kind: Kind,
        pointer: str,
        frame: Frame,
        *,
        id_: str | None = None,
        name: str | None = None,
        form: str = "",
        value: Json = None,
    ) -> Start:
        self._blocks += 1
        return Start(self._blocks - 1, kind, pointer, 0, frame, None, id_, name, value, form)


class _Writer:
    """Replies of this channel leave as they came."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        return frame.raw

    def close(self, out: Sequence[Event]) -> bytes:
        return b""


def _batch(data: str) -> list[Json] | None:
    """The messages of a batch; None for anything else."""
    if not data.lstrip().startswith("["):
        return None
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, list) else None


API = ApiSpec(
    name=NAME,
    claims=claims,
    claims_reply=claims_reply,
    read_request=lambda body, path="": read_request(body),
    reply_reader=reply_reader,
    stream_writer=_Writer,
    whole_writer=_Writer,
    traits=Traits("", "", "", "", None, "", None),
    channel="mcp",
    claims_other=claims_other,
)
