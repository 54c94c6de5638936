"""An HTTP answer as a list of steps: how events become bytes, and how the transport options of a scenario change them.

An `Answer` starts with one body part per event (or one for a whole JSON body). `shape_answer` then works like the layers
of a real server, in this order: line ends, BOM and comments; content coding with a flush after every part (so that
each event can be decoded as soon as it arrives); new network chunks; death after N bytes. The server plays the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Literal

import brotli
import zstandard

from wirelint.mock.plan import Framing, Options, dump_json
from wirelint.model import Json
from wirelint.wire.aws_eventstream import message

Headers = tuple[tuple[str, str], ...]
Tag = Literal["open", "start", "ping", "delta", "stop", "finish", "usage", "done", "error"]

KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream before it is encoded. `tag` is its purpose, in no vendor's words.

    `done` ends a stream: OpenAI's `[DONE]`, Anthropic's `message_stop`.
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
    """One HTTP response. `delay` is the silence before the status line; with `dies` the connection ends within the body.

    `length` is the Content-Length (None: chunked transfer coding), `pace` the milliseconds after every part.
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


def json_answer(status: int, body: Json, headers: Headers = ()) -> Answer:
    data = dump_json(body).encode()
    return Answer(status, (("content-type", "application/json"), *headers), (data,), length=len(data))


_TYPES: dict[Framing, str] = {
    "events": "text/event-stream; charset=utf-8",
    "lines": "application/x-ndjson",
    "array": "application/json; charset=UTF-8",
    "messages": "application/vnd.amazon.eventstream",
}


def stream_answer(events: Sequence[Event], framing: Framing, headers: Headers = ()) -> Answer:
    """Make a streamed answer, one part per event."""
    match framing:
        case "events":
            parts = [event.encode() for event in events]
        case "lines":
            parts = [f"{event.data}\n".encode() for event in events]
        case "array":
            parts = [f"{',' if number else '['}\n{event.data}".encode() for number, event in enumerate(events)]
            parts.append(b"\n]\n")
        case "messages":
            parts = [encode_message(event) for event in events]
    fixed = (("content-type", _TYPES[framing]), ("cache-control", "no-cache"))
    return Answer(200, (*fixed, *headers), tuple(parts), streamed=True)


def encode_message(event: Event) -> bytes:
    """Encode a message of an AWS event stream. An error's name is the type of an exception."""
    return message(event.data.encode(), event.name or "", exception=event.tag == "error")


def shape_answer(answer: Answer, options: Options, accepted: str = "", ping: bytes = KEEP_ALIVE) -> Answer:
    """Apply the transport options. `accepted` is the client's Accept-Encoding, `ping` the API's keep-alive event."""
    steps = list(answer.steps)
    if answer.server_sent:
        steps = list(_decorate_events(steps, options, ping))
    headers = answer.headers
    coding = _choose_coding(options.encoding, accepted)
    if coding:
        steps = list(_compress(steps, _make_coder(coding)))
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
    """Add CRLF, BOM and comments, which the grammar of server-sent events allows and clients trip over."""
    mark = b"\xef\xbb\xbf" if options.bom else b""
    for number, step in enumerate(steps):
        if isinstance(step, Pause):
            yield step
            continue
        parts = [step]
        if options.comments:
            parts = [step, ping] if number % 2 else [KEEP_ALIVE, step]
        for part in filter(None, parts):
            yield mark + (part.replace(b"\n", b"\r\n") if options.crlf else part)
            mark = b""


def _choose_coding(encoding: str, accepted: str) -> str:
    """Return the named coding, or with `auto` the best one that the client accepts."""
    if encoding != "auto":
        return encoding
    offered = {word.partition(";")[0].strip().lower() for word in accepted.split(",")}
    return next((coding for coding in ("zstd", "br", "gzip", "deflate") if coding in offered), "")


_Coder = tuple[Callable[[bytes], bytes], Callable[[], bytes], Callable[[], bytes]]
"""A content coding: compress some bytes, flush after a part, finish."""
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""`deflate` is the zlib format, RFC 9110 section 8.4.1.2."""


def _make_coder(coding: str) -> _Coder:
    if coding == "br":
        compressor = brotli.Compressor(quality=5)
        return compressor.process, compressor.flush, compressor.finish
    if coding == "zstd":
        coder: Any = zstandard.ZstdCompressor().compressobj()
        modes = zstandard.COMPRESSOBJ_FLUSH_BLOCK, zstandard.COMPRESSOBJ_FLUSH_FINISH
    else:
        coder, modes = zlib.compressobj(wbits=_WINDOWS[coding]), (zlib.Z_SYNC_FLUSH, zlib.Z_FINISH)
    return coder.compress, partial(coder.flush, modes[0]), partial(coder.flush, modes[1])


def _compress(steps: Sequence[Step], coder: _Coder) -> Iterator[Step]:
    """Compress every part with a flush; the end of the coded data goes out with the last part."""
    compress, flush, finish = coder
    last = max((at for at, step in enumerate(steps) if isinstance(step, bytes)), default=-1)
    for at, step in enumerate(steps):
        if isinstance(step, Pause):
            yield step
        else:
            yield compress(step) + (finish() if at == last else flush())


def _cut_again(steps: Sequence[Step], size: int) -> Iterator[Step]:
    """Cut network chunks of `size` bytes across part boundaries; only a pause and the end allow a shorter one."""
    for is_body, run in groupby(steps, lambda step: isinstance(step, bytes)):
        if not is_body:
            yield from run
            continue
        body = b"".join(step for step in run if isinstance(step, bytes))
        yield from (body[at : at + size] for at in range(0, len(body), size))


def _cut_off(steps: Sequence[Step], left: int) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, bytes):
            step, left = step[:left], left - len(step)
        if step:
            yield step
        if left <= 0:
            return
