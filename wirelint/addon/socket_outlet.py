"""A way to the client of a WebSocket for what mitmproxy has no call for: several messages for one, and none come by.

Theory of operation. A hook of mitmproxy can change a message, or keep it back; what is injected comes after all that had
arrived with the message, and gets into the middle of one that comes in fragments. So the layer of the socket gets two
additions. What it sends to the client takes with it what has to leave before: the messages that a repair made of one, and
everything that is held when the socket closes. And while something is held the layer asks to be woken when that has to
leave.

As with the outlet of streams, the layer is found through attributes that are no interface of mitmproxy, and only that one
is changed. Where it is not found there are no repairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mitmproxy import http, websocket
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.websocket import WebsocketLayer
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Event, TextMessage
from wsproto.frame_protocol import Opcode

from wirelint.addon.outlet import stream_of


class Held(Protocol):
    """What holds back messages of one socket. None of these raises."""

    def ready(self) -> Iterable[bytes]:
        """Messages that leave before the one that is sent now."""

    def due(self) -> float | None:
        """Seconds until what is held has to leave; None when nothing is held."""

    def overdue(self) -> Iterable[bytes]:
        """What has to leave now, since nothing has come for so long."""

    def remains(self) -> Iterable[bytes]:
        """All that is held, since the socket closes."""


def attach(flow: http.HTTPFlow, held: Held) -> bool:
    """Opens the outlet of a socket. False: there is none."""
    stream = stream_of(flow)
    socket = stream.child_layer if stream is not None else None
    if not isinstance(socket, WebsocketLayer) or socket.flow is not flow:
        return False
    client = socket.client_ws
    send_one = client.send2
    wait = socket._handle_event
    asleep = False

    def write(messages: Iterable[bytes]) -> bytes:
        made = b""
        if client.state is ConnectionState.OPEN:
            for content in messages:
                made += client.send(TextMessage(content.decode("utf-8", "replace")))
        return made

    def send(event: Event) -> commands.SendData:
        before = write(held.remains() if isinstance(event, CloseConnection) else held.ready())
        command = send_one(event)
        return commands.SendData(command.connection, before + command.data) if before else command

    def handle(event: events.Event) -> layer.CommandGenerator[None]:
        nonlocal asleep
        if isinstance(event, events.Wakeup):
            asleep = False
            if data := write(held.overdue()):
                yield commands.SendData(client.conn, data)
        else:
            yield from wait(event)
        delay = held.due() if not asleep else None
        if delay is not None:
            asleep = True
            yield commands.RequestWakeup(delay)

    client.send2 = send  # type: ignore[method-assign]
    socket._handle_event = handle
    return True


def made_message(content: bytes) -> websocket.WebSocketMessage:
    """A message of the server's side that was made here."""
    return websocket.WebSocketMessage(Opcode.TEXT, False, content)
