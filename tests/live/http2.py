"""HTTP/2 over TLS on loopback: an upstream that plays scripts frame by frame, and a client."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import httpx
from mitmproxy import certs

from tests.live.harness import PATIENCE, SCRIPT, Headers, Proxy, Upstream

_FRAME = 16_384


@dataclass
class Stream:
    """A script's side of a stream: the request that came, and the stream to answer on."""

    connection: _Connection
    number: int
    headers: dict[str, str]
    body: bytes = b""

    def head(self, status: int = 200, **headers: str) -> None:
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.connection.h2.send_headers(self.number, [(":status", str(status)), *fields])
        self.connection.flush()

    def data(self, data: bytes, *, end: bool = False) -> None:
        """One DATA frame, empty ones too; more than one where the data is longer than a frame."""
        pieces = [data[at : at + _FRAME] for at in range(0, len(data), _FRAME)] or [b""]
        for number, piece in enumerate(pieces):
            self.connection.wait_for_window(self.number, len(piece))
            self.connection.h2.send_data(self.number, piece, end_stream=end and number == len(pieces) - 1)
            self.connection.flush()

    def reset(self) -> None:
        self.connection.h2.reset_stream(self.number, h2.errors.ErrorCodes.INTERNAL_ERROR)
        self.connection.flush()


Script = Callable[[Stream], None]


class _Connection:
    def __init__(self, opened: ssl.SSLSocket) -> None:
        self.socket = opened
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8", validate_inbound_headers=False)
        )
        self.h2.initiate_connection()
        self.waiting: list[h2.events.Event] = []
        self.flush()

    def flush(self) -> None:
        if data := self.h2.data_to_send():
            self.socket.sendall(data)

    def receive(self) -> bool:
        """Reads once; False when the other side has closed."""
        data = self.socket.recv(65_536)
        if not data:
            return False
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.waiting.append(event)
        self.flush()
        return True

    def wait_for_window(self, stream: int, size: int) -> None:
        while self.h2.local_flow_control_window(stream) < size:
            if not self.receive():
                raise ConnectionError("closed while data waited for its window")


class H2Upstream(Upstream):
    """Answers requests one after the other, each by the script that its header `x-test-script` names."""

    scripts: dict[str, Script]  # type: ignore[assignment]

    def __init__(self, folder: Path) -> None:
        certs.CertStore.from_store(folder, "upstream", 2048)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(folder / "upstream-ca.pem")
        self._tls.set_alpn_protocols(["h2"])
        super().__init__()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def converse(self, opened: socket.socket) -> None:
        with self._tls.wrap_socket(opened, server_side=True) as secured:
            self._open.add(secured)
            self._answer(_Connection(secured))

    def _answer(self, connection: _Connection) -> None:
        asked: dict[int, Stream] = {}
        while True:
            while connection.waiting:
                match event := connection.waiting.pop(0):
                    case h2.events.RequestReceived():
                        fields = {str(name): str(value) for name, value in event.headers or ()}
                        asked[event.stream_id] = Stream(connection, event.stream_id, fields)
                    case h2.events.DataReceived():
                        asked[event.stream_id].body += event.data
                    case h2.events.StreamEnded():
                        stream = asked[event.stream_id]
                        self.scripts[stream.headers[SCRIPT]](stream)
                    case _:
                        pass
            if not connection.receive():
                return


@dataclass
class H2Reply:
    """`complete`: whether the stream ended as HTTP/2 asks."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    complete: bool = False


def h2_post(
    proxy: Proxy,
    target: tuple[str, bytes, Headers],
    tunnel: str = "",
    seen: Callable[[H2Reply], None] = lambda _: None,
) -> H2Reply:
    """One request over HTTP/2, read to its end, whatever that is. `seen` is called with each piece.

    `tunnel` is the address that the proxy is asked to connect to.
    """
    path, body, headers = target
    through: dict[str, Any] = {"proxy": proxy.url} if tunnel else {}
    base = f"https://{tunnel}" if tunnel else f"https://127.0.0.1:{proxy.port}"
    with (
        httpx.Client(http1=False, http2=True, verify=False, timeout=PATIENCE, trust_env=False, **through) as client,
        client.stream("POST", base + path, content=body, headers=dict(headers)) as answer,
    ):
        assert answer.http_version == "HTTP/2"
        reply = H2Reply(answer.status_code, dict(answer.headers))
        try:
            for piece in answer.iter_raw():
                reply.body += piece
                seen(reply)
        except httpx.RemoteProtocolError:
            return reply
        reply.complete = True
        return reply
