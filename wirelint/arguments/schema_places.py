"""Which kinds of values a schema allows at a place, as far as that can be told on the way there.

Used while arguments are still arriving: from the first character of a value its kind is known, and whether it may be
wrong. What a schema says in ways that are not followed here counts as allowed. `number` stands for integers too.
"""

from __future__ import annotations

from collections.abc import Iterable

from wirelint.dialects.coercion import resolve
from wirelint.jsonvalues import Json

Kinds = frozenset[str]
ANY: Kinds = frozenset({"string", "number", "boolean", "null", "object", "array"})
_DEEPEST = 8


def kinds(schema: Json, root: Json, depth: int = 0) -> Kinds:
    """The kinds of values that a schema allows."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return ANY
    allowed = _declared(schema.get("type"))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values:
        allowed &= frozenset(map(_kind, values))
    for part in _parts(schema, root):
        allowed &= kinds(part, root, depth + 1)
    for options in _alternatives(schema):
        allowed &= frozenset().union(*(kinds(option, root, depth + 1) for option in options))
    return allowed


def member(schema: Json, key: str, root: Json, depth: int = 0) -> Json:
    """A schema that a member of an object must fit; None when nothing is said of it."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    found: list[Json] = []
    properties = schema.get("properties")
    if isinstance(properties, dict) and key in properties:
        found.append(properties[key])
    elif "patternProperties" not in schema:
        found.append(schema.get("additionalProperties"))
    found += [member(part, key, root, depth + 1) for part in _parts(schema, root)]
    for options in _alternatives(schema):
        fitting = [option for option in options if "object" in kinds(option, root, depth + 1)]
        found.append(_one_of([member(option, key, root, depth + 1) for option in fitting]))
    return _all_of(found)


def element(schema: Json, number: int, root: Json, depth: int = 0) -> Json:
    """A schema that the element of an array at this position must fit; None when nothing is said of it."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    items, first = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):
        items, first = schema.get("additionalItems"), items
    found = [first[number] if isinstance(first, list) and number < len(first) else items]
    found += [element(part, number, root, depth + 1) for part in _parts(schema, root)]
    for options in _alternatives(schema):
        fitting = [option for option in options if "array" in kinds(option, root, depth + 1)]
        found.append(_one_of([element(option, number, root, depth + 1) for option in fitting]))
    return _all_of(found)


def _declared(declared: Json) -> Kinds:
    names = declared if isinstance(declared, list) else [declared]
    found = frozenset("number" if name == "integer" else name for name in names if isinstance(name, str))
    return found if found and found <= ANY else ANY


def _parts(schema: dict[str, Json], root: Json) -> Iterable[Json]:
    """The schemas that hold as well."""
    parts = schema.get("allOf")
    if isinstance(parts, list):
        yield from parts
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield root if reference == "#" else resolve(reference, root)


def _alternatives(schema: dict[str, Json]) -> Iterable[list[Json]]:
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and options:
            yield options


def _all_of(found: list[Json]) -> Json:
    said: list[Json] = [schema for schema in found if isinstance(schema, dict)]
    if len(said) <= 1:
        return said[0] if said else None
    return {"allOf": said}


def _one_of(options: list[Json]) -> Json:
    if not options or not all(isinstance(option, dict) for option in options):
        return None
    return options[0] if len(options) == 1 else {"anyOf": options}


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
