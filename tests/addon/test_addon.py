"""The hooks, called in mitmproxy's orders and in others."""

from __future__ import annotations

from pathlib import Path

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.addonmanager import traverse

from tests.addon.build import CUT, captured, ended, flow_of, head_of, inspecting, loaded, pass_head, pass_through
from tests.build import Talk, some
from wirelint.addon import addon as module
from wirelint.addon.addon import Inspector
from wirelint.addon.streamed_reply import HttpReply

RECORD = Talk(text="All is well.", request={"stream_options": {"include_usage": False}}).record("openai.chat", True)
BODY = RECORD["response"]["body"].encode()


def test_an_exchange(inspector: Inspector, tmp_path: Path) -> None:
    flow = ended(inspector, RECORD)
    assert some(flow.response).raw_content == BODY
    assert flow.comment == "ok · acme-1 · openai.chat"
    (line,) = captured(inspector, tmp_path)
    told = line["id"], line["api"], line["end"], line["response"]["body"]
    assert told == (flow.id, "openai.chat", "complete", BODY.decode())


@pytest.mark.parametrize(
    ("first", "second"), [("response", "error"), ("error", "response"), ("response", "response")], ids=str
)
def test_it_ends_once(inspector: Inspector, tmp_path: Path, first: str, second: str) -> None:
    flow = pass_through(inspector, CUT)
    if first == "error":
        flow.error = mitmproxy_flow.Error("Client disconnected.")
    getattr(inspector, first)(flow)
    stream = flow.response.stream if flow.response is not None else None
    assert isinstance(stream, HttpReply)
    assert stream(b"") == [], "mitmproxy may call it between the hooks"
    flow.error = mitmproxy_flow.Error("Client disconnected.")
    getattr(inspector, second)(flow)
    (line,) = captured(inspector, tmp_path)
    assert line["end"] == ("client-left" if first == "error" else "complete")


def test_the_client_goes_without_a_hook(inspector: Inspector, tmp_path: Path) -> None:
    left, stays = pass_through(inspector, CUT), pass_through(inspector, RECORD)
    stays.client_conn = left.client_conn.copy()
    stays.client_conn.id = "another"
    inspector.client_disconnected(left.client_conn)
    assert (left.metadata["wirelint.end"], "wirelint.end" in stays.metadata) == ("client-left", False)
    inspector.response(stays)
    assert [line["end"] for line in captured(inspector, tmp_path)] == ["client-left", "complete"]


def test_too_many_at_one_time(inspector: Inspector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    flows = [pass_through(inspector, RECORD) for _ in range(4)]
    assert [flow.metadata.get("wirelint.end") for flow in flows] == ["unread", "unread", None, None]
    for flow in flows:
        inspector.response(flow)
    assert len(captured(inspector, tmp_path)) == 4


def test_a_reply_made_by_an_addon_is_read_whole(inspector: Inspector, tmp_path: Path) -> None:
    record = Talk().record("openai.chat", False)
    flow = flow_of(record)
    made = http.Response.make(200, record["response"]["body"], {"content-type": "application/json"})
    response = pass_head(inspector, flow, made)
    assert response.stream is False
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert (line["response"]["body"], line["response"]["chunks"]) == (record["response"]["body"], [])


@pytest.mark.parametrize(("end", "marked"), [(None, ":bangbang:"), ("client-left", "")])
def test_flows_of_a_file_are_judged_and_not_written_again(
    inspector: Inspector, tmp_path: Path, end: str | None, marked: str
) -> None:
    flow = flow_of(CUT, live=False)
    if end is not None:
        some(flow.response).headers["x-wirelint-end"] = end
    assert loaded(inspector, flow).marked == marked
    assert some(flow.response).stream is False
    assert captured(inspector, tmp_path) == []


def test_a_flow_of_a_file_without_its_body(inspector: Inspector) -> None:
    flow = flow_of(RECORD, live=False)
    some(flow.response).raw_content = None
    loaded(inspector, flow)
    assert (flow.comment, some(flow.response).raw_content) == ("unread · acme-1 · openai.chat", None)


def test_requests_that_are_none_of_ours(inspector: Inspector) -> None:
    for method, body in (("GET", b""), ("POST", b"not JSON"), ("POST", b'{"a": 1}'), ("PUT", b'{"messages": []}')):
        flow = flow_of(RECORD)
        flow.request.method, flow.request.content, flow.request.path = method, body, "/notes"
        response = pass_head(inspector, flow, head_of(RECORD))
        inspector.response(flow)
        assert (response.stream, response.raw_content) == (False, None)
        assert (flow.comment, flow.marked, flow.metadata) == ("", "", {})


def test_rules_change_while_it_runs_and_the_ledger_stays(tmp_path: Path) -> None:
    with inspecting(wirelint_captures=str(tmp_path / "captures")) as (inspector, context):
        ledger = inspector.engine.ledger
        context.configure(inspector, wirelint_ignore="ST604")
        assert ended(inspector, CUT).metadata["wirelint.findings"] == []
        assert inspector.engine.ledger is ledger
        context.configure(inspector, wirelint_captures=str(tmp_path / "others"))
        assert inspector.engine.ledger is not ledger, "a new file begins with an empty ledger for its readers"
        inspector.done()


def test_it_is_one_addon(inspector: Inspector) -> None:
    """mitmproxy asks each addon there is about each event, and those inside of it as well."""
    assert list(traverse([inspector])) == [inspector]
