"""Cohere Chat, written: events of a reply back to named events of a stream, or to the body of a reply.

Theory of operation. Content blocks and calls come one after the other, each kind numbered without gaps. Frames leave as
they came until a block was put in, taken out or moved; from there on blocks are numbered here, and every later frame that
names one is written anew. A block that a rewriter begins ends the one that is open; should that one go on afterwards,
it goes on as another block of its kind. The plan before calls has no start and no end, and needs no number.

Rewriters name finish reasons as OpenAI does; what they put in is translated, what was there stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.reading import mapping, number, text
from wirelint.apis.writing import MADE, document_of, dump, framed, groups, other_lines, same, spoken
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
from wirelint.model import Json

REASONS = {
    "stop": "COMPLETE",
    "end_turn": "COMPLETE",
    "tool_calls": "TOOL_CALL",
    "tool_use": "TOOL_CALL",
    "function_call": "TOOL_CALL",
    "length": "MAX_TOKENS",
    "max_tokens": "MAX_TOKENS",
}
_GROUPS = {"content-start": "content", "content-delta": "content", "content-end": "content",
           "tool-call-start": "call", "tool-call-delta": "call", "tool-call-end": "call"}  # fmt: skip
_ENDING = (Finish, Usage, Done)


def _group_of(start: Start) -> str:
    """What a block is numbered with: `content`, `call`, or nothing."""
    match start.kind:
        case "tool_call":
            return "call"
        case "text" | "refusal":
            return "content"
        case "reasoning":
            return "" if start.name == "tool_plan" else "content"
        case _:
            return "content" if start.pointer.startswith("/message/content") else ""


def _field(start: Start) -> str:
    return "thinking" if start.kind == "reasoning" else "text"


class StreamWriter:
    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}
        self._next = {"content": 0, "call": 0}
        self._altered = False
        self._open: int | None = None
        self._ended: set[int] = set()
        self._unclosed: set[int] = set()  # blocks that another followed before they were ended
        self._wire: dict[tuple[str, int], int] = {}  # which block the wire means by an index now

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        for event in events:
            if type(event) is Start and event.wire_index is not None and (group := _group_of(event)):
                self._wire[group, event.wire_index] = event.block
        if same(events, out) and not (self._altered and self._moves(out)):
            self._note(out)
            return frame.raw
        before, after = {id(event) for event in events}, {id(event) for event in out}
        moved = any(isinstance(event, (Start, Close)) and id(event) not in before for event in out)
        gone = any(isinstance(event, (Start, Close)) and id(event) not in after for event in events)
        self._altered = self._altered or moved or gone
        made: list[bytes] = []
        for place, group_ in groups(frame, out):
            made += self._group(place, [event for event in events if event.frame is place], group_)
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._altered = self._altered or any(isinstance(event, (Start, Close)) for event in out)
        told = [event for event in out if not isinstance(event, (Other, ReplyMeta, Failure))]
        return b"".join(self._group(Frame(0, b"", None, None), [], told))

    def _note(self, out: Sequence[Event]) -> None:
        """Takes in what leaves as it came."""
        for event in out:
            if type(event) is Start:
                self._starts[event.block] = event
                if not (group := _group_of(event)):
                    continue
                place = self._next[group] if event.wire_index is None else event.wire_index
                self._numbers[event.block] = place
                self._next[group] = max(self._next[group], place + 1)
                if self._open is not None:
                    self._unclosed.add(self._open)
                self._open = event.block
            elif type(event) is Close:
                self._unclosed.discard(event.block)
                self._open = None if self._open == event.block else self._open

    def _moves(self, out: Sequence[Event]) -> bool:
        """Whether an untouched frame names a block that has another number now, or would break the order of blocks."""
        for event in out:
            match event:
                case Start() if group := _group_of(event):
                    if self._open is not None or event.wire_index != self._next[group]:
                        return True
                case Delta() | Close() | CallUpdate() if event.block in self._numbers:
                    moved = self._numbers[event.block] != self._starts[event.block].wire_index
                    if moved or event.block in self._ended:
                        return True
                case Finish() | Done() if self._open is not None:
                    return True
                case _:
                    pass
        return False

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if document and same(spoken(own), spoken(out)) and not (self._altered and self._moves(out)):
            self._note(out)
            yield framed(None, frame.event, data=frame.data)
            return
        if not document and any(isinstance(event, Other) for event in out):
            yield frame.raw
            return
        told = False
        for event in out:
            match event:
                case Start() | Delta() | Close():
                    yield from self._block(event, document)
                case CallUpdate() | StreamViolation():
                    pass  # no event of the API: a name for a block that has begun, and what was wrong with the frame
                case _ if not told:
                    told = True
                    if isinstance(event, _ENDING):
                        yield from self._message_end(document, out)
                    else:
                        yield from self._document(document)
                case _:
                    pass

    def _document(self, document: Mapping[str, Json]) -> Iterator[bytes]:
        """A document that is no part of a block, or that no one knows."""
        group, index = _GROUPS.get(text(document.get("type")) or ""), number(document.get("index"))
        if group is not None and index is not None and self._altered and (group, index) in self._wire:
            if self._wire[group, index] not in self._numbers:
                return  # it was said of a block that is not there
            document = {**document, "index": self._numbers[self._wire[group, index]]}
        yield _event(document)

    def _message_end(self, document: Mapping[str, Json], out: Sequence[Event]) -> Iterator[bytes]:
        if self._open is not None:
            yield self._end()
        source = document if document.get("type") == "message-end" else {}
        delta = dict(mapping(source.get("delta")))
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            delta["finish_reason"] = _reason(stop, delta)
        yield _event({"type": "message-end", **source, "delta": delta})

    def _block(self, event: Start | Delta | Close, document: Mapping[str, Json]) -> Iterator[bytes]:
        match event:
            case Start() if _group_of(event):
                yield from self._begin(event, document)
            case Start():
                self._starts.setdefault(event.block, event)
                if event.kind == "opaque":
                    yield _event(document)
            case Delta():
                yield from self._say(event, document)
            case Close(block=block):
                if self._open == block:
                    yield self._end()
                elif block in self._unclosed:
                    yield self._ending(block)
                self._ended.discard(block)
                self._unclosed.discard(block)

    def _begin(self, start: Start, document: Mapping[str, Json]) -> Iterator[bytes]:
        if self._open is not None:
            self._ended.add(self._open)
            yield self._end()
        self._starts.setdefault(start.block, start)
        group = _group_of(start)
        self._numbers[start.block] = self._next[group]
        self._next[group] += 1
        self._open = start.block
        kind = "content-start" if group == "content" else "tool-call-start"
        source = document if document.get("type") == kind and start.wire_index is not None else {}
        message = mapping(mapping(source.get("delta")).get("message"))
        said: Json
        if group == "call":
            said = call_of(start, mapping(message.get("tool_calls")), "")
        elif start.kind == "opaque":
            said = mapping(message.get("content"))
        else:
            said = {"type": _field(start), **mapping(message.get("content")), _field(start): ""}
        yield self._made(kind, source, start.block, "content" if group == "content" else "tool_calls", said)

    def _say(self, delta: Delta, document: Mapping[str, Json]) -> Iterator[bytes]:
        start = self._starts.get(delta.block)
        if start is None:
            return
        group = _group_of(start)
        if not group:
            if delta.text:
                yield _event({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": delta.text}}})
            return
        if self._open != delta.block:  # another block had its turn; this one goes on as a new one
            yield from self._begin(start._replace(wire_index=None, input=None), {})
        if not delta.text:
            return
        if group == "call":
            called: Json = {"function": {"arguments": delta.text}}
            yield self._made("tool-call-delta", _if(document, "tool-call-delta"), delta.block, "tool_calls", called)
        else:
            source = _if(document, "content-delta")
            content = mapping(mapping(mapping(source.get("delta")).get("message")).get("content"))
            said: Json = {
                **{k: v for k, v in content.items() if k not in ("text", "thinking")},
                _field(start): delta.text,
            }
            yield self._made("content-delta", source, delta.block, "content", said)

    def _made(self, kind: str, source: Mapping[str, Json], block: int, name: str, said: Json) -> bytes:
        delta = mapping(source.get("delta"))
        message: Json = {**mapping(delta.get("message")), name: said}
        return _event({"type": kind, **source, "index": self._numbers[block], "delta": {**delta, "message": message}})

    def _end(self) -> bytes:
        assert self._open is not None
        block, self._open = self._open, None
        return self._ending(block)

    def _ending(self, block: int) -> bytes:
        kind = "content-end" if _group_of(self._starts[block]) == "content" else "tool-call-end"
        return _event({"type": kind, "index": self._numbers[block]})


def _if(document: Mapping[str, Json], kind: str) -> Mapping[str, Json]:
    return document if document.get("type") == kind else {}


def _event(document: Mapping[str, Json]) -> bytes:
    return framed(document, text(document.get("type")))


def _reason(stop: Finish, source: Mapping[str, Json]) -> str:
    return stop.reason if stop.reason == source.get("finish_reason") else REASONS.get(stop.reason, stop.reason)


def call_of(start: Start, source: Mapping[str, Json], said: str) -> dict[str, Json]:
    """A call with the argument text `said`. `source` is the call that the event was read from."""
    arguments: Json = said if said or start.input is None else start.input
    function: Json = {**mapping(source.get("function")), "name": start.name or "", "arguments": arguments}
    known: dict[str, Json] = {"id": start.id} if start.id is not None else {}
    return {**known, "type": "function", **source, **known, "function": function}


class WholeWriter:
    """The body of a reply, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        message = dict(mapping(document.get("message")))
        changed: dict[str, Json] = {**document, "message": message}
        before, after = _Said(events), _Said(out)
        if not same(before.events["call"], after.events["call"]):
            calls = after.made("call", message.get("tool_calls"), before)
            _set(message, "tool_calls", calls, keep=False)
        if not same(before.events["content"], after.events["content"]):
            content = message.get("content")
            if isinstance(content, str) and all(start.kind == "text" for start in after.starts["content"]):
                message["content"] = "".join(after.text(start) for start in after.starts["content"])
            else:
                _set(message, "content", after.made("content", content, before), keep="tool_calls" not in message)
        if not same(before.events[""], after.events[""]):
            plan = "".join(after.text(start) for start in after.starts[""] if start.kind == "reasoning")
            _set(message, "tool_plan", plan, keep=False)
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            changed["finish_reason"] = _reason(stop, document)
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        if head is not None:
            changed["id"] = head.id
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it


