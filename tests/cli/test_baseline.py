"""Known findings: what is known of a recording when it is made again, what is new, what is gone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from tests.build import chunk, exchange, sse
from tests.cli.test_check import BODY, CLEAN, CUT, write
from tests.command import Wirelint
from tests.tables import rows, tables
from wirelint.rule import Finding
from wirelint.state.issues import evidence, fingerprint

TABLES = tables(__file__)
AGAIN = exchange(
    "/v1/chat/completions", BODY, sse(chunk({"content": "Now, the planets"}), done=False),
    content_type="text/event-stream",
)  # fmt: skip
BROKEN = {**CLEAN, "response": {**CLEAN["response"], "body": sse(chunk({"content": "<|im_end|>"}, finish="stop"))}}


def test_known_findings_are_not_reported(wirelint: Wirelint, tmp_path: Path) -> None:
    cut, known = write(tmp_path / "cut.jsonl", CUT), tmp_path / "known.json"
    ran = wirelint("check", "--baseline", known, "--write-baseline", cut)
    assert (ran.status, ran.out) == (0, "")
    assert f"wrote {known}: 1 finding" in ran.err
    again = write(tmp_path / "again.jsonl", AGAIN, {**AGAIN, "id": "another"})
    ran = wirelint("check", "--baseline", known, "--output-format=json", again)
    assert (ran.status, json.loads(ran.out)) == (0, [])
    assert "2 findings known from" in ran.err


def test_new_ones_are_reported_and_gone_ones_mentioned(wirelint: Wirelint, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    wirelint("check", "--baseline", known, "--write-baseline", write(tmp_path / "cut.jsonl", CUT))
    new = write(tmp_path / "new.jsonl", BROKEN)
    ran = wirelint("check", "--baseline", known, "--output-format=json", new)
    assert ran.status == 1
    assert "ST604" not in ran.out
    assert f"gone since {known}: truncated-stream (1); --write-baseline removes them" in ran.err
    assert "gone" not in wirelint("check", "--baseline", known, "--select=LK", new).err, "it was not looked for"


def test_the_file_can_be_reviewed(wirelint: Wirelint, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    wirelint("check", "--baseline", known, "--write-baseline", write(tmp_path / "cut.jsonl", CUT, CUT))
    first = known.read_text("utf-8")
    (entry,) = json.loads(first)["findings"]
    assert {**entry, "fingerprint": ""} == {
        "fingerprint": "",
        "code": "ST604",
        "name": "truncated-stream",
        "layer": "gateway",
        "place": "response /choices/*/message/content",
        "evidence": "the stream ends after …, without finish reason or terminator",
        "count": 2,
    }
    wirelint("check", "--baseline", known, "--write-baseline", tmp_path / "cut.jsonl")
    assert known.read_text("utf-8") == first


@rows(TABLES["wrong"])
def test_a_wrong_file_is_one_line_and_2(text: str | None, says: str, wirelint: Wirelint, tmp_path: Path) -> None:
    cut, known = write(tmp_path / "cut.jsonl", CUT), tmp_path / "known.json"
    if text is not None:
        known.write_text(text, encoding="utf-8")
    wirelint("check", "--baseline", known, cut).refuses("", f"wirelint: {known}: {says}")


def test_writing_needs_a_place(wirelint: Wirelint, tmp_path: Path) -> None:
    cut = write(tmp_path / "cut.jsonl", CUT)
    ran = wirelint("check", "--write-baseline", "--baseline", tmp_path / "no" / "such.json", cut)
    assert ran.status == 2
    assert "No such file or directory; name a writable place" in ran.err


FINDING = Finding("AR401", "n", "error", "high", "model", "response", "", "/choices/0/message/tool_calls/12")


@rows(TABLES["same"])
def test_a_finding_of_another_run_has_the_same_fingerprint(first: str, second: str) -> None:
    one, two = (dataclasses.replace(FINDING, message=message) for message in (first, second))
    assert evidence(one) == evidence(two)
    assert fingerprint(one) == fingerprint(dataclasses.replace(two, pointer="/choices/3/message/tool_calls/0", event=7))


@rows(TABLES["different"])
def test_another_finding_has_another_fingerprint(first: str, second: str) -> None:
    one, two = (dataclasses.replace(FINDING, message=message) for message in (first, second))
    assert fingerprint(one) != fingerprint(two)
    for change in ({"layer": "client"}, {"side": "request"}, {"code": "AR402"}, {"pointer": "/choices/0"}):
        assert fingerprint(one) != fingerprint(dataclasses.replace(one, **change))  # type: ignore[arg-type]
