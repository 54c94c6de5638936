r"""Amazon Bedrock's Converse, one API for the models of all vendors.

Requests: `POST /model/{modelId}/converse` and `…/converse-stream`; the path contains the model. Replies: a body with
`output.message`, or an AWS event stream: `messageStart`, per content block `contentBlockDelta` and `contentBlockStop`, with
`contentBlockStart` before them where it has content (the name and id of a tool), then `messageStop` with the
reason, and `metadata` with the usage. Errors are exceptions in the stream. A block has one member that names its kind
(`text`, `toolUse`, …) and no type. Source: the vendor's API reference (Converse, ConverseStream).

    :event-type contentBlockDelta    {"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abc"}

Amazon's own Nova models have the same bodies at `/invoke` and `/invoke-with-response-stream`, where each event is an object
with one member that names it: `{"contentBlockDelta":{"contentBlockIndex":0,…}}`. Clients record the events of Converse in
that form too. Events are written in the framing of the stream: as separate messages, inside `chunk` messages, or as
server-sent events if a gateway has converted the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from wirelint.apis._blocks import (
    CONTENT,
    BlockReader,
    BlockStreamWriter,
    BlockWholeWriter,
    Key,
    WireEvent,
    nested,
    only,
    read_messages,
)
from wirelint.apis.reading import ApiSpec, compact, error_of, misshapen_text, result_text, tool_choice
from wirelint.apis.writing import dump, frame_document, framed
from wirelint.events import Delta, Done, Event, Finish, Frame, Other, Start, part_of
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Arguments, Json, Kind, Part, Request, Role, Text, Tool, ToolResult
from wirelint.wire.aws_eventstream import CHUNK, chunk, message

_MODEL = re.compile(
    r"/model/(?P<model>[^/]+(?:/[^/]+)*?)(?:/(?P<verb>converse(?:-stream)?|invoke(?:-with-response-stream)?))?\Z"
)
_START, _DELTA, _STOP, _END = "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"
_EVENTS = frozenset({"messageStart", _START, _DELTA, _STOP, _END, "metadata"})
_MARKS: dict[str, str] = load("apis")["marks"]["bedrock.converse"]
"""Members that identify an event without a name."""
_OPTIONS = ("inferenceConfig", "toolConfig", "schemaVersion", "system", "additionalModelRequestFields")
_ANNOUNCED = frozenset({"tool_call", "hosted_call", "hosted_result", "opaque"})
"""Kinds of blocks that begin with a `contentBlockStart`. Text and reasoning begin with their first delta."""


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    found = _MODEL.search(path)
    if found is not None and (found["verb"] or "").startswith("converse"):
        return isinstance(body.get("messages"), list) or "promptVariables" in body
    # Amazon's models at their own endpoint, and requests whose path lost its end `/converse`: Converse's messages are
    # lists of blocks without a type.
    if "anthropic_version" in body or not any(name in body for name in _OPTIONS):
        return False
    blocks = [b for _, message in mappings(body.get("messages")) for _, b in mappings(message.get("content"))]
    return bool(blocks) and not any("type" in block for block in blocks)


def claims_reply(document: Mapping[str, Json]) -> bool:
    if isinstance(nested(document, "output", "message").get("content"), list):
        return True
    start = mapping(document.get("messageStart")) or document
    return start.get("role") == "assistant" and start.keys() <= {"role", "p"}


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    found = _MODEL.search(path)
    model, verb = (unquote(found["model"]), found["verb"] or "") if found is not None else ("", "")
    config = mapping(body.get("toolConfig"))
    tools = tuple(_tools(config.get("tools")))
    stored = "promptVariables" in body or ":prompt/" in model  # a stored prompt has its own messages and tools
    return Request(
        model=model or text(body.get("modelId")) or "",
        messages=read_messages(body, _part),
        tools=tools,
        body=body,
        tool_choice=tool_choice(config.get("toolChoice")),
        stream="stream" in verb,
        hosted=any(tool.hosted for tool in tools),
        tools_known=not stored,
        max_tokens=number(mapping(body.get("inferenceConfig")).get("maxTokens")),
        on_server="before" if stored else "nothing",
    )


_WITHIN = {
    "text": "/text",
    "reasoningContent": "/reasoningContent/reasoningText/text",
    "citationsContent": "/citationsContent/content",
}
"""Place of the text in a block of a request, by the member that names its kind."""


def _part(block: Mapping[str, Json], place: str, role: Role) -> Part | None:
    if "cachePoint" in block:  # a mark for the provider's cache that no model sees
        return None
    result = mapping(block.get("toolResult"))
    if result and role != "assistant":
        status = text(result.get("status"))
        failed = status == "error" if status is not None else None
        return ToolResult(text(result.get("toolUseId")), result_text(result.get("content")), place, None, failed)
    if guarded := text(nested(block, "guardContent", "text").get("text")):
        return Text(guarded, f"{place}/guardContent/text/text")
    start, words = _start_of(place, block, None, item=0), _whole_text(block)
    within = _WITHIN.get(_kind_of(block)[1], "") if words else ""
    return part_of(start._replace(pointer=place + within), words)


def _tools(tools: Json) -> Iterator[Tool]:
    for n, tool in mappings(tools):
        place = f"/toolConfig/tools/{n}"
        if spec := mapping(tool.get("toolSpec")):
            declared = mapping(mapping(spec.get("inputSchema")).get("json")) or None
            yield Tool(text(spec.get("name")) or "", place, text(spec.get("description")) or "", declared)
        elif system := mapping(tool.get("systemTool")):
            yield Tool(text(system.get("name")) or "systemTool", place, hosted=True, type="systemTool")


def _named(document: Mapping[str, Json], name: str | None) -> WireEvent:
    """Return an event whose name is around its body, beside it (`:event-type`), or missing."""
    inner = next((key for key in document if key in _EVENTS and isinstance(document[key], dict)), None)
    if inner is not None:
        return WireEvent(inner, mapping(document[inner]))
    if name is not None and name in _EVENTS:
        return WireEvent(name, document)
    return WireEvent(next((event for mark, event in _MARKS.items() if mark in document), ""), document)


def _kind_of(block: Mapping[str, Json]) -> tuple[Kind, str]:
    """Return the kind of a content block, and the name of its one member."""
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
    return "opaque", misshapen_text(block.get("text")) or next(iter(block), "")


def _whole_text(block: Mapping[str, Json]) -> str:
    """Return the text of a block of a whole message."""
    thought = nested(block, "reasoningContent", "reasoningText").get("text")
    cited = mappings(mapping(block.get("citationsContent")).get("content"))
    return text(block.get("text")) or text(thought) or "".join(text(part.get("text")) or "" for _, part in cited)


def _delta_text(delta: Mapping[str, Json]) -> str | None:
    call, thought = mapping(delta.get("toolUse")), mapping(delta.get("reasoningContent"))
    texts = (delta.get("text"), call.get("input"), thought.get("text"))
    return next((words for words in texts if isinstance(words, str)), None)


def _start_of(pointer: str, block: Mapping[str, Json], index: int | None = None, item: int = -1) -> Start:
    """Return the start of a block of a whole message, or of one that an event starts."""
    kind, name = _kind_of(block)
    tool = mapping(block.get("toolUse"))
    id_ = text((tool or mapping(block.get("toolResult"))).get("toolUseId"))  # an empty id stays empty
    called = text(tool.get("name")) if kind in ("tool_call", "hosted_call") else name
    given = tool.get("input") if item >= 0 else {} if "toolUseId" in tool or "name" in tool else None
    value = given if kind == "tool_call" else None
    sealed = kind == "reasoning" and not (_whole_text(block) or _delta_text(block))
    form = "opaque" if sealed else "function"
    return Start(0, kind, pointer, 0, None, index, id_, called, value, form, item)


def _pointer(key: Key) -> str:
    return f"/output/message/content/{key[1]}"


class Reader(BlockReader):
    """Reader of replies. Text and reasoning begin with their first delta."""

    finish_name = "stopReason"

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        if not self.streamed or "output" in document:
            yield from self._message(document)
            return
        name, body = _named(document, self.frame.event)
        fault = next((key for key in document if key.endswith("Exception") and mapping(document[key])), None)
        if fault is not None or error_of(document) is not None:
            yield from self.failure(dict(document) if fault is not None else error_of(document))
            return
        if self.is_done and name in _EVENTS - {"metadata"}:
            yield self.violation("after-end", name)
            return
        index = number(body.get("contentBlockIndex"))
        key = CONTENT, index if index is not None else max(self.count - 1, 0)
        match name:
            case "messageStart":
                if self.started:
                    yield self.violation("restarted-part", "messageStart")
                self.started = True
                yield Other(self.frame)
            case "contentBlockStart":
                key = key if index is not None else (key[0], self.count)
                yield from self.announced(key, _start_of(_pointer(key), mapping(body.get("start")), index))
            case "contentBlockDelta":
                yield from self._block_delta(key, index, mapping(body.get("delta")))
            case "contentBlockStop":
                yield self.stop(key)
            case "messageStop":
                self.is_done = True
                yield from self.unfinished()
                yield from self.ending(body, body.get("usage"))
                yield Done(self.frame)
            case "metadata" if body.get("usage"):
                yield from self.ending(body, body.get("usage"))
            case _:
                yield Other(self.frame)

    def _block_delta(self, key: Key, index: int | None, delta: Mapping[str, Json]) -> Iterator[Event]:
        words = _delta_text(delta)
        if key in self.blocks or (words is not None and "toolUse" in delta):
            yield from self.misplaced_delta(key)
        if key not in self.blocks:
            yield self.start(key, _start_of(_pointer(key), delta, index))
        # Signatures, citations and redacted thinking have no text.
        yield Delta(self.blocks[key], words, self.frame) if words is not None else Other(self.frame)

    def _message(self, body: Mapping[str, Json]) -> Iterator[Event]:
        error = error_of(body)
        if error is None and "output" not in body and isinstance(body.get("message"), str):
            error = dict(body)  # {"message": …}: the service refuses the request
        yield from self.failure(error)
        content = nested(body, "output", "message").get("content")
        yield from self.misshapen_content(content, "/output/message/content")
        for n, block in mappings(content):
            key = CONTENT, n
            yield from self.whole(key, _start_of(_pointer(key), block, n, n), _whole_text(block))
        yield from self.ending(body, body.get("usage"))


class StreamWriter(BlockStreamWriter):
    """Writer of AWS messages, `chunk` messages, or server-sent events, in the framing of the upstream's stream."""

    index_name = "contentBlockIndex"
    _finished = False

    def parse(self, frame: Frame) -> WireEvent:
        return _named(frame_document(frame), frame.event)

    def send(self, event: WireEvent) -> bytes:
        kind, body = event
        sample = self._sample
        if self.is_aws:
            is_chunk = sample is not None and sample.event == CHUNK
            return chunk(dump({kind: dict(body)})) if is_chunk else message(dump(body), kind)
        first = frame_document(sample) if sample is not None else {}
        if _named(first, None).kind in first:  # events whose name is around the body
            return framed({kind: dict(body)})
        return framed(body, kind)

    def start(self, start: Start, number: int, source: WireEvent) -> Iterator[WireEvent]:
        own = only(source, _START)
        if own or start.kind in _ANNOUNCED:
            announced: dict[str, Json] = {}
            if start.kind == "tool_call":
                tool = nested(own, "start", "toolUse")
                announced = {"toolUse": {**tool, "toolUseId": start.id or "", "name": start.name or ""}}
            yield self.about(_START, number, source, {"start": {**nested(own, "start"), **announced}})
        if start.kind == "tool_call" and start.input not in (None, {}):
            yield self.delta(start, number, compact(start.input), source)

    def delta(self, start: Start, number: int, words: str, source: WireEvent) -> WireEvent:
        piece: dict[str, Json] = {"text": words}
        if start.kind in ("tool_call", "hosted_call"):
            piece = {"toolUse": {"input": words}}
        elif start.kind == "reasoning":
            piece = {"reasoningContent": piece}
        return self.about(_DELTA, number, source, {"delta": piece})

    def stop(self, start: Start, number: int, source: WireEvent) -> WireEvent:
        return self.about(_STOP, number, source, {})

    def finish(self, finish: Finish | None, source: WireEvent) -> WireEvent:
        self._finished = True
        reason = finish.reason if finish is not None else "end_turn"
        return WireEvent(_END, {**only(source, _END), "stopReason": reason})

    def done(self, source: WireEvent) -> WireEvent | None:
        own = only(source, _END)
        return None if self._finished or "stopReason" in own else WireEvent(_END, own or {"stopReason": "end_turn"})


class WholeWriter(BlockWholeWriter):
    finish_name = "stopReason"

    place = ("output", "message")

    def block(self, start: Start, source: dict[str, Json], new_text: str) -> Json:
        match start.kind:
            case "tool_call":
                given: Json = Arguments(new_text).value if new_text else {} if start.input is None else start.input
                named: dict[str, Json] = {"toolUseId": start.id or "", "name": start.name or "", "input": given}
                return {**source, "toolUse": {**mapping(source.get("toolUse")), **named}}
            case "text" | "refusal" if cited := mapping(source.get("citationsContent")):
                return {**source, "citationsContent": {**cited, "content": [{"text": new_text}]}}
            case "text" | "refusal":
                return {**source, "text": new_text}
            case "reasoning" if start.form != "opaque":
                thought = mapping(source.get("reasoningContent"))
                words = {**mapping(thought.get("reasoningText")), "text": new_text}
                return {**source, "reasoningContent": {**thought, "reasoningText": words}}
            case _:
                return dict(source)


API = ApiSpec("bedrock.converse", claims, claims_reply, read_request, Reader, StreamWriter, WholeWriter, paths=_MODEL)
