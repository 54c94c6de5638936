"""Messages of a WebSocket: which of them make one exchange, and the bytes as which it is read and written down.

OpenAI's Responses can be had over a socket (`wss://…/v1/responses`): the client sends `{"type": "response.create", …}`,
which beside its type is the body of a request, and the server answers with the events of a stream, one a message, of which
`response.completed`, `.incomplete`, `.failed` or `error` is the last. Many exchanges follow each other on one socket.
Source: the vendor's guide (WebSocket mode).

An exchange is written down as a GET of a `wss:` URL with the client's message as its body, and the server's messages as
JSON lines. There is no status and no content type on a socket; 200 and `application/x-ndjson` stand in for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

HEADERS = (("content-type", "application/x-ndjson"),)
STATUS = 200

_SCHEMES = {"http": "ws", "https": "wss"}
_OPENS = "response.create"
_CLOSES = ("response.completed", "response.incomplete", "response.failed", "error")
_HEAD = 1 << 12
_SIGNS = tuple(f'"{name}"'.encode() for name in _CLOSES)


def is_socket(scheme: str) -> bool:
    """Return True if a URL of this scheme is that of a WebSocket, on which a message asks as a POST does elsewhere."""
    return scheme in ("ws", "wss")


def socket_url(url: str) -> str:
    """Return the URL of a WebSocket for the URL of its handshake."""
    scheme, separator, address = url.partition("://")
    return f"{_SCHEMES.get(scheme, scheme)}{separator}{address}"


def opens(message: bytes) -> bool:
    """Return True if a client's message begins an exchange."""
    return _OPENS.encode() in message and _type_of(message) == _OPENS


def may_open(message: bytes) -> bool:
    """Return True if a client's message that is too large to be read seems to begin an exchange."""
    return _OPENS.encode() in message[:_HEAD] or _OPENS.encode() in message[-_HEAD:]


def closes(message: bytes) -> bool:
    """Return True if a server's message ends one."""
    return any(sign in message for sign in _SIGNS) and _type_of(message) in _CLOSES


def as_line(message: bytes) -> bytes:
    """Return a message as a line of its own. JSON has line feeds between tokens only, where a space means the same."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


@dataclass(slots=True)
class Turn:
    """An exchange on a socket: the client's message, and the server's as lines. `closed`: the last of them has come."""

    asked: bytes
    answered: bytearray = field(default_factory=bytearray)
    closed: bool = False


def turns(messages: Iterable[tuple[bool, bytes]]) -> list[Turn]:
    """Yield the exchanges of a WebSocket from its messages in order; True marks those of the client."""
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
    try:
        document = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    return document.get("type") if isinstance(document, dict) else None
