"""A reply on its way to the client: read, repaired, written, while it passes.

Theory of operation. Frames wait in a queue, in wire order. The events of each go through the chain of rewriters; what
comes out is put down beside the frame that it belongs to. As soon as no rewriter holds anything of the first frame in the
queue any more, that frame is written: its own bytes where its events came out as they went in, else what they amount to
now. So nothing is reordered, and what no repair touches leaves byte for byte as it came.

Bytes that have come and are not yet handed out are kept beside all this. When a rewriter fails, what waits leaves as it
came and the reply goes on without rewriters; when reading or writing fails, or a limit is reached, the rest passes raw.
Whatever happens, each byte leaves once: as it came, or in the form of its repair. What needs no look leaves before it is
read (`unread`); that is done before anything else is.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

from wirelint.apis.writing import same
from wirelint.engine import Session
from wirelint.events import Delta, Event, Frame, StreamViolation
from wirelint.fix import FixPolicy
from wirelint.model import Request
from wirelint.rewrite.frame_queue import Waiting, apart, missing_end, place
from wirelint.rewrite.pipeline import Chain, ChainError
from wirelint.rewrite.pipeline_factory import PipelineFactory
from wirelint.rewrite.unread import Passing, Unread
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

LONGEST_HOLD = 30_000.0
"""Milliseconds for which text may be held back."""

_LONGEST_EVENT = 1 << 20
"""Bytes of one event that are waited for."""


class ReplyStream:
    """The repair of one reply. Use it in the place of `session.feed`; nothing here raises.

    `changed` says whether anything was handed out that differs from what came, `notes` what a person should know about
    repairs that were not made.
    """

    def __init__(
        self,
        session: Session,
        rules: Sequence[Rule],
        ledger: Ledger,
        permit: FixPolicy,
        longest_hold: float = LONGEST_HOLD,
        request: Request | None = None,
    ) -> None:
        self.making = making = PipelineFactory(session, rules, ledger, permit, request)  # what it is made with
        self.faults, self.notes, self.repairs = making.faults, making.notes, making.repairs
        self._session = session
        self._chain: Chain | None = None
        self._queue: deque[Waiting] = deque()
        self._late: list[Event] = []
        self._kept = bytearray()  # what has come and is not handed out: the queue's frames, and what is no frame yet
        self._skip = 0  # bytes at the beginning of `_kept` that a flush handed out before their frame was complete
        self._unread = Unread(session)
        self.changed = self._raw = self._as_it_came = False
        self.holding: float | None = None  # since when anything is held (ms after the request)
        self.longest_hold = longest_hold

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

        `request`: see `PipelineFactory`.
        """
        if not permit or not session.repairable:
            return None
        return cls(session, rules, ledger, permit, longest_hold, request)

    # --- bytes --------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes, at: float | None = None) -> list[bytes]:
        """What goes to the client now that these bytes have come, `at` milliseconds after the request. No item is empty."""
        if not data:
            return []
        if self._raw:
            return self._pass_raw(data, at)
        out: list[bytes] = []
        taken = False
        try:
            chain = self._chain
            if chain is not None and not (self._kept or self._late):
                if self._unread.try_fast_path(data, at, chain):
                    return [data]
                if self._glance(data, at, chain, out):
                    return out
            self._kept += data
            taken = True
            self._catch_up()
            frames = self._session.frame(data, at)
            if self._session.unread:
                return self._give_up(self._session.unread_because or "the reply is too large to be repaired", out)
            for frame in frames:
                self._take_next(frame, self._session.read(frame), out)
            if self.making.idle:
                out += self._all_raw()
            if self.holding is not None or self._kept or self._unread.waiting:
                self._watch(at, out)
            return out
        except Exception as error:  # fail open
            passing = [one.data for one in self._unread.waiting]
            if not taken and not any(one is data for one in (*out, *passing)):
                self._kept += data
            return out + self._fail(error)

    def flush(self, at: float | None = None) -> list[bytes]:
        """Hands out all that has come: there may be no more. What comes later is repaired again, from its next frame on."""
        if self._raw:
            return []
        out: list[bytes] = []
        try:
            self._settle(out)
            self._hand_out(out)
            return out
        except Exception as error:  # fail open
            return out + self._fail(error)

    def due(self, at: float) -> float | None:
        """Milliseconds until what is held has to leave; None when nothing is held."""
        if self._raw or self.holding is None or not self._waits:
            return None
        return max(self.holding + self.longest_hold - at, 0.0)

    def tick(self, at: float) -> list[bytes]:
        """What has to leave now, if nothing has come for so long."""
        out: list[bytes] = []
        try:
            if self.due(at) is not None:
                self._watch(at, out)
            return out
        except Exception as error:  # fail open
            return out + self._fail(error)

    def end(self) -> list[bytes]:
        """Hands out the rest of a reply that has ended as HTTP has it; a terminator that is missing may be added."""
        if self._raw:
            return []
        out: list[bytes] = []
        try:
            self._settle(out)
            read = [(frame, self._session.read(frame)) for frame in self._session.close_frames()]
            last = self._session.close_events()
            said = itertools.chain(*(events for _, events in read), last)
            if not (self._session.streamed or self._queue) and self.making.is_needless(said):
                return self._all_raw()
            for frame, events in read:
                self._take(frame, events)
            chain = self._chain
            if last or chain is None or chain.asleep is None:
                self._release(out, last)
            self._raw = True
            if chain is not None:
                chain.forget()
            return out
        except Exception as error:  # fail open
            return out + self._fail(error)

    # --- frames -------------------------------------------------------------------------------------------------------

    def _glance(self, data: bytes, at: float | None, chain: Chain, out: list[bytes]) -> bool:
        """Return True if bytes are seen to say nothing but text that passes by, or that waits for more of it, unread."""
        seen = self._unread.look(data, at)
        if seen is None or not self._let_by(seen, chain, out):
            return False
        if self._unread.waiting:
            self._watch(at, out)
        if self._unread.full:
            self.catch_up()
        return True

    def _passes_by(self, frame: Frame, events: Sequence[Event], out: list[bytes]) -> bool:
        """Return True if a frame could leave at once, or waits for more of its text, since nothing else waits."""
        event = events[0] if len(events) == 1 else None
        if type(event) is not Delta or self._queue or self._skip or self._chain is None:
            return False
        if not self._let_by(Passing(frame.raw, None, event.block, event.text, event), self._chain, out):
            return False
        del self._kept[: len(frame.raw)]
        return True

    def _let_by(self, seen: Passing, chain: Chain, out: list[bytes]) -> bool:
        try:
            ready = self._unread.passes(seen, chain)
        except ChainError as failure:
            self._drop_chain(failure)
            self._write_late(out)
            ready = [one.data for one in self._unread.settle()]
        if ready:
            out += ready
            self.holding = None
        return ready is not None

    def _take_next(self, frame: Frame, events: Sequence[Event], out: list[bytes]) -> None:
        if self._passes_by(frame, events, out) or self._is_plain(frame, events, out):
            return
        self._settle(out)
        self._go_through(frame, events, out)

    def _is_plain(self, frame: Frame, events: Sequence[Event], out: list[bytes]) -> bool:
        """Whether a frame leaves at once, with text that waits for more of it, since it is nothing to any rewriter."""
        chain = self._chain = self._chain if self._chain is not None else self.making.chain()
        if chain.asleep is None or self._queue or self._skip:
            return False
        waiting = [one.event for one in self._unread.waiting if one.event is not None]
        if not chain.sleeps_through(frame, events, waiting):
            return False
        out += [one.data for one in self._unread.settle()]
        out.append(frame.raw)
        del self._kept[: len(frame.raw)]
        self.holding = None
        return True

    def _go_through(self, frame: Frame, events: Sequence[Event], out: list[bytes]) -> None:
        self._take(frame, events)
        self._drain(out)
        if self._chain:
            self._chain.left(events, untouched=self._as_it_came and not self._queue)

    def _settle(self, out: list[bytes]) -> None:
        """Puts text that waits for more through the rewriters, before anything else is."""
        self._catch_up()
        waiting = self._unread.settle()
        self._kept[:0] = b"".join(one.data for one in waiting)
        for one in waiting:
            if one.event is not None and one.event.frame is not None:
                self._go_through(one.event.frame, [one.event], out)

    def catch_up(self) -> None:
        """Reads what has left already. To be asked for before the session is asked what it has read."""
        try:
            self._catch_up()
        except Exception as error:  # fail open: all that is concerned has left
            self.making.tell("reading the reply", error)
            self._raw = True

    def _catch_up(self) -> None:
        text = self._unread.read() if self._unread else None
        try:
            if text is not None and self._chain:
                self._chain.take_later(text)
        except ChainError as failure:
            self._drop_chain(failure)
        if self._unread.waiting:
            self._unread.read_waiting()

    def _take(self, frame: Frame, events: Sequence[Event]) -> None:
        chain = self._chain = self._chain if self._chain is not None else self.making.chain()
        waiting = Waiting(frame, events, sent=self._skip)
        self._skip = 0
        self._queue.append(waiting)
        try:
            chain.wake()
            if not chain:
                waiting.out = list(events)
                return
            self.making.context.frame_events = events
            place(chain.push(events), self._queue)
        except ChainError as failure:
            self._drop_chain(failure)

    def _drain(self, out: list[bytes]) -> None:
        """Writes the frames that nothing is held of."""
        if not self._queue:
            return
        came_out = len(self._queue) == 1 and same(self._queue[0].events, self._queue[0].out)
        held = self._chain.held if self._chain is not None and not came_out else None
        ready = itertools.takewhile(lambda one: held is None or one.frame.number < held, self._queue)
        self._write_all(tuple(ready), out)

    def _write_all(self, ready: Sequence[Waiting], out: list[bytes]) -> None:
        """Writes the first frames of the queue: all of them or, when that fails, none. One repair may span several."""
        if self._late:
            self._write_late(out)
        made = [(waiting, self.making.write(waiting)) for waiting in ready]
        for waiting, data in made:
            raw = waiting.frame.raw
            self._as_it_came = data is raw and not waiting.sent
            if waiting.sent:  # its beginning has left already, and nothing can be said in its place
                data = raw[waiting.sent :]
            elif data is not raw and data != raw:
                self.changed = True
            self._queue.popleft()
            del self._kept[: len(raw)]
            out += [data] if data else []

    def _release(self, out: list[bytes], last: Sequence[Event] = ()) -> None:
        """Has the rewriters hand on what they hold, after `last`, and writes all frames."""
        self._settle(out)
        events: list[Event] = []
        if self._chain:
            try:
                if last:
                    self._chain.wake()
                events = [*self._chain.push(last), *self._chain.release()]
            except ChainError as failure:
                self._drop_chain(failure)
        # Offences that only the end shows may name a frame, but none of them was read with it: there is nothing to write.
        events = [
            event for event in events if not any(event is one for one in last if isinstance(one, StreamViolation))
        ]
        waiting, gone = apart(events, self._queue)
        if waiting:
            place(waiting, self._queue)
        before = self._queue[-1].frame.raw if self._queue else b""
        self._write_all(tuple(self._queue), out)
        self.holding = None
        closing = [*gone, *(event for event in events if event.frame is None)]  # the latter close the stream
        self._close(closing, out, out[-1] if out else before)

    def _watch(self, at: float | None, out: list[bytes]) -> None:
        """Releases what has been held for too long: by a rewriter, or because its event goes on and on."""
        at = round(at, 3) if at is not None else None  # as it is recorded: then it is the same time offline
        if not self._waits:
            self.holding = None
        elif not self._queue and len(self._kept) - self._skip > _LONGEST_EVENT:
            self.making.note(f"an event of more than {_LONGEST_EVENT >> 20} MiB was passed on as it came")
            self._hand_out(out)
        elif self.holding is None:
            self.holding = at
        elif at is not None and at - self.holding >= self.longest_hold:
            self.making.note(f"text was held for {(at - self.holding) / 1000:.0f} s and released as it came")
            self._hand_out(out)

    @property
    def _waits(self) -> bool:
        """Return True if anything of a stream is kept that a client waits for. A whole body is of no use before its end."""
        return bool(self._queue or self._unread.waiting) or (self._session.streamed and len(self._kept) > self._skip)

    def _hand_out(self, out: list[bytes]) -> None:
        """All that has come, with the beginning of an event that is not complete."""
        self._release(out)
        if len(self._kept) > self._skip:
            out.append(bytes(self._kept[self._skip :]))
            self._skip = len(self._kept)

    # --- when something goes wrong ------------------------------------------------------------------------------------

    def _pass_raw(self, data: bytes, at: float | None) -> list[bytes]:
        try:
            self._session.feed(data, at)
        except Exception as error:  # fail open: the bytes go on, whatever reading them did
            self.making.tell("reading the reply", error)
        return [data]

    def _give_up(self, note: str, out: list[bytes]) -> list[bytes]:
        self.making.note(note)
        self._release(out)
        return out + self._all_raw()

    def _drop_chain(self, failure: ChainError) -> None:
        """Goes on without rewriters: what waits leaves as it came, what the others held of frames gone by leaves too."""
        self.making.tell(f"the repair of {failure.rule}", failure.error)
        chain, self._chain = self._chain, Chain(())
        rescued = failure.rescued
        if chain is not None:
            try:
                rescued += chain.release()
            except ChainError as again:
                rescued += again.rescued
        _, gone = apart(rescued, self._queue)
        self._late += [event for event in gone if event.frame is not failure.sent]
        for waiting in self._queue:
            waiting.out = list(waiting.events)

    def _write_late(self, out: list[bytes]) -> None:
        """What the rewriters had taken out of frames that are gone, when they were dropped."""
        late, self._late = self._late, []
        try:
            self._close(late, out)
        except Exception as error:  # fail open: what comes now does not wait for it
            self.making.tell("repairing the reply", error)

    def _close(self, late: Sequence[Event], out: list[bytes], before: bytes = b"") -> None:
        """Writes events of no frame that waits. `before`: what leaves last before them, which may lack its line end."""
        if late and self.making.writer is not None and (made := self.making.writer.close(late)):
            self.changed = True
            out.append(missing_end(before, self._session.framing) + made)

    def _fail(self, error: Exception) -> list[bytes]:
        self.making.tell("repairing the reply", error)
        return self._all_raw()

    def _all_raw(self) -> list[bytes]:
        """Everything that is kept, as it came; so is everything that follows."""
        self._raw = True
        self._queue.clear()
        rest = b"".join([*(one.data for one in self._unread.settle()), self._kept[self._skip :]])
        self._kept.clear()
        return [rest] if rest else []
