"""Repair of a reply on its way to the client: bytes in, repaired bytes out, without I/O.

Frames wait in a queue, in wire order. The events of each frame go through the pipeline of rewriters, and the resulting
events are put beside their frame. Once no rewriter holds an event of the first frame in the queue, that frame is
written: its own bytes if its events are unchanged, else the bytes of the resulting events. So nothing is reordered, and
an event that no fix changes is sent byte for byte unchanged.

Most events hold one plain text delta. If the prefilter proves that no fix can begin in it, it leaves at once, and the
rewriters get it later.

A copy of all bytes that have not been sent is kept. If a rewriter fails, the waiting frames are sent unchanged and the
reply continues without rewriters. If reading or writing fails, or a limit is reached, the rest passes unchanged. In
every case each byte is sent once, either unchanged or as part of a repair.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from wirelint.apis import ReplyWriter
from wirelint.apis.traits import traits
from wirelint.apis.writing import same
from wirelint.engine import Session, internal
from wirelint.events import Delta, Event, Frame, StreamViolation
from wirelint.fix import AppliedFix, FixPolicy, RewriteContext
from wirelint.model import Request
from wirelint.rewrite.pipeline import Pipeline, PipelineError, context_of, is_clean, stages_of, without_counts
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.wire import Framing
from wirelint.wire.websocket import is_socket


@dataclass(slots=True, eq=False)
class Waiting:
    """Frame that has not been sent yet. `out`: the pipeline's events for it. Its first `sent` bytes have been sent."""

    frame: Frame
    events: Sequence[Event]
    out: list[Event] = field(default_factory=list)
    sent: int = 0


def place(events: Sequence[Event], queue: Sequence[Waiting]) -> None:
    """Put events beside the frames that they belong to. Events of frames that have left go to the last frame.

    Thousands of frames may wait for the end of a call, and all their events are then released at once.
    """
    last = queue[-1]
    homes: dict[int, Waiting] = {}
    for event in events:
        number = event.frame.number if event.frame is not None else last.frame.number
        # Events read with the last frame stay there: a violation may name an earlier frame.
        if number == last.frame.number or any(event is one for one in last.events):
            last.out.append(event)
            continue
        homes = homes or {waiting.frame.number: waiting for waiting in queue}
        home = homes.get(number, last)
        home.out.insert(_place_in(home, event) if home.out else 0, event)


def _place_in(home: Waiting, event: Event) -> int:
    """Return the position of an event among others of its frame. `out` may hold events that were read after it."""
    order = {id(one): number for number, one in enumerate(home.events)}
    own = order.get(id(event), len(order))
    return next((place for place, one in enumerate(home.out) if order.get(id(one), -1) > own), len(home.out))


def apart(events: Iterable[Event], queue: Sequence[Waiting]) -> tuple[list[Event], list[Event]]:
    """Return the events of waiting frames, and those of frames that have left, without events that have no frame."""
    waiting: list[Event] = []
    gone: list[Event] = []
    for event in events:
        if event.frame is not None:
            (waiting if queue and event.frame.number >= queue[0].frame.number else gone).append(event)
    return waiting, gone


def missing_end(raw: bytes, framing: Framing) -> bytes:
    """Return the line ends that a stream lacks (`event: pi`, `: bye`, `{"a":1}`) before another event may follow."""
    if not raw or framing not in ("events", "lines"):
        return b""
    if raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r") if framing == "events" else b"\n"):
        return b""
    return b"\n" if framing == "lines" or raw.endswith((b"\n", b"\r")) else b"\n\n"


LONGEST_HOLD = 30_000.0
"""Milliseconds for which text may be held back."""

_LONGEST_EVENT = 1 << 20
"""Most bytes of an incomplete event that are held back."""

_MOST_WAITING = 3 << 10
"""Most events that may wait. All of them are sent in one call, which takes up to 14 microseconds each and blocks the
proxy."""


