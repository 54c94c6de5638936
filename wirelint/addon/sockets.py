"""Exchanges over WebSockets: read along while the messages pass, and repaired where that is asked for.

Theory of operation. A socket is looked at only as far as its client's messages begin exchanges of an API that is known
(`wire.websocket`). The server's messages belong to the oldest exchange that is open. One that is still open when the socket
closes was cut off.

mitmproxy calls one hook for each message, and waits for it. Of what a repair hands out for a message (`relaying`) the last
one takes its place; those before it wait in `_Socket.leaving` until the socket sends that, which takes them along
(`mitm_compat`). A message for which nothing leaves is dropped. Where that is off nothing is repaired, and
the exchange says so.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from mitmproxy import connection, http, websocket
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from wirelint.addon.end_reason import Ended
from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import headers_of
from wirelint.addon.ignoring import asked_headers
from wirelint.addon.mitm_compat import attach_socket
from wirelint.addon.options import Settings
from wirelint.addon.passage import Passage
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import recognise
from wirelint.capture.record import Headers, Sent
from wirelint.engine import Session, lower
from wirelint.model import End
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.request import mend_request
from wirelint.state.ledger import Ledger
from wirelint.wire.websocket import HEADERS, STATUS, as_line, closes, may_open, opens, socket_url

# The repair of one exchange over a WebSocket: its request before it is sent, the server's messages while they pass.
#
# Each message is read as a line of its own (`wire.websocket`), so the repair of a reply is the one of any stream,
# and what it
# hands out is lines again. A message of which nothing was changed leaves as it came, white space and all.

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


_MOST_SOCKETS = 4096
_MOST_OPEN = 16
"""Exchanges of one socket that wait for their replies; more of them are not read."""

UNREPAIRED = "the way to the client of this WebSocket was not found; it was judged and not repaired"


class OpenOnSocket(NamedTuple):
    """An exchange that is under way on a socket, for whoever watches how it goes (`watch`)."""

    visit: ExchangeRecorder
    flow: http.HTTPFlow
    mending: Relay | None


@dataclass(slots=True, eq=False)
class _Socket:
    """One WebSocket. `relay` repairs the replies of the oldest open exchange; `repairs`: is its client reachable."""

    flow: http.HTTPFlow
    open: deque[ExchangeRecorder] = field(default_factory=deque)
    count: int = 0
    repairs: bool | None = None
    relay: Relay | None = None
    leaving: list[bytes] = field(default_factory=list)

    def ready(self) -> Sequence[bytes]:
        leaving, self.leaving = self.leaving, []
        return leaving

    def due(self) -> float | None:
        return self.relay.due() if self.relay is not None else None

    def overdue(self) -> Sequence[bytes]:
        return self._shown(self.relay.overdue() if self.relay is not None else [])

    def remains(self) -> Sequence[bytes]:
        return [*self.ready(), *self._shown(self.relay.remains() if self.relay is not None else [])]

    def _shown(self, made: Sequence[bytes]) -> Sequence[bytes]:
        """Has the flow show messages that leave by themselves."""
        if self.flow.websocket is not None:
            self.flow.websocket.messages += [_made(content) for content in made]
        return made


class Sockets:
    """The sockets of a proxy on which exchanges have been seen. `finish` takes over an exchange that has ended."""

    def __init__(self, finish: Callable[[Ended], None], ledger: Ledger, failures: Failures) -> None:
        self._finish, self._ledger, self._failures = finish, ledger, failures
        self._sockets: OrderedDict[str, _Socket] = OrderedDict()

    @property
    def open(self) -> int:
        """Exchanges that wait for their replies."""
        return sum(len(socket.open) for socket in self._sockets.values())

    def under_way(self) -> Iterator[OpenOnSocket]:
        """The exchanges that the servers are answering: the oldest one of each socket."""
        for socket in self._sockets.values():
            if socket.open:
                yield OpenOnSocket(socket.open[0], socket.flow, socket.relay)

    def message(self, flow: http.HTTPFlow, settings: Settings) -> None:
        """The last message of a flow's socket, which is on its way."""
        if flow.websocket is None or not flow.websocket.messages:
            return
        message = flow.websocket.messages[-1]
        if not message.is_text or message.injected or message.dropped:
            return
        if message.from_client:
            self._ask(flow, message, settings)
        elif (socket := self._sockets.get(flow.id)) is not None and socket.open:
            self._answer(socket, message, settings)

    def close(self, flow: http.HTTPFlow) -> None:
        """The socket of a flow has been closed."""
        socket = self._sockets.pop(flow.id, None)
        if socket is None or flow.websocket is None:
            return
        by_client = flow.websocket.closed_by_client
        end: End = "client-left" if by_client else "upstream-died"
        who = "client" if by_client else "server"
        self._cut(socket, end, f"the {who} closed the socket ({flow.websocket.close_code})")

    def sweep(self, client: connection.Client | None, reason: str) -> None:
        """Ends what is open: of one client, or of all."""
        for name, socket in tuple(self._sockets.items()):
            if client is None or socket.flow.client_conn.id == client.id:
                del self._sockets[name]
                self._cut(socket, "client-left", reason)

    def _ask(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage, settings: Settings) -> None:
        body: bytes = message.content
        large = len(body) > settings.max_body
        if not (may_open(body) if large else opens(body)):
            return
        socket = self._sockets.get(flow.id) or _Socket(flow)
        if len(socket.open) >= _MOST_OPEN:
            return
        visit = _begin(flow, message, f"{flow.id}:{socket.count + 1}", settings, large=large)
        if visit is None:
            return
        if settings.repairs and not large:
            self._mend(socket, visit, message, settings)
        socket.count += 1
        socket.open.append(visit)
        self._sockets[flow.id] = socket
        while len(self._sockets) > _MOST_SOCKETS:
            _, oldest = self._sockets.popitem(last=False)
            self._cut(oldest, "unread", "too many sockets at one time; this one was let go")

    def _mend(
        self, socket: _Socket, visit: ExchangeRecorder, message: websocket.WebSocketMessage, settings: Settings
    ) -> None:
        """Repairs a client's message, and sees to it that the replies can be."""
        if not visit.live:
            return
        if socket.repairs is None:
            try:
                socket.repairs = attach_socket(socket.flow, socket)
            except Exception as error:  # fail open: it goes without
                socket.repairs = False
                self._failures.add(visit, "reaching the client", error)
        if not socket.repairs:
            visit.notes.append(UNREPAIRED)
            return
        mended = mend(socket.flow, visit, settings, self._ledger, self._failures)
        if mended is not None:
            message.content = mended

    def _answer(self, socket: _Socket, message: websocket.WebSocketMessage, settings: Settings) -> None:
        visit, content = socket.open[0], message.content
        if visit.status is None:
            visit.respond(STATUS, HEADERS)
            if socket.repairs and settings.repairs:
                socket.relay = Relay.begin(visit, settings, self._ledger, self._failures)
        last = closes(content)
        if not visit.live:
            visit.take(as_line(content))
        elif socket.relay is None or not content.strip():
            visit.note(as_line(content))
        else:
            self._pass(socket, socket.relay.take(content, last=last), message)
        if last:
            self._end(socket, "complete", None)

    def _pass(self, socket: _Socket, made: Sequence[bytes], message: websocket.WebSocketMessage) -> None:
        """Has these messages sent in the place of one."""
        if not made:
            message.drop()  # type: ignore[no-untyped-call]
            return
        if made[-1] != message.content:
            message.content = made[-1]
        socket.leaving += made[:-1]
        if socket.flow.websocket is not None:
            socket.flow.websocket.messages[-1:-1] = [_made(content) for content in made[:-1]]

    def _end(self, socket: _Socket, end: End, error: str | None) -> None:
        """The oldest exchange of a socket is over."""
        visit = socket.open.popleft()
        relay, socket.relay = socket.relay, None
        if relay is not None:
            relay.settle()
        self._finish(Ended(visit, socket.flow, end, error, visit.now() if visit.live else None))

    def _cut(self, socket: _Socket, end: End, error: str) -> None:
        while socket.open:
            self._end(socket, end, error)


