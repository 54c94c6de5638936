"""Exchanges over WebSockets: read along while the messages pass, never changed.

Theory of operation. mitmproxy calls one hook for each message, and waits for it; so a message can be replaced, or dropped,
but not become two: what is injected in its place comes after all that had arrived with it. Repairs hold text back and let
several events out at once, therefore there are none here, and where they are asked for the exchange says so.

A socket is looked at only as far as its client's messages begin exchanges of an API that is known (`wire.websocket`). The
server's messages belong to the oldest exchange that is open. One that is still open when the socket closes was cut off.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mitmproxy import connection, http, websocket

from wirelint.addon.ending import Ended
from wirelint.addon.ignoring import asked_headers
from wirelint.addon.options import Settings
from wirelint.addon.visit import Visit
from wirelint.engine import Session, lower
from wirelint.model import End
from wirelint.wire.websocket import HEADERS, STATUS, as_line, closes, opens, socket_url

_MOST_SOCKETS = 4096
_MOST_OPEN = 16
"""Exchanges of one socket that wait for their replies; more of them are not read."""

UNREPAIRED = "what passes over a WebSocket is judged and not repaired"


@dataclass(slots=True)
class _Socket:
    flow: http.HTTPFlow
    open: deque[Visit] = field(default_factory=deque)
    count: int = 0


class Sockets:
    """The sockets of a proxy on which exchanges have been seen. `finish` takes over an exchange that has ended."""

    def __init__(self, finish: Callable[[Ended], None]) -> None:
        self._finish = finish
        self._sockets: OrderedDict[str, _Socket] = OrderedDict()

    @property
    def open(self) -> int:
        """Exchanges that wait for their replies."""
        return sum(len(socket.open) for socket in self._sockets.values())

    def message(self, flow: http.HTTPFlow, settings: Settings) -> None:
        """The last message of a flow's socket, which is on its way."""
        if flow.websocket is None or not flow.websocket.messages:
            return
        message = flow.websocket.messages[-1]
        if not message.is_text:
            return
        if message.from_client:
            self._ask(flow, message, settings)
        elif (socket := self._sockets.get(flow.id)) is not None and socket.open:
            self._answer(socket, message.content)

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
        if not large and not opens(body):
            return
        socket = self._sockets.get(flow.id) or _Socket(flow)
        if large or len(socket.open) >= _MOST_OPEN:
            return
        visit = _begin(flow, message, f"{flow.id}:{socket.count + 1}", settings)
        if visit is None:
            return
        socket.count += 1
        socket.open.append(visit)
        self._sockets[flow.id] = socket
        while len(self._sockets) > _MOST_SOCKETS:
            _, oldest = self._sockets.popitem(last=False)
            self._cut(oldest, "unread", "too many sockets at one time; this one was let go")

    def _answer(self, socket: _Socket, content: bytes) -> None:
        visit = socket.open[0]
        if visit.status is None:
            visit.respond(STATUS, HEADERS)
        line = as_line(content)
        if visit.live:
            visit.note(line)
        else:
            visit.take(line)
        if closes(content):
            socket.open.popleft()
            self._finish(Ended(visit, socket.flow, "complete", None, visit.now() if visit.live else None))

    def _cut(self, socket: _Socket, end: End, error: str) -> None:
        while socket.open:
            visit = socket.open.popleft()
            self._finish(Ended(visit, socket.flow, end, error, visit.now() if visit.live else None))


def _begin(flow: http.HTTPFlow, message: websocket.WebSocketMessage, name: str, settings: Settings) -> Visit | None:
    """The visit of an exchange that a message begins; None when it is of no API that is known."""
    visit = Visit(
        id=name,
        client=flow.client_conn.id,
        method=flow.request.method,
        url=socket_url(flow.request.pretty_url),
        request_headers=asked_headers(flow),
        request_body=message.content,
        session=None,
        started=message.timestamp,
        limit=settings.max_body,
        clock=time.perf_counter,
        began=time.perf_counter(),
        live=flow.live,
    )
    visit.session = Session.begin(
        id=name,
        method=visit.method,
        url=visit.url,
        headers=lower(visit.request_headers),
        body=message.content,
        started=visit.started,
        max_body=settings.max_body,
        later=True,
    )
    if settings.repairs:
        visit.notes.append(UNREPAIRED)
    return visit if visit.session is not None else None
