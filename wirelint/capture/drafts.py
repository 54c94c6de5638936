"""An exchange as one JSON value that can be taken apart and put together again: what a reproducer is whittled from.

    {"request": <the body>, "response": <the body>} or {"request": …, "response": [{"data": …, "raw": …, "at": …}, …]}

A stream is a list of its frames. A frame with one JSON document in it has that as `data`, and its bytes are made from it
again in the frame's own form; of any other there is its `raw` text, which can be dropped and not changed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from wirelint.arrivals import Timing
from wirelint.capture.format import dump
from wirelint.capture.record import Record
from wirelint.engine import lower
from wirelint.events import Frame
from wirelint.model import Json
from wirelint.wire import Sniffer

_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A record without its bodies, and the forms that they have."""

    base: Record
    value: Json
    streamed: bool
    opaque: bool
    """Whether the reply's bytes have to stay as they are (messages with sums over them, text that is no JSON)."""

    def record(self, value: Json) -> Record:
        """The record that a value stands for."""
        assert isinstance(value, dict)
        asked, answer = value.get("request"), value.get("response")
        body = self.base.request_body if asked is None else dump(asked)
        if self.opaque:
            return dataclasses.replace(self.base, request_body=body)
        if not self.streamed:
            return dataclasses.replace(
                self.base, request_body=body, response_body=None if answer is None else dump(answer), chunks=()
            )
        pieces = [(_bytes(frame), _time(frame)) for frame in (answer if isinstance(answer, list) else [])]
        times = [at for _, at in pieces]
        chunks = tuple((at, len(data)) for data, at in pieces if at is not None)
        return dataclasses.replace(
            self.base,
            request_body=body,
            response_body=b"".join(data for data, _ in pieces),
            chunks=chunks if None not in times else (),
        )

    def without_times(self) -> Draft:
        """The same as if nobody had looked at a clock."""
        frames = self.value["response"] if self.streamed and isinstance(self.value, dict) else None
        if not isinstance(frames, list):
            return dataclasses.replace(self, base=dataclasses.replace(self.base, chunks=(), timing=Timing()))
        timeless: list[Json] = [{**frame, "at": None} for frame in frames if isinstance(frame, dict)]
        return dataclasses.replace(
            self,
            base=dataclasses.replace(self.base, chunks=(), timing=Timing()),
            value={**self.value, "response": timeless} if isinstance(self.value, dict) else self.value,
        )


def draft(record: Record) -> Draft:
    """The draft of a record. What of it is no JSON stays in the base as it is."""
    asked = _document(record.request_body)
    body = record.response_body or b""
    sniffer = Sniffer(lower(record.response_headers))
    frames = [*sniffer.feed(body), *sniffer.close()] if body else []
    messages = body[:1] == b"\0"
    if sniffer.streamed and frames and not messages and b"".join(frame.raw for frame in frames) == body:
        answer: Json = list(_frames(frames, record.chunks))
        return Draft(record, {"request": asked, "response": answer}, True, False)
    whole = _document(record.response_body)
    return Draft(record, {"request": asked, "response": whole}, False, opaque=whole is None)


def _frames(frames: list[Frame], chunks: tuple[tuple[float, int], ...]) -> Iterator[Json]:
    """Frames with the times at which their last bytes came."""
    known = sum(size for _, size in chunks) == sum(len(frame.raw) for frame in frames)
    ends = iter(chunks if known else ())
    at: float | None = None
    came = end = 0
    for frame in frames:
        end += len(frame.raw)
        while came < end and (chunk := next(ends, None)) is not None:
            at = chunk[0]
            came += chunk[1]
        yield _frame(frame, at)


def _frame(frame: Frame, at: float | None) -> Json:
    raw = frame.raw.decode("utf-8", "surrogateescape")
    data = _document(frame.data.encode("utf-8", "surrogatepass")) if frame.data and not frame.faults else None
    single = len(_DATA.findall(frame.raw)) == 1 or frame.raw.lstrip()[:1] == b"{"
    return {"raw": raw, "at": at, **({"data": data} if isinstance(data, dict) and single else {})}


def _bytes(frame: Json) -> bytes:
    if not isinstance(frame, dict):
        return b""
    raw = str(frame.get("raw", "")).encode("utf-8", "surrogateescape")
    data = frame.get("data")
    if data is None:
        return raw
    found = _DATA.search(raw)
    was = found[1].rstrip(b"\r") if found is not None else raw.strip()
    if _document(was) == data:
        return raw
    return raw.replace(was, dump(data), 1)


def _time(frame: Json) -> float | None:
    at = frame.get("at") if isinstance(frame, dict) else None
    return float(at) if isinstance(at, (int, float)) else None


def _document(body: bytes | None) -> Json:
    try:
        value: Json = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None
    return value
