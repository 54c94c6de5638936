"""Queue for work that can wait until traffic leaves room for it.

mitmproxy has one thread, so work delays all traffic. Items run in order: at once without traffic, else after up to 0.5
s and one at a time. Traffic then gets 95 % of the time. The queue is bounded: above the limit the oldest items run at
once, which slows down new traffic.

The first half of a large item runs in a thread: parsing a long reply takes up to a second. Its second half runs on the
loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

from wirelint.state.ledger import Ledger

T = TypeVar("T")

LARGE = 1 << 16
"""Size in bytes from which an item counts as large. 100 KB of Markdown take 50 ms, and 20 MB of one-character stream
events a second, to parse."""
_MOST = 16 << 20
"""Bytes of all items that wait. In memory they are two to six times as large, with repairs the most."""
_LEFT = 19
"""Seconds for traffic per second of this work."""
_AT_ONCE = 0.005
"""Seconds for which items gather, and after which no further item starts."""
_SHORTEST, _LONGEST = 0.02, 0.1
"""Bounds of a pause during traffic, in seconds. At its end the queue looks whether the traffic is over."""
_WAITS = 0.5
"""Seconds that an item waits for traffic to end, at most; a user may wait for the result."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop; None if there is none, as in tests: then there are no timers."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Waiting(NamedTuple, Generic[T]):
    """Queued item. `begun`: the first half of a large item, which returns the second."""

    item: T
    size: int
    since: float
    begun: Future[Callable[[], None]] | None


class IdleQueue(Generic[T]):
    """Bounded queue. `work` does the first half of an item, maybe in a thread, and returns the second; neither raises.

    `busy` returns True during traffic. `most` is the limit in bytes; a single large item of any size may wait.
    """

    def __init__(self, work: Callable[[T], Callable[[], None]], busy: Callable[[], bool], most: int = _MOST) -> None:
        self._work, self._busy, self._most = work, busy, most
        self._waiting: deque[_Waiting[T]] = deque()
        self._thread = ThreadPoolExecutor(1, "wirelint-reading")
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T, size: int) -> None:
        """Queue an item. `size`: its approximate memory use in bytes."""
        self._waiting.append(_Waiting(item, size, time.perf_counter(), self._begin(item) if size >= LARGE else None))
        self._size += size
        while self._size > self._most and not (len(self) == 1 and self._waiting[0].begun is not None):
            self._run_next()
        self._plan(_AT_ONCE)

    def drain(self) -> None:
        while self._waiting:
            self._run_next()

    def _begin(self, item: T) -> Future[Callable[[], None]] | None:
        """Start the first half of an item in a thread; None without an event loop."""
        loop = running_loop()
        if loop is None:
            return None

        def go_on(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the queue was drained
                loop.call_soon_threadsafe(self._plan, 0.0)

        begun = self._thread.submit(self._work, item)
        begun.add_done_callback(go_on)
        return begun

    def _is_next_ready(self) -> bool:
        return bool(self._waiting) and ((begun := self._waiting[0].begun) is None or begun.done())

    def _run_next(self) -> None:
        item, size, _, begun = self._waiting.popleft()
        self._size -= size
        rest = begun.result() if begun is not None else self._work(item)
        rest()

    def _plan(self, pause: float) -> None:
        if self._timer is not None or not self._is_next_ready():
            return
        loop = running_loop()
        if loop is None:
            self.drain()
        else:
            self._timer = loop.call_later(pause, self._step)

    def _step(self) -> None:
        """Run items for 5 ms; during traffic only one, if it is due."""
        self._timer = None
        busy, start, took = self._busy(), time.perf_counter(), 0.0
        while self._is_next_ready() and took < _AT_ONCE:
            if busy and (took or start < self._waiting[0].since + _WAITS):
                break
            self._run_next()
            took = time.perf_counter() - start
        self._plan(min(max(_LEFT * took, _SHORTEST), _LONGEST) if busy else 0.0)


class CurrentLedger(Ledger):
    """Ledger of `find` after `catch_up` has checked all exchanges that have ended. Most fixes never read it."""

    def __init__(self, find: Callable[[], Ledger], catch_up: Callable[[], None]) -> None:
        super().__init__()
        self._find, self._catch_up = find, catch_up

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return object.__getattribute__(self, name)
        if name != "knows_thoughts":  # read for every reply; exchanges in the queue do not matter for it
            self._catch_up()
        return getattr(self._find(), name)
