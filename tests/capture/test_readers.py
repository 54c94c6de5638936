"""Capture files of every kind, whole, cut off and corrupt, by file, folder and standard input."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wirelint.capture.format import encode
from wirelint.capture.readers import Problem, open_source, read
from wirelint.capture.record import Record
from wirelint.model import End, Timing

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

LINES: dict[str, tuple[bytes, list[str], list[str]]] = {
    "ours": (_lines(2), ["0", "1"], []),
    "blank lines and a BOM": (b"\xef\xbb\xbf\n\r\n" + _lines(1) + b"\n \n" + _lines(1) + b"\n", ["0", "0"], []),
    "no line feed at the end": (_lines(2)[:-1], ["0", "1"], []),
    "torn": (_lines(3)[:-30], ["0", "1"], ["line 3: cut off (the other 2 were read)"]),
    "corrupt in the middle": (_lines(1) + b"{oops\n" + _lines(1), ["0", "0"], ["line 2: broken JSON"]),
    "corrupt at the beginning": (b'{"id": oops}\n' + _lines(2), ["0", "1"], ["line 1: broken JSON"]),
    "many corrupt": (b"{oops}\n" * 3 + _lines(1), ["0"], ["and 2 more like it"]),
    "not a record": (_lines(1) + b'{"a":1}\n', ["0"], ["line 2: neither `request` nor `response`"]),
    "a URL that is none": (
        _lines(1) + b'{"request":{"url":"http://[h/"}}\n',
        ["0"],
        ["line 2: its URL cannot be read: Invalid IPv6 URL (the other 1 were read)"],
    ),
    "a later format": (_lines(1) + b'{"format":7,"request":{}}\n', ["0"], ["upgrade wirelint"]),
    "one record over several lines": (json.dumps({"id": "p", "request": {"body": {}}}, indent=2).encode(), ["p"], []),
    "an array": (
        b'[{"id":"a","request":{}},\n{"id":"b","response":{}}, 5]',
        ["a", "b"],
        ["record 3: not a JSON object"],
    ),
    "without an id": (b'\n{"request":{}}', ["FILE:2"], []),
}


@pytest.mark.parametrize(("data", "ids", "problems"), LINES.values(), ids=LINES)
def test_lines(tmp_path: Path, data: bytes, ids: list[str], problems: list[str]) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    records, found = _split(path)
    assert [record.id.replace(str(path), "FILE") for record in records] == ids
    assert len(found) == len(problems)
    assert all(text in str(problem) for text, problem in zip(problems, found, strict=True))
    assert not any(problem.fatal for problem in found)
    assert all("\n" not in str(problem) for problem in found)
    assert {record.source for record in records} == {str(path)}


def test_lines_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first record is there before the second line has been written."""

    class Slow(io.RawIOBase):
        taken = 0

        def read(self, size: int = -1) -> bytes:
            return first.read(size)

        def readline(self, size: int | None = -1) -> bytes:
            self.taken += 1
            return (first.readline() if size is None else first.readline(size)) if self.taken < 3 else b""

    first = io.BytesIO(encode(Record("0", "POST", "u", (), b"x" * (1 << 17))) + _lines(500))
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": Slow()}))
    items = open_source("-")
    assert isinstance(next(items), Record)
    assert first.tell() < len(first.getvalue()) - len(_lines(498))


# --- sources ---------------------------------------------------------------------------------------------------------

UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "no such file or folder"),
    "empty": (lambda path: path.write_bytes(b""), "nothing in it"),
    "blank": (lambda path: path.write_bytes(b"\n \n"), "nothing in it"),
    "text": (lambda path: path.write_bytes(b"hello\n"), "not a capture of a known format"),
    "gzip": (lambda path: path.write_bytes(gzip.compress(_lines(1))), "not a capture of a known format"),
    "empty folder": (lambda path: path.mkdir(), "no captures in this folder"),
    "other JSON": (lambda path: path.write_bytes(b'{"a":1}\n{"b":2}\n'), "neither `request` nor `response`"),
    "HAR without entries": (lambda path: path.write_bytes(b'{"log": {}}'), "HAR without entries"),
    "broken JSON": (lambda path: path.write_bytes(b'{\n"request": {'), "broken JSON"),
    "garbage flows": (lambda path: path.write_bytes(b"12:hello"), "cut off or corrupt"),
    "absurd length": (lambda path: path.write_bytes(b"999999999999:x"), "cut off or corrupt"),
}


