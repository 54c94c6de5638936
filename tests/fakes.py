"""A clock that a test turns, a terminal that keeps what it is sent, and a bound for memory."""

from __future__ import annotations

import contextlib
import io
import tracemalloc
from collections.abc import Iterator


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


@contextlib.contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """The block must not take more memory than this at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()
