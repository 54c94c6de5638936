"""An HTTP answer as a list of steps, and what the transport options of a scenario do to it.

An `Answer` starts with one body part an event (or one for a whole JSON body). `shape_answer` then works like the layers
of a real server, in this order: line ends, BOM and comments, content coding with a flush after every part (so that
each event can be decoded as soon as it arrives), new network chunks, death after N bytes. The server plays the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import brotli
import zstandard

from wirelint.mock.plan import dump_json
from wirelint.mock.scenario import Options
from wirelint.model import Json

Headers = tuple[tuple[str, str], ...]
Tag = Literal["open", "start", "ping", "delta", "stop", "finish", "usage", "done", "error"]

KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event before it is written. `tag` says what it is for, in no vendor's words.

    `done` is whatever ends a stream: OpenAI's `[DONE]`, Anthropic's `message_stop`.
    """

    tag: Tag
    data: str
    name: str | None = None

    def encode(self) -> bytes:
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {self.data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence on the open connection, in seconds."""

    seconds: float


Step = bytes | Pause


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes out. `delay` is the silence before the status line; `dies`: the connection ends without an end of body.

    `length` is the number of bytes that the headers promise (None: chunked transfer coding), `pace` the milliseconds
    after every part.
    """

    status: int
    headers: Headers
    steps: tuple[Step, ...]
    streamed: bool = False
    delay: float = 0.0
    dies: bool = False
    length: int | None = None
    pace: float = 0.0

    @property
    def server_sent(self) -> bool:
        """Return True if the body is a stream of server-sent events."""
        return dict(self.headers).get("content-type", "").startswith("text/event-stream")


def shape_answer(answer: Answer, options: Options, accepted: str = "", ping: bytes = KEEP_ALIVE) -> Answer:
    """Applies the transport options. `accepted` is the client's Accept-Encoding, `ping` the API's keep-alive event."""
    steps = list(answer.steps)
    if answer.streamed and answer.server_sent:
        steps = list(_decorate_events(steps, options, ping))
    headers = answer.headers
    coding = _choose_coding(options.encoding, accepted)
    if coding:
        steps = list(_compress(steps, CODERS[coding]()))
        headers = (*headers, ("content-encoding", coding), ("vary", "accept-encoding"))
    length = sum(len(step) for step in steps if isinstance(step, bytes))
    if options.chunk:
        steps = list(_cut_again(steps, options.chunk))
    dies = answer.dies
    if options.cut is not None and options.cut < length:
        steps, dies = list(_cut_off(steps, options.cut)), True
    framed = options.content_length or not (answer.streamed or options.chunk)
    return replace(
        answer,
        headers=headers,
        steps=tuple(steps),
        dies=dies,
        delay=answer.delay + options.delay / 1000,
        length=length if framed else None,
        pace=options.pace if answer.streamed or options.chunk else 0.0,
    )


def _decorate_events(steps: Sequence[Step], options: Options, ping: bytes) -> Iterator[Step]:
    """CRLF, BOM and comments: all that the grammar of server-sent events allows and clients trip over."""
    first = b"\xef\xbb\xbf" if options.bom else b""
    for number, step in enumerate(steps):
        if isinstance(step, Pause):
            yield step
            continue
        extra = (KEEP_ALIVE if number % 2 == 0 else ping) if options.comments else b""
        for part in filter(None, (extra if number % 2 == 0 else b"", step, extra if number % 2 else b"")):
            yield first + (part.replace(b"\n", b"\r\n") if options.crlf else part)
            first = b""


def _choose_coding(encoding: str, accepted: str) -> str:
    """The coding asked for by name, or with `auto` the best that the client accepts."""
    if encoding != "auto":
        return encoding
    offered = {word.partition(";")[0].strip().lower() for word in accepted.split(",")}
    return next((coding for coding in ("zstd", "br", "gzip", "deflate") if coding in offered), "")


class Coder(Protocol):
    def compress(self, data: bytes) -> bytes: ...
    def flush(self) -> bytes: ...
    def finish(self) -> bytes: ...


class _Zlib:
    def __init__(self, window: int) -> None:
        self._coder = zlib.compressobj(wbits=window)

    def compress(self, data: bytes) -> bytes:
        return self._coder.compress(data)

    def flush(self) -> bytes:
        return self._coder.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._coder.flush(zlib.Z_FINISH)


class _Brotli:
    def __init__(self) -> None:
        self._coder = brotli.Compressor(quality=5)

    def compress(self, data: bytes) -> bytes:
        return bytes(self._coder.process(data))

    def flush(self) -> bytes:
        return bytes(self._coder.flush())

    def finish(self) -> bytes:
        return bytes(self._coder.finish())


class _Zstandard:
    def __init__(self) -> None:
        self._coder = zstandard.ZstdCompressor().compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._coder.compress(data)

    def flush(self) -> bytes:
        return self._coder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._coder.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)


CODERS: dict[str, Callable[[], Coder]] = {
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),  # the zlib format, as RFC 9110 section 8.4.1.2 has it
    "br": _Brotli,
    "zstd": _Zstandard,
}


def _compress(steps: Sequence[Step], coder: Coder) -> Iterator[Step]:
    """Codes every part on its own, flushed; the end of the coded data rides with the last part."""
    last = max((at for at, step in enumerate(steps) if isinstance(step, bytes)), default=-1)
    for at, step in enumerate(steps):
        if isinstance(step, Pause):
            yield step
        else:
            yield coder.compress(step) + (coder.finish() if at == last else coder.flush())


def _cut_again(steps: Sequence[Step], size: int) -> Iterator[Step]:
    """Network chunks of `size` bytes across part boundaries; only a pause lets a shorter one go."""
    held = b""
    for step in steps:
        if isinstance(step, bytes):
            held += step
            whole = len(held) - len(held) % size
            yield from (held[at : at + size] for at in range(0, whole, size))
            held = held[whole:]
            continue
        if held:
            yield held
            held = b""
        yield step
    if held:
        yield held


def _cut_off(steps: Sequence[Step], left: int) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, bytes):
            step, left = step[:left], left - len(step)
        if step:
            yield step
        if left <= 0:
            return


def json_answer(status: int, body: Json, headers: Headers = ()) -> Answer:
    """A whole JSON body."""
    data = dump_json(body).encode()
    return Answer(status, (("content-type", "application/json"), *headers), (data,), length=len(data))
