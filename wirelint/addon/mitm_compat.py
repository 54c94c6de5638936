"""The only module that uses internals of mitmproxy: it sends to a client at times for which mitmproxy has no hook.

mitmproxy calls a stream only when bytes arrive, not when the upstream dies. The layer of an exchange gets an outer handler:
- Held text is sent when its time is over (the layer requests a `Wakeup`) and when the upstream dies.
- Empty data of HTTP/2 in mid-stream is dropped, so that an empty call of the stream means its end.
- If a body breaks off while mitmproxy collects it, the received part is sent, without an error page.
- A WebSocket can send several messages instead of one.
If this module is off, or with an untested mitmproxy, held text leaves with the next bytes or is lost (with a note on
the exchange), and WebSockets are not repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mitmproxy import ctx, http, version
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import HttpLayer, HttpStream, SendHttp
from mitmproxy.proxy.layers.http import _events as http_events
from mitmproxy.proxy.layers.websocket import WebsocketLayer
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Event, TextMessage

if TYPE_CHECKING:
    from wirelint.addon.streamed_reply import Held
    from wirelint.addon.websocket import Socket

is_enabled = True  # `wirelint_mitm_compat`
Handler = Callable[[events.Event], layer.CommandGenerator[None]]


def attach(flow: http.HTTPFlow, held: Held) -> bool:
    """Let `held` send to the client of a streamed reply whose head has arrived. Return False if it cannot."""
    stream = find_stream(flow)
    if stream is None:
        return False
    before: Handler = stream._handle_event

    def is_sending() -> bool:
        try:
            streams = stream.server_state == stream.state_stream_response_body
            return bool(streams) and stream.client_state != stream.state_errored
        except AttributeError:  # fail open with another mitmproxy: held text leaves with the next bytes
            return False

    def pass_on(event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, http_events.ResponseData) and not event.data:
            return
        if isinstance(event, http_events.ResponseProtocolError) and is_sending():
            yield from _send(stream, held.flush())
        yield from before(event)

    def wake(_: events.Event) -> layer.CommandGenerator[None]:
        yield from _send(stream, held.release() if is_sending() else ())

    stream._handle_event = _waking(lambda: held.due() if is_sending() else None, pass_on, wake)
    return True


def attach_whole(flow: http.HTTPFlow, arrived: Callable[[bytes], None]) -> bool:
    """Watch a reply that mitmproxy collects. If it breaks off, the client gets the received part."""
    stream = find_stream(flow)
    if stream is None:
        return False
    before: Handler = stream._handle_event

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, http_events.ResponseData):
            if event.data:
                arrived(event.data)
        elif isinstance(event, http_events.ResponseProtocolError) and stream.flow.response is not None:
            collecting = stream.server_state == stream.state_consume_response_body
            if collecting and stream.client_state != stream.state_errored:
                head = http_events.ResponseHeaders(stream.stream_id, stream.flow.response, end_stream=False)
                yield SendHttp(head, stream.context.client)
                body = bytes(stream.response_body_buf)
                yield from _send(stream, [body] if body else [])
        yield from before(event)

    stream._handle_event = handle
    return True


def attach_socket(flow: http.HTTPFlow, held: Socket) -> bool:
    """Let `held` send messages to the client of a WebSocket. Return False if that is not possible."""
    socket = getattr(find_stream(flow), "child_layer", None)
    if not isinstance(socket, WebsocketLayer) or socket.flow is not flow:
        return False
    client, before, send_one = socket.client_ws, socket._handle_event, socket.client_ws.send2

    def write(messages: Iterable[bytes]) -> bytes:
        messages = messages if client.state is ConnectionState.OPEN else ()
        return b"".join(client.send(TextMessage(content.decode("utf-8", "replace"))) for content in messages)

    def send(event: Event) -> commands.SendData:
        first = write(held.flush() if isinstance(event, CloseConnection) else held.take_ready())
        return commands.SendData(client.conn, first + send_one(event).data)

    def wake(_: events.Event) -> layer.CommandGenerator[None]:
        if data := write(held.release()):
            yield commands.SendData(client.conn, data)

    client.send2 = send  # type: ignore[method-assign]
    socket._handle_event = _waking(held.due, before, wake)
    return True


def _waking(due: Callable[[], float | None], pass_on: Handler, wake: Handler) -> Handler:
    """Return a handler that requests one `Wakeup` for the time when held text has to leave."""
    is_set = False

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        nonlocal is_set
        if isinstance(event, events.Wakeup):
            is_set = False
            yield from wake(event)
        else:
            yield from pass_on(event)
        delay = None if is_set else due()
        if delay is not None:
            is_set = True
            yield commands.RequestWakeup(delay)

    return handle


def find_stream(flow: http.HTTPFlow) -> HttpStream | None:
    """Return the layer of a live exchange; None if it is not found or this module is off."""
    master = getattr(ctx, "master", None)
    if master is None or not (is_enabled and version.VERSION.startswith(("11.", "12."))):
        return None
    connection = getattr(master.addons.get("proxyserver"), "connections", {}).get(flow.client_conn.id)
    tops, seen = [getattr(connection, "layer", None)], set[int]()
    while tops:
        top = tops.pop()
        layers = top.context.layers if isinstance(top, layer.Layer) else ()
        for one in (one for one in layers if isinstance(one, HttpLayer) and id(one) not in seen):
            seen.add(id(one))
            for stream in one.streams.values():
                if getattr(stream, "flow", None) is flow:
                    return stream
                tops.append(stream.child_layer)  # a tunnel (CONNECT) is an exchange with its own layers inside
    return None


def _send(stream: HttpStream, pieces: Iterable[bytes]) -> layer.CommandGenerator[None]:
    for piece in pieces:
        yield SendHttp(http_events.ResponseData(stream.stream_id, piece), stream.context.client)
