"""The mock server's sockets: HTTP/1.1 on loopback, one network chunk per step, in a separate thread.

tornado frames the bytes, so everything but the faults is valid HTTP. Each step of a body is one write, which makes the
chunk boundaries of a scenario real. A client that leaves while a response is paced or stalls ends it at once.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets

from wirelint.mock.answer import Answer, Pause
from wirelint.mock.plan import Options
from wirelint.mock.scenario import HEADER, load_script
from wirelint.mock.service import Service
from wirelint.model import Json


@dataclass(frozen=True, slots=True)
class Exchange:
    """One answered request, for tests that compare both ends of a proxy. `sent` is the body as sent, with its coding."""

    method: str
    target: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    sent: bytes
    complete: bool

    @property
    def scenario(self) -> str:
        """The scenario that the server applied; empty for a request to no API."""
        return dict(self.headers).get(HEADER, "")


class MockServer:
    """A faulty LLM vendor on loopback: `with MockServer("xml-leak", seed=7) as vendor:`. Every API answers at its path.

    `faults` are scenarios as on the command line, played in turn or by chance: `"xml-leak"`,
    `"xml-leak+dialect=kimi_k2"`, `"xml-leak=0.2"` (one answer out of five). A request selects its own by the header
    `x-wirelint-mock` or the model `mock/xml-leak`. `scenario` is a scenario file or its contents. `pace` (between events)
    and `delay` (before the answer) are in milliseconds, `chunk` is in bytes; with `tls` the server speaks HTTPS. Equal
    seeds and equal requests in equal order give equal bytes. `exchanges` has the last `kept` exchanges, each one as soon
    as it has ended: its client may see the end a moment earlier, so look after `close()`.

    Raises ScenarioError for a scenario that cannot be played, and OSError on start if the address is taken.
    """

    def __init__(
        self,
        *faults: str,
        scenario: Path | str | Mapping[str, Json] | None = None,
        seed: int | None = None,
        pace: float = 0.0,
        delay: float = 0.0,
        chunk: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        kept: int = 256,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.exchanges: deque[Exchange] = deque(maxlen=kept)
        self.host, self.port, self.tls = host, port, tls
        base = Options(pace=pace, delay=delay, chunk=chunk)
        self._service = Service.of(seed, base, faults, load_script(scenario, base))
        self._number = 0
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="wirelint-mock", daemon=True)

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`: the base URL for Anthropic, Gemini, Cohere, Mistral, Ollama and Bedrock."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    anthropic = url

    @property
    def openai(self) -> str:
        """The base URL for OpenAI's SDK and compatible clients."""
        return f"{self.url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead SDKs to the server, with keys, because some do not start without one."""
        urls = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "CO_API_URL", "OLLAMA_HOST")
        keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "CO_API_KEY")
        made = {"OPENAI_BASE_URL": self.openai, **dict.fromkeys(urls, self.url)}
        return made | dict.fromkeys(keys, "sk-mock-0000000000000000")

    def start(self) -> None:
        """Bind and serve; return when connections are accepted."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def close(self) -> None:
        """End every connection and the thread. May be called twice."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def __enter__(self) -> MockServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def accept(request: HTTPServerRequest) -> None:
            task = asyncio.ensure_future(self._respond(request))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = HTTPServer(accept, ssl_options=self.tls)
        try:
            sockets = bind_sockets(self.port, self.host)
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self.port = sockets[0].getsockname()[1]
        server.add_sockets(sockets)
        self._ready.set()
        await self._stop.wait()
        server.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.close_all_connections()

    async def _respond(self, request: HTTPServerRequest) -> None:
        method, target = request.method or "", request.uri or ""
        pairs = tuple((name.lower(), value) for name, value in request.headers.get_all())
        if self._service.reaches_api(method, target):
            self._number += 1
        answer = self._service.answer(self._number, method, target, dict(pairs), request.body)
        sent = bytearray()
        complete = False
        try:
            complete = await _send(request.connection, answer, sent, head_only=method == "HEAD")
        except StreamClosedError:
            pass  # the client left, which it may do at any time
        finally:
            made = Exchange(method, target, pairs, request.body, answer.status, answer.headers, bytes(sent), complete)
            self.exchanges.append(made)


async def _send(connection: Any, answer: Answer, sent: bytearray, *, head_only: bool) -> bool:
    """Play an answer; return True if it went out whole. Body bytes are added to `sent` as they go."""
    left = asyncio.Event()
    connection.set_close_callback(left.set)
    connection.stream.set_nodelay(True)
    if await _is_set(left, answer.delay):
        return False
    headers = HTTPHeaders()
    for name, value in answer.headers:
        headers.add(name, value)
    if answer.length is not None:
        headers["content-length"] = str(answer.length)
    reason = http.client.responses.get(answer.status, "Unknown")
    await connection.write_headers(ResponseStartLine("HTTP/1.1", answer.status, reason), headers)
    for step in () if head_only else answer.steps:
        if not isinstance(step, Pause):
            await connection.write(step)
            sent += step
        if await _is_set(left, step.seconds if isinstance(step, Pause) else answer.pace / 1000):
            return False
    if answer.dies:
        connection.stream.close()
        return False
    connection.finish()
    return True


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most these seconds; return True if it is set."""
    if seconds > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
