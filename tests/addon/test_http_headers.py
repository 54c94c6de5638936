"""Bodies put in the place of others: heads say of them what mitmproxy would say."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from mitmproxy import http

from wirelint.addon.http_headers import add_field, body_of, make_open_ended, replace_body

HEADS: dict[str, tuple[tuple[bytes, bytes], ...]] = {
    "a length": ((b"Host", b"a"), (b"Content-Length", b"4"), (b"accept", b"*/*")),
    "no length": ((b"host", b"a"),),
    "two lengths": ((b"content-length", b"4"), (b"host", b"a"), (b"Content-Length", b"5")),
    "chunked": ((b"transfer-encoding", b"chunked"),),
    "chunked with a length": ((b"Transfer-Encoding", b"chunked"), (b"content-length", b"4")),
    "gzip": ((b"content-encoding", b"gzip"), (b"content-length", b"4")),
    "identity": ((b"Content-Encoding", b"identity"), (b"content-length", b"4")),
    "no coding of that name": ((b"content-encoding", b"lz"), (b"content-length", b"4")),
}
MAKE: list[Callable[[], http.Message]] = [
    lambda: http.Request.make("POST", "https://a.example/v1", b"{}"),
    lambda: http.Response.make(200, b"{}"),
]


@pytest.mark.parametrize("make", MAKE, ids=["request", "response"])
@pytest.mark.parametrize("name", HEADS)
def test_a_body_is_replaced_as_mitmproxy_does_it(name: str, make: Callable[[], http.Message]) -> None:
    ours, theirs = make(), make()
    for message in (ours, theirs):
        message.headers.fields = HEADS[name]
    replace_body(ours, b'{"model": "\xc3\xa5"}')
    theirs.content = b'{"model": "\xc3\xa5"}'
    assert ours.headers.fields == theirs.headers.fields
    assert ours.get_content(strict=False) == theirs.get_content(strict=False)


def test_what_vouches_for_the_body_goes_with_it() -> None:
    message = http.Response.make(200, b"{}")
    message.headers.fields = ((b"Content-Digest", b"sha-256=:x:"), (b"content-length", b"2"))
    replace_body(message, b"{ }")
    assert list(message.headers.fields) == [(b"content-length", b"3")]


@pytest.mark.parametrize("make", MAKE, ids=["request", "response"])
@pytest.mark.parametrize(
    ("coding", "raw"),
    [
        pytest.param(None, b"{}", id="none"),
        pytest.param(b"identity", b"{}", id="identity"),
        pytest.param(b"gzip", gzip.compress(b"{}", mtime=0), id="gzip"),
        pytest.param(b"gzip", b"{}", id="not what it says"),
        pytest.param(b"lz", b"{}", id="no coding of that name"),
        pytest.param(None, None, id="no body"),
    ],
)
def test_a_body_without_its_codings(make: Callable[[], http.Message], coding: bytes | None, raw: bytes | None) -> None:
    message = make()
    message.headers.fields = ((b"Content-Encoding", coding),) if coding is not None else ()
    message.raw_content = raw
    assert body_of(message, 1 << 20) == message.get_content(strict=False)


def test_a_field_is_added_as_mitmproxy_does_it() -> None:
    ours, theirs = http.Response.make(200, b"{}"), http.Response.make(200, b"{}")
    add_field(ours, "x-wirelint", 'rewrote; rules="xml-leak"')
    theirs.headers.add("x-wirelint", 'rewrote; rules="xml-leak"')
    assert ours.headers == theirs.headers


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([(b"Transfer-Encoding", b"chunked")], [(b"Transfer-Encoding", b"chunked")]),
        ([(b"content-length", b"9")], [(b"transfer-encoding", b"chunked")]),
        ([(b"transfer-encoding", b"gzip, chunked")], [(b"transfer-encoding", b"chunked")]),
        ([(b"content-type", b"text/event-stream")], [(b"content-type", b"text/event-stream")]),
    ],
    ids=["chunked", "a length", "coded", "ends with its connection"],
)
def test_the_head_of_a_reply_of_any_length(fields: list[tuple[bytes, bytes]], told: list[tuple[bytes, bytes]]) -> None:
    request, response = http.Request.make("POST", "https://a.example/v1"), http.Response.make(200)
    response.headers.fields = tuple(fields)
    make_open_ended(request, response)
    assert list(response.headers.fields) == told
