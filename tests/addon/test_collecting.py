"""Which replies mitmproxy collects for us instead of streaming them."""

from __future__ import annotations

import pytest
from mitmproxy import http
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.test import taddons

from wirelint.addon.http_headers import is_within
from wirelint.addon.streamed_reply import can_collect

JSON = "application/json"


def _reply(kind: str | None, length: str | None) -> http.Response:
    response = http.Response.make(200, b"", {})
    response.raw_content = None
    for name, value in (("content-type", kind), ("content-length", length)):
        response.headers.pop(name, None)
        if value is not None:
            response.headers[name] = value
    return response


@pytest.mark.parametrize(
    ("kind", "length", "large", "expected"),
    [
        pytest.param(JSON, "4096", None, True, id="a short document"),
        pytest.param("Application/JSON; charset=utf-8", "0", None, True, id="in other letters, empty"),
        pytest.param("application/problem+json", "12", None, True, id="of a kind of JSON"),
        pytest.param(JSON, str(1 << 20), None, False, id="a long document"),
        pytest.param(JSON, None, None, False, id="of unknown length: some send blanks to keep the connection"),
        pytest.param(JSON, "12, 12", None, False, id="an odd length"),
        pytest.param(JSON, "-1", None, False, id="less than nothing"),
        pytest.param("text/event-stream", "4096", None, False, id="a stream"),
        pytest.param(None, "4096", None, False, id="of no type"),
        pytest.param(JSON, "4096", "1k", False, id="mitmproxy is to stream large bodies"),
    ],
)
def test_short_documents_are_collected(kind: str | None, length: str | None, large: str | None, expected: bool) -> None:
    with taddons.context(Proxyserver()) as context:
        context.options.stream_large_bodies = large
        assert can_collect(_reply(kind, length)) is expected


@pytest.mark.parametrize(("length", "expected"), [("5", True), ("6", False), ("", False), ("५", False)])
def test_a_length_within_a_limit(length: str, expected: bool) -> None:
    assert is_within(_reply(JSON, length), 5) is expected
