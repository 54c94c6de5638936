"""Arguments made for a schema are valid for it, and differ where the schema leaves room."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from wirelint.mock.schema_values import Topic, make_arguments


def one(**schema: Any) -> dict[str, Any]:
    """An object with one required parameter `x` of this schema."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}


TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["name"],
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no parameters": {"type": "object", "properties": {}},
    "required without properties": {"type": "object", "required": ["x", "y"]},
    "nothing required": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
    "const": one(const=7),
    "enum": one(type="string", enum=["a", "b"]),
    "default": one(type="integer", default=20),
    "examples": one(type="string", examples=["eins", "zwei"]),
    "type list": one(type=["null", "integer"]),
    "only null": one(type="null"),
    "boolean": one(type="boolean"),
    "number": one(type="number", minimum=0.1, maximum=0.9),
    "tight": one(type="integer", exclusiveMinimum=2, exclusiveMaximum=4),
    "multiple": one(type="integer", multipleOf=15, minimum=100, maximum=110),
    "below zero": one(type="integer", maximum=-3),
    "above": one(type="number", exclusiveMinimum=1000),
    "long": one(type="string", minLength=200),
    "short": one(type="string", maxLength=2),
    "date": one(type="string", format="date"),
    "date-time": one(type="string", format="date-time"),
    "email": one(type="string", format="email"),
    "uri": one(type="string", format="uri"),
    "uuid": one(type="string", format="uuid"),
    "unknown format": one(type="string", format="colour"),
    "array": one(type="array", items={"type": "integer"}, minItems=3, uniqueItems=True),
    "array at most": one(type="array", items={"type": "string"}, maxItems=0),
    "tuple": one(type="array", prefixItems=[{"type": "string"}, {"type": "integer"}]),
    "nested": one(type="object", properties={"y": {"type": "integer"}}, required=["y"]),
    "anything": one(),
    "anyOf": one(anyOf=[{"type": "null"}, {"type": "integer", "minimum": 9}]),
    "oneOf": one(oneOf=[{"type": "string", "maxLength": 3}, {"type": "integer"}]),
    "allOf": {
        "allOf": [
            {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            {"properties": {"y": {"type": "boolean"}}, "required": ["y"]},
        ]
    },
    "$ref": one(**{"$ref": "#/$defs/a~1b"}) | {"$defs": {"a/b": {"type": "integer", "minimum": 50}}},
    "recursive": TREE,
    "recursive and required": TREE | {"required": ["name", "child"]},
}
TOPIC = Topic.of("Please compare the tides in Lisbon and Porto")


@pytest.mark.parametrize("salt", [0, 1, 5])
@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "recursive and required"])
def test_arguments_are_valid(name: str, salt: int) -> None:
    schema = SCHEMAS[name]
    arguments = make_arguments(schema, TOPIC, salt=salt)
    assert jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(arguments), arguments


def test_recursion_ends() -> None:
    assert make_arguments(SCHEMAS["recursive and required"], TOPIC)["child"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("city", "Porto"), ("query", "compare tides Lisbon Porto"), ("file_path", "README.md"), ("unit", "celsius")],
)
def test_strings_fit_their_names(name: str, value: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    assert make_arguments(schema, TOPIC) == {name: value}
    assert make_arguments(schema, TOPIC, salt=1) != {name: value}
