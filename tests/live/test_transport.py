"""Replies in every framing and coding, over HTTP/1 and HTTP/2, through a proxy that observes and one that repairs.

The first forwards every byte unchanged. The second forwards clean replies unchanged and turns leaked markup into calls.
"""

from __future__ import annotations

import gzip
import random
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard
from mitmproxy.net import encoding

from tests.build import FORMS, in_pieces
from tests.cuts import events_of, split
from tests.live.harness import (
    PATIENCE,
    SCRIPT,
    STREAM,
    Client,
    Peer,
    Proxy,
    Script,
    Upstream,
    post,
    replying,
    running,
    scripted,
)
from tests.live.http2 import H2Reply, H2Upstream, Stream, h2_post
from tests.live.leaks import CALLED, CLEAN, LEAK, OPEN, PATHS, ask, asked, body_of, calls_of, kind_of
from tests.live.scenes import ANTHROPIC, OPENAI, Form
from tests.selection import sampled

Coder = Callable[[Iterable[bytes]], Iterator[bytes]]


def _zlib(window: int) -> Coder:
    def code(pieces: Iterable[bytes]) -> Iterator[bytes]:
        coder = zlib.compressobj(wbits=window)
        for piece in pieces:
            yield coder.compress(piece) + coder.flush(zlib.Z_SYNC_FLUSH)
        yield coder.flush()

    return code


def _brotli(pieces: Iterable[bytes]) -> Iterator[bytes]:
    coder = brotli.Compressor()
    for piece in pieces:
        yield bytes(coder.process(piece)) + bytes(coder.flush())
    yield bytes(coder.finish())


def _zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    coder = zstandard.ZstdCompressor().compressobj()
    for piece in pieces:
        yield coder.compress(piece) + coder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    yield coder.flush()


CODERS: dict[str, Coder] = {"": iter, "gzip": _zlib(31), "deflate": _zlib(15), "br": _brotli, "zstd": _zstd}
FRAMINGS = ("chunked", "length", "close")


def framed(pieces: list[bytes], headers: dict[str, Any], framing: str) -> Script:
    """A script that sends a body in chunks, with its length, or until it closes the connection."""
    fields, steps = {
        "chunked": ({"transfer_encoding": "chunked"}, [Peer.finish]),
        "length": ({"content_length": str(sum(map(len, pieces)))}, []),
        "close": ({"connection": "close"}, [Peer.close]),
    }[framing]
    return scripted({**headers, **fields}, *pieces, *steps)


@pytest.mark.parametrize(("framing", "coding", "form"), sampled(list(product(FRAMINGS, CODERS, FORMS)), 8), ids=str)
def test_a_reply_arrives_in_every_framing_and_coding(
    proxy: Proxy, repairing: Proxy, upstream: Upstream, framing: str, coding: str, form: Form
) -> None:
    api, stream = form
    for name, record in {"leak": LEAK[form], "clean": CLEAN[form]}.items():
        coded = b"".join(CODERS[coding](events_of(body_of(record)) if stream else [body_of(record)]))
        places = sorted(random.Random(f"{framing}{coding}{form}").sample(range(1, len(coded)), 60))
        headers = {**kind_of(record), "x_own": "kept", **({"content_encoding": coding} if coding else {})}
        test = f"{name} {framing} {coding} {form}"
        upstream.scripts[test] = framed(split(coded, places), headers, framing)
        reply = ask(proxy, api, record, test)
        assert (reply.status, reply.complete, reply.body) == (200, True, coded)
        assert (reply.headers["x-own"], reply.headers.get("content-encoding", "")) == ("kept", coding)
        assert bytes.fromhex(proxy.wait_for_probe(test)["body"]) == coded
        captured = proxy.wait_for_record(test)["response"]
        assert captured["body"].encode() == body_of(record)
        assert sum(size for _, size in captured["chunks"]) == len(body_of(record))

        reply = ask(repairing, api, record, test)
        assert reply.complete
        assert reply.headers.get("content-encoding", "") == ("" if stream else coding), "a repaired stream has none"
        assert int(reply.headers.get("content-length", len(reply.body))) == len(reply.body)
        body = encoding.decode(reply.body, reply.headers.get("content-encoding", "identity"))
        assert isinstance(body, bytes)
        record_of_it = repairing.wait_for_record(test)
        assert record_of_it["response"]["body"].encode() == body_of(record)
        if name == "clean":
            assert body == body_of(record)
            assert "delivered" not in record_of_it
        else:
            assert calls_of(api, stream, body) == CALLED
            assert record_of_it["delivered"]["body"].encode() == body


