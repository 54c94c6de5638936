"""Parts that the families share: types, names, damaged JSON, the views of a text."""

from __future__ import annotations

import re

import pytest

from tests.build import some
from tests.tables import rows, tables
from wirelint.dialects import declared, jsontext
from wirelint.dialects.openers import any_of
from wirelint.dialects.reader import views
from wirelint.model import Json, Tool

TABLES = tables(__file__)

ROOT: Json = {"$defs": {"Day": {"type": "string"}, "Count": {"type": "integer"}}}


@rows(TABLES["coercions"])
def test_coercion(text: str, schema: Json, value: Json) -> None:
    got = declared.coerce(text, schema, ROOT)
    assert got == value
    assert type(got) is type(value)


def test_wrapped_arguments_are_unwrapped_only_when_they_fit() -> None:
    tool = Tool("t", "/tools/0", schema={"properties": {"a": {}, "b": {}}})
    assert declared.type_arguments([("input", '{"a": 1}', None)], tool) == {"a": 1}
    assert declared.type_arguments([("input", '{"z": 1}', None)], tool) == {"input": {"z": 1}}
    assert declared.type_arguments([("a", '{"b": 1}', None)], tool) == {"a": {"b": 1}}
    own = Tool("t", "/tools/0", schema={"properties": {"input": {"type": "object"}, "a": {}}})
    assert declared.type_arguments([("input", '{"a": 1}', None)], own) == {"input": {"a": 1}}


def test_hints_of_the_markup_come_first() -> None:
    assert declared.type_arguments([("a", "7", "text"), ("b", "7", "json")], None) == {"a": "7", "b": 7}


# written, declared, resolved


@rows(TABLES["names"])
def test_names(written: str, offered: list[str], name: str) -> None:
    assert declared.resolve(written, offered) == name


STAND_INS = "function_name tool_name $FUNCTION_NAME example_function_name {name} your_tool NAME foo"
REAL = "read get_weather rename_file tool_search call_api web.search name_server sample_rate"


def test_stand_ins() -> None:
    assert all(map(declared.is_stand_in, STAND_INS.split()))
    assert not any(map(declared.is_stand_in, REAL.split()))


@rows(TABLES["repairs"])
def test_repair(text: str, value: Json, missing: int) -> None:
    repaired = some(jsontext.repair(text))
    assert (repaired.value, repaired.missing) == (value, missing)


@pytest.mark.parametrize("text", TABLES["unreadable"])
def test_repair_needs_no_guess(text: str) -> None:
    assert jsontext.repair(text) is None


@pytest.mark.parametrize("size", [10, 511, 512, 513, 5000, 40000])
def test_values_longer_than_a_window(size: int) -> None:
    for inside in ("x" * size, "\\n" * size, "é" * size):
        text = f'{{"a": "{inside}"}} and more'
        decoded = jsontext.decode_at("…" + text, 1)
        assert (decoded.failed, decoded.end) == (False, 1 + text.index("}") + 1)
    assert jsontext.decode_at('{"a": "' + "x" * size, 0).failed
    numbers = "[" + "12345, " * size + "true]"
    assert jsontext.decode_at(numbers, 0).end == len(numbers)


def test_integers_of_more_than_64_bits_can_still_be_written() -> None:
    assert jsontext.writable(jsontext.decode_at('{"a": 123456789012345678901234567890}', 0).value)


@rows(TABLES["views"])
def test_views(text: str, shadows: list[str]) -> None:
    found = list(views(text))
    assert [view.shadow for view in found] == shadows
    for view in found:
        origins = [view.origin(offset) for offset in range(len(view.shadow) + 1)]
        assert origins == sorted(origins)
        assert origins[-1] == len(text)


def test_words_of_thousands_of_letters_share_their_beginning() -> None:
    """A call for each letter was deeper than Python allows: the name of a property may have any length."""
    words = ["x" * 5000, "x" * 4000 + "y", "x" * 4000]
    pattern = re.compile(any_of(words))
    assert [pattern.fullmatch(word) is not None for word in (*words, "x" * 4001)] == [True, True, True, False]
