"""Recorder of one exchange: a copy of its bytes with their times, the parser's session, and the changes.

Lifecycle: created with the request, `respond` at the reply's head, then bytes through `store_for_later` (or `store`, if
a repair reads them), and `close` once at the end. Bytes are read in batches because that costs a fraction of reading
each chunk, and because no chunk waits for it. A recorder never holds more of a body than `limit`. Above it,
and where a content coding cannot be decoded, the exchange is marked unread.

The header `x-wirelint-ignore` is removed in `requestheaders`, for all traffic, because mitmproxy sends a streamed request
right after that hook. The flow keeps the value in its metadata, so that flow files give the same findings as captures."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mitmproxy import http

from wirelint.addon.log import FailOpen, Failures, say
from wirelint.addon.options import Settings
from wirelint.apis import recognise
from wirelint.apis.unknown import is_text, unknown_because
from wirelint.capture.readers.flows import asked_headers, url_of
from wirelint.capture.record import Headers, Record, Sent
from wirelint.capture.streams import StreamStrings
from wirelint.engine import Session, internal, lower
from wirelint.fix import AppliedFix
from wirelint.model import End, Exchange, Json, Request, Timing
from wirelint.registry import Registry
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.request import Mended
from wirelint.rule import Finding
from wirelint.settings import HEADER, Scope, Scopes, unknown
from wirelint.timing import ArrivalLog, Arrivals
from wirelint.wire import EventStream
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decode

if TYPE_CHECKING:
    from wirelint.addon.exchange_fix import ExchangeFixer


_MOST_FAULTS = 8
_MOST_FIXES = 1000
_BATCH = 1 << 15
"""Bytes parsed together."""


@dataclass(slots=True, eq=False)
class ExchangeRecorder:
    """Recorder of one exchange.

    `flow` has the exchange, alone or with others: on a WebSocket, and on a `GET` stream of MCP.
    `rules`: those in force when the exchange began.
    `clock` is monotonic, in seconds; `clock_start` is its value when the request was complete; `started` is Unix time.
    `session`: None if reading the request failed; `faults` says why. Also None if `unknown_reason` is set: the exchange
    is of no known API and is recorded without being checked.
    `forwarded`, `sent_request`: the request sent in place of the client's, as bytes and parsed. `delivered`: the reply
    sent in place of the upstream's.
    `must_reread`: the session is incomplete, and the stored bytes have to be parsed again.
    `is_collected`: mitmproxy buffers the reply; the recorder gets its pieces meanwhile.
    `is_held`: the repair reads the reply as a whole, so nothing is parsed before.
    `due`, `checked_silences`, `open_findings`, `open_annotation`: used by `timeouts` for exchanges that are still open.
    `broken_reason`: why the client saw a broken reply although the upstream's HTTP message ended correctly.
    `on_data`: called after each stored chunk.
    `reply_stream`: the repair of a reply in transit, which then does the reading.
    `strings`: the strings of the reply that the session has read, for the redaction.
    `fixer`: None if the exchange is not fixed, and on a WebSocket, which has its own.
    `end`, `error`, `duration` (in milliseconds): of an exchange that has ended.
    """

    flow: http.HTTPFlow
    failures: Failures
    id: str
    method: str
    url: str
    request_headers: Headers
    request_body: bytes | None
    started: float
    rules: Scopes
    limit: int
    session: Session | None = None
    clock: Callable[[], float] = time.perf_counter
    clock_start: float = field(default_factory=time.perf_counter)
    status: int | None = None
    response_headers: Headers = ()
    first_byte: float | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)
    forwarded: Sent | None = None
    delivered: Sent | None = None
    sent_request: Request | None = None
    fixes: list[AppliedFix] = field(default_factory=list)
    must_reread: bool = False
    is_collected: bool = False
    is_held: bool = False
    due: float = 0.0
    checked_silences: set[tuple[str, float]] = field(default_factory=set)
    open_findings: list[Finding] = field(default_factory=list)
    open_annotation: tuple[str, str] | None = None
    unknown_reason: str = ""
    broken_reason: str = ""
    on_data: Callable[[], None] | None = None
    reply_stream: ReplyStream | None = None
    strings: StreamStrings | None = None
    fixer: ExchangeFixer | None = None
    end: End = "unknown"
    error: str | None = None
    duration: float | None = None
    _decoder: Decoder | None = None
    _raw: BytesIO = field(default_factory=BytesIO)
    _plain: bytearray = field(default_factory=bytearray)
    _size: int = 0
    _queued: list[tuple[bytes, float | None]] = field(default_factory=list)
    _queued_size: int = 0
    is_unread: bool = False
    _is_broken: bool = False
    _is_closed: bool = False
    _parts: int = 1
    _earlier_parts: bytes = b""
    _repeated_size: int = 0

    @property
    def is_readable(self) -> bool:
        """Return True if the session can return an exchange."""
        return self.session is not None and not self._is_broken

    def scope(self) -> Scope:
        """Return the rules and fixes of the exchange, whose request has arrived. Raises parse errors."""
        return self.rules.of(self.session.head()) if self.session is not None else self.rules.default

    def now(self) -> float:
        """Return the milliseconds since the request."""
        return round((self.clock() - self.clock_start) * 1000, 3)

    def begin_session(self, *, later: bool = False) -> None:
        """Read the request. The session stays None if no API matches the request. `later`: see `Session.begin`."""
        self.session = Session.begin(
            id=self.id,
            method=self.method,
            url=self.url,
            headers=lower(self.request_headers),
            body=self.request_body or b"",
            started=self.started,
            max_body=self.limit,
            later=later,
        )

    def respond(self, status: int, headers: Headers) -> None:
        """Record the head of the reply. mitmproxy does not report interim (1xx) responses."""
        self.status, self.response_headers, self.first_byte = status, headers, self.now()
        if self.is_readable and self.session is not None:
            self.session.respond(status, lower(headers))
            self.strings = self.session.listener = StreamStrings()
        try:
            self._decoder = Decoder(coding, self.limit) if (coding := self._coding()) else None
        except CodingError as error:
            self.mark_unread(f"the reply cannot be read: {error}", keep_raw=True)

    def take_coding(self) -> str | None:
        """Return the content coding of the reply and stop decoding here: the caller decodes and passes plain bytes."""
        coding = self._coding() if self._decoder is not None else None
        self._decoder = None
        return coding

    def _coding(self) -> str | None:
        value = lower(self.response_headers).get("content-encoding", "")
        names = [name for item in value.split(",") if (name := item.strip().lower()) and name != "identity"]
        return ", ".join(names) or None

    def store_for_later(self, data: bytes) -> None:
        """Store body bytes that arrived now. `catch_up` parses them, at the latest after 32 KiB."""
        if self.store(data):
            self._queued.append((data, self.now()))
            self._queued_size += len(data)
            if self._queued_size >= _BATCH:
                self.catch_up()

    def settle_body(self, data: bytes) -> None:
        """Take the body that mitmproxy has collected, unless it is the one that arrived piece by piece."""
        if self.is_empty or (self.is_collected and self.raw_body() != data):
            self._raw, self._size = BytesIO(), 0
            self._queued = [(data, None)] if self.store(data) else []

    def arrivals(self) -> Arrivals:
        if self.session is not None and (read := self.session.arrivals()):
            return read
        log = ArrivalLog()
        for data, at in self._queued:
            if at is not None:
                log.add(at, data)
        return log.arrivals(framed=False)

    def catch_up(self) -> None:
        """Parse all bytes that have arrived, with the times of their arrival."""
        if not self.is_held:
            for data, at in self.take_queued():
                if self.session is not None:
                    self.session.feed(data, at)
            self.check_text_limit()

    def look(self) -> Exchange | None:
        """Return the exchange so far; None if its request belongs to no known API or could not be read."""
        if self.session is None:
            return None
        self.catch_up()
        return self.session.look(self.now(), self.arrivals())

    def take_queued(self) -> list[tuple[bytes, float | None]]:
        """Return the decoded bytes that are not parsed yet, with their times. The caller parses them."""
        pieces = self._queued
        self._clear_queue()
        read = [(self._plain_of(piece), at) for piece, at in pieces]
        return [(plain, at) for plain, at in read if plain]

    @property
    def decoded_to_its_end(self) -> bool:
        """Return True if the content coding of the decoded bytes is complete."""
        return self._decoder is None or self._decoder.finished

    def check_text_limit(self) -> None:
        """Mark the exchange unread if its text exceeds the limit of the session."""
        if self.session is not None and self.session.unread and not self.is_unread:
            lacking = self.session.unread_because
            why = lacking or "the reply is too long to be judged; it passed unread"
            self.mark_unread(why, keep_raw=lacking is not None)

    def _clear_queue(self) -> None:
        self._queued, self._queued_size = [], 0

    def store(self, data: bytes) -> bool:
        """Store bytes without decoding them. Return True if they should be parsed."""
        if self._is_closed or not data:
            return False
        self._size += len(data)
        if self.is_over_limit:
            if self._raw.tell() or not self.is_unread:
                self._mark_too_large()
            return False
        self._raw.write(data)
        return not self.is_unread and self.is_readable

    def _plain_of(self, data: bytes) -> bytes | None:
        if self.is_unread:
            return None
        if self._decoder is None:
            return data
        try:
            plain = self._decoder.feed(data)
            self._plain += plain
            return plain
        except TooLargeError:
            self._mark_too_large()
        except CodingError as error:
            self.mark_unread(f"the reply does not match its content-encoding: {error}", keep_raw=True)
        return None

    def _mark_too_large(self) -> None:
        self.mark_unread(f"the reply is larger than wirelint_max_body ({self.limit} bytes); it passed unread")

    def mark_unread(self, note: str, *, keep_raw: bool = False) -> None:
        """Stop parsing; the rest passes unread. `keep_raw`: record the bytes nevertheless."""
        self.is_unread = True
        self.notes.append(note)
        self._decoder = None
        self._plain.clear()
        self._clear_queue()
        if not keep_raw:
            self._raw = BytesIO()
            self._size = max(self._size, self.limit + 1)
        if self.session is not None:
            self.session.abandon()

    def caught(self, culprit: str, *, readable: bool = False) -> FailOpen:
        """Return a context that ends at an exception, records and logs it. `readable`: the session can be used after it."""
        return FailOpen(culprit, self.add_fault if readable else self.fail)

    def fail(self, culprit: str, error: Exception) -> None:
        """Record and log an internal failure after which the session cannot be used."""
        self._is_broken = True
        self.add_fault(culprit, error)

    def add_fault(self, culprit: str, error: Exception) -> None:
        """Record and log an internal failure that leaves the session usable."""
        fault = internal(culprit, error)
        if fault not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)
        self.failures.log(culprit, error)

    def split(self) -> ExchangeRecorder | None:
        """Return the recorded part of an open MCP SSE stream as its own exchange; None if that is not possible now.

        This recorder continues after the part, with the next id (`…~2`). `event: endpoint` names the session's address;
        it is repeated at the head of every later part."""
        raw, stream = self._raw.getvalue(), EventStream()
        frames = stream.feed(raw)
        if self._decoder is not None or self.is_unread or self._is_broken or stream.close() or not frames:
            return None
        part = dataclasses.replace(self, notes=[], faults=[], on_data=None, fixer=None)
        self._earlier_parts += raw[self._repeated_size :]
        self._parts += 1
        self.id = f"{self.id.rpartition('~')[0] or self.id}~{self._parts}"
        self.begin_session()
        self.respond(self.status or 200, self.response_headers)
        self.first_byte = part.first_byte
        self._raw, self._plain, self._size = BytesIO(), bytearray(), 0
        first = frames[0].raw if frames[0].event == "endpoint" else b""
        self._repeated_size = len(first)
        self._queued = [(first, self.first_byte)] if self.store(first) else []
        return part

    def forward(self, headers: Headers, mended: Mended) -> None:
        """Note the repaired request that is sent in place of the client's."""
        self.forwarded, self.sent_request = Sent(headers, mended.body), mended.request
        self.note_fixes(mended.repairs)

    def note_fixes(self, repairs: Sequence[AppliedFix]) -> None:
        room = _MOST_FIXES - len(self.fixes)
        self.fixes += repairs[:room]
        if len(repairs) > room:
            self.notes.append(f"{len(repairs) - room} more fixes are not listed")

    @property
    def size(self) -> int:
        """Return the approximate memory use in bytes."""
        return len(self.request_body or b"") + min(self._size, self.limit) + 4096

    @property
    def is_over_limit(self) -> bool:
        return self._size > self.limit

    @property
    def is_empty(self) -> bool:
        return self._size == 0

    def raw_body(self) -> bytes | None:
        """Return the body as it was on the wire; None if it was not kept."""
        if self.is_over_limit or len(self._earlier_parts) > self.limit:
            return None
        raw = self._raw.getvalue()
        return self._earlier_parts + raw[self._repeated_size :] if self._earlier_parts else raw

    def record(self, exchange: Exchange | None = None, duration: float | None = None) -> Record:
        """Return the exchange as a `Record` with decoded bodies. `exchange`: its parse, if it could be parsed."""
        first_token = exchange.timing.first_token if exchange is not None else None
        return Record(
            id=self.id,
            method=self.method,
            url=self.url,
            request_headers=self.request_headers,
            request_body=self.request_body,
            status=self.status,
            response_headers=self.response_headers,
            response_body=self._body(),
            chunks=exchange.chunks if exchange is not None else (),
            timing=Timing(self.started, self.first_byte, first_token, duration),
            end=exchange.end if exchange is not None else self.end,
            error=self.error,
            forwarded=self.forwarded,
            delivered=self.delivered,
            fixes=tuple(self.fixes),
            annotations={"notes": list[Json](self.notes)} if self.notes else {},
        )

    def _body(self) -> bytes | None:
        if self.status is None or self.is_unread:
            return None
        body = self._raw.getvalue()
        if self._decoder is not None and not (self._is_broken or self.unknown_reason):
            body = bytes(self._plain)
        elif self._decoder is not None:  # parsing stopped early, but all bytes were stored
            try:
                body = decode(self._coding(), body, self.limit)
            except CodingError:
                return None
        # Of an unknown API only text is kept: other bytes may be a private file.
        return body if not self.unknown_reason or is_text(body) else None

    def close(self) -> None:
        """Release all bytes and ignore later ones."""
        self._is_closed = True
        self._clear_queue()
        self._raw, self._plain, self.session = BytesIO(), bytearray(), None
        self.strings = self.reply_stream = self.fixer = None


