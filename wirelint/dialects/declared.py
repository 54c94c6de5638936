"""Declared tools: resolution of written names, and types for values that markup writes as plain text.

The declared schema decides. A parameter declared `string` keeps its text; with several types the first that reads the
text wins, in the order null, integer, number, boolean, object, array, string (the order of vLLM's
`coerce_to_schema_type`). Without a schema, text that is a JSON document other than a string becomes that value.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from wirelint.dialects import jsontext
from wirelint.model import Json, Tool

_PREFIX = re.compile(r"(?:functions?[. ]\s*)+")
_INDEX = re.compile(r"\s*:\s*\d+\Z")
_SEGMENTS = re.compile(r"\.|__|/|:")
_GENERIC_PREFIXES = frozenset({"functions", "function", "default_api", "tools", "tool", "mcp"})
# Placeholder names in documentation: `function_name`, `$FUNCTION_NAME`, `{tool_name}`, `your_tool`, `NAME`.
_STAND_IN = re.compile(
    r"[$<{\[]*(?:(?:your|my|some|the|an?|any|example|sample|dummy|actual)[_ -])*"
    r"(?:functions?|func|fn|tools?|method)?[_ -]?(?:name|call|here)?[_ -]?[0-9]{0,2}[>}\]]*",
    re.IGNORECASE,
)
_METASYNTACTIC = frozenset({"foo", "bar", "baz", "n", "x", "xxx"})

Hint = Literal["text", "json"] | None
"""The type of a value in the markup itself (`string="true"` or `"false"`); None without one."""

_ORDER = ("null", "integer", "number", "boolean", "object", "array")
_TYPE_NAMES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_BOOLEANS: dict[str, Json] = {"true": True, "1": True, "false": False, "0": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DEEPEST = 16
_CODE_KEYS = ("code", "script", "source", "input", "query")
_XML_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]{1,6}|#x[0-9a-fA-F]{1,5});")
_UNESCAPED = re.compile(rf"<|&(?!{_XML_ENTITY.pattern[1:]})")


def resolve(written: str, declared: Iterable[str]) -> str:
    """Return the declared name for a written one: exact, else by a unique run of last segments, else without framing."""
    offered = tuple(declared)
    name = written.strip()
    if name in offered:
        return name
    name = _PREFIX.sub("", _INDEX.sub("", name), count=1).strip() if _PREFIX.match(name) else _INDEX.sub("", name)
    if name in offered:
        return name
    # `calendar.calendar` fits `calendar`, `s.t` fits `mcp__s__t`, `fs.read` does not fit `db.read`.
    segments = _segments(name)
    fitting = set()
    for candidate in offered:
        other = _segments(candidate)
        shared = min(len(segments), len(other))
        if shared and segments[-shared:] == other[-shared:]:
            fitting.add(candidate)
    return fitting.pop() if len(fitting) == 1 else name


def is_stand_in(name: str) -> bool:
    """Return True if a name is a placeholder. Only for names that are not declared."""
    return not name or name.lower() in _METASYNTACTIC or _STAND_IN.fullmatch(name) is not None


def _segments(name: str) -> list[str]:
    segments = [segment for segment in _SEGMENTS.split(name) if segment]
    while len(segments) > 1 and segments[0] in _GENERIC_PREFIXES:
        segments.pop(0)
    return segments


def fits(tool: Tool | None, arguments: Json) -> bool:
    """Return True if arguments are an object with keys that the tool has; a schema without any fits all."""
    if tool is None or not isinstance(arguments, dict):
        return False
    schema = tool.schema
    if schema is None or not ("properties" in schema or "allOf" in schema):
        return True
    more = schema.get("additionalProperties")
    return isinstance(more, dict) or more is True or arguments.keys() <= properties_of(schema).keys()


def infer(tools: Iterable[Tool], arguments: dict[str, Json], *, empty: bool = False) -> str | None:
    """Return the only tool that these arguments fit, for a call without a name. `empty`: no arguments may fit."""
    fitting = []
    for tool in tools:
        properties = properties_of(tool.schema)
        if properties and (arguments or empty) and set(required(tool)) <= arguments.keys() <= properties.keys():
            fitting.append(tool.name)
    return fitting[0] if len(fitting) == 1 else None


def bind(tool: Tool | None, text: str) -> dict[str, Json] | None:
    """Return plain text as the arguments of a tool: the value of its only parameter, or of the only required one."""
    if tool is None or tool.schema is None:
        return None
    properties = properties_of(tool.schema)
    keys = tuple(properties) if len(properties) == 1 else required(tool)
    if len(keys) != 1:
        return None
    declared = properties.get(keys[0])
    value = coerce(text, declared, tool.schema)
    types = types_of(declared, tool.schema)
    return None if isinstance(value, str) and types and "string" not in types else {keys[0]: value}


def code_arguments(tool: Tool | None, code: str) -> dict[str, Json]:
    """Return a program under the interpreter's parameter for it."""
    keys = tuple(properties_of(tool.schema)) if tool is not None else ()
    return {next((key for key in _CODE_KEYS if key in keys), keys[0] if len(keys) == 1 else "code"): code}


