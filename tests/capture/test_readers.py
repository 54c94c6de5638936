"""Capture files of every kind, whole, cut off and corrupt, by file, folder and standard input."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import pytest

from tests.tables import rows, tables
from wirelint.capture.format import encode
from wirelint.capture.readers import Problem, open_source, read
from wirelint.capture.record import Record
from wirelint.model import End, Timing

TABLES = tables(__file__)
BODY = 'data: {"t":"é😀"}\n\n'.encode()


def _split(path: str | Path) -> tuple[list[Record], list[Problem]]:
    items = list(read([path]))
    records = [item for item in items if isinstance(item, Record)]
    problems = [item for item in items if isinstance(item, Problem)]
    assert items == [*records, *problems], "a problem comes after everything readable"
    return records, problems


def _lines(count: int) -> bytes:
    return b"".join(encode(Record(str(n), "POST", "https://h/", (), b"{}", 200, (), BODY)) for n in range(count))


# --- lines -----------------------------------------------------------------------------------------------------------


@rows(TABLES["lines"])
def test_lines(text: str, ids: list[str], problems: list[str], tmp_path: Path) -> None:
    """`%0%` and `%1%` stand for the lines of records."""
    path = tmp_path / "x"
    one, two = _lines(2).decode().splitlines()
    path.write_text(text.replace("%0%", one).replace("%1%", two), "utf-8", newline="")
    records, found = _split(path)
    assert [record.id.replace(str(path), "FILE") for record in records] == ids
    assert len(found) == len(problems)
    assert all(text in str(problem) for text, problem in zip(problems, found, strict=True))
    assert not any(problem.fatal for problem in found)
    assert all("\n" not in str(problem) for problem in found)
    assert {record.source for record in records} == {str(path)}


def test_lines_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first record is there before the second line has been written."""

    reader, writer = os.pipe()
    line = encode(Record("0", "POST", "u", (), b"x" * (1 << 17)))
    threading.Thread(target=os.write, args=(writer, line), daemon=True).start()
    with open(reader) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert isinstance(next(open_source("-")), Record)
    os.close(writer)


# --- sources ---------------------------------------------------------------------------------------------------------


@rows(TABLES["unreadable"])
def test_what_cannot_be_read(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "x").write_bytes(text.encode("utf-8", "surrogateescape"))
    records, (problem,) = _split(tmp_path / "x")
    assert not records
    assert problem.fatal
    assert message in problem.message
    assert problem.source == str(tmp_path / "x")


def test_a_folder(tmp_path: Path) -> None:
    """Every capture below it, in order, each exchange once; anything else is passed by."""
    (problem,) = read([tmp_path])
    assert "no captures in this folder" in str(problem)
    har = {"log": {"entries": [{"request": {"method": "GET", "url": "h"}, "response": {"status": 200}}]}}
    for name, data in {
        "b/exchanges.jsonl": _lines(1),
        "b/flows.mitm": b"12:would be a problem",
        "a/exchanges.jsonl": b"",
        "a/flows.mitm": b"12:is a problem",
        "c.har": json.dumps(har, indent=1).encode(),
        "README.md": b"# text",
        "empty.jsonl": b"",
        "package.json": b'{"name": "x"}',
        "findings.jsonl": b'{"side":"request"}\n',
        ".hidden.jsonl": _lines(1),
        ".git/x.jsonl": _lines(1),
        "d/e/any-name": _lines(1),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    items = list(read([tmp_path, str(tmp_path / "c.har")]))
    names = ["c.har", "a/flows.mitm", "b/exchanges.jsonl", "d/e/any-name", "c.har"]
    assert [item.source for item in items] == [str(tmp_path / name) for name in names]
    assert [isinstance(item, Problem) for item in items] == [False, True, False, False, False]


def test_the_source_is_as_the_user_named_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "x").write_bytes(_lines(1))
    monkeypatch.chdir(tmp_path)
    assert [item.source for item in read(["run", "./run/", "run/x"])] == ["run/x", "./run/x", "run/x"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(_lines(2))))
    assert [(item.source, isinstance(item, Record)) for item in read(["-"])] == [("-", True)] * 2


# --- HAR -------------------------------------------------------------------------------------------------------------


def _entry(content: object, headers: object = (), status: object = 200, **more: object) -> dict[str, object]:
    post = {"mimeType": "application/json", "text": '{"a":"é"}'}
    request = {"method": "POST", "url": "https://h/x", "headers": [{"name": ":path", "value": "/x"}], "postData": post}
    return {"request": request, "response": {"status": status, "headers": headers, "content": content}, **more}


def _har(tmp_path: Path, *entries: object, creator: str = "WebInspector") -> list[Record]:
    path = tmp_path / "x.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": creator}, "entries": entries}}))
    records, problems = _split(path)
    assert not problems
    return records


EVENTS = TABLES["headers"]["events"]
LATIN = BODY.decode("latin-1")


@rows(TABLES["contents"])
def test_har_bodies(creator: str, content: object, headers: str, body: str | None, tmp_path: Path) -> None:
    (record,) = _har(tmp_path, _entry(content, TABLES["headers"][headers]), creator=creator)
    assert record.response_body == (None if body is None else body.encode("utf-8", "surrogateescape"))
    assert record.request_body == '{"a":"é"}'.encode()
    assert record.request_headers == ()


@rows(TABLES["har_ends"])
def test_har_ends(
    headers: str, status: object, error: object, end: End, read_status: int | None, tmp_path: Path
) -> None:
    entry = _entry({"text": "x"}, TABLES["headers"][headers], status)
    entry["response"]["_error"] = error  # type: ignore[index]
    (record,) = _har(tmp_path, entry)
    assert (record.end, record.status, record.error) == (end, read_status, error)
    assert not any("wirelint" in name.lower() for name, _ in record.response_headers)


def test_har_timing(tmp_path: Path) -> None:
    timings = {"blocked": 2, "dns": -1, "connect": 10, "ssl": 8, "send": 1, "wait": 100.5, "receive": 50}
    started = {"startedDateTime": "2026-01-31T09:45:00.250+01:00", "time": 163.5, "timings": timings}
    (timed, bare) = _har(tmp_path, _entry({}, **started), _entry({}))
    assert timed.timing == Timing(1769849100.25, 113.5, None, 163.5)
    assert bare.timing == Timing()


def test_har_leaves_out_websockets(tmp_path: Path) -> None:
    records = _har(tmp_path, _entry({}, status=101), _entry({}, _resourceType="websocket"), _entry({}), 5, {})
    assert [record.place for record in records] == ["entry 3"]
    assert records[0].id == f"{tmp_path / 'x.har'}:3"


@pytest.mark.parametrize("indent", [None, 2])
def test_har_cut_off(tmp_path: Path, indent: int | None) -> None:
    """At every place: the whole entries before it, then one problem."""
    text = json.dumps(
        {"log": {"creator": {"name": "mitmproxy"}, "entries": [_entry({"text": LATIN}, EVENTS)] * 2}}, indent=indent
    )
    path = tmp_path / "x.har"
    ends = [text.rindex("}", 0, text.rindex('"request"')) + 1, text.rindex("}", 0, text.rindex("]")) + 1]
    for place in range(40 if indent else 20, len(text) - 1, 7):
        path.write_text(text[:place])
        records, (problem,) = _split(path)
        whole = sum(place >= end for end in ends)
        assert len(records) == whole, place
        assert all(record.response_body == BODY for record in records)
        assert problem.fatal is (whole == 0)