# --- exchanges of mitmproxy's flows ----------------------------------------------------------------------------------

_MOST_TOLD = 100


def take_ignore_header(flow: http.HTTPFlow, known: Registry | None, logged: set[str]) -> None:
    """Remove the header from a request that will be forwarded; a flow from a file is not changed.

    `known`: all rules, once they are loaded. `logged`: warnings about unknown names that the log has."""
    headers = flow.request.headers
    if HEADER not in headers or not (flow.live or flow.is_replay):
        return
    value = ",".join(headers.get_all(HEADER))
    del headers[HEADER]
    flow.metadata[HEADER] = value
    for line in unknown(value, known) if known is not None else ():
        if line not in logged and len(logged) < _MOST_TOLD:
            logged.add(line)
            say(f"wirelint: {line}", logging.WARNING)


# A body without content: an API claims it only if path and headers alone identify the request.
LEAST_BODY: Json = {"messages": [{"role": "user"}]}


def may_be_ours(request: http.Request) -> bool:
    """Return True if the body could show that the request is of a known API."""
    method, fields = request.method.upper(), request.headers
    is_stream = method == "GET" and "text/event-stream" in fields.get("accept", "")
    return method == "POST" or is_stream or (method == "DELETE" and "mcp-session-id" in fields)


def new_recorder(
    flow: http.HTTPFlow,
    body: bytes | None,
    settings: Settings,
    failures: Failures,
    *,
    name: str = "",
    url: str = "",
    started: float = 0.0,
) -> ExchangeRecorder:
    """Create the recorder of an exchange that the request of a flow begins, or a message over its WebSocket.

    `body` is decoded. `name` (the id), `url` and `started` are those of a message.
    """
    request = flow.request
    return ExchangeRecorder(
        flow=flow,
        failures=failures,
        id=name or flow.id,
        method=request.method,
        url=url or url_of(request),
        request_headers=asked_headers(flow),
        request_body=body or None,
        started=started or request.timestamp_end or request.timestamp_start,
        rules=settings.rules,
        limit=settings.max_body,
    )


def pass_unread(recorder: ExchangeRecorder, method: str, example: Json, *, large: bool) -> bool:
    """Mark an exchange unread if its API is recognised without its body. `example`: a body without content. `large`: the
    body is above the limit, else streamed."""
    headers, parts = lower(recorder.request_headers), urlsplit(recorder.url)
    api = recognise(method, parts.path, headers, example, parts.netloc)
    if api is None:
        return False
    recorder.session = Session(api, id=recorder.id, method=recorder.method, url=recorder.url, headers=headers)
    limit = f"is larger than wirelint_max_body ({recorder.limit} bytes)"
    why = limit if large else "was streamed by another addon"
    recorder.mark_unread(f"the request {why}; the exchange passed unread")
    return True


def note_unknown(recorder: ExchangeRecorder) -> bool:
    """Return True if an exchange of an unknown API is to be recorded; the recorder gets the reason."""
    body = recorder.request_body or b""
    recorder.unknown_reason = unknown_because(recorder.method, recorder.url, body)
    if not recorder.unknown_reason:
        return False
    recorder.notes.append(f"not checked: {recorder.unknown_reason}")
    if not is_text(body):
        recorder.request_body = None
        recorder.notes.append("the body of the request is not text; it was not stored")
    return True
