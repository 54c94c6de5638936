"""Exchanges that do not end well, and those that only look so: every byte arrives, and each says once how it ended."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import h11
import pytest

from tests.addon.build import OVER
from tests.build import FORMS, chunk, in_pieces, sse
from tests.cuts import events_of
from tests.live.harness import (
    CHUNKED,
    PATIENCE,
    STREAM,
    Client,
    Peer,
    Proxy,
    Script,
    Step,
    Upstream,
    free_port,
    post,
    replying,
    running,
    scripted,
)
from tests.live.leaks import CLEAN, LEAK, OPEN, PROSE, ask, asked, body_of, kind_of, records
from tests.live.scenes import ANTHROPIC, OPENAI, Form
from tests.live.strict import assemble
from tests.selection import is_complete, sampled

ASKED = CLEAN[OPENAI, True]
BEGUN = sse(chunk({"role": "assistant", "content": "Once upon"}), done=False).encode()
LENGTH = {**STREAM, "content_length": str(len(BEGUN) + len(OVER))}
CLOSING = {**STREAM, "connection": "close"}
BUSY = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
REFUSAL = {"status": 429, "content_type": "application/json", "content_length": str(len(BUSY))}


@dataclass(frozen=True)
class Ending:
    """What the upstream does; how the exchange ends then, what is found in it, what arrives."""

    script: Script
    end: str
    findings: tuple[str, ...] = ()
    received: bytes = b""
    status: int | None = 200


_CUT = ("truncated-stream",)
ENDINGS = {
    "the upstream dies in a stream": Ending(scripted(CHUNKED, BEGUN, Peer.close), "upstream-died", _CUT, BEGUN),
    "short of its length": Ending(scripted(LENGTH, BEGUN, Peer.close), "upstream-died", _CUT, BEGUN),
    "a broken chunk": Ending(
        scripted(CHUNKED, BEGUN, lambda peer: peer.send(b"zz\r\nno length\r\n"), Peer.close),
        "upstream-died",
        _CUT,
        BEGUN,
    ),
    "ends by closing": Ending(scripted(CLOSING, BEGUN + OVER, Peer.close), "complete", (), BEGUN + OVER),
    "dies by closing": Ending(scripted(CLOSING, BEGUN, Peer.close), "complete", _CUT, BEGUN),
    "an error status": Ending(scripted(REFUSAL, BUSY), "complete", (), BUSY, 429),
    "no answer": Ending(Peer.close, "upstream-died", status=None),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_the_end_of_an_exchange_is_reported_once(proxy: Proxy, upstream: Upstream, name: str) -> None:
    ending = ENDINGS[name]
    upstream.scripts[name] = ending.script
    reply = ask(proxy, OPENAI, ASKED, name)
    assert ending.status is None or reply.body == ending.received
    check_end(proxy, name, ending)


def check_end(proxy: Proxy, name: str, ending: Ending) -> None:
    record, probe = proxy.wait_for_record(name), proxy.wait_for_probe(name)
    found = [finding["name"] for finding in record["findings"]]
    assert (record["end"], tuple(found), record["response"]["status"]) == (ending.end, ending.findings, ending.status)
    assert (record["error"] is None, probe["hook"] == "response") == (ending.end == "complete",) * 2
    assert (probe["metadata"]["wirelint.end"], probe["metadata"]["wirelint.findings"]) == (ending.end, found)
    assert bool(probe["marked"]) == bool(found)
    assert not ending.received or bytes.fromhex(probe["body"]) == ending.received
    assert len(proxy.wait_for(rf"openai\.chat acme-1 .*\[{record['id'][:8]}\]")) == 1
    assert sum(item["id"] == record["id"] for item in proxy.records()) == 1


LEAVING: dict[str, tuple[list[bytes], Ending]] = {
    "before the answer": ([], Ending(Peer.close, "client-left", status=None)),
    "in the middle": ([BEGUN], Ending(Peer.close, "client-left", received=BEGUN)),
    # As the SDK of OpenAI does: it has read `[DONE]` and closes, before HTTP has ended.
    "at the terminator": ([BEGUN, OVER], Ending(Peer.close, "complete", received=BEGUN + OVER)),
}


@pytest.mark.parametrize("name", LEAVING)
def test_a_client_that_leaves_is_no_fault_of_the_upstream(proxy: Proxy, upstream: Upstream, name: str) -> None:
    sent, ending = LEAVING[name]
    began, left = threading.Event(), threading.Event()
    steps: list[Step] = [CHUNKED, *sent] if sent else []
    upstream.scripts[name] = scripted(
        lambda _: began.set(),
        *steps,
        Peer.wait_for_close,
        lambda _: left.set(),
        Peer.close,
    )
    with Client(proxy.port) as client:
        client.ask(*asked(OPENAI, ASKED, name))
        if sent:
            client.head()
        client.read_at_least(len(b"".join(sent)))
        assert began.wait(PATIENCE)
    assert left.wait(PATIENCE), "the upstream must learn of it"
    record, probe = proxy.wait_for_record(name), proxy.wait_for_probe(name)
    assert (record["end"], record["response"]["status"], record["findings"]) == (ending.end, ending.status, [])
    assert probe["marked"] == ""


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
        what, before = flow.request.headers.get("x-meddle"), flow.response.stream
        def stream(data):
            if what == "kill in stream" and flow.killable:
                flow.kill()
            out = before(data)
            if what == "crash":
                raise RuntimeError("a crash of another addon")
            return out
        if what == "take":
            flow.response.stream = lambda data: data or []
        if what in ("kill in stream", "crash"):
            flow.response.stream = stream
addons = [Meddler()]
"""
MEDDLING = {
    "kill": ("client-left", None, "error"),
    "answer": ("complete", 200, "response"),
    "take": ("unread", 200, "response"),
    "kill in stream": ("client-left", 200, "response"),
    "crash": ("client-left", 200, None),  # the order of hooks after a crash is a matter of luck
}


