"""The line of an exchange: what is written obeys the schema and comes back as it was; what is read may be hand-made."""

from __future__ import annotations

import dataclasses
import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import rows, tables
from wirelint.capture.format import FormatError, decode, encode, schema
from wirelint.capture.record import Headers, Record
from wirelint.model import End, Json, Timing

TABLES = tables(__file__)

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
def test_any_body_comes_back(request: bytes | None, response: bytes | None, end: End) -> None:
    record = Record("i", "POST", "u", (), request, None, (), response, end=end)
    _same(decode(_written(record), "s", "line 1"), record)


@given(st.lists(st.tuples(st.sampled_from(["a", "A", "b"]), st.text(max_size=5))))
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


@rows(TABLES["hand_made"])
def test_hand_made(value: Json, request_body: str | None, response_body: str | None, status: int | None) -> None:
    record = decode(value, "dir/f.jsonl", "line 7")
    raw = (record.request_body, record.response_body)
    bodies = [None if one is None else one.decode("utf-8", "surrogateescape") for one in raw]
    assert [*bodies, record.status] == [request_body, response_body, status]
    assert record.id == "dir/f.jsonl:7"
    assert record.end == "unknown"


@rows(TABLES["headers"])
def test_headers(value: Json, expected: Headers) -> None:
    assert decode({"request": {"headers": value}}, "s", "line 1").request_headers == tuple(map(tuple, expected))


@rows(TABLES["chunks"])
def test_chunks(chunks: Json, expected: list[tuple[float, int]]) -> None:
    assert decode({"response": {"chunks": chunks}}, "s", "line 1").chunks == tuple(map(tuple, expected))


@rows(TABLES["problems"])
def test_problems(value: Json, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode(value, "s", "line 1")
