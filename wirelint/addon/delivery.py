"""The stream callable of a reply that may be repaired: bytes of the upstream in, bytes for the client out.

What mitmproxy asks of such a callable is told in `tee`. It is called only when bytes have come; what has to leave while the
upstream is silent, or when it dies, leaves through the `outlet`. Where there is none, text that was held for too long
leaves with the next byte, what is held when the reply ends in `error` is lost, and the exchange says so.

An empty call of HTTP/1 is the end of the reply, unless that is told by the end of the connection alone. HTTP/2 makes one of
every empty frame; without an outlet, which keeps those away, it only means that nothing may be held any longer.
"""

from __future__ import annotations

from collections.abc import Callable

from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.framing import HEADER, has_known_end, headers_of, make_open_ended
from wirelint.addon.outlet import attach
from wirelint.addon.visit import Visit
from wirelint.capture.record import Sent
from wirelint.rewrite import Rewriting
from wirelint.wire.codings import CodingError, Decoder, TooLargeError, decoder


class Delivery:
    """Puts itself on the reply of a flow whose head has come, and readies that head.

    Keeps what the client got from where that begins to differ from what came; before it, the visit's copy is both.
    """

    def __init__(
        self,
        flow: http.HTTPFlow,
        visit: Visit,
        rewriting: Rewriting,
        failures: Failures,
        announce: str,
    ) -> None:
        response = flow.response
        assert response is not None
        coding = visit.expect_plain()
        self._flow, self._visit, self._failures = flow, visit, failures
        self._rewriting: Rewriting | None = rewriting
        self._decoder: Decoder | None = decoder(coding, visit.limit, endless=True) if coding else None
        self._attached = self._attach()
        self._ends = has_known_end(response) or (not response.http_version.startswith("HTTP/1") and self._attached)
        self._same = 0
        self._other: bytearray | None = None
        self._decoded = False
        self._broken = False
        self._settled = False
        make_open_ended(flow.request, response)
        if announce:
            response.headers.add(HEADER, announce)
        response.stream = self

    def __call__(self, data: bytes) -> list[bytes]:
        try:
            if not data:
                return self._over()
            if self._decoder is not None:
                data = self._decode(self._decoder, data)
                if not data:
                    return []
            return self._pass(data)
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

    def catch_up(self) -> None:
        """Has what has come by read, as far as it was put off."""
        if self._rewriting is not None:
            self._rewriting.catch_up()

    def due(self) -> float | None:
        """Seconds until what is held has to leave; None when nothing is held."""
        try:
            left = self._rewriting.due(self._visit.now()) if self._rewriting is not None else None
        except Exception as error:  # fail open: it leaves with the next byte
            self._failures.add(self._visit, "repairing the reply", error)
            return None
        return left / 1000 if left is not None else None

    def overdue(self) -> list[bytes]:
        """What has to leave while the upstream is silent."""
        return self._let_go(lambda rewriting: rewriting.tick(self._visit.now()))

    def remains(self) -> list[bytes]:
        """What is held when the upstream dies."""
        return self._let_go(lambda rewriting: rewriting.flush(self._visit.now()))

    def _let_go(self, ask: Callable[[Rewriting], list[bytes]]) -> list[bytes]:
        if self._rewriting is None or self._settled:
            return []
        try:
            return self._note(ask(self._rewriting))
        except Exception as error:  # fail open
            return self._rescue(b"", error)

    def _pass(self, data: bytes) -> list[bytes]:
        visit, rewriting = self._visit, self._rewriting
        try:
            visit.keep(data)
        except Exception as error:  # fail open: the repair needs no copy
            self._failures.fail(visit, "reading the reply", error)
        if rewriting is None:
            return self._note([data])
        out = rewriting.feed(data, visit.now())
        visit.mind_the_text()
        return self._note(out)

    def _over(self) -> list[bytes]:
        if self._broken and self._flow.killable:
            # What came is no reply: without this the client would take it for one that ended well.
            self._flow.kill()  # type: ignore[no-untyped-call, unused-ignore]
        if self._rewriting is None or self._settled:
            return []
        end = self._ends and not self._broken
        return self._note(self._rewriting.end() if end else self._rewriting.flush(self._visit.now()))

    def _decode(self, decoder: Decoder, data: bytes) -> bytes:
        """Plain bytes; once the coding turns out to be broken, all bytes as they are."""
        try:
            plain = decoder.feed(data)
        except CodingError as error:
            self._decoder = None
            large = isinstance(error, TooLargeError)
            # A body that is not coded at all, whatever its header says, is the better for being passed on without it.
            self._broken = self._decoded or large
            self._visit.give_up(
                f"the reply is not what its content-encoding says: {'it swells' if large else error}", keep_raw=True
            )
            return data
        self._decoded = self._decoded or bool(plain)
        return plain

    def _note(self, out: list[bytes]) -> list[bytes]:
        """Takes down what is handed out."""
        rewriting = self._rewriting
        if self._other is None and rewriting is not None and rewriting.changed:
            self._other = bytearray()
        if self._other is None:
            for piece in out:
                self._same += len(piece)
        elif not self._visit.overflown:
            for piece in out:
                self._other += piece
        return out

    def _rescue(self, data: bytes, error: Exception) -> list[bytes]:
        """Something in here failed: what is held and what came go out as they are, and so does the rest."""
        rewriting, self._rewriting = self._rewriting, None
        visit = self._visit
        came = visit.raw_body() if visit.readable and self._other is None else None
        self._failures.fail(visit, "repairing the reply", error)
        if came is not None:
            held = came[self._same :]
        else:
            held = b"".join(rewriting.flush() if rewriting is not None else ()) + data
        return self._note([held] if held else [])

    def settle(self) -> None:
        """The exchange is over: the visit hears what became of its reply."""
        rewriting, visit = self._rewriting, self._visit
        if self._settled:
            return
        self._settled = True
        if rewriting is not None:
            rewriting.catch_up()
            visit.faults += rewriting.faults
            visit.reread = visit.reread or bool(rewriting.faults)
            if not visit.unread:
                visit.notes += rewriting.notes
            if rewriting.changed:
                visit.note_fixes(rewriting.repairs)
        self._rewriting = None  # a flow that is kept keeps what streams it
        came = visit.raw_body()
        if self._other is not None:
            body = came[: self._same] + bytes(self._other) if came is not None else None
        elif came is not None and self._same < len(came):
            body = came[: self._same]
            visit.notes.append(
                f"{len(came) - self._same} bytes were held back when the exchange ended; nobody got them"
            )
        else:
            return
        assert self._flow.response is not None
        visit.delivered = Sent(headers_of(self._flow.response), body)
