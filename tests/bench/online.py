"""Real mitmdump processes side by side: without an addon, with one that only passes on, and with wirelint.

Every round runs each scenario against each process, one after the other and in turning order, so that a ratio compares
two measurements of the same moment. Processor time is taken when a process has come to rest, so work that was put off
counts. The processes have one processor to themselves where the system lets us say so, upstream and client the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import payloads
from tests.bench.processes import Contender, apart, running
from tests.bench.wire import Client, Play, Take, Upstream
from wirelint.addon import options

_HERE = Path(__file__).resolve().parent
_SHIM = _HERE.parents[1] / "addons" / "inspector.py"
_PATIENCE = 30.0
_REST, _HARDLY = 0.12, 0.004
"""At rest is what uses hardly any processor time for a while; in seconds."""
_OPENAI = payloads.PATHS["openai.chat"]

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Metric:
    """`against` is the contender that ratios are made with."""

    scenario: str
    name: str
    against: str
    digits: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything a round asks for."""

    requests: int = 160
    streams: int = 16
    events: int = 40
    short: int = 20
    long: int = 20_000


TINY = Scale(requests=4, streams=2, events=4, short=2, long=60)

METRICS = (
    Metric("whole replies", "requests/s", "plain"),
    Metric("whole replies", "processor µs/request", "plain"),
    Metric("short streams", "first event, ms", "identity", 2),
    Metric("paced streams", "event p50, µs", "identity"),
    Metric("paced streams", "processor µs/event", "identity"),
    Metric("bursts", "events/s", "identity"),
    Metric("bursts", "processor µs/event", "identity"),
)


@dataclass(slots=True)
class Outcome:
    """Figures by contender, then by (scenario, metric): one a round. `growth`: MB that a long stream adds to the peak."""

    rounds: int = 0
    figures: dict[str, dict[tuple[str, str], list[float]]] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)

    def median(self, contender: str, metric: Metric) -> float:
        return statistics.median(self.figures[contender][metric.scenario, metric.name])

    def ratio(self, contender: str, metric: Metric) -> float:
        """The median of the ratios within each round."""
        ours = self.figures[contender][metric.scenario, metric.name]
        theirs = self.figures[metric.against][metric.scenario, metric.name]
        return statistics.median(our / their for our, their in zip(ours, theirs, strict=True))


def contenders(folder: Path) -> list[Contender]:
    """Those that this version of the addon can be."""
    kept = f"wirelint_captures={folder / 'captures'}"
    found = [
        Contender("plain"),
        Contender("identity", (_HERE / "identity.py",)),
        Contender("wirelint", (_SHIM,), (kept,)),
    ]
    if any(option.name == "wirelint_fix" for option in options.OPTIONS):
        found.append(Contender("wirelint, fixing", (_SHIM,), (f"{kept}-fixing", "wirelint_fix=unsafe")))
    return found


def measure(folder: Path, seconds: float, scale: Scale, only: Sequence[Contender] | None = None) -> Outcome:
    """Runs rounds for about `seconds`, one at least, then the long streams."""
    return asyncio.run(_measure(folder, seconds, scale, only or contenders(folder)))


async def _measure(folder: Path, seconds: float, scale: Scale, found: Sequence[Contender]) -> Outcome:
    outcome = Outcome(figures={each.name: {} for each in found})
    with apart() as processor:
        async with Upstream() as upstream, contextlib.AsyncExitStack() as stack:
            _prepare(upstream, scale)
            url = f"http://127.0.0.1:{upstream.port}"
            ports = {
                each.name: await stack.enter_async_context(running(each, url, folder, processor)) for each in found
            }
            for port in ports.values():  # the first requests import and compile
                await _SCENARIOS["whole replies"](upstream, port, scale)
                await _SCENARIOS["bursts"](upstream, port, scale)
            until = time.monotonic() + seconds
            while not outcome.rounds or time.monotonic() < until:
                await _round(outcome, upstream, ports, scale)
            for name, port in ports.items():
                outcome.growth[name] = await _growth(upstream, port, scale)
    return outcome


async def _round(outcome: Outcome, upstream: Upstream, ports: dict[str, int], scale: Scale) -> None:
    turn = outcome.rounds % len(ports)
    order = [*list(ports)[turn:], *list(ports)[:turn]]
    for scenario, run in _SCENARIOS.items():
        for name in order:
            for metric, value in (await run(upstream, ports[name], scale)).items():
                outcome.figures[name].setdefault((scenario, metric), []).append(value)
            upstream.takes.clear()
    outcome.rounds += 1


# --- scenarios ----------------------------------------------------------------------------------------------------------


