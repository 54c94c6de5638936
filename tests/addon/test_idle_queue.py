"""What waits is done in order, some time, and never more of it waits than may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from wirelint.addon.idle_queue import LARGE, IdleQueue


def test_only_so_much_waits() -> None:
    done: list[str] = []

    async def run() -> None:
        waiting = IdleQueue[str](lambda item: lambda: done.append(item), lambda: False, most=10)
        for item in "ab":
            waiting.put(item, 5)
        assert (done, len(waiting)) == ([], 2)
        waiting.put("large", 100)
        assert (done, len(waiting)) == (["a", "b", "large"], 0)

    asyncio.run(run())


def threaded(gate: threading.Event) -> tuple[IdleQueue[str], list[tuple[str, str, bool]]]:
    """A backlog whose large pieces are read when the gate opens; what was done of which piece, whether on the loop."""
    done: list[tuple[str, str, bool]] = []
    here = threading.get_ident()

    def work(item: str) -> Callable[[], None]:
        if item.isupper():
            assert gate.wait(20)
        done.append(("read", item, threading.get_ident() == here))
        return lambda: done.append(("judged", item, threading.get_ident() == here))

    return IdleQueue(work, lambda: False, most=4 * LARGE), done


def test_who_needs_all_that_waits_waits_for_the_thread() -> None:
    async def run() -> list[tuple[str, str, bool]]:
        gate = threading.Event()
        waiting, done = threaded(gate)
        waiting.put("A", 9 * LARGE)  # above the bound, and by itself
        assert done == []
        gate.set()
        waiting.drain()
        return done

    assert asyncio.run(run()) == [("read", "A", False), ("judged", "A", True)]
