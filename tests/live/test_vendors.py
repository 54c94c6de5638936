"""Every API through a real mitmdump that repairs, with the vendor's own SDK as the client."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from tests.command import Wirelint
from tests.live.harness import Proxy, Upstream, post
from tests.live.scenes import CASES, FOUND, OPENAI, PREAMBLE, Case, Playing, Seen, judge
from tests.live.strict import assemble
from tests.live.vendors import DOORS, Door, anthropic_client, chat, messages, openai_client
from tests.selection import rotated, sampled
from wirelint.mock.scenario import HEADER

LEAKING = "fault=xml-leak;dialect=kimi_invoke_arg"


def name_of(door: Door, stream: bool, what: str) -> str:
    return f"{door.name} {'stream' if stream else 'whole'} {what}"


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
    mock: Playing, vendor: Upstream, repairing: Proxy, door: Door, tools: bool, stream: bool
) -> None:
    test = name_of(door, stream, f"clean {tools}")
    direct = door.ask(vendor.url, stream=stream, tools=tools, headers={"x-test-id": f"{test} direct"})
    seen = door.ask(repairing.url, stream=stream, tools=tools, headers={"x-test-id": test, "session_id": test})
    assert _without_ids(seen) == _without_ids(direct)
    assert seen.finish == ((door.called if tools else door.ended) or None)
    assert [call[1:] for call in seen.calls] == ([("search_notes", FOUND)] if tools else [])
    record = repairing.wait_for_record(test)
    assert (record["api"], record["end"], record["findings"]) == (door.api, "complete", [])
    assert ("delivered" in record, "forwarded" in record, record.get("notes", [])) == (False, False, [])
    # The SDK's own request once more, so that the bytes of the reply can be seen.
    peer = mock.heard[test]
    again = post(repairing.port, peer.target, peer.body, {**_plain(peer.headers), "x-test-id": f"{test} again"})
    assert again.body == mock.said[f"{test} again"] != b""
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
    vendor: Upstream, repairing: Proxy, door: Door, chunk: str, stream: bool
) -> None:
    test = name_of(door, stream, f"leak{chunk}")
    scenario = {HEADER: LEAKING + chunk}
    direct = door.ask(vendor.url, stream=stream, tools=True, headers={**scenario, "x-test-id": f"{test} direct"})
    assert (direct.calls, "<invoke name=" in direct.text) == ((), True), "without the proxy the fault is seen"
    seen = door.ask(
        repairing.url, stream=stream, tools=True, headers={**scenario, "x-test-id": test, "session_id": test}
    )
    record = repairing.wait_for_record(test)
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
def test_an_error_is_as_it_came(vendor: Upstream, repairing: Proxy, door: Door, stream: bool) -> None:
    test = name_of(door, stream, "error")
    scenario = {HEADER: "fault=http-error;status=400"}

    def failure(url: str, name: str) -> tuple[str, str]:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each SDK has a kind of its own, and shows it below
            door.ask(url, stream=stream, tools=False, headers={**scenario, "x-test-id": name})
        return type(raised.value).__name__, str(raised.value)

    direct, seen = failure(vendor.url, f"{test} direct"), failure(repairing.url, test)
    assert seen[0] == direct[0]
    assert "overloaded" in seen[1] or "400" in seen[1]
    record = repairing.wait_for_record(test)
    assert (record["api"], record["response"]["status"], "delivered" in record) == (door.api, 400, False)


def test_the_capture_is_judged_the_same_offline(repairing: Proxy, wirelint: Wirelint) -> None:
    """Runs after the others: what was found while the traffic passed is what the capture shows afterwards."""
    doors = tuple(door.name for door in DOORS)
    asked = [one for one in repairing.records() if _test_of(one).startswith(doors)]
    live = {
        record["id"]: sorted((one["name"], one.get("pointer", ""), one["message"]) for one in record["findings"])
        for record in asked
    }
    done = wirelint("check", "--output-format", "jsonl", repairing.capture())
    assert done.status in (0, 1), done.err
    offline: dict[str, list[tuple[str, str, str]]] = {}
    for found in map(json.loads, done.out.splitlines()):
        offline.setdefault(found["exchange"], []).append((found["name"], found.get("pointer", ""), found["message"]))
    assert {id_: sorted(found) for id_, found in offline.items() if id_ in live} == {
        id_: found for id_, found in live.items() if found
    }
    assert any(live.values())


def _test_of(record: dict[str, Any]) -> str:
    return str(record["request"]["headers"].get("x-test-id", ""))


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


# --- every scene with the SDKs of OpenAI and Anthropic ----------------------------------------------------------------

FAULTY = sampled([case for case in CASES if not case.scene.healthy], 16)
HEALTHY = sampled([case for case in CASES if case.scene.healthy], 6)


def see(case: Case, url: str) -> Seen:
    """One request with the SDK of the case's API, read with the SDK's own means."""
    client, look = (openai_client, chat) if case.api == OPENAI else (anthropic_client, messages)
    try:
        with client(url, case.headers) as opened:
            return look(opened, case.request, stream=case.stream)
    except Exception as error:  # an SDK that stumbles is what a fault looks like
        return Seen(error=f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.id)
def test_without_wirelint_the_fault_is_seen(vendor: Upstream, case: Case) -> None:
    """A scene that shows no fault cannot pass for a repaired one."""
    immune = (case.api, case.stream) in case.scene.immune
    assert bool(judge(case, see(case, vendor.url))) is not immune


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.id)
def test_a_repaired_reply_is_that_of_a_healthy_vendor(repairing: Proxy, case: Case) -> None:
    seen = see(case, repairing.url)
    assert judge(case, seen) == []
    record = repairing.wait_for_record(case.id)
    assert record["end"] == "complete"
    delivered = record["delivered"]["body"].encode()
    assert record["response"]["body"].encode() != delivered
    assert assemble(case.api, case.stream, delivered) == seen, "what a client that forgives nothing makes of it"


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.id)
def test_a_healthy_scene_is_as_it_came(vendor: Upstream, repairing: Proxy, case: Case) -> None:
    direct, through = see(case, vendor.url), see(case, repairing.url)
    assert judge(case, through) == []
    assert through == direct
    record = repairing.wait_for_record(case.id)
    assert (record["findings"], "delivered" in record, "forwarded" in record) == ([], False, False)
