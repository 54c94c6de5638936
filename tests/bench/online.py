"""Real mitmdump processes side by side: without an addon, with one that only passes on, and with wirelint.

Every round runs each scenario against each process, one after the other and in turning order, so that a ratio compares
two measurements of the same moment. Processor time is taken when a process has come to rest, so work that was put off
counts. Where the system has a way to say so, the processes have one processor to themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import payloads
from tests.live.harness import CHUNKED, SCRIPT, SHIM, Client, Peer, Upstream, running, scripted

_HERE = Path(__file__).resolve().parent
_PATIENCE = 30.0
_REST, _HARDLY = 0.12, 0.004
"""At rest is what uses hardly any processor time for a while; in seconds."""
_PATH = payloads.PATHS["openai.chat"]

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """A mitmdump with this addon and these options."""

    name: str
    addon: Path = _HERE / "meter.py"
    options: tuple[str, ...] = ()


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
    events: int = 120
    long: int = 20_000


TINY = Scale(requests=4, streams=2, events=6, long=60)

METRICS = (
    Metric("whole replies", "requests/s", "plain"),
    Metric("whole replies", "processor µs/request", "plain"),
    Metric("paced streams", "first event, ms", "identity", 2),
    Metric("paced streams", "event p50, µs", "identity"),
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
    kept = f"wirelint_captures={folder / 'captures'}"
    return [
        Contender("plain"),
        Contender("identity", _HERE / "identity.py"),
        Contender("wirelint", SHIM, (kept,)),
        Contender("wirelint, fixing", SHIM, (f"{kept}-fixing", "wirelint_fix=unsafe")),
    ]


def measure(folder: Path, seconds: float, scale: Scale) -> Outcome:
    """Runs rounds for about `seconds`, one at least, then the long streams."""
    found = contenders(folder)
    outcome = Outcome(figures={each.name: {} for each in found})
    upstream = _upstream(scale)
    with contextlib.closing(upstream), contextlib.ExitStack() as stack:
        processor = stack.enter_context(_apart())
        ports = {each.name: stack.enter_context(_running(each, folder, upstream, processor)) for each in found}
        for port in ports.values():  # the first requests import and compile
            for scenario in _SCENARIOS.values():
                scenario(port, TINY)
        until = time.monotonic() + seconds
        while not outcome.rounds or time.monotonic() < until:
            turn = outcome.rounds % len(ports)
            for name, run in _SCENARIOS.items():
                for contender in (*list(ports)[turn:], *list(ports)[:turn]):
                    for metric, value in run(ports[contender], scale).items():
                        outcome.figures[contender].setdefault((name, metric), []).append(value)
            outcome.rounds += 1
        outcome.growth = {name: _growth(port) for name, port in ports.items()}
    return outcome


@contextlib.contextmanager
def _running(contender: Contender, folder: Path, upstream: Upstream, processor: int | None) -> Iterator[int]:
    home = folder / contender.name.replace(", ", "-")
    scripts = [_HERE / "meter.py"] if contender.addon.name != "meter.py" else []
    options = ("flow_detail=0", *contender.options)
    with running(home, upstream.url, *options, scripts=scripts, shim=contender.addon, probe=False) as proxy:
        if processor is not None:
            os.sched_setaffinity(proxy.process.pid, {processor})
        yield proxy.port


@contextlib.contextmanager
def _apart() -> Iterator[int | None]:
    """Leaves the last processor to what is measured; None where there is but one, or no way to say so."""
    if not hasattr(os, "sched_setaffinity") or len(before := os.sched_getaffinity(0)) < 2:
        yield None
        return
    os.sched_setaffinity(0, before - {max(before)})
    try:
        yield max(before)
    finally:
        os.sched_setaffinity(0, before)


# --- scenarios --------------------------------------------------------------------------------------------------------

_PAUSE = 0.005
_SENT: list[float] = []
"""When the upstream sent each event of a paced stream."""


def _upstream(scale: Scale) -> Upstream:
    whole = payloads.whole("openai.chat", 4000)
    burst = payloads.stream("openai.chat", "prose", scale.events)
    upstream = Upstream()
    upstream.scripts = {
        "whole": scripted({"content_type": "application/json", "content_length": str(len(whole))}, whole),
        "paced": scripted(CHUNKED, *(_paced(event) for event in burst), Peer.finish),
        "burst": scripted(CHUNKED, *burst, Peer.finish),
        "long": scripted(CHUNKED, *payloads.stream("openai.chat", "prose", scale.long, 1000), Peer.finish),
        "tenth": scripted(CHUNKED, *payloads.stream("openai.chat", "prose", scale.long // 10, 1000), Peer.finish),
    }
    return upstream


def _paced(event: bytes) -> Callable[[Peer], None]:
    def step(peer: Peer) -> None:
        _SENT.append(time.perf_counter())
        peer.chunk(event)
        time.sleep(_PAUSE)

    return step


def _ask(client: Client, script: str, *, stream: bool = True) -> None:
    client.ask(_PATH, payloads.request("openai.chat", 8000, stream=stream), {SCRIPT: script})
    client.head()


def _whole_replies(port: int, scale: Scale) -> Figures:
    def work(client: Client, count: int) -> None:
        for _ in range(count):
            _ask(client, "whole", stream=False)
            client.rest()
            client.again()

    wall, used = _loaded(port, [scale.requests // scale.streams] * scale.streams, work)
    return {"requests/s": scale.requests / wall, "processor µs/request": 1e6 * used / scale.requests}


def _paced_streams(port: int, scale: Scale) -> Figures:
    _SENT.clear()
    came: list[float] = []
    with Client(port) as client:
        asked = time.perf_counter()
        _ask(client, "paced")
        while (data := client.read()) is not None:
            came += [time.perf_counter()] * data.count(b"\n\n")
    late = [got - sent for sent, got in zip(_SENT[1:], came[1:], strict=True)]
    return {"first event, ms": 1e3 * (came[0] - asked), "event p50, µs": 1e6 * statistics.median(late)}


def _bursts(port: int, scale: Scale) -> Figures:
    def work(client: Client, _: int) -> None:
        _ask(client, "burst")
        client.rest()

    wall, used = _loaded(port, [1] * scale.streams, work)
    events = scale.events * scale.streams
    return {"events/s": events / wall, "processor µs/event": 1e6 * used / events}


_SCENARIOS: dict[str, Callable[[int, Scale], Figures]] = {
    "whole replies": _whole_replies,
    "paced streams": _paced_streams,
    "bursts": _bursts,
}


def _loaded(port: int, counts: Sequence[int], work: Callable[[Client, int], None]) -> tuple[float, float]:
    """Seconds that some clients took, and seconds of processor time until the process was at rest again."""
    with contextlib.ExitStack() as stack:
        meter = stack.enter_context(Client(port))
        clients = [stack.enter_context(Client(port)) for _ in counts]
        threads = [threading.Thread(target=work, args=pair) for pair in zip(clients, counts, strict=True)]
        before = _at_rest(meter)["processor"]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - start
        return wall, _at_rest(meter)["processor"] - before


def _at_rest(meter: Client) -> dict[str, float]:
    """What the process has used as soon as it uses hardly any processor time."""
    until = time.monotonic() + _PATIENCE
    used = _used(meter)
    while time.monotonic() < until:
        time.sleep(_REST)
        before, used = used, _used(meter)
        if used["processor"] - before["processor"] < _HARDLY:
            break
    return used


def _used(meter: Client) -> dict[str, float]:
    meter.ask("/bench/meter", b"", method="GET")
    meter.head()
    used: dict[str, float] = json.loads(meter.rest()[0])
    meter.again()
    return used


def _growth(port: int) -> float:
    """MB that the peak of memory grows by when a stream is ten times as long."""
    peaks = []
    with Client(port) as meter:
        for script in ("tenth", "long"):
            with Client(port) as client:
                _ask(client, script)
                while client.read() is not None:
                    pass
            peaks.append(_at_rest(meter)["peak"])
    return (peaks[1] - peaks[0]) / 1e6
