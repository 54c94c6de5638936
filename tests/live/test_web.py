"""What a person sees in mitmweb: comment, marker, body, and filters that find an exchange."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.build import Talk, chunk, in_pieces, schema, sse
from tests.live.forked import Forked
from tests.live.harness import (
    CHUNKED,
    SCRIPT,
    Client,
    Peer,
    Proxy,
    Upstream,
    free_port,
    post,
    replying,
    running,
    scripted,
    wait_until,
)
from tests.live.leaks import CLEAN, DAMAGED, ask, body_of, kind_of
from tests.live.scenes import OPENAI
from tests.selection import sampled

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

    def ask(self, command: str, *arguments: str) -> dict[str, Any]:
        """What a command of the prompt answers."""
        twice = {"cookie": "_xsrf=a1; _mitmproxy_xsrf=a1", "x-xsrftoken": "a1"}  # no page of a stranger could send it
        headers = {"authorization": "Bearer secret", "content-type": "application/json", **twice}
        data = json.dumps({"arguments": arguments}).encode()
        request = urllib.request.Request(f"{self._base}/commands/{command}", data, headers, method="POST")
        with urllib.request.urlopen(request, timeout=10) as reply:
            return dict(json.loads(reply.read()))

    def view(self, flow: str, side: str, name: str = "auto") -> str:
        """What the content view shows, under the name that it goes by."""
        shown = json.loads(self.get(f"/flows/{flow}/{side}/content/{urllib.parse.quote(name)}.json"))
        if "text" in shown:
            return f"{shown['view_name']}\n{shown['text']}"
        return "\n".join([shown["description"], *("".join(text for _, text in line) for line in shown["lines"])])

    def flows(self) -> dict[str, dict[str, Any]]:
        return {dict(flow["request"]["headers"]).get("x-test-id", ""): flow for flow in json.loads(self.get("/flows"))}


@contextlib.contextmanager
def opened(folder: Path, upstream: str, *options: str) -> Iterator[tuple[Proxy, Web]]:
    """mitmweb with its REST interface."""
    port = free_port()
    given = [f"web_port={port}", "web_open_browser=false", *(["web_password=secret"] if MAJOR >= 12 else [])]
    with running(folder, upstream, *given, *options, tool="mitmweb") as proxy:
        proxy.wait_for("Web server listening at ")
        yield proxy, Web(port)


def test_an_exchange_is_shown_with_its_verdict_and_its_whole_body(upstream: Upstream, tmp_path: Path) -> None:
    bodies = {"cut": CUT, "well": WELL}
    with opened(tmp_path, upstream.url) as (proxy, web):
        for name, body in bodies.items():
            upstream.scripts[name] = replying([body[:60], body[60:]], content_type="text/event-stream")
            ask(proxy, OPENAI, CLEAN[OPENAI, True], name)
            proxy.wait_for_record(name)
        post(proxy.port, "/other", b"{}", {SCRIPT: "well", "x-test-id": "other"})
        flows = wait_until(lambda: found if len(found := web.flows()) == 3 else {}, "three flows", proxy)
        shown = {name: (flow["comment"].split(" · ")[0], flow["marked"]) for name, flow in flows.items()}
        assert shown == {"cut": ("truncated-stream", "‼"), "well": ("ok", ""), "other": ("", "")}
        for name, body in bodies.items():
            assert flows[name]["response"]["contentLength"] == len(body)
            assert web.get(f"/flows/{flows[name]['id']}/response/content.data") == body


def test_a_repaired_exchange_shows_what_was_sent_on(upstream: Upstream, tmp_path: Path) -> None:
    """As in any proxy: the request that the upstream got, the response that the client got."""
    record = DAMAGED[OPENAI, True]
    upstream.scripts["repaired"] = replying(in_pieces(body_of(record), 60), **kind_of(record))
    with opened(tmp_path, upstream.url, "wirelint_fix=unsafe") as (proxy, web):
        answer = ask(proxy, OPENAI, record, "repaired")
        captured = proxy.wait_for_record("repaired")
        flow = wait_until(lambda: web.flows().get("repaired", {}), "the flow", proxy)
        assert " · 2 fixed" in flow["comment"]
        assert dict(flow["response"]["headers"])["x-wirelint"] == answer.headers["x-wirelint"]
        for side, body in (("request", captured["forwarded"]["body"]), ("response", captured["delivered"]["body"])):
            assert web.get(f"/flows/{flow['id']}/{side}/content.data") == body.encode()
        assert answer.body == captured["delivered"]["body"].encode() != body_of(record)


TOOLS = {"search": ("Searches.", schema(["q"], q="string"))}
LEAK = Talk(tools=TOOLS, text='I look.\n<invoke name="search"><arg name="q">launch</arg></invoke>')


def test_the_content_view_while_a_stream_runs_and_in_a_capture_that_is_opened_again(
    upstream: Upstream, tmp_path: Path
) -> None:
    record = LEAK.record("openai.chat", True)
    body = record["response"]["body"].encode()
    half, go_on = body.index(b"<invo"), threading.Event()
    upstream.scripts["slow"] = scripted(CHUNKED, body[:half], go_on, body[half:], Peer.finish)
    with opened(tmp_path / "live", upstream.url) as (proxy, web), Client(proxy.port) as client:
        client.ask("/v1/chat/completions", record["request"]["body"].encode(), {SCRIPT: "slow", "x-test-id": "slow"})
        client.head()
        name = wait_until(lambda: web.flows().get("slow", {}), "the flow", proxy)["id"]

        def partial() -> str:
            page = web.view(name, "response")
            return page if "in progress" in page else ""

        while_it_runs = wait_until(partial, "a part of the reply", proxy)
        assert while_it_runs.startswith("LLM exchange\nopenai.chat · acme-1 · 200 stream")
        assert "reply      I look.\n           … more may come" in while_it_runs
        assert "in progress" in web.view(name, "request")
        first = web.flows()["slow"]["response"]["contentHash"]
        go_on.set()
        client.rest()
        proxy.wait_for_record("slow")
        assert web.flows()["slow"]["response"]["contentHash"] != first
        pages = [web.view(name, side) for side in ("request", "response")]
        assert "in progress" not in "".join(pages)
        assert "‼ error xml-leak (gateway)" in pages[1]
        assert web.get(f"/flows/{name}/response/content.data") == body
        assert "data: " in web.view(name, "response", "raw")

        findings = web.ask("wirelint.findings")["value"]
        assert any("error xml-leak [gateway]" in line for line in findings)
        assert web.ask("wirelint.explain", "xml-leak")["value"][0].startswith("LK101 xml-leak")
        assert "did you mean xml-leak" in web.ask("wirelint.explain", "xml-lek")["error"]
        assert f"{name[:8]}: " in web.ask("wirelint.fix", "@all")["value"][0]
        copies = [flow for flow in json.loads(web.get("/flows")) if flow["id"] != name]
        assert [flow["comment"].split(" · ")[0] for flow in copies] == ["fix tried"]
        assert "+ → search" in web.view(copies[0]["id"], "response")
    capture = proxy.capture("flows.mitm")
    with opened(tmp_path / "again", upstream.url, f"rfile={capture}") as (proxy, web):
        flow = wait_until(lambda: web.flows().get("slow", {}), "the flow", proxy)
        assert flow["comment"].startswith("xml-leak")
        assert flow["marked"] == "‼"
        again = [web.view(flow["id"], side) for side in ("request", "response")]
        assert [page.split("\n")[2:] for page in again] == [page.split("\n")[2:] for page in pages]


COLUMNS = {
    "ours": ((), ["icon", "comment", "status", "time"]),
    "the user's": (("--set", "web_columns=path", "--set", "web_columns=time"), ["path", "time"]),
}


@pytest.mark.parametrize("name", sampled(list(COLUMNS), 1))
def test_the_columns_of_wirelint_proxy(name: str, upstream: Upstream, tmp_path: Path) -> None:
    """The comment is the only column of mitmweb that an addon fills. Its log says what to set for clients."""
    given, expected = COLUMNS[name]
    port = free_port()
    web = ["web_port=" + str(port), "web_open_browser=false", f"confdir={tmp_path}", "wirelint_captures="]
    web += ["web_password=secret"] if MAJOR >= 12 else []
    command = ["proxy", "--upstream", upstream.url, "--port", "0", "--web", *given]
    command += [word for option in web for word in ("--set", option)]
    output = tmp_path / "output.txt"
    proxy = Proxy(Forked("wirelint", command, tmp_path, output), output, tmp_path)
    try:
        said = proxy.wait_for("for clients: export ", 2)
        ports = {line.partition("http://127.0.0.1:")[2].partition("/")[0] for line in said}
        assert len(ports - {"0"}) == 1
        options = json.loads(Web(port).get("/options"))
        assert options["web_columns"]["value"] == expected
        upstream.scripts["well"] = replying([WELL], content_type="text/event-stream")
        request = CLEAN[OPENAI, True]["request"]["body"].encode()
        number = int(max(ports, key=int))
        post(number, "/v1/chat/completions", request, {SCRIPT: "well", "x-test-id": "model"})
        post(number, "/other?key=1", b"{}", {SCRIPT: "well", "x-test-id": "other"})
        flows = wait_until(
            lambda: found if "ok" in (found := Web(port).flows())["model"]["comment"] else {}, "it", proxy
        )
        paths = [flows[name]["comment"].rpartition(" | ")[2] for name in ("model", "other")]
        assert (paths == ["POST /v1/chat/completions", "POST /other"]) is (name == "ours"), paths
    finally:
        proxy.stop()
