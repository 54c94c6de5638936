"""Anthropic Messages, written: events of a reply back to named events of a stream, or to the body of a message.

Theory of operation. Content blocks of a stream come one after the other, numbered without gaps. As long as nothing was
changed frames leave as they came; from the first block on that was put in, taken out or moved, blocks are numbered here,
and every later frame that names one is written anew. A block that a rewriter begins ends the one that is open; should the
open one go on afterwards, it goes on as another block of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.reading import mapping, number, text
from wirelint.apis.writing import document_of, dump, framed, groups, other_lines, same, spoken
from wirelint.events import (
    CallUpdate,
    Close,
    Delta,
    Done,
    Event,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
    Usage,
)
from wirelint.jsonvalues import Arguments
from wirelint.model import Json, Kind

_FIELDS: dict[Kind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}
_STARTS = "content_block_start"


class StreamWriter:
    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._altered = False
        self._open: int | None = None
        self._ended: set[int] = set()
        self._closed: set[int] = set()
        self._begun: set[int] = set()  # blocks whose start was written here
        self._unclosed: set[int] = set()  # blocks that another followed before they were stopped
        self._wire: dict[int, int] = {}  # which block the wire means by an index now

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        for event in events:
            if type(event) is Start and event.wire_index is not None:
                self._wire[event.wire_index] = event.block
        if same(events, out) and not (self._altered and self._moves(out)):
            self._note(out)
            return frame.raw
        before = {id(event) for event in events}
        moved = any(isinstance(event, (Start, Close)) and id(event) not in before for event in out)
        after = {id(event) for event in out}
        gone = any(isinstance(event, (Start, Close)) and id(event) not in after for event in events)
        self._altered = self._altered or moved or gone
        made: list[bytes] = []
        for place, group in groups(frame, out):
            made += self._group(place, [event for event in events if event.frame is place], group)
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        made: list[bytes] = []
        self._altered = self._altered or any(isinstance(event, (Start, Close)) for event in out)
        for event in out:
            made += self._event(event, {})
        return b"".join(made)

    def _note(self, out: Sequence[Event]) -> None:
        """Takes in what leaves as it came."""
        for event in out:
            if type(event) is Start:
                self._starts[event.block] = event
                place = self._next if event.wire_index is None else event.wire_index
                self._numbers[event.block] = place
                self._next = max(self._next, place + 1)
                if self._open is not None:
                    self._unclosed.add(self._open)
                self._open = event.block
            elif type(event) is Close:
                self._unclosed.discard(event.block)
                self._closed.add(event.block)
                self._open = None if self._open == event.block else self._open

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
                case Finish() | Done() if self._open in self._begun:
                    return True  # nobody else closes it
                case Other(frame=frame) if frame is not None and frame.data is not None:
                    index = number(document_of(frame).get("index"))
                    block = self._wire.get(index) if index is not None else None
                    if block is not None and self._numbers.get(block) != index:
                        return True
                case _:
                    pass
        return False

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if document and same(spoken(own), spoken(out)) and not (self._altered and self._moves(out)):
            self._note(out)
            yield framed(None, text(document.get("type")), data=frame.data)
            return
        told = False
        carriers = _carriers(document, own)
        for event in out:
            if id(event) in carriers or (isinstance(event, (ReplyMeta, Usage)) and document):
                if told:
                    continue
                told = True
                yield from self._document(document, out)
            elif isinstance(event, Delta) and self._is_in_start(event, document, own):
                continue  # told with its start
            else:
                yield from self._event(event, document)
                if isinstance(event, Finish):
                    told = True

    def _is_in_start(self, event: Delta, document: Mapping[str, Json], own: Sequence[Event]) -> bool:
        return document.get("type") == _STARTS and any(event is one for one in own)

    def _document(self, document: Mapping[str, Json], out: Sequence[Event]) -> Iterator[bytes]:
        """The document itself, for events that are about the message: head and usage, errors, things unknown."""
        kind = text(document.get("type"))
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        index = number(document.get("index"))
        if self._altered and index in self._wire:  # signatures, citations: what no event stands for
            if self._wire[index] not in self._numbers:
                return  # it was said of a block that is not there
            document = {**document, "index": self._numbers[self._wire[index]]}
        if kind == "message_start" and head is not None:
            message = mapping(document.get("message"))
            document = {**document, "message": {**message, "id": head.id}}
        yield framed(document, kind)

    def _event(self, event: Event, document: Mapping[str, Json]) -> Iterator[bytes]:
        match event:
            case Start():
                yield from self._begin(event, document)
            case CallUpdate() | StreamViolation():
                return  # no event of the API: a name for a block that has begun, and what was wrong with the frame
            case Delta():
                yield from self._say(event, document)
            case Close(block=block):
                if self._open == block:
                    yield self._end()
                elif block in self._unclosed:
                    yield framed({"type": "content_block_stop", "index": self._numbers[block]}, "content_block_stop")
                self._ended.discard(block)
                self._unclosed.discard(block)
                self._closed.add(block)
            case Finish(reason=reason):
                if self._open is not None:
                    yield self._end()
                yield self._stop(reason, document)
            case Done():
                if self._open is not None:
                    yield self._end()
                yield framed(
                    {"type": "message_stop", **(document if _is(document, "message_stop") else {})}, "message_stop"
                )
            case _:
                if document:
                    yield framed(document, text(document.get("type")))

    def _begin(self, start: Start, document: Mapping[str, Json]) -> Iterator[bytes]:
        if self._open is not None:
            self._ended.add(self._open)
            yield self._end()
        self._starts.setdefault(start.block, start)
        self._numbers[start.block] = self._next
        self._next += 1
        self._open = start.block
        self._begun.add(start.block)
        source: Mapping[str, Json] = {}
        if _is(document, _STARTS) and start.item >= 0:
            source = document
        block = block_of(start, mapping(source.get("content_block")))
        made = {"type": _STARTS, **source, "index": self._numbers[start.block], "content_block": block}
        yield framed(made, _STARTS)

    def _say(self, delta: Delta, document: Mapping[str, Json]) -> Iterator[bytes]:
        start = self._starts.get(delta.block)
        if start is None:
            return
        # Another block had its turn: this one goes on as a new one. What was said behind its stop stays behind it.
        if self._open != delta.block and delta.block not in self._closed:
            yield from self._begin(start._replace(item=-1, input=None), {})
        kind, name = _FIELDS.get(start.kind, ("text_delta", "text"))
        source = document if _is(document, "content_block_delta") else {}
        said = {**mapping(source.get("delta")), "type": kind, name: delta.text}
        for other in ("text", "thinking", "partial_json"):
            if other != name:
                said.pop(other, None)
        made = {"type": "content_block_delta", **source, "index": self._numbers[delta.block], "delta": said}
        yield framed(made, "content_block_delta")

    def _end(self) -> bytes:
        assert self._open is not None
        place, self._open = self._numbers[self._open], None
        return framed({"type": "content_block_stop", "index": place}, "content_block_stop")

    def _stop(self, reason: str, document: Mapping[str, Json]) -> bytes:
        nothing: dict[str, Json] = {"usage": {"output_tokens": 0}}
        source = document if _is(document, "message_delta") else nothing
        delta = {"stop_sequence": None, **mapping(source.get("delta")), "stop_reason": reason}
        return framed({"type": "message_delta", **source, "delta": delta}, "message_delta")


def _carriers(document: Mapping[str, Json], own: Sequence[Event]) -> set[int]:
    """The events that a document as a whole stands for, save blocks, their text and the stop reason."""
    if not document:
        return set()
    blocks = (Start, Delta, Close, CallUpdate, Finish, Done)
    said = any(not isinstance(event, StreamViolation) for event in own)
    return {
        id(event)
        for event in own
        if not isinstance(event, blocks) and not (said and isinstance(event, StreamViolation))
    }


def _is(document: Mapping[str, Json], kind: str) -> bool:
    return document.get("type") == kind


def block_of(start: Start, source: Mapping[str, Json]) -> dict[str, Json]:
    """A content block as it begins. `source` is the block that the event was read from."""
    match start.kind:
        case "tool_call":
            made: dict[str, Json] = {"type": "tool_use", "id": start.id or "", "name": start.name or ""}
            return {**made, **source, **made, "input": {} if start.input is None else start.input}
        case "text" | "refusal":
            return {"type": "text", "text": "", **source}
        case "reasoning" if start.form != "opaque":
            return {"type": "thinking", "thinking": "", "signature": "", **source}
        case _:
            return dict(source)


class WholeWriter:
    """The body of a message, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        listed = document.get("content")
        source: list[Json] = listed if isinstance(listed, list) else []
        changed = dict(document)
        if not same(_blocks(events), _blocks(out)):
            # Entries that are no objects have no event, and stay behind the blocks.
            strange = [entry for entry in source if not isinstance(entry, dict)]
            changed["content"] = [*self._content(source, events, out), *strange]
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            changed["stop_reason"] = stop.reason
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        if head is not None:
            changed["id"] = head.id
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it

    def _content(self, source: Sequence[Json], events: Sequence[Event], out: Sequence[Event]) -> Iterator[Json]:
        said: dict[int, list[Delta]] = {}
        for event in out:
            if isinstance(event, Delta):
                said.setdefault(event.block, []).append(event)
        texts = {block: "".join(delta.text for delta in deltas) for block, deltas in said.items()}
        known = {event.block: event for event in events if isinstance(event, Start)}
        before: dict[int, list[Delta]] = {}
        for event in events:
            if isinstance(event, Delta):
                before.setdefault(event.block, []).append(event)
        for start in out:
            if not isinstance(start, Start):
                continue
            entry = source[start.item] if 0 <= start.item < len(source) else None
            own = entry if isinstance(entry, dict) else {}
            untouched = known.get(start.block) is start and same(before.get(start.block, []), said.get(start.block, []))
            if own and untouched:
                yield own
            else:
                yield _whole_block(start, own, texts.get(start.block, ""))


def _blocks(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, (Start, Delta, CallUpdate))]


def _whole_block(start: Start, source: Mapping[str, Json], said: str) -> dict[str, Json]:
    block = block_of(start, source)
    match start.kind:
        case "tool_call" if said:
            block["input"] = Arguments(said).value
        case "text" | "refusal":
            block["text"] = said
        case "reasoning" if start.form != "opaque":
            block["thinking"] = said
        case _:
            pass
    return block
