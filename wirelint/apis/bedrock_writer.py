"""Bedrock's Converse, written: events of a reply back to messages of an event stream, or to the body of a reply.

Theory of operation. Content blocks of a stream come one after the other, numbered without gaps. As long as nothing was
changed frames leave as they came; from the first block on that was put in, taken out or moved, blocks are numbered here,
and every later frame that names one is written anew. A block that a rewriter begins ends the one that is open; should the
open one go on afterwards, it goes on as another block of its kind. Only calls are announced: text and reasoning begin with
their first delta, as they do on the wire.

Events leave in the framing in which the stream came: as messages of their own, as what a `chunk` carries, or as
server-sent events where a gateway has made such of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.apis.bedrock_events import named
from wirelint.apis.reading import mapping, number
from wirelint.apis.writing import MADE, document_of, dump, framed, other_lines, same
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Other, Start, StreamViolation
from wirelint.jsonvalues import Arguments
from wirelint.model import Json
from wirelint.wire.aws_eventstream import CHUNK, chunk, looks_like_messages, message

_START, _DELTA, _STOP, _END = "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"
_ANNOUNCED = frozenset({"tool_call", "hosted_call", "hosted_result", "opaque"})


class StreamWriter:
    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}
        self._wire: dict[int, int] = {}  # which block the wire means by an index now
        self._next = 0
        self._altered = False
        self._open: int | None = None
        self._ended: set[int] = set()
        self._closed: set[int] = set()
        self._told: set[int] = set()  # blocks of which something has left
        self._like: Frame | None = None

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        self._like = self._like or (frame if frame.data is not None else None)
        for event in events:
            if type(event) is Start and event.wire_index is not None:
                self._wire[event.wire_index] = event.block
        if same(events, out) and not self._bare(out) and not (self._altered and self._moves(out)):
            self._note(out)
            return frame.raw
        self._alter(events, out)
        made = b"".join(self._made(frame, out))
        return other_lines(frame) + made if made and self._framing == "sse" else made

    def close(self, out: Sequence[Event]) -> bytes:
        self._alter((), out)
        return b"".join(self._made(None, out))

    @property
    def _framing(self) -> str:
        like = self._like
        if like is None or looks_like_messages(like.raw[:12]):
            return CHUNK if like is not None and like.event == CHUNK else "message"
        return "sse"

    def _send(self, name: str, body: Mapping[str, Json], wrapped: bool) -> bytes:
        match self._framing:
            case "message":
                return message(dump(body), name)
            case "chunk":
                return chunk(dump({name: dict(body)}))
            case _:
                return framed({name: dict(body)} if wrapped else body, None if wrapped else name)

    def _alter(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        """Notes whether blocks are other ones than came."""
        before, after = {id(event) for event in events}, {id(event) for event in out}
        made = any(isinstance(event, (Start, Close)) and id(event) not in before for event in out)
        gone = any(isinstance(event, (Start, Close)) and id(event) not in after for event in events)
        self._altered = self._altered or made or gone

    def _note(self, out: Sequence[Event]) -> None:
        """Takes in what leaves as it came."""
        for event in out:
            if type(event) is Start:
                self._starts[event.block] = event
                place = self._next if event.wire_index is None else event.wire_index
                self._numbers[event.block] = place
                self._next = max(self._next, place + 1)
                self._open = event.block
                self._told.add(event.block)
            elif type(event) is Delta:
                self._told.add(event.block)
            elif type(event) is Close:
                self._closed.add(event.block)
                self._open = None if self._open == event.block else self._open

    def _bare(self, out: Sequence[Event]) -> bool:
        """Return True if a block ends of which nothing has left."""
        return any(type(event) is Close and event.block in self._starts.keys() - self._told for event in out)

    def _moves(self, out: Sequence[Event]) -> bool:
        """Whether an untouched frame names a block that has another number now, or would break the order of blocks."""
        for event in out:
            match event:
                case Start():
                    if self._open is not None or event.wire_index != self._next:
                        return True
                case Delta() | Close() | CallUpdate() if event.block in self._starts:
                    moved = self._numbers[event.block] != self._starts[event.block].wire_index
                    if moved or event.block in self._ended:
                        return True
                case Other(frame=frame) if frame is not None and frame.data is not None:
                    index = _index(frame)
                    block = self._wire.get(index) if index is not None else None
                    if block is not None and self._numbers.get(block) != index:
                        return True
                case _:
                    pass
        return False

    def _made(self, frame: Frame | None, out: Sequence[Event]) -> Iterator[bytes]:
        for event in out:
            source = event.frame or frame
            document = document_of(source) if source is not None else {}
            name, body = named(document, source.event if source is not None else None)
            wrapped = name in document
            for kind, said in self._event(event, name, body):
                yield self._send(kind, said, wrapped)
            if not isinstance(event, _SPOKEN):
                yield from self._as_it_came(event, name, body, wrapped)

    def _event(self, event: Event, name: str, body: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
        match event:
            case Start():
                yield from self._begin(event, name, body)
            case Delta():
                yield from self._say(event, name, body)
            case Close(block=block):
                if self._open == block:
                    yield from self._end(body if name == _STOP else {})
                self._ended.discard(block)
                self._closed.add(block)
            case Finish(reason=reason):
                if self._open is not None:
                    yield from self._end({})
                yield _END, {**(body if name == _END else {}), "stopReason": reason}
            case Done() if name != _END or "stopReason" not in body:
                if self._open is not None:
                    yield from self._end({})
                yield _END, dict(body) if name == _END else {"stopReason": "end_turn"}
            case _:
                return

    def _as_it_came(self, event: Event, name: str, body: Mapping[str, Json], wrapped: bool) -> Iterator[bytes]:
        """What no event stands for: usage, errors, signatures, under the number that their block has now."""
        frame = event.frame
        if frame is None or isinstance(event, StreamViolation):
            return
        index = number(body.get("contentBlockIndex"))
        block = self._wire.get(index, -1) if index is not None else -1
        if not self._altered or index is None or block < 0:
            yield frame.raw or self._send(name, body, wrapped)
        elif block in self._numbers:  # else it was said of a block that is not there
            yield self._send(name, {**body, "contentBlockIndex": self._numbers[block]}, wrapped)

    def _begin(self, start: Start, name: str, body: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
        if self._open is not None:
            self._ended.add(self._open)
            yield from self._end({})
        self._starts.setdefault(start.block, start)
        self._numbers[start.block] = place = self._next
        self._next += 1
        self._open = start.block
        own = dict(body) if name == _START and start.block < MADE else {}
        if own or start.kind in _ANNOUNCED:
            said = {**mapping(own.get("start")), **_announced(start, mapping(mapping(own.get("start")).get("toolUse")))}
            self._told.add(start.block)
            yield _START, {**own, "contentBlockIndex": place, "start": said}
        if start.kind == "tool_call" and start.input not in (None, {}):
            piece: dict[str, Json] = {"toolUse": {"input": orjson.dumps(start.input).decode()}}
            yield _DELTA, {"contentBlockIndex": place, "delta": piece}

    def _say(self, delta: Delta, name: str, body: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
        start = self._starts.get(delta.block)
        if start is None:
            return
        # Another block had its turn: this one goes on as a new one. What was said behind its stop stays behind it.
        if self._open != delta.block and delta.block not in self._closed:
            yield from self._begin(start._replace(item=-1, input=None), "", {})
        own = dict(body) if name == _DELTA else {}
        self._told.add(delta.block)
        yield _DELTA, {**own, "contentBlockIndex": self._numbers[delta.block], "delta": _piece(start, delta.text)}

    def _end(self, body: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
        assert self._open is not None
        block, self._open = self._open, None
        place = self._numbers[block]
        if block not in self._told:  # nothing else tells that it was there
            yield _DELTA, {"contentBlockIndex": place, "delta": _piece(self._starts[block], "")}
        yield _STOP, {**body, "contentBlockIndex": place}


_SPOKEN = (Start, Delta, Close, Finish, Done, CallUpdate, StreamViolation)


def _index(frame: Frame) -> int | None:
    return number(named(document_of(frame), frame.event)[1].get("contentBlockIndex"))


def _announced(start: Start, source: Mapping[str, Json]) -> dict[str, Json]:
    if start.kind != "tool_call":
        return {}
    return {"toolUse": {**source, "toolUseId": start.id or "", "name": start.name or ""}}


def _piece(start: Start, words: str) -> dict[str, Json]:
    match start.kind:
        case "tool_call" | "hosted_call":
            return {"toolUse": {"input": words}}
        case "reasoning":
            return {"reasoningContent": {"text": words}}
        case _:
            return {"text": words}


class WholeWriter:
    """The body of a reply, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        changed = dict(document)
        if not same(_blocks(events), _blocks(out)):
            output = mapping(document.get("output"))
            spoken = mapping(output.get("message"))
            listed = spoken.get("content")
            source: list[Json] = listed if isinstance(listed, list) else []
            # Entries that are no objects have no event, and stay behind the blocks.
            strange = [entry for entry in source if not isinstance(entry, dict)]
            content = [*self._content(source, events, out), *strange]
            changed["output"] = {**output, "message": {**spoken, "content": content}}
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            changed["stopReason"] = stop.reason
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it

    def _content(self, source: Sequence[Json], events: Sequence[Event], out: Sequence[Event]) -> Iterator[Json]:
        known = {event.block: event for event in events if isinstance(event, Start)}
        before, said = _deltas(events), _deltas(out)
        for start in out:
            if not isinstance(start, Start):
                continue
            entry = source[start.item] if 0 <= start.item < len(source) else None
            own = entry if isinstance(entry, dict) else {}
            words = said.get(start.block, [])
            if own and known.get(start.block) is start and same(before.get(start.block, []), words):
                yield own
            else:
                yield _block(start, own, "".join(delta.text for delta in words))


def _blocks(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, (Start, Delta, CallUpdate))]


def _deltas(events: Sequence[Event]) -> dict[int, list[Delta]]:
    said: dict[int, list[Delta]] = {}
    for event in events:
        if isinstance(event, Delta):
            said.setdefault(event.block, []).append(event)
    return said


def _block(start: Start, source: dict[str, Json], said: str) -> dict[str, Json]:
    match start.kind:
        case "tool_call":
            tool = mapping(source.get("toolUse"))
            given: Json = Arguments(said).value if said else {} if start.input is None else start.input
            return {
                **source,
                "toolUse": {**tool, "toolUseId": start.id or "", "name": start.name or "", "input": given},
            }
        case "text" | "refusal" if cited := mapping(source.get("citationsContent")):
            return {**source, "citationsContent": {**cited, "content": [{"text": said}]}}
        case "text" | "refusal":
            return {**source, "text": said}
        case "reasoning" if start.form != "opaque":
            thought = mapping(source.get("reasoningContent"))
            words = {**mapping(thought.get("reasoningText")), "text": said}
            return {**source, "reasoningContent": {**thought, "reasoningText": words}}
        case _:
            return dict(source)
