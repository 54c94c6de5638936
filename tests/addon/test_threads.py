"""Message threads whose server holds a call that was repaired: the client is asked for the whole conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mitmproxy import http

from tests.addon.build import captured, flow_of
from tests.build import Call, Talk, User, as_record, schema, some
from wirelint.addon.addon import Inspector

TOOLS = {"dig": schema(["at"], at={"type": "string"})}
ASK = (User("Dig at the oak."),)
OAK = {"at": "oak"}


OPTIONS = {"wirelint_fix": "unsafe"}


def passes(inspector: Inspector, record: dict[str, Any]) -> http.HTTPFlow:
    """An exchange with a whole reply, which the upstream sends unless the request is answered here."""
    flow = flow_of(record)
    inspector.request(flow)
    if flow.response is None:
        flow.response = http.Response.make(200, b"", {"content-type": "application/json"})
        inspector.responseheaders(flow)
        flow.response.raw_content = as_record(record).response_body
    else:
        inspector.responseheaders(flow)
    inspector.response(flow)
    return flow


def begun(*calls: Call) -> dict[str, Any]:
    return Talk(ASK, "", calls, tools=TOOLS, request={"thread": {"type": "create"}}).record("anthropic.messages", False)


def continued(helper: str = "BetaToolRunner, message-thread") -> dict[str, Any]:
    thread = {"type": "continue", "previous_message_id": "msg_01"}
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a root"}]
    made = Talk(ASK, "Done.", request={"thread": thread, "messages": [{"role": "user", "content": content}]})
    record = made.record("anthropic.messages", False)
    record["request"]["headers"]["x-stainless-helper"] = helper
    return record


def test_a_thread_that_holds_another_call_is_lost_once(inspector: Inspector, tmp_path: Path) -> None:
    made = passes(inspector, begun(Call("Dig", OAK, "toolu_1")))
    assert [block["name"] for block in some(made.response).json()["content"]] == ["dig"]
    told, again = passes(inspector, continued()), passes(inspector, continued())
    assert told.response is not None
    assert told.response.status_code == 404
    error = told.response.json()
    assert error["type"] == "error"
    assert error["error"]["type"] == "not_found_error"
    assert error["error"]["details"] == {"error_code": "thread_not_found"}
    assert some(again.response).status_code == 200  # a client that does not send the whole is let through
    lines = captured(inspector, tmp_path)
    assert [fix["code"] for fix in lines[1]["fixes"]] == ["IN002"]
    assert [line["response"]["status"] for line in lines] == [200, 404, 200]
    assert not [finding for finding in lines[1]["findings"] if finding["severity"] != "info"]


def test_a_healthy_thread_goes_on(inspector: Inspector) -> None:
    passes(inspector, begun(Call("dig", OAK, "toolu_1")))
    flow = passes(inspector, continued())
    assert some(flow.response).status_code == 200
    assert flow.request.content == as_record(continued()).request_body


def test_a_client_that_may_not_send_the_whole_goes_on(inspector: Inspector) -> None:
    passes(inspector, begun(Call("Dig", OAK, "toolu_1")))
    flow = passes(inspector, continued("BetaToolRunner"))
    assert some(flow.response).status_code == 200
