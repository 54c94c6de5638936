"""Messages that are whole when they are repaired, and flows that tell of a repair."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.io import FlowReader

from tests.addon.build import CODERS, captured, flow_of, head_of, loaded, pass_head
from tests.build import FORMS, Talk, User, as_record, some
from tests.fakes import at_most
from tests.tables import rows, tables
from wirelint.addon.addon import Inspector
from wirelint.addon.streamed_reply import HttpReply

RULES = Path(__file__).parent / "repairs"
QUIET = Talk(text="They say «hello» and go.")
CLEAN = Talk(text="All is well.")
ASKED = Talk(history=(User("Say «hello» to them."),), text="Done.")


OPTIONS = {"wirelint_rules": str(RULES), "wirelint_select": "XX901", "wirelint_fix": "unsafe"}


def answered(inspector: Inspector, talk: Talk, api: str = "openai.chat", **headers: str) -> http.HTTPFlow:
    """A flow whose whole reply mitmproxy has held."""
    record = talk.record(api, False)
    record["response"]["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    flow = flow_of(record)
    response = pass_head(inspector, flow, head_of(record))
    body = as_record(record).response_body or b""
    coded = gzip.compress(body) if headers.get("content_encoding") == "gzip" else body
    if response.stream is False:
        response.raw_content = coded
        response.headers["content-length"] = str(len(coded))
    return flow


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
def test_a_whole_reply(inspector: Inspector, tmp_path: Path, api: str, coding: str) -> None:
    flow = answered(inspector, QUIET, api, content_encoding=coding)
    inspector.response(flow)
    response = some(flow.response)
    assert "They say HELLO and go." in (response.text or "")
    assert response.headers["content-encoding"] == coding
    assert response.headers["content-length"] == str(len(response.raw_content or b""))
    assert response.headers["x-wirelint"] == 'rewrote; rules="murmur"'
    (line,) = captured(inspector, tmp_path)
    assert line["delivered"]["body"].encode() == response.content
    assert line["response"]["body"].encode() == as_record(QUIET.record(api, False)).response_body
    assert "x-wirelint" not in line["response"]["headers"]
    assert flow.comment.startswith("murmur · 1 fixed")


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_clean_reply_is_left_alone(inspector: Inspector, coding: str) -> None:
    flow = answered(inspector, CLEAN, content_encoding=coding)
    assert flow.response is not None
    before = (flow.response.raw_content, flow.response.headers.fields)
    inspector.response(flow)
    assert (flow.response.raw_content, flow.response.headers.fields) == before


@pytest.mark.parametrize("damage", ["cut off", "bomb"])
@pytest.mark.parametrize("coding", CODERS)
def test_a_whole_reply_whose_coding_is_damaged_or_swells_passes_as_it_came(
    inspector: Inspector, tmp_path: Path, coding: str, damage: str
) -> None:
    assert inspector.settings is not None
    inspector.settings = dataclasses.replace(inspector.settings, max_body=1 << 20)
    flow = answered(inspector, QUIET, content_encoding=coding)
    body = as_record(QUIET.record("openai.chat", False)).response_body or b""
    raw = CODERS[coding](body)[:-1] if damage == "cut off" else CODERS[coding](body + b" " * (8 << 20))
    assert flow.response is not None
    flow.response.raw_content = raw
    flow.response.headers["content-length"] = str(len(raw))
    before = flow.response.headers.fields
    with at_most(50):
        inspector.response(flow)
    assert (flow.response.raw_content, flow.response.headers.fields) == (raw, before)
    (line,) = captured(inspector, tmp_path)
    assert "delivered" not in line
    said = "compressed reply is cut off" if damage == "cut off" else "larger than wirelint_max_body"
    assert said in line["notes"][0]


@pytest.mark.parametrize("coding", CODERS)
def test_a_request_that_swells_passes_unread(inspector: Inspector, tmp_path: Path, coding: str) -> None:
    assert inspector.settings is not None
    inspector.settings = dataclasses.replace(inspector.settings, max_body=1 << 20)
    record = ASKED.record("openai.chat", False)
    flow = flow_of(record)
    flow.request.headers["content-encoding"] = coding
    flow.request.raw_content = raw = CODERS[coding](b'{"model":"m","messages":[' + b" " * (8 << 20) + b"]}")
    with at_most(50):
        inspector.request(flow)
    assert flow.request.raw_content == raw
    flow.response = http.Response.make(200, b"{}", {"content-type": "application/json"})
    inspector.responseheaders(flow)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert line["end"] == "unread"
    assert "the request is larger than wirelint_max_body" in line["notes"][0]


@rows(tables(__file__)["not_held"])
def test_what_is_not_held(headers: dict[str, str], stream: bool, inspector: Inspector) -> None:
    flow = flow_of(QUIET.record("openai.chat", stream))
    response = http.Response.make(200, b"")
    response.headers = http.Headers([(name.encode(), value.encode()) for name, value in headers.items()])
    response.raw_content = None
    pass_head(inspector, flow, response)
    assert isinstance(response.stream, HttpReply)
    assert response.stream.is_repaired


@pytest.mark.parametrize("status", [204, 205, 206, 301, 400, 429, 529])
def test_statuses_that_are_left_alone(inspector: Inspector, status: int) -> None:
    flow = flow_of(QUIET.record("openai.chat", False))
    response = http.Response.make(status, b"12345", {"content-type": "application/json"})
    response.raw_content = None
    pass_head(inspector, flow, response)
    assert isinstance(response.stream, HttpReply)
    assert not response.stream.is_repaired
    assert response.headers["content-length"] == "5"
    assert "x-wirelint" not in response.headers


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_a_reply_that_another_addon_made(inspector: Inspector, tmp_path: Path, api: str, stream: bool) -> None:
    record = QUIET.record(api, stream)
    flow = flow_of(record)
    made = http.Response.make(200, record["response"]["body"].encode(), {"content-type": "text/plain"})
    response = pass_head(inspector, flow, made)
    inspector.response(flow)
    assert response.headers["x-wirelint"] == 'rewrote; rules="murmur"'
    (line,) = captured(inspector, tmp_path)
    assert [fix["name"] for fix in line["fixes"]] == ["murmur"]


def test_a_held_reply_that_is_cut_off(inspector: Inspector, tmp_path: Path) -> None:
    """mitmproxy drops what it had of it, and tells the client."""
    flow = answered(inspector, QUIET)
    some(flow.response).raw_content = None
    flow.error = mitmproxy_flow.Error("peer closed connection")
    inspector.error(flow)
    (line,) = captured(inspector, tmp_path)
    assert (line["end"], line["response"]["body"]) == ("upstream-died", "")
    assert line["notes"] == ["the reply broke off while it was held for a repair; its bytes are lost"]


# --- flows that tell of a repair --------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["flows.mitm", "by mitmproxy"])
def test_a_flow_from_a_file_is_judged_by_what_came_in(inspector: Inspector, tmp_path: Path, written: str) -> None:
    both = Talk(history=ASKED.history, text=QUIET.text)
    flow = answered(inspector, both)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    if written == "flows.mitm":
        with next(tmp_path.glob("captures/*/flows.mitm")).open("rb") as file:
            (again,) = FlowReader(file).stream()
    else:
        again = flow.copy()
        again.id = flow.id  # as a file keeps it
    assert isinstance(again, http.HTTPFlow)
    again.live = False
    before = messages(again)
    loaded(inspector, again)
    assert again.metadata["wirelint.findings"] == ["murmur"]
    assert [one["side"] for one in again.metadata["wirelint.detail"]] == [one["side"] for one in line["findings"]]
    assert again.metadata["wirelint.fixed"] == ["murmur"]
    assert messages(again) == before, "a flow from a file is not changed"


def messages(flow: http.HTTPFlow) -> list[tuple[Any, ...]]:
    both = [message for message in (flow.request, flow.response) if message is not None]
    return [(message.raw_content, message.headers.fields) for message in both]


@pytest.mark.parametrize("asked", ["All is well.", "Say «hello» to them."])
def test_half_of_a_surrogate_pair_is_read_and_forwarded_as_it_is(
    inspector: Inspector, tmp_path: Path, asked: str
) -> None:
    """A client that cuts its texts in the middle of a character: `"Cut \\ud83d"`. The JSON is valid."""
    record = Talk(system="Cut HERE, whole \U0001f600", history=(User(asked),), text="Done.").record(
        "openai.chat", False
    )
    record["request"]["body"] = body = record["request"]["body"].replace("HERE", "\\ud83d, \\\\ud83d")
    flow = flow_of(record)
    inspector.request(flow)
    assert some(flow.request.text) == body.replace("«hello»", "HELLO")
    flow.response = http.Response.make(
        200, as_record(record).response_body or b"", {"content-type": "application/json"}
    )
    inspector.responseheaders(flow)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert line["request"]["body"] == body
    assert [finding["name"] for finding in line["findings"]] == (["murmur"] if "«" in asked else [])
    assert line["api"] == "openai.chat"
