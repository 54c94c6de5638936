"""Exchanges that do not end well, and those that only look so: each is finalised once, and says how it ended."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11
import pytest

from tests.build import chunk, sse
from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Upstream, running

pytestmark = pytest.mark.live

REQUEST = json.dumps(
    {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": False},
        "messages": [{"role": "user", "content": "hi"}],
    }
).encode()
BEGUN = sse(chunk({"role": "assistant", "content": "Once upon"}), done=False).encode()
FINISHED = sse(chunk({"content": " a time."}), chunk({}, "stop")).encode()
STREAM: dict[str, Any] = {"content_type": "text/event-stream"}


def dies(peer: Peer) -> None:
    peer.head(**STREAM, transfer_encoding="chunked")
    peer.chunk(BEGUN)
    peer.close()


def falls_short(peer: Peer) -> None:
    peer.head(**STREAM, content_length=str(len(BEGUN) + len(FINISHED)))
    peer.send(BEGUN)
    peer.close()


def garbles(peer: Peer) -> None:
    peer.head(**STREAM, transfer_encoding="chunked")
    peer.chunk(BEGUN)
    peer.send(b"zz\r\nno length\r\n")
    peer.close()


def ends_with_the_connection(peer: Peer) -> None:
    peer.head(**STREAM, connection="close")
    peer.send(BEGUN + FINISHED)
    peer.close()


def dies_with_the_connection(peer: Peer) -> None:
    peer.head(**STREAM, connection="close")
    peer.send(BEGUN)
    peer.close()


def refuses(peer: Peer) -> None:
    body = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
    peer.head(429, content_type="application/json", content_length=str(len(body)))
    peer.send(body)


def says_nothing(peer: Peer) -> None:
    peer.close()


@dataclass(frozen=True)
class Ending:
    script: Callable[[Peer], None]
    end: str
    findings: tuple[str, ...]
    received: bytes
    hook: str
    status: int | None = 200
    marked: bool = False


ENDINGS = {
    "the upstream dies in a stream": Ending(dies, "upstream-died", ("truncated-stream",), BEGUN, "error", marked=True),
    "short of its length": Ending(falls_short, "upstream-died", ("truncated-stream",), BEGUN, "error", marked=True),
    "a broken chunk": Ending(garbles, "upstream-died", ("truncated-stream",), BEGUN, "error", marked=True),
    "ends by closing": Ending(ends_with_the_connection, "complete", (), BEGUN + FINISHED, "response"),
    "dies by closing": Ending(
        dies_with_the_connection, "complete", ("truncated-stream",), BEGUN, "response", marked=True
    ),
    "an error status": Ending(refuses, "complete", (), b"", "response", 429),
    "no answer": Ending(says_nothing, "upstream-died", (), b"", "error", None),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_it_ended_is_told_once(proxy: Proxy, upstream: Upstream, name: str) -> None:
    ending = ENDINGS[name]
    upstream.scripts[name] = ending.script
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: name, "x-test-id": name})
        client.head()
        body, _ = client.rest()
    if ending.received:
        assert body == ending.received
    _check(proxy, name, ending)


def _check(proxy: Proxy, name: str, ending: Ending) -> dict[str, Any]:
    record = proxy.wait_for_record(name)
    found = [finding["name"] for finding in record["findings"]]
    assert (record["end"], tuple(found), record["response"]["status"]) == (ending.end, ending.findings, ending.status)
    assert (record["error"] is not None) == (ending.end not in ("complete",))
    probe = proxy.wait_for_probe(name)
    assert probe["hook"] == ending.hook
    assert probe["metadata"]["wirelint.end"] == ending.end
    assert probe["metadata"]["wirelint.findings"] == found
    assert bool(probe["marked"]) == ending.marked
    if ending.received:
        assert bytes.fromhex(probe["body"]) == ending.received
    assert len(proxy.wait_for(rf"openai\.chat m .*\[{record['id'][:8]}\]")) == 1
    assert sum(item["id"] == record["id"] for item in proxy.records()) == 1
    return record


def test_the_client_leaves_in_the_middle(proxy: Proxy, upstream: Upstream) -> None:
    left = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(BEGUN)
        if peer.wait_for_close():
            left.set()
        peer.close()

    upstream.scripts["leaves"] = script
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: "leaves", "x-test-id": "leaves"})
        client.head()
        client.read_at_least(len(BEGUN))
    assert left.wait(PATIENCE)
    _check(proxy, "leaves", Ending(script, "client-left", (), BEGUN, "error"))


def test_closing_at_the_terminator_is_no_fault(proxy: Proxy, upstream: Upstream) -> None:
    """What the OpenAI SDK does: it has read `[DONE]` and closes, before HTTP has ended."""

    def script(peer: Peer) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(BEGUN + FINISHED)
        peer.wait_for_close()
        peer.close()

    upstream.scripts["done"] = script
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: "done", "x-test-id": "done"})
        client.head()
        client.read_at_least(len(BEGUN + FINISHED))
    record = proxy.wait_for_record("done")
    assert (record["end"], record["findings"]) == ("complete", [])
    assert proxy.wait_for_probe("done")["marked"] == ""


def test_the_client_leaves_before_the_answer(proxy: Proxy, upstream: Upstream) -> None:
    asked = threading.Event()

    def script(peer: Peer) -> None:
        asked.set()
        peer.wait_for_close()
        peer.close()

    upstream.scripts["early"] = script
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: "early", "x-test-id": "early"})
        assert asked.wait(PATIENCE)
    record = proxy.wait_for_record("early")
    assert (record["end"], record["response"]["status"], record["findings"]) == ("client-left", None, [])


_MEDDLER = """
import json
from mitmproxy import http
class Meddler:
    def request(self, flow):
        what = flow.request.headers.get("x-meddle")
        if what == "kill":
            flow.kill()
        if what == "answer":
            body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
            flow.response = http.Response.make(200, json.dumps(body), {"content-type": "application/json"})
    def responseheaders(self, flow):
        what = flow.request.headers.get("x-meddle")
        if what == "take":
            flow.response.stream = lambda data: data or []
        if what == "kill in stream":
            before = flow.response.stream
            def stream(data):
                if flow.killable:
                    flow.kill()
                return before(data)
            flow.response.stream = stream
        if what == "crash":
            before = flow.response.stream
            def stream(data):
                out = before(data)
                raise RuntimeError("a crash of another addon")
            flow.response.stream = stream
