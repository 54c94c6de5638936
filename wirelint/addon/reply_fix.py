"""Fixing a streamed reply: bytes of the upstream in, bytes for the client out.

`ReplyFixer` is shared by HTTP streams and WebSockets, `HttpReplyFixer` is the stream callable of HTTP (see
`recorder.Tee` for what mitmproxy expects of one). It is called only when bytes arrive. Held text leaves in time, and
when the upstream dies, through `mitm_compat`. Without that, overdue text leaves with the next byte, and text held when
the reply ends in `error` is lost; the exchange then says so.

The body is decoded on its way because the head has to declare its coding before any of the body is known. A damaged
coding therefore cannot be passed on: the decoded part is delivered and the connection is broken. A decompression bomb
ends likewise.

`stream(b"")` in HTTP/1 is the end of the reply, unless only the close of the connection marks the end. HTTP/2 calls it
for every empty DATA frame; without `mitm_compat`, which drops those, the call only means that held text has to leave.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

from mitmproxy import http

from wirelint.addon import log
from wirelint.addon.http_headers import HEADER, add_field, has_known_end, headers_of, make_open_ended
from wirelint.addon.log import Failures
from wirelint.addon.mitm_compat import attach
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis.unknown import is_text
from wirelint.capture.record import Headers, Sent
from wirelint.rewrite import ReplyStream
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decoder


class Held(Protocol):
    """Text or messages held back from a client. No method raises."""

    def due(self) -> float | None:
        """Return the seconds until `release` has to be called; None if nothing is held."""

    def release(self) -> Iterable[bytes]:
        """Return the bytes whose time is over."""

    def flush(self) -> Iterable[bytes]:
        """Return all held bytes, because no more input will arrive."""


class HeldMessages(Held, Protocol):
    """WebSocket messages held back from a client."""

    def take_ready(self) -> Iterable[bytes]:
        """Return the messages to send before the current one."""


class ReplyFixer(ABC):
    """Fixer of one reply in transit. No method raises.

    Received and sent bytes are compared: up to the first difference the recorder's copy is both, from there on the
    sent bytes are kept as well. `end_text` names the end of the transport in notes."""

    end_text: ClassVar[str]

    def __init__(self, recorder: ExchangeRecorder, reply_stream: ReplyStream, failures: Failures) -> None:
        self._recorder, self._failures = recorder, failures
        self._reply_stream: ReplyStream | None = reply_stream
        self._pending: list[bytes] = []  # what is to leave with what leaves next
        self._unchanged = 0
        self._other: bytearray | None = None
        self._settled = False

    @abstractmethod
    def headers(self) -> Headers:
        """Return the headers that the client received."""

    def catch_up(self) -> None:
        """Parse postponed bytes."""
        if self._reply_stream is not None:
            self._reply_stream.catch_up()

    def due(self) -> float | None:
        """Return the seconds until held text has to leave; None if nothing is held."""
        if self._pending:
            return 0.0
        reply_stream = self._reply_stream
        if reply_stream is None or reply_stream.holding is None:
            return None
        try:
            left = reply_stream.due(self._recorder.now())
        except Exception as error:  # fail open: it leaves with what comes next
            self._failures.add(self._recorder, "repairing the reply", error)
            return None
        return left / 1000 if left is not None else None

    def release(self) -> list[bytes]:
        """Return the text that has to leave while the upstream is silent."""
        return self._release(lambda reply_stream: reply_stream.tick(self._recorder.now()))

    def flush(self) -> list[bytes]:
        """Return all held text because the upstream is gone."""
        return self._release(lambda reply_stream: reply_stream.flush(self._recorder.now()))

    def _release(self, ask: Callable[[ReplyStream], list[bytes]]) -> list[bytes]:
        reply_stream = self._reply_stream
        if self._settled:
            return []
        if reply_stream is None:
            return self._note([])
        try:
            return self._note(ask(reply_stream))
        except Exception as error:  # fail open
            return self._give_up(b"", error)

    def _feed(self, data: bytes) -> list[bytes]:
        """Return the bytes for the client after `data` arrived. Raises whatever the fix raises."""
        recorder, reply_stream = self._recorder, self._reply_stream
        try:
            recorder.store(data)
        except Exception as error:  # fail open: the repair needs no copy
            self._failures.fail(recorder, "reading the reply", error)
        if reply_stream is None:
            return self._note([data])
        at = (recorder.clock() - recorder.clock_start) * 1000
        out = reply_stream.feed(data, at)
        recorder.check_text_limit()
        if len(out) == 1 and out[0] is data and not (self._pending or reply_stream.changed) and self._other is None:
            self._unchanged += len(data)
            return out
        return self._note(out)

    def _note(self, out: list[bytes]) -> list[bytes]:
        """Add pending bytes to the output and account for all of it."""
        if self._pending:
            out, self._pending = [*self._pending, *out], []
        try:
            self._count_output(out)
        except Exception as error:  # fail open: it is on its way whatever is known of it
            self._failures.fail(self._recorder, "repairing the reply", error)
        return out

    def _count_output(self, out: list[bytes]) -> None:
        reply_stream = self._reply_stream
        if self._other is None and reply_stream is not None and reply_stream.changed:
            self._other = bytearray()
        if self._other is None:
            for piece in out:
                self._unchanged += len(piece)
        elif not self._recorder.is_over_limit:
            for piece in out:
                self._other += piece

    def _give_up(self, data: bytes, error: Exception) -> list[bytes]:
        """Fail open: return held and received bytes unchanged and stop fixing."""
        self._pending = self._unrepaired(data, error)
        return self._note([])

    def _unrepaired(self, data: bytes, error: Exception) -> list[bytes]:
        """Return held and received bytes unchanged."""
        reply_stream, self._reply_stream = self._reply_stream, None
        recorder = self._recorder
        came = recorder.raw_body() if recorder.is_readable and self._other is None else None
        self._failures.fail(recorder, "repairing the reply", error)
        if came is not None:
            return [came[self._unchanged :]] if len(came) > self._unchanged else []
        return [*self._pending, *(reply_stream.flush() if reply_stream is not None else ()), *([data] if data else [])]

    def settle(self) -> None:
        """Write what happened to the reply into the recorder, once, at the end of the exchange."""
        reply_stream, recorder = self._reply_stream, self._recorder
        if self._settled:
            return
        self._settled = True
        if reply_stream is not None:
            reply_stream.catch_up()
            recorder.faults += reply_stream.faults
            recorder.must_reread = recorder.must_reread or bool(reply_stream.faults)
            if not recorder.is_unread:
                recorder.notes += reply_stream.notes
            if reply_stream.changed:
                recorder.note_fixes(reply_stream.repairs)
        self._reply_stream = None  # a flow that is kept keeps what streams it
        came = recorder.raw_body()
        if self._other is not None:
            body = came[: self._unchanged] + bytes(self._other) if came is not None else None
        elif came is not None and self._unchanged < len(came):
            body = came[: self._unchanged]
            recorder.notes.append(
                f"{len(came) - self._unchanged} bytes were held back when {self.end_text}; nobody got them"
            )
        else:
            return
        recorder.delivered = Sent(self.headers(), body)


CUT_OFF = "the reply ends before its content-encoding does"

_SWELLS = 64
"""How many times its own size a body above the limit may become. Events that are flushed one by one become 20 times as
large, those of a model in a loop that are compressed as a whole 260 times, which the limit has room for; a bomb becomes
1000 times as large."""
_UNDECODED = 1 << 10
"""Bytes of which nothing was decoded that are kept, as they may turn out not to be coded at all."""


class HttpReplyFixer(ReplyFixer):
    """Stream callable that installs itself on a flow whose reply head has arrived, and adapts that head."""

    end_text = "the exchange ended"

    def __init__(
        self,
        flow: http.HTTPFlow,
        recorder: ExchangeRecorder,
        reply_stream: ReplyStream,
        failures: Failures,
        announce: str,
    ) -> None:
        response = flow.response
        assert response is not None
        coding = recorder.take_coding()
        super().__init__(recorder, reply_stream, failures)
        self._flow = flow
        self._decoder: Decoder | None = decoder(coding, recorder.limit, ratio=_SWELLS) if coding else None
        self._attached = self._attach()
        self._ends = has_known_end(response) or (not response.http_version.startswith("HTTP/1") and self._attached)
        self._call_is_end = response.http_version.startswith("HTTP/1") or self._attached  # an empty call is an end
        self._undecoded: bytearray | None = bytearray()
        self._broken = False
        make_open_ended(flow.request, response)
        if announce:
            add_field(response, HEADER, announce)
        response.stream = self

    def headers(self) -> Headers:
        assert self._flow.response is not None
        return headers_of(self._flow.response)

    def __call__(self, data: bytes) -> list[bytes]:
        try:
            if not data:
                return self._over()
            if self._broken:
                return []
            if self._decoder is not None:
                data = self._decode(self._decoder, data)
                if not data:
                    return []
            return self._feed(data)
        except Exception as error:  # fail open
            try:
                return self._give_up(data, error)
            except Exception:  # fail open: raising here would hang the client
                return [data] if data else []

    def _attach(self) -> bool:
        try:
            return attach(self._flow, self)
        except Exception as error:  # fail open: it goes without
            self._failures.add(self._recorder, "reaching the client", error)
            return False

    def _over(self) -> list[bytes]:
        if self._decoder is not None and not self._decoder.finished and self._call_is_end and not self._settled:
            self._break(CUT_OFF)
        if self._broken and self._flow.killable:
            # What came is no reply: without this the client would take it for one that ended well.
            self._flow.kill()  # type: ignore[no-untyped-call, unused-ignore]
        if self._settled:
            return []
        if self._reply_stream is None:
            return self._note([])
        if self._ends and not self._broken:
            return self._note(self._reply_stream.end())
        return self._note(self._reply_stream.flush(self._recorder.now()))

    def _decode(self, decoder: Decoder, data: bytes) -> bytes:
        """Return decoded bytes; all bytes unchanged if the body turns out to be uncoded text."""
        undecoded = self._undecoded
        if undecoded is not None:
            undecoded += data
        try:
            plain = decoder.feed(data)
        except CodingError as error:
            self._decoder = None
            plain = error.plain
            large = isinstance(error, TooLargeError)
            note = f"the reply is not what its content-encoding says: {error}"
            if large:
                note = "the reply decodes to far more than wirelint_max_body allows"
            self._recorder.mark_unread(note, keep_raw=True)
            if undecoded and not plain and not large and is_text(bytes(undecoded)):
                return bytes(undecoded)
            self._break(note)
        if plain or (undecoded is not None and len(undecoded) > _UNDECODED):
            self._undecoded = None
        return plain

    def _break(self, why: str) -> None:
        """Stop delivering; the client sees a broken reply."""
        log.say(f"connection to the client closed: {why}", logging.WARNING)
        self._broken = True
        self._recorder.broken_reason = why
