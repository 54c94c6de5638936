"""The stream callable that fixes replies: every byte leaves once, and the recorder learns what was sent."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http

from tests.addon.build import CODERS, captured, flow_of, head_of, pass_head
from tests.build import Talk, as_record, in_pieces, some
from tests.cuts import events_of
from tests.tables import rows, tables
from wirelint.addon import streamed_reply as module
from wirelint.addon.addon import Inspector
from wirelint.addon.streamed_reply import HttpReply

RULES = Path(__file__).parent / "repairs"
QUIET = Talk(text="They say «hello to you» and go. Ünder ☂.")
CLEAN = Talk(text="All is well. Ünder ☂.")
OPEN = Talk(text="They say «hello to you and go on, and on.")
SAID = "They say HELLO TO YOU and go. Ünder ☂."
APIS = ("openai.chat", "anthropic.messages")


def record_of(talk: Talk, api: str = "openai.chat") -> dict[str, Any]:
    return talk.record(api, True)


def body_of(record: dict[str, Any]) -> bytes:
    return as_record(record).response_body or b""


OPTIONS = {
    "wirelint_rules": str(RULES),
    "wirelint_select": "XX901",
    "wirelint_fix": "unsafe",
    "wirelint_max_body": "64k",
}


def begin(inspector: Inspector, record: dict[str, Any], **headers: str) -> http.HTTPFlow:
    """A flow whose reply is about to come."""
    flow, response = flow_of(record), head_of(record)
    response.headers["transfer-encoding"] = "chunked"
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    pass_head(inspector, flow, response)
    assert isinstance(response.stream, HttpReply)
    assert response.stream.is_repaired
    return flow


def feed(flow: http.HTTPFlow, pieces: Iterable[bytes], *, end: bool = True) -> bytes:
    """What the client gets. Nothing that is sent may be empty."""
    stream = some(flow.response).stream
    assert callable(stream)
    out: list[bytes] = []
    for piece in [*pieces, *([b""] if end else [])]:
        sent = stream(piece)
        assert isinstance(sent, list)
        out += sent
    assert all(out), "an empty chunk ends a chunked reply"
    return b"".join(out)


CODINGS = {"identity": bytes, **CODERS, "gzip, br": lambda body: CODERS["br"](CODERS["gzip"](body))}


@pytest.mark.parametrize("size", [1, 13, 1 << 20])
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("api", APIS)
def test_clean_replies_pass_byte_for_byte(
    inspector: Inspector, tmp_path: Path, api: str, coding: str, size: int
) -> None:
    record = record_of(CLEAN, api)
    flow = begin(inspector, record, content_encoding=coding)
    assert feed(flow, in_pieces(CODINGS[coding](body_of(record)), size)) == body_of(record)
    inspector.response(flow)
    assert some(flow.response).raw_content == body_of(record)
    (line,) = captured(inspector, tmp_path)
    assert line["response"]["body"].encode() == body_of(record)
    assert not {"delivered", "forwarded", "fixes"} & line.keys()
    assert "wirelint.received" not in flow.metadata


@pytest.mark.parametrize("size", [1, 13, 1 << 20])
@pytest.mark.parametrize("coding", CODINGS)
def test_a_repair_does_not_depend_on_the_cut(inspector: Inspector, tmp_path: Path, coding: str, size: int) -> None:
    record = record_of(QUIET)
    flow = begin(inspector, record, content_encoding=coding)
    got = feed(flow, in_pieces(CODINGS[coding](body_of(record)), size))
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert text_of(got) == SAID
    assert line["delivered"]["body"].encode() == got
    assert line["response"]["body"].encode() == body_of(record)
    assert some(flow.response).raw_content == got
    assert [finding["name"] for finding in line["findings"]] == ["murmur"]


def text_of(body: bytes) -> str:
    documents = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for document in documents for choice in document["choices"])


@rows(tables(__file__)["heads"])
def test_heads(given: dict[str, str], versions: str, expected: dict[str, str | None], inspector: Inspector) -> None:
    """How long the body is, for a client of the second version, when the upstream speaks the first."""
    upstream, client = versions.split()[0], versions.split()[-1]
    flow = flow_of(record_of(QUIET))
    flow.request.http_version = client
    inspector.request(flow)
    flow.response = head_of(record_of(QUIET))
    flow.response.http_version = upstream if client != "HTTP/1.0" else "HTTP/1.1"
    for field, value in given.items():
        flow.response.headers[field] = value
    inspector.responseheaders(flow)
    assert {field: flow.response.headers.get(field) for field in expected} == expected
    assert flow.response.headers["x-wirelint"] == "fix=unsafe"


def test_a_body_above_the_limit(inspector: Inspector, tmp_path: Path) -> None:
    large = Talk(text="They say «" + "hello " * 14_000 + "» and go on, «and on».")
    record = record_of(large)
    flow = begin(inspector, record)
    assert feed(flow, in_pieces(body_of(record), 700)) == body_of(record)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert (line["end"], line["response"]["body"], line["findings"]) == ("unread", None, [])
    assert "wirelint_max_body" in line["notes"][0]


def killed(flow: http.HTTPFlow) -> bool:
    return flow.error is not None and flow.error.msg == mitmproxy_flow.Error.KILLED_MESSAGE


@pytest.mark.parametrize("step", [1, 7, 4096])
@pytest.mark.parametrize("coding", sorted(CODINGS.keys() - {"identity"}))
def test_a_coding_that_ends_too_early(inspector: Inspector, tmp_path: Path, coding: str, step: int) -> None:
    """What was decoded is delivered, and the client must not take the end for a good one."""
    record = record_of(CLEAN)
    plain = body_of(record)
    coded = CODINGS[coding](plain)
    flow = begin(inspector, record, content_encoding=coding)
    got = feed(flow, in_pieces(coded[: len(coded) * 3 // 4], step))
    assert plain.startswith(got)
    assert len(got) < len(plain)
    if coding in ("gzip", "deflate", "br"):
        assert got
    assert killed(flow)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert (line["end"], line["error"]) == ("upstream-died", "the compressed reply is cut off")


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_a_coding_that_breaks_in_the_middle(inspector: Inspector, tmp_path: Path, step: int) -> None:
    record = record_of(CLEAN)
    plain = body_of(record)
    squeezer = zlib.compressobj(0, wbits=31)  # stored, so that the damage is not among the first bytes that are decoded
    good = squeezer.compress(plain[:400]) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    flow = begin(inspector, record, content_encoding="gzip")
    assert feed(flow, in_pieces(good + b"no gzip" * 9 + b"and more", step)) == plain[:400]
    assert killed(flow)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert "does not match its content-encoding" in line["notes"][0]


@pytest.mark.parametrize("coding", sorted(CODINGS.keys() - {"identity"}))
def test_a_body_that_swells(inspector: Inspector, coding: str, caplog: pytest.LogCaptureFixture) -> None:
    limit = inspector.settings.max_body if inspector.settings is not None else 0
    bomb = CODINGS[coding](bytes(32 << 20))
    flow = begin(inspector, record_of(CLEAN), content_encoding=coding)
    got = feed(flow, in_pieces(bomb, 1 << 9))
    assert len(got) <= limit + 64 * len(bomb) + (17 << 20 if "br" in coding else 9 << 20), len(got)
    assert killed(flow)
    said = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert [("closed" in line, "decodes to far more" in line) for line in said] == [(True, True)]


def test_a_long_stream_that_is_coded_is_delivered_whole(inspector: Inspector) -> None:
    """Above the limit nothing is read any more, and nothing is lost."""
    limit = inspector.settings.max_body if inspector.settings is not None else 0
    events = [b'data: {"choices":[{"index":0,"delta":{"content":"word %d "}}]}\n\n' % n for n in range(3000)]
    assert sum(map(len, events)) > 2 * limit
    squeezer = zlib.compressobj(wbits=31)
    pieces = [squeezer.compress(one) + squeezer.flush(zlib.Z_SYNC_FLUSH) for one in events]
    flow = begin(inspector, record_of(CLEAN), content_encoding="gzip")
    assert feed(flow, [*pieces, squeezer.flush()]) == b"".join(events)
    assert flow.error is None


@pytest.mark.parametrize("message", ["Client disconnected.", "peer closed connection"])
def test_an_exchange_that_ends_while_text_is_held(inspector: Inspector, tmp_path: Path, message: str) -> None:
    record = record_of(OPEN)
    pieces = events_of(body_of(record))[:-2]
    flow = begin(inspector, record)
    got = feed(flow, pieces, end=False)
    sent = b"".join(pieces)
    assert sent.startswith(got)
    assert len(got) < len(sent), "nothing was held, so nothing was tested"
    flow.error = mitmproxy_flow.Error(message)
    inspector.error(flow)
    (line,) = captured(inspector, tmp_path)
    assert line["response"]["body"].encode() == sent
    assert line["delivered"]["body"].encode() == got
    assert "fixes" not in line
    assert line["notes"] == [
        f"{len(sent) - len(got)} bytes were held back when the exchange ended; they were not delivered"
    ]


def test_an_empty_call_releases_and_is_no_end_of_http2(inspector: Inspector, tmp_path: Path) -> None:
    record = record_of(OPEN)
    flow, response = flow_of(record), head_of(record)
    response.http_version = "HTTP/2.0"
    pass_head(inspector, flow, response)
    body = body_of(record)
    middle = body.index("«".encode()) + 40
    assert feed(flow, [body[:middle], b"", body[middle:], b"", b""]) == body
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert "delivered" not in line


@pytest.mark.parametrize("size", [5, 1 << 20])
def test_an_event_stream_of_aws_passes_unread_where_nothing_decodes_it(
    inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    record = QUIET.record("bedrock.converse", True)
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    flow = begin(inspector, record)
    assert feed(flow, in_pieces(body_of(record), size)) == body_of(record)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    told = line["api"], line["end"], line["findings"], "delivered" in line
    assert told == ("bedrock.converse", "unread", [], False)
    assert line["notes"] == ["the reply is an AWS event stream; reading it takes botocore, which is not installed"]


def test_calls_after_the_end(inspector: Inspector) -> None:
    """mitmproxy may call between `error` and `response`, and after them."""
    record = record_of(CLEAN)
    flow = begin(inspector, record)
    first, second = in_pieces(body_of(record), len(body_of(record)) // 2 + 1)
    assert feed(flow, [first], end=False)
    flow.error = mitmproxy_flow.Error("Client disconnected.")
    inspector.error(flow)
    assert feed(flow, [second])
    inspector.response(flow)


def test_another_addon_that_streams(inspector: Inspector, tmp_path: Path) -> None:
    record = record_of(QUIET)
    flow, response = flow_of(record), head_of(record)
    response.stream = lambda data: data.replace(b"hello", b"olleh")
    pass_head(inspector, flow, response)
    assert isinstance(response.stream, HttpReply)
    assert not response.stream.is_repaired
    assert "x-wirelint" not in response.headers
    response.stream(body_of(record))
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert line["notes"] == ["another addon rewrites this reply while it streams; it was not repaired"]


def test_preparing_fails(inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(module, "make_open_ended", raising)
    record = record_of(QUIET)
    flow = flow_of(record)
    response = pass_head(inspector, flow, head_of(record))
    assert callable(response.stream)
    assert response.stream(body_of(record)) == body_of(record)
    inspector.response(flow)
    (line,) = captured(inspector, tmp_path)
    assert sorted(finding["name"] for finding in line["findings"]) == ["internal-error", "murmur"]
