"""The common part of all framers of streams: the bytes that are not yet part of a frame, and the text of a frame."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TypeAlias

from wirelint.model import FaultKind

BOM = BOM_UTF8
BLANKS = b" \t\r\n"
_SHOWN = 60

Faults: TypeAlias = tuple[tuple[FaultKind, str], ...]


class Buffered:
    """Base of a framer that cuts a stream."""

    streamed = True

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._number = 0
        """Number of the next frame."""

    @property
    def waiting(self) -> bytes:
        return bytes(self._buffer)

    def _take_rest(self) -> bytes:
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest


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
