"""A sample of the runs of `wirelint demo --vendor` through a real mitmdump: it does what the engine does offline."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.harness import PATIENCE, Peer, Upstream, replying, running
from wirelint.launch.demo.comparison import Mender, Score, Wire, play, tasks
from wirelint.launch.demo.vendor import Vendor
from wirelint.registry import Registry

pytestmark = [pytest.mark.live, pytest.mark.complete]

RUNS = 40


def over(url: str) -> Wire:
    """A wire that is one."""

    def wire(body: bytes) -> tuple[str, bytes]:
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", body, {"content-type": "application/json", "host": "vendor.test"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return reply.headers["content-type"], bytes(reply.read())

    return wire


@pytest.fixture
def vendor_url() -> Iterator[str]:
    vendor = Vendor()

    def script(peer: Peer) -> None:
        kind, body = vendor.answer(peer.body)
        events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
        replying(events if kind.startswith("text/event-stream") else [body], content_type=kind)(peer)

    upstream = Upstream(script)
    yield upstream.url
    upstream.close()
    assert not upstream.failures


def test_live_is_offline(vendor_url: str, tmp_path: Path) -> None:
    made, offline = tasks(RUNS), Score()
    registry = Registry.load()
    mender = Mender(Vendor().answer, registry.rules, registry.permit("unsafe"), offline)
    play(made, mender, offline)
    with running(tmp_path, vendor_url, "wirelint_fix=unsafe") as proxy:
        live = play(made, over(proxy.url))
    without = play(made, over(vendor_url))
    assert (live.succeeded, live.refused, live.finishes) == (offline.succeeded, offline.refused, offline.finishes)
    assert live.succeeded > 2 * without.succeeded
