"""One exchange while it passes: what is known of it, and a copy of its bytes. No mitmproxy in here.

A visit begins with the request, reads the reply as it arrives, and ends once. It never holds more of a body than the
limit; above that, and where a coding cannot be undone, it lets go of what it has and the exchange counts as unread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wirelint.capture.record import Headers, Record
from wirelint.engine import Session, internal, lower
from wirelint.model import End, Timing
from wirelint.rule import Finding
from wirelint.wire.codings import CodingError, Decoder, TooLargeError, decode, decoder

_MOST_FAULTS = 8


@dataclass(slots=True, eq=False)
class Visit:
    """`clock` gives seconds that only grow, `began` is its value when the request was complete; `started` is Unix time.

    `session` is None when the request could not be read because of a failure of ours: then `faults` says so. `live` is
    False for a flow that was loaded from a file.
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
    _decoder: Decoder | None = None
    _raw: bytearray = field(default_factory=bytearray)
    _plain: bytearray = field(default_factory=bytearray)
    _whole: bytes = b""
    _size: int = 0
    _unread: bool = False
    _broken: bool = False
    _closed: bool = False

    @property
    def readable(self) -> bool:
        """Whether the session can be asked for an exchange."""
        return self.session is not None and not self._broken

    def now(self) -> float:
        """Milliseconds since the request."""
        return round((self.clock() - self.began) * 1000, 3)

    def respond(self, status: int, headers: Headers) -> None:
        """The head of the reply. Interim replies (1xx) never come here."""
        self.status, self.response_headers = status, headers
        self.first_byte = self.now() if self.live else None
        fields = lower(headers)
        if self.readable and self.session is not None:
            self.session.respond(status, fields)
        try:
            self._decoder = decoder(coding, self.limit) if (coding := _coding(fields.get("content-encoding"))) else None
        except CodingError as error:
            self.give_up(f"the reply cannot be read: {error}", keep_raw=True)

    def take(self, data: bytes, at: float | None = None) -> None:
        """Bytes of the reply's body as they are on the wire, and when they came (ms after the request)."""
        if self._closed or not data:
            return
        self._size += len(data)
        if self._size > self.limit:
            if self._raw or self._whole or not self._unread:
                self.give_up(f"the reply is larger than wirelint_max_body ({self.limit} bytes); it passed unread")
            return
        self._raw += data
        if self._unread or self._broken or self.session is None:
            return
        plain = data
        if self._decoder is not None:
            try:
                plain = self._decoder.feed(data)
            except TooLargeError:
                self.give_up(f"the reply is larger than wirelint_max_body ({self.limit} bytes); it passed unread")
                return
            except CodingError as error:
                self.give_up(f"the reply is not what its content-encoding says: {error}", keep_raw=True)
                return
            self._plain += plain
        self.session.feed(plain, at)

    def give_up(self, note: str, *, keep_raw: bool = False) -> None:
        """What is left of the exchange passes unread. `keep_raw`: its bytes are still worth recording."""
        self._unread = True
        self.notes.append(note)
        self._decoder = None
        self._plain.clear()
        if not keep_raw:
            self._raw.clear()
            self._whole = b""
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

    @property
    def unread(self) -> bool:
        return self._unread

    @property
    def empty(self) -> bool:
        """Whether no byte of the reply's body has come by."""
        return self._size == 0

    def raw_body(self) -> bytes | None:
        """The body as it was on the wire; None when it was not kept."""
        return self._raw_bytes() if self._size <= self.limit else None

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
        )

    def _body(self) -> bytes | None:
        if self.status is None or self._unread:
            return None
        if self._decoder is None:
            return self._raw_bytes()
        if not self._broken:
            return bytes(self._plain)
        try:  # reading stopped somewhere; the bytes did not
            return decode(_coding(lower(self.response_headers).get("content-encoding")), self._raw_bytes(), self.limit)
        except CodingError:
            return None

    def _raw_bytes(self) -> bytes:
        """The bytes so far, once: they are asked for twice, and may be many."""
        if self._raw:
            self._whole += self._raw
            self._raw.clear()
        return self._whole

    def close(self) -> None:
        """Lets go of everything; what still arrives is not looked at."""
        self._closed = True
        self._raw, self._plain, self._whole, self.session = bytearray(), bytearray(), b"", None


def _coding(value: str | None) -> str | None:
    """The codings that have to be undone, None when there are none."""
    names = [name for item in (value or "").split(",") if (name := item.strip().lower()) and name != "identity"]
    return ", ".join(names) or None
