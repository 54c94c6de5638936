"""Work that can wait until the traffic leaves room for it.

Theory of operation. A proxy has one thread; whatever is done on it is waited for by everybody whose bytes are under way.
What is not needed at once is put here and done in the order in which it came, a few pieces at a time: while there is
traffic, nearly all of the time between them is left to it; when there is none, one piece follows the other. What waits is
bounded. Above the bound the oldest pieces are done on the spot, so that those who bring more than can be done are slowed
down by it, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST = 16 << 20
_LEFT = 19
"""What the traffic has for each second of this work, in seconds."""
_AT_ONCE = 0.003
"""Seconds after which no other piece is begun: of several pieces one behind the other all but the first are done in a
fraction of the time, since the code and data that they need are at hand."""
_SHORTEST, _LONGEST = 0.005, 0.1
"""Bounds of a pause, in seconds."""


class Backlog(Generic[T]):
    """`work` does a piece and does not raise. `busy` tells whether there is traffic, `clock` gives seconds.

    `most` is how many bytes may wait, by what `put` is told.
    """

    def __init__(
        self,
        work: Callable[[T], None],
        busy: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
        most: int = _MOST,
    ) -> None:
        self._work, self._busy, self._clock, self._most = work, busy, clock, most
        self._waiting: deque[tuple[T, int]] = deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, size: int) -> None:
        """Has a piece done later. `size`: about how many bytes of memory wait with it."""
        self._waiting.append((item, size))
        self._size += size
        while self._size > self._most:
            self._do()
        self._schedule(_SHORTEST)

    def drain(self) -> None:
        """Does all that waits."""
        while self._waiting:
            self._do()

    def _do(self) -> None:
        item, size = self._waiting.popleft()
        self._size -= size
        self._work(item)

    def _schedule(self, pause: float) -> None:
        if self._timer is not None or not self._waiting:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody would ever come back to it
            self.drain()
        else:
            self._timer = loop.call_later(pause, self._step)

    def _step(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        start = self._clock()
        took = 0.0
        while self._waiting and took < _AT_ONCE:
            self._do()
            took = self._clock() - start
        self._schedule(min(max(_LEFT * took, _SHORTEST), _LONGEST) if self._busy() else 0.0)
