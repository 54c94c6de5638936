"""The mock server's sockets: HTTP/1.1 on loopback, one network chunk per step, in a separate thread.

h11 frames the bytes, so everything but the faults is valid HTTP. Each body step becomes one `h11.Data` and one write,
which makes the chunk boundaries of a scenario real. While a response is paced or stalls, the connection is also read:
a client that leaves ends the response at once.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import h11

from wirelint.mock.answer import Answer, Pause, json_answer
from wirelint.mock.plan import Options
from wirelint.mock.scenario import HEADER, load_script
from wirelint.mock.service import Service
from wirelint.model import Json

_READ_SIZE = 65536


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

        # A plain function, not a coroutine: Python 3.11 and 3.12 treat cancelled coroutines of a server differently.
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            server = await asyncio.start_server(accept, self.host, self.port, ssl=self.tls)
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer)
        try:
            while (request := await connection.read_request()) is not None:
                await self._respond(connection, *request)
                if not connection.next_cycle():
                    break
        except h11.RemoteProtocolError as error:
            await connection.refuse(error)
        except ConnectionError:
            pass  # the client left, which it may do at any time
        finally:
            connection.close()

    async def _respond(self, connection: _Connection, request: h11.Request, body: bytes) -> None:
        method, target = request.method.decode("ascii"), request.target.decode("latin-1")
        pairs = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers)
        if self._service.reaches_api(method, target):
            self._number += 1
        answer = self._service.answer(self._number, method, target, dict(pairs), body)
        sent = bytearray()
        complete = False
        try:
            complete = await connection.send(answer, sent, head_only=method == "HEAD")
        finally:
            made = Exchange(method, target, pairs, body, answer.status, answer.headers, bytes(sent), complete)
            self.exchanges.append(made)


class _Connection:
    """One connection: h11 between a reader and a writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._h11 = h11.Connection(h11.SERVER)
        self._reader = reader
        self._writer = writer
        self._early: asyncio.Task[bytes] | None = None

    async def read_request(self) -> tuple[h11.Request, bytes] | None:
        """Return the next request with its body, None when the client closes between requests."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    await self._write(h11.InformationalResponse(status_code=100, headers=[]))
                self._h11.receive_data(await self._read())
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                return request, bytes(body)
            else:
                return None

    async def send(self, answer: Answer, sent: bytearray, *, head_only: bool) -> bool:
        """Play an answer; return True if it went out whole. Body bytes are added to `sent` as they go."""
        if await self._left_during(answer.delay):
            return False
        framing = ("transfer-encoding", "chunked") if answer.length is None else ("content-length", str(answer.length))
        await self._write(h11.Response(status_code=answer.status, headers=[*answer.headers, framing]))
        for step in () if head_only else answer.steps:
            wait = step.seconds if isinstance(step, Pause) else answer.pace / 1000
            if not isinstance(step, Pause):
                await self._write(h11.Data(data=step))
                sent += step
            if await self._left_during(wait):
                return False
        if answer.dies:
            self._h11.send_failed()
            return False
        await self._write(h11.EndOfMessage())
        return True

    def next_cycle(self) -> bool:
        """Return True if the connection can carry another request."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True

    async def refuse(self, error: h11.RemoteProtocolError) -> None:
        """Answer a request that is not HTTP, if no response has begun."""
        if self._h11.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body: Json = {"error": {"message": ascii(str(error)), "type": "invalid_request_error"}}
        answer = json_answer(error.error_status_hint, body, (("connection", "close"),))
        with suppress(ConnectionError):
            await self.send(answer, bytearray(), head_only=False)

    async def _left_during(self, seconds: float) -> bool:
        """Wait; return True as soon as the client has closed. Bytes that it sends meanwhile (pipelining) are kept."""
        if seconds <= 0:
            return False
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._early is None:
            self._early = asyncio.ensure_future(self._reader.read(_READ_SIZE))
        done, _ = await asyncio.wait({self._early}, timeout=seconds)
        if not done:
            return False
        if not self._early.result():
            return True
        await asyncio.sleep(until - loop.time())
        return False

    def close(self) -> None:
        if self._early is not None:
            self._early.cancel()
        self._writer.close()

    async def _read(self) -> bytes:
        if self._early is None:
            return await self._reader.read(_READ_SIZE)
        early, self._early = self._early, None
        return await early

    async def _write(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()
