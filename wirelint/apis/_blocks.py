r"""Readers and writers that the APIs with content blocks share: Anthropic, Bedrock's Converse, Cohere.

Theory of operation. A block starts, has text and stops. Every event names its block by an index:

    data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
    data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}
    data: {"type":"content_block_stop","index":0}

The writer forwards frames unchanged until a fix inserts, removes or moves a block. From there on it numbers blocks
itself, without gaps, and rewrites each later frame that names a block. A block that a fix starts stops the open one. If
the open one gets more text afterwards, that text becomes another block of its kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from wirelint.apis.reading import ReplyReader, ReplyWriter, lists_parts, misshapen, role_of, stated_reason, words_of
from wirelint.apis.writing import (
    MADE,
    BodyWriter,
    block_events,
    finish_of,
    frame_document,
    framed,
    groups,
    patched_entries,
    reply_id_of,
    same,
    with_other_lines,
    without_violations,
)
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Other, Start, StreamViolation
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.model import Json, Kind, Message, Part, Role, Text
from wirelint.wire.aws_eventstream import looks_like_messages

BlockParser = Callable[[Mapping[str, Json], str, Role], Part | None]
"""Function from a content block, its pointer and the message's role to a part; None for a block without content."""


def read_messages(body: Mapping[str, Json], parse: BlockParser) -> tuple[Message, ...]:
    """Return the messages of a request: `system` first, then `messages`."""
    system = tuple(_parts(body.get("system"), "/system", "system", parse))
    made = [Message("system", system, "/system")] if system else []
    for n, message in mappings(body.get("messages")):
        place = f"/messages/{n}"
        role = role_of(message)
        made.append(Message(role, tuple(_parts(message.get("content"), f"{place}/content", role, parse)), place))
    return tuple(made)


def _parts(content: Json, place: str, role: Role, parse: BlockParser) -> Iterator[Part]:
    if isinstance(content, str) and content:
        yield Text(content, place)
    for n, block in mappings(content):
        if (part := parse(block, f"{place}/{n}", role)) is not None:
            yield part


Key = tuple[str, int]
"""Group and index of a block on the wire, such as `(CONTENT, 0)`."""
CONTENT = "content block"


class BlockReader(ReplyReader):
    """Reader of replies made of content blocks. It knows which blocks have started and which are open."""

    finish_name: ClassVar[str]
    """The member with the finish reason."""

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self.started = False
        """True if the start of the message has been read."""
        self.blocks: dict[Key, int] = {}
        self.kinds: dict[Key, Kind] = {}
        self.open: dict[Key, None] = {}
        self._misshapen: set[Key] = set()

    def start(self, key: Key, start: Start, *, is_open: bool = True) -> Start:
        """Return the event that starts a block, with the block's number. `is_open`: a stop must follow."""
        self.blocks[key], self.kinds[key] = self.next_block(), start.kind
        if is_open:
            self.open[key] = None
        return start._replace(block=self.blocks[key], frame=self.frame)

    def announced(self, key: Key, start: Start, words: str = "") -> Iterator[Event]:
        """Yield the events of a start on the wire, which has the first text of its block. A key may come again."""
        restarted = key in self.blocks
        if restarted:
            yield self.violation("restarted-part", f"{key[0]} {key[1]}")
        if restarted and self.kinds[key] == start.kind == "tool_call":
            # Two calls with one index: a client overwrites or merges them, and loses one either way.
            self.open[key] = None
            yield CallUpdate(self.blocks[key], start.wire_index, start.id, start.name, self.frame)
        else:
            yield self.start(key, start)
        if words:
            yield Delta(self.blocks[key], words, self.frame, start.item)

    def whole(self, key: Key, start: Start, words: str) -> Iterator[Event]:
        """Yield the events of a block of a whole message."""
        yield self.start(key, start, is_open=False)
        if words:
            yield Delta(self.blocks[key], words, self.frame, start.item)

    def misshapen_content(self, content: Json, pointer: str) -> Iterator[Event]:
        """Yield an opaque block for content that is no list of parts, where the API has a list of blocks."""
        if content and not lists_parts(content):
            start = Start(0, "opaque", pointer, 0, None, name=misshapen(content))
            yield from self.whole((CONTENT, 0), start, words_of(content))

    def misshapen_delta(self, key: Key, pointer: str, name: str) -> Iterator[Event]:
        """Yield the events of a delta that has another JSON type in place of text: once a block, an opaque part."""
        yield from self.misplaced_delta(key)
        if key not in self._misshapen:
            self._misshapen.add(key)
            yield Start(self.next_block(), "opaque", pointer, 0, self.frame, name=name, form="opaque")
        yield Other(self.frame)

    def misplaced_delta(self, key: Key) -> Iterator[StreamViolation]:
        """Yield the violation of a delta whose block has not started, or has stopped."""
        if key not in self.open:
            what = "already stopped" if key in self.blocks else "never started"
            yield self.violation("undeclared-part", f"delta for {key[0]} {key[1]}, {what}")

    def delta(self, key: Key, start: Start, words: str, *, is_open: bool = True) -> Iterator[Event]:
        """Yield the events of text. `start`: the start of its block, if the wire has not sent one."""
        yield from self.misplaced_delta(key)
        if key not in self.blocks:
            yield self.start(key, start, is_open=is_open)
        yield Delta(self.blocks[key], words, self.frame)

    def stop(self, key: Key) -> Event:
        """Return the event that ends a block, or `Other` if no such block is open."""
        if key not in self.open:
            return Other(self.frame)
        del self.open[key]
        return Close(self.blocks[key], self.frame)

    def unfinished(self) -> Iterator[Event]:
        """Yield the violation of a reply that ends while a block is open."""
        if self.open:
            group, index = min(self.open)
            yield self.violation("unfinished-part", f"{group} {index} was never stopped")

    def ending(self, holder: Mapping[str, Json], usage: Json) -> Iterator[Event]:
        """Yield the finish reason in `holder`, and the token counts."""
        if reason := stated_reason(holder.get(self.finish_name)):
            yield Finish(0, reason, f"/{self.finish_name}", self.frame)
        yield from self.usage(usage)


