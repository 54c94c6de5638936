"""Repaired files: of the kind that was read, with all that no repair concerns as it was."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import flow as mitm_flow
from mitmproxy import http
from mitmproxy.io import FlowReader
from mitmproxy.test import tflow

from tests.build import some
from tests.capture.shouts import NONE, SAFE, SHOUT, UNSAFE, record
from wirelint.capture.format import changes
from wirelint.capture.offline import Fixed, fix
from wirelint.capture.readers import Problem, open_source
from wirelint.capture.record import Record
from wirelint.capture.writers import Staging, TargetError, write
from wirelint.capture.writers.flows import flow_bytes
from wirelint.fix import FixPolicy


@pytest.fixture
def repair(tmp_path: Path) -> Callable[..., bytes]:
    """Writes bytes to a file and gives the bytes of the repaired one. `problems` collects what the reader said."""

    def run(data: bytes, permit: FixPolicy = SAFE, problems: list[Problem] | None = None) -> bytes:
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(data)
        items = list(fix(open_source(source), SHOUT, permit))
        found = [item for item in items if isinstance(item, Problem)]
        assert problems is not None or not found, found
        if problems is not None:
            problems += found
        write(source, (item for item in items if isinstance(item, Fixed)), target)
        return target.read_bytes()

    return run


AppliedFix = Callable[..., bytes]


def _read(path: Path) -> list[Record]:
    records = list(open_source(path))
    assert all(isinstance(item, Record) for item in records), records
    return [item for item in records if isinstance(item, Record)]


def _lines(*records: Any) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in records)


# --- records ----------------------------------------------------------------------------------------------------------


def test_lines_keep_all_that_they_have(repair: AppliedFix) -> None:
    made = record("LOUD", "LOUD")
    odd = {
        "title": "é\u2028",
        **made,
        "request": {**made["request"], "body": json.loads(made["request"]["body"]), "extra": [1.50, 1 << 70]},
        "notes": ["n"],
        "id": "odd",
    }
    quiet = b'  {"request":  {"body": {"a": 1}}, "id": "quiet"}  \r\n'
    data = b"\xef\xbb\xbf\n" + quiet + _lines(odd, made) + b"\n" + quiet.strip()
    out = repair(data)
    before, after = data.splitlines(keepends=True), out.splitlines(keepends=True)
    assert [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [2, 3]
    assert after[2].startswith(before[2].rstrip()[:-1])  # the members of before, to the byte
    value = json.loads(after[2])
    assert {name: value[name] for name in odd} == odd
    assert set(value) - set(odd) == {"forwarded", "delivered", "fixes"}
    assert "calm" in value["forwarded"]["body"]
    assert [item["patch"] for item in value["fixes"]] == ["- LOUD\n+ calm"] * 2


def test_lines_twice(repair: AppliedFix) -> None:
    once = repair(_lines(record("LOUD", "LOUD SCREAM"), record()))
    assert repair(once) == once
    more = repair(once, UNSAFE)
    assert more == repair(_lines(record("LOUD", "LOUD SCREAM"), record()), UNSAFE)
    assert repair(more, NONE) == _lines(record("LOUD", "LOUD SCREAM"), record())


def test_lines_that_cannot_be_read_are_copied(repair: AppliedFix) -> None:
    problems: list[Problem] = []
    data = b'{"id": oops}\n' + _lines(record(answer="LOUD")) + b'[1]\n{"request": {"bo'
    out = repair(data, SAFE, problems)
    assert [str(problem).partition(": ")[2][:6] for problem in problems] == ["line 1"]
    assert out.startswith(b'{"id": oops}\n{')
    assert out.endswith(b'}\n[1]\n{"request": {"bo')
    assert b"calm" in out


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("array", [False, True])
def test_documents(repair: AppliedFix, indent: int | None, array: bool) -> None:
    made = {**record(answer="LOUD"), "id": "1"}
    data = json.dumps([made, {"no": "record"}, made] if array else made, indent=indent).encode()
    problems: list[Problem] = []
    out = json.loads(repair(data, SAFE, problems))
    assert len(problems) == array
    for value in (out[0], out[2]) if array else (out,):
        assert "calm" in value["delivered"]["body"]
        assert {name: value[name] for name in made} == made
    assert not array or out[1] == {"no": "record"}


# --- HAR --------------------------------------------------------------------------------------------------------------


def _entry(said: str, answer: str, stream: bool = True, **content: Any) -> dict[str, Any]:
    made = record(said, answer, stream=stream)
    request, response = made["request"], made["response"]
    size = len(response["body"].encode())
    return {
        "startedDateTime": "2026-01-31T09:45:00.250Z",
        "time": 1.50,
        "request": {
            "method": "POST",
            "url": request["url"],
            "headers": [
                {"name": ":path", "value": "/v1"},
                {"name": "Content-Length", "value": "1"},
                {"name": "content-length", "value": "1"},
            ],
            "postData": {"mimeType": "application/json", "text": request["body"]},
            "bodySize": 1,
            "headersSize": -1,
        },
        "response": {
            "status": 200,
            "headers": [
                {"name": "Content-Encoding", "value": "gzip"},
                {"name": "Content-Type", "value": response["headers"]["content-type"], "comment": "c"},
            ],
            "content": content or {"size": size, "compression": 7, "text": response["body"], "mimeType": "x"},
            "bodySize": -1,
            "_error": None,
        },
        "_mine": {"kept": [1, 2.50]},
    }


def _har(*entries: Any, creator: str = "WebInspector", indent: int | None = None) -> bytes:
    log = {"version": "1.2", "creator": {"name": creator}, "entries": entries, "pages": []}
    return json.dumps({"log": log}, indent=indent).encode()


@pytest.mark.parametrize("indent", [None, 2])
def test_har(repair: AppliedFix, tmp_path: Path, indent: int | None) -> None:
    data = _har(_entry("LOUD", "LOUD"), _entry("quiet", "quiet"), _entry("quiet", "LOUD"), indent=indent)
    out = repair(data)
    before, after = (json.loads(text)["log"]["entries"] for text in (data, out))
    assert after[1] == before[1]
    assert {name: value for name, value in after[2].items() if name not in ("_wirelint", "response")} == {
        name: value for name, value in before[2].items() if name != "response"
    }
    request, response = after[0]["request"], after[0]["response"]
    assert "calm" in request["postData"]["text"]
    assert request["bodySize"] == len(request["postData"]["text"])
    assert request["headers"] == [
        before[0]["request"]["headers"][0],
        {"name": "Content-Length", "value": str(request["bodySize"])},
    ]
    assert "calm" in response["content"]["text"]
    assert response["content"] == {
        "size": len(response["content"]["text"]),
        "text": response["content"]["text"],
        "mimeType": "x",
    }
    assert response["headers"] == before[0]["response"]["headers"][1:]
    assert response["bodySize"] == -1
    read = _read(tmp_path / "target")
    assert [bool(item.fixes) for item in read] == [True, False, True]
    assert b"LOUD" in (read[0].response_body or b"")
    assert b"calm" in (some(read[0].delivered).body or b"")
    assert repair(out) == out
    assert json.loads(repair(out, NONE))["log"]["entries"][1] == before[1]


BODY = record(answer="LOUD é")["response"]["body"]
CONTENTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "text": ("WebInspector", {"text": BODY}, "text"),
    "base64": ("WebInspector", {"text": base64.b64encode(BODY.encode()).decode(), "encoding": "base64"}, "base64"),
    "Latin-1 of mitmproxy": ("mitmproxy", {"text": BODY.encode().decode("latin-1")}, "latin-1"),
}


@pytest.mark.parametrize(("creator", "content", "form"), CONTENTS.values(), ids=CONTENTS)
def test_har_texts_are_written_as_they_were(
    repair: AppliedFix, tmp_path: Path, creator: str, content: dict[str, Any], form: str
) -> None:
    out = repair(_har(_entry("", "LOUD é", **content), creator=creator))
    made = json.loads(out)["log"]["entries"][0]["response"]["content"]
    (read,) = _read(tmp_path / "target")
    expected = some(read.delivered).body or b""
    assert "calm é" in expected.decode()
    shown = {
        "text": expected.decode(),
        "base64": base64.b64encode(expected).decode(),
        "latin-1": expected.decode("latin-1"),
    }
    assert made["text"] == shown[form]
    assert made.get("encoding") == ("base64" if form == "base64" else None)


def test_a_har_that_is_cut_off_is_not_written(repair: AppliedFix, tmp_path: Path) -> None:
    data = _har(_entry("LOUD", "LOUD"), _entry("LOUD", "LOUD"))
    with pytest.raises(ValueError, match=r"Expecting|unterminated|delimiter|char"):
        repair(data[:-60], SAFE, [])
    assert not (tmp_path / "target").exists()


# --- flows ------------------------------------------------------------------------------------------------------------


def _flow(said: str, answer: str, *, coding: bool = False) -> http.HTTPFlow:
    made = record(said, answer)
    request = http.Request.make("POST", made["request"]["url"], made["request"]["body"], http.Headers(x="1"))
    flow = tflow.tflow(req=request)
    body = made["response"]["body"].encode()
    flow.response = http.Response.make(200, b"", http.Headers(content_type="text/event-stream"))
    if coding:
        flow.response.headers["content-encoding"] = "gzip"
    flow.response.raw_content = gzip.compress(body) if coding else body
    flow.response.headers["content-length"] = str(len(flow.response.raw_content))
    return flow


def _flows(*flows: mitm_flow.Flow) -> bytes:
    return b"".join(map(flow_bytes, flows))


def _load(path: Path) -> Sequence[mitm_flow.Flow]:
    with path.open("rb") as file:
        return list(FlowReader(file).stream())


@pytest.mark.parametrize("coding", [False, True])
def test_flows(repair: AppliedFix, tmp_path: Path, coding: bool) -> None:
    loud, quiet = _flow("LOUD", "LOUD", coding=coding), _flow("quiet", "quiet", coding=coding)
    loud.comment, loud.metadata["mine"] = "kept", [1]
    other = tflow.ttcpflow()
    data = _flows(quiet, other, loud, quiet)
    out = repair(data)
    assert out.startswith(_flows(quiet, other))
    assert out.endswith(_flows(quiet))
    flow = _load(tmp_path / "target")[2]
    assert isinstance(flow, http.HTTPFlow)
    assert flow.response is not None
    assert (flow.id, flow.comment, flow.metadata["mine"]) == (loud.id, "kept", [1])
    assert flow.request.headers["x"] == "1"
    assert b"calm" in (flow.request.raw_content or b"")
    assert b"calm" in (flow.response.raw_content or b"")
    assert "content-encoding" not in flow.response.headers
    for message in (flow.request, flow.response):
        assert message.headers["content-length"] == str(len(message.raw_content or b""))
    read = _read(tmp_path / "target")[1]
    assert read.response_body == record("LOUD", "LOUD")["response"]["body"].encode()
    assert some(read.delivered).body == flow.response.raw_content
    assert [item.side for item in read.fixes] == ["request", "response"]
    assert "fixes" not in read.annotations


def test_flows_twice(repair: AppliedFix, tmp_path: Path) -> None:
    data = _flows(_flow("LOUD SCREAM", "LOUD SCREAM"), _flow("quiet", "quiet"))
    once = repair(data)
    assert repair(once) == once
    repair(once, UNSAFE)
    assert [b"word" in (item.delivered.body or b"") for item in _read(tmp_path / "target") if item.delivered] == [True]
    repair(once, NONE)
    assert [changes(item) for item in _read(tmp_path / "target")] == [{}, {}]
    back = _load(tmp_path / "target")[0]
    assert isinstance(back, http.HTTPFlow)
    assert some(back.response).text == record("LOUD SCREAM", "LOUD SCREAM")["response"]["body"]


def test_flows_that_cannot_be_read_are_left_out(repair: AppliedFix) -> None:
    problems: list[Problem] = []
    whole = _flows(_flow("quiet", "quiet"))
    loud = _flows(_flow("quiet", "LOUD"))
    assert repair(whole + loud[:-9], SAFE, problems) == whole
    assert [problem.place for problem in problems] == ["flow 2"]


def test_a_file_without_exchanges_is_copied(repair: AppliedFix) -> None:
    data = _flows(tflow.ttcpflow())
    assert repair(data) == data


def test_the_mode_of_a_file_stays(repair: AppliedFix, tmp_path: Path) -> None:
    (tmp_path / "source").touch(0o600)
    repair(_lines(record(answer="LOUD")))
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600


# --- staging ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [False, True])
def test_output_is_there_as_a_whole_or_not_at_all(tmp_path: Path, folder: bool) -> None:
    target = tmp_path / "new" / "out"

    def fill(staging: Staging) -> None:
        (staging.path / "x" if folder else staging.path).write_text("half")
        assert not target.exists()

    def interrupt() -> None:
        with Staging(target, folder=folder) as staging:
            fill(staging)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert list(tmp_path.rglob("*")) == []
    with Staging(target, folder=folder) as staging:
        fill(staging)
        staging.commit()
    assert (target / "x" if folder else target).read_text() == "half"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]
    assert sorted(path.name for path in target.parent.iterdir()) == ["out"]


def test_an_interrupt_before_the_block_leaves_nothing(tmp_path: Path) -> None:
    with pytest.warns(ResourceWarning):
        Staging(tmp_path / "out", folder=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "out"
    (target / "a").mkdir(parents=True)
    (target / "a" / "old").write_text("old")
    (target / "a" / "mine").write_text("mine")
    with pytest.raises(TargetError, match="is there already"):
        Staging(target, folder=True)
    with pytest.raises(TargetError, match="is a folder"):
        Staging(target, folder=False, force=True)
    with Staging(target, folder=True, force=True) as staging:
        (staging.path / "a").mkdir()
        (staging.path / "a" / "old").write_text("new")
        staging.commit()
    assert {path.name: path.read_text() for path in (target / "a").iterdir()} == {"old": "new", "mine": "mine"}
    with Staging(target / "a" / "old", folder=False, force=True) as staging:
        staging.path.write_text("newer")
        staging.commit()
    assert (target / "a" / "old").read_text() == "newer"
