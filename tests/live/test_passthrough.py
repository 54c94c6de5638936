"""Through a real mitmdump: every byte arrives, as it came and when it came; what is not ours is left alone."""

from __future__ import annotations

import gzip
import json
import random
import threading
import zlib
from collections.abc import Callable
from itertools import product
from typing import Any

import brotli
import pytest
import zstandard

from tests.build import FORMS as ALL_FORMS
from tests.build import Call, Talk, User, schema
from tests.cuts import split
from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Upstream, post, replying
from tests.selection import sampled

pytestmark = pytest.mark.live

TALK = Talk(
    history=(User("Grüße: wie ist das Wetter? 🌦"),),
    text="Ein Blick hinaus genügt: es regnet seit Stunden, und der Wind dreht auf Süd. ☔" * 3,
    calls=(Call("weather", {"city": "Köln"}),),
    tools={"weather": schema(city="string")},
    request={"stream_options": {"include_usage": False}},
)
FORMS = {form: TALK.record(*form) for form in ALL_FORMS}
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def ask(proxy: Proxy, record: dict[str, Any], script: str, test: str, **headers: str) -> Any:
    request = record["request"]
    path = request["url"].removeprefix("http://llm.test")
    return post(
        proxy.port, path, request["body"].encode(), {**request["headers"], SCRIPT: script, "x-test-id": test, **headers}
    )


@pytest.mark.parametrize(
    ("api", "stream", "coding"),
    [(*form, coding) for form, coding in sampled(list(product(FORMS, CODINGS)), 3)],
    ids=str,
)
def test_every_byte_arrives_as_it_came(proxy: Proxy, upstream: Upstream, api: str, stream: bool, coding: str) -> None:
    record = FORMS[api, stream]
    plain = record["response"]["body"].encode()
    body = CODINGS[coding](plain)
    chance = random.Random(f"{api} {stream} {coding}")
    for number, count in enumerate((1, 7, min(len(body) - 1, 150))):
        pieces = split(body, sorted(chance.sample(range(1, len(body)), count)))
        name = f"{api}-{stream}-{coding}-{number}"
        extra = {"content_type": record["response"]["headers"]["content-type"], "x_own": "kept"}
        if coding != "identity":
            extra["content_encoding"] = coding
        upstream.scripts[name] = replying(pieces, **extra)
        reply = ask(proxy, record, name, name)
        assert (reply.status, reply.complete, reply.body) == (200, True, body)
        assert reply.headers["x-own"] == "kept"
        assert reply.headers.get("content-encoding") == (None if coding == "identity" else coding)
        captured = proxy.wait_for_record(name)
        assert (captured["api"], captured["end"], captured["findings"]) == (api, "complete", [])
        assert captured["response"]["body"].encode() == plain
        assert sum(size for _, size in captured["response"]["chunks"]) == len(plain)
        probe = proxy.wait_for_probe(name)
        assert bytes.fromhex(probe["body"]) == body
        assert probe["metadata"]["wirelint.api"] == api


PIECES = {
    "text/event-stream": [
        b'data: {"choices": [{"index": 0, "delta": {"content": "on',
        b'e"}}]}\n',
        b"\n",
        b": still here\n\n",
        b"data: [DONE]\n\n",
    ],
    "application/json": [
        b'{"choices": [{"index": 0, ',
        b'"message": {"role": "assistant", "content": "one"}, ',
        b'"finish_reason": "stop"}]}',
    ],
}


@pytest.mark.parametrize("kind", PIECES)
def test_bytes_arrive_before_more_are_sent(proxy: Proxy, upstream: Upstream, kind: str) -> None:
    """The upstream goes on only when the client has what was sent so far; a proxy that buffers would never end."""
    received = threading.Semaphore(0)
    pieces = PIECES[kind]

    def script(peer: Peer) -> None:
        peer.head(content_type=kind, transfer_encoding="chunked")
        for piece in pieces:
            peer.chunk(piece)
            assert received.acquire(timeout=PATIENCE)
        peer.finish()

    name = f"prompt-{kind}"
    upstream.scripts[name] = script
    record = FORMS["openai.chat", True]
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", record["request"]["body"].encode(), {SCRIPT: name, "x-test-id": name})
        client.head()
        for piece in pieces:
            assert client.read_at_least(len(piece)) == piece
            received.release()
        assert client.rest() == (b"", True)
    chunks = proxy.wait_for_record(name)["response"]["chunks"]
    assert [size for _, size in chunks] == [len(piece) for piece in pieces]


