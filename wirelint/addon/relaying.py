"""The repair of one exchange over a WebSocket: its request before it is sent, the server's messages while they pass.

Each message is read as a line of its own (`wire.websocket`), so the repair of a reply is the one of any stream, and what it
hands out is lines again. A message of which nothing was changed leaves as it came, white space and all.
"""

from __future__ import annotations

from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import headers_of
from wirelint.addon.options import Settings
from wirelint.addon.passage import Passage
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.record import Headers, Sent
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.request import mend_request
from wirelint.state.ledger import Ledger
from wirelint.wire.websocket import HEADERS, as_line

_MOST_ORIGINALS = 256


def mend(
    flow: http.HTTPFlow, visit: ExchangeRecorder, settings: Settings, ledger: Ledger, failures: Failures
) -> bytes | None:
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


class Relay(Passage):
    """The server's messages in, those for the client out."""

    over = "the socket closed"

    def __init__(self, visit: ExchangeRecorder, rewriting: ReplyStream, failures: Failures) -> None:
        super().__init__(visit, rewriting, failures)
        self._originals: dict[bytes, bytes] = {}

    def headers(self) -> Headers:
        return HEADERS

    @classmethod
    def begin(cls, visit: ExchangeRecorder, settings: Settings, ledger: Ledger, failures: Failures) -> Relay | None:
        """For an exchange whose first answer has come; None where nothing can be repaired."""
        if visit.session is None or not visit.readable or visit.unread:
            return None
        try:
            scope = settings.scope_of(visit.session)
            rewriting = ReplyStream.begin(
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
        return self._messages(self._pass(line, last=last))

    def overdue(self) -> list[bytes]:
        return self._messages(super().overdue())

    def remains(self) -> list[bytes]:
        return self._messages(super().remains())

    def _pass(self, line: bytes, *, last: bool) -> list[bytes]:
        try:
            out = self._feed(line)
        except Exception as error:  # fail open
            out = self._rescue(line, error)
        return out + self._let_go(lambda rewriting: rewriting.end()) if last else out

    def _messages(self, out: list[bytes]) -> list[bytes]:
        lines = b"".join(out).splitlines(keepends=True)
        return [self._originals.pop(one, one[:-1]) for one in lines if not one.isspace()]
