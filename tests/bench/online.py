"""Real mitmdump processes side by side: without an addon, with one that only passes on, and with wirelint.

wirelint makes every repair and writes captures. Every round runs each scenario against each process, one after the other
and in turning order, so that a ratio compares two measurements of the same moment. Processor time is taken when a process
has come to rest, so work that was put off counts. Where the system has a way to say so, the processes have one processor
to themselves.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bench import payloads
from tests.bench.streams import SHAPES, Shape
from tests.live.harness import SCRIPT, SHIM, Client, Peer, Upstream, running, scripted

_HERE = Path(__file__).resolve().parent
_PATIENCE = 30.0
_REST, _HARDLY = 0.12, 0.004
"""At rest is what uses hardly any processor time for a while; in seconds."""
_CHAT: payloads.Api = "openai.chat"
_WHOLE = "whole replies"

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """A mitmdump with this addon and these options."""

    name: str
    addon: Path = _HERE / "meter.py"
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """`against` is the contender that wirelint is compared with: by the ratio, or by the difference (`added`)."""

    scenario: str
    name: str
    against: str
    goal: str = ""
    added: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything a round asks for."""

    requests: int = 160
    streams: int = 16
    paced: int = 40
    burst: int = 120
    held: int = 50
    long: int = 20_000


TINY = Scale(requests=4, streams=2, paced=4, burst=6, held=2, long=60)

_CPU, _P95, _P99, _RATE, _FIRST = "CPU, µs/chunk", "p95, µs", "p99, µs", "burst, chunks/s", "first chunk, ms"
_IDLE, _HELD, _LONG = "idle, MB", "50 streams, MB", "10 × longer, MB"
METRICS = (
    Metric(_WHOLE, "requests/s", "plain", "≥ 0.8"),
    Metric(_WHOLE, "CPU, µs/request", "plain"),
    Metric(_CHAT, _FIRST, "identity", "≤ 1.2"),
    *(
        metric
        for api in SHAPES
        for metric in (
            Metric(api, _CPU, "identity", "≤ 1.15" if api == _CHAT else "≤ 1.25"),
            Metric(api, _P95, "identity", "≤ 1.3"),
            Metric(api, _P99, "identity", "≤ 1.5"),
            Metric(api, _RATE, "identity", "≥ 0.85"),
        )
    ),
    Metric("memory", _IDLE, "plain", "≤ +18", added=True),
    Metric("memory", _HELD, "identity", "≤ 2"),
    Metric("memory", _LONG, "identity", added=True),
)


@dataclass(slots=True)
class Outcome:
    """Figures by contender, then by (scenario, metric), one a round. `load`: of the machine, before and after."""

    rounds: int = 0
    figures: dict[str, dict[tuple[str, str], list[float]]] = field(default_factory=dict)
    load: list[float] = field(default_factory=list)

    def add(self, contender: str, scenario: str, figures: Figures) -> None:
        for metric, value in figures.items():
            self.figures.setdefault(contender, {}).setdefault((scenario, metric), []).append(value)

    def median(self, contender: str, metric: Metric) -> float:
        return statistics.median(self.figures[contender][metric.scenario, metric.name])

    def compared(self, contender: str, metric: Metric) -> float:
        """The median of the ratios, or differences, within each round."""
        ours = self.figures[contender][metric.scenario, metric.name]
        theirs = self.figures[metric.against][metric.scenario, metric.name]
        pairs = zip(ours, theirs, strict=True)
        return statistics.median(our - their if metric.added else our / (their or 0.1) for our, their in pairs)


def contenders(folder: Path) -> list[Contender]:
    options = (f"wirelint_captures={folder / 'captures'}", "wirelint_fix=unsafe")
    return [
        Contender("plain"),
        Contender("identity", _HERE / "identity.py"),
        Contender("wirelint", SHIM, options),
    ]


