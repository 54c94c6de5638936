"""Cohere Chat, version 2: `POST …/v2/chat`.

Replies: a document with a `message`, or named events: `message-start`, per content block `content-start`, `…-delta`,
`…-end`, the model's plan in `tool-plan-delta`, per call `tool-call-start`, `…-delta`, `…-end`, citations as they come, and
`message-end` with the finish reason and usage. `[DONE]` may follow and says nothing. Source: the vendor's API reference
(Chat API v2, Streaming), and recordings.

Content blocks and calls are numbered apart, each from 0. What a model thinks stands in content blocks of type `thinking`
and, before calls, in `tool_plan`. Citations point at results that the client gave, and so are no hosted tool's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wirelint.apis.cohere_request import NAME, read_request
from wirelint.apis.cohere_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import (
    Documents,
    error_of,
    is_conversation,
    is_misshapen,
    mapping,
    mappings,
    misshapen,
    number,
    stated_reason,
    text,
    told,
)
from wirelint.events import (
    CallUpdate,
    Close,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
    Usage,
)
from wirelint.model import Json, Kind

__all__ = ["NAME", "claims", "claims_reply", "read_request", "reply_reader", "reply_writer"]

_EVENTS = frozenset({
    "message-start",
    "content-start",
    "content-delta",
    "content-end",
    "tool-plan-delta",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-end",
    "citation-start",
    "citation-end",
    "message-end",
    "debug",
})  # fmt: skip
_FIELDS: dict[str, Kind] = {"text": "text", "thinking": "reasoning"}
_STOP_POINTER = "/finish_reason"
_PLAN = ("plan", 0)


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    return path.endswith("/v2/chat")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    return serves(path) and is_conversation(body)


def claims_reply(document: Mapping[str, Json]) -> bool:
    message = document.get("message")
    if isinstance(message, dict) and "finish_reason" in document:
        return isinstance(message.get("content"), list | None) and "choices" not in document
    return document.get("type") == "message-start" and "delta" in document


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader:
    """Frames to events. Blocks are told apart by kind and the wire's index."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[tuple[str, int], int] = {}
        self._open: dict[tuple[str, int], None] = {}
        self._count = 0
        self._done = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._streamed:
                events += self._event(document, place, alone=len(reading.documents) == 1)
            else:
                events += self._message(document, place)
        return told(frame, events)

    def close(self) -> list[Event]:
        return self.documents.close()

    def _event(self, document: Mapping[str, Json], frame: Frame, *, alone: bool) -> Iterator[Event]:
        kind = text(document.get("type")) or ""
        if alone and kind in _EVENTS and frame.event is not None and frame.event != kind:
            yield StreamViolation("event-mismatch", f"event {frame.event}, type {kind}", frame)
        if self._done and kind in _EVENTS - {"debug"}:
            yield StreamViolation("after-end", kind, frame)
            return  # clients have left
        delta = mapping(document.get("delta"))
        message = mapping(delta.get("message"))
        index = number(document.get("index"))
        match kind:
            case "message-start":
                yield ReplyMeta(text(document.get("id")), None, frame)
            case "content-start":
                yield from self._content_start(index, mapping(message.get("content")), frame)
            case "content-delta":
                yield from self._content_delta(index, mapping(message.get("content")), frame)
            case "tool-plan-delta":
                yield from self._plan(text(message.get("tool_plan")) or "", frame)
            case "tool-call-start":
                yield from self._call_start(index, _call_of(message.get("tool_calls")), frame)
            case "tool-call-delta":
                yield from self._call_delta(index, _call_of(message.get("tool_calls")), frame)
            case "content-end" | "tool-call-end":
                yield from self._end("content" if kind == "content-end" else "call", index, frame)
            case "citation-start":
                yield from self._citations(frame)
            case "message-end":
                yield from self._message_end(delta, frame)
            case _ if (error := error_of(document)) is not None:
                yield Failure(error, frame)
            case "" if isinstance(document.get("message"), str):
                yield Failure(dict(document), frame)
            case _:
                yield Other(frame)

    def _place(self, group: str, index: int | None) -> tuple[str, int]:
        """The block that an index means. A missing one means the last that was opened."""
        if index is not None:
            return group, index
        return next((key for key in reversed(self._open) if key[0] == group), (group, 0))

    def _content_start(self, index: int | None, content: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        key = ("content", index if index is not None else sum(group == "content" for group, _ in self._blocks))
        if key in self._blocks:
            yield StreamViolation("restarted-part", f"content block {key[1]}", frame)
        yield from self._open_content(key, content, frame, index, -1)

    def _open_content(
        self, key: tuple[str, int], content: Mapping[str, Json], frame: Frame, index: int | None, item: int
    ) -> Iterator[Event]:
        type_ = text(content.get("type")) or next((name for name in _FIELDS if name in content), "text")
        kind = _FIELDS.get(type_, "opaque")
        if kind == "text" and is_misshapen(content.get(type_)):
            pointer = f"/message/content/{key[1]}/{type_}"
            yield self._start(key, "opaque", pointer, frame, index, name=misshapen(content[type_]), item=item)
            return
        pointer = f"/message/content/{key[1]}" + ("" if kind == "opaque" else f"/{type_}")
        yield self._start(key, kind, pointer, frame, index, name=type_ if kind == "opaque" else None, item=item)
        if kind != "opaque" and (words := text(content.get(type_))):
            yield Delta(self._blocks[key], words, frame, item)

    def _content_delta(self, index: int | None, content: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        name = next((name for name in _FIELDS if isinstance(content.get(name), str)), None)
        key = self._place("content", index)
        if name is None:
            yield Other(frame)
            return
        if key not in self._blocks:
            yield StreamViolation("undeclared-part", f"delta for content block {key[1]}, never started", frame)
            yield self._start(key, _FIELDS[name], f"/message/content/{key[1]}/{name}", frame, index)
        elif key not in self._open:
            yield StreamViolation("undeclared-part", f"delta for content block {key[1]}, already ended", frame)
        yield Delta(self._blocks[key], text(content.get(name)) or "", frame)

    def _plan(self, words: str, frame: Frame) -> Iterator[Event]:
        if _PLAN not in self._blocks:
            yield self._start(_PLAN, "reasoning", "/message/tool_plan", frame, None, name="tool_plan")
            del self._open[_PLAN]  # nothing ends it
        yield Delta(self._blocks[_PLAN], words, frame)

    def _call_start(self, index: int | None, call: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        known = sum(group == "call" for group, _ in self._blocks)
        key = ("call", index if index is not None else known)
        function = mapping(call.get("function"))
        id_, name = text(call.get("id")), text(function.get("name"))
        if key in self._blocks:
            # Two calls under one index: a client overwrites or merges, and either way one is lost.
            yield StreamViolation("restarted-part", f"tool call {key[1]}", frame)
            self._open[key] = None
            yield CallUpdate(self._blocks[key], index, id_, name, frame)
        else:
            yield self._start(key, "tool_call", f"/message/tool_calls/{known}", frame, index, id_=id_, name=name)
        if words := text(function.get("arguments")):
            yield Delta(self._blocks[key], words, frame)

    def _call_delta(self, index: int | None, call: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        key = self._place("call", index)
        if key not in self._blocks:
            yield StreamViolation("undeclared-part", f"delta for tool call {key[1]}, never started", frame)
            yield self._start(key, "tool_call", f"/message/tool_calls/{key[1]}", frame, index)
        elif key not in self._open:
            yield StreamViolation("undeclared-part", f"delta for tool call {key[1]}, already ended", frame)
        yield Delta(self._blocks[key], text(mapping(call.get("function")).get("arguments")) or "", frame)

    def _end(self, group: str, index: int | None, frame: Frame) -> Iterator[Event]:
        key = self._place(group, index)
        if key in self._open:
            del self._open[key]
            yield Close(self._blocks[key], frame)
            return
        if key not in self._blocks:
            yield StreamViolation("undeclared-part", f"end of {group} {key[1]}, never started", frame)
        yield Other(frame)

    def _citations(self, frame: Frame) -> Iterator[Event]:
        key = ("citations", 0)
        if key not in self._blocks:
            yield self._start(key, "opaque", "/message/citations", frame, None, name="citations")
            del self._open[key]
        else:
            yield Other(frame)

    def _message_end(self, delta: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if (error := error_of(delta)) is not None:
            yield Failure(error, frame)
        if reason := stated_reason(delta.get("finish_reason")):
            yield Finish(0, reason, _STOP_POINTER, frame)
        if usage := mapping(delta.get("usage")):
            yield Usage(usage, frame)
        self._done = True
        if self._open:
            group, index = next(iter(self._open))
            yield StreamViolation("unfinished-part", f"{group} {index} was never ended", frame)
        yield Done(frame)

    def _message(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if (error := error_of(document)) is not None:
            yield Failure(error, frame)
        elif isinstance(document.get("message"), str):  # how the API reports errors
            yield Failure(dict(document), frame)
        yield ReplyMeta(text(document.get("id")), text(document.get("model")), frame)
        message = mapping(document.get("message"))
        if plan := text(message.get("tool_plan")):
            yield from self._plan(plan, frame)
        content = message.get("content")
        if isinstance(content, str) and content:
            yield self._start(("content", 0), "text", "/message/content", frame, None)
            yield Delta(self._blocks["content", 0], content, frame)
        for n, block in mappings(content):
            yield from self._open_content(("content", n), block, frame, n, n)
        for n, call in mappings(message.get("tool_calls")):
            yield from self._whole_call(n, call, frame)
        if message.get("citations"):
            yield from self._citations(frame)
        if reason := stated_reason(document.get("finish_reason")):
            yield Finish(0, reason, _STOP_POINTER, frame)
        if usage := mapping(document.get("usage")):
            yield Usage(usage, frame)

    def _whole_call(self, n: int, call: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        function, key = mapping(call.get("function")), ("call", n)
        given = function.get("arguments")
        words, pointer = text(given), f"/message/tool_calls/{n}"
        id_, name = text(call.get("id")), text(function.get("name"))
        value = None if words is not None else given
        yield self._start(key, "tool_call", pointer, frame, n, id_=id_, name=name, value=value, item=n)
        if words:
            yield Delta(self._blocks[key], words, frame, n)

    def _start(
        self,
        key: tuple[str, int],
        kind: Kind,
        pointer: str,
        frame: Frame,
        index: int | None,
        *,
        id_: str | None = None,
        name: str | None = None,
        value: Json = None,
        item: int = -1,
    ) -> Start:
        self._blocks[key] = self._count
        self._open[key] = None
        self._count += 1
        return Start(self._blocks[key], kind, pointer, 0, frame, index, id_, name, value, item=item)


def _call_of(calls: Json) -> dict[str, Json]:
    """The call of an event: an object, and in a list where a gateway makes it OpenAI's."""
    return mapping(calls[0]) if isinstance(calls, list) and calls else mapping(calls)
