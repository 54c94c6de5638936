"""A way to the client at moments for which mitmproxy has none: text was held for too long, or the upstream died.

Theory of operation. mitmproxy asks what rewrites a stream only when bytes have come, and when the upstream dies it does not
ask at all. The layer of one exchange, its `HttpStream`, could send at any time. So that layer gets another handler of its
events, the one that it had with these additions: when a reply breaks off, what is held is sent before the client hears of
it; while something is held, the layer asks to be woken at the time when that has to leave; and empty data, which HTTP/2
allows in mid-stream, is kept away, so that an empty call of the stream is the end of the reply and nothing else. A whole
body that mitmproxy collects for us, and that breaks off, is sent as far as it came, instead of an error page of the proxy.

The layer is found through attributes that are no interface of mitmproxy; only that one layer is changed, for one exchange.
Where it is not found all goes on as without this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from mitmproxy import ctx, http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import HttpLayer, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._events import (
    RequestProtocolError,
    ResponseData,
    ResponseHeaders,
    ResponseProtocolError,
)

Handler = Callable[[events.Event], layer.CommandGenerator[None]]


class Held(Protocol):
    """What holds back a part of a reply. None of these raises. `waits`: whether it holds anything."""

    @property
    def waits(self) -> bool: ...

    def due(self) -> float | None:
        """Seconds until what is held has to leave; None when nothing is held."""

    def overdue(self) -> Iterable[bytes]:
        """What has to leave now, since nothing has come for so long."""

    def remains(self) -> Iterable[bytes]:
        """All that is held, since nothing will come any more."""


def attach(flow: http.HTTPFlow, held: Held, flows: Callable[[bytes], bool] | None = None) -> bool:
    """Opens the outlet for a reply that streams, and whose head has come. False: there is none.

    `flows`: whether data pass, and nothing is held before or behind them; the outlet has no part in those.
    """
    stream = stream_of(flow)
    if stream is None:
        return False
    handler = _streaming(stream, held)
    stream._handle_event = _flowing(stream, flows, handler) if flows is not None else handler
    return True


def attach_whole(flow: http.HTTPFlow, comes: Callable[[bytes], None], came: Callable[[bytes], None]) -> bool:
    """The same for a reply that mitmproxy collects. `comes` is told of what comes, `came` of what there is when either side
    leaves early."""
    stream = stream_of(flow)
    if stream is None:
        return False
    stream._handle_event = _collecting(stream, comes, came)
    return True


def stream_of(flow: http.HTTPFlow) -> HttpStream | None:
    """The layer of a live exchange; None where it is not found."""
    master = getattr(ctx, "master", None)
    server = master.addons.get("proxyserver") if master is not None else None
    connection = getattr(server, "connections", {}).get(flow.client_conn.id)
    top = getattr(connection, "layer", None)
    return _find(top, flow, set()) if isinstance(top, layer.Layer) else None


def _find(top: layer.Layer, flow: http.HTTPFlow, seen: set[int]) -> HttpStream | None:
    """The layer of a flow. A tunnel is an exchange too, with layers of its own inside."""
    for one in top.context.layers:
        if not isinstance(one, HttpLayer) or id(one) in seen:
            continue
        seen.add(id(one))
        for stream in one.streams.values():
            if getattr(stream, "flow", None) is flow:
                return stream
            inner = stream.child_layer
            if inner is not None and (found := _find(inner, flow, seen)) is not None:
                return found
    return None


def _flowing(stream: HttpStream, flows: Callable[[bytes], bool], attend: Handler) -> Handler:
    """The handler that was there for data that flow, and `attend` for all else: a generator less for each event."""
    before: Handler = stream._handle_event

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        try:
            attended = type(event) is not ResponseData or not flows(event.data)
        except Exception:  # fail open: whoever is asked what to send says what is wrong
            attended = True
        return attend(event) if attended else before(event)

    return handle


def _streaming(stream: HttpStream, held: Held) -> Handler:
    before: Handler = stream._handle_event
    asleep = False

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        nonlocal asleep
        if isinstance(event, ResponseData):
            if not event.data:
                return
            yield from before(event)
            if asleep:
                return
        elif isinstance(event, events.Wakeup):
            asleep = False
            if not _is_sending(stream):
                return
            yield from _send(stream, held.overdue())
        else:
            if isinstance(event, ResponseProtocolError) and _is_sending(stream):
                yield from _send(stream, held.remains())
            yield from before(event)
            return
        delay = held.due() if held.waits else None
        if delay is not None:
            asleep = True
            yield commands.RequestWakeup(delay)

    return handle


def _collecting(stream: HttpStream, comes: Callable[[bytes], None], came: Callable[[bytes], None]) -> Handler:
    before: Handler = stream._handle_event

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        response = stream.flow.response
        if isinstance(event, ResponseData):
            if event.data:
                comes(event.data)
        elif isinstance(event, ResponseProtocolError) and response is not None and _is_collecting(stream):
            body = bytes(stream.response_body_buf)
            came(body)
            yield SendHttp(ResponseHeaders(stream.stream_id, response, end_stream=False), stream.context.client)
            yield from _send(stream, [body] if body else [])
        elif isinstance(event, RequestProtocolError) and _is_collecting(stream):
            came(bytes(stream.response_body_buf))
        yield from before(event)

    return handle


def _send(stream: HttpStream, pieces: Iterable[bytes]) -> layer.CommandGenerator[None]:
    for piece in pieces:
        yield SendHttp(ResponseData(stream.stream_id, piece), stream.context.client)


def _is_sending(stream: HttpStream) -> bool:
    """Whether the client has had the head of the reply and not yet its end."""
    return bool(stream.server_state == stream.state_stream_response_body and _has_client(stream))


def _is_collecting(stream: HttpStream) -> bool:
    return bool(stream.server_state == stream.state_consume_response_body and _has_client(stream))


def _has_client(stream: HttpStream) -> bool:
    return bool(stream.client_state != stream.state_errored)
