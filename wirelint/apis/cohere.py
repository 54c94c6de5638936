r"""Cohere Chat, version 2: `POST …/v2/chat`.

Replies: a document with a `message`, or named events: `message-start`, per content block `content-start`, `…-delta`,
`…-end`, the model's plan in `tool-plan-delta`, per call `tool-call-start`, `…-delta`, `…-end`, citations at any time, and
`message-end` with the finish reason and usage. `[DONE]` may follow; clients ignore it. Source: the vendor's API
reference (Chat API v2, Streaming), and recordings.

    event: content-delta
    data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}

Content blocks and calls are numbered apart, each from 0. Reasoning is in content blocks of type `thinking` and, before
calls, in `tool_plan`, which has no start, no end and no number. Citations refer to results that the client sent, so they
are no sign of a hosted tool. Rewriters name finish reasons as OpenAI does; the writer translates them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis._blocks import CONTENT, BlockReader, BlockStreamWriter, Key, WireEvent, is_inside, nested, only
from wirelint.apis._choices import read_chat
from wirelint.apis.reading import ApiSpec, error_of, is_conversation, misshapen_text
from wirelint.apis.traits import own_word
from wirelint.apis.writing import (
    MADE,
    BodyWriter,
    block_events,
    finish_of,
    framed,
    patched_entries,
    same,
    set_or_drop,
    text_of,
)
from wirelint.events import CallUpdate, Delta, Done, Event, Finish, Frame, Other, ReplyMeta, Start, Usage
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Json, Kind, Request

_EVENTS = frozenset(load("apis")["events"]["cohere.chat"].split())
_FIELDS: dict[str, Kind] = {"text": "text", "thinking": "reasoning"}
_CALL = "tool call"
_PLAN: Key = ("plan", 0)
_CITATIONS: Key = ("citations", 0)
_PATHS = re.compile(r"/v2/chat\Z")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    return is_conversation(body)


def claims_reply(document: Mapping[str, Json]) -> bool:
    message = document.get("message")
    if isinstance(message, dict) and "finish_reason" in document:
        return isinstance(message.get("content"), list | None) and "choices" not in document
    return document.get("type") == "message-start" and "delta" in document


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    return dataclasses.replace(read_chat(body), max_tokens=number(body.get("max_tokens")))


class Reader(BlockReader):
    """Reader of replies. It identifies blocks by group and index."""

    finish_name = "finish_reason"

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        if not self.streamed:
            yield from self._message(document)
            return
        kind = text(document.get("type")) or ""
        if self.is_alone and kind in _EVENTS and self.frame.event is not None and self.frame.event != kind:
            yield self.violation("event-mismatch", f"event {self.frame.event}, type {kind}")
        if self.is_done and kind in _EVENTS - {"debug"}:
            yield self.violation("after-end", kind)
            return  # clients have left
        delta, index = mapping(document.get("delta")), number(document.get("index"))
        message = mapping(delta.get("message"))
        match kind:
            case "message-start":
                yield ReplyMeta(text(document.get("id")), None, self.frame)
            case "content-start":
                key = CONTENT, index if index is not None else self._known(CONTENT)
                yield from self.announced(key, *_content_start(key[1], mapping(message.get("content")), index))
            case "content-delta":
                content = mapping(message.get("content"))
                if wrong := misshapen_text(content.get("text")):
                    key = self._key(CONTENT, index)
                    yield from self.misshapen_delta(key, f"/message/content/{key[1]}/text", wrong)
                elif (name := next((name for name in _FIELDS if isinstance(content.get(name), str)), None)) is None:
                    yield Other(self.frame)
                else:
                    key = self._key(CONTENT, index)
                    start = Start(0, _FIELDS[name], f"/message/content/{key[1]}/{name}", 0, None, index)
                    yield from self.delta(key, start, text(content[name]) or "")
            case "tool-plan-delta":
                yield from self._plan(text(message.get("tool_plan")) or "")
            case "tool-call-start":
                known, call = self._known(_CALL), _call_of(message.get("tool_calls"))
                key = _CALL, index if index is not None else known
                yield from self.announced(key, *_call_start(known, call, index))
            case "tool-call-delta":
                key = self._key(_CALL, index)
                words = text(mapping(_call_of(message.get("tool_calls")).get("function")).get("arguments"))
                start = Start(0, "tool_call", f"/message/tool_calls/{key[1]}", 0, None, index)
                yield from self.delta(key, start, words or "")
            case "content-end" | "tool-call-end":
                key = self._key(CONTENT if kind == "content-end" else _CALL, index)
                if key not in self.blocks:
                    yield self.violation("undeclared-part", f"end of {key[0]} {key[1]}, never started")
                yield self.stop(key)
            case "citation-start":
                yield self._citations()
            case "message-end":
                yield from self.failure(error_of(delta))
                yield from self.ending(delta, delta.get("usage"))
                self.is_done = True
                yield from self.unfinished()
                yield Done(self.frame)
            case _ if (error := error_of(document)) is not None:
                yield from self.failure(error)
            case "" if isinstance(document.get("message"), str):
                yield from self.failure(dict(document))
            case _:
                yield Other(self.frame)

    def _key(self, group: str, index: int | None) -> Key:
        """Return the key of an index; without an index that of the block opened last."""
        if index is not None:
            return group, index
        return next((key for key in reversed(self.open) if key[0] == group), (group, 0))

    def _known(self, group: str) -> int:
        return sum(key[0] == group for key in self.blocks)

    def _plan(self, words: str) -> Iterator[Event]:
        if _PLAN not in self.blocks:
            start = Start(0, "reasoning", "/message/tool_plan", 0, self.frame, name="tool_plan")
            yield self.start(_PLAN, start, is_open=False)
        yield Delta(self.blocks[_PLAN], words, self.frame)

    def _citations(self) -> Event:
        if _CITATIONS in self.blocks:
            return Other(self.frame)
        start = Start(0, "opaque", "/message/citations", 0, self.frame, name="citations")
        return self.start(_CITATIONS, start, is_open=False)

    def _message(self, document: Mapping[str, Json]) -> Iterator[Event]:
        error = error_of(document)
        if error is None and isinstance(document.get("message"), str):  # the API's form of an error
            error = dict(document)
        yield from self.failure(error)
        yield ReplyMeta(text(document.get("id")), text(document.get("model")), self.frame)
        message = mapping(document.get("message"))
        if plan := text(message.get("tool_plan")):
            yield from self._plan(plan)
        content = message.get("content")
        if isinstance(content, str) and content:
            yield from self.whole((CONTENT, 0), Start(0, "text", "/message/content", 0, self.frame), content)
        else:
            yield from self.misshapen_content(content, "/message/content")
        for n, block in mappings(content):
            yield from self.whole((CONTENT, n), *_content_start(n, block, n, n))
        for n, call in mappings(message.get("tool_calls")):
            yield from self.whole((_CALL, n), *_call_start(n, call, n, n))
        if message.get("citations"):
            yield self._citations()
        yield from self.ending(document, document.get("usage"))


def _content_start(place: int, content: Mapping[str, Json], index: int | None, item: int = -1) -> tuple[Start, str]:
    type_ = text(content.get("type")) or next((name for name in _FIELDS if name in content), "text")
    kind, pointer, name = _FIELDS.get(type_, "opaque"), f"/message/content/{place}", None
    if kind == "opaque":
        name = type_
    else:
        pointer = f"{pointer}/{type_}"
    if kind == "text" and (wrong := misshapen_text(content.get(type_))):
        kind, name = "opaque", wrong
    start = Start(0, kind, pointer, 0, None, index, name=name, item=item)
    return start, (text(content.get(type_)) or "") if kind != "opaque" else ""


def _call_start(place: int, call: Mapping[str, Json], index: int | None, item: int = -1) -> tuple[Start, str]:
    function = mapping(call.get("function"))
    given = function.get("arguments")
    id_, name, words = text(call.get("id")), text(function.get("name")), text(given)
    value = None if words is not None or item < 0 else given
    start = Start(0, "tool_call", f"/message/tool_calls/{place}", 0, None, index, id_, name, value, item=item)
    return start, words or ""


def _call_of(calls: Json) -> dict[str, Json]:
    """Return the call of an event: an object, or the entry of a list where a gateway makes it OpenAI's."""
    return mapping(calls[0]) if isinstance(calls, list) and calls else mapping(calls)