@pytest.mark.parametrize(("make", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    make(tmp_path / "x")
    records, (problem,) = _split(tmp_path / "x")
    assert not records
    assert problem.fatal
    assert message in problem.message
    assert problem.source == str(tmp_path / "x")


def test_a_folder(tmp_path: Path) -> None:
    """Every capture below it, in order, each exchange once; anything else is passed by."""
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


EVENTS = [{"name": "Content-Type", "value": "text/event-stream"}]
UTF8 = [{"name": "Content-Type", "value": "text/plain; charset=utf-8"}]
ENDED = [*EVENTS, {"name": "x-wirelint-end", "value": "client-left"}]
LATIN = BODY.decode("latin-1")

CONTENTS: dict[str, tuple[str, object, object, bytes | None]] = {
    "text": ("Firefox", {"text": BODY.decode()}, EVENTS, BODY),
    "base64": ("WebInspector", {"text": base64.b64encode(b"\xff\0").decode(), "encoding": "base64"}, [], b"\xff\0"),
    "bad base64": ("WebInspector", {"text": "?", "encoding": "base64"}, [], b""),
    "missing": ("WebInspector", {"size": 5}, EVENTS, None),
    "no content": ("Firefox", None, EVENTS, None),
    "empty": ("Firefox", {"text": ""}, EVENTS, b""),
    "Latin-1 of mitmproxy": ("mitmproxy", {"text": LATIN}, EVENTS, BODY),
    "Latin-1 of mitmproxy, cut": ("mitmproxy", {"text": LATIN[:-7]}, EVENTS, BODY[:-7]),
    "Latin-1 of others": ("Firefox", {"text": LATIN}, EVENTS, LATIN.encode()),
    "a declared charset": ("mitmproxy", {"text": LATIN}, UTF8, LATIN.encode()),
    "really Latin-1": ("mitmproxy", {"text": "é!"}, EVENTS, "é!".encode()),
    "more than Latin-1": ("mitmproxy", {"text": "Ω"}, EVENTS, "Ω".encode()),
    "lost by mitmproxy": ("mitmproxy", {"text": ""}, EVENTS, None),
    "empty, by our addon": ("mitmproxy", {"text": ""}, ENDED, b""),
}  # fmt: skip


@pytest.mark.parametrize(("creator", "content", "headers", "body"), CONTENTS.values(), ids=CONTENTS)
def test_har_bodies(tmp_path: Path, creator: str, content: object, headers: object, body: bytes | None) -> None:
    (record,) = _har(tmp_path, _entry(content, headers), creator=creator)
    assert record.response_body == body
    assert record.request_body == '{"a":"é"}'.encode()
    assert record.request_headers == ()


HAR_ENDS: list[tuple[object, object, object, End, int | None]] = [
    ([], 200, None, "unknown", 200),
    (ENDED, 200, None, "client-left", 200),
    ([{"name": "X-Wirelint-End", "value": "nonsense"}], 200, None, "unknown", 200),
    ([], 0, None, "unknown", None),
    ([], 0, "net::ERR_CONNECTION_RESET", "upstream-died", None),
    ([], 0, "Client disconnected.", "client-left", None),
]


@pytest.mark.parametrize(("headers", "status", "error", "end", "read_status"), HAR_ENDS)
def test_har_ends(
    tmp_path: Path, headers: object, status: object, error: object, end: End, read_status: int | None
) -> None:
    entry = _entry({"text": "x"}, headers, status)
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
