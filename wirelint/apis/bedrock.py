"""Amazon Bedrock's Converse, one API for the models of all vendors.

Requests: `POST /model/{modelId}/converse` and `…/converse-stream`; the model stands in the path. Replies: a body with
`output.message`, or an AWS event stream: `messageStart`, per content block `contentBlockDelta` and `contentBlockStop`, with
`contentBlockStart` before it where there is something to say (the name and id of a tool), then `messageStop` with the
reason, and `metadata` with the usage. What goes wrong on the way is an exception in the stream. A block is told by its one
member (`text`, `toolUse`, …), not by a type. Source: the vendor's API reference (Converse, ConverseStream).

Amazon's own Nova models have the same bodies at `/invoke` and `/invoke-with-response-stream`, where each event is an object
of one member that names it; clients write down the events of Converse in that form as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from wirelint.apis.bedrock_events import EVENTS, named
from wirelint.apis.bedrock_request import has_blocks, read_request
from wirelint.apis.bedrock_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import (
    Documents,
    error_of,
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
    Start,
    StreamViolation,
    Usage,
)
from wirelint.model import Json, Kind, Request

__all__ = ["NAME", "claims", "claims_reply", "read_request", "read_request_at", "reply_reader", "reply_writer"]

NAME = "bedrock.converse"

_MODEL = re.compile(
    r"/model/(?P<model>[^/]+(?:/[^/]+)*?)(?:/(?P<verb>converse(?:-stream)?|invoke(?:-with-response-stream)?))?\Z"
)
_MESSAGE = "/output/message/content"
_STOP_POINTER = "/stopReason"


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    return _MODEL.search(path) is not None


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    found = _MODEL.search(path)
    if found is not None and (found["verb"] or "").startswith("converse"):
        return isinstance(body.get("messages"), list) or "promptVariables" in body
    # The models of Amazon at their own endpoint, and requests whose path has lost its end.
    return found is not None and "anthropic_version" not in body and has_blocks(body)


def claims_reply(document: Mapping[str, Json]) -> bool:
    if isinstance(mapping(mapping(document.get("output")).get("message")).get("content"), list):
        return True
    start = mapping(document.get("messageStart")) or document
    return start.get("role") == "assistant" and start.keys() <= {"role", "p"}


def read_request_at(body: Mapping[str, Json], path: str) -> Request:
    """A request with the model of its path."""
    found = _MODEL.search(path)
    model, verb = (unquote(found["model"]), found["verb"] or "") if found is not None else ("", "")
    return read_request(body, model, stream="stream" in verb)


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader:
    """Frames to events. Blocks are told apart by the wire's index; text and reasoning begin with their first delta."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[int, int] = {}
        self._open: set[int] = set()
        self._count = 0
        self._started = self._stopped = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._streamed and "output" not in document:
                events += self._event(document, place)
            else:
                events += self._message(document, place)
        return told(frame, events)

    def close(self) -> list[Event]:
        return self.documents.close()

    def _event(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        name, body = named(document, frame.event)
        fault = next((key for key in document if key.endswith("Exception") and mapping(document[key])), None)
        if fault is not None or error_of(document) is not None:
            yield Failure(dict(document) if fault is not None else error_of(document), frame)
            return
        if self._stopped and name in EVENTS - {"metadata"}:
            yield StreamViolation("after-end", name, frame)
            return  # the message has ended
        index = number(body.get("contentBlockIndex"))
        place = index if index is not None else max(self._count - 1, 0)
        match name:
            case "messageStart":
                if self._started:
                    yield StreamViolation("restarted-part", "messageStart", frame)
                self._started = True
                yield Other(frame)
            case "contentBlockStart":
                yield from self._block_start(place, index, mapping(body.get("start")), frame)
            case "contentBlockDelta":
                yield from self._block_delta(place, index, mapping(body.get("delta")), frame)
            case "contentBlockStop":
                known = place in self._blocks and place in self._open
                self._open.discard(place)
                yield Close(self._blocks[place], frame) if known else Other(frame)
            case "messageStop":
                yield from self._message_stop(body, frame)
            case "metadata" if usage := mapping(body.get("usage")):
                yield Usage(usage, frame)
            case _:
                yield Other(frame)

    def _block_start(self, place: int, index: int | None, start: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if index is None:
            place = self._count
        if place in self._blocks:
            yield StreamViolation("restarted-part", f"content block {place}", frame)
            if tool := mapping(start.get("toolUse")):
                # Two calls under one index: a client overwrites or merges, and either way one is lost.
                self._open.add(place)
                yield CallUpdate(self._blocks[place], index, text(tool.get("toolUseId")), text(tool.get("name")), frame)
                return
        yield from self._begin(place, index, start, frame)

    def _block_delta(self, place: int, index: int | None, delta: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        said = _said(delta)
        if place not in self._blocks:
            if said is not None and said[0] == "tool_call":
                yield StreamViolation("undeclared-part", f"delta for content block {place}, never started", frame)
            yield from self._begin(place, index, delta, frame)
        elif place not in self._open:
            yield StreamViolation("undeclared-part", f"delta for content block {place}, already stopped", frame)
        if said is not None:
            yield Delta(self._blocks[place], said[1], frame)
        elif place in self._blocks:
            yield Other(frame)  # signatures, citations, redacted thinking

    def _message_stop(self, body: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        self._stopped = True
        if self._open:
            yield StreamViolation("unfinished-part", f"content block {min(self._open)} was never stopped", frame)
        if reason := stated_reason(body.get("stopReason")):
            yield Finish(0, reason, _STOP_POINTER, frame)
        yield Done(frame)

    def _message(self, body: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        if (error := error_of(body)) is not None:
            yield Failure(error, frame)
        elif "output" not in body and isinstance(body.get("message"), str):
            yield Failure(dict(body), frame)  # {"message": …}: what the service says of a request that it refuses
        message = mapping(mapping(body.get("output")).get("message"))
        for n, block in mappings(message.get("content")):
            yield from self._begin(n, n, block, frame, n)
            if words := whole_text(block):
                yield Delta(self._blocks[n], words, frame, n)
        if reason := stated_reason(body.get("stopReason")):
            yield Finish(0, reason, _STOP_POINTER, frame)
        if usage := mapping(body.get("usage")):
            yield Usage(usage, frame)

    def _begin(
        self, place: int, index: int | None, block: Mapping[str, Json], frame: Frame, item: int = -1
    ) -> Iterator[Event]:
        kind, name = kind_of(block)
        tool = mapping(block.get("toolUse"))
        id_ = text(tool.get("toolUseId")) or text(mapping(block.get("toolResult")).get("toolUseId"))
        given = tool.get("input") if item >= 0 else {} if "toolUseId" in tool or "name" in tool else None
        sealed = kind == "reasoning" and not (whole_text(block) or (_said(block) or ("", ""))[1])
        self._blocks[place] = self._count
        self._open.add(place)
        self._count += 1
        form = "opaque" if sealed else "function"
        called = text(tool.get("name")) if kind in ("tool_call", "hosted_call") else name
        given = given if kind == "tool_call" else None  # a call that brings no input has none: an empty object
        yield Start(self._blocks[place], kind, f"{_MESSAGE}/{place}", 0, frame, index, id_, called, given, form, item)


def kind_of(block: Mapping[str, Json]) -> tuple[Kind, str]:
    """What a content block is, by its one member, and the name of that."""
    if isinstance(block.get("text"), str):
        return "text", "text"
    if "toolUse" in block:
        hosted = text(mapping(block["toolUse"]).get("type")) == "server_tool_use"
        return ("hosted_call" if hosted else "tool_call"), "toolUse"
    if "reasoningContent" in block:
        return "reasoning", "reasoningContent"
    if "toolResult" in block:
        return "hosted_result", text(mapping(block["toolResult"]).get("type")) or "toolResult"
    if "citationsContent" in block or "citation" in block:
        return "text", "citationsContent"
    if is_misshapen(block.get("text")):
        return "opaque", misshapen(block["text"])
    return "opaque", next(iter(block), "")


def whole_text(block: Mapping[str, Json]) -> str:
    """The text of a block of a whole message."""
    thought = mapping(mapping(block.get("reasoningContent")).get("reasoningText")).get("text")
    cited = mappings(mapping(block.get("citationsContent")).get("content"))
    return text(block.get("text")) or text(thought) or "".join(text(part.get("text")) or "" for _, part in cited)


def _said(delta: Mapping[str, Json]) -> tuple[Kind, str] | None:
    """The kind of text that a delta brings, and the text; None when it brings none."""
    if isinstance(words := delta.get("text"), str):
        return "text", words
    if isinstance(piece := mapping(delta.get("toolUse")).get("input"), str):
        return "tool_call", piece
    if isinstance(thought := mapping(delta.get("reasoningContent")).get("text"), str):
        return "reasoning", thought
    return None
