r"""Server-sent events: bytes in, frames out, for any cut of the bytes.

Theory of operation. The grammar (HTML standard, section "Server-sent events", 9.2.5) is lines ended by LF, CR or CRLF;
a blank line dispatches the event. Only ASCII marks structure, so the bytes are cut into frames first and decoded as
UTF-8 afterwards, a whole frame at a time: no cut can fall inside a character.

A frame ends with the line end of its blank line. A CR at the very end of the arrived bytes may be half of a CRLF, so
such a frame waits for the next byte. With that the result is the same for every cut. Blank lines that dispatch nothing
belong to the frame after them.

Violations of the grammar are recorded on the frame and read the way lenient clients read them. White space before a
field name is skipped (strict clients ignore that line and lose the event). An event name that a blank line separates
from its data counts for that data if the data has an equal `type`:
`event: message_start\n\ndata: {"type":"message_start"}\n\n`. If a gateway has lost the blank lines, an event ends at a
line that ends with `}` if the next line begins `data: {`, `data: [DONE]`, or an `event:` line with such data.
"""

from __future__ import annotations

import re

from wirelint.events import Frame
from wirelint.model import FaultKind
from wirelint.wire.json_bodies import BOM, Framer, decode, evidence

_BLANK = re.compile(rb"(?:\r\n?+|\n)(?:\r\n?+|\n)")  # possessive: CRLF is one line end, never two
_SAID = re.compile(rb"[^\r\n]")
_BLANK_AT_END = re.compile(_BLANK.pattern + rb"\Z")
_RUN_ON = re.compile(rb"\}(?>\r\n|\n|\r)(?=data: ?(?:\{|\[DONE\])|event: ?[^\r\n]{0,64}(?>\r\n|\n|\r)data: ?\{)")
"""Line end between two events without a blank line. The bytes that the pattern looks at are at most `_LOOKED` long."""
_LOOKED = 96

_LINE = re.compile(r"\r\n|\n|\r")
_FIELDS = frozenset({"data", "event", "id", "retry"})


class EventStream(Framer):
    """Incremental parser of one event stream."""

    framing = "events"

    def __init__(self) -> None:
        super().__init__()
        self._blank = 0
        """Bytes of blank lines at the beginning of the frame."""
        self._name: str | None = None
        """Event name of the last frame, if that frame had no data: `event: message_start\\n\\n`."""

    def feed(self, data: bytes) -> list[Frame]:
        # The buffer was searched for the end of a frame, but a blank line may begin up to three bytes before its end.
        buffer, start, position = self._buffer, 0, max(len(self._buffer) - 3, 0)
        buffer += data
        frames: list[Frame] = []
        while True:
            end = self._end_of_frame(start, position)
            limit = end if end >= 0 else len(buffer)
            while run_on := _RUN_ON.search(buffer, max(start, position - _LOOKED), limit):
                frame = self._frame(bytes(buffer[start : run_on.end()]))
                lost: tuple[FaultKind, str] = ("missing-blank-line", evidence(frame.data or ""))
                frames.append(frame._replace(faults=(*frame.faults, lost)))
                start = position = run_on.end()
                self._blank = 0
            if end < 0:
                break
            frames.append(self._frame(bytes(buffer[start:end])))
            start = position = end
            self._blank = 0
        if start:
            del buffer[:start]
        return frames

    def _last_frame(self, rest: bytes) -> Frame:
        frame = self._frame(rest)
        if frame.data is None or _BLANK_AT_END.search(rest, max(len(rest) - 4, 0)):
            return frame
        return frame._replace(faults=(*frame.faults, ("cut-event", evidence(frame.data))))

    def _end_of_frame(self, start: int, position: int) -> int:
        """Return the offset after the blank line that ends the frame beginning at `start`, or -1."""
        buffer = self._buffer
        said = _SAID.search(buffer, start + self._blank)
        if said is None:  # blank lines alone end no frame; skip them at the next call
            self._blank = len(buffer) - start
            return -1
        self._blank = said.start() - start
        match = _BLANK.search(buffer, max(position, said.start()))
        if match is None or (match.end() == len(buffer) and buffer.endswith(b"\r")):
            return -1
        return match.end()

    def _frame(self, raw: bytes) -> Frame:
        frame = _parse(self._number, raw, raw.removeprefix(BOM) if self._number == 0 else raw)
        self._number += 1
        name, self._name = self._name, frame.event if frame.data is None else None
        if name is None or frame.data is None or frame.event is not None or not _names(name, frame.data):
            return frame
        return frame._replace(event=name, faults=(*frame.faults, ("parted-name", evidence(name))))


def _names(name: str, data: str) -> bool:
    """Return True if data after a lone event name belongs to that name: its own `type` says so."""
    if name == "error":
        return '"error"' in data
    if name == "message":  # the default name of data without an event name
        return data.lstrip()[:1] == "{"
    return f'"{name}"' in data and re.search(rf'"type"\s*:\s*"{re.escape(name)}"', data) is not None


def _parse(number: int, raw: bytes, body: bytes) -> Frame:
    text, undecoded = decode(body)
    faults = list(undecoded)
    event: str | None = None
    lines: list[str] = []
    for line in _LINE.split(text):
        if not line or line.startswith(":"):
            continue
        name, colon, value = line.partition(":")
        if name not in _FIELDS and (bare := name.lstrip(" \t\ufeff")) in _FIELDS and colon:
            faults.append(("leading-space", evidence(line)))
            name = bare
        value = value.removeprefix(" ")
        match name:
            case "data":
                lines.append(value)
            case "event":
                event = value
            case "id" | "retry":
                pass
            case _:
                if line.strip():
                    faults.append(("unknown-field", evidence(line)))
    return Frame(number, raw, event, "\n".join(lines) if lines else None, tuple(faults))
