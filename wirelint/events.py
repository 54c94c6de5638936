"""The events of a reply, and the fold from events to a `Reply`.

Theory of operation. An API's reader turns frames (SSE events, or a whole body, which is a stream of one frame) into a
flat sequence of events. A *block* is one part of the reply: a run of text, of reasoning, one tool call. Readers number
blocks in order of first appearance and give each the pointer it has in the API's whole body. The fold assembles the
blocks exactly as a client of that API would, and records which event carried each stretch of text.

Events refer to their frames, so that a rewriter can pass on unchanged bytes; `frame=None` marks an event that a
rewriter made. The fold keeps no frame: its memory is the text of the reply plus two integers an event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from wirelint.model import (
    NOWHERE,
    Arguments,
    Choice,
    Fault,
    FaultKind,
    HostedCall,
    HostedResult,
    Json,
    Kind,
    Offsets,
    Opaque,
    Part,
    Piece,
    Reasoning,
    Refusal,
    Reply,
    Rpc,
    Text,
    ToolCall,
    ToolResult,
)


class Frame(NamedTuple):
    """One unit of a body as it was framed on the wire. `b"".join(f.raw for f in frames)` is the input, always.

    `event` is the SSE event name, `data` its data (lines joined by a line feed); both None for frames that dispatch
    nothing (comments, keep-alives, `retry`). `faults` are offences against the framing itself: (kind, evidence).
    """

    number: int
    raw: bytes
    event: str | None
    data: str | None
    faults: tuple[tuple[FaultKind, str], ...] = ()


class Start(NamedTuple):
    """A block begins. `wire_index` is the wire's own number of the block, `input` the value that an Anthropic start
    carried.

    `item` is the position within the frame of the element that the event was read from, if a frame can hold several
    (OpenAI's `tool_calls`, the content blocks of a whole message); -1 otherwise, and for events that a rewriter made.
    `given` is the argument text in the first event of an item of OpenAI's Responses, before any delta. `item_id` is a
    new id for such an item; only rewriters set it. `form` `built-in`: an item whose type is that of one tool, so that its
    arguments are written as an object, if at all. An opaque block of the `form` `opaque` is a delta of another block.
    """

    block: int
    kind: Kind
    pointer: str
    choice: int
    frame: Frame | None
    wire_index: int | None = None
    id: str | None = None
    name: str | None = None
    input: Json = None
    form: str = "function"
    item: int = -1
    given: str = ""
    item_id: str | None = None


class Delta(NamedTuple):
    """More text of a block: visible text, reasoning, or argument text."""

    block: int
    text: str
    frame: Frame | None
    item: int = -1


class CallUpdate(NamedTuple):
    """An id, a name or another index for a call that had begun."""

    block: int
    wire_index: int | None
    id: str | None
    name: str | None
    frame: Frame | None
    item: int = -1


class Close(NamedTuple):
    """The end of a block, if the API has such an event (Anthropic's `content_block_stop`). In other APIs the next start
    or stop ends the block."""

    block: int
    frame: Frame | None


class Finish(NamedTuple):
    """The finish reason of a candidate. `pointer`: its place in the whole body."""

    choice: int
    reason: str
    pointer: str
    frame: Frame | None


class ReplyMeta(NamedTuple):
    """Facts of the reply as a whole: its id and model."""

    id: str | None
    model: str | None
    frame: Frame | None


class Usage(NamedTuple):
    usage: dict[str, Json]
    frame: Frame | None


class Failure(NamedTuple):
    """The provider's error object, in a body or in the middle of a stream."""

    error: Json
    frame: Frame | None


class StreamViolation(NamedTuple):
    """The frame breaks the grammar of the API's stream."""

    kind: FaultKind
    detail: str
    frame: Frame | None


REPEATED: frozenset[FaultKind] = frozenset({"written-null", "empty-call", "misshapen-call"})
"""Violations by members without content (`"finish_reason": ""`) or in a wrong shape, which may occur in every event; each
is recorded once. If a rewriter drops the violation, the writer removes the members from the event, or writes them anew."""


class Done(NamedTuple):
    """The protocol's terminator."""

    frame: Frame | None


class Other(NamedTuple):
    """A frame without content of the reply's parts: a ping, a comment, an unknown event."""

    frame: Frame | None


Event: TypeAlias = (
    Start | Delta | CallUpdate | Close | Finish | ReplyMeta | Usage | Failure | StreamViolation | Done | Other
)


_PING = "(?:ping|keep[-_ ]?alive|heart[-_ ]?beat)"
_IS_PING = re.compile(_PING, re.IGNORECASE)
_OF_PING = re.compile(rf'"(?:type|event|method|object)"\s*:\s*"{_PING}"', re.IGNORECASE)
_LONGEST_PING = 300


def says_nothing(frame: Frame) -> bool:
    """Return True if a frame without events of the reply only keeps the connection open: a comment, a ping.

    A ping has an event name (`event: ping`) or a member that names it (`{"type": "ping"}`). All other frames count as
    content, understood or not.
    """
    if frame.data is None or not frame.data.strip(" \t\r\n{}[]"):
        return not frame.faults
    if frame.event is not None and _IS_PING.fullmatch(frame.event):
        return True
    return len(frame.data) <= _LONGEST_PING and _OF_PING.search(frame.data) is not None


_IDS_KEPT = 8
_NUMBERED = ("tool_call", "tool_result", "rpc")
"""Kinds of parts that record the event in which they began."""
_JOINED = 1024


@dataclass(slots=True)
class _Block:
    """A block that is still being assembled. Every 1024 `texts` are joined, since many short strings take several times
    the memory of one long string."""

    start: Start
    texts: list[str] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    events: Offsets = field(default_factory=Offsets)
    pieces: list[Piece] = field(default_factory=list)
    length: int = 0

    def part(self) -> Part | None:
        start = self.start
        if start.kind == "tool_call":
            start = start._replace(id=start.id or None, name=start.name or None)
        return part_of(start, "".join((*self.joined, *self.texts)), self.events.copy(), tuple(self.pieces))


class Fold:
    """Assembler of a reply from its events. Push every event and call `reply()`, which may be called at any time."""

    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed
        self.size = 0
        """Characters of all deltas so far."""
        self.first_token = False
        """True if text, reasoning or a call has arrived."""
        self._blocks: dict[int, _Block] = {}
        self._choices: dict[int, tuple[str, str, int | None]] = {}
        self._ids: dict[str, int] = {}
        self._model: str | None = None
        self._usage: dict[str, Json] | None = None
        self._error: Json = None
        self._error_event: int | None = None
        self.terminated = False
        """True if the protocol's terminator has been read."""
        self._events = 0
        self._faults: list[Fault] = []

    def push(self, event: Event) -> None:
        frame = event.frame
        number = frame.number if frame is not None else max(self._events - 1, 0)
        if number >= self._events:
            self._events = number + 1
        if isinstance(event, Delta):  # nearly all of them
            if event.text:
                self._extend(self._blocks[event.block], event.text, number)
            return
        match event:
            case Start():
                self._blocks[event.block] = block = _Block(event)
                self.first_token = self.first_token or event.kind != "opaque"
                if self.streamed and event.kind in _NUMBERED:
                    block.pieces.append(Piece(number, event.wire_index, event.id, event.name, 0))
            case CallUpdate(_, index, id_, name):
                block = self._blocks[event.block]
                block.start = block.start._replace(id=block.start.id or id_, name=block.start.name or name)
                block.pieces.append(Piece(number, index, id_, name, block.length))
            case Finish(choice, reason, pointer):
                self._choices[choice] = (reason, pointer, number if self.streamed else None)
            case ReplyMeta(id_, model):
                self._model = self._model or model
                if id_ and id_ not in self._ids and len(self._ids) < _IDS_KEPT:
                    self._ids[id_] = number
            case Usage(usage):
                self._usage = {**(self._usage or {}), **usage}
            case Failure(error):
                self._error = error
                self._error_event = number if self.streamed else None
            case StreamViolation(kind, detail):
                if kind not in REPEATED or not any(one.kind == kind and one.detail == detail for one in self._faults):
                    self._faults.append(Fault(kind, number, detail))
            case Done():
                self.terminated = True

    def reply(self) -> Reply:
        numbers = sorted({block.start.choice for block in self._blocks.values()} | set(self._choices))
        parts: dict[int, list[Part]] = {number: [] for number in numbers}
        for block in self._blocks.values():
            if (part := block.part()) is not None:
                parts[block.start.choice].append(part)
        no_finish = (None, "", None)
        choices = tuple([Choice(n, tuple(made), *self._choices.get(n, no_finish)) for n, made in parts.items()])
        stopped = bool(choices) and not [choice for choice in choices if not choice.finish_reason]
        return Reply(
            id=next(iter(self._ids), None),
            ids=tuple(self._ids.items()),
            error_event=self._error_event,
            model=self._model,
            choices=choices,
            usage=self._usage,
            error=self._error,
            streamed=self.streamed,
            finished=stopped or self.terminated or not self.streamed,
            terminated=self.terminated or not self.streamed,
            events=self._events,
            faults=tuple(self._faults),
        )

    def _extend(self, block: _Block, text: str, number: int) -> None:
        if self.streamed:
            block.events.add(block.length, number)
        self.first_token = True
        block.texts.append(text)
        block.length += len(text)
        self.size += len(text)
        if len(block.texts) == _JOINED:
            block.joined.append("".join(block.texts))
            block.texts.clear()


def part_of(start: Start, text: str, events: Offsets = NOWHERE, pieces: tuple[Piece, ...] = ()) -> Part | None:
    """Return the part that a block is, from its start, its whole text, and the events that carried them.

    None for text, reasoning and refusals without a character.
    """
    event = pieces[0].event if pieces else None
    match start.kind:
        case "text":
            return Text(text, start.pointer, events) if text else None
        case "reasoning" if text or start.form == "opaque":
            return Reasoning(text, start.pointer, events=events, opaque=not text)
        case "refusal":
            return Refusal(text, start.pointer) if text else None
        case "tool_call":
            initial = Arguments.of(start.input) if start.input is not None else None
            return ToolCall(
                id=start.id,
                name=start.name,
                arguments=Arguments(text) if text or initial is None else initial,
                pointer=start.pointer,
                form="custom" if start.form == "custom" else "legacy" if start.form == "legacy" else "function",
                start_input=initial if start.input not in ({}, "", []) else None,
                deltas=text,
                pieces=pieces,
                events=events,
            )
        case "hosted_call":
            return HostedCall(start.id, start.name, start.pointer)
        case "hosted_result":
            return HostedResult(start.id, start.pointer, start.name or "")
        case "tool_result":
            error = {"error": True, "ok": False}.get(start.form)
            return ToolResult(start.id, text, start.pointer, None, error, event)
        case "rpc":
            match start.form:
                case "request" | "notification" | "result" | "error":
                    return Rpc(start.form, start.id, start.name or "", start.input, start.pointer, event)
        case "opaque":
            return Opaque(start.name or "", start.pointer)
    return None
