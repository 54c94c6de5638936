"""Exchanges on a WebSocket: which messages form one, and the HTTP form in which it is read and recorded.

OpenAI's Responses API also runs over a socket (`wss://…/v1/responses`). The client sends
`{"type": "response.create", …}`; the other members are those of a request body. The server answers with the events of a
stream, one per message, and ends with `response.completed`, `.incomplete`, `.failed` or `error`. Many exchanges follow
each other on one socket. Source: the vendor's guide (WebSocket mode).

An exchange is recorded as a GET of a `wss:` URL with the client's message as its body, and the server's messages as
JSON lines. A socket has no status and no content type; the record has 200 and `application/x-ndjson`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from wirelint.jsonvalues import decode_object

HEADERS = (("content-type", "application/x-ndjson"),)
STATUS = 200

_OPENS = "response.create"
_CLOSES = ("response.completed", "response.incomplete", "response.failed", "error")
_HEAD = 1 << 12
_SIGNS = tuple(f'"{name}"'.encode() for name in _CLOSES)


def is_socket(scheme: str) -> bool:
    """Return True if `scheme` is that of a WebSocket, on which a message takes the role of a POST."""
    return scheme in ("ws", "wss")


def socket_url(url: str) -> str:
    """Return the URL of a WebSocket for the URL of its handshake."""
    return re.sub(r"\Ahttp(?=s?://)", "ws", url)


def opens(message: bytes) -> bool:
    """Return True if a client's message begins an exchange."""
    return _OPENS.encode() in message and _type_of(message) == _OPENS


def may_open(message: bytes) -> bool:
    """Return True if the first and last 4 KiB of a client's message, too large to parse, seem to begin an exchange."""
    return _OPENS.encode() in message[:_HEAD] or _OPENS.encode() in message[-_HEAD:]


def closes(message: bytes) -> bool:
    """Return True if a server's message ends an exchange."""
    return any(sign in message for sign in _SIGNS) and _type_of(message) in _CLOSES


def as_line(message: bytes) -> bytes:
    """Return a message as one line. JSON has line feeds only between tokens, where a space is equivalent."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


@dataclass(slots=True)
class Turn:
    """An exchange on a socket: the client's message, and the server's as lines. `closed`: the last one has arrived."""

    asked: bytes
    answered: bytearray = field(default_factory=bytearray)
    closed: bool = False


def turns(messages: Iterable[tuple[bool, bytes]]) -> list[Turn]:
    """Return the exchanges of a WebSocket. `messages` are in order; True marks those of the client."""
    found: list[Turn] = []
    waiting: deque[Turn] = deque()
    for by_client, message in messages:
        if by_client:
            if opens(message):
                found.append(turn := Turn(message))
                waiting.append(turn)
        elif waiting:
            waiting[0].answered += as_line(message)
            if closes(message):
                waiting.popleft().closed = True
    return found


def _type_of(message: bytes) -> object:
    return decode_object(message).get("type")
