"""The header `x-wirelint-ignore` through a real mitmdump: no upstream ever gets it, and it is obeyed and captured."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.build import Talk, User
from tests.live.harness import PATIENCE, SCRIPT, Peer, Proxy, Upstream, post, running

pytestmark = pytest.mark.live

HEADER = "x-wirelint-ignore"
LEAK = Talk((User("Hello"),), text="Hello to you.<|im_end|>").record("openai.chat", False)
MODES = {
    "nothing is touched": (),
    "repairing": ("wirelint_fix=unsafe",),
    "requests stream": ("stream_large_bodies=10",),
}


@pytest.fixture(scope="module")
def seen(upstream: Upstream) -> list[dict[str, str]]:
    """The headers of the requests that the upstream gets; it answers with a leak."""
    seen: list[dict[str, str]] = []

    def script(peer: Peer) -> None:
        seen.append(peer.headers)
        body = LEAK["response"]["body"].encode()
        peer.head(200, content_type="application/json", content_length=str(len(body)))
        peer.send(body)

    upstream.scripts["seen"] = script
    return seen


@pytest.fixture(scope="module", params=MODES)
def mode(
    request: pytest.FixtureRequest, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("ignoring"), upstream.url, *MODES[request.param]) as proxy:
        yield proxy


def test_it_never_arrives(mode: Proxy, seen: list[dict[str, str]]) -> None:
    del seen[:]
    body = LEAK["request"]["body"].encode()
    fields = {**LEAK["request"]["headers"], SCRIPT: "seen", "X-Wirelint-Ignore": "LK102, xml-leek"}
    reply = post(mode.port, "/v1/chat/completions", body, fields)
    assert "<|im_end|>" in json.loads(reply.body)["choices"][0]["message"]["content"], "silent rules repair nothing"
    post(mode.port, "/cart", b'{"a": 1}', fields)
    with contextlib.closing(socket.create_connection(("127.0.0.1", mode.port), PATIENCE)) as client:
        lines = "\r\n".join(f"{name}: {value}" for name, value in fields.items())
        upgrade = (
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: aGVsbG8="
        )
        client.sendall(f"GET /v1/responses HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n{lines}\r\n\r\n".encode())
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert len(seen) == 3
    assert not [headers for headers in seen if HEADER in headers]
    assert len(mode.wait_for(r"x-wirelint-ignore: unknown rule 'xml-leek'; did you mean xml-leak\?")) == 1


def test_it_is_captured(upstream: Upstream, proxy: Proxy, seen: list[dict[str, str]]) -> None:
    body = LEAK["request"]["body"].encode()
    for name, value in (("silent", "control-token-leak"), ("heard", "ID")):
        fields = {**LEAK["request"]["headers"], SCRIPT: "seen", "x-test-id": name, HEADER: value}
        post(proxy.port, "/v1/chat/completions", body, fields)
        line = proxy.wait_for_record(name)
        assert line["request"]["headers"][HEADER] == value
        assert [found["code"] for found in line["findings"]] == ([] if name == "silent" else ["LK102"])
