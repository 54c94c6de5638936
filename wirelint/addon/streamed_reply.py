"""A reply on its way to the client: bytes of the upstream in, bytes for the client out, and a copy for the recorder.

`StreamedReply` is shared by HTTP streams and WebSockets; `HttpReply` is the stream callable of every streamed HTTP reply.
mitmproxy sends each non-empty `bytes` as one chunk; `b""` would end a chunked reply in the middle, so "nothing" is an
empty list. An exception would lose the chunk and hang the client.

The callable is called only when bytes arrive. Held text is sent in time, and when the upstream dies, through
`mitm_compat`. Without that, overdue text leaves with the next byte, and text held when the reply ends in `error` is
lost; the exchange then says so.

A repaired body is decoded on its way because the head has to declare its coding before any of the body is known. A
damaged coding therefore cannot be passed on: the decoded part is delivered and the connection is broken. A decompression
bomb ends likewise.

`stream(b"")` in HTTP/1 is the end of the reply, unless only the close of the connection marks the end. HTTP/2 calls it
for every empty DATA frame; without `mitm_compat`, which drops those, the call only means that held text has to leave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from mitmproxy import ctx, http

from wirelint.addon import log
from wirelint.addon.mitm_compat import attach, attach_whole
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis.unknown import is_text
from wirelint.capture.record import Headers, Sent
from wirelint.rewrite import ReplyStream
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decode

Stream = Callable[[bytes], bytes | Iterable[bytes]]


class Held(Protocol):
    """Text or messages held back from a client. No method raises."""

    def due(self) -> float | None:
        """Return the seconds until `release` has to be called; None if nothing is held."""

    def release(self) -> Iterable[bytes]:
        """Return the bytes that have been held for the longest permitted time."""

    def flush(self) -> Iterable[bytes]:
        """Return all held bytes, because no more input will arrive."""


class StreamedReply:
    """One reply in transit. No method raises.

    Without `repair_with` every byte leaves unchanged. Received and sent bytes are compared: up to the first difference
    the recorder's copy is both, from there on the sent bytes are kept as well.
    """

    def __init__(self, recorder: ExchangeRecorder) -> None:
        self._recorder = recorder
        self._reading = recorder.caught("reading the reply")
        self._repairing = recorder.caught("repairing the reply")
        self._asking_when = recorder.caught("repairing the reply", readable=True)
        self.is_repaired = False
        """True from `repair_with` on, also after the repair has given up."""
        self._pending: list[bytes] = []  # bytes to leave with the next ones
        self._unchanged = 0
        self._other: bytearray | None = None
        self._settled = False

    def repair_with(self, reply_stream: ReplyStream) -> None:
        self._recorder.reply_stream, self.is_repaired = reply_stream, True

    def due(self) -> float | None:
        if self._pending:
            return 0.0
        reply_stream = self._recorder.reply_stream
        if reply_stream is None or reply_stream.holding is None:
            return None
        left = None  # after a failure the text leaves with the next bytes
        with self._asking_when:
            left = reply_stream.due(self._recorder.now())
        return left / 1000 if left is not None else None

    def release(self) -> list[bytes]:
        return self._release(lambda reply_stream: reply_stream.tick(self._recorder.now()))

    def flush(self) -> list[bytes]:
        return self._release(lambda reply_stream: reply_stream.flush())

    def _release(self, ask: Callable[[ReplyStream], list[bytes]]) -> list[bytes]:
        reply_stream = self._recorder.reply_stream
        if self._settled:
            return []
        try:
            return self._note(ask(reply_stream) if reply_stream is not None else [])
        except Exception as error:  # fail open
            return self._give_up(b"", error)

    def _feed(self, data: bytes) -> list[bytes]:
        """Return the bytes for the client after `data` arrived. Raises the errors of the fix."""
        recorder, reply_stream = self._recorder, self._recorder.reply_stream
        with self._reading:
            recorder.store(data)
        if reply_stream is None:
            return self._note([data])
        out = reply_stream.feed(data, (recorder.clock() - recorder.clock_start) * 1000)
        recorder.check_text_limit()
        if len(out) == 1 and out[0] is data and not (self._pending or reply_stream.changed) and self._other is None:
            self._unchanged += len(data)
            return out
        return self._note(out)

    def _note(self, out: list[bytes]) -> list[bytes]:
        """Add pending bytes to the output and account for all of it."""
        if self._pending:
            out, self._pending = [*self._pending, *out], []
        with self._repairing:
            reply_stream = self._recorder.reply_stream
            if self._other is None and reply_stream is not None and reply_stream.changed:
                self._other = bytearray()
            if self._other is None:
                self._unchanged += sum(map(len, out))
            elif not self._recorder.is_over_limit:
                self._other += b"".join(out)
        return out

    def _give_up(self, data: bytes, error: Exception) -> list[bytes]:
        """Fail open: return held and received bytes unchanged and stop fixing."""
        recorder = self._recorder
        reply_stream, recorder.reply_stream = recorder.reply_stream, None
        received = recorder.raw_body() if recorder.is_readable and self._other is None else None
        recorder.fail("repairing the reply", error)
        if received is not None:
            self._pending = [received[self._unchanged :]] if len(received) > self._unchanged else []
        else:
            held = reply_stream.flush() if reply_stream is not None else ()
            self._pending = [*self._pending, *held, *([data] if data else [])]
        return self._note([])

    def settle(self, headers: Headers, end: str) -> None:
        """Write the results of the repair into the recorder, once, at the end of the exchange.

        `headers`: those that the client received. `end`: the end of the transport, as a clause ("the exchange ended").
        """
        recorder = self._recorder
        if self._settled or not self.is_repaired:
            return
        self._settled = True
        reply_stream, recorder.reply_stream = recorder.reply_stream, None  # mitmproxy may keep the flow for long
        if reply_stream is not None:
            recorder.faults += reply_stream.faults
            recorder.must_reread = recorder.must_reread or bool(reply_stream.faults)
            if not recorder.is_unread:
                recorder.notes += reply_stream.notes
            if reply_stream.changed:
                recorder.note_fixes(reply_stream.repairs)
        received = recorder.raw_body()
        if self._other is not None:
            body = received[: self._unchanged] + bytes(self._other) if received is not None else None
        elif received is not None and self._unchanged < len(received):
            body = received[: self._unchanged]
            recorder.notes.append(
                f"{len(received) - self._unchanged} bytes were held back when {end}; they were not delivered"
            )
        else:
            return
        recorder.delivered = Sent(headers, body)


CUT_OFF = "the compressed reply is cut off"

_SWELLS = 64
"""Highest permitted ratio of decoded to encoded size for a body above the limit. Events that are compressed one by one
become 20 times as large. The events of a model in a loop, compressed as a whole, become 260 times as large, but stay
below the limit. A decompression bomb becomes 1000 times as large."""
_UNDECODED = 1 << 10
"""Most bytes that are kept while nothing could be decoded, because the body may have no coding at all."""


class HttpReply(StreamedReply):
    """Stream callable of a reply. `inner` is the stream callable of another addon, which gets the upstream's bytes."""

    def __init__(self, recorder: ExchangeRecorder, inner: Stream | None = None) -> None:
        super().__init__(recorder)
        self._flow, self._inner = recorder.flow, inner
        self._decoder: Decoder | None = None
        self._undecoded: bytearray | None = bytearray()
        self._ends = self._call_is_end = self._broken = False

    def begin_repair(self, reply_stream: ReplyStream, announce: str) -> None:
        """Repair the reply, whose head has arrived and is adapted. `announce`: value of a header that says so."""
        response, recorder = self._flow.response, self._recorder
        assert response is not None
        is_attached = False
        with recorder.caught("reaching the client", readable=True):
            is_attached = attach(self._flow, self)
        is_http1 = response.http_version.startswith("HTTP/1")
        self._ends = has_known_end(response) or (not is_http1 and is_attached)
        self._call_is_end = is_http1 or is_attached  # an empty call is an end
        make_open_ended(self._flow.request, response)
        if announce:
            response.headers.add(HEADER, announce)
        coding = recorder.take_coding()
        self._decoder = Decoder(coding, recorder.limit, ratio=_SWELLS) if coding else None
        self.repair_with(reply_stream)

    def __call__(self, data: bytes) -> bytes | Iterable[bytes]:
        if not self.is_repaired:
            if data:
                self._record(data)
            return self._inner(data) if self._inner is not None else data or []
        try:
            if not data:
                return self._over()
            if self._broken:
                return []
            if self._decoder is not None:
                data = self._decode(self._decoder, data)
                if not data:
                    return []
            out = self._feed(data)
            # Each item costs mitmproxy a chunk of its own, some 60 microseconds.
            return [b"".join(out)] if len(out) > 1 else out
        except Exception as error:  # fail open
            try:
                return self._give_up(data, error)
            except Exception:  # fail open: raising here would hang the client
                return [data] if data else []

    def _record(self, data: bytes) -> None:
        with self._reading:
            self._recorder.store_for_later(data)
        with self._reading:
            if self._recorder.on_data is not None:
                self._recorder.on_data()

    def _over(self) -> list[bytes]:
        if self._decoder is not None and not self._decoder.finished and self._call_is_end and not self._settled:
            self._break(CUT_OFF)
        if self._broken and self._flow.killable:
            # The delivered part is no complete reply: without `kill` the client would accept it as one.
            self._flow.kill()  # type: ignore[no-untyped-call, unused-ignore]
        if self._settled:
            return []
        reply_stream = self._recorder.reply_stream
        if reply_stream is None:
            return self._note([])
        if self._ends and not self._broken:
            return self._note(reply_stream.end())
        return self._note(reply_stream.flush())

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
            note = f"the reply does not match its content-encoding: {error}"
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