def measure(folder: Path, seconds: float, scale: Scale) -> Outcome:
    """Take the memory, run rounds for about `seconds`, one at least, then the long streams."""
    outcome = Outcome(load=[os.getloadavg()[0]])
    upstream, release = _upstream(scale)
    with contextlib.closing(upstream), contextlib.ExitStack() as stack:
        processor = stack.enter_context(_apart())
        ports = {
            each.name: stack.enter_context(_running(each, folder, upstream, processor)) for each in contenders(folder)
        }
        for name, port in ports.items():
            outcome.add(name, "memory", {_IDLE: _resident(port)})
            for scenario, run in _SCENARIOS.items():  # the first requests import and compile
                if name in _PARTNERS[scenario == _WHOLE]:
                    run(port, replace(scale, requests=2, streams=2))
            if name in _PARTNERS[False]:
                outcome.add(name, "memory", _held_streams(port, scale, release))
        until = time.monotonic() + seconds
        while not outcome.rounds or time.monotonic() < until:
            turn = outcome.rounds % len(ports)
            for scenario, run in _SCENARIOS.items():
                for contender in (*list(ports)[turn:], *list(ports)[:turn]):
                    if contender in _PARTNERS[scenario == _WHOLE]:
                        outcome.add(contender, scenario, run(ports[contender], scale))
            outcome.rounds += 1
        for name in _PARTNERS[False]:
            outcome.add(name, "memory", _long_streams(ports[name]))
    outcome.load.append(os.getloadavg()[0])
    return outcome


_PARTNERS = {True: ("plain", "wirelint"), False: ("identity", "wirelint")}
"""Who is compared for whole replies, and for streams: plain mitmdump buffers them."""


@contextlib.contextmanager
def _running(contender: Contender, folder: Path, upstream: Upstream, processor: int | None) -> Iterator[int]:
    scripts = [_HERE / "meter.py"] if contender.addon.name != "meter.py" else []
    options = ("flow_detail=0", *contender.options)
    home = folder / contender.name
    with running(
        home, upstream.url, *options, scripts=scripts, shim=contender.addon, probe=False, forked=False
    ) as proxy:
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

_PAUSE = 0.02
_STREAM = "x-bench-stream"
_SENT: dict[str, list[float]] = {}
"""When the upstream sent each event, by the stream that the client named."""


