r"""Anthropic Messages, from the vendor and from the many gateways that imitate it.

Requests: `POST …/v1/messages`. Replies: a `message` body, or named events: `message_start`, then per content block
`content_block_start`, `…_delta`, `…_stop`, then `message_delta` with the stop reason, `message_stop`; `ping` anywhere, and
`error` at any time. Source: the vendor's API reference (Messages, Streaming messages).

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

Bedrock and Vertex take the same bodies at paths that contain the model (`/model/{id}/invoke`, `…/models/{id}:rawPredict`).
Bedrock wraps the events of a stream in AWS event stream messages (`wire.aws_eventstream`).

The arguments of a tool call come as `partial_json` deltas after a start whose `input` is `{}`. Some gateways put the whole
input into the start and repeat it in the deltas, so the two are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
from wirelint.apis.reading import (
    ApiSpec,
    error_of,
    is_conversation,
    misshapen_text,
    refusal_of,
    result_text,
    stated_reason,
    tool_choice,
)
from wirelint.events import Done, Event, Finish, Frame, Other, ReplyMeta, Start, part_of
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Arguments, Json, Kind, Part, Reasoning, Request, Role, Tool, ToolResult
from wirelint.wire.aws_eventstream import carry

_EVENTS = frozenset(load("apis")["events"]["anthropic.messages"].split())
_KINDS: dict[str, Kind] = load("apis")["kinds"]["anthropic.messages"]
_DELTAS: dict[str, tuple[Kind, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("reasoning", "thinking"),
    "input_json_delta": ("tool_call", "partial_json"),
}
_DELTA_OF = {kind: (type_, name) for type_, (kind, name) in _DELTAS.items()}
_TEXTS = frozenset(name for _, name in _DELTAS.values())
_HOSTED = re.compile(
    r"(?:/model/(?P<bedrock>[^/]+(?:/[^/]+)*)/invoke(?P<stream>-with-response-stream)?"
    r"|/models/(?P<vertex>[^/:]+):(?P<raw>rawPredict|streamRawPredict))\Z"
)
"""Paths at which Bedrock and Vertex serve this API, among others."""
# Vendor-defined tools have dated types. The client runs these, and only the model knows their schemas.
_CLIENT_TYPES = re.compile(r"(bash|text_editor|computer|memory)_\d{8}$")
_UNSEEN_TOOLS = re.compile(r"tool_search_tool|mcp_toolset")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    marked = path.endswith("/messages") or "anthropic-version" in headers or "anthropic_version" in body
    if not marked or not is_conversation(body):  # checked last: a history is long
        return False
    if path.endswith("/messages"):
        return "max_tokens" in body or "anthropic-version" in headers or "system" in body
    if isinstance(body.get("anthropic_version"), str) and "max_tokens" in body:
        return not path.endswith(("/count_tokens", "/count-tokens"))  # Bedrock and Vertex, after any prefix
    # Counting tokens and batches have the same shape and no reply of a model.
    return "anthropic-version" in headers and "max_tokens" in body and not path.endswith(("/count_tokens", "/batches"))


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("type")
    return (kind == "message" and isinstance(document.get("content"), list)) or kind == "message_start"


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    tools = tuple([_tool(tool, f"/tools/{n}") for n, tool in mappings(body.get("tools"))])
    choice = mapping(body.get("tool_choice"))
    disabled = choice.get("disable_parallel_tool_use")
    thread = mapping(body.get("thread"))
    is_thread = thread.get("type") == "continue"
    messages = body.get("messages")
    first = mapping(messages[0]) if isinstance(messages, list) and messages else {}
    compacted = any(block.get("type") == "compaction" for _, block in mappings(first.get("content")))
    model, stream = text(body.get("model")) or "", body.get("stream") is True
    if not model and (found := _HOSTED.search(path)) is not None:
        model = unquote(found["bedrock"] or found["vertex"])
        stream = stream or found["stream"] is not None or found["raw"] == "streamRawPredict"
    return Request(
        model=model,
        messages=read_messages(body, _part),
        tools=tools,
        body=body,
        tool_choice=tool_choice(choice),
        parallel_tool_calls=not disabled if isinstance(disabled, bool) else None,
        stream=stream,
        hosted=bool(body.get("mcp_servers") or body.get("container")) or any(tool.hosted for tool in tools),
        # A message thread keeps the tools that it was created with, and refuses to get them again.
        tools_known=not is_thread and not any(_UNSEEN_TOOLS.match(tool.type) for tool in tools),
        max_tokens=number(body.get("max_tokens")),
        on_server="before" if is_thread or compacted else "nothing",
        previous=(text(thread.get("previous_message_id")) or None) if is_thread else None,
    )


def _part(block: Mapping[str, Json], place: str, role: Role) -> Part | None:
    if block.get("type") == "tool_result":
        error = block.get("is_error")
        flag = error if isinstance(error, bool) else None
        return ToolResult(text(block.get("tool_use_id")), result_text(block.get("content")), place, None, flag)
    start, words = _start_of(place, block, None)
    if start.kind == "reasoning" and start.form != "opaque":
        return Reasoning(words, f"{place}/thinking")
    return part_of(start if start.kind != "text" else start._replace(pointer=f"{place}/text"), words)


def _tool(tool: Mapping[str, Json], place: str) -> Tool:
    kind = text(tool.get("type")) or "custom"
    function = mapping(tool.get("function"))  # OpenAI's form, which some gateways pass on
    name = text(tool.get("name")) or text(function.get("name")) or kind
    declared = mapping(tool.get("input_schema")) or mapping(function.get("parameters")) or None
    hosted = kind not in ("custom", "function") and declared is None and _CLIENT_TYPES.match(kind) is None
    return Tool(name, place, text(tool.get("description")) or "", declared, hosted, kind)


def _start_of(pointer: str, block: Mapping[str, Json], index: int | None = None, item: int = -1) -> tuple[Start, str]:
    type_ = text(block.get("type")) or ""
    kind = "hosted_result" if type_.endswith("_tool_result") else _KINDS.get(type_, "opaque")
    name = text(block.get("name")) or (type_ or None if kind in ("opaque", "hosted_result") else None)
    if kind == "text" and (wrong := misshapen_text(block.get("text"))):
        kind, name = "opaque", wrong
    id_ = text(block.get("tool_use_id" if kind == "hosted_result" else "id"))
    value = block.get("input") if kind == "tool_call" else None
    form = "opaque" if type_ == "redacted_thinking" else "function"
    words = (text(block.get("text")) or text(block.get("thinking"))) if kind in ("text", "reasoning") else None
    return Start(0, kind, pointer, 0, None, index, id_, name, value, form, item), words or ""


class Reader(BlockReader):
    """Reader of replies. A block that never started is started by its first delta."""

    finish_name = "stop_reason"
    terminator = "message_stop"

    def read(self, frame: Frame) -> list[Event]:
        if frame.event == "ping" and not frame.faults and not (frame.data or "").lstrip().startswith("{"):
            return [Other(frame)]  # SDKs ignore the data of an event with this name
        return super().read(frame)

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        if not self.streamed:
            yield from self._message(document)
            return
        kind = text(document.get("type")) or ""
        if self.is_alone and kind in _EVENTS and self.frame.event != kind:
            missing = self.frame.event is None
            detail = f"no event name, type {kind}" if missing else f"event {self.frame.event}, type {kind}"
            yield self.violation("event-missing" if missing else "event-mismatch", detail)
        if self.is_done and kind in _EVENTS - {"ping", "error"}:
            yield self.violation("after-end", kind)
            return  # clients have left
        index = number(document.get("index"))
        match kind:
            case "message_start":
                yield from self._message_start(mapping(document.get("message")))
            case "content_block_start":
                if not self.started:
                    self.started = True
                    yield self.violation("undeclared-part", "content_block_start before message_start")
                place, block = self.count if index is None else index, mapping(document.get("content_block"))
                yield from self.announced((CONTENT, place), *_start_of(f"/content/{place}", block, index, place))
            case "content_block_delta":
                yield from self._block_delta(index, mapping(document.get("delta")))
            case "content_block_stop":
                key = self._key(index)
                if index is not None and key not in self.blocks:
                    yield self.violation("undeclared-part", f"stop of content block {index}, never started")
                yield self.stop(key)
            case "message_delta":
                delta = mapping(document.get("delta"))
                self.is_finished = self.is_finished or stated_reason(delta.get("stop_reason")) is not None
                yield from self.ending(delta, document.get("usage"))
            case "message_stop":
                self.is_done = True
                yield from self.unfinished()
                yield Done(self.frame)
            case _ if kind == "error" or error_of(document) is not None:
                yield from self.failure(error_of(document) or dict(document))
            case _ if kind == "message" and "content" in document:
                yield from self._message(document)
            case _:
                yield Other(self.frame)

    def _message_start(self, message: Mapping[str, Json]) -> Iterator[Event]:
        if self.started:
            yield self.violation("restarted-part", "message_start")
        self.started = True
        yield ReplyMeta(text(message.get("id")), text(message.get("model")), self.frame)
        yield from self.usage(message.get("usage"))
        for n, block in mappings(message.get("content")):
            yield from self.whole((CONTENT, n), *_start_of(f"/content/{n}", block, n, n))

    def _block_delta(self, index: int | None, delta: Mapping[str, Json]) -> Iterator[Event]:
        kind, name = _DELTAS.get(text(delta.get("type")) or "", (None, ""))
        if kind is None:
            yield Other(self.frame)
            return
        key = self._key(index)
        if kind == "text" and (wrong := misshapen_text(delta.get(name))):
            yield from self.misshapen_delta(key, f"/content/{key[1]}", wrong)
            return
        start = Start(0, kind, f"/content/{key[1]}", 0, None, index, item=key[1])
        # An empty delta, which the vendor sends first for every call, belongs to its block as well: where a fix removes
        # the block or changes its number, the delta must follow.
        yield from self.delta(key, start, text(delta.get(name)) or "", is_open=False)

    def _key(self, index: int | None) -> Key:
        """Return the key of an event's block; without an index that of the last open one, or of the last one."""
        return next(reversed(self.open), (CONTENT, max(self.count - 1, 0))) if index is None else (CONTENT, index)

    def _message(self, message: Mapping[str, Json]) -> Iterator[Event]:
        error = error_of(message)
        if error is None and "content" not in message:
            error = dict(message) if message.get("type") == "error" else refusal_of(message)
        yield from self.failure(error)
        yield ReplyMeta(text(message.get("id")), text(message.get("model")), self.frame)
        content = message.get("content")
        yield from self.misshapen_content(content, "/content")
        for n, block in mappings(content):
            yield from self.whole((CONTENT, n), *_start_of(f"/content/{n}", block, n, n))
        yield from self.ending(message, message.get("usage"))