def required(tool: Tool | None) -> tuple[str, ...]:
    """Return the required parameters of a tool, as its schema names them at the top."""
    names = tool.schema.get("required") if tool is not None and tool.schema is not None else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def type_arguments(raw: Iterable[tuple[str, str, Hint]], tool: Tool | None) -> dict[str, Json]:
    """Return the arguments of a call from (parameter, text, hint); a repeated parameter keeps its last value."""
    schema = tool.schema if tool is not None else None
    properties = properties_of(schema)
    typed: dict[str, Json] = {}
    for key, text, hint in raw:
        typed[key] = text if hint == "text" else coerce(text, properties.get(key), schema)
    return unwrap(typed, properties)


def unescaped(raw: Sequence[tuple[str, str, Hint]]) -> Sequence[tuple[str, str, Hint]]:
    """Return the values of a call with XML's entities decoded, if the model escaped them.

    A bare `<` or `&` in any value shows that it did not, and so does an entity that only HTML has. A value with the
    hint `text` is not decoded.

    >>> unescaped([("sql", "a &lt; b &amp;&amp; c", None)])
    [('sql', 'a < b && c', None)]
    """
    values = [text for _, text, hint in raw if hint != "text"]
    if not any("&" in text and _XML_ENTITY.search(text) for text in values) or any(map(_UNESCAPED.search, values)):
        return raw
    return [(key, text if hint == "text" else html.unescape(text), hint) for key, text, hint in raw]


def unwrap(arguments: dict[str, Json], properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the inner object of `{"arguments": {…}}`, if the schema has no such parameter and fits the object."""
    if len(arguments) != 1 or not properties:
        return arguments
    (key, value), *_ = arguments.items()
    if key not in ("arguments", "input") or key in properties:
        return arguments
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = _json_or_text(value)
    return value if isinstance(value, dict) and value.keys() <= properties.keys() else arguments


def coerce(text: str, declared: Json, root: Json = None) -> Json:
    """Type one value. `declared`: the parameter's schema, None without one; `root`: the schema its `$ref`s point into."""
    types = types_of(declared, root)
    if not types:
        return _json_or_text(text)
    for name in _ORDER:
        if name in types:
            try:
                return _read(name, text.strip())
            except ValueError:
                continue
    return text


def types_of(schema: Json, root: Json = None, depth: int = 0) -> frozenset[str]:
    """Return the JSON types that a schema allows; empty if it names none."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return frozenset()
    found: set[str] = set()
    match schema.get("type"):
        case str(name):
            found.add(name)
        case list(names):
            found.update(name for name in names if isinstance(name, str))
    for keyword in ("anyOf", "oneOf", "allOf"):
        options = schema.get(keyword)
        for option in options if isinstance(options, list) else ():
            found |= types_of(option, root, depth + 1)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found |= types_of(dereference(reference, root), root, depth + 1)
    if not found:
        values = schema.get("enum")
        found.update(type_name(value) for value in (values if isinstance(values, list) else ()))
        if "const" in schema:
            found.add(type_name(schema["const"]))
    if found and schema.get("nullable") is True:
        found.add("null")
    return frozenset(found)


def properties_of(schema: Json) -> Mapping[str, Json]:
    """Return the parameters that a schema of arguments declares, those of its `allOf` parts included."""
    if not isinstance(schema, dict):
        return {}
    own, parts = schema.get("properties"), schema.get("allOf")
    found: dict[str, Json] = dict(own) if isinstance(own, dict) else {}
    for part in parts if isinstance(parts, list) else ():
        found |= properties_of(part)
    return found


def dereference(reference: str, root: Json) -> Json:
    """Return the target of a reference within a schema (`#/$defs/shelf`); None for other or dangling references."""
    if not reference.startswith("#/"):
        return None
    place = root
    for token in reference[2:].split("/"):
        if not isinstance(place, dict):
            return None
        place = place.get(token.replace("~1", "/").replace("~0", "~"))
    return place


def type_name(value: Json) -> str:
    """Return the JSON type of a value; `integer` for a number without a fraction."""
    return _TYPE_NAMES.get(type(value), "object")


def _json_or_text(text: str) -> Json:
    try:
        value = jsontext.loads(text.strip())
    except ValueError:
        return text
    return text if isinstance(value, str) else value


def _read(name: str, text: str) -> Json:
    """Read text as a value of a JSON type. Raises ValueError if it is none."""
    match name:
        case "null" if text in ("null", "None"):
            return None
        case "integer" if _INTEGER.fullmatch(text) and -(1 << 63) <= int(text) < 1 << 64:
            return int(text)
        case "boolean" if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        case "number":
            value = jsontext.loads(text)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return value
        case "object" | "array":
            try:
                value = jsontext.loads(text)
            except ValueError:
                repaired = jsontext.repair_whole(text) if text[:1] in ("{", "[") else None
                value = repaired.value if repaired is not None else None
            if isinstance(value, dict if name == "object" else list):
                return value
    raise ValueError(text)