@pytest.mark.parametrize("framing", FRAMINGS[:2])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_connection_serves_the_next_request(repairing: Proxy, upstream: Upstream, form: Form, framing: str) -> None:
    """A wrong length would show in the next exchange."""
    with Client(repairing.port) as client:
        for number, record in enumerate((LEAK[form], CLEAN[form], LEAK[form])):
            test, request = f"next {number} {form} {framing}", record["request"]
            upstream.scripts[test] = framed([body_of(record)], kind_of(record), framing)
            client.ask(PATHS[form[0]], request["body"].encode(), {**request["headers"], SCRIPT: test})
            _, headers = client.head()
            body, complete = client.rest()
            assert (complete, calls_of(*form, body)) == (True, [] if record is CLEAN[form] else CALLED)
            assert not {"content-length", "transfer-encoding"} <= headers.keys()
            client.again()


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection(
    repairing: Proxy, upstream: Upstream, framing: str
) -> None:
    record, name = LEAK[OPENAI, True], f"old {framing}"
    upstream.scripts[name] = framed([body_of(record)], STREAM, framing)
    given = record["request"]["body"].encode()
    fields = f"{SCRIPT}: {name}\r\ncontent-type: application/json\r\ncontent-length: {len(given)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", repairing.port), timeout=PATIENCE) as connection:
        connection.sendall(f"POST {PATHS[OPENAI]} HTTP/1.0\r\n{fields}".encode() + given)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, content = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert calls_of(OPENAI, True, content) == CALLED


