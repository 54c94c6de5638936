"""Every API through a real mitmdump that repairs, with the vendor's own SDK as the client."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.live.harness import PATIENCE, Peer, Proxy, Upstream, post, replying, running
from tests.live.scenes import FOUND, PREAMBLE, Seen
from tests.live.vendors import DOORS, Door
from tests.selection import rotated, sampled
from wirelint.mock.answer import Pause
from wirelint.mock.scenario import HEADER
from wirelint.mock.service import Service

pytestmark = pytest.mark.live

LEAKING = "fault=xml-leak;dialect=kimi_invoke_arg"


def name_of(door: Door, stream: bool, what: str) -> str:
    return f"{door.name} {'stream' if stream else 'whole'} {what}"


@dataclass
class Vendors:
    """All of them, on one port; remembers by test what was asked and what was said."""

    service: Service = field(default_factory=lambda: Service(seed=3))
    heard: dict[str, Peer] = field(default_factory=dict)
    said: dict[str, bytes] = field(default_factory=dict)

    def script(self, peer: Peer) -> None:
        answer = self.service.answer(1, "POST", peer.target, peer.headers, peer.body)
        steps = [step for step in answer.steps if not isinstance(step, Pause)]
        test = peer.headers["x-test-id"]
        self.heard[test], self.said[test] = peer, b"".join(steps)
        fields = {name.replace("-", "_"): value for name, value in answer.headers}
        replying(steps, answer.status, **fields)(peer)


@pytest.fixture(scope="module")
def vendors() -> Vendors:
    return Vendors()


@pytest.fixture(scope="module")
def every_vendor(vendors: Vendors) -> Iterator[Upstream]:
    upstream = Upstream(vendors.script)
    yield upstream
    upstream.close()
    assert not upstream.failures


@pytest.fixture(scope="module")
def through(every_vendor: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("vendors"), every_vendor.url, "wirelint_fix=unsafe") as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("door", "tools", "stream"),
    [
        pytest.param(door, tools, stream, id=name_of(door, stream, "call" if tools else "text"))
        for door in DOORS
        for tools, stream in rotated(
            [(tools, stream) for tools in (True, False) if door.makes_calls or not tools for stream in (False, True)],
            door.name,
        )
    ],
)
def test_a_clean_reply_is_as_it_came(
    vendors: Vendors, every_vendor: Upstream, through: Proxy, door: Door, tools: bool, stream: bool
) -> None:
    test = name_of(door, stream, f"clean {tools}")
    direct = door.ask(every_vendor.url, stream=stream, tools=tools, headers={"x-test-id": f"{test} direct"})
    seen = door.ask(through.url, stream=stream, tools=tools, headers={"x-test-id": test, "session_id": test})
    assert _without_ids(seen) == _without_ids(direct)
    assert seen.finish == ((door.called if tools else door.ended) or None)
    assert [call[1:] for call in seen.calls] == ([("search_notes", FOUND)] if tools else [])
    record = through.wait_for_record(test)
    assert (record["api"], record["end"], record["findings"]) == (door.api, "complete", [])
    assert ("delivered" in record, "forwarded" in record, record.get("notes", [])) == (False, False, [])
    # The SDK's own request once more, so that the bytes of the reply can be seen.
    peer = vendors.heard[test]
    again = post(through.port, peer.target, peer.body, {**_plain(peer.headers), "x-test-id": f"{test} again"})
    assert again.body == vendors.said[f"{test} again"] != b""
    assert again.complete


@pytest.mark.parametrize(
    ("door", "chunk", "stream"),
    [
        pytest.param(door, chunk, stream, id=f"{name_of(door, stream, 'leak')}{chunk}")
        for door in DOORS
        if door.api != "ollama.generate"  # whose requests declare no tools
        for chunk, stream in rotated([("", True), (";chunk=7", True), ("", False), (";chunk=7", False)], door.name)
    ],
)
def test_a_call_in_the_text_becomes_a_call(
    every_vendor: Upstream, through: Proxy, door: Door, chunk: str, stream: bool
) -> None:
    test = name_of(door, stream, f"leak{chunk}")
    scenario = {HEADER: LEAKING + chunk}
    direct = door.ask(every_vendor.url, stream=stream, tools=True, headers={**scenario, "x-test-id": f"{test} direct"})
    assert (direct.calls, "<invoke name=" in direct.text) == ((), True), "without the proxy the fault is seen"
    seen = door.ask(through.url, stream=stream, tools=True, headers={**scenario, "x-test-id": test, "session_id": test})
    record = through.wait_for_record(test)
    assert (record["api"], record["end"]) == (door.api, "complete")
    names = {finding["name"] for finding in record["findings"]}
    if not door.makes_calls:
        assert seen == direct, "calls are text here: there is nothing to repair"
        assert "delivered" not in record
        return
    assert "xml-leak" in names
    assert seen.text.strip() == PREAMBLE
    assert [call[1:] for call in seen.calls] == [("search_notes", FOUND)]
    assert seen.finish == door.called
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{8,40}", id_) for id_, _, _ in seen.calls) is door.ids
    assert _body(record["response"]) != _body(record["delivered"])
    assert record["fixes"]


@pytest.mark.parametrize(
    ("door", "stream"),
    [
        pytest.param(door, stream, id=name_of(door, stream, "error"))
        for door in sampled(DOORS, 5)
        for stream in rotated([False, True], door.name)
    ],
)
def test_an_error_is_as_it_came(every_vendor: Upstream, through: Proxy, door: Door, stream: bool) -> None:
    test = name_of(door, stream, "error")
    scenario = {HEADER: "fault=http-error;status=400"}

    def failure(url: str, name: str) -> tuple[str, str]:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each SDK has a kind of its own, and shows it below
            door.ask(url, stream=stream, tools=False, headers={**scenario, "x-test-id": name})
        return type(raised.value).__name__, str(raised.value)

    direct, seen = failure(every_vendor.url, f"{test} direct"), failure(through.url, test)
    assert seen[0] == direct[0]
    assert "overloaded" in seen[1] or "400" in seen[1]
    record = through.wait_for_record(test)
    assert (record["api"], record["response"]["status"], "delivered" in record) == (door.api, 400, False)


def test_the_capture_is_judged_the_same_offline(through: Proxy) -> None:
    """Runs last: what was found while the traffic passed is what the capture shows afterwards."""
    records = through.records()
    done = subprocess.run(
        [sys.executable, "-m", "wirelint", "check", "--output-format", "jsonl", str(through.capture())],
        capture_output=True,
        timeout=PATIENCE * 3,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    offline = sorted(
        (found["exchange"], found["name"], found.get("pointer", ""), found["message"])
        for found in map(json.loads, done.stdout.splitlines())
    )
    live = sorted(
        (record["id"], found["name"], found.get("pointer", ""), found["message"])
        for record in records
        for found in record["findings"]
    )
    assert offline == live
    assert live


def _without_ids(seen: Seen) -> tuple[object, ...]:
    return seen.text, [call[1:] for call in seen.calls], seen.finish


def _body(message: dict[str, Any]) -> bytes:
    """The body of a captured message, whose bytes may be no text."""
    return message["body"].encode() if "body" in message else base64.b64decode(message["body_base64"])


def _plain(headers: dict[str, str]) -> dict[str, str]:
    """The headers of a request that say what it is, not how it travels."""
    return {
        name: value
        for name, value in headers.items()
        if name not in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding", "x-test-id")
    }
