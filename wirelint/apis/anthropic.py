"""Anthropic Messages, from the vendor and from the many gateways that imitate it.

Requests: `POST …/v1/messages`. Replies: a `message` body, or named events: `message_start`, then per content block
`content_block_start`, `…_delta`, `…_stop`, then `message_delta` with the stop reason, `message_stop`; `ping` anywhere, and
`error` at any time. Source: the vendor's API reference (Messages, Streaming messages).

Bedrock and Vertex take the same bodies at paths of their own, in which the model stands (`/model/{id}/invoke`,
`…/models/{id}:rawPredict`); Bedrock carries the events of a stream in messages of its own framing.

A tool call's arguments come as `partial_json` deltas after a start whose `input` is `{}`; gateways that put the whole
input into the start and repeat it in the deltas are field report material, so both are kept apart.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from wirelint.apis.anthropic_request import hosted_result, read_request
from wirelint.apis.anthropic_writer import StreamWriter, WholeWriter
from wirelint.apis.carried import Carried
from wirelint.apis.reading import (
    Documents,
    error_of,
    is_conversation,
    is_misshapen,
    mapping,
    mappings,
    misshapen,
    number,
    refusal_of,
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
from wirelint.model import Json, Kind, Request

__all__ = ["NAME", "claims", "claims_reply", "read_request", "read_request_at", "reply_reader", "reply_writer"]

NAME = "anthropic.messages"

_EVENTS = frozenset({
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
})  # fmt: skip
_KINDS: dict[str, Kind] = {
    "text": "text",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "tool_use": "tool_call",
    "server_tool_use": "hosted_call",
    "mcp_tool_use": "hosted_call",
}
_DELTAS: dict[str, tuple[Kind, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("reasoning", "thinking"),
    "input_json_delta": ("tool_call", "partial_json"),
}
_STOP_POINTER = "/stop_reason"
_HOSTED = re.compile(
    r"(?:/model/(?P<bedrock>[^/]+(?:/[^/]+)*)/invoke(?P<stream>-with-response-stream)?"
    r"|/models/(?P<vertex>[^/:]+):(?P<raw>rawPredict|streamRawPredict))\Z"
)
"""Where Bedrock and Vertex serve this API, among others."""


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    told = path.endswith("/messages") or "anthropic-version" in headers or "anthropic_version" in body
    if not told or not is_conversation(body):  # a history is long, and this is asked about every request
        return False
    if path.endswith("/messages"):
        return "max_tokens" in body or "anthropic-version" in headers or "system" in body
    if isinstance(body.get("anthropic_version"), str) and "max_tokens" in body:
        return not path.endswith(("/count_tokens", "/count-tokens"))  # Bedrock and Vertex, whatever stands before them
    # Counting tokens and batches have the same shape and no reply of a model.
    return "anthropic-version" in headers and "max_tokens" in body and not path.endswith(("/count_tokens", "/batches"))


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("type")
    return (kind == "message" and isinstance(document.get("content"), list)) or kind == "message_start"


def read_request_at(body: Mapping[str, Json], path: str) -> Request:
    """A request with what its path says: the model, and whether the reply is to be streamed."""
    request = read_request(body)
    found = _HOSTED.search(path) if request.model == "" else None
    if found is None:
        return request
    streamed = request.stream or found["stream"] is not None or found["raw"] == "streamRawPredict"
    return dataclasses.replace(request, model=unquote(found["bedrock"] or found["vertex"]), stream=streamed)


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> Carried | WholeWriter:
    return Carried(StreamWriter()) if streamed else WholeWriter()


class _Reader:
    """Frames to events. Blocks are told apart by the wire's index; one that was never started is opened by its delta."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[int, int] = {}
        self._kinds: dict[int, Kind] = {}
        self._open: set[int] = set()
        self._count = 0
        self._started = self._stopped = self._done = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        if frame.event == "ping" and not frame.faults and not (frame.data or "").lstrip().startswith("{"):
            return [Other(frame)]  # SDKs go by the name and never look inside
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._streamed:
                events += self._event(document, place, alone=len(reading.documents) == 1)
            else:
                events += self._message(document, place)
        return told(frame, events)

    def close(self) -> list[Event]:
        events = self.documents.close()
        if self._streamed and self._stopped and not self._done:
            events.append(StreamViolation("missing-end", "no message_stop", None))
        return events

    def _event(self, document: Mapping[str, Json], frame: Frame, *, alone: bool) -> Iterator[Event]:
        kind = text(document.get("type")) or ""
        if alone and kind in _EVENTS and frame.event != kind:
            missing = frame.event is None
            detail = f"no event name, type {kind}" if missing else f"event {frame.event}, type {kind}"
            yield StreamViolation("event-missing" if missing else "event-mismatch", detail, frame)
        if self._done and kind in _EVENTS - {"ping", "error"}:
            yield StreamViolation("after-end", kind, frame)
            return  # clients have left
        match kind:
            case "message_start":
                yield from self._message_start(mapping(document.get("message")), frame)
            case "content_block_start":
                yield from self._block_start(document, frame)
            case "content_block_delta":
                yield from self._block_delta(document, frame)
            case "content_block_stop":
                yield from self._block_stop(document, frame)
            case "message_delta":
                yield from self._message_delta(document, frame)
            case "message_stop":
                yield from self._message_stop(frame)
            case _ if kind == "error" or error_of(document) is not None:
                yield Failure(error_of(document) or dict(document), frame)
            case _ if kind == "message" and "content" in document:
                yield from self._message(document, frame)
            case _:
                yield Other(frame)

    def _message_start(self, message: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if self._started:
            yield StreamViolation("restarted-part", "message_start", frame)
        self._started = True
        yield ReplyMeta(text(message.get("id")), text(message.get("model")), frame)
        if usage := mapping(message.get("usage")):
            yield Usage(usage, frame)
        for n, block in mappings(message.get("content")):
            yield from self._open_block(n, block, frame, n)

    def _block_start(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        index = number(document.get("index"))
        block = mapping(document.get("content_block"))
        if not self._started:
            self._started = True
            yield StreamViolation("undeclared-part", "content_block_start before message_start", frame)
        place = index if index is not None else self._count
        self._open.add(place)
        if place in self._blocks:
            yield StreamViolation("restarted-part", f"content block {place}", frame)
            if self._kinds[place] == _kind(block) == "tool_call":
                # Two calls under one index: a client overwrites or merges, and either way one is lost.
                yield CallUpdate(self._blocks[place], index, text(block.get("id")), text(block.get("name")), frame)
                return
        yield from self._open_block(place, block, frame, index)

    def _block_delta(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        delta = mapping(document.get("delta"))
        kind, field = _DELTAS.get(text(delta.get("type")) or "", (None, ""))
        index = number(document.get("index"))
        place = index if index is not None else max(self._count - 1, 0)
        if kind is None:
            yield Other(frame)
            return
        if place not in self._blocks:
            yield StreamViolation("undeclared-part", f"delta for content block {place}, never started", frame)
            yield from self._start(place, kind, frame, index, None, None, None)
        elif self._streamed and place not in self._open:
            yield StreamViolation("undeclared-part", f"delta for content block {place}, already stopped", frame)
        # An empty piece, such as the vendor sends first of every call, belongs to its block as well: where the block is
        # taken out or numbered anew, it has to follow.
        yield Delta(self._blocks[place], text(delta.get(field)) or "", frame)

    def _block_stop(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        index = number(document.get("index"))
        if index is not None and index not in self._blocks:
            yield StreamViolation("undeclared-part", f"stop of content block {index}, never started", frame)
        place = index if index is not None else self._count - 1
        known = place in self._blocks and place in self._open
        self._open.discard(place)
        yield Close(self._blocks[place], frame) if known else Other(frame)

    def _message_delta(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if reason := stated_reason(mapping(document.get("delta")).get("stop_reason")):
            self._stopped = True
            yield Finish(0, reason, _STOP_POINTER, frame)
        if usage := mapping(document.get("usage")):
            yield Usage(usage, frame)

    def _message_stop(self, frame: Frame) -> Iterator[Event]:
        self._done = True
        if self._open:
            yield StreamViolation("unfinished-part", f"content block {min(self._open)} was never stopped", frame)
        yield Done(frame)

    def _message(self, message: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        error = error_of(message)
        if error is None and "content" not in message:
            error = dict(message) if message.get("type") == "error" else refusal_of(message)
        if error is not None:
            yield Failure(error, frame)
        yield ReplyMeta(text(message.get("id")), text(message.get("model")), frame)
        content = message.get("content")
        if content and not isinstance(content, list):
            yield Start(0, "opaque", "/content", 0, frame, name=misshapen(content))
        for n, block in mappings(content):
            yield from self._open_block(n, block, frame, n)
        if reason := stated_reason(message.get("stop_reason")):
            yield Finish(0, reason, _STOP_POINTER, frame)
        if usage := mapping(message.get("usage")):
            yield Usage(usage, frame)

    def _open_block(self, place: int, block: Mapping[str, Json], frame: Frame, index: int | None) -> Iterator[Event]:
        kind = _kind(block)
        if kind == "text" and is_misshapen(block.get("text")):
            yield from self._start(place, "opaque", frame, index, None, misshapen(block["text"]), block)
            return
        id_ = text(block.get("tool_use_id")) if kind == "hosted_result" else text(block.get("id"))
        name = text(block.get("name")) or (text(block.get("type")) if kind in ("opaque", "hosted_result") else None)
        yield from self._start(place, kind, frame, index, id_, name, block)
        words = text(block.get("text")) or text(block.get("thinking"))
        if words and kind in ("text", "reasoning"):
            yield Delta(self._blocks[place], words, frame, place)

    def _start(
        self,
        place: int,
        kind: Kind,
        frame: Frame,
        index: int | None,
        id_: str | None,
        name: str | None,
        block: Mapping[str, Json] | None,
    ) -> Iterator[Event]:
        self._blocks[place] = self._count
        self._kinds[place] = kind
        self._count += 1
        form = "opaque" if block and block.get("type") == "redacted_thinking" else "function"
        given = block.get("input") if block and kind == "tool_call" else None
        pointer = f"/content/{place}"
        yield Start(self._blocks[place], kind, pointer, 0, frame, index, id_, name, given, form, place)


def _kind(block: Mapping[str, Json]) -> Kind:
    kind = text(block.get("type")) or ""
    return "hosted_result" if hosted_result(kind) else _KINDS.get(kind, "opaque")
