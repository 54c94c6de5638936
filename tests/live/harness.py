"""Real processes on loopback: a scripted upstream, a mitmproxy tool with the addon, a client that sees every byte.

Nothing here waits without a bound, and nothing is measured in time: tests wait for what was said or sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import h11

from tests.live.forked import Forked

PATIENCE = 60.0
"""Seconds after which a wait has failed: many, because on a busy machine a proxy takes long to start."""
SCRIPT = "x-test-script"
SHIM = Path(__file__).resolve().parents[2] / "addons" / "inspector.py"

Headers = Mapping[str, str]
T = TypeVar("T")


# --- upstream ---------------------------------------------------------------------------------------------------------


@dataclass
class Peer:
    """A script's side of a connection: the request that came, and the socket to answer on."""

    socket: socket.socket
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    keep: bool = True

    def head(self, status: int = 200, **headers: str) -> None:
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.send(f"HTTP/1.1 {status} Made\r\n{fields}\r\n".encode())

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def chunk(self, data: bytes) -> None:
        """One HTTP chunk, in a write of its own."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def finish(self) -> None:
        self.send(b"0\r\n\r\n")

    def close(self) -> None:
        self.keep = False

    def reset(self) -> None:
        """Ends the connection with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.keep = False

    def wait_for_close(self) -> bool:
        """Return True if the other side closed, within the bound."""
        self.socket.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionError):
            try:
                return self.socket.recv(1) == b""
            except TimeoutError:
                return False
        return True


Script = Callable[[Peer], None]