def _begin(
    flow: http.HTTPFlow, message: websocket.WebSocketMessage, name: str, settings: Settings, *, large: bool
) -> ExchangeRecorder | None:
    """The visit of an exchange that a message begins; None when it is of no API that is known.

    `large`: the message is above the limit, and the exchange passes unread.
    """
    visit = ExchangeRecorder(
        id=name,
        client=flow.client_conn.id,
        method=flow.request.method,
        url=socket_url(flow.request.pretty_url),
        request_headers=asked_headers(flow),
        request_body=None if large else message.content,
        session=None,
        started=message.timestamp,
        limit=settings.max_body,
        clock=time.perf_counter,
        began=time.perf_counter(),
        live=flow.live,
    )
    if large:
        return _unread(visit, settings.max_body)
    visit.session = Session.begin(
        id=name,
        method=visit.method,
        url=visit.url,
        headers=lower(visit.request_headers),
        body=message.content,
        started=visit.started,
        max_body=settings.max_body,
        later=not settings.repairs,
    )
    return visit if visit.session is not None else None


def _unread(visit: ExchangeRecorder, limit: int) -> ExchangeRecorder | None:
    headers, parts = lower(visit.request_headers), urlsplit(visit.url)
    api = recognise("POST", parts.path, headers, {"input": [{"role": "user"}]}, parts.netloc)
    if api is None:
        return None
    visit.session = Session(api, None, id=visit.id, method=visit.method, url=visit.url, headers=headers)
    visit.give_up(f"the request is larger than wirelint_max_body ({limit} bytes); the exchange passed unread")
    return visit


def _made(content: bytes) -> WebSocketMessage:
    """A message of the server's side that a repair made."""
    return WebSocketMessage(Opcode.TEXT, False, content)
