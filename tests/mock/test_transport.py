"""The wire itself: chunks, codings, early deaths, and clients that leave."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from tests.build import events_of
from tests.mock.client import make_body
from tests.mock.conftest import Post
from wirelint.mock import MockServer

DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: zlib.decompress(data, 31),
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def raw_request(body: object, scenario: str, *, version: str = "1.1", path: str = "/v1/chat/completions") -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/{version}\r\nhost: mock\r\nx-wirelint-mock: {scenario}\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def talk(server: MockServer, request: bytes) -> bytes:
    """Everything the server sends until it closes (or falls silent: a kept-alive connection)."""
    with socket.create_connection((server.host, server.port), timeout=2) as client:
        client.sendall(request)
        received = b""
        while not received.endswith(b"\r\n0\r\n\r\n"):
            data = client.recv(65536)
            if not data:
                break
            received += data
    return received


def split_chunks(answer: bytes) -> list[bytes]:
    """The transfer chunks of a raw answer, without the last, empty one."""
    rest = answer.partition(b"\r\n\r\n")[2]
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length:
            chunks.append(rest[:length])
        rest = rest[length + 2 :]
    return chunks


def body_of(scenario: str) -> bytes:
    """The body of the first request to a fresh server, so that ids and times are those of the seed."""
    with MockServer(seed=7) as server:
        return b"".join(split_chunks(talk(server, raw_request(make_body("openai", stream=True), scenario))))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_ignore_events(server: MockServer, size: int) -> None:
    chunks = split_chunks(talk(server, raw_request(make_body("openai", stream=True), f"chunk={size}")))
    assert {len(chunk) for chunk in chunks[:-1]} <= {size}
    assert 0 < len(chunks[-1]) <= size
    assert [*events_of(b"".join(chunks).decode())][-1] == (None, "[DONE]")


def test_equal_seeds_give_equal_bytes_and_others_do_not() -> None:
    def first(seed: int) -> bytes:
        with MockServer(seed=seed) as server:
            return talk(server, raw_request(make_body("openai", stream=True), ""))

    assert first(3) == first(3)
    assert first(3) != first(4)


@pytest.mark.parametrize("chunk", ["", ";chunk=5"], ids=["events", "recut"])
@pytest.mark.parametrize("coding", DECODERS)
def test_coding_keeps_the_body(coding: str, chunk: str) -> None:
    plain = body_of("")
    coded = body_of(f"encoding={coding}{chunk}")
    assert coded != plain
    assert DECODERS[coding](coded) == plain


@pytest.mark.parametrize(
    ("scenario", "accepted", "coding"),
    [
        ("", "gzip, br", None),
        ("encoding=auto", "gzip, br;q=0.5", "br"),
        ("encoding=auto", "identity", None),
        ("encoding=gzip", "identity", "gzip"),
    ],
)
def test_accept_encoding_counts_when_asked(post: Post, scenario: str, accepted: str, coding: str | None) -> None:
    body = make_body("openai", stream=False)
    response = post("openai", body, scenario, headers={"accept-encoding": accepted})
    assert response.headers.get("content-encoding") == coding


def test_crlf_bom_and_comments_change_nothing_but_the_bytes() -> None:
    plain = body_of("")
    dressed = body_of("crlf;bom;comments")
    assert dressed.startswith(b"\xef\xbb\xbf: keep-alive\r\n\r\n")
    assert dressed.count(b"\r\n") == dressed.count(b"\n")
    assert [*events_of(dressed.decode())] == [*events_of(plain.decode())]


@pytest.mark.parametrize("framing", ["", ";content_length"], ids=["chunked", "length"])
def test_connection_dies_after_n_bytes(server: MockServer, framing: str) -> None:
    answer = talk(server, raw_request(make_body("openai", stream=True), f"cut=100{framing}"))
    body = answer.partition(b"\r\n\r\n")[2]
    assert not answer.endswith(b"0\r\n\r\n")
    if framing:
        promised = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
        assert promised
        assert (len(body), int(promised[1]) > 100) == (100, True)
    else:
        assert sum(map(len, split_chunks(answer))) == 100


def test_connection_is_kept_alive_and_pipelined_requests_are_answered(server: MockServer) -> None:
    one = raw_request(make_body("openai", stream=False), "pace=1;chunk=200")
    with socket.create_connection((server.host, server.port), timeout=2) as client:
        client.sendall(one + one)
        received = b""
        while received.count(b"\r\n0\r\n\r\n") < 2:
            data = client.recv(65536)
            assert data
            received += data
    assert received.count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_stall_ends_when_the_client_leaves(stream: bool) -> None:
    with MockServer() as server:
        with socket.create_connection((server.host, server.port), timeout=2) as client:
            fault = "stream-stall" if stream else "silent-hang"
            client.sendall(raw_request(make_body("openai", stream=stream), f"{fault};seconds=600"))
            if stream:
                assert client.recv(100)
            assert not server.exchanges
        deadline = time.monotonic() + 5
        while not server.exchanges and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [exchange.complete for exchange in server.exchanges] == [False]


def test_close_ends_a_stalled_response() -> None:
    server = MockServer()
    server.start()
    with socket.create_connection((server.host, server.port), timeout=2) as client:
        client.sendall(raw_request(make_body("openai", stream=True), "stream-stall;seconds=600"))
        assert client.recv(100)
        server.close()
        server.close()
        while client.recv(65536):
            pass
    with pytest.raises(ConnectionError):
        socket.create_connection((server.host, server.port), timeout=2)


def test_exchanges_are_kept_as_they_passed() -> None:
    with MockServer() as server:
        answer = talk(server, raw_request(make_body("openai", stream=True), "xml-leak;encoding=gzip"))
    (kept,) = server.exchanges
    assert (kept.sent, kept.status, kept.complete) == (b"".join(split_chunks(answer)), 200, True)
    assert kept.scenario == "xml-leak+encoding=gzip"
    assert json.loads(kept.request_body)["model"] == "some-model"


def test_faults_of_the_server_take_turns() -> None:
    with MockServer("think-leak", "healthy", "xml-leak+dialect=kimi_k2") as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
        for number in range(6):
            connection.request("POST", "/v1/chat/completions", json.dumps(make_body("openai", stream=number % 2 == 1)))
            connection.getresponse().read()
        connection.close()
    played = [exchange.scenario for exchange in server.exchanges]
    assert played == ["think-leak", "healthy", "xml-leak+dialect=kimi_k2"] * 2


def test_expect_continue(server: MockServer) -> None:
    request = raw_request(make_body("openai", stream=False), "")
    head, _, body = request.partition(b"\r\n\r\n")
    with socket.create_connection((server.host, server.port), timeout=2) as client:
        client.sendall(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_gets_400(server: MockServer) -> None:
    with socket.create_connection((server.host, server.port), timeout=2) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
