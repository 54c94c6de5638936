"""Streams that stall and requests that nobody answers are reported while they last.

The upstream goes on when the log has the report: so each report came before the end, however slow the machine.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.addon.build import BEGUN, HEAD, OVER
from tests.build import REGISTRY, checked, chunk, sse
from tests.live.harness import CHUNKED, PATIENCE, Client, Peer, Proxy, Script, Upstream, running, scripted, wait_until
from tests.live.leaks import CLEAN, asked, body_of
from tests.live.scenes import OPENAI
from tests.selection import sampled
from wirelint.capture.readers import read
from wirelint.rule import Limits

LIMITS = Limits(stall=1.0, burst=1.0, hang=2.0)
OPTIONS = ("wirelint_stall=1", "wirelint_burst=1", "wirelint_hang=2")
WORDS = "A stream is of use when its words come as they are written, one after the other, not at its end."
TALE = b"".join(sse(chunk({"content": f"{word} "}), done=False).encode() for word in WORDS.split())
WHOLE = body_of(CLEAN[OPENAI, False])
JSON = {"content_type": "application/json"}
LENGTH = {**JSON, "content_length": str(len(WHOLE))}


def white_space(told: threading.Event) -> Callable[[Peer], None]:
    def step(peer: Peer) -> None:
        while not told.wait(0.1):
            peer.chunk(b"\n")

    return step


@dataclass(frozen=True)
class Wait:
    """What the upstream does before and after the event.

    `reported` is the rule that reports it meanwhile, `settled` are rules and severities in the end, `says` is in a message.
    """

    script: Callable[[threading.Event], Script]
    reported: str
    settled: dict[str, str]
    says: str = ""
    stream: bool = True
    end: str = "complete"


WAITS = {
    "a stall": Wait(
        lambda told: scripted(CHUNKED, HEAD, BEGUN, told, OVER, Peer.finish),
        "stream-stall", {"stream-stall": "warning"}, "after event 1 (text) and before event 2 (text)",
    ),
    "a stall that ends it": Wait(
        lambda told: scripted(CHUNKED, BEGUN, told, Peer.close),
        "stream-stall", {"stream-stall": "warning", "truncated-stream": "error"}, "then the upstream broke off",
        end="upstream-died",
    ),
    "a stall in a whole body": Wait(
        lambda told: scripted(LENGTH, WHOLE[:40], told, WHOLE[40:]),
        "stream-stall", {"stream-stall": "warning"}, "in the middle of the body", stream=False,
    ),
    "a hang": Wait(
        lambda told: scripted(told, CHUNKED, HEAD + BEGUN + OVER, Peer.finish),
        "silent-hang", {"silent-hang": "info"}, "then it came",
    ),
    "a hang that ends it": Wait(
        lambda told: scripted(told, Peer.close),
        "silent-hang", {"silent-hang": "error"}, "no response bytes", end="upstream-died",
    ),
    "a hang in white space": Wait(
        lambda told: scripted({**JSON, "transfer_encoding": "chunked"}, white_space(told), WHOLE, Peer.finish),
        "silent-hang", {"silent-hang": "info"}, "then it came", stream=False,
    ),
    "a burst": Wait(
        lambda told: scripted(CHUNKED, told, TALE + OVER, Peer.finish),
        "silent-hang", {"stream-burst": "warning", "silent-hang": "info"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=sampled(["as it is", "repaired"], 1))
def watching(
    upstream: Upstream, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    fix = () if request.param == "as it is" else ("wirelint_fix=unsafe", "wirelint_hold=0.3")
    with running(tmp_path_factory.mktemp("watching"), upstream.url, *OPTIONS, *fix) as proxy:
        yield proxy


def wait_for_report(proxy: Proxy, before: int, pattern: str) -> str:
    """The first line of the log that matches, after so many characters of it."""
    return wait_until(
        lambda: next((line for line in proxy.log[before:].splitlines() if re.search(pattern, line)), ""), pattern, proxy
    )


@pytest.mark.parametrize("name", sampled(list(WAITS), 4))
def test_a_wait_is_reported_while_it_lasts(watching: Proxy, upstream: Upstream, name: str) -> None:
    wait, told, before = WAITS[name], threading.Event(), len(watching.log)
    upstream.scripts[name] = wait.script(told)
    with Client(watching.port) as client:
        client.ask(*asked(OPENAI, CLEAN[OPENAI, wait.stream], name))
        shown = wait_for_report(watching, before, f"{wait.reported} .*: no ")
        told.set()
        with contextlib.suppress(AssertionError):
            client.head()
            client.rest()
    assert "so far" in shown
    record = watching.wait_for_record(name)
    found = record["findings"]
    assert {one["name"]: one["severity"] for one in found} == wait.settled
    messages = " ".join(one["message"] for one in found)
    assert wait.says in messages
    assert "so far" not in messages
    assert record["end"] == wait.end
    probe = watching.wait_for_probe(name)
    assert set(probe["metadata"]["wirelint.findings"]) == wait.settled.keys()
    assert (probe["metadata"]["wirelint.end"], "still open" in probe["comment"]) == (wait.end, False)
    check_offline(watching, record)


def check_offline(proxy: Proxy, record: dict[str, Any]) -> None:
    """`wirelint check` finds in both captures what was found live."""
    rules = tuple(rule.within(LIMITS) for rule in REGISTRY.rules)
    live = [(one["name"], one["severity"], one["event"], one["message"]) for one in record["findings"]]

    def found(name: str) -> list[Any] | None:
        paths = [str(path) for path in proxy.captures.glob(f"*/{name}")]
        found = checked(read(paths), rules) if paths else []
        same = next((item for item in found if item.record.id == record["id"]), None)
        return None if same is None else [(one.name, one.severity, one.event, one.message) for one in same.findings]

    assert found("exchanges.jsonl") == live
    assert wait_until(lambda: found("flows.mitm"), "the flow", proxy) == live


def test_text_that_wirelint_holds_back_is_no_stall(upstream: Upstream, tmp_path: Path) -> None:
    """The upstream goes on all the time; only the client gets nothing meanwhile."""
    opening = sse(chunk({"role": "assistant", "content": ""}), chunk({"content": "<tool_call>"}), done=False).encode()
    more = [sse(chunk({"content": " "}), done=False).encode() for _ in range(8)]
    over = threading.Event()

    def go_on(peer: Peer) -> None:
        for piece in itertools.cycle(more):
            peer.chunk(piece)
            if over.wait(0.2):
                break

    upstream.scripts["held"] = scripted(CHUNKED, opening, go_on, OVER, Peer.finish)
    options = ("wirelint_fix=unsafe", "wirelint_hold=3", "wirelint_stall=3", "wirelint_hang=3")
    with running(tmp_path, upstream.url, *options) as proxy, Client(proxy.port) as client:
        client.ask(*asked(OPENAI, CLEAN[OPENAI, True], "held"))
        client.head()
        got = b""
        while b"tool_call" not in got:  # held for three seconds, then let go
            got += client.read() or b""
        over.set()
        client.rest()
        record = proxy.wait_for_record("held")
    assert "stream-stall" not in [one["name"] for one in record["findings"]]
    assert "so far" not in proxy.log


def test_a_hang_is_an_error_when_the_client_leaves(watching: Proxy, upstream: Upstream) -> None:
    gone, before = threading.Event(), len(watching.log)
    upstream.scripts["leaving"] = scripted(CHUNKED, HEAD, Peer.wait_for_close, lambda _: gone.set(), Peer.close)
    with Client(watching.port) as client:
        client.ask(*asked(OPENAI, CLEAN[OPENAI, True], "leaving"))
        client.head()
        wait_for_report(watching, before, "silent-hang .* so far")
    assert gone.wait(PATIENCE)
    record = watching.wait_for_record("leaving")
    assert [(one["name"], one["severity"]) for one in record["findings"]] == [("silent-hang", "error")]
    assert "only the head of a message came; the client disconnected" in record["findings"][0]["message"]
    assert record["end"] == "client-left"


def test_a_hang_is_captured_when_the_proxy_stops(upstream: Upstream, tmp_path: Path) -> None:
    over = threading.Event()
    upstream.scripts["stopping"] = scripted(over, Peer.close)
    with running(tmp_path, upstream.url, *OPTIONS) as proxy, Client(proxy.port) as client:
        client.ask(*asked(OPENAI, CLEAN[OPENAI, True], "stopping"))
        proxy.wait_for("silent-hang .* so far")
        proxy.stop()
        over.set()
        record = proxy.records()[0]
    assert [one["name"] for one in record["findings"]] == ["silent-hang"]
    assert " failed: " not in proxy.log, "a failure of ours"