def _block(start: Start, source: Mapping[str, Json], new_text: str = "") -> dict[str, Json]:
    """Return a content block with this text. `source`: the block that the start was read from."""
    match start.kind:
        case "tool_call":
            given: Json = Arguments(new_text).value if new_text else {} if start.input is None else start.input
            made: dict[str, Json] = {"type": "tool_use", "id": start.id or "", "name": start.name or ""}
            return {**made, **source, **made, "input": given}
        case "text" | "refusal":
            return {"type": "text", "text": "", **source} | {"text": new_text}
        case "reasoning" if start.form != "opaque":
            return {"type": "thinking", "thinking": "", "signature": "", **source} | {"thinking": new_text}
        case _:
            return dict(source)


class StreamWriter(BlockStreamWriter):
    """Writer of named events, in AWS messages if the upstream's stream consists of them."""

    def _events(self, frame: Frame, source: WireEvent, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        if source.kind == "message":  # some gateways put the whole reply into one event
            yield self.send(WireEvent("message", WholeWriter().patched(dict(source.body), own, out)))
        else:
            yield from super()._events(frame, source, own, out)

    def send(self, event: WireEvent) -> bytes:
        made = super().send(event)
        return carry(made) if self.is_aws else made

    def start(self, start: Start, number: int, source: WireEvent) -> Iterator[WireEvent]:
        kind = "content_block_start"
        block = _block(start, nested(only(source, kind), "content_block"))
        yield self.about(kind, number, source, {"content_block": block})

    def delta(self, start: Start, number: int, words: str, source: WireEvent) -> WireEvent:
        type_, name = _DELTA_OF.get(start.kind, ("text_delta", "text"))
        own = nested(only(source, "content_block_delta"), "delta")
        other = {key: value for key, value in own.items() if key not in _TEXTS}
        return self.about("content_block_delta", number, source, {"delta": {**other, "type": type_, name: words}})

    def stop(self, start: Start, number: int, source: WireEvent) -> WireEvent:
        return self.about("content_block_stop", number, source, {})

    def finish(self, finish: Finish | None, source: WireEvent) -> WireEvent:
        own = only(source, "message_delta") or {"usage": {"output_tokens": 0}}
        reason = {"stop_reason": finish.reason} if finish is not None else {}
        delta = {"stop_sequence": None, **nested(own, "delta"), **reason}
        return WireEvent("message_delta", {**own, "delta": delta})

    def done(self, source: WireEvent) -> WireEvent:
        return WireEvent("message_stop", only(source, "message_stop"))

    def with_reply_id(self, event: WireEvent, id_: str) -> WireEvent:
        if event.kind != "message_start":
            return event
        return event._replace(body={**event.body, "message": {**nested(event.body, "message"), "id": id_}})


class WholeWriter(BlockWholeWriter):
    finish_name = "stop_reason"
    block = staticmethod(_block)


API = ApiSpec("anthropic.messages", claims, claims_reply, read_request, Reader, StreamWriter, WholeWriter)
