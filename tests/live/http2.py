"""HTTP/2 over TLS on loopback, frame by frame: an upstream that plays scripts, and a client that sees every frame."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events
from mitmproxy import certs

from tests.live.harness import PATIENCE, SCRIPT

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
    def __init__(self, opened: ssl.SSLSocket, *, client: bool) -> None:
        self.socket = opened
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=client, header_encoding="utf-8", validate_inbound_headers=False)
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


class H2Upstream:
    """Answers requests one after the other, each by the script that its header `x-test-script` names."""

    def __init__(self, folder: Path) -> None:
        certs.CertStore.from_store(folder, "upstream", 2048)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(folder / "upstream-ca.pem")
        self._tls.set_alpn_protocols(["h2"])
        self.scripts: dict[str, Script] = {}
        self.failures: list[BaseException] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: set[socket.socket] = set()
        self._threads[0].start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for opened in tuple(self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                opened, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(opened,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, opened: socket.socket) -> None:
        try:
            with self._tls.wrap_socket(opened, server_side=True) as secured:
                self._open.add(secured)
                self._answer(_Connection(secured, client=False))
        except (OSError, ConnectionError):
            return  # the proxy left, as it may
        except BaseException as error:
            self.failures.append(error)
        finally:
            opened.close()

    def _answer(self, connection: _Connection) -> None:
        asked: dict[int, Stream] = {}
        while True:
            while connection.waiting:
                match event := connection.waiting.pop(0):
                    case h2.events.RequestReceived():
                        asked[event.stream_id] = Stream(connection, event.stream_id, _fields(event))
                    case h2.events.DataReceived():
                        asked[event.stream_id].body += event.data
                    case h2.events.StreamEnded():
                        stream = asked[event.stream_id]
                        self.scripts[stream.headers[SCRIPT]](stream)
                    case _:
                        pass
            if not connection.receive():
                return


def _fields(event: h2.events.RequestReceived | h2.events.ResponseReceived) -> dict[str, str]:
    return {str(name): str(value) for name, value in event.headers or ()}


@dataclass
class H2Reply:
    """`frames` are the DATA frames that came; `complete`: whether the stream ended as HTTP/2 asks."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    frames: list[bytes] = field(default_factory=list)
    complete: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)


class H2Client:
    """One TLS connection to a proxy, or through it: `tunnel` is the address that it is asked to connect to."""

    def __init__(self, port: int, tunnel: str = "") -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        tls.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        if tunnel:
            plain.sendall(f"CONNECT {tunnel} HTTP/1.1\r\nhost: {tunnel}\r\n\r\n".encode())
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += plain.recv(1)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
        opened = tls.wrap_socket(plain)
        assert opened.selected_alpn_protocol() == "h2"
        self._connection = _Connection(opened, client=True)

    def __enter__(self) -> H2Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.socket.close()

    def post(
        self, path: str, body: bytes, headers: dict[str, str], seen: Callable[[H2Reply], None] = lambda _: None
    ) -> H2Reply:
        """One request, read to its end, whatever that is. `seen` is called after every DATA frame."""
        connection, reply = self._connection, H2Reply()
        number = connection.h2.get_next_available_stream_id()
        fields = [(":method", "POST"), (":scheme", "https"), (":authority", "llm.test"), (":path", path)]
        fields += [("content-type", "application/json"), ("content-length", str(len(body))), *headers.items()]
        connection.h2.send_headers(number, fields)
        connection.h2.send_data(number, body, end_stream=True)
        connection.flush()
        while True:
            while connection.waiting:
                event = connection.waiting.pop(0)
                if getattr(event, "stream_id", None) != number:
                    continue
                match event:
                    case h2.events.ResponseReceived():
                        reply.headers = _fields(event)
                        reply.status = int(reply.headers[":status"])
                    case h2.events.DataReceived():
                        reply.frames.append(bytes(event.data))
                        seen(reply)
                    case h2.events.StreamEnded():
                        reply.complete = True
                        return reply
                    case h2.events.StreamReset():
                        return reply
                    case _:
                        pass
            if not connection.receive():
                return reply
