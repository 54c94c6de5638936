"""The copy of a flow in a flow file: redacted, annotated, readable by mitmproxy and by us."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from pathlib import Path

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.io import FlowReader

from tests.addon.build import flow_of, head_of, result_of_record
from tests.build import Talk, some
from wirelint.addon.annotate import annotation, captured_copy, prefixed
from wirelint.capture.flow_metadata import times_of
from wirelint.capture.offline import Checked
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.model import End

KEY = "sk-proj-Zq8Yw3Rt6Uv1Nm4Kc9Pd2Lf7Hb5Gx0S"
RECORD = Talk(text=f"Grüße, {KEY}").record("openai.chat", True)


def copy_of(flow: http.HTTPFlow, result: Checked) -> http.HTTPFlow:
    make = captured_copy(flow, result.record, annotation(result))
    # What happens to the flow between the hook and the writer's thread must not show.
    flow.request.headers["authorization"] = "changed"
    flow.comment = "changed"
    found = next(iter(FlowReader(io.BytesIO(make())).stream()))
    assert isinstance(found, http.HTTPFlow)
    return found


def flow_with_reply() -> http.HTTPFlow:
    flow = flow_of(RECORD)
    flow.response = head_of(RECORD)
    flow.response.timestamp_end = None
    return flow


def test_it_holds_the_record_and_the_annotation() -> None:
    result = result_of_record(RECORD)
    flow = flow_with_reply()
    flow.metadata["proxyauth"] = ("user", KEY)
    copy = copy_of(flow, result)
    assert copy.response is not None
    assert (copy.id, copy.request.raw_content, copy.response.raw_content) == (
        result.record.id,
        result.record.request_body,
        result.record.response_body,
    )
    assert copy.comment == annotation(result).comment
    assert copy.metadata == annotation(result).metadata | prefixed(times_of(result.record))
    assert copy.request.path == "/v1/chat/completions"
    assert KEY not in repr(copy.get_state())
    assert "x-wirelint-end" not in copy.response.headers


def test_codings_are_undone_and_lengths_are_true() -> None:
    record = Talk().record("openai.chat", False)
    body = record["response"]["body"].encode()
    result = result_of_record(record)
    headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(gzip.compress(body)))))
    copy = copy_of(flow_with_reply(), replace(result, record=replace(result.record, response_headers=headers)))
    assert copy.response is not None
    assert (copy.response.content, dict(copy.response.headers)) == (body, {"Content-Length": str(len(body))})


ENDS: dict[str, tuple[End, bool]] = {
    "client-left": ("client-left", True),
    "died": ("upstream-died", True),
    "no reply": ("upstream-died", False),
}


@pytest.mark.parametrize("name", ENDS)
def test_how_it_ended(name: str, tmp_path: Path) -> None:
    end, answered = ENDS[name]
    result = result_of_record(RECORD, end, "the connection broke", rules=("ST604",))
    flow = flow_with_reply()
    flow.error = mitmproxy_flow.Error("the connection broke")
    made = replace(result.record, end=end)
    if not answered:
        flow.response = None
        made = replace(made, status=None, response_body=None, response_headers=())
    path = tmp_path / "flows.mitm"
    result = replace(result, record=made)
    path.write_bytes(captured_copy(flow, made, annotation(result))())
    copy = next(iter(FlowReader(io.BytesIO(path.read_bytes())).stream()))
    assert isinstance(copy, http.HTTPFlow)
    assert (copy.error is None) is answered, "with both, mitmproxy would write it into a HAR twice"
    if copy.response is not None:
        assert copy.response.headers["x-wirelint-end"] == end
    (again,) = read([str(path)])
    assert isinstance(again, Record)
    assert (again.end, again.status, again.response_body) == (end, made.status, made.response_body)


def test_bytes_of_headers_that_are_no_utf8() -> None:
    result = result_of_record(RECORD)
    record = replace(result.record, response_headers=(("x-odd", b"\xff".decode("utf-8", "surrogateescape")),))
    copy = copy_of(flow_with_reply(), replace(result, record=record))
    assert some(copy.response).headers.fields == ((b"x-odd", b"\xff"),)