class WireEvent(NamedTuple):
    """One event in the API's own form: its name, and its body as a JSON object."""

    kind: str
    body: Mapping[str, Json]


NOTHING = WireEvent("", {})


class BlockStreamWriter(ReplyWriter, ABC):
    """Writer of a stream of content blocks. Subclasses define how events of the API are read and written."""

    index_name: ClassVar[str] = "index"
    """The member of an event that names a block."""
    ending: ClassVar[tuple[type[Event], ...]] = (Finish,)
    """Events that the API puts into one document with the finish reason."""
    sends_empty_deltas: ClassVar[bool] = True
    """True if a delta without text is written. Anthropic sends one first for each call."""

    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}
        self._next: Counter[str] = Counter()
        self._wire: dict[Key, int] = {}  # the current block of a (group, index) of the wire
        self._altered = False
        self._open: int | None = None
        self._begun: set[int] = set()  # blocks whose start was written here
        self._left: dict[int, Literal["ended", "unclosed", "closed"]] = {}
        """Blocks after the open one: stopped here before the wire stopped them; followed by another one before they were
        stopped; stopped by the wire."""
        self._sent: set[int] = set()  # blocks of which an event has left
        self._sample: Frame | None = None
        self.is_aws: bool | None = None
        """True if the stream consists of AWS event stream messages; None before its first frame."""

    # Hooks for the API. The events of a hook name their block by `number`.

    def parse(self, frame: Frame) -> WireEvent:
        document = frame_document(frame)
        return WireEvent(text(document.get("type")) or "", document)

    def send(self, event: WireEvent) -> bytes:
        body = {"type": event.kind, **event.body} if event.kind else event.body
        return framed(body, event.kind or None)

    def group_of(self, start: Start) -> str:
        """Return the group that a block is numbered in; empty for a block without a number."""
        return "" if is_inside(start) else "block"

    def group_of_event(self, kind: str) -> str:
        return "block"

    @abstractmethod
    def start(self, start: Start, number: int, source: WireEvent) -> Iterator[WireEvent]:
        """Yield the events that start a block. `source`: the event that it was read from."""

    @abstractmethod
    def delta(self, start: Start, number: int, words: str, source: WireEvent) -> WireEvent: ...

    @abstractmethod
    def stop(self, start: Start, number: int, source: WireEvent) -> WireEvent: ...

    def about(self, kind: str, number: int, source: WireEvent, members: Mapping[str, Json]) -> WireEvent:
        """Return an event about a block, with all other members of its source if that is an event of the same kind."""
        return WireEvent(kind, {**only(source, kind), self.index_name: number, **members})

    @abstractmethod
    def finish(self, finish: Finish | None, source: WireEvent) -> WireEvent: ...

    def done(self, source: WireEvent) -> WireEvent | None:
        return None

    def with_reply_id(self, event: WireEvent, id_: str) -> WireEvent:
        return event

    # The writer itself.

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if self.is_aws is None:
            self.is_aws = looks_like_messages(frame.raw[:12]) is True
        if self._sample is None and frame.data is not None:
            self._sample = frame
        for event in events:
            if type(event) is Start and event.wire_index is not None and (group := self.group_of(event)):
                self._wire[group, event.wire_index] = event.block
        if same(events, out) and not self._needs_rewrite(out):
            self._note(out)
            return frame.raw
        self._mark_altered(events, out)
        made = list(self._rewritten(frame, events, out))
        return b"".join(made) if self.is_aws else with_other_lines(frame, made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._mark_altered((), out)
        return b"".join(self._rewritten(Frame(0, b"", None, None), (), out))

    def _mark_altered(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        """Record whether blocks were inserted or removed. From then on blocks are numbered here."""
        before, after = [{id(one) for one in some if isinstance(one, (Start, Close))} for some in (events, out)]
        self._altered = self._altered or before != after

    def _note(self, out: Sequence[Event]) -> None:
        """Record the blocks of a frame that is forwarded unchanged."""
        for event in out:
            if type(event) is Start:
                self._starts[event.block] = event
                self._sent.add(event.block)
                if not (group := self.group_of(event)):
                    continue
                place = self._next[group] if event.wire_index is None else event.wire_index
                self._numbers[event.block] = place
                self._next[group] = max(self._next[group], place + 1)
                if self._open is not None:
                    self._left[self._open] = "unclosed"
                self._open = event.block
            elif type(event) is Delta:
                self._sent.add(event.block)
            elif type(event) is Close:
                self._left[event.block] = "closed"
                self._open = None if self._open == event.block else self._open

    def _needs_rewrite(self, out: Sequence[Event]) -> bool:
        """Return True if a frame with unchanged events must be rewritten, because of earlier changes."""
        for event in out:
            if type(event) is Close and event.block in self._starts and event.block not in self._sent:
                return True  # a block stops of which no event has left
        return self._altered and any(map(self._is_moved, out))

    def _is_moved(self, event: Event) -> bool:
        """Return True if an event names a block that has another number now, or breaks the order of blocks."""
        match event:
            case Start():
                group = self.group_of(event)
                return group != "" and (self._open is not None or event.wire_index != self._next[group])
            case Delta() | Close() | CallUpdate() if event.block in self._numbers:
                moved = self._numbers[event.block] != self._starts[event.block].wire_index
                return moved or self._left.get(event.block) == "ended"
            case Finish() | Done():
                return self._open in self._begun  # the wire does not stop it
            case Other(frame=frame) if frame is not None and frame.data is not None:
                source = self.parse(frame)
                block = self._block_of(source)
                return block is not None and self._numbers.get(block) != source.body.get(self.index_name)
            case _:
                return False

    def _rewritten(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        for place, own, group in groups(frame, events, out):
            source = self.parse(place)
            unchanged = same(without_violations(own), without_violations(group))
            if source.body and unchanged and not self._needs_rewrite(group):
                self._note(group)
                yield self._resend(place, source)
            else:
                yield from self._events(place, source, own, group)

    def _events(self, frame: Frame, source: WireEvent, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        is_sent = False  # the document itself was sent
        for event in out:
            match event:
                case Start() if self.group_of(event):
                    yield from self._begin(event, source)
                case Delta():
                    yield from self._write_delta(event, source)
                case Close():
                    yield from self._close(event.block, source)
                case CallUpdate():
                    pass  # no event of these APIs names a block that has started
                case Done() if Done not in self.ending:
                    if (done := self.done(source)) is not None:
                        yield from self._end_open(NOTHING)
                        yield self.send(done)
                case Start() if event.kind != "opaque":
                    self._starts.setdefault(event.block, event)
                case StreamViolation() if without_violations(own) or not source.body:
                    pass
                case _ if is_sent:
                    pass
                case _ if isinstance(event, self.ending):
                    is_sent = True
                    yield from self._end_open(NOTHING)
                    yield self.send(self.finish(finish_of(out), source))
                case _:
                    is_sent = True
                    yield from self._document(frame, source, out)

    def _block_of(self, source: WireEvent) -> int | None:
        index = number(source.body.get(self.index_name))
        return None if index is None else self._wire.get((self.group_of_event(source.kind), index))

    def _resend(self, frame: Frame, source: WireEvent) -> bytes:
        """Return a document as it was written."""
        if self.is_aws and frame.raw:
            return frame.raw
        return framed(None, source.kind or frame.event, data=frame.data)

    def _document(self, frame: Frame, source: WireEvent, out: Sequence[Event]) -> Iterator[bytes]:
        """Yield a document that is no start, text or stop of a block, with the number that its block has now.

        Examples are usage, errors, signatures, citations and documents of unknown types.
        """
        if not source.body:
            if frame.raw and (frame.data is not None or self.is_aws):
                yield frame.raw
            return
        sent, block = source, self._block_of(source)
        if self._altered and block is not None:
            if block not in self._numbers:
                return  # its block was removed
            sent = sent._replace(body={**sent.body, self.index_name: self._numbers[block]})
        if (id_ := reply_id_of(out)) is not None:
            sent = self.with_reply_id(sent, id_)
        yield self._resend(frame, source) if sent is source else self.send(sent)

    def _begin(self, start: Start, source: WireEvent) -> Iterator[bytes]:
        if self._open is not None:
            self._left[self._open] = "ended"
            yield from self._end_open(NOTHING)
        self._starts.setdefault(start.block, start)
        group = self.group_of(start)
        self._numbers[start.block] = self._next[group]
        self._next[group] += 1
        self._open = start.block
        self._begun.add(start.block)
        for event in self.start(start, self._numbers[start.block], source if start.block < MADE else NOTHING):
            self._sent.add(start.block)
            yield self.send(event)

    def _write_delta(self, delta: Delta, source: WireEvent) -> Iterator[bytes]:
        start = self._starts.get(delta.block)
        if start is None:
            return
        group = self.group_of(start)
        # If another block was written in between, this block continues as a new one, unless the wire has not stopped it
        # yet, or no text is left. Text after the block's stop stays after it.
        if group and self._open != delta.block and self._left.get(delta.block) not in ("unclosed", "closed"):
            if not delta.text:
                return
            yield from self._begin(start._replace(input=None), NOTHING)
        if not (delta.text or (group and self.sends_empty_deltas)):
            return
        self._sent.add(delta.block)
        yield self.send(self.delta(start, self._numbers.get(delta.block, 0), delta.text, source))

    def _close(self, block: int, source: WireEvent) -> Iterator[bytes]:
        if self._open == block:
            yield from self._end_open(source)
        elif self._left.get(block) == "unclosed":
            yield self.send(self.stop(self._starts[block], self._numbers[block], source))
        self._left[block] = "closed"

    def _end_open(self, source: WireEvent) -> Iterator[bytes]:
        if self._open is None:
            return
        start, number_ = self._starts[self._open], self._numbers[self._open]
        if self._open not in self._sent:  # no other event shows that the block exists
            yield self.send(self.delta(start, number_, "", NOTHING))
        self._open = None
        yield self.send(self.stop(start, number_, source))


class BlockWholeWriter(BodyWriter):
    """Writer of a message with a list of content blocks."""

    finish_name: ClassVar[str]
    place: ClassVar[tuple[str, ...]] = ()
    """Names of the objects around the list, the outermost first."""

    @abstractmethod
    def block(self, start: Start, source: dict[str, Json], new_text: str) -> Json:
        """Return a content block with this text. `source`: the block that the start was read from."""

    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        changed = dict(document)
        if not same(block_events(events), block_events(out)):
            starts = [event for event in out if isinstance(event, Start)]
            holder = changed
            for name in self.place:
                holder[name] = holder = dict(mapping(holder.get(name)))
            holder["content"] = patched_entries(holder.get("content"), events, out, starts, self.block)
        if (finish := finish_of(out)) is not None:
            changed[self.finish_name] = finish.reason
        return changed


def is_inside(start: Start) -> bool:
    """Return True for an opaque part that is a delta of another block, see `BlockReader.misshapen_delta`."""
    return start.kind == start.form == "opaque"


def only(event: WireEvent, kind: str) -> Mapping[str, Json]:
    """Return the body of an event of this kind; empty for any other event."""
    return event.body if event.kind == kind else {}


def nested(event: Mapping[str, Json], *names: str) -> dict[str, Json]:
    """Return a nested object; empty if there is none."""
    found: Json = dict(event)
    for name in names:
        found = mapping(found).get(name)
    return mapping(found)
