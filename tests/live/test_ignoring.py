"""The header `x-wirelint-ignore` through a real mitmdump: no upstream ever gets it, and it is obeyed and captured."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import pytest

from tests.build import Talk, User
from tests.live.harness import PATIENCE, SCRIPT, Upstream, post, replying, running, scripted
from tests.live.leaks import ask, body_of
from tests.live.scenes import OPENAI
from tests.selection import sampled

HEADER = "x-wirelint-ignore"
LEAK = Talk((User("Hello"),), text="Hello to you.<|im_end|>").record("openai.chat", False)
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: aGVsbG8="


def leaking(upstream: Upstream, name: str) -> list[dict[str, str]]:
    """The headers of the requests that the upstream gets; it answers with a leak."""
    seen: list[dict[str, str]] = []
    reply = replying([body_of(LEAK)], content_type="application/json")
    upstream.scripts[name] = scripted(lambda peer: seen.append(peer.headers), reply)
    return seen


@pytest.mark.parametrize("option", sampled(["wirelint_fix=unsafe", "stream_large_bodies=10"], 1))
def test_the_header_never_arrives(upstream: Upstream, tmp_path: Path, option: str) -> None:
    seen = leaking(upstream, "seen")
    with running(tmp_path, upstream.url, option) as proxy:
        reply = ask(proxy, OPENAI, LEAK, "seen", {"X-Wirelint-Ignore": "LK102, xml-leek"})
        assert "<|im_end|>" in json.loads(reply.body)["choices"][0]["message"]["content"], "silent rules repair nothing"
        post(proxy.port, "/cart", b'{"a": 1}', {SCRIPT: "seen", HEADER: "xml-leek"})
        with contextlib.closing(socket.create_connection(("127.0.0.1", proxy.port), PATIENCE)) as client:
            fields = f"Host: x\r\n{UPGRADE}\r\n{SCRIPT}: seen\r\n{HEADER}: LK102"
            client.sendall(f"GET /v1/responses HTTP/1.1\r\n{fields}\r\n\r\n".encode())
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert len(proxy.wait_for(r"x-wirelint-ignore: unknown rule 'xml-leek'; did you mean xml-leak\?")) == 1
    assert [HEADER in headers for headers in seen] == [False] * 3
