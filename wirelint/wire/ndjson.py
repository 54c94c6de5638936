"""JSON lines, one document per line (`application/x-ndjson`): bytes in, frames out, for any cut of the bytes.

A frame ends with the line feed of its line. A JSON document on one line contains no line feed, and neither does a
longer UTF-8 sequence, so bytes are cut first and decoded afterwards. Blank lines belong to the frame after them. The
bytes after the last line feed are a line as well, since clients read it; if its document is incomplete, the body was
cut off.

A body that is not declared as lines is recognised by its first line, if that is a document and more bytes follow it.
Until then it may be a whole body, which has at most a line feed at its end.
"""

from __future__ import annotations

from typing import Literal

from wirelint.events import Frame
from wirelint.jsonvalues import decode_json
from wirelint.wire.buffer import BLANKS, BOM, Buffered, Faults, decode, evidence


class WholeBody:
    """Framer that collects a whole body and returns it as one frame at the end."""

    streamed = False
    framing: Literal["whole"] = "whole"

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        if data:
            self._parts.append(data)
        return []

    def close(self) -> list[Frame]:
        raw = b"".join(self._parts)
        self._parts.clear()
        if not raw:
            return []
        return [whole_frame(raw)]

    @property
    def waiting(self) -> bytes:
        return b"".join(self._parts)


def whole_frame(raw: bytes) -> Frame:
    return Frame(0, raw, None, raw.removeprefix(BOM).decode("utf-8", "replace"))


TYPES = frozenset({
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/jsonlines",
    "application/stream+json",
})  # fmt: skip
"""Content types that declare JSON lines."""


class JsonLines(Buffered):
    """Incremental parser of JSON lines."""

    framing: Literal["lines"] = "lines"

    def __init__(self) -> None:
        super().__init__()
        self._searched = 0
        self._line = 0
        """Offset of the last line in the buffer. All lines before it are blank."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames completed by `data`, in order."""
        if not self._buffer and 0 < data.find(b"\n") == len(data) - 1 and not data.isspace():
            return [self._frame(data)]  # one line per chunk, as most servers send them
        self._buffer += data
        buffer = self._buffer
        frames: list[Frame] = []
        start, line, position = 0, self._line, self._searched
        while (end := buffer.find(b"\n", position)) >= 0:
            position = end + 1
            if not buffer[line:position].isspace():
                frames.append(self._frame(bytes(buffer[start:position])))
                start = position
            line = position
        if start:
            del buffer[:start]
        self._line, self._searched = line - start, len(buffer)
        return frames

    def close(self) -> list[Frame]:
        """Return the bytes after the last line feed, as a separate frame."""
        rest = self._take_rest()
        self._searched = self._line = 0
        if not rest:
            return []
        frame = self._frame(rest)
        if frame.data is None or isinstance(decode_json(frame.data), dict):
            return [frame]
        cut: Faults = (("cut-event", evidence(frame.data)),)
        return [frame._replace(faults=frame.faults + cut)]

    def _frame(self, raw: bytes) -> Frame:
        number = self._number
        self._number += 1
        body = (raw.removeprefix(BOM) if number == 0 else raw).strip(BLANKS)
        return Frame(number, raw, None, *decode(body)) if body else Frame(number, raw, None, None)


class WholeOrLines:
    """Framer for a JSON body that is either one document or JSON lines. It decides before it returns its first
    frame."""

    def __init__(self) -> None:
        self._framer: WholeBody | JsonLines | None = None
        self._head = bytearray()
        self._line_end = -1
        self._lines = False

    @property
    def streamed(self) -> bool:
        return isinstance(self._framer, JsonLines)

    @property
    def framing(self) -> Literal["whole", "lines"]:
        return "lines" if self.streamed else "whole"

    def feed(self, data: bytes) -> list[Frame]:
        if self._framer is not None:
            return self._framer.feed(data)
        known = len(self._head)
        self._head += data
        if self._line_end < 0 and not self._ends_line(known):
            return []
        if not self._lines:
            return self._decide(WholeBody())
        rest = self._head[max(self._line_end, known) :].lstrip(BLANKS)
        if not rest:
            return []
        return self._decide(JsonLines() if rest.startswith(b"{") else WholeBody())

    def close(self) -> list[Frame]:
        made = [] if self._framer is not None else self._decide(WholeBody())
        assert self._framer is not None
        return made + self._framer.close()

    @property
    def waiting(self) -> bytes:
        return bytes(self._head) if self._framer is None else self._framer.waiting

    def _ends_line(self, known: int) -> bool:
        """Return True if the first line that is not blank has ended. The body can be JSON lines only if that line is a
        document."""
        head = self._head
        while (end := head.find(b"\n", known)) >= 0:
            line = head[:end].removeprefix(BOM)
            known = end + 1
            if not line.strip(BLANKS):
                continue
            self._line_end = end + 1
            self._lines = isinstance(decode_json(bytes(line)), dict)
            return True
        return False

    def _decide(self, framer: WholeBody | JsonLines) -> list[Frame]:
        self._framer = framer
        head, self._head = bytes(self._head), bytearray()
        return framer.feed(head)
