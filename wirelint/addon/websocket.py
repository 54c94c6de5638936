"""Exchanges over WebSockets: recorded while messages pass, and fixed if enabled.

A socket is tracked once a client message begins an exchange of a known API (`wire.websocket`), e.g.
`{"type":"response.create"}`. Server messages belong to the oldest open exchange. An exchange still open when the
socket closes was cut off.

mitmproxy awaits one hook per message. The last message that a fix returns replaces the current one; earlier ones wait
in `Socket.leaving` until the socket sends (`mitm_compat`). A message without output is dropped. Without `mitm_compat`
nothing is fixed, and the exchange says so.

Each message is parsed as one line, so the fix of a reply is the fix of any stream, and its output is lines. An
unchanged message leaves with its original white space."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mitmproxy import connection, http, websocket
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from wirelint.addon.exchange_fix import mended_request, reply_stream_of
from wirelint.addon.log import Failures
from wirelint.addon.mitm_compat import attach_socket
from wirelint.addon.options import Settings
from wirelint.addon.recorder import ExchangeRecorder, new_recorder, pass_unread
from wirelint.addon.streamed_reply import StreamedReply
from wirelint.capture.readers.flows import headers_of, url_of
from wirelint.model import End
from wirelint.rewrite import ReplyStream
from wirelint.state.ledger import Ledger
from wirelint.wire.websocket import HEADERS, STATUS, as_line, closes, may_open, opens, socket_url

_MOST_ORIGINALS = 256


class SocketReply(StreamedReply):
    """Fixer of one reply over a WebSocket: server messages in, messages for the client out."""

    def __init__(self, recorder: ExchangeRecorder, reply_stream: ReplyStream) -> None:
        super().__init__(recorder)
        self.repair_with(reply_stream)
        self._originals: dict[bytes, bytes] = {}

    def feed(self, content: bytes, *, last: bool) -> list[bytes]:
        """Return the messages for the client. `last`: this message ends the exchange."""
        line = as_line(content)
        if line[:-1] != content:
            if len(self._originals) >= _MOST_ORIGINALS:
                self._originals.clear()  # they were changed
            self._originals[line] = content
        try:
            out = self._feed(line)
        except Exception as error:  # fail open
            out = self._give_up(line, error)
        return self._messages(out + self._release(lambda stream: stream.end()) if last else out)

    def release(self) -> list[bytes]:
        return self._messages(super().release())

    def flush(self) -> list[bytes]:
        return self._messages(super().flush())

    def _messages(self, out: list[bytes]) -> list[bytes]:
        lines = b"".join(out).splitlines(keepends=True)
        return [self._originals.pop(one, one[:-1]) for one in lines if not one.isspace()]


_MOST_SOCKETS = 4096
_MOST_OPEN = 16
"""Most exchanges of one socket that wait for their replies; further ones pass unread."""

UNREPAIRED = "the connection to the client of this WebSocket was not found; it was checked but not repaired"


@dataclass(slots=True, eq=False)
class Socket:
    """One WebSocket. `fixer` fixes replies of the oldest open exchange; `repairs`: the client can be reached."""

    flow: http.HTTPFlow
    open: deque[ExchangeRecorder] = field(default_factory=deque)
    count: int = 0
    repairs: bool | None = None
    fixer: SocketReply | None = None
    leaving: list[bytes] = field(default_factory=list)

    def take_ready(self) -> Sequence[bytes]:
        """Return the messages to send before the current one."""
        leaving, self.leaving = self.leaving, []
        return leaving

    def due(self) -> float | None:
        return self.fixer.due() if self.fixer is not None else None

    def release(self) -> Sequence[bytes]:
        return self._shown(self.fixer.release()) if self.fixer is not None else ()

    def flush(self) -> Sequence[bytes]:
        return [*self.take_ready(), *(self._shown(self.fixer.flush()) if self.fixer is not None else ())]

    def _shown(self, made: Sequence[bytes]) -> Sequence[bytes]:
        if self.flow.websocket is not None:
            self.flow.websocket.messages += map(_made, made)
        return made


class WebSockets:
    """All sockets with exchanges. `settle` takes an exchange that has ended, with its end and error."""

    def __init__(
        self, settle: Callable[[ExchangeRecorder, End, str | None], None], ledger: Ledger, failures: Failures
    ) -> None:
        self._settle, self._ledger, self._failures = settle, ledger, failures
        self._sockets: OrderedDict[str, Socket] = OrderedDict()

    @property
    def open(self) -> int:
        return sum(len(socket.open) for socket in self._sockets.values())

    def under_way(self) -> Iterator[ExchangeRecorder]:
        """Yield the exchange in progress of each socket: the oldest."""
        for socket in self._sockets.values():
            if socket.open:
                yield socket.open[0]

    def message(self, flow: http.HTTPFlow, settings: Settings) -> None:
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
        socket = self._sockets.pop(flow.id, None)
        if socket is not None and flow.websocket is not None:
            by_client, code = flow.websocket.closed_by_client, flow.websocket.close_code
            reason = f"the {'client' if by_client else 'server'} closed the socket ({code})"
            self._cut(socket, "client-left" if by_client else "upstream-died", reason)

    def sweep(self, client: connection.Client | None, reason: str) -> None:
        """End the open exchanges of one client, or of all."""
        for name, socket in tuple(self._sockets.items()):
            if client is None or socket.flow.client_conn.id == client.id:
                del self._sockets[name]
                self._cut(socket, "client-left", reason)

    def _ask(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage, settings: Settings) -> None:
        body: bytes = message.content
        large = len(body) > settings.max_body
        if not (may_open(body) if large else opens(body)):
            return
        socket = self._sockets.get(flow.id) or Socket(flow)
        if len(socket.open) >= _MOST_OPEN:
            return
        recorder = new_recorder(
            flow,
            None if large else body,
            settings,
            self._failures,
            name=f"{flow.id}:{socket.count + 1}",
            url=socket_url(url_of(flow.request)),
            started=message.timestamp,
        )
        if large:
            pass_unread(recorder, "POST", {"input": [{"role": "user"}]}, large=True)
        else:
            recorder.begin_session(later=not recorder.rules.repair)
        if recorder.session is None:  # of an unknown API
            return
        if recorder.rules.repair and not large:
            self._fix_request(socket, recorder, message)
        socket.count += 1
        socket.open.append(recorder)
        self._sockets[flow.id] = socket
        while len(self._sockets) > _MOST_SOCKETS:
            _, oldest = self._sockets.popitem(last=False)
            self._cut(oldest, "unread", "too many open WebSockets; this one is no longer watched")

    def _fix_request(self, socket: Socket, recorder: ExchangeRecorder, message: websocket.WebSocketMessage) -> None:
        if socket.repairs is None:
            socket.repairs = False
            with recorder.caught("reaching the client", readable=True):
                socket.repairs = attach_socket(socket.flow, socket)
        if not socket.repairs:
            recorder.notes.append(UNREPAIRED)
            return
        with recorder.caught("repairing the request", readable=True):
            mended = mended_request(recorder, recorder.scope(), self._ledger)
            if mended is not None:
                recorder.forward(headers_of(socket.flow.request), mended)
                message.content = mended.body

    def _answer(self, socket: Socket, message: websocket.WebSocketMessage, settings: Settings) -> None:
        recorder, content = socket.open[0], message.content
        if recorder.status is None:
            recorder.respond(STATUS, HEADERS)
            if socket.repairs and recorder.rules.repair:
                with recorder.caught("preparing the repair of the reply", readable=True):
                    stream = reply_stream_of(recorder, recorder.scope(), settings, self._ledger)
                    socket.fixer = SocketReply(recorder, stream) if stream is not None else None
        last = closes(content)
        if socket.fixer is None or not content.strip():
            recorder.store_for_later(as_line(content))
        else:
            made = socket.fixer.feed(content, last=last)
            if not made:
                message.drop()  # type: ignore[no-untyped-call]
            elif made[-1] != content:
                message.content = made[-1]
            socket.leaving += made[:-1]
            if socket.flow.websocket is not None:
                socket.flow.websocket.messages[-1:-1] = map(_made, made[:-1])
        if last:
            self._end(socket, "complete", None)

    def _end(self, socket: Socket, end: End, error: str | None) -> None:
        recorder = socket.open.popleft()
        fixer, socket.fixer = socket.fixer, None
        if fixer is not None:
            fixer.settle(HEADERS, "the socket closed")
        self._settle(recorder, end, error)

    def _cut(self, socket: Socket, end: End, error: str) -> None:
        while socket.open:
            self._end(socket, end, error)


def _made(content: bytes) -> WebSocketMessage:
    return WebSocketMessage(Opcode.TEXT, False, content)
