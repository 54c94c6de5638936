"""The stream callable of a reply that may be repaired: bytes of the upstream in, bytes for the client out.

What mitmproxy asks of such a callable is told in `tee`. It is called only when bytes have come; what has to leave while the
upstream is silent, or when it dies, leaves through `mitm_compat`. Where that is off, text that was held for too long
leaves with the next byte, what is held when the reply ends in `error` is lost, and the exchange says so.

The body is decoded on its way, since its head has to say how it is coded before anything of it is known. So damage of the
coding cannot be handed on as it is: what was decoded is delivered, nothing more, and the connection ends as a broken one.
A body that swells ends like that, too: above the limit it may grow as events of a stream do, and no more.

An empty call of HTTP/1 is the end of the reply, unless that is told by the end of the connection alone. HTTP/2 makes one of
every empty frame; without `mitm_compat`, which keeps those away, it only means that nothing may be held any longer.
"""

from __future__ import annotations

from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import HEADER, add_field, has_known_end, headers_of, make_open_ended
from wirelint.addon.mitm_compat import attach
from wirelint.addon.passage import Passage
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis.unknown import is_text
from wirelint.capture.record import Headers
from wirelint.rewrite import ReplyStream
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decoder

CUT_OFF = "the reply ends before its content-encoding does"

_SWELLS = 400
"""Times its own size that a body may become once it is above the limit. Events that are flushed one by one become 20 times
as large, and 260 times where all of them say the same and are compressed as a whole; a bomb becomes 1000 times as large."""
_UNDECODED = 1 << 10
"""Bytes of which nothing was decoded that are kept, as they may turn out not to be coded at all."""


class Delivery(Passage):
    """Puts itself on the reply of a flow whose head has come, and readies that head."""

    over = "the exchange ended"

    def __init__(
        self,
        flow: http.HTTPFlow,
        visit: ExchangeRecorder,
        rewriting: ReplyStream,
        failures: Failures,
        announce: str,
    ) -> None:
        response = flow.response
        assert response is not None
        coding = visit.expect_plain()
        super().__init__(visit, rewriting, failures)
        self._flow = flow
        self._decoder: Decoder | None = decoder(coding, visit.limit, ratio=_SWELLS) if coding else None
        self._attached = self._attach()
        self._ends = has_known_end(response) or (not response.http_version.startswith("HTTP/1") and self._attached)
        self._told_end = response.http_version.startswith("HTTP/1") or self._attached  # an empty call is an end
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
                return self._rescue(data, error)
            except Exception:  # fail open: raising here would hang the client
                return [data] if data else []

    def _attach(self) -> bool:
        try:
            return attach(self._flow, self)
        except Exception as error:  # fail open: it goes without
            self._failures.add(self._visit, "reaching the client", error)
            return False

    def _over(self) -> list[bytes]:
        if self._decoder is not None and not self._decoder.finished and self._told_end and not self._settled:
            self._break(CUT_OFF)
        if self._broken and self._flow.killable:
            # What came is no reply: without this the client would take it for one that ended well.
            self._flow.kill()  # type: ignore[no-untyped-call, unused-ignore]
        if self._settled:
            return []
        if self._rewriting is None:
            return self._note([])
        if self._ends and not self._broken:
            return self._note(self._rewriting.end())
        return self._note(self._rewriting.flush(self._visit.now()))

    def _decode(self, decoder: Decoder, data: bytes) -> bytes:
        """Plain bytes; where it turns out that the body is text that is not coded at all, all bytes as they are."""
        undecoded = self._undecoded
        if undecoded is not None:
            undecoded += data
        try:
            plain = decoder.feed(data)
        except CodingError as error:
            self._decoder = None
            plain = error.plain
            large = isinstance(error, TooLargeError)
            told = f"the reply is not what its content-encoding says: {'it swells' if large else error}"
            self._visit.give_up(told, keep_raw=True)
            if undecoded and not plain and not large and is_text(bytes(undecoded)):
                return bytes(undecoded)
            self._break(told)
        if plain or (undecoded is not None and len(undecoded) > _UNDECODED):
            self._undecoded = None
        return plain

    def _break(self, why: str) -> None:
        """Nothing more is delivered, and the reply does not end well."""
        self._broken = True
        self._visit.cut_short = why
