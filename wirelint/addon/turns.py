"""Which messages of a socket begin an exchange, and which end one."""

from __future__ import annotations

from mitmproxy import http, websocket

from wirelint.model import Side
from wirelint.wire.websocket import closes, opens, turns


def _is_turn(message: websocket.WebSocketMessage) -> bool:
    """Whether a message may be one of them."""
    return bool(message.is_text and (opens if message.from_client else closes)(message.content))


def turn_of(flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[int, Side] | None:
    """The number of the exchange that a message begins (its request) or ends (its response), counted from one."""
    if flow.websocket is None or not _is_turn(message):
        return None
    opened = closed = 0
    for other in flow.websocket.messages:
        if not _is_turn(other):
            continue
        if other.from_client:
            opened += 1
        elif closed < opened:
            closed += 1
        elif other is message:
            return None  # it answers nothing
        if other is message:
            return (opened, "request") if message.from_client else (closed, "response")
    return None


def is_over(flow: http.HTTPFlow, number: int) -> bool:
    """Whether nothing more can come of an exchange."""
    if flow.websocket is None or flow.websocket.closed_by_client is not None:
        return True
    said = [(message.from_client, message.content) for message in flow.websocket.messages if message.is_text]
    return turns(said)[number - 1].closed
