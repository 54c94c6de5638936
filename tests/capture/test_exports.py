"""What `wirelint export` writes: read again, it is the same exchanges with the same findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader

from tests.build import REGISTRY
from tests.command import Wirelint
from tests.selection import rotated
from tests.tables import rows, tables
from wirelint.capture.format import encode
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record, Sent
from wirelint.capture.redact import Redactor
from wirelint.fix import AppliedFix
from wirelint.model import Timing

ROOT = Path(__file__).resolve().parents[2]
RULES = REGISTRY.select([])
TABLES = tables(__file__)
KEY = "sk-ant-api03-Zq8vKx2LmTn4Rw6YpBdFhJcGs1Eu3Ao5Xi7Vk9Mt"
JSON = (("content-type", "application/json"),)
CHAT = "https://llm.example/v1/chat/completions?tier=a&tier=b"


def _verdict(path: Path) -> list[tuple[Any, ...]]:
    """All that counts of the exchanges of a file: what they are, and what is found in them."""
    items = list(check(read([path]), RULES))
    assert not [item for item in items if isinstance(item, Problem)]
    return [_seen(item) for item in items if isinstance(item, Checked)]


def _seen(item: Checked) -> tuple[Any, ...]:
    record = item.record
    return (
        (record.id, record.method, record.url, record.status, record.end, record.error, record.timing, record.chunks),
        (record.request_body, record.response_body or b"", record.forwarded, record.delivered, record.fixes),
        (sorted(record.missing), item.findings),
    )


REPAIR = AppliedFix("LK101", "xml-leak", "unsafe", "response", "promote", "/choices/0", None, "a", "b")
ASK = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
STREAM = ASK[:-1] + b',"stream":true}'
CUT = b'data: {"choices":[{"index":0,"delta":{"content":"\xc3\xa9"},"finish_reason":null}]}\n\n'
SSE, ODD = (("content-type", "text/event-stream"),), (("x-odd", "é\udcff"),)
VERSION = (("anthropic-version", "2023-06-01"),)
DONE = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}'
MESSAGE = b'{"type":"message","content":[{"type":"text","text":"Hi."}],"stop_reason":null}'
CUT_AT = ((20.5, 30), (900.0, len(CUT) - 30))
RECORDS = (
    Record("plain", "POST", CHAT, JSON, ASK, 200, JSON, DONE, end="complete"),
    Record("cut", "POST", CHAT, JSON, STREAM, 200, SSE, CUT, CUT_AT, Timing(1769852700.25, 20.5, 900.0, 950.0),
           "upstream-died", "connection lost"),
    Record("silent", "POST", CHAT, JSON, ASK, timing=Timing(None, None, None, 75000.0), end="client-left", error="Gone."),
    Record("binary", "POST", "https://h/v1/audio", (), b"\xff\xfe", 200, ODD, b"\x00\xff", end="complete"),
    Record("repaired", "POST", CHAT, JSON, ASK, 200, JSON, DONE, end="complete",
           forwarded=Sent(JSON, b'{"model":"n"}'), delivered=Sent(JSON, b"{}"), fixes=(REPAIR,)),
    Record("a log's", "POST", "/v1/messages", VERSION, ASK, 200, (), MESSAGE, end="complete",
           missing=frozenset({"request", "finish"})),
)  # fmt: skip


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    odd = tmp_path_factory.mktemp("captures") / "odd.jsonl"
    odd.write_bytes(b"".join(encode(record) for record in RECORDS))
    lines = (ROOT / "tests" / "corpus" / "anomalies.jsonl").read_bytes().splitlines(keepends=True)
    some = odd.with_name("some.jsonl")
    some.write_bytes(b"".join(lines[::9]))
    return {
        "odd": odd,
        "samples": ROOT / "captures" / "samples" / "faults.jsonl",
        "anomalies": some,
    }


SUFFIXES = ["har", "mitm", "jsonl"]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, suffix) for name in ("odd", "anomalies") for suffix in SUFFIXES]
    + [("samples", suffix) for suffix in rotated(SUFFIXES, "samples")],
)
def test_read_again_it_is_the_same(
    captures: dict[str, Path], tmp_path: Path, wirelint: Wirelint, name: str, suffix: str
) -> None:
    source, out = captures[name], tmp_path / f"out.{suffix}"
    told = wirelint("export", source, "-o", out)
    before, after = _verdict(source), _verdict(out)
    assert told.status == 0
    assert f"{len(before)} of {len(before)} exchanges" in told.err
    if suffix == "mitm":  # a flow has an address, and its bodies no codings
        before = [_like_a_flow(one) for one in before]
        after = [_like_a_flow(one) for one in after]
    assert after == before


def _like_a_flow(seen: tuple[Any, ...]) -> tuple[Any, ...]:
    (id_, method, url, *rest), *others = seen
    return ((id_, method, url.removeprefix("http://unknown.invalid"), *rest), *others)


def test_what_a_har_says(captures: dict[str, Path], tmp_path: Path, wirelint: Wirelint) -> None:
    out = tmp_path / "out.har"
    wirelint("export", captures["odd"], "-o", out)
    log = json.loads(out.read_text(encoding="utf-8"))["log"]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "wirelint")
    plain, cut, silent, binary, *_ = log["entries"]
    assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= plain.keys()
    assert plain["request"]["queryString"] == [{"name": "tier", "value": "a"}, {"name": "tier", "value": "b"}]
    assert plain["request"]["postData"] == {"mimeType": "application/json", "text": ASK.decode()}
    assert plain["response"]["content"]["text"] == DONE.decode()
    assert cut["startedDateTime"] == "2026-01-31T09:45:00.250+00:00"
    assert cut["timings"] == {"send": 0, "wait": 20.5, "receive": 929.5}
    assert "truncated-stream: " in cut["comment"]
    assert "truncated-stream" in [finding["name"] for finding in cut["_wirelint"]["findings"]]
    assert silent["response"]["status"] == 0
    assert binary["response"]["content"]["encoding"] == "base64"


def test_what_a_flow_says(captures: dict[str, Path], tmp_path: Path, wirelint: Wirelint) -> None:
    out = tmp_path / "out.mitm"
    wirelint("export", captures["samples"], "-o", out, "--severity", "error")
    with out.open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]
    assert flows
    assert {flow.marked for flow in flows} == {":bangbang:"}
    assert all(flow.metadata["wirelint.findings"][0] in flow.comment for flow in flows)


@rows(TABLES["choices"])
def test_choosing(
    options: list[str], ids: list[str], captures: dict[str, Path], tmp_path: Path, wirelint: Wirelint
) -> None:
    out = tmp_path / "out"
    wirelint("export", captures["odd"], "-o", out, "--format", "jsonl", *options)
    assert [json.loads(line)["id"] for line in out.read_bytes().splitlines()] == ids


def test_nothing_secret_is_written(tmp_path: Path, wirelint: Wirelint) -> None:
    source = tmp_path / "in.jsonl"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY}"}]}).encode()
    leak = Record("x", "POST", CHAT, (("authorization", f"Bearer {KEY}"),), body, 200, JSON, body, error=KEY)
    source.write_bytes(encode(leak))
    for suffix in ("har", "mitm", "jsonl"):
        wirelint("export", source, "-o", tmp_path / f"out.{suffix}")
        assert KEY.encode() not in (tmp_path / f"out.{suffix}").read_bytes()
        assert b"[redacted:" in (tmp_path / f"out.{suffix}").read_bytes()
    assert Redactor().record(leak).error != KEY


@rows(TABLES["wrong"])
def test_wrong_input(
    options: list[str],
    says: str,
    captures: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wirelint: Wirelint,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken.har").touch()
    wirelint("export", captures["odd"], *options).refuses(says)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken.har"]
