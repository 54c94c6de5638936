r"""Server-sent events: bytes in, frames out, for any cut of the bytes.

Theory of operation. The grammar (HTML standard, section "Server-sent events", 9.2.5) is lines ended by LF, CR or CRLF;
a blank line dispatches the event. Nothing but ASCII marks structure, so the bytes are cut into frames first and decoded
as UTF-8 afterwards, a whole frame at a time: no cut can fall inside a character that matters.

A frame ends with the line end of its blank line. The one ambiguity is a CR at the very end of what has arrived, which
may be half of a CRLF; such a frame is held back until the next byte decides, and with it the result is the same for
every cut. Blank lines that dispatch nothing belong to the frame after them.

What the grammar forbids is recorded on the frame and read the way lenient clients read it: white space before a field
name is skipped (strict clients ignore that line, and lose the event). Where a gateway has lost the blank lines, an event
ends before the next one that begins: a line with a JSON document that is complete, and then another such line.
"""

from __future__ import annotations

import re

from wirelint.events import Frame
from wirelint.model import FaultKind

_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")  # atomic: CRLF is one line end, never two
_BLANK_AT_END = re.compile(_BLANK.pattern + rb"\Z")
_NAMED = re.compile(rb"event: ([^\r\n]*+)\ndata: ([^\r\n]*+)\n\n")
"""An event with a name, as nearly every server writes it. What does not match is read by the grammar."""

_RUN_ON = re.compile(rb"\}(?>\r\n|\n|\r)(?=data: ?(?:\{|\[DONE\])|event: ?[^\r\n]{0,64}(?>\r\n|\n|\r)data: ?\{)")
"""Where two events meet without a blank line between them. What shows it is at most `_LOOKED` bytes long."""
_LOOKED = 96

_LINE = re.compile(r"\r\n|\n|\r")
_FIELDS = frozenset({"data", "event", "id", "retry"})
_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_SHOWN = 60


class EventStream:
    """Incremental parser of one event stream."""

    streamed = True

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._number = 0
        self._lone_lf = True

    def feed(self, data: bytes) -> list[Frame]:
        """Frames completed by `data`, in order."""
        self._lone_lf = self._lone_lf and b"\r" not in data
        alone = self._lone_lf and not self._buffer and 0 < data.find(b"\n\n") == len(data) - 2 and data[0] != _LF
        if alone and b"}\ndata:" not in data and b"}\nevent:" not in data:
            return [self._frame(data)]  # one event, as most servers write them
        self._buffer += data
        buffer = self._buffer
        frames: list[Frame] = []
        start, position = 0, self._searched
        while True:
            end = self._end_of_frame(start, position)
            limit = end if end >= 0 else len(buffer)
            while run_on := _RUN_ON.search(buffer, max(start, position - _LOOKED), limit):
                frames.append(self._run_on(bytes(buffer[start : run_on.end()])))
                start = position = run_on.end()
            if end < 0:
                break
            frames.append(self._frame(bytes(buffer[start:end])))
            start = position = end
        if start:
            del buffer[:start]
        # A blank line may begin up to three bytes before the end of what is known.
        self._searched = max(len(buffer) - 3, 0)
        return frames

    def skip(self, events: int) -> int | None:
        """Counts events whose bytes are read elsewhere; the number of the first. None while a part of one waits: it cannot
        be told."""
        if self._buffer:
            return None
        self._number += events
        return self._number - events

    def _run_on(self, raw: bytes) -> Frame:
        frame = self._frame(raw)
        lost: tuple[FaultKind, str] = ("missing-blank-line", _shorten(frame.data or ""))
        return Frame(frame.number, raw, frame.event, frame.data, (*frame.faults, lost))

    def close(self) -> list[Frame]:
        """What stands behind the last blank line, as a frame of its own."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        if not rest:
            return []
        frame = self._frame(rest)
        if frame.data is None or _BLANK_AT_END.search(rest, max(len(rest) - 4, 0)):
            return [frame]
        cut: tuple[FaultKind, str] = ("cut-event", _shorten(frame.data))
        return [Frame(frame.number, frame.raw, frame.event, frame.data, (*frame.faults, cut))]

    @property
    def waiting(self) -> bytes:
        return bytes(self._buffer)

    def _end_of_frame(self, start: int, position: int) -> int:
        """Offset after the blank line that ends the frame beginning at `start`, or -1."""
        buffer = self._buffer
        if self._lone_lf:
            end = buffer.find(b"\n\n", position)
            while end >= 0 and not buffer[start:end].strip(b"\n"):
                end = buffer.find(b"\n\n", end + 1)
            return end + 2 if end >= 0 else -1
        for match in _BLANK.finditer(buffer, position):
            end = match.end()
            if buffer[end - 1 : end] == b"\r" and end == len(buffer):
                return -1
            if buffer[start : match.start()].strip(b"\r\n"):
                return end
        return -1

    def _frame(self, raw: bytes) -> Frame:
        number = self._number
        self._number += 1
        body = raw.removeprefix(_BOM) if number == 0 else raw
        try:
            if (
                self._lone_lf
                and body.startswith(b"data: ")
                and body.endswith(b"\n\n")
                and body.find(b"\n") == len(body) - 2
            ):
                return Frame(number, raw, None, body[6:-2].decode())
            if (named := _NAMED.fullmatch(body)) is not None:
                return Frame(number, raw, named[1].decode(), named[2].decode())
        except UnicodeDecodeError:
            pass
        return _parse(number, raw, body)


def _parse(number: int, raw: bytes, body: bytes) -> Frame:
    faults: list[tuple[FaultKind, str]] = []
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
        faults.append(("bad-utf8", _shorten(text)))
    event: str | None = None
    data: list[str] = []
    for line in _LINE.split(text):
        if not line or line.startswith(":"):
            continue
        name, colon, value = line.partition(":")
        if name not in _FIELDS and (bare := name.lstrip(" \t\ufeff")) in _FIELDS and colon:
            faults.append(("leading-space", _shorten(line)))
            name = bare
        value = value.removeprefix(" ")
        match name:
            case "data":
                data.append(value)
            case "event":
                event = value
            case "id" | "retry":
                pass
            case _:
                if line.strip():
                    faults.append(("unknown-field", _shorten(line)))
    return Frame(number, raw, event, "\n".join(data) if data else None, tuple(faults))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
