"""Timer for all open exchanges: whom it looks at, when, and what stands on a flow meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from tests.addon.build import BEGUN, HEAD, OVER, flow_of, head_of, inspecting, pass_head, recorder_of
from tests.build import REGISTRY, Talk, as_record
from tests.fakes import Clock
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.timeouts import Timeouts
from wirelint.engine import Engine
from wirelint.model import Exchange
from wirelint.rule import Finding
from wirelint.settings import Scopes

RECORD = Talk(text="All is well.", request={"stream_options": {"include_usage": False}}).record("openai.chat", True)
PING = b": keep-alive\n\n"


class Loop:
    """Timers that go off when told to."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, act: Callable[[], None]) -> Loop:
        self.timers.append((self.clock.time + delay, act))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def run_until(self, time: float) -> int:
        """Lets time pass; how many timers went off."""
        count = 0
        while self.timers and min(self.timers)[0] <= time:
            self.timers.sort(key=lambda timer: timer[0])
            at, act = self.timers.pop(0)
            self.clock.time = max(at, self.clock.time)
            act()
            count += 1
        self.clock.time = time
        return count


@dataclass
class Scene:
    """A watch, its clock (at 100 seconds), and what it reported: (seconds since then, rule)."""

    loop: Loop
    opens: list[ExchangeRecorder] = field(default_factory=list)
    told: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = self.loop.clock
        self.watch = Timeouts(lambda: self.opens, self._report, self.clock)
        self.rules = Scopes.over(REGISTRY.select(["ST6"]))
        self.watch.follow(Engine(self.rules))

    def _report(self, one: ExchangeRecorder, exchange: Exchange, findings: tuple[Finding, ...]) -> None:
        assert exchange.open
        self.told += [(round(self.clock.time - 100), finding.name) for finding in findings]

    def begin(self, record: dict[str, Any] = RECORD) -> ExchangeRecorder:
        one = recorder_of(record, clock=self.clock, rules=self.rules, flow=flow_of(record))
        self.opens.append(one)
        self.watch.wake()
        return one

    def answer(self, one: ExchangeRecorder) -> None:
        one.respond(200, (("content-type", "text/event-stream"),))


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    loop = Loop(Clock())
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return Scene(loop)


Step = tuple[float, bytes]
LASTING: dict[str, tuple[list[Step], float, list[tuple[float, str]]]] = {
    "nothing at all": ([], 200, [(60, "silent-hang")]),
    "not for long enough": ([], 59, []),
    "a stall": ([(1, HEAD + BEGUN)], 90, [(31, "stream-stall")]),
    "a stall after a while": ([(t, BEGUN) for t in range(1, 50, 7)], 90, [(73, "stream-stall")]),
    "pings do not count": ([(1, BEGUN), *[(t, PING) for t in range(6, 60, 5)]], 61, [(31, "stream-stall")]),
    "two stalls": ([(1, BEGUN), (50, BEGUN)], 120, [(31, "stream-stall"), (80, "stream-stall")]),
    "a head, and then nothing": ([(1, HEAD)], 200, [(31, "stream-stall"), (60, "silent-hang")]),
    "pings alone": ([(t, PING) for t in range(5, 100, 5)], 101, [(60, "silent-hang")]),
    "it goes on": ([(t, BEGUN) for t in range(1, 300, 20)], 300, []),
    "it is over": ([(1, BEGUN + OVER)], 300, []),
    "an error was told": ([(1, b'data: {"error": {"message": "busy"}}\n\n')], 300, []),
}


@pytest.mark.parametrize("name", LASTING)
def test_what_is_reported_and_when(scene: Scene, name: str) -> None:
    steps, end, told = LASTING[name]
    one = scene.begin()
    for at, data in steps:
        scene.loop.run_until(100 + at)
        if one.status is None:
            scene.answer(one)
        one.store_for_later(data)
    scene.loop.run_until(100 + end)
    assert [rule for _, rule in scene.told] == [rule for _, rule in told]
    for (when, _), (least, _) in zip(scene.told, told, strict=True):
        assert least <= when <= least + 2