def _prepare(upstream: Upstream, scale: Scale) -> None:
    stream = "text/event-stream"
    upstream.plays = {
        "whole": Play("application/json", [payloads.whole("openai.chat", 4000)], chunked=False),
        "short": Play(stream, payloads.stream("openai.chat", "prose", 5)),
        "paced": Play(stream, payloads.stream("openai.chat", "prose", scale.events), delay=0.02),
        "burst": Play(stream, payloads.stream("openai.chat", "prose", 3 * scale.events)),
        "long": Play(stream, payloads.stream("openai.chat", "prose", scale.long, 1000)),
        "tenth": Play(stream, payloads.stream("openai.chat", "prose", scale.long // 10, 1000)),
    }


async def _whole_replies(upstream: Upstream, port: int, scale: Scale) -> Figures:
    body = payloads.request("openai.chat", 8000, stream=False)
    left = scale.requests

    async def work(client: Client) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await client.ask(_OPENAI, body, "whole", upstream)

    wall, used = await _loaded(port, scale, lambda clients: _all(work(client) for client in clients))
    return {"requests/s": scale.requests / wall, "processor µs/request": 1e6 * used / scale.requests}


async def _short_streams(upstream: Upstream, port: int, scale: Scale) -> Figures:
    body = payloads.request("openai.chat", 8000, stream=True)
    client = await Client.connect(port)
    await client.ask(_OPENAI, body, "short", upstream)
    takes = [await client.ask(_OPENAI, body, "short", upstream) for _ in range(scale.short)]
    client.close()
    return {"first event, ms": 1e3 * statistics.median(take.first for take in takes)}


async def _paced_streams(upstream: Upstream, port: int, scale: Scale) -> Figures:
    takes, figures = await _streams(upstream, port, scale, "paced")
    late = [latency for take in takes for latency in take.latencies]
    return {"event p50, µs": 1e6 * statistics.median(late), "processor µs/event": figures["processor µs/event"]}


async def _bursts(upstream: Upstream, port: int, scale: Scale) -> Figures:
    _, figures = await _streams(upstream, port, scale, "burst")
    return figures


_SCENARIOS: dict[str, Callable[[Upstream, int, Scale], Awaitable[Figures]]] = {
    "whole replies": _whole_replies,
    "short streams": _short_streams,
    "paced streams": _paced_streams,
    "bursts": _bursts,
}


async def _streams(upstream: Upstream, port: int, scale: Scale, play: str) -> tuple[list[Take], Figures]:
    body = payloads.request("openai.chat", 8000, stream=True)
    delay = upstream.plays[play].delay
    takes: list[Take] = []

    async def work(client: Client, number: int) -> None:
        await asyncio.sleep(delay * number / scale.streams)
        takes.append(await client.ask(_OPENAI, body, play, upstream))

    def all_of(clients: Sequence[Client]) -> Awaitable[None]:
        return _all(work(client, number) for number, client in enumerate(clients))

    wall, used = await _loaded(port, scale, all_of)
    events = len(upstream.plays[play].pieces) * scale.streams
    return takes, {"events/s": events / wall, "processor µs/event": 1e6 * used / events}


async def _all(tasks: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*tasks)


async def _loaded(port: int, scale: Scale, load: Callable[[Sequence[Client]], Awaitable[None]]) -> tuple[float, float]:
    """Seconds that the load took, and seconds of processor time until the process was at rest again."""
    meter = await Client.connect(port)
    clients = [await Client.connect(port) for _ in range(scale.streams)]
    before = await _at_rest(meter)
    start = time.perf_counter()
    await load(clients)
    wall = time.perf_counter() - start
    for client in clients:
        client.close()
    used = await _at_rest(meter) - before
    meter.close()
    return wall, used


async def _at_rest(meter: Client) -> float:
    """Processor time of the process as soon as it uses hardly any."""
    until = time.monotonic() + _PATIENCE
    used = (await meter.meter())["processor"]
    while time.monotonic() < until:
        await asyncio.sleep(_REST)
        before, used = used, (await meter.meter())["processor"]
        if used - before < _HARDLY:
            break
    return used


async def _growth(upstream: Upstream, port: int, scale: Scale) -> float:
    """MB that the peak of memory grows by when a stream is ten times as long."""
    body = payloads.request("openai.chat", 1000, stream=True)
    client = await Client.connect(port)
    peaks: list[float] = []
    for play in ("tenth", "long"):
        await client.ask(_OPENAI, body, play, upstream)
        await _at_rest(client)
        peaks.append((await client.meter())["peak"])
    client.close()
    return (peaks[1] - peaks[0]) / 1e6
