"""Rewriter that makes a stream well-formed.

Theory of operation. The reader reports a violation together with the events that it could read nevertheless. If the
rewriter drops the violation, the writer frames these events correctly; if it passes the violation on, the frame is
unchanged. Three violations need more. A document over several events (`data: {"id":"x",` and `data: "choices":[…]}`)
waits until the reader has joined it or has given up joining. All events after the end are dropped. A block that is
never closed shows only after the finish reason, which the vendor sends after the last block, so the finish reason waits
while blocks are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from wirelint.apis.traits import traits
from wirelint.apis.writing import frame_document
from wirelint.events import (
    CallUpdate,
    Close,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
)
from wirelint.fix import MOST_HELD, PassingRewriter, RewriteContext, first_frame
from wirelint.model import FaultKind
from wirelint.rule import Rule
from wirelint.text.escaping import excerpt

_REFRAMED: frozenset[FaultKind] = frozenset({
    "missing-blank-line", "leading-space", "doubled-field", "parted-name", "event-missing", "event-mismatch",
})  # fmt: skip
_BEFORE_PIECES = frozenset({"missing-blank-line", "broken-json", "doubled-field", "cut-event"})


class Framing(PassingRewriter):
    """Fixes violations of the kinds in `fixable`, which has the title of the record for the first one of each kind."""

    phase = 0
    patient = True

    def __init__(self, rule: Rule, context: RewriteContext, fixable: Mapping[FaultKind, str]) -> None:
        self._rule, self._context, self._fixable = rule, context, fixable
        self._recorded: set[FaultKind] = set()
        self._pieces: list[Event] = []
        """The pieces of a document over several events, and the events between them."""
        self._size = 0
        self._unjoined = False
        self._stop: list[Event] = []
        """The finish reason that waits for open blocks, and the events after it."""
        self._open: dict[int, int] = {}
        """Wire indexes of the open blocks, by block."""
        self._begun: set[int] = set()
        self._stopped: set[int] = set()
        self._late: int | None = None
        self._torn = self._undeclared = self._failed = False
        self._closes_blocks = traits(context.exchange.api).has_block_events

    @property
    def held(self) -> int | None:
        return first_frame((*self._pieces[:1], *self._stop[:1]))

    def push(self, event: Event) -> Iterable[Event]:
        late = event.frame is not None and (event.frame.number == self._late or isinstance(event, Done))
        if self._late is not None and late:
            return ()  # it follows the end, or ends the stream again
        if self._pieces:
            return self._join(event)
        if isinstance(event, (Other, StreamViolation)) and not self._is_dropped(event) and self._is_piece(event.frame):
            self._pieces = [event]
            self._size = len(event.frame.raw) if event.frame is not None else 0
            return ()
        if isinstance(event, StreamViolation):
            return self._violation(event)
        self._note(event)
        if not self._stop:
            if not (isinstance(event, Finish) and self._open and "unfinished-part" in self._fixable):
                return (event,)
            self._stop = [event]  # it waits while blocks are open
            return ()
        self._stop.append(event)
        if isinstance(event, (Done, Failure)) or not self._open:
            held, self._stop = self._stop, []
            return held
        return ()

    def release(self) -> Iterable[Event]:
        waiting = [*self._stop, *self._pieces]
        self._stop, self._pieces = [], []
        return waiting

    def _tell(self, violation: StreamViolation) -> None:
        if violation.kind not in self._recorded:
            self._recorded.add(violation.kind)
            title, before = self._fixable[violation.kind], excerpt(violation.detail)
            self._rule.record(self._context, "safe", title, at=violation, before=before)

    def _violations(self, kind: FaultKind, frame: Frame | None) -> bool:
        """Return True if the events being pushed hold a violation of this kind in a frame."""
        return any(
            isinstance(event, StreamViolation) and event.kind == kind and event.frame is frame
            for event in self._context.frame_events
        )

    def _note(self, event: Event) -> None:
        """Note which candidates have begun and ended, and which blocks are open."""
        match event:
            case Start():
                self._begun.add(event.choice)
                # Nothing closes the blocks that come with the head of a message.
                events = self._context.frame_events
                in_head = any(isinstance(one, ReplyMeta) and one.frame is event.frame for one in events)
                if self._closes_blocks and not self._undeclared and not in_head and event.wire_index is not None:
                    same = [block for block, index in self._open.items() if index == event.wire_index]
                    for block in same:  # begun again: the index now names the later block
                        del self._open[block]
                    self._open[event.block] = event.wire_index
            case CallUpdate() if self._closes_blocks and self._violations("restarted-part", event.frame):
                self._open[event.block] = -1
            case Close():
                self._open.pop(event.block, None)
            case Finish():
                self._begun.add(event.choice)
                self._stopped.add(event.choice)
            case Failure():
                self._failed = True
        self._undeclared = False

    @property
    def _finished(self) -> bool:
        return bool(self._stopped) and self._begun <= self._stopped and not self._failed

    # --- violations ---------------------------------------------------------------------------------------------------

    def _violation(self, violation: StreamViolation) -> Iterable[Event]:
        kind = violation.kind
        self._undeclared = kind == "undeclared-part" and violation.detail.startswith("delta")
        if kind == "broken-json":
            self._unjoined = False
        if kind == "after-end" and kind in self._fixable:
            self._tell(violation)
            self._late = violation.frame.number if violation.frame is not None else None
            return ()
        if self._is_dropped(violation):
            return ()
        if kind not in self._fixable:
            return (violation,)
        match kind:
            case "cut-event":
                return self._cut(violation)
            case "missing-end":
                if not self._finished:
                    return (violation,)
                if "cut-event" not in self._recorded:
                    self._tell(violation)
                return *self._closed(), Done(None)
            case "unfinished-part":
                if not self._open:
                    return (violation,)  # an item of a response, or a block whose start was lost
                self._tell(violation)
                return self._closed(violation.frame)
            case "event-missing" if violation.detail.endswith(" ping"):
                return (violation,)
            case "split-json":  # of pieces that did not wait
                self._unjoined = False
                return (violation,)
            case _ if kind in _REFRAMED and self._is_read(violation):
                if self._torn and self._violations("cut-event", violation.frame):
                    return (violation,)  # an event without its end is unchanged
                if self._violations("unknown-field", violation.frame):
                    return (violation,)  # so is one with a line that would be lost: `]`
                self._tell(violation)
                # Other rewriters must see the frame: its document may have members to change, such as the reply's id.
                given = (event.frame for event in self._context.frame_events if not isinstance(event, StreamViolation))
                numbers = [frame.number for frame in given if frame is not None]
                is_seen = violation.frame is None or violation.frame.number in numbers
                return () if is_seen else (Other(violation.frame),)
            case _:
                return (violation,)

    def _is_dropped(self, event: Event) -> bool:
        """Return True if an event follows the end of the stream, and is dropped for that."""
        return "after-end" in self._fixable and self._violations("after-end", event.frame)

    def _is_read(self, violation: StreamViolation) -> bool:
        """Return True if the frame holds a document. A frame without one cannot be written anew."""
        frame = violation.frame
        if frame is None or frame_document(frame):
            return frame is not None
        if violation.kind == "doubled-field":
            return True  # the reader reports it after it has read the document
        read = [event for event in self._context.frame_events if not isinstance(event, StreamViolation)]
        return any(not isinstance(event, Other) or event.frame is not frame for event in read)

    def _cut(self, violation: StreamViolation) -> Iterable[Event]:
        """Fix a last event without a blank line. Clients need it only if it holds the end of the reply."""
        events = self._context.frame_events
        stopped = {event.choice for event in events if isinstance(event, Finish)}
        begun = self._begun | {event.choice for event in events if isinstance(event, Start)}
        done = any(isinstance(event, Done) for event in events)
        if "missing-blank-line" in self._recorded and self._finished and done:
            return ()  # Anthropic's SDKs return the message at this event
        self._torn = not stopped or not begun <= self._stopped | stopped
        if self._torn:
            return (violation,)
        self._tell(violation)
        return ()

    # --- blocks that are never closed ---------------------------------------------------------------------------------

    def _closed(self, frame: Frame | None = None) -> Iterable[Event]:
        """Return the ends of the open blocks, and the waiting finish reason after them."""
        held, self._stop = self._stop, []
        place = held[0].frame if held else frame
        late = {event.block for event in held if isinstance(event, Start)}  # after the finish reason
        closes = [Close(block, place) for block in self._open if block not in late] if place is not None else []
        after = [Close(block, held[-1].frame) for block in self._open if block in late]
        self._open.clear()
        return [*closes, *held, *after]

    # --- documents over several events --------------------------------------------------------------------------------

    def _is_piece(self, frame: Frame | None) -> bool:
        """Return True if a frame begins a document that it does not end."""
        if self._unjoined or frame is None or frame.data is None or not frame.data.lstrip().startswith("{"):
            return False
        for event in self._context.frame_events:
            if not isinstance(event, (Other, StreamViolation)):
                return False
            if isinstance(event, StreamViolation) and event.kind in _BEFORE_PIECES:
                return False
        try:
            orjson.loads(frame.data)
        except orjson.JSONDecodeError:
            return True
        return False

    def _join(self, event: Event) -> Iterable[Event]:
        first = self._pieces[0].frame
        assert first is not None
        joins = isinstance(event, StreamViolation) and event.kind in ("split-json", "broken-json")
        if isinstance(event, StreamViolation) and joins and event.frame is not None:
            if event.frame is first:
                held, self._pieces = self._pieces, []
                if event.kind == "broken-json":  # they did not form a document
                    return [*(one for one in held if not self._is_dropped(one)), event]
                self._tell(event)
                # An event without data is no piece, but a comment between pieces.
                comments = [one for one in held if one.frame is None or one.frame.data is None]
                return [out for one in comments for out in self.push(one)]
            if event.frame.number < first.number:  # the document began earlier, in pieces that did not wait
                return [*self.release(), event]
        self._pieces.append(event)
        self._size += len(event.frame.raw) if event.frame is not None else 0
        if self._size > MOST_HELD:
            self._unjoined = True
            self._context.notes.append("a document over several events is too long to be joined")
        return self.release() if self._unjoined or event.frame is None else ()
