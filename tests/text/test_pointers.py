"""JSON Pointers, by the examples of RFC 6901 and beyond."""

from __future__ import annotations

from typing import Any

import pytest

from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.text.pointers import at, locate, spelled, tokens

TABLES = tables(__file__)

BODY = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "deep": [{"x": [1, {"y": None}]}]}


@in_batches(
    ("pointer", "wanted"),
    [
        ("", BODY), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/m~0n", 8), ("/foo/2", None),
        ("/foo/-", None), ("/foo/bar", None), ("/foo/0/x", None), ("/deep/0/x/1", {"y": None}), ("/none", None),
    ],
)  # fmt: skip
def test_a_pointer_finds_its_value(pointer: str, wanted: object) -> None:
    assert at(BODY, pointer) == wanted


def test_a_text_that_is_no_pointer_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        tokens("foo")


JSON_PLACES_BODY = '\ufeff {"a": [1, {"b/c": "x\\ny"}, 3], "k": 1, "k": [true], "e": {}, "n": 12345678901234567890}'


@rows(TABLES["places"])
def test_a_pointer_finds_its_place_in_the_text(pointer: Any, value: Any, found: Any) -> None:
    start, end, there = locate(JSON_PLACES_BODY, pointer)
    assert (JSON_PLACES_BODY[start:end], there) == (value, found)


@pytest.mark.parametrize("text", ["", "no JSON", '{"a": ', "[" * 100_000, '{"a" 1}', '{"a": [1, ', '{"a":1 "b":2}'])
def test_what_is_no_json_is_one_value(text: str) -> None:
    start, end, found = locate(text, "/a/b/c")
    assert 0 <= start <= end <= len(text)
    assert not found


@rows(TABLES["spelled"])
def test_a_text_is_found_as_it_is_spelled(text: Any, wanted: Any, raw: Any) -> None:
    found = spelled(text, 0, len(text), wanted)
    assert (text[slice(*found)] if found else None) == raw
