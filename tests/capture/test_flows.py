"""mitmproxy's flow files, written by mitmproxy itself."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import flow as mitm_flow
from mitmproxy import http
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.test import taddons, tflow

from tests.fakes import at_most
from tests.tables import rows, tables
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.writers.flows import flow_bytes
from wirelint.model import End
from wirelint.wire import content_coding

GZIPPED = {"content-encoding": "gzip", "content-type": "text/event-stream"}
BODY = 'data: {"t":"é"}\n\n'.encode()


def _flow(body: bytes | None = BODY, headers: dict[str, str] | None = None, answered: bool = True) -> http.HTTPFlow:
    request = http.Request.make(
        "POST", "https://h:8443/v1?key=1", b'{"model":"m"}', http.Headers(content_type="application/json")
    )
    request.timestamp_start, request.timestamp_end = 1000.0, 1000.5
    flow = tflow.tflow(req=request)
    if answered:
        flow.response = http.Response.make(200, b"")
        flow.response.headers.update(headers or {"content-type": "text/event-stream"})
        flow.response.raw_content = body
        flow.response.timestamp_start, flow.response.timestamp_end = 1000.75, 1002.0
    else:
        flow.response = None
    return flow


def _write(path: Path, *flows: mitm_flow.Flow) -> Path:
    path.write_bytes(b"".join(map(flow_bytes, flows)))
    return path


def _read(path: Path) -> list[Record | Problem]:
    return list(read([path]))


def _one(tmp_path: Path, flow: mitm_flow.Flow) -> Record:
    (record,) = _read(_write(tmp_path / "f", flow))
    assert isinstance(record, Record)
    return record


def test_a_flow(tmp_path: Path) -> None:
    flow = _flow()
    flow.metadata.update({"wirelint.api": "openai.chat", "wirelint.findings": [{"code": "LK101"}], "other": 1})
    record = _one(tmp_path, flow)
    assert (record.id, record.method, record.url) == (flow.id, "POST", "https://h:8443/v1?key=1")
    assert (record.request_body, record.status, record.response_body) == (b'{"model":"m"}', 200, BODY)
    assert ("content-type", "application/json") in record.request_headers
    assert (record.timing.started, record.timing.first_byte, record.timing.duration) == (1000.0, 750.0, 2000.0)
    assert (record.end, record.error, record.chunks, record.place) == ("complete", None, (), "flow 1")
    assert record.annotations == {"api": "openai.chat", "findings": [{"code": "LK101"}]}


def test_a_host_header_that_is_nonsense(tmp_path: Path) -> None:
    flow = _flow()
    flow.request.headers["host"] = "[not an address"
    assert _one(tmp_path, flow).url == flow.request.url


# the error, whether there is a response, `wirelint.end`, the end that is read
@rows(tables(__file__)["ends"])
def test_ends(error: str | None, answered: bool, said: Any, end: End, tmp_path: Path) -> None:
    flow = _flow(answered=answered)
    if error is not None:
        flow.error = mitm_flow.Error(error, timestamp=1003.0)
    if said is not None:
        flow.metadata["wirelint.end"] = said
    record = _one(tmp_path, flow)
    assert (record.end, record.error, record.status) == (end, error, 200 if answered else None)
    assert "end" not in record.annotations


@pytest.mark.parametrize(("why", "end"), [("CANCEL", "client-left"), ("INTERNAL_ERROR", "upstream-died")])
def test_a_stream_of_http_2_that_is_reset(tmp_path: Path, why: str, end: End) -> None:
    """Over HTTP/1 only the upstream can have reset it."""
    flow = _flow()
    flow.request.http_version = "HTTP/2.0"
    flow.error = mitm_flow.Error(f"stream reset by client ({why})")
    assert _one(tmp_path, flow).end == end


CODED = {
    "gzip": ("gzip", gzip.compress(BODY), BODY, "complete"),
    "cut gzip": ("gzip", gzip.compress(BODY * 9, mtime=0)[:-8], BODY * 9, "complete"),
    "no gzip at all": ("gzip", b"plain text", None, "unread"),
    "unknown": ("lzma", b"x", None, "unread"),
    "lost": ("gzip", None, None, "unread"),
    "empty": ("identity", b"", b"", "complete"),
}


@pytest.mark.parametrize(("coding", "raw", "body", "end"), CODED.values(), ids=CODED)
def test_content_codings(tmp_path: Path, coding: str, raw: bytes | None, body: bytes | None, end: End) -> None:
    record = _one(tmp_path, _flow(raw, {"content-encoding": coding}))
    assert (record.response_body, record.end) == (body, end)
    notes = record.annotations.get("notes", [])
    assert isinstance(notes, list)
    assert len(notes) == (body is None)


def test_other_flows_are_passed_by(tmp_path: Path) -> None:
    items = _read(_write(tmp_path / "f", tflow.ttcpflow(), tflow.twebsocketflow(), _flow(), tflow.tdnsflow()))
    assert [item.place for item in items] == ["flow 3"]
    assert _read(_write(tmp_path / "g", tflow.ttcpflow())) == []


def test_cut_off_anywhere(tmp_path: Path) -> None:
    """The flows before the cut, then one problem; nothing is wrong with a cut between two flows."""
    sizes = [len(_write(tmp_path / "f", *[_flow()] * count).read_bytes()) for count in (1, 2)]
    data = _write(tmp_path / "f", *[_flow()] * 2).read_bytes()
    for place in [*range(5, len(data), 97), sizes[0], sizes[0] + 1, len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:place])
        items = _read(tmp_path / "cut")
        whole = sum(place >= size for size in sizes)
        assert [isinstance(item, Record) for item in items[:whole]] == [True] * whole
        if place in sizes:
            assert len(items) == whole
            continue
        (problem,) = items[whole:]
        assert isinstance(problem, Problem)
        assert "\n" not in str(problem)
        assert (problem.place, problem.fatal) == (f"flow {whole + 1}", whole == 0)


CORRUPT = [b"5:hello,", b"0:}", b"13:4:type;4:http;}", b"23:7:version;2:21#4:type;3:xxx;}", b"3:abc"]


@pytest.mark.parametrize("tail", CORRUPT)
def test_corrupt_state(tmp_path: Path, tail: bytes) -> None:
    path = _write(tmp_path / "f", _flow())
    path.write_bytes(path.read_bytes() + tail)
    record, problem = _read(path)
    assert isinstance(record, Record)
    assert isinstance(problem, Problem)
    assert (problem.place, problem.fatal) == ("flow 2", False)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _write(tmp_path / "f", _flow(), _flow()).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert [item.source for item in read(["-"])] == ["-", "-"]


def test_the_har_of_mitmproxy_reads_the_same(tmp_path: Path) -> None:
    """What mitmproxy writes into a HAR gives the records that its flow file gives."""
    json_flow = _flow('{"t":"é"}'.encode(), {"content-type": "application/json"})
    binary = _flow(b"\xff\x00\x01" * 99, {"content-type": "application/octet-stream"})
    flows = [_flow(), json_flow, binary, _flow(gzip.compress(BODY), GZIPPED),
             _flow(None), _flow(answered=False)]  # fmt: skip
    saver = SaveHar()
    with taddons.context(saver):  # type: ignore[no-untyped-call, unused-ignore]
        (tmp_path / "x.har").write_text(json.dumps(saver.make_har(flows)))
    from_flows, from_har = _read(_write(tmp_path / "f", *flows)), _read(tmp_path / "x.har")
    assert len(from_flows) == len(from_har) == len(flows)
    for one, two in zip(from_flows, from_har, strict=True):
        assert isinstance(one, Record)
        assert isinstance(two, Record)
        for name in ("method", "url", "request_body", "status", "response_headers", "response_body"):
            assert getattr(one, name) == getattr(two, name), name
        assert two.timing.started == one.timing.started


def test_mitmproxy_is_loaded_for_flow_files_only(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"request":{}}\n')
    script = (
        "import sys; from wirelint.capture.readers import read; list(read([sys.argv[1]]));"
        "print('mitmproxy' in sys.modules)"
    )
    for path, loaded in ((tmp_path / "x", False), (_write(tmp_path / "f", _flow()), True)):
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.strip() == str(loaded)


def test_a_body_that_swells_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_coding, "MOST_PLAIN", 1 << 20)
    path = _write(tmp_path / "f", _flow(gzip.compress(bytes(1 << 25)), GZIPPED), _flow())
    with at_most(8):
        first, second = _read(path)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.response_body, first.end) == (None, "unread")
    assert first.annotations["notes"] == [
        "the body of the response is larger than 1 MiB without its content-encoding; it was not read"
    ]
    assert second.response_body == BODY


def test_a_body_without_a_coding_may_be_as_large_as_it_is(tmp_path: Path) -> None:
    body = bytes(33 << 20)
    assert _one(tmp_path, _flow(body)).response_body == body
