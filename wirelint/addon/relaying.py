"""The repair of one exchange over a WebSocket: its request before it is sent, the server's messages while they pass.

Each message is read as a line of its own (`wire.websocket`), so the repair of a reply is the one of any stream, and what it
hands out is lines again. A message of which nothing was changed leaves as it came, white space and all.
"""

from __future__ import annotations

from collections.abc import Callable

from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.framing import headers_of
from wirelint.addon.options import Settings
from wirelint.addon.visit import Visit
from wirelint.capture.record import Sent
from wirelint.conversation import Ledger
from wirelint.rewrite import Rewriting
from wirelint.rewrite.requests import mend_request
from wirelint.wire.websocket import HEADERS, as_line

_MOST_ORIGINALS = 256


def mend(flow: http.HTTPFlow, visit: Visit, settings: Settings, ledger: Ledger, failures: Failures) -> bytes | None:
    """The message to send in the place of the client's; None when that is sent as it is. Raises nothing."""
    try:
        session, body = visit.session, visit.request_body
        if session is None or not body or session.request is None:
            return None
        scope = settings.scope_of(session)
        mended = mend_request(session.head(), body, scope.rules, ledger, scope.permit)
        visit.faults += mended.faults
        if mended.body == body:
            return None
        visit.forwarded = Sent(headers_of(flow.request), mended.body)
        visit.asked = mended.request
        visit.note_fixes(mended.repairs)
        return mended.body
    except Exception as error:  # fail open: the request goes out as it is
        failures.add(visit, "repairing the request", error)
        return None


class Relay:
    """The server's messages in, those for the client out. Nothing in here raises.

    Keeps what the client got from where that begins to differ from what came; before it, the visit's copy is both.
    """

    def __init__(self, visit: Visit, rewriting: Rewriting, failures: Failures) -> None:
        self._visit, self._failures = visit, failures
        self._rewriting: Rewriting | None = rewriting
        self._originals: dict[bytes, bytes] = {}
        self._same = 0
        self._other: bytearray | None = None
        self._settled = False

    @classmethod
    def begin(cls, visit: Visit, settings: Settings, ledger: Ledger, failures: Failures) -> Relay | None:
        """For an exchange whose first answer has come; None where nothing can be repaired."""
        if visit.session is None or not visit.readable or visit.unread:
            return None
        try:
            scope = settings.scope_of(visit.session)
            rewriting = Rewriting.begin(
                visit.session, scope.rules, ledger, scope.permit, settings.hold * 1000, visit.asked
            )
        except Exception as error:  # fail open: it passes as it comes
            failures.add(visit, "preparing the repair of the reply", error)
            return None
        return cls(visit, rewriting, failures) if rewriting is not None else None

    def take(self, content: bytes, *, last: bool) -> list[bytes]:
        """What the client gets now that this message has come. `last`: it ends the exchange."""
        line = as_line(content)
        if line[:-1] != content:
            if len(self._originals) >= _MOST_ORIGINALS:
                self._originals.clear()  # they were changed
            self._originals[line] = content
        return self._messages(lambda: self._feed(line, last=last), line)

    def catch_up(self) -> None:
        """Has what has come by read, as far as it was put off."""
        if self._rewriting is not None:
            self._rewriting.catch_up()

    def due(self) -> float | None:
        """Seconds until what is held has to leave; None when nothing is held."""
        try:
            left = self._rewriting.due(self._visit.now()) if self._rewriting is not None else None
        except Exception as error:  # fail open: it leaves with the next message
            self._failures.add(self._visit, "repairing the reply", error)
            return None
        return left / 1000 if left is not None else None

    def overdue(self) -> list[bytes]:
        """What has to leave while the server is silent."""
        return self._let_go(lambda rewriting: rewriting.tick(self._visit.now()))

    def remains(self) -> list[bytes]:
        """What is held when the socket closes."""
        return self._let_go(lambda rewriting: rewriting.flush(self._visit.now()))

    def _let_go(self, ask: Callable[[Rewriting], list[bytes]]) -> list[bytes]:
        rewriting = self._rewriting
        if rewriting is None or self._settled:
            return []
        return self._messages(lambda: ask(rewriting), b"")

    def _feed(self, line: bytes, *, last: bool) -> list[bytes]:
        visit, rewriting = self._visit, self._rewriting
        try:
            visit.keep(line)
        except Exception as error:  # fail open: the repair needs no copy
            self._failures.fail(visit, "reading the reply", error)
        if rewriting is None:
            return [line]
        out = rewriting.feed(line, visit.now())
        visit.mind_the_text()
        return out + rewriting.end() if last else out

    def _messages(self, ask: Callable[[], list[bytes]], line: bytes) -> list[bytes]:
        try:
            data = self._note(b"".join(ask()))
        except Exception as error:  # fail open
            data = self._rescue(line, error)
        return [self._originals.pop(one, one[:-1]) for one in data.splitlines(keepends=True) if not one.isspace()]

    def _note(self, data: bytes) -> bytes:
        """Takes down what is handed out."""
        if self._other is None and self._rewriting is not None and self._rewriting.changed:
            self._other = bytearray()
        if self._other is None:
            self._same += len(data)
        elif not self._visit.overflown:
            self._other += data
        return data

    def _rescue(self, line: bytes, error: Exception) -> bytes:
        """Something in here failed: what is held and what came leave as they are, and so does the rest."""
        rewriting, self._rewriting = self._rewriting, None
        came = self._visit.raw_body() if self._visit.readable and self._other is None else None
        self._failures.fail(self._visit, "repairing the reply", error)
        if came is not None:
            return self._note(came[self._same :])
        return self._note(b"".join(rewriting.flush() if rewriting is not None else ()) + line)

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
        self._rewriting = None
        came = visit.raw_body()
        if self._other is not None:
            body = came[: self._same] + bytes(self._other) if came is not None else None
        elif came is not None and self._same < len(came):
            body = came[: self._same]
            visit.notes.append(f"{len(came) - self._same} bytes were held back when the socket closed; nobody got them")
        else:
            return
        visit.delivered = Sent(HEADERS, body)
