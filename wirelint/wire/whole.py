"""A whole body as a stream of one frame."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import Literal

from wirelint.events import Frame


class WholeBody:
    """Collects a body and gives it as one frame at the end."""

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
    return Frame(0, raw, None, raw.removeprefix(BOM_UTF8).decode("utf-8", "replace"))
