"""One exchange while it passes: what is known of it, and a copy of its bytes. No mitmproxy in here.

A visit begins with the request, reads the reply as it arrives, and ends once. Bytes are noted with their times and read a
batch at a time: the same work takes a fraction of what it takes piece by piece between other things, and nobody waits
for it whose chunk has just come. It never holds more of a body than the
limit; above that, and where a coding cannot be undone, it lets go of what it has and the exchange counts as unread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO

from wirelint.apis.unknown import is_text
from wirelint.capture.record import Headers, Record, Sent
from wirelint.engine import Session, internal, lower
from wirelint.fix import AppliedFix
from wirelint.model import End, Request, Timing
from wirelint.rewrite.whole_reply import arrived
from wirelint.rule import Finding
from wirelint.timing import NO_ARRIVALS, ArrivalLog, Arrivals
from wirelint.wire import EventStream
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decode, decoder

# Pieces of a reply that have come for some time, read in one go.


def feed_all(session: Session, pieces: Sequence[tuple[bytes, float | None]]) -> None:
    """Feed a session pieces of a body, each with its time. Runs of text deltas are taken in together."""
    alike: list[tuple[bytes, float | None, str]] = []
    pattern = session.pattern
    for data, at in pieces:
        text = pattern.text(data) if pattern is not None else None
        if text is not None:
            alike.append((data, at, text))
            continue
        if pattern is not None and alike:
            _take(session, pattern.block, alike)
            alike = []
        session.feed(data, at)
        pattern = session.pattern
    if pattern is not None and alike:
        _take(session, pattern.block, alike)


def _take(session: Session, block: int, alike: list[tuple[bytes, float | None, str]]) -> None:
    if not session.feed_texts(block, alike):
        for data, at, _ in alike:
            session.feed(data, at)


_MOST_FAULTS = 8
_MOST_FIXES = 1000
_BATCH = 1 << 15
"""Bytes that are read together."""


@dataclass(slots=True, eq=False)
class ExchangeRecorder:
    """`clock` gives seconds that only grow, `began` is its value when the request was complete; `started` is Unix time.

    `session` is None when the request could not be read because of a failure of ours: then `faults` says so. `live` is
    False for a flow that was loaded from a file. `forwarded` is the request that was sent instead of the client's and
    `asked` what the upstream understands by it, `delivered` the reply that the client got instead of the upstream's.
    `reread`: reading along failed, and the bytes have to be read again. `collected`: the reply came on the wire, and is
    handed over as a whole. `due` is when it may have been silent for too long (`watch`), by the clock; `asked_of` are the
    silences that were looked at, `early` what was found before its end, and `shown` the comment and the marker for that.
    `unknown` says why an exchange of no known API is recorded all the same; it has no session either.
    `cut_short` says why the client saw its reply end badly, though that of the upstream ended as HTTP asks.
    `heard_by` is called when bytes have come.
    """

    id: str
    client: str
    method: str
    url: str
    request_headers: Headers
    request_body: bytes | None
    session: Session | None
    started: float
    limit: int
    clock: Callable[[], float]
    began: float
    live: bool = True
    status: int | None = None
    response_headers: Headers = ()
    first_byte: float | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)
    forwarded: Sent | None = None
    delivered: Sent | None = None
    asked: Request | None = None
    fixes: list[AppliedFix] = field(default_factory=list)
    reread: bool = False
    collected: bool = False
    due: float = 0.0
    asked_of: set[tuple[str, float]] = field(default_factory=set)
    early: list[Finding] = field(default_factory=list)
    shown: tuple[str, str] | None = None
    unknown: str = ""
    cut_short: str = ""
    heard_by: Callable[[], None] | None = None
    _heard: ArrivalLog = field(default_factory=ArrivalLog)
    _known: Record | None = None
    _decoder: Decoder | None = None
    _raw: BytesIO = field(default_factory=BytesIO)
    _plain: bytearray = field(default_factory=bytearray)
    _size: int = 0
    _waiting: list[bytes] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _behind: int = 0
    _unread: bool = False
    _broken: bool = False
    _closed: bool = False
    _parts: int = 1
    _before: bytes = b""
    _repeated: int = 0

    @property
    def readable(self) -> bool:
        """Return True if the session can be asked for an exchange."""
        return self.session is not None and not self._broken

    def now(self) -> float:
        """Milliseconds since the request."""
        return round((self.clock() - self.began) * 1000, 3)

    def respond(self, status: int, headers: Headers) -> None:
        """The head of the reply. Interim replies (1xx) never come here."""
        known = self._known if self.delivered is not None else None
        self.status, self.response_headers = status, known.response_headers if known is not None else headers
        self.first_byte = self.now() if self.live else None
        fields = lower(self.response_headers)
        if self.readable and self.session is not None:
            self.session.respond(status, fields)
        try:
            self._decoder = decoder(coding, self.limit) if (coding := _coding(fields.get("content-encoding"))) else None
        except CodingError as error:
            self.give_up(f"the reply cannot be read: {error}", keep_raw=True)

    def recall(self, known: Record) -> None:
        """An exchange of a file, which was changed when it passed: what came in is judged, whatever the flow shows."""
        self._known = known
        self.request_headers, self.request_body = known.request_headers, known.request_body
        self.forwarded, self.delivered, self.fixes = known.forwarded, known.delivered, list(known.fixes)

    def known_body(self) -> bytes | None:
        """The reply's body as it came in, without codings, where the flow may show another one."""
        if self._known is None or self.delivered is None:
            return None
        self._decoder = None
        return self._known.response_body

    def expect_plain(self) -> str | None:
        """The codings of the reply. Whoever asks undoes them, and hands over what they leave."""
        coding = _coding(lower(self.response_headers).get("content-encoding")) if self._decoder is not None else None
        self._decoder = None
        return coding

    def take(self, data: bytes, at: float | None = None) -> None:
        """Bytes of the reply's body as they are on the wire, and when they came (ms after the request)."""
        plain = self.keep(data)
        if plain and self.session is not None:
            self.session.feed(plain, at)

    def record_arrival(self, data: bytes) -> None:
        """Bytes came that are handed over later, as a part of the whole body."""
        self._heard.add(self.now(), data)

    def take_whole(self, data: bytes) -> None:
        """The body of a reply that was collected, as it is on the wire."""
        for piece, at in arrived(data, self._heard.chunks):
            self.take(piece, self.now() if at is None and self.collected else at)

    @property
    def decoded_to_its_end(self) -> bool:
        """Return True if the codings of the bytes that came have come to their end."""
        return self._decoder is None or self._decoder.finished

    def keep_whole(self, data: bytes) -> tuple[bytes, tuple[tuple[float, int], ...]] | None:
        """Takes a copy of such a body; gives what is to be read of it, and the arrivals of that. None: nothing is read."""
        pieces: list[bytes] = []
        chunks: list[tuple[float, int]] = []
        for piece, at in arrived(data, self._heard.chunks):
            plain = self.keep(piece)
            if plain is None:
                return None
            pieces.append(plain)
            if plain and (at is not None or self.collected):
                chunks.append((self.now() if at is None else at, len(plain)))
        return b"".join(pieces), tuple(chunks)

    def take_kept(self, plain: bytes, chunks: Sequence[tuple[float, int]]) -> None:
        """Has such a copy read."""
        if self.session is not None:
            for data, at in arrived(plain, chunks):
                self.session.feed(data, at)

    def arrivals(self) -> Arrivals:
        """What is known by now of when the reply came."""
        read = self.session.arrivals() if self.session is not None else NO_ARRIVALS
        return read or self._heard.arrivals(framed=False)

    def note(self, data: bytes) -> None:
        """Bytes of the reply's body that came just now. They are read later: `catch_up` before anything is asked."""
        if self.store(data):
            self._waiting.append(data)
            self._times.append(self.clock())
            self._behind += len(data)
            if self._behind >= _BATCH:
                self.catch_up()

    def catch_up(self) -> None:
        """Reads what was noted, each piece as of the time at which it came."""
        pieces, times = self._waiting, self._times
        self._pass_over()
        came = zip(pieces, times, strict=True)
        read = [(self._plain_of(piece), round((time - self.began) * 1000, 3)) for piece, time in came]
        if self.session is not None:
            feed_all(self.session, [(plain, at) for plain, at in read if plain])
        self.mind_the_text()

    def mind_the_text(self) -> None:
        """Lets go of a reply that says more than is judged."""
        if self.session is not None and self.session.unread and not self._unread:
            lacking = self.session.unread_because
            self.give_up(
                lacking or "the reply is too long to be judged; it passed unread", keep_raw=lacking is not None
            )

    def _pass_over(self) -> None:
        self._waiting, self._times, self._behind = [], [], 0

    def keep(self, data: bytes) -> bytes | None:
        """Takes a copy of bytes that came; gives what is to be read of them, None when nothing is read any more."""
        if not self.store(data):
            return None
        return data if self._decoder is None else self._plain_of(data)

    def store(self, data: bytes) -> bool:
        """The same of bytes without codings; whether they are to be read."""
        if self._closed or not data:
            return False
        self._size += len(data)
        if self._size > self.limit:
            if self._raw.tell() or not self._unread:
                self.give_up(f"the reply is larger than wirelint_max_body ({self.limit} bytes); it passed unread")
            return False
        self._raw.write(data)
        return not (self._unread or self._broken or self.session is None)

    def _plain_of(self, data: bytes) -> bytes | None:
        """Bytes without their codings; None once it is known that they cannot be read."""
        if self._unread:
            return None
        if self._decoder is None:
            return data
        try:
            plain = self._decoder.feed(data)
        except TooLargeError:
            self.give_up(f"the reply is larger than wirelint_max_body ({self.limit} bytes); it passed unread")
            return None
        except CodingError as error:
            self.give_up(f"the reply is not what its content-encoding says: {error}", keep_raw=True)
            return None
        self._plain += plain
        return plain

    def give_up(self, note: str, *, keep_raw: bool = False) -> None:
        """What is left of the exchange passes unread. `keep_raw`: its bytes are still worth recording."""
        self._unread = True
        self.notes.append(note)
        self._decoder = None
        self._plain.clear()
        self._pass_over()
        if not keep_raw:
            self._raw = BytesIO()
            self._size = max(self._size, self.limit + 1)
        if self.session is not None:
            self.session.abandon()

    def fail(self, culprit: str, error: BaseException) -> None:
        """Something of ours raised: the session is not asked any more, and the exchange says why."""
        self._broken = True
        self.add_fault(culprit, error)

    def add_fault(self, culprit: str, error: BaseException) -> None:
        """A failure that leaves the session usable."""
        fault = internal(culprit, error)
        if fault not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)

    def split(self) -> ExchangeRecorder | None:
        """What has come of a stream of events, as an exchange of its own, and goes on behind it under another name.

        None where that cannot be done now. An event that names the address of a session is part of all that come after it.
        """
        raw, stream = self._raw.getvalue(), EventStream()
        frames = stream.feed(raw)
        if self._decoder is not None or self._unread or self._broken or stream.waiting or not frames:
            return None
        part = dataclasses.replace(self, notes=[], faults=[], heard_by=None)
        self._before += raw[self._repeated :]
        self._parts += 1
        self.id = f"{self.id.rpartition('~')[0] or self.id}~{self._parts}"
        headers = lower(self.request_headers)
        body = self.request_body or b""
        self.session = Session.begin(
            id=self.id, method=self.method, url=self.url, headers=headers, body=body, started=self.started
        )
        self.respond(self.status or 200, self.response_headers)
        self.first_byte = part.first_byte
        self._raw, self._plain, self._size = BytesIO(), bytearray(), 0
        first = frames[0].raw if frames[0].event == "endpoint" else b""
        self._repeated = len(first)
        self.take(first, self.first_byte)
        return part

    def note_fixes(self, repairs: Sequence[AppliedFix]) -> None:
        """What was changed; of very many changes the first ones."""
        room = _MOST_FIXES - len(self.fixes)
        self.fixes += repairs[:room]
        if len(repairs) > room:
            self.notes.append(f"{len(repairs) - room} more fixes were made than are told here")

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return len(self.request_body or b"") + min(self._size, self.limit) + 4096

    @property
    def unread(self) -> bool:
        return self._unread

    @property
    def overflown(self) -> bool:
        """Return True if the body is larger than what is kept of it."""
        return self._size > self.limit

    @property
    def empty(self) -> bool:
        """Return True if no byte of the reply's body has come by."""
        return self._size == 0

    def raw_body(self) -> bytes | None:
        """The body as it was on the wire; None when it was not kept."""
        if self._size > self.limit or len(self._before) > self.limit:
            return None
        return self._before + self._raw.getvalue()[self._repeated :] if self._before else self._raw.getvalue()

    def record(self, end: End, error: str | None, chunks: tuple[tuple[float, int], ...], timing: Timing) -> Record:
        """The exchange as bytes, codings undone."""
        body = self._body()
        return Record(
            id=self.id,
            method=self.method,
            url=self.url,
            request_headers=self.request_headers,
            request_body=self.request_body,
            status=self.status,
            response_headers=self.response_headers,
            response_body=body,
            chunks=chunks,
            timing=timing,
            end=end,
            error=error,
            forwarded=self.forwarded,
            delivered=self.delivered,
            fixes=tuple(self.fixes),
        )

    def _body(self) -> bytes | None:
        if self.status is None or self._unread:
            return None
        if self._decoder is None:
            return self._readable(self._raw.getvalue())
        if not (self._broken or self.unknown):
            return bytes(self._plain)
        try:  # reading stopped somewhere; the bytes did not
            coding = _coding(lower(self.response_headers).get("content-encoding"))
            return self._readable(decode(coding, self._raw.getvalue(), self.limit))
        except CodingError:
            return None

    def _readable(self, body: bytes) -> bytes | None:
        """A body as it is recorded. Of what nobody understands only text is: the rest may be a file of somebody's."""
        return body if not self.unknown or is_text(body) else None

    def close(self) -> None:
        """Lets go of everything; what still arrives is not looked at."""
        self._closed = True
        self._pass_over()
        self._raw, self._plain, self.session = BytesIO(), bytearray(), None


def _coding(value: str | None) -> str | None:
    """The codings that have to be undone, None when there are none."""
    names = [name for item in (value or "").split(",") if (name := item.strip().lower()) and name != "identity"]
    return ", ".join(names) or None
