"""A reply on its way to the client: read, repaired, written, while it passes.

Theory of operation. Frames wait in a queue, in wire order. The events of each go through the chain of rewriters; what
comes out is put down beside the frame that it belongs to. As soon as no rewriter holds anything of the first frame in the
queue any more, that frame is written: its own bytes where its events came out as they went in, else what they amount to
now. So nothing is reordered, and what no repair touches leaves byte for byte as it came.

Bytes that have come and are not yet handed out are kept beside all this. When a rewriter fails, what waits leaves as it
came and the reply goes on without rewriters; when reading or writing fails, or a limit is reached, the rest passes raw.
Whatever happens, each byte leaves once: as it came, or in the form of its repair.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wirelint.apis import ReplyWriter
from wirelint.apis.writing import same
from wirelint.conversation import Ledger
from wirelint.engine import Session, internal
from wirelint.events import Event, Frame
from wirelint.repair import Permit, Repair, Situation
from wirelint.rewrite.chain import Chain, ChainError
from wirelint.rule import Finding, Rule

LONGEST_HOLD = 30_000.0
"""Milliseconds for which text may be held back."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A frame that is not handed out yet. `out` is what has come out of the chain for it; `sent` bytes of it are gone."""

    frame: Frame
    events: Sequence[Event]
    out: list[Event] = field(default_factory=list)
    sent: int = 0