addons = [Meddler()]
"""


@pytest.fixture(scope="module")
def meddled(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("meddled")
    script = folder / "meddler.py"
    script.write_text(_MEDDLER)
    with running(folder, upstream.url, scripts=[script]) as proxy:
        yield proxy


MEDDLING = {
    "kill": ("client-left", None, "error"),
    "answer": ("complete", 200, "response"),
    "take": ("unread", 200, "response"),
    "kill in stream": ("client-left", 200, "response"),
    "crash": ("client-left", 200, None),
}


@pytest.mark.parametrize("what", MEDDLING)
def test_other_addons_that_meddle(meddled: Proxy, upstream: Upstream, what: str) -> None:
    end, status, hook = MEDDLING[what]  # the order of hooks after a crash is a matter of luck

    def script(peer: Peer) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(BEGUN)
        with contextlib.suppress(OSError):
            peer.finish()

    upstream.scripts[what] = script
    with Client(meddled.port) as client, contextlib.suppress(OSError, h11.RemoteProtocolError, AssertionError):
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: what, "x-test-id": what, "x-meddle": what})
        if what == "crash":
            client.head()
            meddled.wait_for("a crash of another addon")
        else:
            client.head()
            client.rest()
    record = meddled.wait_for_record(what)
    assert (record["end"], record["response"]["status"]) == (end, status)
    assert hook in (None, meddled.wait_for_probe(what)["hook"])
    assert sum(item["request"]["headers"].get("x-meddle") == what for item in meddled.records()) == 1


def test_an_exchange_under_way_when_the_proxy_stops(upstream: Upstream, tmp_path: Any) -> None:
    begun, over = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**STREAM, transfer_encoding="chunked")
        peer.chunk(BEGUN)
        begun.set()
        over.wait(PATIENCE)
        peer.close()

    upstream.scripts["stopped"] = script
    with running(tmp_path, upstream.url) as proxy, Client(proxy.port) as client:
        client.ask("/v1/chat/completions", REQUEST, {SCRIPT: "stopped", "x-test-id": "stopped"})
        client.head()
        client.read_at_least(len(BEGUN))
        assert begun.is_set()
        proxy.stop()
        over.set()
        record = proxy.records()[0]
    assert (record["end"], record["findings"]) == ("client-left", [])


def test_an_upstream_that_is_not_there(tmp_path: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        running(tmp_path, f"http://127.0.0.1:{port}", "connection_strategy=lazy") as proxy,
        Client(proxy.port) as client,
    ):
        client.ask("/v1/chat/completions", REQUEST, {"x-test-id": "nobody"})
        assert client.head()[0] == 502
        record = proxy.wait_for_record("nobody")
    assert (record["end"], record["response"]["status"]) == ("upstream-died", None)
