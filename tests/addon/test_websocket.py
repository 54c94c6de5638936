"""Exchanges over sockets, message by message: what is taken of them, and what a socket does that goes wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow
from mitmproxy.websocket import WebSocketMessage
from wsproto.frame_protocol import Opcode

from tests.addon.build import captured, loaded
from tests.apis.talk_openai_responses import events, request, response
from tests.build import Talk
from wirelint.addon import websocket as module
from wirelint.addon.addon import Inspector

HANDSHAKE: dict[str | bytes, str | bytes] = {"upgrade": "websocket"}
CLEAN = Talk(text="All is well.")
LEAK = Talk(
    text='<tool_call>\n{"name": "read_note", "arguments": {}}\n</tool_call>', tools={"read_note": {"type": "object"}}
)


def asked(talk: Talk) -> bytes:
    return json.dumps({"type": "response.create", **request(talk)}).encode()


def answered(talk: Talk) -> list[bytes]:
    return [json.dumps(event).encode() for event in events(response(talk))]


def socket(*, live: bool = True) -> http.HTTPFlow:
    flow = tflow.twebsocketflow(messages=False)
    flow.request = http.Request.make("GET", "https://llm.test/v1/responses", b"", HANDSHAKE)
    flow.live = live
    return flow


def say(inspector: Inspector, flow: http.HTTPFlow, by_client: bool, *messages: bytes, text: bool = True) -> None:
    assert flow.websocket is not None
    for message in messages:
        flow.websocket.messages.append(WebSocketMessage(Opcode.TEXT if text else Opcode.BINARY, by_client, message))
        inspector.websocket_message(flow)
        assert (flow.websocket.messages[-1].content, flow.websocket.messages[-1].dropped) == (message, False)


def talk_over(inspector: Inspector, flow: http.HTTPFlow, *talks: Talk) -> None:
    for talk in talks:
        say(inspector, flow, True, asked(talk))
        say(inspector, flow, False, *answered(talk))


def ends(lines: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(line["end"], (line.get("error") or "")[:24]) for line in lines]


def test_a_socket_shows_the_worst_of_its_exchanges(inspector: Inspector, tmp_path: Path) -> None:
    flow = socket()
    talk_over(inspector, flow, CLEAN, LEAK, CLEAN)
    assert flow.comment.startswith("xml-leak")
    inspector.websocket_end(flow)
    lines = captured(inspector, tmp_path)
    assert [(line["id"], line["request"]["url"]) for line in lines] == [
        (f"{flow.id}:{number}", "wss://llm.test/v1/responses") for number in (1, 2, 3)
    ]
    assert [[found["name"] for found in line["findings"]] for line in lines] == [[], ["xml-leak"], []]
    assert ends(lines) == [("complete", "")] * 3


@pytest.mark.parametrize(("by_client", "end"), [(True, "client-left"), (False, "upstream-died")])
def test_a_socket_that_closes_too_early(inspector: Inspector, tmp_path: Path, by_client: bool, end: str) -> None:
    flow = socket()
    say(inspector, flow, True, asked(CLEAN), asked(CLEAN))
    say(inspector, flow, False, *answered(CLEAN)[:4])
    assert flow.websocket is not None
    flow.websocket.closed_by_client, flow.websocket.close_code = by_client, 1001
    inspector.websocket_end(flow)
    inspector.websocket_end(flow)
    who = "client" if by_client else "server"
    assert ends(captured(inspector, tmp_path)) == [(end, f"the {who} closed the socket"[:24])] * 2


def test_a_connection_that_ends_without_a_word(inspector: Inspector, tmp_path: Path) -> None:
    flow, other = socket(), socket()
    say(inspector, flow, True, asked(CLEAN))
    say(inspector, other, True, asked(CLEAN))
    inspector.client_disconnected(flow.client_conn)
    say(inspector, other, False, *answered(CLEAN))
    assert [end for end, _ in ends(captured(inspector, tmp_path))] == ["client-left", "complete"]


def test_what_is_none_of_ours(inspector: Inspector, tmp_path: Path) -> None:
    flow = socket()
    say(inspector, flow, False, *answered(CLEAN))
    say(inspector, flow, True, b"{}", b"[1]", b'"response.create"', b'{"type": "response.create"}')
    say(inspector, flow, True, asked(CLEAN), text=False)
    say(inspector, flow, False, *answered(CLEAN))
    inspector.websocket_end(flow)
    assert (captured(inspector, tmp_path), flow.comment, flow.metadata) == ([], "", {})


def test_more_than_is_read_is_left_alone(inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    monkeypatch.setattr(module, "_MOST_SOCKETS", 1)
    flow, other = socket(), socket()
    say(inspector, flow, True, asked(CLEAN), asked(CLEAN), asked(CLEAN))
    say(inspector, other, True, asked(CLEAN))
    inspector.websocket_end(other)
    assert [line["end"] for line in captured(inspector, tmp_path)] == ["unread", "unread", "upstream-died"]


def test_a_failure_of_ours_lets_the_message_pass(
    inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "opens", lambda message: 1 // 0)
    flow = socket()
    talk_over(inspector, flow, CLEAN)
    assert "internal-error" in flow.comment
    assert captured(inspector, tmp_path) == []


def test_a_flow_from_a_file_is_judged_and_not_written_again(inspector: Inspector, tmp_path: Path) -> None:
    flow = socket(live=False)
    assert flow.websocket is not None
    flow.websocket.messages += [
        WebSocketMessage(Opcode.TEXT, by_client, message)
        for by_client, messages in ((True, [asked(LEAK)]), (False, answered(LEAK)))
        for message in messages
    ]
    assert loaded(inspector, flow).comment.startswith("xml-leak")
    assert captured(inspector, tmp_path) == []
