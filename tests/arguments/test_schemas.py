"""Schemas of tools: compilation, unknown schemas, violations, coercion."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import schema, some
from wirelint.arguments import schemas
from wirelint.arguments.schemas import match
from wirelint.dialects.declared import required
from wirelint.model import Tool

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def tool(declared: Any) -> Tool:
    return Tool("t", "/tools/0", schema=declared)


def of(x: Any, **more: Any) -> dict[str, Any]:
    """A schema of one parameter `x`."""
    return {"type": "object", "properties": {"x": x}, **more}


# (schema, value of x, whether it is valid)
LENIENT: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "nullable": ({"type": "integer", "nullable": True}, None, True),
    "nullable, still an integer": ({"type": "integer", "nullable": True}, "a", False),
    "not nullable": ({"type": "integer", "nullable": False}, None, False),
    "nullable enumeration": ({"type": "string", "enum": ["a"], "nullable": True}, None, True),
    "nullable alternatives": ({"anyOf": [{"type": "string"}], "nullable": True}, None, True),
    "nullable in a list": ({"type": "array", "items": {"type": "string", "nullable": True}}, [None, "a"], True),
    "upper case": ({"type": "STRING"}, 1, False),
    "upper case in a list": ({"type": ["STRING", "NULL"]}, None, True),
    "int": ({"type": "int"}, 1.5, False),
    "float": ({"type": "float"}, 1.5, True),
    "dict": ({"type": "dict"}, [], False),
    "any": ({"type": "any"}, [1], True),
    "one unknown of two": ({"type": ["string", "file"]}, 1, True),
    "null for a type": ({"type": None}, 1, True),
    "required: true": ({"type": "string", "required": True}, "a", True),
    "required: null": ({"type": "object", "required": None}, {}, True),
    "exclusiveMinimum: true": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, False),
    "exclusiveMinimum: false": ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, 1, True),
    "exclusiveMaximum: true": ({"type": "integer", "maximum": 1, "exclusiveMaximum": True}, 1, False),
    "exclusiveMinimum: 1": ({"type": "integer", "exclusiveMinimum": 1}, 1, False),
    "no values at all": ({"type": "string", "enum": []}, "a", True),
    "format": ({"type": "string", "format": "date-time"}, "soon", True),
    "content": ({"type": "string", "contentMediaType": "application/json"}, "{", True),
    "cents": ({"type": "number", "multipleOf": 0.01}, 0.07, True),
    "multiples": ({"type": "integer", "multipleOf": 5}, 7, False),
    "tuple without a draft": ({"type": "array", "items": [{"type": "string"}]}, [1], False),
    "whole float": ({"type": "integer"}, 3.0, True),
    "no boolean number": ({"type": "integer"}, True, False),
    "closed object": ({"type": "object", "properties": {}, "additionalProperties": False}, {"a": 1}, False),
    "closed with null": ({"type": "object", "properties": {}, "additionalProperties": None}, {"a": 1}, True),
    "null properties": ({"type": "object", "properties": None}, {"a": 1}, True),
    "const null": ({"const": None}, None, True),
    "const null, else": ({"const": None}, 0, False),
    "default of another type": ({"type": "integer", "default": "many"}, 1, True),
    "annotations of any kind": ({"type": "integer", "title": 1, "description": None, "examples": "x"}, 1, True),
    "vendor's own words": ({"type": "integer", "x-order": 1, "strict": True, "propertyOrdering": ["a"]}, 1, True),
    "slow pattern": ({"type": "string", "pattern": "^(a+)+$"}, "a" * 60 + "b", False),
    "look-ahead": ({"type": "string", "pattern": "^(?!x).*$"}, "x1", False),
}


@pytest.mark.parametrize(("declared", "value", "valid"), LENIENT.values(), ids=LENIENT)
def test_lenient_schemas(declared: dict[str, Any], value: Any, valid: bool) -> None:
    assert schemas.accepts(tool(of(declared)), {"x": value}) is valid


UNKNOWN: dict[str, Any] = {
    "remote": of({"$ref": "https://schemas.test/x.json"}),
    "remote, plain": of({"$ref": "http://127.0.0.1:9/x.json"}),
    "a file": of({"$ref": "file:///etc/passwd"}),
    "relative": of({"$ref": "other.json"}),
    "relative to an id": {"$id": "https://schemas.test/a", **of({"$ref": "b"})},
    "nowhere": of({"$ref": "#/$defs/x"}),
    "no regular expression": of({"pattern": "(["}),
    "no number": of({"minLength": "two"}),
    "a list for properties": {"type": "object", "properties": ["x"]},
    "a text for a schema": of("string"),
    "too deep": None,
    "too large": of({"enum": [f"value {n}" for n in range(20_000)]}),
}
deep: dict[str, Any] = {}
for _ in range(100):
    deep = of(deep)
UNKNOWN["too deep"] = deep


@pytest.mark.parametrize("declared", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_schemas(declared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert schemas.validator(tool(declared)) is None
    assert schemas.accepts(tool(declared), {"x": 1}) is None


def test_no_tool_and_no_schema() -> None:
    assert schemas.validator(None) is None
    assert schemas.accepts(None, {}) is None
    assert schemas.validator(tool(None)) is None
    assert schemas.accepts(tool(None), {"x": 1}) is True
    assert schemas.accepts(tool(None), [1]) is None


NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
CLOSED = of({}, additionalProperties=False)
FORMS = of({"anyOf": [schema(a="string"), schema(b="string")]})
DEFINED = {"$defs": {"n": NUMBER}, "properties": {"x": {"$ref": "#/$defs/n"}}}
TUPLE = {"$schema": DRAFT_7, **of({"type": "array", "items": [TEXT]})}

# (schema, arguments, violations as `place keyword: words`)
BROKEN: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "type": (of(NUMBER), {"x": "20"}, ['x type: "20" is not integer']),
    "types": (of({"type": ["integer", "null"]}), {"x": "a"}, ['x type: "a" is not integer or null']),
    "missing": (schema(("x",), x="string"), {}, [" required: x is missing"]),
    "a name with quotes": (schema(('a"b',)), {}, [' required: a"b is missing']),
    "two missing": (schema(x="string", y="string"), {}, [" required: x is missing", " required: y is missing"]),
    "extra": (CLOSED, {"y": 1}, [" additionalProperties: y is no parameter"]),
    "extras": (CLOSED, {"y": 1, "z": 2}, [" additionalProperties: y, z are no parameters"]),
    "enumeration": (of({"enum": ["a", "b"]}), {"x": "c"}, ['x enum: "c" is not one of "a", "b"']),
    "alternatives": (of({"anyOf": [NUMBER, {"type": "null"}]}), {"x": "a"}, ['x anyOf: "a" is not integer or null']),
    "alternatives of shapes": (FORMS, {"x": {}}, ["x anyOf: {} fits none of the allowed forms"]),
    "deep": (
        of({"type": "array", "items": schema(y="string")}),
        {"x": [{"y": "a"}, {"y": 1}]},
        ["x[1].y type: 1 is not string"],
    ),
    "through a reference": (DEFINED, {"x": "a"}, ['x type: "a" is not integer']),
    "draft 7, tuple": (TUPLE, {"x": [1]}, ["x[0] type: 1 is not string"]),
    "shallow first": (
        schema(("z",), x=schema(y="string")),
        {"x": {"y": 1}},
        [" required: z is missing", "x.y type: 1 is not string"],
    ),
    "valid": (of(NUMBER), {"x": 1}, []),
}


@pytest.mark.parametrize(("declared", "value", "expected"), BROKEN.values(), ids=BROKEN)
def test_violations(declared: dict[str, Any], value: Any, expected: list[str]) -> None:
    compiled = some(schemas.validator(tool(declared)))
    assert [f"{found.where} {found.keyword}: {found.words}" for found in compiled.violations(value)] == expected


def test_evidence_is_short_and_bounded() -> None:
    compiled = some(schemas.validator(tool({"additionalProperties": {"type": "integer"}})))
    found = compiled.violations({f"k{n}": "x" * 5_000 for n in range(500)})
    assert len(found) <= 50
    assert all(len(violation.words) < 120 for violation in found)


# (schema of x, x, its converted value; None without one)
COERCED: dict[str, tuple[Any, Any, Any]] = {
    "integer": ({"type": "integer"}, "20", 20),
    "negative": ({"type": "integer"}, "-3", -3),
    "number": ({"type": "number"}, "2.5", 2.5),
    "true": ({"type": "boolean"}, "true", True),
    "False": ({"type": "boolean"}, "False", False),
    "object": ({"type": "object"}, '{"a": 1}', {"a": 1}),
    "array": ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
    "items": ({"type": "array", "items": {"type": "integer"}}, ["1", "2"], [1, 2]),
    "text": ({"type": "string"}, 12, "12"),
    "text of a truth": ({"type": "string"}, True, "true"),
    "enumeration of numbers": ({"enum": [1, 2]}, "2", 2),
    "enumeration of texts": ({"enum": ["1", "2"]}, 2, "2"),
    "alternatives": ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "7", 7),
    "words": ({"type": "integer"}, "twenty", None),
    "a fraction": ({"type": "integer"}, "2.5", None),
    "out of bounds": ({"type": "integer", "maximum": 5}, "20", None),
    "wrong items": ({"type": "array", "items": {"type": "integer"}}, '["a"]', None),
    "null is no text": ({"type": "string"}, None, None),
    "another value": ({"enum": ["a"]}, "b", None),
    "valid already": ({"type": "integer"}, 1, None),
}


@pytest.mark.parametrize(("declared", "value", "expected"), COERCED.values(), ids=COERCED)
def test_coerced(declared: Any, value: Any, expected: Any) -> None:
    compiled = some(schemas.validator(tool(of(declared))))
    given_ = {"x": value, "y": [1]}
    made = compiled.coerced(given_)
    assert made == (None if expected is None else {"x": expected, "y": [1]})
    assert given_ == {"x": value, "y": [1]}, "the arguments themselves must not change"
    if isinstance(made, dict):
        assert type(made["x"]) is type(expected)


def test_null_can_be_spelled() -> None:
    compiled = some(schemas.validator(tool(of({"type": ["integer", "null"]}))))
    assert compiled.coerced({"x": "null"}) == {"x": None}


def test_a_missing_parameter_is_not_coerced_away() -> None:
    compiled = some(schemas.validator(tool(schema(x="integer", y="integer"))))
    assert compiled.coerced({"x": "1"}) is None


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (schema(x="string", y="string"), ("x", "y")),
        (None, ()),
        ({"required": "x"}, ()),
        ({"required": ["x", 1]}, ("x",)),
    ],
)
def test_required(declared: Any, expected: tuple[str, ...]) -> None:
    assert required(tool(declared)) == expected


WORDS = st.sampled_from([
    "type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs", "$schema", "nullable", "minimum",
    "exclusiveMinimum", "additionalProperties", "pattern", "format", "description", "x", "not", "multipleOf", "minLength",
])  # fmt: skip
VALUES = (
    st.sampled_from(["object", "string", "INTEGER", "#", "#/$defs/x", "a(", "x", DRAFT_7]) | st.none() | st.booleans()
)
ANYTHING = st.recursive(
    VALUES | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None)
@given(st.dictionaries(WORDS, ANYTHING, max_size=5), st.dictionaries(st.sampled_from("xyz"), ANYTHING, max_size=3))
def test_any_schema_is_handled(declared: dict[str, Any], value: dict[str, Any]) -> None:
    compiled = schemas.validator(tool(declared))
    if compiled is not None:
        assert bool(compiled.violations(value)) <= (not compiled.accepts(value))
        compiled.coerced(value)


TOOLS = ("bash", "Read", "get_weather", "list-files", "mcp__hub__find_issue", "calendar", "tools_index")

# the tool → names that mean it
CERTAIN = {
    "bash": [
        "BASH", "functions.bash", "functions.functions.bash", "function.bash", "functions/bash", "functions:bash",
        "functions bash", "functions__bash", "functions.Bash", "functions.bash:3", "functionsbash", "bash json",
        "bash commentary json", "functions.bash in commentary", "bash:0", "multi_tool_use.bash", "to=functions.bash",
        "bashbash", "bash.bash", "bash bash", "bash<|channel|>commentary", "bash<|channel|>json", "<|constrain|>bash",
        "assistant<|channel|>commentary to=functions.bash", "<|tool_call_begin|>functions.bash:0", "bash</tool_call>",
        "bash\n<arg_key>", "bash{\"command\": \"ls\"}", "bash(command='ls')", "[bash]", "`bash`", "\"bash\"",
        "**bash**", " bash\n",
    ],
    "Read": [
        "read", "Read</arg_value>", "Read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>", "tools.Read",
        "mcp__local__Read", "mcp__local__read",
    ],
    "get_weather": [
        "getWeather", "get-weather", "Get Weather", "functionsget_weather0", "to=functions.get_weather code",
        "default_api.get_weather", "default_api:get_weather", "get_weatherget_weather",
    ],
    "list-files": ["list_files", "ListFiles"],
    "mcp__hub__find_issue": ["find_issue", "hub.find_issue", "mcp_hub_find_issue", "functions.mcp__hub__find_issue"],
    "calendar": ["calendar__calendar"],
}  # fmt: skip
LIKELY = {"shell.bash": "bash", "weather.get_weather": "get_weather", "fs/Read": "Read"}
NONE = [
    "index", "tool_index", "", " ", "\n", "functions", "functions.", "tool", "web_search", "bas", "bashful", "rebash",
    "get_weather_forecast", "weather",
    "mcp__other__find_issue", "mcp__hub__close_issue", "functions.web_search", "toolsbash", "toolbox.web.answer",
    "multi_tool_use.parallel", "{}", "<|im_end|>", "x" * 10_000, "bash" * 1_000, "a" * 500, "mcp__" * 100, "<" * 500,
]  # fmt: skip


@pytest.mark.parametrize("name", CERTAIN)
def test_certain(name: str) -> None:
    for written in CERTAIN[name]:
        found = match(written, TOOLS)
        assert found is not None, written
        assert (found.name, found.certain) == (name, True), written
        assert found.why, written


@pytest.mark.parametrize(("written", "meant"), LIKELY.items(), ids=LIKELY)
def test_likely(written: str, meant: str) -> None:
    found = some(match(written, TOOLS))
    assert (found.name, found.certain) == (meant, False)


@pytest.mark.parametrize("written", NONE, ids=lambda written: repr(written[:30]))
def test_none(written: str) -> None:
    assert match(written, TOOLS) is None


AMBIGUOUS = {
    "two cases": ("READ", ("read", "Read")),
    "two spellings": ("ReadFile", ("read_file", "read-file")),
    "two servers": ("find", ("mcp__a__find", "mcp__b__find")),
    "nothing declared": ("bash", ()),
    "an empty name declared": ("bash", ("",)),
}


@pytest.mark.parametrize(("written", "declared"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous(written: str, declared: tuple[str, ...]) -> None:
    assert match(written, declared) is None


def test_exact_wins_over_folded() -> None:
    found = some(match("functions.read", ("Read", "read")))
    assert found.name == "read"


@settings(deadline=None)
@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=5))
def test_only_declared_names_are_returned(written: str, declared: list[str]) -> None:
    found = match(written, declared)
    assert found is None or found.name in declared
