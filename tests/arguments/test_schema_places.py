"""What a schema allows at a place, from the first character of the value on."""

from __future__ import annotations

from typing import Any

import pytest

from wirelint.arguments.argument_watchers import KindWatcher
from wirelint.arguments.schemas import ANY, element, kinds, member
from wirelint.model import Json, Tool

TREE = {
    "$defs": {
        "node": {"type": "object", "properties": {"size": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}
    },
    "$ref": "#/$defs/node",
}
LOOP = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}

# schema, the way to a place in the value → the kinds allowed there
PLACES: dict[str, tuple[Any, list[str | int], set[str]]] = {
    "the whole": ({"type": "object"}, [], {"object"}),
    "nothing said": ({}, ["a"], set(ANY)),
    "one type": ({"properties": {"a": {"type": "integer"}}}, ["a"], {"number"}),
    "several types": ({"properties": {"a": {"type": ["integer", "null"]}}}, ["a"], {"number", "null"}),
    "a type that nobody knows": ({"properties": {"a": {"type": "file"}}}, ["a"], set(ANY)),
    "an enumeration": ({"properties": {"a": {"enum": [1, None]}}}, ["a"], {"number", "null"}),
    "a type and an enumeration": (
        {"properties": {"a": {"type": ["string", "integer"], "enum": [1, 2]}}},
        ["a"],
        {"number"},
    ),
    "a constant": ({"properties": {"a": {"const": True}}}, ["a"], {"boolean"}),
    "any of several": (
        {"properties": {"a": {"anyOf": [{"type": "number"}, {"type": "null"}]}}},
        ["a"],
        {"number", "null"},
    ),
    "one of several, one of them open": ({"properties": {"a": {"oneOf": [{"type": "number"}, {}]}}}, ["a"], set(ANY)),
    "all of several": (
        {"properties": {"a": {"allOf": [{"type": ["number", "null"]}, {"type": ["null", "string"]}]}}},
        ["a"],
        {"null"},
    ),
    "elements": ({"properties": {"a": {"items": {"type": "string"}}}}, ["a", 3], {"string"}),
    "the first elements": ({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}, [0], {"string"}),
    "elements after the first": ({"prefixItems": [{"type": "string"}], "items": {"type": "null"}}, [1], {"null"}),
    "elements, said as in draft 7": ({"items": [{"type": "string"}, {"type": "null"}]}, [1], {"null"}),
    "other members": ({"additionalProperties": {"type": "null"}}, ["x"], {"null"}),
    "other members, by patterns": (
        {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "null"}},
        ["x"],
        set(ANY),
    ),
    "forbidden members": ({"additionalProperties": False}, ["x"], set(ANY)),
    "members of one alternative": (
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"type": "string"}]},
        ["a"],
        {"null"},
    ),
    "members of several alternatives": (
        {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"a": {"type": "string"}}}]},
        ["a"],
        {"null", "string"},
    ),
    "members of one alternative, another is silent": (
        {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "string"}}}]},
        ["a"],
        set(ANY),
    ),
    "a tree": (TREE, ["next", "next", "size"], {"number"}),
    "a circle": (LOOP, ["a"], set(ANY)),
    "a reference to nowhere": ({"properties": {"a": {"$ref": "#/$defs/x"}}}, ["a"], set(ANY)),
    "a reference to the root": ({"type": "object", "properties": {"a": {"$ref": "#"}}}, ["a"], {"object"}),
}


@pytest.mark.parametrize(("schema", "way", "expected"), PLACES.values(), ids=PLACES)
def test_kinds_at_a_place(schema: Json, way: list[str | int], expected: set[str]) -> None:
    place = schema
    for step in way:
        place = element(place, step, schema) if isinstance(step, int) else member(place, step, schema)
    assert kinds(place, schema) == expected


DECLARED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer", "nullable": True}}},
        },
        "open": {},
    },
}

# text → where the first value of a wrong kind begins that may be read as a right one
WRONG: dict[str, int | None] = {
    '{"n":1,"s":"x"}': None,
    '{"n":"1"': 5,
    '{"s":"x","n" : "1"': 15,
    '{"s":1': 5,
    '{"s":true': 5,
    '{"s":null': None,
    '{"s":{}': None,
    '{"n":true': None,
    '{"n":null': None,
    '{"list":"[]"': 8,
    '{"list":[{"n":null},{"n":2},{"n":"3"': 33,
    '{"open":{"n":"1","list":[{"n":"2"}]},"n":"3"': 41,
    '{"list":[[{"n":"2"}]],"other":"x"}': None,
    '{"\\u006e":"1"': 10,
    '"text"': 0,
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items(), ids=WRONG)
def test_the_first_wrong_value(text: str, expected: int | None) -> None:
    for step in (1, 2, 100):
        watcher = KindWatcher(Tool("t", "/tools/0", schema=DECLARED))
        safe = 0
        for place in range(0, len(text), step):
            safe = watcher.feed(text[place : place + step])
        assert safe == (len(text) if expected is None else expected)
        assert watcher.suspicious == (expected is not None)