PLAIN = body_of(CLEAN[OPENAI, True])
_SQUEEZED = zlib.compressobj(wbits=31)
_GOOD = _SQUEEZED.compress(PLAIN[:200]) + _SQUEEZED.flush(zlib.Z_SYNC_FLUSH)
BROKEN: dict[str, tuple[str, list[bytes], bytes | None, str]] = {
    # name: (coding, what is sent, what arrives if that is certain, how the exchange ends)
    "plain text": ("gzip", [PLAIN[:30], PLAIN[30:]], PLAIN, "unread"),
    "garbage in the middle": ("gzip", [_GOOD, b"\xff" * 40, b"more"], PLAIN[:200], "unread"),
    "gzip cut off": ("gzip", [gzip.compress(PLAIN)[:-4]], None, "upstream-died"),
    "brotli cut off": ("br", [brotli.compress(PLAIN)[:-4]], None, "upstream-died"),
    "zstd cut off": ("zstd", [zstandard.ZstdCompressor().compress(PLAIN)[:-4]], None, "upstream-died"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_breaks_its_coding_does_not_look_complete(repairing: Proxy, upstream: Upstream, name: str) -> None:
    coding, pieces, arrives, end = BROKEN[name]
    upstream.scripts[name] = replying(pieces, **STREAM, content_encoding=coding)
    reply = ask(repairing, OPENAI, CLEAN[OPENAI, True], name)
    assert PLAIN.startswith(reply.body) if arrives is None else reply.body == arrives
    assert reply.complete is (arrives == PLAIN)
    record = repairing.wait_for_record(name)
    assert record["end"] == end
    assert end != "unread" or "does not match its content-encoding" in record["notes"][0]


@pytest.mark.parametrize("form", [(OPENAI, True), (OPENAI, False)], ids=str)
def test_bytes_arrive_before_more_are_sent(proxy: Proxy, upstream: Upstream, form: Form) -> None:
    """The upstream goes on only when the client has what was sent so far; a proxy that buffers would never end."""
    pieces = list(in_pieces(body_of(CLEAN[form]), 100))
    received = [threading.Event() for _ in pieces]
    steps = (step for pair in zip(pieces, received, strict=True) for step in pair)
    name = f"prompt {form}"
    upstream.scripts[name] = scripted({**kind_of(CLEAN[form]), "transfer_encoding": "chunked"}, *steps, Peer.finish)
    with Client(proxy.port) as client:
        client.ask(*asked(OPENAI, CLEAN[form], name))
        client.head()
        for piece, event in zip(pieces, received, strict=True):
            assert client.read_at_least(len(piece)) == piece
            event.set()
        assert client.rest() == (b"", True)
    chunks = proxy.wait_for_record(name)["response"]["chunks"]
    assert [size for _, size in chunks] == [len(piece) for piece in pieces]


ANSWER = b'{"choices": [{"index": 0, "delta": {"content": "<invoke name=\\"x\\">"}}]}'
OTHERS: dict[str, tuple[str, bytes, str, bool]] = {
    # name: (path, body, method, whether the path is that of an API, so that the exchange is captured)
    "a form": ("/cart", b"model=x&messages=y", "POST", False),
    "a chat of people": ("/api/chat", b'{"messages": [{"from": "ann", "text": "hi"}]}', "POST", False),
    "a list of models": ("/v1/models", b"", "GET", False),
    "no JSON": ("/v1/messages", b"\xff\xfe{", "POST", False),
    "an upload": ("/upload", bytes(range(256)) * 300, "PUT", False),
    "a form on the path of an API": ("/v1/chat/completions", b"model=x&messages=y", "POST", True),
    "no messages": ("/v1/chat/completions", b'{"model": "m", "messages": []}', "POST", True),
    "embeddings": ("/v1/embeddings", b'{"model": "m", "input": "x"}', "POST", True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_traffic_passes_untouched(proxy: Proxy, upstream: Upstream, name: str) -> None:
    path, body, method, captured = OTHERS[name]
    upstream.scripts["other"] = replying([ANSWER[:9], ANSWER[9:]], content_type="application/json")
    reply = post(proxy.port, path, body, {SCRIPT: "other", "x-test-id": name}, method)
    assert (reply.status, reply.body) == (200, ANSWER)
    if captured:
        record = proxy.wait_for_record(name)
        assert (record["api"], record["findings"]) == (None, [])
        assert record["notes"][0].startswith("not checked: ")
        assert (record["request"]["body"].encode(), record["response"]["body"].encode()) == (body, ANSWER)
        return
    probe = proxy.wait_for_probe(name)
    assert (probe["comment"], probe["marked"], probe["metadata"], probe["stream"]) == ("", "", {}, "False")
    # Captures are written in order: when the next one is there, this one would be.
    after = f"after {name}"
    upstream.scripts[after] = replying([body_of(CLEAN[OPENAI, False])], content_type="application/json")
    ask(proxy, OPENAI, LEAK[OPENAI, False], after)
    proxy.wait_for_record(after)
    assert not [record for record in proxy.records() if record["request"]["headers"].get("x-test-id") == name]


# --- HTTP/2 -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def h2_upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[H2Upstream]:
    upstream = H2Upstream(tmp_path_factory.mktemp("h2"))
    yield upstream
    upstream.close()
    assert not upstream.failures


@pytest.fixture(scope="module")
def h2_proxy(h2_upstream: H2Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("h2proxy")
    with running(folder, h2_upstream.url, "ssl_insecure=true", "wirelint_fix=unsafe") as proxy:
        yield proxy


H2_ENDS = ("with the last frame", "with an empty frame", "after two empty frames")


@pytest.mark.parametrize(("form", "empty", "end"), sampled(list(product(FORMS, (False, True), H2_ENDS)), 3), ids=str)
def test_a_reply_arrives_over_http_2(
    h2_proxy: Proxy, h2_upstream: H2Upstream, form: Form, empty: bool, end: str
) -> None:
    api, stream = form
    for name, record in {"leak": LEAK[form], "clean": CLEAN[form]}.items():
        body = body_of(record)
        pieces = events_of(body) if stream else list(in_pieces(body, 50))
        test = f"{name} {form} {empty} {end}"
        h2_upstream.scripts[test] = _framing(pieces, kind_of(record)["content_type"], empty=empty, end=end)
        reply = h2_post(h2_proxy, asked(api, record, test))
        assert (reply.status, reply.complete) == (200, True)
        assert "transfer-encoding" not in reply.headers
        assert int(reply.headers.get("content-length", len(reply.body))) == len(reply.body)
        captured = h2_proxy.wait_for_record(test)
        assert captured["response"]["body"].encode() == body
        if name == "clean":
            assert reply.body == body
            assert "delivered" not in captured
        else:
            assert calls_of(api, stream, reply.body) == CALLED
            assert captured["delivered"]["body"].encode() == reply.body


def _framing(pieces: list[bytes], kind: str, *, empty: bool, end: str) -> Callable[[Stream], None]:
    def script(stream: Stream) -> None:
        stream.head(content_type=kind)
        for piece in pieces[:-1]:
            stream.data(piece)
            if empty:
                stream.data(b"")
        stream.data(pieces[-1], end=end == H2_ENDS[0])
        if end == H2_ENDS[2]:
            stream.data(b"")
            stream.data(b"")
        if end != H2_ENDS[0]:
            stream.data(b"", end=True)

    return script


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
def test_held_text_leaves_when_a_stream_of_http_2_is_reset(h2_proxy: Proxy, h2_upstream: H2Upstream, api: str) -> None:
    events = events_of(body_of(OPEN[api, True]))[:-3]

    def script(stream: Stream) -> None:
        stream.head(**STREAM)
        for event in events:
            stream.data(event)
        stream.reset()

    test = f"reset {api}"
    h2_upstream.scripts[test] = script
    reply = h2_post(h2_proxy, asked(api, OPEN[api, True], test))
    assert (reply.complete, reply.body) == (False, b"".join(events))
    captured = h2_proxy.wait_for_record(test)
    assert (captured["end"], captured["response"]["body"].encode()) == ("upstream-died", b"".join(events))


@pytest.mark.parametrize("tunnel", sampled([False, True], 1), ids=str)
def test_held_text_leaves_while_an_upstream_of_http_2_is_silent(
    h2_upstream: H2Upstream, tmp_path: Path, tunnel: bool
) -> None:
    record = LEAK[OPENAI, True]
    events = events_of(body_of(record))
    begun, opened = b"".join(events[:-4]), threading.Event()

    def script(stream: Stream) -> None:
        stream.head(**STREAM)
        for event in events[:-4]:
            stream.data(event)
        assert opened.wait(PATIENCE), "held for longer than the limit"
        for event in events[-4:]:
            stream.data(event)
        stream.data(b"", end=True)

    def seen(reply: H2Reply) -> None:
        if reply.body == begun:
            opened.set()

    h2_upstream.scripts["silent"] = script
    address = h2_upstream.url.removeprefix("https://")
    options = ("ssl_insecure=true", "wirelint_fix=unsafe", "wirelint_hold=0.2")
    with running(tmp_path, "" if tunnel else h2_upstream.url, *options) as proxy:
        reply = h2_post(proxy, asked(OPENAI, record, "silent"), address if tunnel else "", seen)
        assert (reply.complete, reply.body) == (True, b"".join(events))
        assert proxy.wait_for_record("silent")["end"] == "complete"
