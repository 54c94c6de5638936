"""Rewriting in every coding and over HTTP/2: the repaired body is framed as its headers say."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from tests.build import FORMS, Talk, chunk, schema, sse
from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Script, Upstream, replying, running
from tests.live.http2 import H2Client, H2Reply, H2Upstream, Stream
from tests.live.leaks import (
    CALLED,
    CLEAN,
    EVENTS,
    LEAK,
    OPEN,
    PATHS,
    ask,
    body_of,
    calls_of,
    kind_of,
    pieces_of,
    split_events,
)
from tests.live.scenes import ANTHROPIC, OPENAI, Form
from tests.selection import sampled

pytestmark = pytest.mark.live

ASKED = (
    Talk(text="x", tools={"find": schema(place="string")}, model="m")
    .record("openai.chat", True)["request"]["body"]
    .encode()
)


def _zlib(window: int) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
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


CODERS: dict[str, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": _zlib(31),
    "deflate": _zlib(15),
    "br": _brotli,
    "zstd": _zstd,
}
DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda body: body,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(body),
}


@pytest.mark.parametrize(("length", "coding", "form"), sampled(list(product((False, True), CODERS, FORMS)), 4), ids=str)
def test_codings(repairing: Proxy, upstream: Upstream, length: bool, coding: str, form: Form) -> None:
    api, stream = form
    for name, by_form in {"leak": LEAK, "clean": CLEAN}.items():
        record = by_form[form]
        plain = split_events(body_of(record)) if stream else [body_of(record)]
        coded = [piece for piece in CODERS[coding](plain) if piece]
        headers = {**kind_of(record), "content_encoding": coding}
        test = f"{name} {coding} {form} {length}"
        upstream.scripts[test] = _sized(coded, headers) if length else replying(coded, **headers)
        reply = ask(repairing, api, record, test)
        assert reply.complete
        body = DECODERS[reply.headers.get("content-encoding", "")](reply.body)
        captured = repairing.wait_for_record(test)
        assert captured["response"]["body"].encode() == body_of(record)
        assert int(reply.headers.get("content-length", len(reply.body))) == len(reply.body)
        if name == "clean":
            assert body == body_of(record)
            assert "delivered" not in captured
        else:
            assert calls_of(api, stream, body) == CALLED
            assert captured["delivered"]["body"].encode() == body


def _sized(pieces: list[bytes], headers: dict[str, Any]) -> Script:
    def script(peer: Peer) -> None:
        peer.head(**headers, content_length=str(sum(map(len, pieces))))
        for piece in pieces:
            peer.send(piece)

    return script


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_connection_lives_on(repairing: Proxy, upstream: Upstream, form: Form) -> None:
    """Several exchanges over one connection: a length that lies would show in the next one."""
    api, stream = form
    upstream.scripts |= {
        f"on {number} {form}": _sized([body_of(by_form[form])], kind_of(by_form[form]))
        for number, by_form in enumerate((LEAK, CLEAN, LEAK))
    }
    with Client(repairing.port) as client:
        for number, calls in enumerate((CALLED, [], CALLED)):
            test = f"on {number} {form}"
            request = LEAK[form]["request"]
            client.ask(PATHS[api], request["body"].encode(), {**request["headers"], SCRIPT: test, "x-test-id": test})
            client.head()
            body, complete = client.rest()
            assert complete
            assert calls_of(api, stream, body) == calls
            client.again()


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
def test_http2(h2_proxy: Proxy, h2_upstream: H2Upstream, form: Form, empty: bool, end: str) -> None:
    api, stream = form
    with H2Client(h2_proxy.port) as client:
        for name, by_form in {"leak": LEAK, "clean": CLEAN}.items():
            record = by_form[form]
            body = body_of(record)
            pieces = split_events(body) if stream else list(pieces_of(body, 50))
            test = f"{name} {form} {empty} {end}"
            h2_upstream.scripts[test] = _framing(pieces, kind_of(record)["content_type"], empty=empty, end=end)
            given = {**record["request"]["headers"], SCRIPT: test, "x-test-id": test}
            given.pop("content-type")
            reply = client.post(PATHS[api], record["request"]["body"].encode(), given)
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
def test_http2_stream_reset_while_text_is_held(h2_proxy: Proxy, h2_upstream: H2Upstream, api: str) -> None:
    record = OPEN[api, True]
    events = split_events(body_of(record))[:-3]

    def script(stream: Stream) -> None:
        stream.head(**EVENTS)
        for event in events:
            stream.data(event)
        stream.reset()

    test = f"reset {api}"
    h2_upstream.scripts[test] = script
    given = {SCRIPT: test, "x-test-id": test, **record["request"]["headers"]}
    given.pop("content-type")
    with H2Client(h2_proxy.port) as client:
        reply = client.post(PATHS[api], record["request"]["body"].encode(), given)
    assert not reply.complete
    assert reply.body == b"".join(events)
    captured = h2_proxy.wait_for_record(test)
    assert captured["end"] == "upstream-died"
    assert captured["response"]["body"].encode() == b"".join(events)


@pytest.mark.parametrize("tunnel", sampled([False, True], 1), ids=str)
def test_http2_held_text(h2_upstream: H2Upstream, tmp_path: Path, tunnel: bool) -> None:
    """Held while the upstream is silent, then when it breaks off: both leave, through TLS, and through a tunnel too."""
    record = LEAK[OPENAI, True]
    events = split_events(body_of(record))
    begun, opened = b"".join(events[:-4]), threading.Event()

    def silent(stream: Stream) -> None:
        stream.head(**EVENTS)
        for event in events[:-4]:
            stream.data(event)
        assert opened.wait(PATIENCE), "held for longer than the limit"
        for event in events[-4:]:
            stream.data(event)
        stream.data(b"", end=True)

    def breaks_off(stream: Stream) -> None:
        stream.head(**EVENTS)
        for event in events[:-4]:
            stream.data(event)
        stream.reset()

    def seen(reply: H2Reply) -> None:
        if reply.body == begun:
            opened.set()

    address = h2_upstream.url.removeprefix("https://")
    options = ("ssl_insecure=true", "wirelint_fix=unsafe", "wirelint_hold=0.2")
    with (
        running(tmp_path, "" if tunnel else h2_upstream.url, *options) as proxy,
        H2Client(proxy.port, address if tunnel else "") as client,
    ):
        for script, whole in ((silent, True), (breaks_off, False)):
            test = f"{script.__name__} {tunnel}"
            h2_upstream.scripts[test] = script
            given = {SCRIPT: test, "x-test-id": test}
            reply = client.post(PATHS[OPENAI], record["request"]["body"].encode(), given, seen)
            assert (reply.complete, reply.body) == (whole, b"".join(events) if whole else begun)
            assert proxy.wait_for_record(test)["end"] == ("complete" if whole else "upstream-died")


def test_http2_text_that_passes_unread(h2_upstream: H2Upstream, tmp_path: Path) -> None:
    """Deltas that match the pattern of the stream leave unread: also around one that waits, and until it breaks off."""
    waits = 6  # of the events: its end may begin something
    pieces = ("The ferry leaves", " at nine", " and comes", " back", " at two, if <", "nobody", " is ill", " that day.")
    opened = threading.Event()

    def told(number: int) -> list[bytes]:
        said = [*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop")]
        body = sse(*({**one, "id": f"chatcmpl-{number}"} for one in said)).encode()
        return [event + b"\n\n" for event in body.split(b"\n\n") if event]

    def goes(stream: Stream, number: int) -> None:
        stream.head(**EVENTS)
        for event in told(number):
            stream.data(event)
            stream.data(b"")
        stream.data(b"", end=True)

    def silent(stream: Stream, number: int) -> None:
        stream.head(**EVENTS)
        for event in told(number)[:waits]:
            stream.data(event)
        assert opened.wait(PATIENCE), "held for longer than the limit"
        for event in told(number)[waits:]:
            stream.data(event)
        stream.data(b"", end=True)

    def breaks_off(stream: Stream, number: int) -> None:
        stream.head(**EVENTS)
        for event in told(number)[:waits]:
            stream.data(event)
        stream.reset()

    def seen(reply: H2Reply) -> None:
        if reply.body == b"".join(told(5)[:waits]):
            opened.set()

    options = ("ssl_insecure=true", "wirelint_fix=unsafe", "wirelint_hold=0.2")
    with running(tmp_path, h2_upstream.url, *options) as proxy, H2Client(proxy.port) as client:
        for number, script in enumerate((goes, goes, goes, goes, silent, breaks_off, goes), 1):
            test = f"follows {number}"
            h2_upstream.scripts[test] = partial(script, number=number)
            reply = client.post(PATHS[OPENAI], ASKED, {SCRIPT: test, "x-test-id": test}, seen)
            whole = script is not breaks_off
            expected = b"".join(told(number)[: None if whole else waits])
            assert (reply.complete, reply.body) == (whole, expected)
            captured = proxy.wait_for_record(test)
            assert captured["response"]["body"].encode() == expected
            assert "delivered" not in captured
