"""Events of a stream that break its grammar, made well-formed.

Theory of operation. The reader gives an offence with the events that it could read all the same. An offence that is taken
out tells the writer to frame these events as they should be; one that is handed on leaves the frame as it is. Three faults
need more than that. A document over several events waits until the reader has joined it or given it up. Events after the
end go, whatever they are. A block that is never stopped shows itself after the stop reason, which the vendor sends after
the last block: the stop reason waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import ClassVar

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
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.model import FaultKind

_REFRAMED: frozenset[FaultKind] = frozenset({
    "missing-blank-line", "leading-space", "doubled-field", "parted-name", "event-missing", "event-mismatch",
})  # fmt: skip


class Framing:
    """Repairs the offences of `fixable` kinds. `told` hears of the first one of each kind."""

    phase: ClassVar[int] = 0
    patient: ClassVar[bool] = True

    def __init__(
        self, context: RewriteContext, fixable: Collection[FaultKind], told: Callable[[StreamViolation], None]
    ) -> None:
        self._situation = context
        self._fixable = fixable
        self._told = told
        self._known: set[FaultKind] = set()
        self._pieces: list[Event] = []
        """The pieces of a document over several events, and what stood between them."""
        self._size = 0
        self._unjoined = False
        self._stop: list[Event] = []
        """The stop reason that waits for open blocks, and what came after it."""
        self._open: dict[int, None] = {}
        self._begun: set[int] = set()
        self._stopped: set[int] = set()
        self._late: int | None = None
        self._torn = self._undeclared = self._failed = False
        self._closes_blocks = traits(context.exchange.api).blocks

    @property
    def held(self) -> int | None:
        numbers = [held[0].frame.number for held in (self._pieces, self._stop) if held and held[0].frame is not None]
        return min(numbers, default=None)

    def push(self, event: Event) -> Iterable[Event]:
        if self._late is not None and self._is_late(event):
            return ()
        if self._pieces:
            return self._join(event)
        if isinstance(event, (Other, StreamViolation)) and self._is_piece(event.frame):
            self._pieces = [event]
            self._size = len(event.frame.raw) if event.frame is not None else 0
            return ()
        if isinstance(event, StreamViolation):
            return self._offence(event)
        self._note(event)
        return self._close_in_time(event)

    def release(self) -> Iterable[Event]:
        waiting = [*self._stop, *self._pieces]
        self._stop, self._pieces = [], []
        return waiting

    def _is_late(self, event: Event) -> bool:
        """Whether an event belongs to what comes after the end, or ends it once more."""
        return event.frame is not None and (event.frame.number == self._late or isinstance(event, Done))

    def _tell(self, offence: StreamViolation) -> None:
        if offence.kind not in self._known:
            self._known.add(offence.kind)
            self._told(offence)

    def _note(self, event: Event) -> None:
        """Keeps the candidates that began and ended, and the blocks that are open."""
        match event:
            case Start():
                self._begun.add(event.choice)
                if self._closes_blocks and not self._undeclared and not self._in_head():
                    self._open[event.block] = None
            case CallUpdate() if self._closes_blocks and self._restarts(event.frame):
                self._open[event.block] = None
            case Close():
                self._open.pop(event.block, None)
            case Finish():
                self._begun.add(event.choice)
                self._stopped.add(event.choice)
            case Failure():
                self._failed = True
            case _:
                pass
        self._undeclared = False

    def _restarts(self, frame: Frame | None) -> bool:
        """Return True if a frame starts a call under the number of another one, which opens that block again."""
        offences = [event for event in self._situation.frame_events if isinstance(event, StreamViolation)]
        return any(one.kind == "restarted-part" and one.frame is frame for one in offences)

    def _in_head(self) -> bool:
        """Whether these are the blocks that a message began with, which nothing closes."""
        return any(isinstance(event, ReplyMeta) for event in self._situation.frame_events)

    @property
    def _finished(self) -> bool:
        return bool(self._stopped) and self._begun <= self._stopped and not self._failed

    # --- offences -----------------------------------------------------------------------------------------------------

    def _offence(self, offence: StreamViolation) -> Iterable[Event]:
        kind = offence.kind
        self._undeclared = kind == "undeclared-part" and offence.detail.startswith("delta")
        if kind == "broken-json":
            self._unjoined = False
        if kind not in self._fixable:
            return () if self._goes(offence) else (offence,)
        match kind:
            case "after-end":
                self._tell(offence)
                self._late = offence.frame.number if offence.frame is not None else None
                return ()
            case _ if self._goes(offence):
                return ()
            case "cut-event":
                return self._cut(offence)
            case "missing-end":
                return self._end(offence)
            case "unfinished-part":
                return self._unfinished(offence)
            case "event-missing" if offence.detail.endswith(" ping"):
                return (offence,)
            case "split-json":  # of pieces that did not wait
                self._unjoined = False
                return (offence,)
            case _ if kind in _REFRAMED and self._is_read(offence):
                self._tell(offence)
                return ()
            case _:
                return (offence,)

    def _goes(self, offence: Event) -> bool:
        """Return True if the event that an offence is about comes after the end of the stream, and is dropped for that."""
        late = [
            one for one in self._situation.frame_events if isinstance(one, StreamViolation) and one.kind == "after-end"
        ]
        return "after-end" in self._fixable and any(one.frame is offence.frame for one in late)

    def _is_read(self, offence: StreamViolation) -> bool:
        """Return True if the frame holds a document. What holds none cannot be framed anew: it leaves as it came."""
        frame = offence.frame
        if frame is None or frame_document(frame):
            return frame is not None
        if offence.kind == "doubled-field":
            return True  # a reader tells of it when it has read the document behind it
        told = [event for event in self._situation.frame_events if not isinstance(event, StreamViolation)]
        return any(not isinstance(event, Other) or event.frame is not frame for event in told)

    def _cut(self, offence: StreamViolation) -> Iterable[Event]:
        """The last event lacks its blank line: only where it says how the reply ends does a client miss it."""
        events = self._situation.frame_events
        stopped = {event.choice for event in events if isinstance(event, Finish)}
        begun = self._begun | {event.choice for event in events if isinstance(event, Start)}
        if "missing-blank-line" in self._known and self._finished and any(isinstance(event, Done) for event in events):
            return ()  # the last of many; Anthropic's SDKs give the message out when this one comes
        self._torn = not stopped or not begun <= self._stopped | stopped
        if self._torn:
            return (offence,)
        self._tell(offence)
        return ()

    def _end(self, offence: StreamViolation) -> Iterable[Event]:
        if self._torn or not self._finished:
            return (offence,)
        if "cut-event" not in self._known:
            self._tell(offence)
        return *self._closed(), Done(None)

    def _unfinished(self, offence: StreamViolation) -> Iterable[Event]:
        if not self._open:
            return (offence,)  # nothing that can be stopped: an item of a response, a block whose start was lost
        self._tell(offence)
        return self._closed(offence.frame)

    # --- blocks that are never stopped --------------------------------------------------------------------------------

    def _close_in_time(self, event: Event) -> Iterable[Event]:
        """Lets a stop reason wait while blocks are open, where the API closes blocks."""
        if not self._stop:
            if not (isinstance(event, Finish) and self._open and "unfinished-part" in self._fixable):
                return (event,)
            self._stop = [event]
            return ()
        self._stop.append(event)
        if isinstance(event, (Done, Failure)) or not self._open:
            held, self._stop = self._stop, []
            return held
        return ()

    def _closed(self, frame: Frame | None = None) -> Iterable[Event]:
        """The open blocks closed, before the stop reason that waits."""
        held, self._stop = self._stop, []
        place = held[0].frame if held else frame
        closes: list[Event] = [Close(block, place) for block in self._open] if place is not None else []
        self._open.clear()
        return [*closes, *held]

    # --- documents over several events --------------------------------------------------------------------------------

    def _is_piece(self, frame: Frame | None) -> bool:
        """Whether a frame begins a document that it does not end."""
        if self._unjoined or frame is None or frame.data is None or not frame.data.lstrip().startswith("{"):
            return False
        known = {"missing-blank-line", "broken-json", "doubled-field", "cut-event"}
        for event in self._situation.frame_events:
            if not isinstance(event, (Other, StreamViolation)) or (
                isinstance(event, StreamViolation) and event.kind in known
            ):
                return False
        try:
            orjson.loads(frame.data)
        except orjson.JSONDecodeError:
            return True
        return False

    def _join(self, event: Event) -> Iterable[Event]:
        first = self._pieces[0].frame
        assert first is not None
        if (
            isinstance(event, StreamViolation)
            and event.kind in ("split-json", "broken-json")
            and event.frame is not None
        ):
            if event.frame is first:
                return self._joined(event)
            if event.frame.number < first.number:  # the document began before, in what did not wait
                return [*self.release(), event]
        self._pieces.append(event)
        self._size += len(event.frame.raw) if event.frame is not None else 0
        if self._size > MOST_HELD:
            self._unjoined = True
            self._situation.notes.append("a document over several events is too long to be joined")
        return self.release() if self._unjoined or event.frame is None else ()

    def _joined(self, offence: StreamViolation) -> Iterable[Event]:
        """Drops the pieces of a document that was joined; gives back those that never made one."""
        held, self._pieces = self._pieces, []
        if offence.kind == "broken-json":
            return [*(event for event in held if not self._goes(event)), offence]
        self._tell(offence)
        out: list[Event] = []
        for event in held:
            if not _is_part(event):
                out += self.push(event)
        return out


def _is_part(event: Event) -> bool:
    """Whether what waited is a piece of the document, or an offence of one, and no comment."""
    return event.frame is not None and event.frame.data is not None