def _group_of(start: Start) -> str:
    """Return the kind with which a block is numbered: content blocks, calls, or none."""
    match start.kind:
        case "tool_call":
            return _CALL
        case "text" | "refusal":
            return CONTENT
        case "reasoning":
            return "" if start.name == "tool_plan" else CONTENT
        case _:
            return CONTENT if start.pointer.startswith("/message/content") and not is_inside(start) else ""


def _field(start: Start) -> str:
    return "thinking" if start.kind == "reasoning" else "text"


def _call(start: Start, source: Mapping[str, Json], new_text: str) -> dict[str, Json]:
    """Return a call with the argument text `new_text`. `source`: the call that the start was read from."""
    arguments: Json = new_text if new_text or start.input is None else start.input
    function: Json = {**mapping(source.get("function")), "name": start.name or "", "arguments": arguments}
    known: dict[str, Json] = {"id": start.id} if start.id is not None else {}
    return {**known, "type": "function", **source, **known, "function": function}


def _reason(finish: Finish, source: Mapping[str, Json]) -> str:
    if finish.reason == source.get("finish_reason"):
        return finish.reason
    return own_word("cohere.chat", finish.reason) or finish.reason


class StreamWriter(BlockStreamWriter):
    ending = (Finish, Usage, Done)
    sends_empty_deltas = False

    group_of = staticmethod(_group_of)

    def group_of_event(self, kind: str) -> str:
        return CONTENT if kind.startswith("content-") else _CALL

    def start(self, start: Start, number: int, source: WireEvent) -> Iterator[WireEvent]:
        if _group_of(start) == _CALL:
            called = _call(start, nested(only(source, "tool-call-start"), "delta", "message", "tool_calls"), "")
            yield self._put("tool-call-start", number, source, "tool_calls", called)
            return
        own = nested(only(source, "content-start"), "delta", "message", "content")
        block = own if start.kind == "opaque" else {"type": _field(start), **own, _field(start): ""}
        yield self._put("content-start", number, source, "content", block)

    def delta(self, start: Start, number: int, words: str, source: WireEvent) -> WireEvent:
        match _group_of(start):
            case "":
                return WireEvent("tool-plan-delta", {"delta": {"message": {"tool_plan": words}}})
            case "tool call":
                return self._put("tool-call-delta", number, source, "tool_calls", {"function": {"arguments": words}})
            case _:
                own = nested(only(source, "content-delta"), "delta", "message", "content")
                other = {name: value for name, value in own.items() if name not in _FIELDS}
                return self._put("content-delta", number, source, "content", {**other, _field(start): words})

    def stop(self, start: Start, number: int, source: WireEvent) -> WireEvent:
        return self.about("content-end" if _group_of(start) == CONTENT else "tool-call-end", number, source, {})

    def _put(self, kind: str, number: int, source: WireEvent, name: str, value: Json) -> WireEvent:
        """Return an event about a block whose message has `value` under `name`."""
        delta = nested(only(source, kind), "delta")
        message: Json = {**mapping(delta.get("message")), name: value}
        return self.about(kind, number, source, {"delta": {**delta, "message": message}})

    def finish(self, finish: Finish | None, source: WireEvent) -> WireEvent:
        own = only(source, "message-end")
        delta = nested(own, "delta")
        reason = {"finish_reason": _reason(finish, delta)} if finish is not None else {}
        return WireEvent("message-end", {**own, "delta": {**delta, **reason}})

    def with_reply_id(self, event: WireEvent, id_: str) -> WireEvent:
        return event._replace(body={**event.body, "id": id_}) if event.kind == "message-start" else event

    def _resend(self, frame: Frame, source: WireEvent) -> bytes:
        return framed(None, frame.event, data=frame.data)  # clients of this API read the type alone