_SHORT = 1 << 18
"""Largest JSON document that mitmproxy buffers as usual: it is useless before its end, and streaming it costs more."""


def collect(recorder: ExchangeRecorder) -> bool:
    """Record a reply that mitmproxy buffers, also if it breaks off. Return False if that is not possible."""

    reading = recorder.caught("reading the reply")  # made once: an error here would reach mitmproxy's layer

    def arrived(raw: bytes) -> None:
        with reading:
            recorder.store_for_later(raw)

    recorder.is_collected = attach_whole(recorder.flow, arrived)
    return recorder.is_collected


def let_collect(response: http.Response, recorder: ExchangeRecorder) -> bool:
    """Make mitmproxy buffer a short JSON reply, which delays nothing useful. Return True if it does."""
    with recorder.caught("reaching the client", readable=True):
        streamed = getattr(ctx.options, "stream_large_bodies", None)  # its limit may be lower than `_SHORT`
        return is_json(response) and is_within(response, _SHORT) and not streamed and collect(recorder)
    return False


# --- headers of changed messages: length, coding and framing must match the changed body ---------------------------------
#
# mitmproxy frames a streamed body by the headers at the time of sending and corrects none. A body of unknown length is
# chunked for HTTP/1.1; an older client sees the close of the connection; HTTP/2 and 3 forbid transfer-encoding. A reply
# ended by the close of the upstream's connection is left like that, because mitmproxy cannot reuse that connection. For
# a buffered body mitmproxy encodes and corrects the length.