@pytest.fixture(scope="module")
def meddled(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("meddled")
    (folder / "meddler.py").write_text(_MEDDLER)
    with running(folder, upstream.url, scripts=[folder / "meddler.py"]) as proxy:
        yield proxy


@pytest.mark.parametrize("what", MEDDLING)
def test_other_addons_may_meddle(meddled: Proxy, upstream: Upstream, what: str) -> None:
    end, status, hook = MEDDLING[what]
    upstream.scripts[what] = scripted(CHUNKED, BEGUN, Peer.finish)
    with Client(meddled.port) as client, contextlib.suppress(OSError, h11.RemoteProtocolError, AssertionError):
        client.ask(*asked(OPENAI, ASKED, what, {"x-meddle": what}))
        client.head()
        if what == "crash":
            meddled.wait_for("a crash of another addon")
        else:
            client.rest()
    record = meddled.wait_for_record(what)
    assert (record["end"], record["response"]["status"]) == (end, status)
    assert hook in (None, meddled.wait_for_probe(what)["hook"])
    assert sum(item["request"]["headers"].get("x-meddle") == what for item in meddled.records()) == 1


def test_an_exchange_under_way_is_captured_when_the_proxy_stops(upstream: Upstream, tmp_path: Path) -> None:
    over = threading.Event()
    upstream.scripts["stopped"] = scripted(CHUNKED, BEGUN, over, Peer.close)
    with running(tmp_path, upstream.url) as proxy, Client(proxy.port) as client:
        client.ask(*asked(OPENAI, ASKED, "stopped"))
        client.head()
        client.read_at_least(len(BEGUN))
        proxy.stop()
        over.set()
        record = proxy.records()[0]
    assert (record["end"], record["findings"]) == ("client-left", [])


def test_an_upstream_that_is_not_there_is_captured(tmp_path: Path) -> None:
    with running(tmp_path, f"http://127.0.0.1:{free_port()}", "connection_strategy=lazy") as proxy:
        assert post(proxy.port, *asked(OPENAI, ASKED, "nobody")).status == 502
        record = proxy.wait_for_record("nobody")
    assert (record["end"], record["response"]["status"]) == ("upstream-died", None)


# --- while something is held ------------------------------------------------------------------------------------------

DEATHS: dict[str, tuple[dict[str, Any], Script]] = {
    "in chunks": ({"transfer_encoding": "chunked"}, Peer.close),
    "by a reset": ({"transfer_encoding": "chunked"}, Peer.reset),
    "short of its length": ({"content_length": "100000"}, Peer.close),
    "by closing": ({"connection": "close"}, Peer.close),
}
_HELD = [(death, form) for death, form in product(DEATHS, FORMS) if form[1] or death != "by closing"]


@pytest.mark.parametrize(("death", "form"), sampled(_HELD, 7), ids=str)
def test_held_bytes_arrive_when_the_upstream_dies(repairing: Proxy, upstream: Upstream, death: str, form: Form) -> None:
    """As without us: the client gets all that came, and sees that it is not the whole."""
    headers, end = DEATHS[death]
    api, stream = form
    record = (OPEN if stream else LEAK)[form]
    pieces = events_of(body_of(record))[:-3] if stream else [body_of(record)[:-20]]
    seen = threading.Event()
    pause = seen if stream else 0.5  # a reset overtakes bytes that nobody has read yet
    test = f"dies {death} {form}"
    upstream.scripts[test] = scripted({**kind_of(record), **headers}, *pieces, pause, end)
    with Client(repairing.port) as client:
        client.ask(*asked(api, record, test))
        assert client.head()[0] == 200
        first = client.read_at_least(len(pieces[0])) if stream else b""
        seen.set()
        rest, complete = client.rest()
    assert (first + rest, complete) == (b"".join(pieces), death == "by closing")
    captured = repairing.wait_for_record(test)
    assert captured["end"] == ("complete" if death == "by closing" else "upstream-died")
    assert captured["response"]["body"].encode() == b"".join(pieces)
    assert not stream or "truncated-stream" in [finding["name"] for finding in captured["findings"]]


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
def test_the_upstream_learns_that_the_client_left(repairing: Proxy, upstream: Upstream, api: str) -> None:
    record, left, test = OPEN[api, True], threading.Event(), f"leaves {api}"
    events = events_of(body_of(record))[:-3]
    upstream.scripts[test] = scripted(CHUNKED, *events, Peer.wait_for_close, lambda _: left.set(), Peer.close)
    with Client(repairing.port) as client:
        client.ask(*asked(api, record, test))
        client.head()
        first = client.read_at_least(len(events[0]))
    assert left.wait(PATIENCE)
    assert b"".join(events).startswith(first)
    assert repairing.wait_for_record(test)["end"] == "client-left"
    assert "Traceback" not in repairing.log


LENGTH_OF_FILL, HELD = 1 << (20 if is_complete() else 19), 64 << 10
"""`HELD`: characters that may be held back at most."""
OPENERS = {
    "a Hermes call": '<tool_call>\n{"name": "read_note", "arguments": {"path": "',
    "an argument": '<invoke name="read_note"><arg name="path">',
    "a native call": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_note:0<|tool_call_argument_begin|>{",
    "thinking": "<think>\n",
    "a full-width section": "<｜tool▁calls▁begin｜>",
    "less-than signs": "<",
}


@pytest.mark.parametrize("opener", sampled(list(OPENERS), 3))
def test_markup_that_is_never_closed_passes(repairing: Proxy, upstream: Upstream, opener: str) -> None:
    """The upstream waits in the middle until the client has all but what may be held."""
    fill = "<" if opener == "less-than signs" else "abcdefg "
    text = PROSE + OPENERS[opener] + fill * (LENGTH_OF_FILL // len(fill))
    deltas = [{"content": text[at : at + 1024]} for at in range(0, len(text), 1024)]
    pieces = [sse(chunk(delta), done=False).encode() for delta in ({"role": "assistant"}, *deltas)]
    half, caught_up, test = pieces[: len(pieces) // 2], threading.Event(), f"never closed {opener}"
    rest = (*pieces[len(half) :], sse(chunk({}, "stop")).encode())
    upstream.scripts[test] = scripted(CHUNKED, *half, caught_up, *rest, Peer.finish)
    with Client(repairing.port) as client:
        client.ask(*asked(OPENAI, ASKED, test))
        client.head()
        body = client.read_at_least(len(b"".join(half)) - 2 * HELD)
        caught_up.set()
        more, complete = client.rest()
    assert complete
    seen = assemble(OPENAI, True, body + more)
    assert seen.text + seen.reasoning in (text, text.replace("<think>\n", ""))
    assert (seen.calls, seen.finish) == ((), "stop")
    assert repairing.wait_for_record(test)["end"] == "complete"


MANY = 10_000 if is_complete() else 1_000
_LEAKED = '<invoke name="read_note"><arg name="path">n{}</arg></invoke>\n'
_NATIVE = '<|tool_call_begin|>functions.read_note:{}<|tool_call_argument_begin|>{{"path": "n{}"}}<|tool_call_end|>'


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("native", [False, True], ids=["in XML", "in a native section"])
def test_of_ten_thousand_calls_none_is_lost(repairing: Proxy, upstream: Upstream, native: bool, stream: bool) -> None:
    """Each is a call or still stands in the text, in order; none comes twice."""
    leaked = "".join((_NATIVE if native else _LEAKED).format(*[number] * 2) for number in range(MANY))
    text = f"<|tool_calls_section_begin|>{leaked}<|tool_calls_section_end|>" if native else leaked
    record = records(text, step=2048, model="kimi-k2.5" if native else "acme-1")[OPENAI, stream]
    test = f"leaks {native} {stream}"
    upstream.scripts[test] = replying(in_pieces(body_of(record), 30_000), **kind_of(record))
    reply = ask(repairing, OPENAI, record, test)
    assert reply.complete
    seen = assemble(OPENAI, stream, reply.body)
    called = [arguments["path"] for _, _, arguments in seen.calls]
    left = re.findall(r'(?:"path">|"path": ")(n\d+)', seen.text)
    assert sorted([*called, *left]) == sorted(f"n{number}" for number in range(MANY))
    assert len({id_ for id_, _, _ in seen.calls}) == len(called)
    assert seen.finish == ("tool_calls" if called else "stop")
