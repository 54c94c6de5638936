"""Exchanges of no API that is understood: which are recorded, with what reason; the same live and offline."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from tests.addon.build import captured, flow_of, head_of, pass_head
from tests.build import checked, some
from tests.tables import rows, tables
from wirelint.addon.addon import Inspector
from wirelint.addon.streamed_reply import HttpReply
from wirelint.capture.offline import Checked
from wirelint.capture.readers import read
from wirelint.view.stats import Statistics

TABLES = tables(__file__)
"""URLs and bodies; a body that is a text is sent as its bytes in Latin-1."""
RECORDED: dict[str, Any] = TABLES["recorded"]
REPLY = json.dumps({"data": [{"embedding": [0.1]}], "note": "sk-proj-" + "a1B2" * 12})
OPTIONS = {"wirelint_fix": "unsafe"}


def passed(inspector: Inspector, url: str, body: Any, reply: bytes = REPLY.encode(), **fields: str) -> http.HTTPFlow:
    """A flow that streams past the inspector; what the client gets is what came."""
    data = body.encode("latin-1") if isinstance(body, str) else json.dumps(body).encode()
    request = {"url": url, "headers": {"authorization": "Bearer sk-secret-0123456789abcdef"}, "body": data}
    record = {"request": request, "response": {"headers": {"content-type": "application/json", **fields}}}
    flow = flow_of(record)
    stream = pass_head(inspector, flow, head_of(record)).stream
    assert flow.request.raw_content == data
    if isinstance(stream, HttpReply):
        assert b"".join([stream(reply[:5]), stream(reply[5:])]) == reply  # type: ignore[list-item]
    inspector.response(flow)
    return flow


def judged(tmp_path: Path, kind: str) -> list[Checked]:
    files = [str(path) for path in tmp_path.glob(f"captures/*/{kind}")]
    return checked(read(files), ())


@pytest.mark.parametrize("name", RECORDED)
def test_it_is_recorded_with_the_reason(inspector: Inspector, tmp_path: Path, name: str) -> None:
    url, body, why = RECORDED[name]
    flow = passed(inspector, url, body)
    assert flow.comment == "not checked"
    (line,) = captured(inspector, tmp_path)
    assert line["api"] is None
    assert not line["findings"]
    assert why in line["notes"][0]
    assert "sk-secret" not in json.dumps(line)
    assert "sk-proj-a1B2" not in json.dumps(line)
    if not isinstance(body, str):
        assert json.loads(line["request"]["body"]) == body
        for kind in ("exchanges.jsonl", "flows.mitm"):
            (found,) = judged(tmp_path, kind)
            assert found.exchange is None
            assert line["notes"][0] == f"not checked: {found.because}"


@rows(TABLES["left_alone"])
def test_other_traffic_is_left_alone(url: Any, body: Any, inspector: Inspector, tmp_path: Path) -> None:
    flow = passed(inspector, url, body)
    assert not flow.comment
    assert not some(flow.response).stream
    assert captured(inspector, tmp_path) == []


BODIES = {
    "coded": (gzip.compress(REPLY.encode()), {"content-encoding": "gzip"}, '{"data"'),
    "not what its coding says": (b"{" + bytes(40), {"content-encoding": "gzip"}, None),
    "a sound": (b"ID3\0\0" + bytes(99), {"content-type": "audio/mpeg"}, None),
    "a stream": (b'data: {"a": 1}\n\n', {"content-type": "text/event-stream"}, "data: "),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_reply_is_kept_where_it_is_text(inspector: Inspector, tmp_path: Path, name: str) -> None:
    reply, fields, kept = BODIES[name]
    url, body, _ = RECORDED["a vendor's embeddings"]
    passed(inspector, url, body, reply, **fields)
    (line,) = captured(inspector, tmp_path)
    assert line["end"] in ("complete", "unread")
    kept_body = line["response"]["body"]
    assert kept_body is None if kept is None else kept_body.startswith(kept)


def test_the_summary_counts_them(inspector: Inspector, tmp_path: Path) -> None:
    passed(inspector, *RECORDED["a vendor's embeddings"][:2])
    inspector.done()
    counts = Statistics()
    for item in judged(tmp_path, "exchanges.jsonl"):
        counts.add(item)
    assert counts.summary() == "1 exchange (1 unrecognised (1 skipped)) in 1 file: nothing found"
