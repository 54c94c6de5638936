"""The line of an exchange: what is written obeys the schema and comes back as it was; what is read may be hand-made."""

from __future__ import annotations

import dataclasses
import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirelint.capture.format import FormatError, decode, encode, schema
from wirelint.capture.record import Headers, Record
from wirelint.model import End, Json, Timing

VALIDATOR = jsonschema_rs.Draft202012Validator(schema())
RECORD = Record(
    id="f1",
    method="POST",
    url="https://h/v1/chat/completions",
    request_headers=(("Content-Type", "application/json"),),
    request_body=b'{"model":"m"}',
    status=200,
    response_headers=(("content-type", "text/event-stream"),),
    response_body='data: {"é"}\r\n\r\n\0\ufeff\u2028'.encode(),
    chunks=((1.5, 10), (2.0, 8)),
    timing=Timing(1700000000.25, 1.5, 2.0, 30.0),
    end="client-left",
    error="Client disconnected.",
)


def _written(record: Record, annotations: dict[str, Json] | None = None) -> dict[str, Json]:
    line = encode(record, annotations)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    value: dict[str, Json] = json.loads(line)
    VALIDATOR.validate(value)
    return value


def _same(one: Record, two: Record) -> None:
    for name in (field.name for field in dataclasses.fields(Record)):
        if name not in ("source", "place", "annotations"):
            assert getattr(one, name) == getattr(two, name), name


def test_round_trip() -> None:
    record = decode(_written(RECORD, {"api": "openai.chat", "findings": [{"code": "LK101"}]}), "f.jsonl", "line 4")
    _same(record, RECORD)
    assert (record.source, record.place) == ("f.jsonl", "line 4")
    assert record.annotations["api"] == "openai.chat"
    assert record.annotations["findings"] == [{"code": "LK101"}]


BODIES = (
    st.none() | st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@given(BODIES, BODIES, st.sampled_from(["complete", "client-left", "upstream-died", "unread", "unknown"]))
@settings(deadline=None)
def test_any_body_comes_back(request: bytes | None, response: bytes | None, end: End) -> None:
    record = Record("i", "POST", "u", (), request, None, (), response, end=end)
    _same(decode(_written(record), "s", "line 1"), record)


@given(st.lists(st.tuples(st.sampled_from(["a", "A", "b"]), st.text(max_size=5))))
@settings(deadline=None)
def test_headers_are_joined(fields: list[tuple[str, str]]) -> None:
    headers = _written(Record("i", "POST", "u", tuple(fields)))["request"]["headers"]  # type: ignore[index, call-overload]
    assert isinstance(headers, dict)
    assert {name.lower(): value for name, value in headers.items()} == {
        name.lower(): ", ".join(value for other, value in fields if other.lower() == name.lower()) for name, _ in fields
    }


@pytest.mark.parametrize("text", ["caf\udce9", "\ud83d", "a\nb"])
def test_headers_of_any_bytes(text: str) -> None:
    _written(Record(text, "POST", text, (("x", text),), None, 200, ((text, text),), error=text))


def test_annotations_never_hide_the_wire() -> None:
    value = _written(RECORD, {"id": "no", "request": "no", "format": 9, "huge": 1 << 80, "none": None})
    assert value["id"] == "f1"
    assert value["huge"] == 1 << 80


def test_the_schema_can_fail() -> None:
    good = _written(RECORD)
    assert isinstance(good["response"], dict)
    for broken in (
        {**good, "format": 2},
        {**good, "end": "finished"},
        {name: value for name, value in good.items() if name != "request"},
        {**good, "response": {**good["response"], "chunks": [[1]]}},
        {**good, "response": {**good["response"], "body_base64": "QQ=="}},
    ):
        assert not VALIDATOR.is_valid(broken)


HAND_MADE: dict[str, tuple[Json, bytes | None, bytes | None, int | None]] = {
    "texts": ({"request": {"body": "{}"}, "response": {"body": "data: x\n\n"}}, b"{}", b"data: x\n\n", 200),
    "objects": (
        {"request": {"body": {"a": [1, "é"]}}, "response": {"body": [1]}},
        '{"a":[1,"é"]}'.encode(),
        b"[1]",
        200,
    ),
    "request only": ({"request": {"body": {}}}, b"{}", None, None),
    "response only": ({"response": {"status": 500, "body": ""}}, None, b"", 500),
    "response null": ({"request": {"body": "x"}, "response": None}, b"x", None, None),
    "no status line": ({"request": {}, "response": {"status": None}}, None, None, None),
    "status 0": ({"request": {}, "response": {"status": 0}}, None, None, None),
    "base64": ({"request": {"body_base64": "/w=="}}, b"\xff", None, None),
    "big number": ({"request": {"body": {"n": 1 << 70}}}, b'{"n":1180591620717411303424}', None, None),
    "lone surrogate": ({"request": {"body": "\ud83d"}}, b"\xed\xa0\xbd", None, None),
}


@pytest.mark.parametrize(("value", "request_body", "response_body", "status"), HAND_MADE.values(), ids=HAND_MADE)
def test_hand_made(value: Json, request_body: bytes | None, response_body: bytes | None, status: int | None) -> None:
    record = decode(value, "dir/f.jsonl", "line 7")
    assert (record.request_body, record.response_body, record.status) == (request_body, response_body, status)
    assert record.id == "dir/f.jsonl:7"
    assert record.end == "unknown"


HEADERS: dict[str, tuple[Json, Headers]] = {
    "object": ({"A": "1", "b": "2"}, (("A", "1"), ("b", "2"))),
    "repeated": ({"A": ["1", "2"]}, (("A", "1"), ("A", "2"))),
    "pairs": ([["A", "1"], ["A", "2"]], (("A", "1"), ("A", "2"))),
    "har": ([{"name": "A", "value": "1"}], (("A", "1"),)),
    "number": ({"A": 5}, (("A", "5"),)),
    "nonsense": ([1, ["a"], {"x": 1}], ()),
    "missing": (None, ()),
    "text": ("A: 1", ()),
}


@pytest.mark.parametrize(("value", "expected"), HEADERS.values(), ids=HEADERS)
def test_headers(value: Json, expected: Headers) -> None:
    assert decode({"request": {"headers": value}}, "s", "line 1").request_headers == expected


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([[1, 2], [3.5, 4]], ((1.0, 2), (3.5, 4))),
        ([], ()),
        (None, ()),
        ([[1, 2], [3]], ()),
        ([["a", 1]], ()),
        ([[1, -1]], ()),
    ],
)
def test_chunks(chunks: Json, expected: tuple[tuple[float, int], ...]) -> None:
    assert decode({"response": {"chunks": chunks}}, "s", "line 1").chunks == expected


PROBLEMS: dict[str, tuple[Json, str]] = {
    "array": ([], "not a JSON object"),
    "text": ("x", "not a JSON object"),
    "something else": ({"a": 1}, "neither"),
    "later format": ({"format": 2, "request": {}}, "format 2 is newer"),
    "odd format": ({"format": "x", "request": {}}, "format x"),
    "bad base64": ({"request": {"body_base64": "?"}}, "base64"),
}


@pytest.mark.parametrize(("value", "message"), PROBLEMS.values(), ids=PROBLEMS)
def test_problems(value: Json, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode(value, "s", "line 1")