class WholeWriter(BodyWriter):
    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        message = dict(mapping(document.get("message")))
        changed: dict[str, Json] = {**document, "message": message}
        for group, name in ((_CALL, "tool_calls"), (CONTENT, "content"), ("", "tool_plan")):
            before, after = _of_group(events, group), _of_group(out, group)
            if same(before, after):
                continue
            listed = message.get(name)
            plain = isinstance(listed, str) and all(e.kind == "text" for e in after if isinstance(e, Start))
            made: Json = text_of(after) if plain or not group else _entries(listed, events, out, group)
            if name == "content" and (plain or "tool_calls" not in message):
                message[name] = made
            else:
                set_or_drop(message, name, made)
        if (finish := finish_of(out)) is not None:
            changed["finish_reason"] = _reason(finish, document)
        return changed


def _of_group(events: Sequence[Event], group: str) -> list[Start | Delta | CallUpdate]:
    groups = {event.block: _group_of(event) for event in events if isinstance(event, Start)}
    return [event for event in block_events(events) if groups.get(event.block) == group]


def _entries(listed: Json, events: Sequence[Event], out: Sequence[Event], group: str) -> list[Json]:
    def make(start: Start, source: dict[str, Json], new_text: str) -> Json:
        if group == _CALL:
            return _call(start, source, new_text)
        if start.kind == "opaque":
            return dict(source)
        return {"type": _field(start), **source, _field(start): new_text} if new_text else None

    starts = [event for event in out if isinstance(event, Start) and _group_of(event) == group]
    # Reasoning comes before the text, though a fix finds it later.
    text = next((number for number, start in enumerate(starts) if start.kind != "reasoning"), len(starts))
    starts[text:] = sorted(starts[text:], key=lambda one: not (one.kind == "reasoning" and one.block >= MADE))
    return patched_entries(listed, events, out, starts, make)


API = ApiSpec("cohere.chat", claims, claims_reply, read_request, Reader, StreamWriter, WholeWriter, paths=_PATHS)
