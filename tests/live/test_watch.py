"""What is reported while it lasts: streams that stand still and requests that nobody answers, in real processes.

The upstream goes on when the log has said what is wrong: so each report came before the end, however slow the machine.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.build import REGISTRY, chunk, sse
from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Upstream, running, wait_until
from tests.selection import sampled
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import read
from wirelint.rule import Limits

pytestmark = pytest.mark.live

LIMITS = Limits(stall=1.0, burst=1.0, hang=2.0)
OPTIONS = ("wirelint_stall=1", "wirelint_burst=1", "wirelint_hang=2")
CHAT = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": False},
    "messages": [{"role": "user", "content": "hi"}],
}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM: dict[str, Any] = {"content_type": "text/event-stream"}
HEAD = sse(chunk({"role": "assistant", "content": ""}), done=False).encode()
BEGUN = sse(chunk({"content": "Once upon"}), done=False).encode()
REST = sse(chunk({"content": " a time."}), chunk({}, "stop")).encode()
WORDS = "A stream is of use when its words come as they are written, one after the other, not at its end."
TALE = [sse(chunk({"content": f"{word} "}), done=False).encode() for word in WORDS.split()]
WHOLE = json.dumps({
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Once."}, "finish_reason": "stop"}],
}).encode()  # fmt: skip

Act = Callable[[Peer, threading.Event], None]


def stalls(peer: Peer, told: threading.Event) -> None:
    peer.head(**STREAM, transfer_encoding="chunked")
    peer.chunk(HEAD)
    peer.chunk(BEGUN)
    assert told.wait(PATIENCE)
    peer.chunk(REST)
    peer.finish()


def stalls_and_dies(peer: Peer, told: threading.Event) -> None:
    peer.head(**STREAM, transfer_encoding="chunked")
    peer.chunk(BEGUN)
    assert told.wait(PATIENCE)
    peer.close()


def stalls_in_a_body(peer: Peer, told: threading.Event) -> None:
    peer.head(content_type="application/json", content_length=str(len(WHOLE)))
    peer.send(WHOLE[:40])
    assert told.wait(PATIENCE)
    peer.send(WHOLE[40:])


def says_nothing(peer: Peer, told: threading.Event) -> None:
    assert told.wait(PATIENCE)
    peer.head(**STREAM, transfer_encoding="chunked")
    peer.chunk(HEAD + BEGUN + REST)
    peer.finish()


def says_nothing_at_all(peer: Peer, told: threading.Event) -> None:
    assert told.wait(PATIENCE)
    peer.close()


def says_white_space(peer: Peer, told: threading.Event) -> None:
    peer.head(content_type="application/json", transfer_encoding="chunked")
    while not told.wait(0.1):
        peer.chunk(b"\n")
    peer.chunk(WHOLE)
    peer.finish()


def bursts(peer: Peer, told: threading.Event) -> None:
    peer.head(**STREAM, transfer_encoding="chunked")
    assert told.wait(PATIENCE)
    peer.chunk(b"".join(TALE) + REST)
    peer.finish()


@dataclass(frozen=True)
class Wait:
    """`reported` while it lasts, `settled` in the end: (rule, severity), and words of the message of the first one."""

    act: Act
    reported: str
    settled: tuple[tuple[str, str], ...]
    says: str = ""
    body: dict[str, Any] | None = None
    end: str = "complete"


WAITS = {
    "a stall": Wait(
        stalls, "stream-stall", (("stream-stall", "warning"),), "after event 1 (text) and before event 2 (text)"
    ),
    "a stall that ends it": Wait(
        stalls_and_dies,
        "stream-stall",
        (("stream-stall", "warning"), ("truncated-stream", "error")),
        "then the upstream broke off",
        end="upstream-died",
    ),
    "a stall in a whole body": Wait(
        stalls_in_a_body, "stream-stall", (("stream-stall", "warning"),), "in the middle of the body", body=ASKED
    ),
    "a hang": Wait(says_nothing, "silent-hang", (("silent-hang", "info"),), "then it came"),
    "a hang that ends it": Wait(
        says_nothing_at_all, "silent-hang", (("silent-hang", "error"),), "no response bytes", end="upstream-died"
    ),
    "a hang in white space": Wait(
        says_white_space, "silent-hang", (("silent-hang", "info"),), "then it came", body=ASKED
    ),
    "a burst": Wait(bursts, "silent-hang", (("stream-burst", "warning"), ("silent-hang", "info"))),
}  # fmt: skip


@pytest.fixture(scope="module", params=sampled(["as it is", "repaired"], 1))
def watching(
    upstream: Upstream, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    fix = () if request.param == "as it is" else ("wirelint_fix=unsafe", "wirelint_hold=0.3")
    with running(tmp_path_factory.mktemp("watching"), upstream.url, *OPTIONS, *fix) as proxy:
        yield proxy


def play(upstream: Upstream, name: str, act: Act) -> threading.Event:
    """Has the upstream answer so, and go on when the event is set."""
    told = threading.Event()
    upstream.scripts[name] = lambda peer: act(peer, told)
    return told


@pytest.mark.parametrize("name", sampled(list(WAITS), 4))
def test_it_is_reported_while_it_lasts(watching: Proxy, upstream: Upstream, name: str) -> None:
    wait = WAITS[name]
    told = play(upstream, name, wait.act)
    before = len(watching.log)
    with Client(watching.port) as client:
        client.ask("/v1/chat/completions", json.dumps(wait.body or CHAT).encode(), {SCRIPT: name, "x-test-id": name})
        shown = _since(watching, before, f"{wait.reported} .*: no ")
        told.set()
        with contextlib.suppress(AssertionError):
            client.head()
            client.rest()
    assert "so far" in shown
    record = watching.wait_for_record(name)
    found = record["findings"]
    assert {(one["name"], one["severity"]) for one in found} == set(wait.settled)
    assert wait.says in " ".join(one["message"] for one in found)
    assert not any("so far" in one["message"] for one in found)
    assert record["end"] == wait.end
    probe = watching.wait_for_probe(name)
    assert set(probe["metadata"]["wirelint.findings"]) == {one["name"] for one in found}
    assert probe["metadata"]["wirelint.end"] == wait.end
    assert "still open" not in probe["comment"]
    _agrees_offline(watching, record)


def _since(proxy: Proxy, before: int, pattern: str) -> str:
    """The first line of the log that matches, after so many characters of it."""
    return wait_until(
        lambda: next((line for line in proxy.log[before:].splitlines() if re.search(pattern, line)), ""), pattern, proxy
    )


def _agrees_offline(proxy: Proxy, record: dict[str, Any]) -> None:
    """What the capture is found to hold is what was found live."""
    rules = tuple(rule.within(LIMITS) for rule in REGISTRY.rules)
    told = [(one["name"], one["severity"], one["event"], one["message"]) for one in record["findings"]]

    def found(name: str) -> list[Any] | None:
        paths = [str(path) for path in proxy.captures.glob(f"*/{name}")]
        checked = (item for item in check(read(paths), rules) if isinstance(item, Checked)) if paths else iter(())
        same = next((item for item in checked if item.record.id == record["id"]), None)
        if same is None:
            return None
        return [(one.name, one.severity, one.event, one.message) for one in same.findings]

    assert found("exchanges.jsonl") == told
    assert wait_until(lambda: found("flows.mitm"), "the flow", proxy) == told


def test_text_that_is_held_back_is_no_stall_of_its_own(upstream: Upstream, tmp_path: Path) -> None:
    """The upstream goes on all the time; what the client does not get meanwhile is ours to answer for."""
    opening = sse(chunk({"role": "assistant", "content": ""}), chunk({"content": "<tool_call>"}), done=False).encode()
    more = [sse(chunk({"content": " "}), done=False).encode() for _ in range(8)]
    over = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(opening)
        for piece in itertools.cycle(more):
            peer.chunk(piece)
            if over.wait(0.2):
                break
        peer.chunk(REST)
        peer.finish()

    upstream.scripts["held"] = script
    options = ("wirelint_fix=unsafe", "wirelint_hold=3", "wirelint_stall=3", "wirelint_hang=3")
    with running(tmp_path, upstream.url, *options) as proxy, Client(proxy.port) as client:
        client.ask("/v1/chat/completions", json.dumps(CHAT).encode(), {SCRIPT: "held", "x-test-id": "held"})
        client.head()
        got = b""
        while b"tool_call" not in got:  # held for three seconds, then let go
            got += client.read() or b""
        over.set()
        client.rest()
        record = proxy.wait_for_record("held")
    assert "stream-stall" not in [one["name"] for one in record["findings"]]
    assert "so far" not in proxy.log


def test_the_client_leaves(watching: Proxy, upstream: Upstream) -> None:
    gone = threading.Event()

    def act(peer: Peer, told: threading.Event) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(HEAD)
        assert peer.wait_for_close()
        gone.set()
        peer.close()

    play(upstream, "leaving", act)
    before = len(watching.log)
    with Client(watching.port) as client:
        client.ask("/v1/chat/completions", json.dumps(CHAT).encode(), {SCRIPT: "leaving", "x-test-id": "leaving"})
        client.head()
        _since(watching, before, "silent-hang .* so far")
    assert gone.wait(PATIENCE)
    record = watching.wait_for_record("leaving")
    assert [(one["name"], one["severity"]) for one in record["findings"]] == [("silent-hang", "error")]
    assert "only the head of a message came; the client disconnected" in record["findings"][0]["message"]
    assert record["end"] == "client-left"


def test_the_proxy_stops_meanwhile(upstream: Upstream, tmp_path: Path) -> None:
    over = threading.Event()
    upstream.scripts["stopping"] = lambda peer: _waits(peer, over)
    with running(tmp_path, upstream.url, *OPTIONS) as proxy, Client(proxy.port) as client:
        client.ask("/v1/chat/completions", json.dumps(CHAT).encode(), {SCRIPT: "stopping", "x-test-id": "stopping"})
        proxy.wait_for("silent-hang .* so far")
        proxy.stop()
        over.set()
        record = proxy.records()[0]
    assert [one["name"] for one in record["findings"]] == ["silent-hang"]
    assert " failed: " not in proxy.log, "a failure of ours"


def _waits(peer: Peer, over: threading.Event) -> None:
    over.wait(PATIENCE)
    peer.close()
