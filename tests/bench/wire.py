"""An upstream that plays prepared replies and a client that notes when what arrives, both in this process and on one clock.

The request names what it wants to hear in a header. The upstream notes when it writes each event, the client when the
last byte of each event comes; both count events by their blank lines, so nothing has to be parsed meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

_PLAY, _TAKE = b"x-bench-play: ", b"x-bench-take: "
_END = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Play:
    """A reply. `pieces` are written one HTTP chunk each, `delay` seconds apart; a single piece goes out as a whole."""

    content_type: str
    pieces: Sequence[bytes]
    delay: float = 0.0
    chunked: bool = True


@dataclass(slots=True)
class Take:
    """What was seen of one request: when it was sent, and when each event left the upstream and came to the client."""

    asked: float = 0.0
    ended: float = 0.0
    sent: list[float] = field(default_factory=list)
    got: list[float] = field(default_factory=list)

    @property
    def first(self) -> float:
        """Seconds from the request to the first event."""
        return self.got[0] - self.asked

    @property
    def latencies(self) -> list[float]:
        """Seconds on the way, per event; the first one, which comes with the head of the reply, aside."""
        return [got - sent for sent, got in zip(self.sent[1:], self.got[1:], strict=False)]


class Upstream:
    """Plays by name, and takes by number, which clients add to."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}
        self.takes: list[Take] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Upstream:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Playing(self), "127.0.0.1", 0, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()


class _Playing(asyncio.Protocol):
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = bytes(self._received).partition(b"\r\n\r\n")[0]
        length = int(_value(head.lower(), b"content-length: ") or 0)
        if len(self._received) < len(head) + 4 + length:
            return
        self._received.clear()
        play = self._upstream.plays[_value(head, _PLAY).decode()]
        take = self._upstream.takes[int(_value(head, _TAKE))]
        self._task = asyncio.get_running_loop().create_task(self._answer(play, take))

    async def _answer(self, play: Play, take: Take) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {play.content_type}\r\n".encode()
        if not play.chunked:
            body = b"".join(play.pieces)
            self._transport.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
            return
        self._transport.write(head + b"transfer-encoding: chunked\r\n\r\n")
        due = time.perf_counter()
        for piece in play.pieces:
            if play.delay:
                due += play.delay
                await asyncio.sleep(max(due - time.perf_counter(), 0))
            await self._room.wait()
            take.sent.append(time.perf_counter())
            self._transport.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self._transport.write(_END)


class Client(asyncio.Protocol):
    """One kept-alive connection: `ask` sends a request and waits for the last byte of its reply."""

    def __init__(self) -> None:
        self._take = Take()
        self._done: asyncio.Future[None] | None = None
        self._left: int | None = None
        self._head: bytes | None = b""
        self._tail = b""

    @classmethod
    async def connect(cls, port: int) -> Client:
        _, client = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionError("the proxy closed the connection"))

    async def ask(self, path: str, body: bytes, play: str, upstream: Upstream) -> Take:
        take = self._take = Take()
        upstream.takes.append(take)
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n".encode()
        head += b"%s%s\r\n%s%d\r\n" % (_PLAY, play.encode(), _TAKE, len(upstream.takes) - 1)
        await self._send(b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
        return take

    async def meter(self) -> dict[str, float]:
        """What the process behind the connection has used so far: seconds of processor time, bytes of memory at most."""
        self._take = Take()
        await self._send(b"GET /bench/meter HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        used: dict[str, float] = json.loads(self._tail)
        return used

    async def _send(self, request: bytes) -> None:
        self._done = asyncio.get_running_loop().create_future()
        self._head, self._left, self._tail = b"", None, b""
        self._take.asked = time.perf_counter()
        self._transport.write(request)
        await self._done

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        if self._head is not None:
            self._head += data
            head, blank, data = self._head.partition(b"\r\n\r\n")
            if not blank:
                return
            self._head = None
            length = _value(head.lower(), b"content-length: ")
            self._left = int(length) if length else None
        self._take.got += [now] * (self._tail[-1:] + data).count(b"\n\n")
        self._tail = (self._tail + data)[-1024:]
        if self._left is not None:
            self._left -= len(data)
        if self._left == 0 or (self._left is None and self._tail.endswith(_END)):
            self._take.ended = now
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    def close(self) -> None:
        self._transport.close()


def _value(head: bytes, name: bytes) -> bytes:
    return head.partition(name)[2].partition(b"\r\n")[0]