def _upstream(scale: Scale) -> tuple[Upstream, threading.Event]:
    """The server of all scenarios, and what ends its held streams."""
    whole = payloads.whole(_CHAT, 4000)
    release = threading.Event()
    upstream = Upstream()
    upstream.scripts["whole"] = scripted({"content_type": "application/json", "content_length": str(len(whole))}, whole)
    for api, shape in SHAPES.items():
        head = {**shape.head, "transfer_encoding": "chunked"}
        for name, events, pause in (("paced", scale.paced, _PAUSE), ("burst", scale.burst, 0.0)):
            steps = (functools.partial(_send, data, pause) for data, _ in shape.stream(events))
            upstream.scripts[f"{api} {name}"] = scripted(head, *steps, Peer.finish)
    chat = {**SHAPES[_CHAT].head, "transfer_encoding": "chunked"}
    for name, events in (("long", scale.long), ("tenth", scale.long // 10)):
        upstream.scripts[name] = scripted(chat, *(data for data, _ in SHAPES[_CHAT].stream(events)), Peer.finish)
    held = (data for data, _ in SHAPES[_CHAT].stream(scale.burst))
    upstream.scripts["held"] = scripted(chat, *held, release, Peer.finish)
    return upstream, release


def _send(data: bytes, pause: float, peer: Peer) -> None:
    time.sleep(pause)
    _SENT.setdefault(peer.headers.get(_STREAM, ""), []).append(time.perf_counter())
    peer.chunk(data)


@functools.cache
def _request(api: str, stream: bool) -> bytes:
    return payloads.request(api, 8000, stream=stream)


def _ask(client: Client, script: str, api: str = _CHAT, stream: str = "", *, whole: bool = False) -> None:
    client.ask(SHAPES[api].path, _request(api, not whole), {SCRIPT: script, _STREAM: stream})


def _whole_replies(port: int, scale: Scale) -> Figures:
    def work(client: Client, _: str) -> None:
        for _turn in range(scale.requests // scale.streams):
            _ask(client, "whole", whole=True)
            client.head()
            client.rest()
            client.again()

    wall, used = _loaded(port, scale, work)
    return {"requests/s": scale.requests / wall, "CPU, µs/request": 1e6 * used / scale.requests}


def _streams(api: str, port: int, scale: Scale) -> Figures:
    """Parallel streams of one API: paced ones for times and processor time, then as fast as they go."""
    shape, late, first = SHAPES[api], list[float](), list[float]()

    def paced(client: Client, stream: str) -> None:
        asked = time.perf_counter()
        _ask(client, f"{api} paced", api, stream)
        client.head()
        came = list(_arrivals(client, shape, scale.paced))
        first.append(came[0][0] - asked)
        late.extend(at - sent for (at, is_text), sent in zip(came, _SENT[stream], strict=True) if is_text)

    def burst(client: Client, _: str) -> None:
        _ask(client, f"{api} burst", api)
        client.head()
        client.rest()

    _SENT.clear()
    _, used = _loaded(port, scale, paced)
    wall, _ = _loaded(port, scale, burst)
    cuts = statistics.quantiles(late, n=100)
    return {
        _CPU: 1e6 * used / scale.streams / len(shape.stream(scale.paced)),
        _P95: 1e6 * cuts[94],
        _P99: 1e6 * cuts[98],
        _FIRST: 1e3 * statistics.median(first),
        _RATE: scale.streams * len(shape.stream(scale.burst)) / wall,
    }


def _arrivals(client: Client, shape: Shape, deltas: int) -> Iterator[tuple[float, bool]]:
    """When the last byte of each event came, and whether it is a text delta. The bytes are those that were sent."""
    have = due = 0
    at = 0.0
    for data, is_text in shape.stream(deltas):
        due += len(data)
        while have < due:
            have += len(client.read() or b"")
            at = time.perf_counter()
        yield at, is_text
    assert client.read() is None


_SCENARIOS: dict[str, Callable[[int, Scale], Figures]] = {
    _WHOLE: _whole_replies,
    **{api: functools.partial(_streams, api) for api in SHAPES},
}


def _loaded(port: int, scale: Scale, work: Callable[[Client, str], None]) -> tuple[float, float]:
    """Seconds that some clients took, and seconds of processor time until the process was at rest again."""
    with contextlib.ExitStack() as stack:
        meter = stack.enter_context(Client(port))
        clients = [stack.enter_context(Client(port)) for _ in range(scale.streams)]
        threads = [threading.Thread(target=work, args=(each, str(n))) for n, each in enumerate(clients)]
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


# --- memory -----------------------------------------------------------------------------------------------------------


def _resident(port: int) -> float:
    with Client(port) as meter:
        return _at_rest(meter)["resident"] / 1e6


def _held_streams(port: int, scale: Scale, release: threading.Event) -> Figures:
    """MB that the process grows by while streams are open that have all said everything but their end."""
    release.clear()
    size = sum(len(data) for data, _ in SHAPES[_CHAT].stream(scale.burst))
    with contextlib.ExitStack() as stack:
        meter, *clients = (stack.enter_context(Client(port)) for _ in range(scale.held + 1))
        before = _at_rest(meter)["resident"]
        for client in clients:
            _ask(client, "held")
        for client in clients:
            client.head()
            client.read_at_least(size)
        grown = _at_rest(meter)["resident"] - before
        release.set()
        for client in clients:
            client.rest()
    return {_HELD: grown / 1e6}


def _long_streams(port: int) -> Figures:
    """MB that the peak of memory grows by when a stream is ten times as long."""
    peaks = []
    with Client(port) as meter:
        for script in ("tenth", "long"):
            with Client(port) as client:
                _ask(client, script)
                client.head()
                while client.read() is not None:
                    pass
            peaks.append(_at_rest(meter)["peak"])
    return {_LONG: (peaks[1] - peaks[0]) / 1e6}
