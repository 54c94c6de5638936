"""Google's `Schema` as JSON Schema: the form in which `functionDeclarations[].parameters` say what arguments may be.

It is a subset of OpenAPI 3.0 written as a protocol buffer: types in capitals (or as numbers), `nullable`, 64-bit numbers as
strings, names in camel or snake case. `parametersJsonSchema` is JSON Schema already. Source: the vendor's API reference
(Schema, Type).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from wirelint.model import Json

_TYPES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""By number, as `enum-encoding=int` has them; 0 is no type."""

_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_OWN = frozenset({"nullable", "propertyOrdering", "type", "typeUnspecified"})
_DEEPEST = 100


def json_schema(value: Json) -> dict[str, Json] | None:
    """The JSON Schema that says the same; None for a schema that says nothing."""
    made = _schema(value, 0)
    return made if isinstance(made, dict) and made else None


def _schema(value: Json, depth: int) -> Json:
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    made: dict[str, Json] = {}
    for key, inner in value.items():
        name = camel(key)
        if name not in _OWN:
            made[name] = _member(name, inner, depth + 1)
    kind = _type(value.get("type"))
    nullable = value.get("nullable") is True
    if kind is not None:
        made["type"] = [kind, "null"] if nullable and isinstance(kind, str) and kind != "null" else kind
        listed = made.get("enum")
        if nullable and isinstance(listed, list) and None not in listed:
            made["enum"] = [*listed, None]
    elif nullable and made:
        return {"anyOf": [made, {"type": "null"}]}
    return made


def _member(name: str, value: Json, depth: int) -> Json:
    if name in ("properties", "$defs", "defs", "definitions") and isinstance(value, dict):
        return {key: _schema(inner, depth) for key, inner in value.items()}
    if name in ("items", "additionalProperties", "not"):
        return _schema(value, depth)
    if name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [_schema(inner, depth) for inner in value]
    if name in _COUNTS and isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return value


def _type(value: Json) -> Json:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return _TYPES[value] if 0 < value < len(_TYPES) else None
    if isinstance(value, str):
        return None if value in ("", "TYPE_UNSPECIFIED") else value.lower()
    return value


@lru_cache(maxsize=256)
def camel(name: str) -> str:
    """`max_items` as `maxItems`: both are accepted wherever Google reads JSON."""
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others) if first and others else name


@lru_cache(maxsize=256)
def snake(name: str) -> str:
    """`maxItems` as `max_items`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def member(body: Mapping[str, Json], name: str) -> tuple[str, Json]:
    """The member of a camel-case name, whichever way it is written: the name as it is written, and the value."""
    if name in body:
        return name, body[name]
    other = snake(name)
    return (other, body[other]) if other in body else (name, None)


def value_of(body: Mapping[str, Json], name: str) -> Json:
    return member(body, name)[1]
