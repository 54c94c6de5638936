"""Work that can wait until the traffic leaves room for it.

Theory of operation. A proxy has one thread; whatever is done on it is waited for by everybody whose bytes are under way.
What is not needed at once is put here and done in the order in which it came. When there is no traffic, it is done at once,
one piece after the other. While there is, a piece waits for a while, and those that have are done together: of several
pieces one behind the other all but the first are done in a fraction of the time, since the code and data that they need are
at hand. After a few of them, nearly all of the time is left to the traffic. What waits is bounded. Above the bound, some of
the oldest pieces are done on the spot: those who bring more than can be done are slowed down by it, and nothing is lost.
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
_AT_ONCE = 0.005
"""Seconds after which no other piece is begun."""
_SHORTEST, _LONGEST = 0.005, 0.1
"""Bounds of a pause, in seconds."""
_WAITS = 0.5
"""Seconds for which a piece waits for the traffic to end. Somebody may look for what is said of it."""


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
        self._waiting: deque[tuple[T, int, float]] = deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._patient = False
        """Whether the timer has been set while there was traffic."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, size: int) -> None:
        """Has a piece done later. `size`: about how many bytes of memory wait with it."""
        self._waiting.append((item, size, self._clock()))
        self._size += size
        if self._size > self._most:
            self._do_some()
            while self._size > self._most:
                self._do()
        self._plan(_SHORTEST)

    def drain(self) -> None:
        """Does all that waits."""
        while self._waiting:
            self._do()

    def _do(self) -> None:
        item, size, _ = self._waiting.popleft()
        self._size -= size
        self._work(item)

    def _do_some(self, *, ripe: bool = False) -> float:
        """Does pieces for a short time, or those of them that have waited for long enough; how many seconds it took."""
        start = self._clock()
        took = 0.0
        while self._waiting and took < _AT_ONCE and not (ripe and self._ripens() > 0.0):
            self._do()
            took = self._clock() - start
        return took

    def _plan(self, pause: float) -> None:
        """Has work done after a pause, or later as long as there is traffic."""
        busy = self._busy()
        if self._timer is not None and self._patient and not busy:  # the traffic that was waited for is over
            self._timer.cancel()
            self._timer = None
        if self._timer is not None or not self._waiting:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody would ever come back to it
            self.drain()
            return
        self._patient = busy
        self._timer = loop.call_later(max(pause, self._ripens()) if busy else pause, self._step)

    def _ripens(self) -> float:
        """Seconds until the oldest piece has waited for long enough."""
        return self._waiting[0][2] + _WAITS - self._clock() if self._waiting else 0.0

    def _step(self) -> None:
        self._timer = None
        if not self._busy():
            self._do_some()
            self._plan(0.0)
        else:
            took = self._do_some(ripe=True)
            self._plan(min(max(_LEFT * took, _SHORTEST), _LONGEST))