class _Said:
    """What the events of a body say, by what its blocks are numbered with."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.starts: dict[str, list[Start]] = {"content": [], "call": [], "": []}
        self.events: dict[str, list[Event]] = {"content": [], "call": [], "": []}
        self._deltas: dict[int, list[Event]] = {}
        groups_: dict[int, str] = {}
        for event in events:
            if isinstance(event, Start):
                groups_[event.block] = _group_of(event)
                self.starts[groups_[event.block]].append(event)
            if isinstance(event, (Start, Delta, CallUpdate)) and event.block in groups_:
                self.events[groups_[event.block]].append(event)
            if isinstance(event, Delta):
                self._deltas.setdefault(event.block, []).append(event)

    def deltas(self, start: Start) -> list[Event]:
        return self._deltas.get(start.block, [])

    def text(self, start: Start) -> str:
        return "".join(event.text for event in self.deltas(start) if isinstance(event, Delta))

    def made(self, group: str, listed: Json, before: _Said) -> list[Json]:
        """The entries of a list. Those that say what they said stay as they are; strange ones stay behind them."""
        source: list[Json] = listed if isinstance(listed, list) else []
        made: list[Json] = []
        # What a model thought stands before what it said, though it is found out later.
        for start in sorted(self.starts[group], key=lambda one: not (one.kind == "reasoning" and one.block >= MADE)):
            entry = source[start.item] if 0 <= start.item < len(source) else None
            own = entry if isinstance(entry, dict) else {}
            known = any(start is one for one in before.starts[group])
            if own and known and same(before.deltas(start), self.deltas(start)):
                made.append(own)
            elif group == "call":
                made.append(call_of(start, own, self.text(start)))
            elif start.kind == "opaque":
                made.append(dict(own))
            elif said := self.text(start):
                made.append({"type": _field(start), **own, _field(start): said})
        return [*made, *(entry for entry in source if not isinstance(entry, dict))]


def _set(message: dict[str, Json], name: str, value: Json, *, keep: bool) -> None:
    """Puts a member in place; an empty one only where it has to be there."""
    if value or keep:
        message[name] = value
    else:
        message.pop(name, None)
