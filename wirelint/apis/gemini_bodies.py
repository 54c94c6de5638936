"""Conventions of Gemini's JSON that requests, replies and writers share: spelling, kinds of parts, wrapper, schemas.

Members may be in camel case or in snake case. Code Assist (`v1internal:generateContent`) puts each body into another one;
errors have no wrapper. Source: the vendor's API reference (Part, Schema, Type) and its Gemini CLI.

    {"model":"gemini-2.5-pro","project":"p","request":{"contents":[{"parts":[{"text":"Hi"}]}]}}
    {"response":{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}]},"traceId":"t"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from wirelint.apis.reading import mappings, text
from wirelint.model import Json

# --- spelling ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def camel(name: str) -> str:
    """Return a name in camel case.

    >>> camel("max_items")
    'maxItems'
    """
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others) if first and others else name


@lru_cache(maxsize=256)
def snake(name: str) -> str:
    """Return a name in snake case.

    >>> snake("maxItems")
    'max_items'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def member(body: Mapping[str, Json], name: str) -> tuple[str, Json]:
    """Return the spelling and the value of a member in either spelling. `name` is in camel case."""
    if name in body:
        return name, body[name]
    other = snake(name)
    return (other, body[other]) if other in body else (name, None)


def value_of(body: Mapping[str, Json], name: str) -> Json:
    return member(body, name)[1]


def several(value: Json, place: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the objects of an array with their pointers. An object alone counts as an array of one."""
    if isinstance(value, dict):
        yield place, value
    for n, item in mappings(value):
        yield f"{place}/{n}", item


# --- parts ------------------------------------------------------------------------------------------------------------

_KINDS = (
    *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
_BESIDE = frozenset({"thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata"})


def kind_of(part: Mapping[str, Json]) -> tuple[str, str, Json]:
    """Return the kind of a part, and the spelling and the value of the member that names it.

    A part with a signature alone is a text without words.
    """
    for kind in _KINDS:
        name, value = member(part, kind)
        if value is not None:
            return kind, name, value
    for name, value in part.items():
        if name not in _BESIDE and value is not None:
            return name, name, value
    return ("text", "text", "") if value_of(part, "thoughtSignature") else ("", "", None)


def hosted_name(kind: str, inner: Mapping[str, Json]) -> str:
    """Return the provider's tool that a part is about."""
    if kind in ("executableCode", "codeExecutionResult"):
        return "code_execution"
    return (text(value_of(inner, "toolType")) or kind).lower()


def arguments_of(call: Mapping[str, Json]) -> Json:
    """Return the arguments of a call. A call without any leaves them out."""
    given = call.get("args")
    return {} if given is None else given


# --- the wrapper of Code Assist ---------------------------------------------------------------------------------------

REQUEST = "/request"
REPLY = "/response"
_INNER = ("candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata")


def is_wrapped(body: Mapping[str, Json]) -> bool:
    """Return True if a request contains one of Gemini's."""
    inner = body.get("request")
    return isinstance(inner, dict) and isinstance(inner.get("contents"), list | dict) and "contents" not in body


def unwrapped(document: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """Return the reply in a document, and its pointer; the document itself and an empty pointer without a wrapper."""
    inner = document.get("response")
    if isinstance(inner, dict) and "candidates" not in document and any(name in inner for name in _INNER):
        return inner, REPLY
    return document, ""


# --- schemas ----------------------------------------------------------------------------------------------------------

_TYPES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""Types by number (`enum-encoding=int`). 0 is no type."""
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_OWN = frozenset({"nullable", "propertyOrdering", "type", "typeUnspecified"})
_DEEPEST = 100


def json_schema(value: Json) -> dict[str, Json] | None:
    """Return Google's `Schema` as JSON Schema; None for a schema without constraints.

    `Schema` is a subset of OpenAPI 3.0 in a protocol buffer: types in capitals or as numbers, `nullable`, 64-bit numbers
    as strings. (`parametersJsonSchema` already is JSON Schema.)
    """
    made = _schema(value, 0)
    return made if isinstance(made, dict) and made else None


def _schema(value: Json, depth: int) -> Json:
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    made: dict[str, Json] = {}
    for key, inner in value.items():
        name = camel(key)
        if name not in _OWN:
            made[name] = _schema_member(name, inner, depth + 1)
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


def _schema_member(name: str, value: Json, depth: int) -> Json:
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