LEFT_ALONE: dict[str, Callable[[ExchangeRecorder], None]] = {
    "the user holds it": lambda one: one.flow.intercept(),
    "unread": lambda one: one.mark_unread("too large"),
    "a stream that a server may speak on": lambda one: setattr(one, "method", "GET"),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_who_is_left_alone(scene: Scene, name: str) -> None:
    one = scene.begin()
    LEFT_ALONE[name](one)
    scene.loop.run_until(500)
    assert scene.told == []


def test_after_the_user_lets_go_it_is_watched(scene: Scene) -> None:
    one = scene.begin()
    one.flow.intercept()
    scene.loop.run_until(200)
    one.flow.resume()
    scene.loop.run_until(300)
    assert [rule for _, rule in scene.told] == ["silent-hang"]


def test_a_failure_concerns_one_exchange(scene: Scene) -> None:
    broken, well = scene.begin(), scene.begin()
    scene.answer(broken)
    broken.store_for_later(BEGUN)
    broken._decoder = object()  # type: ignore[assignment]
    scene.loop.run_until(200)
    assert [rule for _, rule in scene.told] == ["silent-hang"]
    assert [fault.name for fault in broken.faults] == ["internal-error"]
    assert well.faults == []


# --- what stands on the flow ----------------------------------------------------------------------------------------

COMMENTS = {"nobody's": "", "a person's": "look at this"}


@pytest.mark.parametrize("whose", COMMENTS)
def test_what_stands_on_the_flow_meanwhile_and_in_the_end(whose: str, tmp_path: Path) -> None:
    seen: list[tuple[str, str, Any]] = []

    async def run() -> None:
        options = {"wirelint_stall": "0.05", "wirelint_hang": "30", "wirelint_captures": str(tmp_path)}
        with inspecting(**options) as (inspector, _):
            flow = flow_of(RECORD)
            flow.comment = COMMENTS[whose]
            stream = pass_head(inspector, flow, head_of(RECORD)).stream
            assert callable(stream)
            stream(HEAD + BEGUN)
            async with asyncio.timeout(20):
                while "wirelint.findings" not in flow.metadata:
                    await asyncio.sleep(0.01)
            seen.append((flow.comment, flow.marked, flow.metadata["wirelint.findings"]))
            assert flow.metadata["wirelint.end"] == "open"
            stream(OVER)
            inspector.response(flow)
            seen.append((flow.comment, flow.marked, flow.metadata["wirelint.findings"]))
            assert flow.metadata["wirelint.end"] == "complete"

    asyncio.run(run())
    (meanwhile, marked, found), (settled, marked_last, found_last) = seen
    assert meanwhile.startswith("stream-stall · still open · acme-1 · openai.chat · no event for 0.")
    assert settled.startswith("stream-stall · acme-1 · openai.chat · no event for 0.")
    for comment in (meanwhile, settled):
        assert comment.endswith(f" | {COMMENTS[whose]}") is bool(COMMENTS[whose])
        assert comment.count("stream-stall") == 1
    assert marked == marked_last == ":warning:"
    assert found == found_last == ["stream-stall"]


def test_a_comment_that_is_made_meanwhile_stays() -> None:
    async def run() -> http.HTTPFlow:
        with inspecting(wirelint_hang="0.05") as (inspector, _):
            flow = flow_of(RECORD)
            inspector.request(flow)
            async with asyncio.timeout(20):
                while not flow.comment:
                    await asyncio.sleep(0.01)
            flow.comment, flow.marked = "mine", ":grapes:"
            flow.response = http.Response.make(200, as_record(RECORD).response_body or b"", {})
            inspector.responseheaders(flow)
            inspector.response(flow)
            return flow

    flow = asyncio.run(run())
    assert flow.comment.endswith(" | mine")
    assert "still open" not in flow.comment
    assert flow.marked == ":grapes:"