HEADER = "x-wirelint"

_DIGESTS = ("content-digest", "repr-digest", "digest", "content-md5")
_SIGNED = (*_DIGESTS, "signature", "x-amz-content-sha256")
_LENGTHS = ("transfer-encoding", "content-length")
_CODED = (*_DIGESTS, "content-length", "content-encoding")


def body_of(message: http.Message, most: int) -> bytes | None:
    """Return the decoded body, or the raw one if it cannot be decoded. Raises TooLargeError above `most` bytes;
    mitmproxy's own `content` has no limit."""
    raw = message.raw_content
    if raw is None or "content-encoding" not in message.headers:
        return raw
    try:
        return decode(message.headers.get("content-encoding"), raw, most)
    except TooLargeError:
        raise
    except CodingError:
        return raw


def is_json(response: http.Response) -> bool:
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_within(response: http.Response, limit: int) -> bool:
    """Return True if content-length is present and at most `limit`."""
    length: str = response.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length) <= limit


def is_signed(request: http.Request) -> bool:
    """Return True if a header signs the body: a changed request would be rejected."""
    return any(name in request.headers for name in _SIGNED)


def is_decodable(request: http.Request, most: int) -> bool:
    """Return True if the body, of at most `most` bytes, matches its content-encoding to the end."""
    if "content-encoding" not in request.headers:
        return True
    try:
        undone = Decoder(request.headers.get("content-encoding"), most)
        undone.feed(request.raw_content or b"")
    except CodingError:
        return False
    return undone.finished


def has_known_end(response: http.Response) -> bool:
    """Return True if the end of the body differs from a broken connection."""
    return response.http_version.startswith("HTTP/1") and any(name in response.headers for name in _LENGTHS)


def is_plainly_framed(fields: Mapping[str, str]) -> bool:
    """Return True if the body has no transfer coding that mitmproxy keeps. `fields`: by lower-case name."""
    return fields.get("transfer-encoding", "").strip().lower() in ("", "chunked", "identity")


def make_open_ended(request: http.Request, response: http.Response) -> None:
    """Adapt the head of a streamed reply to a body of any length without content coding."""
    ends_with_connection = response.http_version.startswith("HTTP/1") and not has_known_end(response)
    _drop(response, _CODED)
    if ends_with_connection:
        return
    if request.http_version == "HTTP/1.1":
        if response.headers.get("transfer-encoding") != "chunked":
            response.headers["transfer-encoding"] = "chunked"
    elif request.http_version.startswith("HTTP/1"):
        response.headers.pop("transfer-encoding", None)


def replace_body(message: http.Message, body: bytes) -> None:
    """Replace a buffered body, in its content coding; mitmproxy drops a coding that it cannot encode."""
    _drop(message, _DIGESTS)
    message.content = body


def _drop(message: http.Message, names: Iterable[str]) -> None:
    for name in names:
        message.headers.pop(name, None)