class ReplyStream:
    """Repairs of one reply. Use it instead of `session.feed`; no method raises.

    `changed`: some of the returned bytes differ from the original. `notes` tell the user about fixes that were not
    made.
    """

    def __init__(
        self, session: Session, rules: Sequence[Rule], ledger: Ledger, permit: FixPolicy, request: Request | None
    ) -> None:
        self._session, self._rules, self._ledger, self._permit = session, rules, ledger, permit
        self._forwarded = request
        self._pipeline: Pipeline | None = None  # made with the writer when the first frame arrives
        self._writer: ReplyWriter | None = None
        self._idle = False  # the pipeline was made without rewriters
        self.faults: list[Finding] = []
        self.notes: list[str] = []
        self.repairs: list[AppliedFix] = []
        self._queue: deque[Waiting] = deque()
        self._late: list[Event] = []
        self._kept = bytearray()  # received bytes not sent yet: the queue's frames, and the beginning of the next one
        self._skip = 0  # bytes at the beginning of `_kept` that a flush sent before their frame was complete
        self.changed = self._raw = self._as_it_came = False
        self.holding: float | None = None  # time since which text is held (ms after the request)
        self.longest_hold = LONGEST_HOLD

    @classmethod
    def begin(
        cls,
        session: Session,
        rules: Sequence[Rule],
        ledger: Ledger,
        permit: FixPolicy,
        longest_hold: float = LONGEST_HOLD,
        request: Request | None = None,
    ) -> ReplyStream | None:
        """Return the stream for a reply whose head has arrived, or None if nothing may repair it.

        `request`: the one that the upstream answers, if it is not the client's own.
        """
        if not permit or not session.repairable:
            return None
        made = cls(session, rules, ledger, permit, request)
        made.longest_hold = longest_hold
        return made

    # --- bytes --------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes, at: float | None = None) -> list[bytes]:
        """Read bytes of the upstream, `at` ms after the request. Return the bytes for the client; no item is empty."""
        if not data:
            return []
        if self._raw:
            return self._pass_raw(data, at)
        self._kept += data
        return self._guarded(lambda out: self._read(data, at, out))

    def _read(self, data: bytes, at: float | None, out: list[bytes]) -> None:
        frames = self._session.frame(data, at)
        if self._session.unread:
            self._note(self._session.unread_because or "the reply is too large to be repaired")
            self._release(out)
            out += self._all_raw()
            return
        for frame in frames:
            self._take_next(frame, self._session.read(frame), out)
        if self._idle:
            out += self._all_raw()
        if self.holding is not None or self._kept:
            self._watch(at, out)

    def flush(self) -> list[bytes]:
        """Return all received bytes, because no more may arrive. Repairs of later bytes begin at the next frame."""
        return [] if self._raw else self._guarded(self._hand_out)

    def due(self, at: float) -> float | None:
        """Return the milliseconds until held text has to leave; None if nothing is held."""
        if self._raw or self.holding is None or not self._waits:
            return None
        return max(self.holding + self.longest_hold - at, 0.0)

    def tick(self, at: float) -> list[bytes]:
        """Return the bytes that have been held for too long. Call it while the upstream is silent."""
        return self._guarded(lambda out: self._watch(at, out) if self.due(at) is not None else None)

    def end(self) -> list[bytes]:
        """Return the rest of a reply whose HTTP body ended correctly; a missing terminator may be added."""
        return [] if self._raw else self._guarded(self._end)

    def _end(self, out: list[bytes]) -> None:
        read, last = self._session.close()
        whole = not (self._session.streamed or self._queue)
        if whole and is_clean(self._session, self._context, self._rules):
            out += self._all_raw()
            return
        for frame, events in read:
            self._take(frame, events)
        self._release(out, last)
        self._raw = True
        if self._pipeline is not None:
            self._pipeline.forget()

    def _guarded(self, step: Callable[[list[bytes]], None]) -> list[bytes]:
        """Return the bytes that a step adds to its argument. After a failure the rest of the reply passes unchanged."""
        out: list[bytes] = []
        try:
            step(out)
        except Exception as error:  # fail open
            self._tell("repairing the reply", error)
            out += self._all_raw()
        return out

    @cached_property
    def _context(self) -> RewriteContext:
        made = context_of(self._session, self._forwarded, self._ledger, self._permit)
        made.notes, made.repairs = self.notes, self.repairs
        return made

    def _make_pipeline(self) -> Pipeline:
        """Make the rewriters and the writer, once the framing of the reply is known."""
        session = self._session
        self._writer = session.api.reply_writer(streamed=session.streamed)
        on_socket = is_socket(session.url.partition(":")[0])  # its messages are read as lines
        framings = "whole", *traits(session.api.name).framings, *(("lines",) if on_socket else ())
        is_known = session.framing in framings
        if not is_known:
            form = f"a stream in a form that its API does not have ({session.framing})"
            self._note(f"the reply is {form}: it is forwarded unchanged")
        stages = stages_of(self._rules, self._context, self.faults) if is_known else ()
        self._idle = not stages
        request = self._context.exchange.request
        return Pipeline(stages, [tool.name for tool in request.tools] if request is not None else (), self._context)

    # --- frames -------------------------------------------------------------------------------------------------------

    def _take_next(self, frame: Frame, events: Sequence[Event], out: list[bytes]) -> None:
        if self._passes(events):
            if self._late:
                self._write_late(out)
            out.append(frame.raw)
            del self._kept[: len(frame.raw)]
            self.holding = None
            return
        self._take(frame, events)
        self._drain(out)
        if self._pipeline:
            self._pipeline.left(events, untouched=self._as_it_came and not self._queue)

    def _passes(self, events: Sequence[Event]) -> bool:
        """Return True if a frame leaves before the rewriters see it: one text delta in which no fix can begin, while
        nothing is held."""
        said = events if len(events) == 1 else without_counts(events)
        event, pipeline = said[0] if len(said) == 1 else None, self._pipeline
        if type(event) is not Delta or self._queue or self._skip or self._late or not pipeline:
            return False
        try:
            return pipeline.pass_by(event)
        except PipelineError as failure:
            self._drop_pipeline(failure)
            return True

    def _take(self, frame: Frame, events: Sequence[Event]) -> None:
        if self._pipeline is None:
            self._pipeline = self._make_pipeline()
        waiting = Waiting(frame, events, sent=self._skip)
        self._skip = 0
        self._queue.append(waiting)
        try:
            if not self._pipeline:
                waiting.out = list(events)
                return
            self._context.frame_events = events
            place(self._pipeline.push(events), self._queue)
        except PipelineError as failure:
            self._drop_pipeline(failure)

    def _drain(self, out: list[bytes]) -> None:
        """Write the first frames of the queue up to the first one of which a rewriter holds an event."""
        came_out = len(self._queue) == 1 and same(self._queue[0].events, self._queue[0].out)
        held = self._pipeline.held if self._pipeline is not None and not came_out else None
        ready = self._queue if held is None else itertools.takewhile(lambda one: one.frame.number < held, self._queue)
        self._write_all(tuple(ready), out)

    def _write_all(self, ready: Sequence[Waiting], out: list[bytes]) -> None:
        """Write the frames `ready`: all of them or, if writing one fails, none, because one repair may span several."""
        if self._late:
            self._write_late(out)
        writer = self._writer  # None before the first frame
        made = [(one, writer.write(one.frame, one.events, one.out)) for one in ready] if writer is not None else []
        left = 0
        for waiting, data in made:
            raw = waiting.frame.raw
            self._as_it_came = data is raw and not waiting.sent
            if waiting.sent:  # its beginning has been sent, so it cannot be replaced
                data = raw[waiting.sent :]
            elif data is not raw and data != raw:
                self.changed = True
            self._queue.popleft()
            left += len(raw)
            if data:
                out.append(data)
        del self._kept[:left]

    def _release(self, out: list[bytes], last: Sequence[Event] = ()) -> None:
        """Push `last` into the rewriters, release all events that they hold, and write all frames."""
        events: list[Event] = []
        if self._pipeline:
            try:
                events = [*self._pipeline.push(last), *self._pipeline.release()]
            except PipelineError as failure:
                self._drop_pipeline(failure)
        # Violations that only the end shows may name a frame, but belong to no bytes of it: they are not written.
        violations = {id(one) for one in last if isinstance(one, StreamViolation)}
        events = [event for event in events if id(event) not in violations]
        waiting, gone = apart(events, self._queue)
        if waiting:
            place(waiting, self._queue)
        before = self._queue[-1].frame.raw if self._queue else b""
        self._write_all(tuple(self._queue), out)
        self.holding = None
        closing = [*gone, *(event for event in events if event.frame is None)]  # the latter close the stream
        self._close(closing, out, out[-1] if out else before)

    def _watch(self, at: float | None, out: list[bytes]) -> None:
        """Release text that has been held for too long: by a rewriter, or because its event is incomplete."""
        at = round(at, 3) if at is not None else None  # as captures have it, for equal results offline
        if not self._waits:
            self.holding = None
        elif not self._queue and len(self._kept) - self._skip > _LONGEST_EVENT:
            self._note(f"an event of more than {_LONGEST_EVENT >> 20} MiB was forwarded unchanged")
            self._hand_out(out)
        elif len(self._queue) > _MOST_WAITING:
            self._note(f"more than {_MOST_WAITING} events waited for a repair; they were forwarded unchanged")
            self._hand_out(out)
        elif self.holding is None:
            self.holding = at
        elif at is not None and at - self.holding >= self.longest_hold:
            self._note(f"text was held for {(at - self.holding) / 1000:.0f} s and released unchanged")
            self._hand_out(out)

    @property
    def _waits(self) -> bool:
        """Return True if a client waits for kept bytes of a stream. Half of a whole body is useless to a client."""
        return bool(self._queue) or (self._session.streamed and len(self._kept) > self._skip)

    def _hand_out(self, out: list[bytes]) -> None:
        """Send all received bytes, including the beginning of an incomplete event."""
        self._release(out)
        if len(self._kept) > self._skip:
            out.append(bytes(self._kept[self._skip :]))
            self._skip = len(self._kept)

    # --- when something goes wrong ------------------------------------------------------------------------------------

    def _tell(self, culprit: str, error: Exception) -> None:
        fault = internal(culprit, error)
        if fault not in self.faults and len(self.faults) < 8:
            self.faults.append(fault)

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < 8:
            self.notes.append(note)

    def _pass_raw(self, data: bytes, at: float | None) -> list[bytes]:
        try:
            self._session.feed(data, at)
        except Exception as error:  # fail open: forward the bytes all the same
            self._tell("reading the reply", error)
        return [data]

    def _drop_pipeline(self, failure: PipelineError) -> None:
        """Continue without rewriters. Waiting frames are sent unchanged, and so are held events of earlier frames."""
        self._tell(f"the repair of {failure.rule}", failure.error)
        pipeline, self._pipeline = self._pipeline, Pipeline(())
        rescued = failure.rescued
        if pipeline is not None:
            try:
                rescued += pipeline.release()
            except PipelineError as again:
                rescued += again.rescued
        _, gone = apart(rescued, self._queue)
        self._late += [event for event in gone if event.frame is not failure.sent]
        for waiting in self._queue:
            waiting.out = list(waiting.events)

    def _write_late(self, out: list[bytes]) -> None:
        """Write the events of sent frames that the rewriters still held when they were dropped."""
        late, self._late = self._late, []
        try:
            self._close(late, out)
        except Exception as error:  # fail open: send the next bytes all the same
            self._tell("repairing the reply", error)

    def _close(self, late: Sequence[Event], out: list[bytes], before: bytes = b"") -> None:
        """Write events of no waiting frame. `before`: the bytes sent before them, which may lack a line end."""
        if late and self._writer is not None and (made := self._writer.close(late)):
            self.changed = True
            out.append(missing_end(before, self._session.framing) + made)

    def _all_raw(self) -> list[bytes]:
        """Return all kept bytes unchanged, and let all following bytes pass unchanged, too."""
        self._raw = True
        self._queue.clear()
        rest = bytes(self._kept[self._skip :])
        self._kept.clear()
        return [rest] if rest else []


