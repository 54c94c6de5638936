"""What a person sees in mitmweb: comment, marker, body, and filters that find an exchange."""

from __future__ import annotations

import importlib.metadata
import json
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.build import Talk, User, chunk, sse
from tests.live.harness import SCRIPT, Proxy, Upstream, post, replying, running, wait_until

pytestmark = pytest.mark.live

MAJOR = int(importlib.metadata.version("mitmproxy").split(".")[0])
CUT = sse(chunk({"role": "assistant", "content": "Half a "}), done=False).encode()
WELL = sse(chunk({"role": "assistant", "content": "All of it."}), chunk({}, "stop")).encode()


class Web:
    """mitmweb's REST interface. Version 11 asks for no password."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> bytes:
        request = urllib.request.Request(self._base + path, headers={"authorization": "Bearer secret"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return bytes(reply.read())

    def flows(self) -> dict[str, dict[str, Any]]:
        return {dict(flow["request"]["headers"]).get("x-test-id", ""): flow for flow in json.loads(self.get("/flows"))}


@pytest.fixture(scope="module")
def browsed(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, Web]]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    upstream.scripts |= {
        "cut": replying([CUT[:60], CUT[60:]], content_type="text/event-stream"),
        "well": replying([WELL[:60], WELL[60:]], content_type="text/event-stream"),
    }
    options = [f"web_port={port}", "web_open_browser=false", *(["web_password=secret"] if MAJOR >= 12 else [])]
    body = Talk().record("openai.chat", True)["request"]["body"].encode()
    with running(tmp_path_factory.mktemp("web"), upstream.url, *options, tool="mitmweb") as proxy:
        for name in ("cut", "well"):
            post(proxy.port, "/v1/chat/completions", body, {SCRIPT: name, "x-test-id": name})
            proxy.wait_for_record(name)
        post(proxy.port, "/other", b"{}", {SCRIPT: "well", "x-test-id": "other"})
        proxy.wait_for_probe("other")
        web = Web(port)
        wait_until(lambda: len(web.flows()) == 3, "three flows", proxy)
        yield proxy, web


def test_comment_and_marker(browsed: tuple[Proxy, Web]) -> None:
    flows = browsed[1].flows()
    assert {name: flow["comment"].split(" · ")[0] for name, flow in flows.items()} == {
        "cut": "truncated-stream",
        "well": "ok",
        "other": "",
    }
    assert {name: flow["marked"] for name, flow in flows.items()} == {"cut": "‼", "well": "", "other": ""}


def test_the_body_is_there_after_a_stream(browsed: tuple[Proxy, Web]) -> None:
    web = browsed[1]
    for name, body in (("cut", CUT), ("well", WELL)):
        flow = web.flows()[name]
        assert flow["response"]["contentLength"] == len(body)
        assert web.get(f"/flows/{flow['id']}/response/content.data") == body


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("~meta truncated-stream", {"cut"}),
        ("~meta wirelint.api", {"cut", "well"}),
        ("~meta wirelint.model.*acme", {"cut", "well"}),
        ("~meta wirelint.severity.*error", {"cut"}),
        ("~comment truncated-stream", {"cut"}),
        ("~comment ^ok", {"well"}),
        ("~marked", {"cut"}),
        ("~marker bangbang", {"cut"}),
        ("~bs Half", {"cut"}),
    ],
)
def test_filters(browsed: tuple[Proxy, Web], expression: str, found: set[str]) -> None:
    proxy, web = browsed
    dump = web.get(f"/flows/dump?filter={urllib.parse.quote(expression)}")
    path = proxy.folder / "dump.mitm"
    path.write_bytes(dump)
    from tests.live.test_captures import read_flows

    assert {flow.request.headers["x-test-id"] for flow in read_flows(path)} == found


RULES = Path(__file__).resolve().parents[1] / "addon" / "repairs"


@pytest.mark.parametrize("stream", [True, False])
def test_a_repaired_exchange_shows_what_was_sent_on(upstream: Upstream, tmp_path: Path, stream: bool) -> None:
    """As in any proxy: the request that the upstream got, the response that the client got."""
    record = Talk(history=(User("Say «hello» to them."),), text="I say «hello».").record("openai.chat", stream)
    kind, reply = record["response"]["headers"]["content-type"], record["response"]["body"].encode()
    upstream.scripts["repaired"] = replying([reply[:60], reply[60:]], content_type=kind)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = [f"web_port={port}", "web_open_browser=false", *(["web_password=secret"] if MAJOR >= 12 else [])]
    options += ["wirelint_fix=unsafe", f"wirelint_rules={RULES}", "wirelint_select=XX901"]
    with running(tmp_path, upstream.url, *options, tool="mitmweb") as proxy:
        given = {SCRIPT: "repaired", "x-test-id": "repaired"}
        answer = post(proxy.port, "/v1/chat/completions", record["request"]["body"].encode(), given)
        captured = proxy.wait_for_record("repaired")
        web = Web(port)
        flow = wait_until(lambda: web.flows().get("repaired", {}), "the flow", proxy)
        assert flow["comment"].startswith("murmur · 2 fixed")
        assert dict(flow["response"]["headers"])["x-wirelint"] == answer.headers["x-wirelint"]
        for side, body in (("request", captured["forwarded"]["body"]), ("response", captured["delivered"]["body"])):
            assert web.get(f"/flows/{flow['id']}/{side}/content.data") == body.encode()
        assert answer.body == captured["delivered"]["body"].encode() != reply
