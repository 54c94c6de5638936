"""Streams of servers of tools that stay open: what has been answered is settled while they go on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from tests.addon.build import captured, flow_of, head_of, inspecting, pass_head
from tests.build import some
from tests.rules.mcp import call, note, request, result, text
from wirelint.addon import mcp_streams as module
from wirelint.addon.addon import Inspector
from wirelint.addon.streamed_reply import HttpReply

ENDPOINT = b"event: endpoint\ndata: /messages/?session_id=s1\n\n"
ASKED = call("search_wiki", {"query": "leave"}, 2)
ANSWER = result(text("2 pages"), 2)


def event(document: Any) -> bytes:
    return b"event: message\ndata: " + json.dumps(document).encode() + b"\n\n"


def begun(inspector: Inspector, path: str, body: Any = None, status: int = 200) -> http.HTTPFlow:
    """A flow whose head has come: a post, or a stream that is opened."""
    kind = "text/event-stream" if status == 200 else "text/plain"
    url, method = f"http://tools.test{path}", "GET" if body is None else "POST"
    request = {"method": method, "url": url, "headers": {"accept": "text/event-stream"}, "body": body}
    record = {"request": request, "response": {"status": status, "headers": {"content-type": kind}}}
    flow = flow_of(record)
    if status:
        pass_head(inspector, flow, head_of(record))
    else:
        inspector.request(flow)
    return flow


def feed(flow: http.HTTPFlow, data: bytes) -> None:
    assert flow.response is not None
    assert isinstance(flow.response.stream, HttpReply)
    assert flow.response.stream(data) == data


def run(tmp_path: Path, play: Any) -> list[dict[str, Any]]:
    async def within() -> list[dict[str, Any]]:
        with inspecting(wirelint_captures=str(tmp_path / "captures")) as (inspector, _):
            await play(inspector)
            return captured(inspector, tmp_path)

    return asyncio.run(within())


def told(lines: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(line["request"]["method"], line["response"]["body"] or "", line["end"]) for line in lines]


@pytest.mark.parametrize("status", [202, 0], ids=["taken", "not settled yet"])
def test_an_answer_on_the_stream_of_a_session(tmp_path: Path, status: int) -> None:
    progress, later = event(note("notifications/progress")), event(result({"tools": []}, 3))

    async def play(inspector: Inspector) -> None:
        stream = begun(inspector, "/sse")
        feed(stream, ENDPOINT)
        post = begun(inspector, "/messages/?session_id=s1", ASKED, status)
        if status:
            inspector.response(post)
        feed(stream, progress + event(ANSWER))
        feed(stream, later)  # nobody has asked
        stream.response.raw_content = None  # type: ignore[union-attr]
        inspector.response(stream)
        assert some(stream.response).raw_content == ENDPOINT + progress + event(ANSWER) + later

    lines = run(tmp_path, play)
    first = (ENDPOINT + progress + event(ANSWER)).decode()
    assert told(lines) == [
        ("POST", "", "complete"),
        ("GET", first, "complete"),
        ("GET", (ENDPOINT + later).decode(), "complete"),
    ]
    assert lines[2]["id"] == f"{lines[1]['id']}~2"
    assert sum(size for _, size in lines[2]["response"]["chunks"]) == len(ENDPOINT + later)


def test_the_stream_of_a_reply_that_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_AFTER_ANSWER", 0.0)

    async def play(inspector: Inspector) -> None:
        flow = begun(inspector, "/mcp", [ASKED, request("tools/list", 3)])
        feed(flow, event(ANSWER))
        await asyncio.sleep(0.01)
        assert not flow.comment  # one of two is answered
        feed(flow, event(result({"tools": []}, 3)))
        await asyncio.sleep(0.01)
        assert flow.comment.startswith("ok")
        feed(flow, event(note("notifications/message")))
        inspector.response(flow)

    (line,) = run(tmp_path, play)
    assert (line["end"], line["findings"]) == ("complete", [])
    assert line["response"]["body"].encode() == event(ANSWER) + event(result({"tools": []}, 3))
    assert "stayed open" in line["notes"][0]
