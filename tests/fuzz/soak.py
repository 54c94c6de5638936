"""`python -m tests.fuzz.soak`: mitmdump with repairs and captures under mixed load; memory, failures, lost records.

Several clients ask at once; the upstream answers with the bodies of the corpora, sound and faulty, whole and streamed,
coded and not. Some clients leave in the middle, some upstreams break off. Every request carries a number, which its
capture must show in the end.
"""

from __future__ import annotations

import gzip
import itertools
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import h11

from tests.build import in_pieces
from tests.fuzz import bodies
from tests.live.harness import Client, Peer, Proxy, Script, Upstream, replying, running, scripted
from wirelint.capture.record import Record
from wirelint.capture.replay import begin
from wirelint.mock.service import TOOLS_PATH as MCP_PATH

ID = "x-test-id"
WORKERS = 6
GROWTH = 3.0
"""MB of memory that 1,000 exchanges may add once a run has warmed up. What is known of conversations grows until it has
10,000 ids, and captures wait to be written; an exchange that is kept as a whole would add 20 MB."""
LEAST = 2000
"""Exchanges in the second half of a run below which its growth means nothing."""
_BAD = re.compile(r"^Traceback|has crashed|Addon error|Unhandled error| internal-error |wirelint: .* failed")
_OWN = ("host", "content-length", "content-encoding", "transfer-encoding", "accept-encoding", "connection", ID)
_MCP: bytes = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ping","arguments":{}}}'


def _kind(record: Record) -> str:
    return dict(record.response_headers).get("content-type", "application/json")


def _streams(record: Record) -> bool:
    return "json" not in _kind(record) or "ndjson" in _kind(record)


def _head(record: Record, **more: str) -> dict[str, Any]:
    return {"status": record.status or 200, "content_type": _kind(record), "transfer_encoding": "chunked", **more}


def _plain(record: Record) -> Script:
    body = record.response_body or b""
    if _streams(record):
        return scripted(_head(record), *in_pieces(body, 200), Peer.finish)
    return replying([body], record.status or 200, content_type=_kind(record))


def _coded(record: Record, *, cut: int = 0, more: bytes = b"") -> Script:
    body = gzip.compress((record.response_body or b"") + more)
    return scripted(_head(record, content_encoding="gzip"), *in_pieces(body[: len(body) - cut], 200), Peer.finish)


def _broken(record: Record) -> Script:
    body = record.response_body or b""
    return scripted(_head(record), *in_pieces(body[: len(body) // 2], 200), Peer.reset)


def _slow(record: Record) -> Script:
    steps = (step for piece in in_pieces(record.response_body or b"", 200) for step in (piece, 0.002))
    return scripted(_head(record), *steps, Peer.finish)


def _mcp(_: Record) -> Script:
    body = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"pong"}]}}'
    return scripted({"content_type": "application/json", "content_length": str(len(body))}, body)


PLAYS: dict[str, tuple[Callable[[Record], Script], int]] = {
    "plain": (_plain, 60),
    "coded": (_coded, 10),
    "slow": (_slow, 6),
    "broken upstream": (_broken, 6),
    "cut coding": (lambda record: _coded(record, cut=6), 4),
    "client leaves": (_slow, 8),
    "tools": (_mcp, 5),
    "swells": (lambda record: _coded(record, more=b" " * (4 << 20)), 1),
}
"""What an upstream does, and how often."""