# Repair of a whole reply in one call, with the same result as `ReplyStream`.


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A whole reply after its repair. `body` is the original object if nothing was changed."""

    body: bytes
    repairs: tuple[AppliedFix, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[Finding, ...] = ()


def rewrite_reply(
    session: Session,
    body: bytes,
    rules: Sequence[Rule],
    ledger: Ledger,
    permit: FixPolicy,
    *,
    complete: bool = True,
    chunks: Sequence[tuple[float, int]] = (),
    longest_hold: float = LONGEST_HOLD,
    request: Request | None = None,
) -> Rewritten:
    """Repair the body of a reply whose head the session has read. `complete`: the body ended as HTTP asks.

    `chunks` are the recorded arrivals, (milliseconds after the request, bytes): with them held text is released at the
    time at which it was released live. Afterwards the session has read the whole body.
    """
    rewriting = ReplyStream.begin(session, rules, ledger, permit, longest_hold, request)
    if rewriting is None:
        session.feed(body)
        return Rewritten(body)
    out: list[bytes] = []
    for data, at in arrived(body, chunks):
        out += rewriting.feed(data, at)
    out += rewriting.end() if complete else rewriting.flush()
    return Rewritten(
        b"".join(out) if rewriting.changed else body,
        tuple(rewriting.repairs) if rewriting.changed else (),
        tuple(rewriting.notes),
        tuple(rewriting.faults),
    )


def arrived(body: bytes, chunks: Sequence[tuple[float, int]]) -> Iterable[tuple[bytes, float | None]]:
    """Yield a body in the pieces in which it arrived, with their times; in one piece if the arrivals are unknown."""
    if not chunks or sum(size for _, size in chunks) != len(body):
        yield body, None
        return
    start = 0
    for at, size in chunks:
        yield body[start : start + size], at
        start += size
