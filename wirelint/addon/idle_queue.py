"""Work that can wait until the traffic leaves room for it.

Theory of operation. A proxy has one thread; whatever is done on it is waited for by everybody whose bytes are under way.
What is not needed at once is put here and done in the order in which it came. When there is no traffic, it is done at once,
one piece after the other. While there is, a piece waits for a while, and those that have are done together: of several
pieces one behind the other all but the first are done in a fraction of the time, since the code and data that they need are
at hand. After a few of them, nearly all of the time is left to the traffic. What waits is bounded. Above the bound, some of
the oldest pieces are done on the spot: those who bring more than can be done are slowed down by it, and nothing is lost.

The first half of a large piece is done by a thread of its own as soon as the piece is here: it takes up to a second for the
events of one long reply, for which nobody else's bytes would move. Its second half has its turn on the loop as any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

LARGE = 1 << 17
"""Bytes from which on a piece is large: a hundred of one-character events of a stream, and a second of 20 MB of them."""
_MOST = 64 << 20
_LEFT = 19
"""What the traffic has for each second of this work, in seconds."""
_AT_ONCE = 0.005
"""Seconds after which no other piece is begun."""
_SHORTEST, _LONGEST = 0.005, 0.1
"""Bounds of a pause, in seconds."""
_WAITS = 0.5
"""Seconds for which a piece waits for the traffic to end. Somebody may look for what is said of it."""


class _Waiting(NamedTuple, Generic[T]):
    """`begun`: the first half of a large piece, which gives the second."""

    item: T
    size: int
    since: float
    begun: Future[Callable[[], None]] | None


class Backlog(Generic[T]):
    """`work` does the first half of a piece and gives the second; neither raises. `work` may be called by a thread.

    `busy` tells whether there is traffic, `clock` gives seconds. `most` is how many bytes may wait, by what `put` is told;
    a large piece may wait by itself, whatever its size.
    """

    def __init__(
        self,
        work: Callable[[T], Callable[[], None]],
        busy: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
        most: int = _MOST,
    ) -> None:
        self._work, self._busy, self._clock, self._most = work, busy, clock, most
        self._waiting: deque[_Waiting[T]] = deque()
        self._thread: ThreadPoolExecutor | None = None
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._patient = False
        """Whether the timer has been set while there was traffic."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, size: int) -> None:
        """Has a piece done later. `size`: about how many bytes of memory wait with it."""
        self._waiting.append(_Waiting(item, size, self._clock(), self._begin(item) if size >= LARGE else None))
        self._size += size
        if self._is_full():
            self._do_some()
            while self._is_full():
                self._do()
        self._plan(_SHORTEST)

    def drain(self) -> None:
        """Does all that waits."""
        while self._waiting:
            self._do()

    def _begin(self, item: T) -> Future[Callable[[], None]] | None:
        """Has a thread do the first half of a piece; None where nobody would come back to it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "wirelint-reading")

        def go_on(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: what waits was drained
                loop.call_soon_threadsafe(self._plan, 0.0)

        begun = self._thread.submit(self._work, item)
        begun.add_done_callback(go_on)
        return begun

    def _is_full(self) -> bool:
        return self._size > self._most and not (len(self._waiting) == 1 and self._waiting[0].begun is not None)

    def _may_go_on(self) -> bool:
        """Return True if the oldest piece is not in the hands of the thread."""
        return bool(self._waiting) and ((begun := self._waiting[0].begun) is None or begun.done())

    def _do(self) -> None:
        item, size, _, begun = self._waiting.popleft()
        self._size -= size
        rest = begun.result() if begun is not None else self._work(item)
        rest()

    def _do_some(self, *, ripe: bool = False) -> float:
        """Does pieces for a short time, or those of them that have waited for long enough; how many seconds it took."""
        start = self._clock()
        took = 0.0
        while self._may_go_on() and took < _AT_ONCE and not (ripe and self._ripens() > 0.0):
            self._do()
            took = self._clock() - start
        return took

    def _plan(self, pause: float) -> None:
        """Has work done after a pause, or later as long as there is traffic."""
        busy = self._busy()
        if self._timer is not None and self._patient and not busy:  # the traffic that was waited for is over
            self._timer.cancel()
            self._timer = None
        if self._timer is not None or not self._may_go_on():
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
        return self._waiting[0].since + _WAITS - self._clock() if self._waiting else 0.0

    def _step(self) -> None:
        self._timer = None
        if not self._busy():
            self._do_some()
            self._plan(0.0)
        else:
            took = self._do_some(ripe=True)
            self._plan(min(max(_LEFT * took, _SHORTEST), _LONGEST))
