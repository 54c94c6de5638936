r"""Bodies of JSON: one document, JSON lines, an array whose elements arrive one by one. Bytes in, frames out, for any cut.

JSON lines (`application/x-ndjson`). A frame ends with the line feed of its line. A JSON document on one line contains no
line feed, and neither does a longer UTF-8 sequence, so bytes are cut first and decoded afterwards. Blank lines belong to
the frame after them. The bytes after the last line feed are a line as well, since clients read it; if its document is
incomplete, the body was cut off.

Arrays. Google's APIs stream in this form unless a client asks for server-sent events (`[{…}`, `\n,\n{…}`, `\n]`). An
element is complete with its closing bracket. It is then a frame, together with the separator before it, and the frame's
data is the element alone. The closing bracket of the array is a separate frame without data. Brackets are counted and
strings skipped; their content is not decoded here. If a brace `}` appears where the closing bracket `]` belongs, the
brackets do not match: the rest is unreadable, and the array counts as not closed.
"""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, TypeAlias

import regex

from wirelint.events import Frame
from wirelint.jsonvalues import decode_json
from wirelint.model import FaultKind

BOM = codecs.BOM_UTF8
BLANKS = b" \t\r\n"
_SHOWN = 60

Faults: TypeAlias = tuple[tuple[FaultKind, str], ...]


Framing = Literal["whole", "events", "lines", "array", "messages"]
"""Form of a body: one document, server-sent events, JSON lines, a JSON array, an AWS event stream."""


class Framer(ABC):
    """Splitter of a body into frames. Do not call `feed` after `close`."""

    streamed: ClassVar[bool] = True
    framing: ClassVar[Framing]
    unreadable: str | None = None
    """Reason why the body cannot be read; None if it can."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._number = 0
        """Number of the next frame."""

    @abstractmethod
    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames completed by `data`, in order."""

    def close(self) -> list[Frame]:
        """Return the bytes after the last complete frame, as a separate frame."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return [self._last_frame(rest)] if rest else []

    @abstractmethod
    def _last_frame(self, rest: bytes) -> Frame:
        """Return the frame of the bytes after the last complete frame."""

    def _next_frame(self, raw: bytes, data: bytes) -> Frame:
        self._number += 1
        return Frame(self._number - 1, raw, None, *(decode(data) if data else (None,)))


def decode(raw: bytes) -> tuple[str, Faults]:
    """Return the text of a frame, and the fault of bytes that are no UTF-8."""
    try:
        return raw.decode(), ()
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        return text, (("bad-utf8", evidence(text)),)


def evidence(text: str) -> str:
    """Return the beginning of a text, for the detail of a fault."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class WholeBody(Framer):
    """Framer that collects a whole body and returns it as one frame at the end."""

    streamed = False
    framing = "whole"

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        return []

    def _last_frame(self, rest: bytes) -> Frame:
        return Frame(0, rest, None, rest.removeprefix(BOM).decode("utf-8", "replace"))


_TYPES = ("x-ndjson", "ndjson", "jsonl", "x-jsonlines", "jsonlines", "stream+json")
TYPES = frozenset(f"application/{name}" for name in _TYPES)
"""Content types that declare JSON lines."""


class JsonLines(Framer):
    """Incremental parser of JSON lines."""

    framing = "lines"

    def __init__(self) -> None:
        super().__init__()
        self._line = 0
        """Offset of the last line in the buffer. All lines before it are blank."""

    def feed(self, data: bytes) -> list[Frame]:
        buffer, position = self._buffer, len(self._buffer)  # the bytes so far hold no line feed after the blank lines
        buffer += data
        frames: list[Frame] = []
        start, line = 0, self._line
        while (end := buffer.find(b"\n", position)) >= 0:
            position = end + 1
            if not buffer[line:position].isspace():
                frames.append(self._frame(bytes(buffer[start:position])))
                start = position
            line = position
        if start:
            del buffer[:start]
        self._line = line - start
        return frames

    def _last_frame(self, rest: bytes) -> Frame:
        frame = self._frame(rest)
        if frame.data is None or isinstance(decode_json(frame.data), dict):
            return frame
        return frame._replace(faults=(*frame.faults, ("cut-event", evidence(frame.data))))

    def _frame(self, raw: bytes) -> Frame:
        body = raw.removeprefix(BOM) if self._number == 0 else raw
        return self._next_frame(raw, body.strip(BLANKS))


_HEAD = regex.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+\[[ \t\r\n]*+\{[ \t\r\n]*+\"([^\"\\]{0,40})\"")
_OTHERS = frozenset({b"jsonrpc", b"id", b"method", b"params", b"result", b"error"})
"""First keys of arrays that are no stream of events: a JSON-RPC batch, and an error body (`[{"error": …}]`)."""

_STRUCTURE = re.compile(rb'(?:[^"{}\[\]]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[^"{}\[\]]*+(["{}\[\]])', re.DOTALL)
"""The next bracket after all complete strings, or the quotation mark that begins an incomplete string."""

_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


def looks_like_array(head: bytes) -> bool | None:
    """Return True if the first bytes of a body begin an array of events; None if more bytes are needed."""
    if (found := _HEAD.match(head)) is not None:
        return found[1] not in _OTHERS
    return None if _HEAD.fullmatch(head, partial=True) else False


class ArrayStream(Framer):
    """Incremental parser of one array."""

    framing = "array"

    def __init__(self) -> None:
        super().__init__()
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._begin = 0
        """Offset in the buffer at which the current element begins."""
        self._ended = self._broken = False

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        frames: list[Frame] = []
        buffer, start, position = self._buffer, 0, self._scanned
        while not (self._ended or self._broken):
            if self._in_string:
                inside = _IN_STRING.match(buffer, position)
                position = inside.end() if inside is not None else position
                if buffer[position : position + 1] != b'"':
                    break  # at half an escape, or at the end
                self._in_string = False
                position += 1
            found = _STRUCTURE.match(buffer, position)
            if found is None:
                position = len(buffer)
                break
            position = found.end()
            if self._count(found[1], found.start(1)):
                data_from = self._begin if not self._ended else position
                frames.append(self._next_frame(bytes(buffer[start:position]), bytes(buffer[data_from:position])))
                start = position
        if start:
            del buffer[:start]
        self._scanned = max(position - start, 0)
        self._begin -= start
        return frames

    def _last_frame(self, rest: bytes) -> Frame:
        text, data, faults = evidence(rest.strip(BLANKS + b",").decode("utf-8", "replace")), None, Faults()
        if self._broken or (self._depth == 1 and text):
            faults = (("broken-json", text),)
        elif self._ended and text:
            faults = (("after-end", text),)
        elif self._depth > 1:
            data, faults = rest[self._begin :].decode("utf-8", "replace"), (("cut-event", text),)
        return Frame(self._number, rest, None, data, faults)

    def _count(self, mark: bytes, at: int) -> bool:
        """Count a bracket or a quotation mark. Return True if it ends an element or the array."""
        if mark == b'"':
            self._in_string = True
            return False
        if mark in b"{[":
            self._depth += 1
            if self._depth == 2:
                self._begin = at
            return False
        self._depth -= 1
        self._broken = self._depth <= 0 and mark != b"]"
        self._ended = self._depth <= 0 and not self._broken
        return self._depth <= 1 and not self._broken