class Rewriting:
    """The repair of one reply. Use it in the place of `session.feed`; nothing here raises.

    `changed` says whether anything was handed out that differs from what came.
    """

    def __init__(
        self,
        session: Session,
        rules: Sequence[Rule],
        ledger: Ledger,
        permit: Permit,
        longest_hold: float = LONGEST_HOLD,
    ) -> None:
        self.faults: list[Finding] = []
        self.changed = False
        self._session = session
        self._rules = rules
        self._situation = Situation(session.head(), ledger, permit, streamed=False)
        self._situation.taken.update(_ids(session))
        self._chain: Chain | None = None
        self._writer: ReplyWriter | None = None
        self._queue: deque[_Waiting] = deque()
        self._kept = bytearray()  # what has come and is not handed out: the queue's frames, and what is no frame yet
        self._skip = 0  # bytes at the beginning of `_kept` that a flush handed out before their frame was complete
        self._raw = self._idle = False
        self._holding: float | None = None
        self._longest_hold = longest_hold

    @classmethod
    def begin(
        cls,
        session: Session,
        rules: Sequence[Rule],
        ledger: Ledger,
        permit: Permit,
        longest_hold: float = LONGEST_HOLD,
    ) -> Rewriting | None:
        """The repair of a reply whose head has come; None for replies that are passed on as they are."""
        head = session.head()
        if not permit or session.request is None or head.status is None or not 200 <= head.status < 300:
            return None
        return cls(session, rules, ledger, permit, longest_hold)

    @property
    def notes(self) -> list[str]:
        """What a person should know about repairs that were not made."""
        return self._situation.notes

    @property
    def repairs(self) -> Sequence[Repair]:
        return self._situation.repairs

    # --- bytes --------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes, at: float | None = None) -> list[bytes]:
        """What goes to the client now that these bytes have come, `at` milliseconds after the request. No item is empty."""
        if not data:
            return []
        if self._raw:
            return self._pass_raw(data, at)
        idle = not self._kept
        self._kept += data
        try:
            frames = self._session.frame(data, at)
            if idle and len(frames) == 1 and frames[0].raw is data:  # an event a chunk, as most servers send them
                out = self._take_alone(frames[0])
            else:
                if self._session.unread:
                    return self._give_up("the reply is too large to be repaired")
                out = []
                for frame in frames:
                    self._take(frame, self._session.read(frame))
                self._drain(out)
                if self._idle:
                    out += self._all_raw()
            if self._holding is not None or self._queue:
                self._watch(at, out)
            return out
        except Exception as error:  # fail open
            return self._fail(error)

    def flush(self, at: float | None = None) -> list[bytes]:
        """Hands out all that has come: there may be no more. What comes later is repaired again, from its next frame on."""
        if self._raw:
            return []
        try:
            out: list[bytes] = []
            self._release(out)
            rest = self._session_waiting()
            if len(rest) > self._skip:
                out.append(rest[self._skip :])
                self._skip = len(rest)
            return out
        except Exception as error:  # fail open
            return self._fail(error)

    def end(self) -> list[bytes]:
        """Hands out the rest of a reply that has ended as HTTP has it; a terminator that is missing may be added."""
        if self._raw:
            return []
        try:
            out: list[bytes] = []
            for frame in self._session.close_frames():
                self._take(frame, self._session.read(frame))
            self._release(out, self._session.close_events())
            self._raw = True
            return out
        except Exception as error:  # fail open
            return self._fail(error)

    def _session_waiting(self) -> bytes:
        """The bytes that are no frame yet."""
        return bytes(self._kept)  # the queue is empty

    # --- frames -------------------------------------------------------------------------------------------------------

    def _take_alone(self, frame: Frame) -> list[bytes]:
        """A frame that has all that is kept in it: it leaves at once unless a rewriter holds something of it."""
        events = self._session.read(frame)
        chain = self._chain
        if not chain:
            out: list[bytes] = []
            self._take(frame, events)
            self._drain(out)
            return out
        self._situation.frame_events = events
        try:
            made = chain.push(events)
        except ChainError as failure:
            self._queue.append(_Waiting(frame, events))
            self._drop_chain(failure)
            made = None
        if made is not None and same(events, made):
            assert self._writer is not None
            written = self._writer.write(frame, events, made)
            self.changed = self.changed or written is not frame.raw
            self._kept.clear()
            return [written]
        if made is not None:
            self._queue.append(_Waiting(frame, events, list(made)))
        out = []
        self._drain(out)
        return out

    def _take(self, frame: Frame, events: Sequence[Event]) -> None:
        if self._chain is None:
            self._situation.streamed = self._session.streamed
            self._chain = Chain.of(self._rules, self._situation, self.faults)
            self._writer = self._session.api.reply_writer(streamed=self._session.streamed)
            self._idle = not self._chain
        waiting = _Waiting(frame, events, sent=self._skip)
        self._skip = 0
        self._queue.append(waiting)
        if not self._chain:
            waiting.out = list(events)
            return
        self._situation.frame_events = events
        try:
            self._place(self._chain.push(events))
        except ChainError as failure:
            self._drop_chain(failure)

    def _place(self, events: Iterable[Event]) -> None:
        """Puts events down beside the frames that they belong to; those of frames that are gone beside the last one."""
        last = self._queue[-1]
        for event in events:
            number = event.frame.number if event.frame is not None else last.frame.number
            if number == last.frame.number:
                last.out.append(event)
                continue
            home = next((waiting for waiting in self._queue if waiting.frame.number == number), last)
            home.out.append(event)

    def _drain(self, out: list[bytes]) -> None:
        """Writes the frames that nothing is held of."""
        if not self._queue:
            return
        held = self._chain.held if self._chain is not None else None
        while self._queue and (held is None or self._queue[0].frame.number < held):
            self._write(self._queue.popleft(), out)

    def _write(self, waiting: _Waiting, out: list[bytes]) -> None:
        assert self._writer is not None
        raw = waiting.frame.raw
        made = self._writer.write(waiting.frame, waiting.events, waiting.out)
        if waiting.sent:  # its beginning has left already, and nothing can be said in its place
            made = raw[waiting.sent :]
        elif made is not raw and made != raw:
            self.changed = True
        del self._kept[: len(raw)]
        if made:
            out.append(made)

    def _release(self, out: list[bytes], last: Sequence[Event] = ()) -> None:
        """Has the rewriters hand on what they hold, after `last`, and writes all frames."""
        events: list[Event] = []
        if self._chain:
            try:
                events = [*self._chain.push(last), *self._chain.release()]
            except ChainError as failure:
                self._drop_chain(failure)
        first = self._queue[0].frame.number if self._queue else None
        waiting = [event for event in events if first is not None and event.frame and event.frame.number >= first]
        if waiting:
            self._place(waiting)
        while self._queue:
            self._write(self._queue.popleft(), out)
        self._holding = None
        # What was held of frames that are gone, then what closes the stream.
        late = [event for event in events if event.frame is not None and event not in waiting]
        late += [event for event in events if event.frame is None]
        if late and self._writer is not None and (made := self._writer.close(late)):
            self.changed = True
            out.append(made)

    def _watch(self, at: float | None, out: list[bytes]) -> None:
        """Releases what has been held for too long."""
        if not self._queue:
            self._holding = None
        elif self._holding is None:
            self._holding = at
        elif at is not None and at - self._holding > self._longest_hold:
            self._note(f"text was held for {(at - self._holding) / 1000:.0f} s and released as it came")
            self._release(out)

    # --- when something goes wrong ------------------------------------------------------------------------------------

    def _pass_raw(self, data: bytes, at: float | None) -> list[bytes]:
        try:
            self._session.feed(data, at)
        except Exception as error:  # fail open: the bytes go on, whatever reading them did
            self._tell("reading the reply", error)
        return [data]

    def _give_up(self, note: str) -> list[bytes]:
        self._note(note)
        out: list[bytes] = []
        self._release(out)
        return out + self._all_raw()

    def _drop_chain(self, failure: ChainError) -> None:
        """Goes on without rewriters: what waits leaves as it came, what the others held of frames gone by leaves too."""
        self._tell(f"the repair of {failure.rule}", failure.error)
        chain, self._chain = self._chain, Chain(())
        rescued: list[Event] = []
        if chain is not None:
            try:
                rescued = chain.release()
            except ChainError as again:
                rescued = list(again.args[0]) if again.args and isinstance(again.args[0], list) else []
        first = self._queue[0].frame.number if self._queue else 1 << 62
        late = [event for event in rescued if event.frame is not None and event.frame.number < first]
        for place, waiting in enumerate(self._queue):
            waiting.out = [*(late if place == 0 else ()), *waiting.events]

    def _fail(self, error: Exception) -> list[bytes]:
        self._tell("repairing the reply", error)
        return self._all_raw()

    def _all_raw(self) -> list[bytes]:
        """Everything that is kept, as it came; so is everything that follows."""
        self._raw = True
        self._queue.clear()
        rest = bytes(self._kept[self._skip :])
        self._kept.clear()
        return [rest] if rest else []

    def _tell(self, culprit: str, error: Exception) -> None:
        fault = internal(culprit, error)
        if fault not in self.faults and len(self.faults) < 8:
            self.faults.append(fault)

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < 8:
            self.notes.append(note)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A reply that was repaired in one go. `body` is the very object that came when nothing was changed."""

    body: bytes
    repairs: tuple[Repair, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[Finding, ...] = ()


def rewrite_reply(
    session: Session,
    body: bytes,
    rules: Sequence[Rule],
    ledger: Ledger,
    permit: Permit,
    *,
    complete: bool = True,
    chunks: Sequence[tuple[float, int]] = (),
    longest_hold: float = LONGEST_HOLD,
) -> Rewritten:
    """Repairs the body of a reply whose head the session has. `complete`: it ended as HTTP has it.

    `chunks` are its arrivals as they were recorded, (milliseconds after the request, bytes): with them the time for which
    text is held counts as it did live. The session has read the whole body afterwards, whatever came of the repair.
    """
    rewriting = Rewriting.begin(session, rules, ledger, permit, longest_hold)
    if rewriting is None:
        session.feed(body)
        return Rewritten(body)
    out: list[bytes] = []
    for data, at in _cut(body, chunks):
        out += rewriting.feed(data, at)
    out += rewriting.end() if complete else rewriting.flush()
    return Rewritten(
        b"".join(out) if rewriting.changed else body,
        tuple(rewriting.repairs) if rewriting.changed else (),
        tuple(rewriting.notes),
        tuple(rewriting.faults),
    )


def _cut(body: bytes, chunks: Sequence[tuple[float, int]]) -> Iterable[tuple[bytes, float | None]]:
    if sum(size for _, size in chunks) != len(body):
        yield body, None
        return
    start = 0
    for at, size in chunks:
        yield body[start : start + size], at
        start += size


def _ids(session: Session) -> Iterable[str]:
    for message in session.request.messages if session.request is not None else ():
        for call in message.calls:
            if call.id:
                yield call.id