class Upstream:
    """Answers a request by the script that its header `x-test-script` names, else by `default`."""

    def __init__(self, default: Script | None = None) -> None:
        self.scripts: dict[str, Script] = {}
        self.default = default
        self.failures: list[BaseException] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.port: int = self._server.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._serving: set[threading.Thread] = set()
        """Those that have not ended: one that is kept keeps its stack, of which a process can have some 32,000."""
        self._accepting.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for opened in tuple(self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        for thread in (self._accepting, *tuple(self._serving)):
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                opened, _ = self._server.accept()
            except OSError:
                return
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(opened)
            thread = threading.Thread(target=self._serve, args=(opened,), daemon=True)
            self._serving.add(thread)
            thread.start()

    def _serve(self, opened: socket.socket) -> None:
        try:
            self.converse(opened)
        except OSError:
            return  # the proxy left, as it may
        except BaseException as error:
            self.failures.append(error)
        finally:
            opened.close()
            self._open.discard(opened)
            self._serving.discard(threading.current_thread())

    def converse(self, opened: socket.socket) -> None:
        """Answers the requests of a connection until a script ends it."""
        while (peer := _read_request(opened)) is not None:
            script = self.scripts.get(peer.headers.get(SCRIPT, ""), self.default)
            assert script is not None, peer.headers
            script(peer)
            if not peer.keep:
                return


def _read_request(opened: socket.socket) -> Peer | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = opened.recv(65536)
        if not piece:
            return None
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += opened.recv(65536)
        body = _joined(body)
    while len(body) < int(headers.get("content-length", "0")):
        body += opened.recv(65536)
    method, target, _ = first.split(" ")
    return Peer(opened, method, target, headers, body)


def _joined(chunked: bytes) -> bytes:
    """The body that a chunked one carries."""
    body = b""
    while chunked:
        size, _, chunked = chunked.partition(b"\r\n")
        body, chunked = body + chunked[: int(size, 16)], chunked[int(size, 16) + 2 :]
    return body


STREAM: dict[str, Any] = {"content_type": "text/event-stream"}
CHUNKED = {**STREAM, "transfer_encoding": "chunked"}
Step = Mapping[str, Any] | bytes | float | threading.Event | Callable[[Peer], object]


def scripted(*steps: Step) -> Script:
    """A script of steps: header fields (and a status) to send, bytes, seconds or events to wait for, functions to call."""

    def script(peer: Peer) -> None:
        write = peer.send
        for step in steps:
            match step:
                case bytes():
                    write(step)
                case threading.Event():
                    assert step.wait(PATIENCE), "the other side did not get what was sent"
                case float():
                    time.sleep(step)
                case Mapping():
                    peer.head(**step)
                    write = peer.chunk if step.get("transfer_encoding") == "chunked" else peer.send
                case _:
                    assert step(peer) is not False

    return script


def replying(pieces: Iterable[bytes], status: int = 200, **headers: str) -> Script:
    """A script that sends a body in these chunks."""
    return scripted({"status": status, **headers, "transfer_encoding": "chunked"}, *pieces, Peer.finish)


# --- proxy ------------------------------------------------------------------------------------------------------------


@dataclass
class Proxy:
    """A running mitmdump or mitmweb."""

    process: subprocess.Popen[bytes] | Forked
    output: Path
    folder: Path
    port: int = 0
    lines: list[str] = field(default_factory=list)
    _read: dict[tuple[Path, int], tuple[int, list[dict[str, Any]]]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.output.read_text("utf-8", "replace") if self.output.exists() else ""

    def wait_for(self, pattern: str, count: int = 1) -> list[str]:
        """The lines of output that match, as soon as there are `count` of them."""

        def found() -> list[str]:
            lines = [line for line in self.log.splitlines() if re.search(pattern, line)]
            return lines if len(lines) >= count else []

        return wait_until(found, f"{count} lines of {pattern!r}", self)

    def probes(self, id_: str | None = None) -> list[dict[str, Any]]:
        """What the probe addon saw of flows after us, hook by hook."""
        path = self.folder / "probe.jsonl"
        seen = self._documents(path) if path.exists() else []
        return [item for item in seen if id_ is None or item["test"] == id_]

    def wait_for_probe(self, id_: str) -> dict[str, Any]:
        """The last hook of the flow whose request had the header `x-test-id: id_`."""
        return wait_until(lambda: self.probes(id_), f"a hook of {id_}", self)[-1]

    def stop(self) -> str:
        """Ends the process as Ctrl-C does; its whole output."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        return self.log

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def captures(self) -> Path:
        return self.folder / "captures"

    def capture(self, name: str = "exchanges.jsonl") -> Path:
        """The only file of this name below the captures."""
        found = list(self.captures.glob(f"*/{name}"))
        assert len(found) == 1, found
        return found[0]

    def records(self) -> list[dict[str, Any]]:
        """Exchanges captured so far, the torn last line aside."""
        return [record for path in sorted(self.captures.glob("*/exchanges.jsonl")) for record in self._documents(path)]

    def _documents(self, path: Path) -> list[dict[str, Any]]:
        """The complete lines of a file that grows. A test looks many times: what it has read stays read."""
        file_id = path, path.stat().st_ino  # a folder that went away comes back under its name
        start, known = self._read.get(file_id, (0, []))
        with path.open("rb") as file:
            file.seek(start)
            *lines, _torn = file.read().split(b"\n")  # one read: the end of a torn line may come meanwhile
        known = [*known, *map(json.loads, lines)]
        self._read[file_id] = start + sum(len(line) + 1 for line in lines), known
        return known

    def wait_for_records(self, id_: str, count: int = 1) -> list[dict[str, Any]]:
        def found() -> list[dict[str, Any]]:
            made = [record for record in self.records() if record["request"]["headers"].get("x-test-id") == id_]
            return made if len(made) >= count else []

        return wait_until(found, f"{count} captures of {id_}", self)

    def wait_for_record(self, id_: str) -> dict[str, Any]:
        return self.wait_for_records(id_)[0]


_PROBE = """
import json
class Probe:
    def note(self, flow, hook):
        response = flow.response
        body = response.raw_content if response else None
        with open({path!r}, "a") as out:
            out.write(json.dumps({{
                "test": flow.request.headers.get("x-test-id"), "id": flow.id, "hook": hook, "comment": flow.comment,
                "marked": flow.marked, "metadata": flow.metadata, "error": flow.error.msg if flow.error else None,
                "stream": repr(response.stream) if response else None, "body": body.hex() if body is not None else None,
            }}) + "\\n")
    def response(self, flow): self.note(flow, "response")
    def error(self, flow): self.note(flow, "error")
addons = [Probe()]
"""


def command(tool: str, arguments: Iterable[str] = ()) -> list[str]:
    return [sys.executable, "-u", "-c", f"from mitmproxy.tools.main import {tool}; {tool}()", *arguments]


def arguments(folder: Path, *options: str, scripts: Iterable[Path] = (), shim: Path = SHIM) -> list[str]:
    return [
        *(part for script in (shim, *scripts) for part in ("-s", str(script))),
        *("--listen-host", "127.0.0.1", "-p", "0", "--set", f"confdir={folder / 'conf'}"),
        *(part for option in options for part in ("--set", option)),
    ]


def _start(tool: str, given: list[str], folder: Path, shim: Path, *, forked: bool) -> Proxy:
    """Start a tool, in a new interpreter if other modules than ours may be on the path."""
    output = folder / "output.txt"
    output.write_bytes(b"")
    if forked and shim == SHIM and "PYTHONPATH" not in os.environ:
        return Proxy(Forked(tool, given, folder, output), output, folder)
    with output.open("wb") as out:
        process = subprocess.Popen(
            command(tool, given), cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    return Proxy(process, output, folder)


@contextlib.contextmanager
def running(
    folder: Path,
    upstream: str,
    *options: str,
    tool: str = "mitmdump",
    scripts: Iterable[Path] = (),
    shim: Path = SHIM,
    probe: bool = True,
    forked: bool = True,
) -> Iterator[Proxy]:
    """A mitmproxy tool with the addon in front of `upstream`, working in `folder`, until the block ends.

    Without an upstream it is a proxy that clients name as theirs. `probe`: note what addons see of flows after us.
    `forked`: start quickly (`tests.live.forked`); what is measured gets a new interpreter instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probes = [folder / "probe.py"] if probe else []
    for path in probes:
        path.write_text(_PROBE.format(path=str(folder / "probe.jsonl")))
    given = arguments(folder, *options, scripts=[*scripts, *probes], shim=shim)
    proxy = _start(
        tool, [*given, "--mode", f"reverse:{upstream}" if upstream else "regular"], folder, shim, forked=forked
    )
    try:
        line = proxy.wait_for(r"proxy.* listening at ")[0]
        proxy.port = int(re.search(r"listening at [^ ]*?:(\d+)", line)[1])  # type: ignore[index]
        yield proxy
    finally:
        proxy.stop()


def free_port() -> int:
    """A port of loopback at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def refused(folder: Path, *options: str, tool: str = "mitmdump", shim: Path = SHIM) -> tuple[int, list[str]]:
    """Exit status and output of a start that is expected to end by itself."""
    proxy = _start(tool, arguments(folder, *options, shim=shim), folder, shim, forked=True)
    try:
        return proxy.process.wait(PATIENCE), proxy.log.splitlines()
    except subprocess.TimeoutExpired:
        proxy.kill()
        raise


def wait_until(look: Callable[[], T], what: str, proxy: Proxy | None = None) -> T:
    """The first true value of `look`."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := look():
            return found
        if proxy is not None and proxy.process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}\n{proxy.log if proxy is not None else ''}")


# --- client -----------------------------------------------------------------------------------------------------------


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection to a proxy, read piece by piece."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._h11 = h11.Connection(h11.CLIENT)

    def ask(self, path: str, body: bytes, headers: Headers | None = None, method: str = "POST") -> None:
        given = {"host": "llm.test", "content-type": "application/json", **(headers or {})}
        fields = [*given.items(), ("content-length", str(len(body)))]
        self._send(h11.Request(method=method, target=path, headers=fields))
        if body:
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())

    def ask_in_chunks(self, path: str, pieces: Iterable[bytes], headers: Headers) -> None:
        """A POST whose body has no length that is said beforehand."""
        given = {"host": "llm.test", "content-type": "application/json", **headers, "transfer-encoding": "chunked"}
        self._send(h11.Request(method="POST", target=path, headers=list(given.items())))
        for piece in pieces:
            self._send(h11.Data(data=piece))
        self._send(h11.EndOfMessage())

    def head(self) -> tuple[int, dict[str, str]]:
        event = self._next()
        assert isinstance(event, h11.Response), event
        return event.status_code, {name.decode(): value.decode("latin-1") for name, value in event.headers}

    def read(self) -> bytes | None:
        """The next piece of the body; None at its end. Raises h11.RemoteProtocolError when it is cut off."""
        event = self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    def read_at_least(self, size: int) -> bytes:
        """Exactly what has come when there are `size` bytes of it."""
        data = b""
        while len(data) < size:
            piece = self.read()
            assert piece is not None, data
            data += piece
        return data

    def rest(self) -> tuple[bytes, bool]:
        """The rest of the body, and whether it ended as HTTP asks."""
        body = b""
        try:
            while (piece := self.read()) is not None:
                body += piece
        except h11.RemoteProtocolError:
            return body, False
        return body, True

    def again(self) -> None:
        self._h11.start_next_cycle()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._socket.sendall(data)

    def _next(self) -> Any:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            try:
                self._h11.receive_data(self._socket.recv(65536))
            except ConnectionResetError:
                self._h11.receive_data(b"")
        return event


def post(port: int, path: str, body: bytes | Any, headers: Headers | None = None, method: str = "POST") -> Reply:
    """One request on a connection of its own. `body` is bytes or a JSON value."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with Client(port) as client:
        client.ask(path, data, headers, method)
        status, fields = client.head()
        content, complete = client.rest()
        return Reply(status, fields, content, complete)