@dataclass
class Outcome:
    sent: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, int, float]] = field(default_factory=list)
    """Seconds, exchanges, MB."""

    @property
    def growth(self) -> float | None:
        """MB for 1,000 exchanges in the second half; None when there were too few."""
        half = self.memory[len(self.memory) // 2 :]
        if len(half) < 4 or half[-1][1] - half[0][1] < LEAST:
            return None
        count, size = [one[1] for one in half], [one[2] for one in half]
        middle, usual = sum(count) / len(count), sum(size) / len(size)
        over = sum((c - middle) * (s - usual) for c, s in zip(count, size, strict=True))
        return 1000 * over / sum((c - middle) ** 2 for c in count)

    @property
    def is_good(self) -> bool:
        return not (self.failed or self.lost or self.errors) and (self.growth is None or self.growth <= GROWTH)


class _Load:
    def __init__(self, seed: int, records: list[Record]) -> None:
        self.seed, self.records = seed, records
        self.planned: dict[str, tuple[str, Record]] = {}
        self.outcome = Outcome()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.over = threading.Event()

    def play(self, peer: Peer) -> None:
        kind, record = self.planned[peer.headers[ID]]
        PLAYS[kind][0](record)(peer)

    def work(self, port: int, worker: int) -> None:
        chance = random.Random(f"{self.seed}/{worker}")
        kinds, weights = list(PLAYS), [weight for _, weight in PLAYS.values()]
        while not self.over.is_set():
            kind, record = chance.choices(kinds, weights)[0], chance.choice(self.records)
            with self._lock:
                number = next(self._numbers)
                id_ = f"soak-{number}"
                self.planned[id_] = kind, record
                self.outcome.sent[kind] += 1
            try:
                _ask(port, id_, number, kind, record)
            except (OSError, AssertionError, h11.ProtocolError) as error:
                if kind not in ("broken upstream", "cut coding", "client leaves", "swells"):
                    self.outcome.failed.append(f"{id_} ({kind}): {type(error).__name__}: {error}")


def _ask(port: int, id_: str, number: int, kind: str, record: Record) -> None:
    headers = {name.lower(): value for name, value in record.request_headers if name.lower() not in _OWN}
    parts = urlsplit(record.url)
    path, body = f"{parts.path}?{parts.query}" if parts.query else parts.path, record.request_body or b""
    if kind == "tools":
        path, body, headers = MCP_PATH, _MCP % number, {"accept": "application/json, text/event-stream"}
    with Client(port) as client:
        client.ask(path, body, {**headers, ID: id_})
        client.head()
        if kind == "client leaves":
            client.read()
            return
        _, complete = client.rest()
        if not complete and kind in ("plain", "coded", "slow", "tools"):
            raise AssertionError("the reply was cut off")


def _memory(process: int) -> float:
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=False)
    return int(told.stdout.strip() or 0) / 1024


def soak(seconds: float, seed: int, folder: Path, say: Callable[[str], None]) -> Outcome:
    """Puts a proxy under load for so long. What it says, wrote and lost is in the outcome."""
    records = [one for one in bodies.load(shared=False) if one.method == "POST" and begin(one) is not None]
    load = _Load(seed, records)
    outcome, upstream = load.outcome, Upstream(load.play)
    options = ("wirelint_fix=unsafe", "wirelint_max_body=2m", "flow_detail=0")
    try:
        with running(folder, upstream.url, *options, forked=False) as proxy:
            threads = [threading.Thread(target=load.work, args=(proxy.port, number)) for number in range(WORKERS)]
            for thread in threads:
                thread.start()
            _watch(proxy, load, seconds, say)
            load.over.set()
            for thread in threads:
                thread.join()
        outcome.errors += [line for line in proxy.log.splitlines() if _BAD.search(line)]
        outcome.errors += [f"the upstream: {error!r}" for error in upstream.failures]
        seen = {record["request"]["headers"].get(ID) for record in proxy.records()}
        outcome.lost += sorted(load.planned.keys() - seen)
    finally:
        load.over.set()
        upstream.close()
    return outcome


def _watch(proxy: Proxy, load: _Load, seconds: float, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds and proxy.process.poll() is None:
        count, memory = sum(load.outcome.sent.values()), _memory(proxy.process.pid)
        load.outcome.memory.append((passed, count, memory))
        say(f"{passed:5.0f} s  {count:7,} exchanges  {memory:6.0f} MB  {len(load.outcome.failed)} failed")
        time.sleep(min(max(seconds / 40, 0.5), 10.0))
    if proxy.process.poll() is not None:
        load.outcome.errors.append(f"mitmdump ended with status {proxy.process.returncode}")


@click.command()
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=2.0, show_default=True)
@click.option("--seed", type=int, help="The order of requests; a random one if it is not given.")
def main(minutes: float, seed: int | None) -> None:
    """Exit status 1 on a lost record, a failed exchange, an error in the log, or memory that grows."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="wirelint-soak-") as folder:
        outcome = soak(60 * minutes, seed, Path(folder), lambda line: print(line, flush=True))
    for kind, count in outcome.sent.items():
        print(f"{kind:20} {count:8,}")
    growth = outcome.growth
    told = "too few exchanges to tell" if growth is None else f"{growth:.2f} MB (up to {GROWTH:g})"
    print(f"{'exchanges':20} {sum(outcome.sent.values()):8,}\n{'growth per 1,000':20} {told}")
    for name, found in (("failed", outcome.failed), ("lost records", outcome.lost), ("errors", outcome.errors)):
        print(f"{name:20} {len(found):8,}", *(f"  {one}" for one in found[:5]), sep="\n" if found else "")
    sys.exit(0 if outcome.is_good else 1)


if __name__ == "__main__":
    main()
