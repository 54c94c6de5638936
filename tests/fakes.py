"""A clock that a test turns, and a terminal that keeps what it is sent."""

from __future__ import annotations

import io


class Clock:
    """Seconds that pass when told to."""

    def __init__(self, time: float = 100.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True