def test_json_with_a_length_keeps_its_length_and_the_connection(proxy: Proxy, upstream: Upstream) -> None:
    record = FORMS["openai.chat", False]
    body = record["response"]["body"].encode()

    def script(peer: Peer) -> None:
        peer.head(content_type="application/json", content_length=str(len(body)))
        peer.send(body[:40])
        peer.send(body[40:])

    upstream.scripts["length"] = script
    with Client(proxy.port) as client:
        for test in ("length-1", "length-2"):
            headers = {SCRIPT: "length", "x-test-id": test}
            client.ask("/v1/chat/completions", record["request"]["body"].encode(), headers)
            status, fields = client.head()
            assert (status, fields["content-length"]) == (200, str(len(body)))
            assert client.rest() == (body, True)
            assert proxy.wait_for_record(test)["findings"] == []
            client.again()


OTHERS: dict[str, tuple[str, bytes, str]] = {
    "a form": ("/cart", b"model=x&messages=y", "POST"),
    "a chat of people": ("/api/chat", b'{"messages": [{"from": "ann", "text": "hi"}]}', "POST"),
    "a list of models": ("/v1/models", b"", "GET"),
    "no JSON": ("/v1/messages", b"\xff\xfe{", "POST"),
    "an upload": ("/upload", bytes(range(256)) * 300, "PUT"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_ours_is_left_alone(proxy: Proxy, upstream: Upstream, name: str) -> None:
    path, body, method = OTHERS[name]
    answer = b'{"choices": [{"index": 0, "delta": {"content": "<invoke name=\\"x\\">"}}]}'
    upstream.scripts["other"] = replying([answer[:9], answer[9:]], content_type="application/json")
    reply = post(proxy.port, path, body, {SCRIPT: "other", "x-test-id": name}, method)
    assert (reply.status, reply.body) == (200, answer)
    probe = proxy.wait_for_probe(name)
    assert (probe["comment"], probe["marked"], probe["metadata"], probe["stream"]) == ("", "", {}, "False")
    # Captures are written in order: when the next one is there, this one would be.
    ask(proxy, FORMS["openai.chat", False], "after", f"after {name}")
    proxy.wait_for_record(f"after {name}")
    assert not [record for record in proxy.records() if record["request"]["headers"].get("x-test-id") == name]


UNKNOWN: dict[str, tuple[str, bytes]] = {
    "a form on the path of an API": ("/v1/chat/completions", b"model=x&messages=y"),
    "no messages": ("/v1/chat/completions", b'{"model": "m", "messages": []}'),
    "embeddings": ("/v1/embeddings", b'{"model": "m", "input": "x"}'),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_nobody_understands_passes_and_is_recorded(proxy: Proxy, upstream: Upstream, name: str) -> None:
    path, body = UNKNOWN[name]
    answer = b'{"choices": [{"index": 0, "delta": {"content": "<invoke name=\\"x\\">"}}]}'
    upstream.scripts["unknown"] = replying([answer[:9], answer[9:]], content_type="application/json")
    reply = post(proxy.port, path, body, {SCRIPT: "unknown", "x-test-id": name})
    assert (reply.status, reply.body) == (200, answer)
    record = proxy.wait_for_record(name)
    assert (record["api"], record["findings"], record["notes"][0][:12]) == (None, [], "not judged: ")
    assert (record["request"]["body"].encode(), record["response"]["body"].encode()) == (body, answer)


@pytest.fixture(autouse=True)
def _after(upstream: Upstream) -> None:
    body = FORMS["openai.chat", False]["response"]["body"].encode()
    upstream.scripts.setdefault("after", replying([body], content_type="application/json"))


def test_a_request_with_a_coding_is_read_and_passed_on(proxy: Proxy, upstream: Upstream) -> None:
    seen: list[bytes] = []

    def script(peer: Peer) -> None:
        seen.append(peer.body)
        replying([json.dumps({"choices": []}).encode()], content_type="application/json")(peer)

    upstream.scripts["coded"] = script
    body = gzip.compress(FORMS["openai.chat", False]["request"]["body"].encode())
    headers = {SCRIPT: "coded", "x-test-id": "coded", "content-encoding": "gzip"}
    post(proxy.port, "/v1/chat/completions", body, headers)
    assert seen == [body]
    captured = proxy.wait_for_record("coded")
    assert captured["request"]["body"] == FORMS["openai.chat", False]["request"]["body"]
