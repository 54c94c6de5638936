"""What waits is done in order, some time, and never more of it waits than may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from wirelint.addon.backlog import Backlog


class Clock:
    """A clock that goes on when work is done, and a loop's timers as they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made(most: int = 1 << 20, busy: Callable[[], bool] = lambda: False) -> tuple[Backlog[str], list[str], Clock]:
    done: list[str] = []
    clock = Clock()

    def work(item: str) -> None:
        done.append(item)
        clock.now += 0.001

    return Backlog(work, busy, clock, most), done, clock


async def settle(waiting: Backlog[str]) -> None:
    async with asyncio.timeout(20):
        while len(waiting):
            await asyncio.sleep(0)


@pytest.mark.parametrize("busy", [False, True])
def test_all_is_done_in_order(busy: bool) -> None:
    async def run() -> list[str]:
        waiting, done, _ = made(busy=lambda: busy)
        for item in "abc":
            waiting.put(item, 1)
        assert done == []
        await settle(waiting)
        waiting.put("d", 1)
        await settle(waiting)
        return done

    assert asyncio.run(run()) == ["a", "b", "c", "d"]


def test_only_so_much_waits() -> None:
    async def run() -> None:
        waiting, done, _ = made(most=10)
        for item in "abc":
            waiting.put(item, 4)
        assert (done, len(waiting)) == (["a"], 2)
        waiting.put("large", 100)
        assert (done, len(waiting)) == (["a", "b", "c", "large"], 0)

    asyncio.run(run())


def test_draining_does_the_rest_at_once() -> None:
    async def run() -> None:
        waiting, done, _ = made()
        waiting.put("a", 1)
        waiting.put("b", 1)
        waiting.drain()
        assert (done, len(waiting)) == (["a", "b"], 0)
        await asyncio.sleep(0.02)  # the timer finds nothing
        assert done == ["a", "b"]

    asyncio.run(run())


def test_without_a_loop_nothing_waits() -> None:
    waiting, done, _ = made()
    waiting.put("a", 1)
    assert (done, len(waiting)) == (["a"], 0)


@pytest.mark.parametrize(("busy", "pauses"), [(False, [0.005, 0.0]), (True, [0.005, 0.057])])
def test_the_traffic_has_most_of_the_time(busy: bool, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, Callable[[], None]]] = []

    class Loop:
        def call_later(self, pause: float, callback: Callable[[], None]) -> object:
            asked.append((pause, callback))
            return object()

    monkeypatch.setattr("wirelint.addon.backlog.asyncio.get_running_loop", Loop)
    waiting, done, _ = made(busy=lambda: busy)
    for item in "abcde":
        waiting.put(item, 1)
    asked[0][1]()
    assert done == ["a", "b", "c"]
    assert [pause for pause, _ in asked] == pytest.approx(pauses)
