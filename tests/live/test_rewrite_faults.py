"""Rewriting when all goes wrong around it: every byte arrives, nothing hangs, the exchange says what happened."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.build import chunk, sse
from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Upstream, replying
from tests.live.leaks import (
    CLEAN,
    EVENTS,
    LEAK,
    OPEN,
    PATHS,
    PROSE,
    ask,
    body_of,
    kind_of,
    pieces_of,
    records,
    split_events,
)
from tests.live.scenes import ANTHROPIC, OPENAI
from tests.live.strict import assemble
from tests.selection import is_complete, sampled

pytestmark = pytest.mark.live


def dies(peer: Peer) -> None:
    peer.close()


def resets(peer: Peer) -> None:
    peer.reset()


DEATHS: dict[str, tuple[dict[str, Any], Callable[[Peer], None]]] = {
    "in chunks": ({"transfer_encoding": "chunked"}, dies),
    "by a reset": ({"transfer_encoding": "chunked"}, resets),
    "short of its length": ({"content_length": "100000"}, dies),
    "by closing": ({"connection": "close"}, dies),
}


@pytest.mark.parametrize(("death", "form"), sampled(list(product(DEATHS, [OPENAI, ANTHROPIC])), 5), ids=str)
def test_the_upstream_dies_while_text_is_held(repairing: Proxy, upstream: Upstream, death: str, form: str) -> None:
    headers, end = DEATHS[death]
    events = split_events(body_of(OPEN[form, True]))
    sent = b"".join(events[:-3])
    seen = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**EVENTS, **headers)
        for event in events[:-3]:
            peer.chunk(event) if "transfer_encoding" in headers else peer.send(event)
        assert seen.wait(PATIENCE), "what is harmless must pass"
        end(peer)

    test = f"dies {death} {form}"
    upstream.scripts[test] = script
    request = LEAK[form, True]["request"]
    with Client(repairing.port) as client:
        given = {**request["headers"], SCRIPT: test, "x-test-id": test}
        client.ask(PATHS[form], request["body"].encode(), given)
        client.head()
        first = client.read_at_least(len(events[0]))
        seen.set()
        rest, _ = client.rest()
    assert first + rest == sent
    record = repairing.wait_for_record(test)
    assert record["end"] == ("complete" if death == "by closing" else "upstream-died")
    assert record["response"]["body"].encode() == sent
    assert "truncated-stream" in [finding["name"] for finding in record["findings"]]


WHOLE_DEATHS = {name: death for name, death in DEATHS.items() if name != "by closing"}


@pytest.mark.parametrize("form", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("death", WHOLE_DEATHS)
def test_the_upstream_dies_in_a_body_that_is_held(repairing: Proxy, upstream: Upstream, death: str, form: str) -> None:
    """As without us: the client gets the head and what came of the body, and sees that it is not all of it."""
    headers, end = WHOLE_DEATHS[death]
    record = LEAK[form, False]
    sent = body_of(record)[:-20]
    test = f"dies whole {death} {form}"
    over = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**kind_of(record), **headers)
        peer.chunk(sent) if "transfer_encoding" in headers else peer.send(sent)
        over.wait(0.5)  # a reset overtakes bytes that nobody has read yet
        end(peer)

    upstream.scripts[test] = script
    reply = ask(repairing, form, record, test)
    assert (reply.status, reply.body, reply.complete) == (200, sent, False)
    captured = repairing.wait_for_record(test)
    assert (captured["end"], captured["response"]["body"].encode()) == ("upstream-died", sent)


@pytest.mark.parametrize("form", [OPENAI, ANTHROPIC])
def test_the_client_leaves_while_text_is_held(repairing: Proxy, upstream: Upstream, form: str) -> None:
    events = split_events(body_of(OPEN[form, True]))
    left = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**EVENTS, transfer_encoding="chunked")
        for event in events[:-3]:
            peer.chunk(event)
        if peer.wait_for_close():
            left.set()
        peer.close()

    test = f"leaves {form}"
    upstream.scripts[test] = script
    request = OPEN[form, True]["request"]
    with Client(repairing.port) as client:
        client.ask(PATHS[form], request["body"].encode(), {**request["headers"], SCRIPT: test, "x-test-id": test})
        client.head()
        first = client.read_at_least(len(events[0]))
    assert left.wait(PATIENCE), "the upstream must learn of it"
    assert b"".join(events).startswith(first)
    record = repairing.wait_for_record(test)
    assert record["end"] == "client-left"
    assert "Traceback" not in repairing.log


MEGABYTE = 1 << 20
HELD = 64 << 10
"""Characters that may be held back at most."""
OPENERS = {
    "a Hermes call": '<tool_call>\n{"name": "read_note", "arguments": {"path": "',
    "an argument": '<invoke name="read_note"><arg name="path">',
    "a native call": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_note:0<|tool_call_argument_begin|>{",
    "thinking": "<think>\n",
    "a full-width section": "<｜tool▁calls▁begin｜>",
    "less-than signs": "<",
}
FILL = {"less-than signs": "<"}


@pytest.mark.parametrize("opener", sampled(list(OPENERS), 3))
def test_a_megabyte_that_is_never_closed(repairing: Proxy, upstream: Upstream, opener: str) -> None:
    """The upstream waits in the middle until the client has all but what may be held."""
    text = PROSE + OPENERS[opener] + FILL.get(opener, "abcdefg ") * (MEGABYTE // len(FILL.get(opener, "abcdefg ")))
    deltas = [text[at : at + 1024] for at in range(0, len(text), 1024)]
    half = len(deltas) // 2
    pieces = [sse(chunk({"content": delta}), done=False).encode() for delta in deltas]
    pieces[0] = sse(chunk({"role": "assistant", "content": deltas[0]}), done=False).encode()
    last = sse(chunk({}, "stop")).encode()
    caught_up = threading.Event()

    def script(peer: Peer) -> None:
        peer.head(**EVENTS, transfer_encoding="chunked")
        for piece in pieces[:half]:
            peer.chunk(piece)
        assert caught_up.wait(PATIENCE), "too much is held back"
        for piece in pieces[half:]:
            peer.chunk(piece)
        peer.chunk(last)
        peer.finish()

    test = f"never closed {opener}"
    upstream.scripts[test] = script
    request = CLEAN[OPENAI, True]["request"]
    with Client(repairing.port) as client:
        client.ask(PATHS[OPENAI], request["body"].encode(), {SCRIPT: test, "x-test-id": test})
        client.head()
        body = b""
        while len(body) < sum(map(len, pieces[:half])) - 2 * HELD:
            piece = client.read()
            assert piece is not None
            body += piece
        caught_up.set()
        rest, complete = client.rest()
    assert complete
    seen = assemble(OPENAI, True, body + rest)
    assert seen.text + seen.reasoning in (text, text.replace("<think>\n", ""))
    assert (seen.calls, seen.finish) == ((), "stop")
    assert repairing.wait_for_record(test)["end"] == "complete"


MANY = 10_000 if is_complete() else 1_000
_LEAKED = '<invoke name="read_note"><arg name="path">n{}</arg></invoke>\n'
_NATIVE = '<|tool_call_begin|>functions.read_note:{}<|tool_call_argument_begin|>{{"path": "n{}"}}<|tool_call_end|>'


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("native", [False, True], ids=["in XML", "in a native section"])
def test_ten_thousand_calls_leak(repairing: Proxy, upstream: Upstream, native: bool, stream: bool) -> None:
    """Each is a call or still stands in the text, in order; none is lost, none comes twice."""
    leaked = "".join((_NATIVE if native else _LEAKED).format(*[number] * 2) for number in range(MANY))
    text = f"<|tool_calls_section_begin|>{leaked}<|tool_calls_section_end|>" if native else leaked
    record = records(text, step=2048, model="kimi-k2.5" if native else "acme-1")[OPENAI, stream]
    test = f"leaks {native} {stream}"
    upstream.scripts[test] = replying(pieces_of(body_of(record), 30_000), **kind_of(record))
    reply = ask(repairing, OPENAI, record, test)
    assert reply.complete
    seen = assemble(OPENAI, stream, reply.body)
    called = [arguments["path"] for _, _, arguments in seen.calls]
    left = re.findall(r'(?:"path">|"path": ")(n\d+)', seen.text)
    assert sorted([*called, *left]) == sorted(f"n{number}" for number in range(MANY))
    assert len({id_ for id_, _, _ in seen.calls}) == len(called)
    assert seen.finish == ("tool_calls" if called else "stop")
