"""Parts that the families share: types, names, damaged JSON, the views of a text."""

from __future__ import annotations

import pytest

from tests.build import some
from wirelint.dialects import declared, jsontext
from wirelint.dialects.reader import views
from wirelint.model import Json, Tool

ROOT: Json = {"$defs": {"Day": {"type": "string"}, "Count": {"type": "integer"}}}
COERCIONS: list[tuple[str, str, Json, Json]] = [
    ("string-stays", "0042", {"type": "string"}, "0042"),
    ("string-null-stays", "null", {"type": "string"}, "null"),
    ("nullable-string", "null", {"type": ["string", "null"]}, None),
    ("any-of-null", "null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
    ("nullable-keyword", "null", {"type": "string", "nullable": True}, None),
    ("python-none", "None", {"type": ["integer", "null"]}, None),
    ("integer", " 42 ", {"type": "integer"}, 42),
    ("integer-with-zeros", "0042", {"type": "integer"}, 42),
    ("integer-no-integer", "4.5", {"type": "integer"}, "4.5"),
    ("integer-too-large", "9" * 30, {"type": "integer"}, "9" * 30),
    ("number", "12.25", {"type": "number"}, 12.25),
    ("number-nan", "NaN", {"type": "number"}, "NaN"),
    ("number-infinite", "1e999", {"type": "number"}, "1e999"),
    ("boolean", "True", {"type": "boolean"}, True),
    ("boolean-digit", "0", {"type": "boolean"}, False),
    ("integer-before-boolean", "1", {"type": ["boolean", "integer"]}, 1),
    ("object", '{"a": 1}', {"type": "object"}, {"a": 1}),
    ("object-of-python", "{'a': None}", {"type": "object"}, {"a": None}),
    ("object-broken", '{"a": ', {"type": "object"}, '{"a": '),
    ("array", "[1, 2]", {"type": "array"}, [1, 2]),
    ("array-or-string", "[draft] x", {"type": ["array", "string"]}, "[draft] x"),
    ("reference", "7", {"$ref": "#/$defs/Count"}, 7),
    ("reference-to-string", "7", {"$ref": "#/$defs/Day"}, "7"),
    ("reference-lost", "7", {"$ref": "#/$defs/None"}, 7),
    ("enum-of-strings", "1", {"enum": ["1", "2"]}, "1"),
    ("enum-of-integers", "1", {"enum": [1, 2]}, 1),
    ("unknown-json", "[true]", None, [True]),
    ("unknown-string", '"a"', None, '"a"'),
    ("unknown-text", " a ", None, " a "),
    ("unknown-huge", "1" * 30, None, "1" * 30),
]


@pytest.mark.parametrize(
    ("text", "schema", "value"), [case[1:] for case in COERCIONS], ids=[case[0] for case in COERCIONS]
)
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
NAMES = [
    ("functions.read", ["functions.read", "read"], "functions.read"),
    ("functions.read:0", ["read"], "read"),
    ("functions.fs.read:12", ["fs.read", "read"], "fs.read"),
    ("functions.functions.read", ["read"], "read"),
    ("functions read:8", ["read"], "read"),
    ("calendar.calendar", ["calendar"], "calendar"),
    ("jira.search", ["mcp__jira__search"], "mcp__jira__search"),
    ("search", ["mcp__jira__search"], "mcp__jira__search"),
    ("search", ["a.search", "b.search"], "search"),
    ("fs.read", ["db.read"], "fs.read"),
    ("functions.read:0", [], "read"),
    ("  read ", ["read"], "read"),
]


@pytest.mark.parametrize(("written", "offered", "name"), NAMES)
def test_names(written: str, offered: list[str], name: str) -> None:
    assert declared.resolve(written, offered) == name


STAND_INS = "function_name tool_name $FUNCTION_NAME example_function_name {name} your_tool NAME foo"
REAL = "read get_weather rename_file tool_search call_api web.search name_server sample_rate"


def test_stand_ins() -> None:
    assert all(map(declared.is_stand_in, STAND_INS.split()))
    assert not any(map(declared.is_stand_in, REAL.split()))


REPAIRS: list[tuple[str, str, Json, int]] = [
    ("single-quotes", "{'a': 'b'}", {"a": "b"}, 0),
    ("mixed-quotes", """{'a': "it's"}""", {"a": "it's"}, 0),
    ("python-literals", "{'a': True, 'b': None}", {"a": True, "b": None}, 0),
    ("trailing-commas", '{"a": [1, 2,],}', {"a": [1, 2]}, 0),
    ("raw-line-end", '{"a": "x\ny"}', {"a": "x\ny"}, 0),
    ("loose-escape", r'{"a": "\d\n"}', {"a": "\\d\n"}, 0),
    ("surrogate-pair", r"{'a': '\ud83d\ude00'}", {"a": "😀"}, 0),
    ("one-bracket-missing", '{"a": {"b": 1}', {"a": {"b": 1}}, 1),
    ("bracket-missing-before-array-end", '[{"a": {"b": 1}]', [{"a": {"b": 1}}], 1),
    ("nan", '{"a": NaN}', {"a": None}, 0),
]
UNREADABLE = [
    '{"a": "b',
    '{"a" 1}',
    "{a: 1}",
    '{"a": oops}',
    '{"a": 1 "b": 2}',
    "{'a': 'it's'}",
    "{" * 500,
    '{"a": 012}',
    "x",
]


@pytest.mark.parametrize(
    ("text", "value", "missing"), [case[1:] for case in REPAIRS], ids=[case[0] for case in REPAIRS]
)
def test_repair(text: str, value: Json, missing: int) -> None:
    repaired = some(jsontext.repair(text))
    assert (repaired.value, repaired.missing) == (value, missing)


@pytest.mark.parametrize("text", UNREADABLE)
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


VIEWS = [
    ("plain", "a ｜ ▁", ["a | _"]),
    ("zero-width", "<to\u200bol>", ["<tool>"]),
    ("entities", "&lt;a&#62; &amp;lt;", ["&lt;a&#62; &amp;lt;", "<a> &lt;"]),
    ("json", '\\u003ca\\u003e\\n\\"', ['\\u003ca\\u003e\\n\\"', '<a>\n"']),
    ("surrogates", "\\u003c\\ud83d\\ude00", ["\\u003c\\ud83d\\ude00", "<😀"]),
    ("only-an-ampersand", "a & b &copy;", ["a & b &copy;"]),
    ("only-a-backslash", "C:\\new", ["C:\\new"]),
]


@pytest.mark.parametrize(("text", "shadows"), [case[1:] for case in VIEWS], ids=[case[0] for case in VIEWS])
def test_views(text: str, shadows: list[str]) -> None:
    found = list(views(text))
    assert [view.shadow for view in found] == shadows
    for view in found:
        origins = [view.origin(offset) for offset in range(len(view.shadow) + 1)]
        assert origins == sorted(origins)
        assert origins[-1] == len(text)
