"""`wirelint check`: formats, exit status, what is said about input that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from tests.build import Talk, User, chunk, exchange, sse
from tests.command import Wirelint
from tests.tables import rows, tables
from wirelint.wire import content_coding

BODY = {
    "model": "acme-1",
    "stream": True,
    "stream_options": {"include_usage": False},
    "messages": [{"role": "user", "content": "Name the planets."}],
}
CUT = exchange(
    "/v1/chat/completions", BODY, sse(chunk({"content": "Mercury, Ve"}), done=False), content_type="text/event-stream"
)
CLEAN = Talk((User("Hello"),), text="Hello to you.").record("openai.chat", True)
KEYS = {
    "code", "name", "severity", "confidence", "layer", "side", "pointer", "event", "message", "source", "exchange", "api",
    "model", "fix", "fingerprint", "issue", "first_seen", "last_seen", "count",
}  # fmt: skip


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_clean_is_0_found_is_1_and_exit_zero_is_0(wirelint: Wirelint, tmp_path: Path) -> None:
    clean, cut = write(tmp_path / "clean.jsonl", CLEAN), write(tmp_path / "cut.jsonl", CUT)
    assert wirelint("check", clean).status == 0
    assert wirelint("check", cut).status == 1
    assert wirelint("check", "--exit-zero", cut).status == 0


def test_jsonl_has_the_fields_that_programs_rely_on(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "mixed.jsonl", CLEAN, {**CUT, "id": "second"})
    ran = wirelint("check", "--output-format", "jsonl", path)
    findings = [json.loads(line) for line in ran.out.splitlines()]
    assert [set(finding) for finding in findings] == [KEYS]
    (finding,) = findings
    assert finding["code"], finding["name"] == ("ST604", "truncated-stream")
    assert (finding["source"], finding["exchange"]) == (str(path), "second")
    assert (finding["api"], finding["model"], finding["side"]) == ("openai.chat", "acme-1", "response")
    assert (finding["pointer"], finding["event"], finding["fix"]) == ("/choices/0/message/content", 0, None)


def test_json_is_one_array_and_concise_one_line_each(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl", CUT, CUT)
    assert [finding["code"] for finding in json.loads(wirelint("check", "--output-format=json", path).out)] == [
        "ST604"
    ] * 2
    assert json.loads(wirelint("check", "--output-format=json", "--ignore=ALL", path).out) == []
    lines = wirelint("check", "--output-format=concise", path).out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{path}:")
    assert "ST604 truncated-stream error gateway" in lines[0]


@pytest.mark.parametrize("columns", [80, 160])
def test_full_fits_the_terminal(wirelint: Wirelint, tmp_path: Path, columns: int) -> None:
    path = write(tmp_path / "cut.jsonl", CUT)
    ran = wirelint("check", path, columns=columns)
    assert "ST604 truncated-stream" in ran.out
    assert "Mercury, Ve" in ran.out
    assert max(map(len, ran.out.splitlines())) <= columns
    assert "1 exchange in 1 file: 1 error" in ran.err


def test_statistics_are_an_aligned_table(wirelint: Wirelint, tmp_path: Path) -> None:
    leak = Talk((User("Go."),), text='<tool_call>{"name": "a", "arguments": {}}</tool_call>', tools={"a": {}})
    path = write(tmp_path / "mixed.jsonl", CUT, CUT, leak.record("openai.chat", False), CLEAN)
    assert wirelint("check", "--statistics", path, columns=80).out.splitlines() == [
        "count  rule                    severity  layer    fixable",
        "    2  ST604 truncated-stream  error     gateway  -",
        "    1  LK101 xml-leak          error     gateway  1 unsafe",
    ]
    assert wirelint("check", "--statistics", write(tmp_path / "clean.jsonl", CLEAN)).out == ""


def test_full_shows_the_source(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl", {**CUT, "id": "cut-1"})
    lines = wirelint("check", path, columns=80).out.splitlines()
    assert lines[lines.index("  cut-1  openai.chat  acme-1  stream  200") :] == [
        "  cut-1  openai.chat  acme-1  stream  200",
        "    ● ST604 truncated-stream  error · gateway",
        "      the stream ends after 'Mercury, Ve', without finish reason or terminator",
        "      --> response /choices/0/message/content, event 0",
        "           │",
        '         0 │ …: 0, "delta": {"content": "Mercury, Ve"}, "finish_reason": null}]}',
        "           │                             ^^^^^^^^^^^",
        "",
    ]


def test_standard_input_and_bodies_as_objects(wirelint: Wirelint) -> None:
    record = {"request": {"url": "/v1/chat/completions", "body": BODY}, "response": {"body": CUT["response"]["body"]}}
    ran = wirelint("check", "--output-format=jsonl", "-", stdin=json.dumps(record).encode() + b"\n")
    assert ran.status == 1
    assert json.loads(ran.out)["source"] == "-"


@pytest.mark.parametrize(
    ("content", "says", "found"),
    [
        (b"", ("bad.jsonl", "nothing in it"), 0),
        (b"not a capture\n", ("bad.jsonl",), 0),
        (b'{"request": {"url": "x"', ("bad.jsonl",), 0),
        (json.dumps(CUT).encode() + b'\n{"request": {"ur', ("bad.jsonl", "line 2"), 1),
        (json.dumps(CUT).encode() + b"\n[1, 2]\n", ("bad.jsonl", "line 2"), 1),
        (b"\x00\x01\x02\x03" * 40, ("bad.jsonl",), 0),
    ],
    ids=["empty", "garbage", "torn first", "torn last", "not an object", "binary"],
)
def test_bad_input_is_one_line_and_2(
    wirelint: Wirelint, tmp_path: Path, content: bytes, says: tuple[str, ...], found: int
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    ran = wirelint("check", "--output-format=jsonl", path)
    assert ran.status == 2
    assert len(ran.out.splitlines()) == found
    problems = [line for line in ran.err.splitlines() if line.startswith("wirelint: ")]
    assert len(problems) == 1
    assert all(word in problems[0] for word in says), problems
    assert "Traceback" not in ran.err
    assert "nothing found" not in ran.err
    assert ("nothing could be read" in ran.err) is not bool(found)


@rows(tables(__file__)["wrong"])
def test_wrong_arguments_are_one_line_and_2(
    args: list[str], says: str, wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captures").mkdir()
    write(tmp_path / "captures" / "run.jsonl", CLEAN)
    ran = wirelint(*args)
    assert ran.status == 2
    lines = [line for line in ran.err.splitlines() if "0 exchanges" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("wirelint: ")
    assert says in lines[0]


def test_of_what_could_not_be_read_nothing_is_claimed(wirelint: Wirelint, tmp_path: Path) -> None:
    path = tmp_path / "half.jsonl"
    path.write_text(json.dumps(CLEAN) + "\n[1, 2]\n")
    assert "1 exchange in 1 file: nothing found in what could be read" in wirelint("check", path).err


def test_a_reply_that_was_read_in_part_is_not_called_clean(wirelint: Wirelint, tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text(json.dumps(Talk(text="It is. " * 600).record("openai.chat", False)))
    said = "nothing found in what could be read; 1 exchange read in part (wirelint show has the reasons)"
    assert said in wirelint("check", tmp_path / "long.jsonl").err
    assert "sentences between the first and the last 256" in wirelint("show", tmp_path / "long.jsonl", columns=200).out


def test_a_reply_that_is_too_large_to_decode_is_not_called_clean(
    wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_coding, "MOST_PLAIN", 1 << 16)
    flow = tflow.tflow(resp=True)
    body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
    flow.request = http.Request.make("POST", "https://api.openai.com/v1/chat/completions", body)
    flow.response = http.Response.make(200, b"", {"content-type": "text/event-stream", "content-encoding": "gzip"})
    flow.response.raw_content = gzip.compress(b'data: {"choices": []}\n\n' * 10_000)
    with (tmp_path / "large.flow").open("wb") as file:
        FlowWriter(file).add(flow)  # type: ignore[no-untyped-call, unused-ignore]
    ran = wirelint("check", tmp_path / "large.flow")
    assert "nothing found in what could be read; bodies of 1 exchange not read (too large or damaged)" in ran.err
    assert (
        "larger than 0 MiB without its content-encoding" in wirelint("show", tmp_path / "large.flow", columns=200).out
    )
