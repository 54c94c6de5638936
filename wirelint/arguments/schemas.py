"""JSON Schemas of tools, compiled once, their violations, and the declared tool for a wrong name.

Theory of operation. Declared schemas mix many dialects: drafts 4 to 2020-12, OpenAPI (`nullable`, boolean bounds), Gemini
(`OBJECT`), hand-written ones (`"type": "str"`, `"required": true`). Providers accept them all, so a schema is first
converted to plain JSON Schema without annotations. A schema that still does not compile is unknown: `validator` returns
None, and rules skip it. `format` is not checked. Nothing is fetched: a reference that leaves the schema makes it unknown.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from wirelint import lexicon
from wirelint.dialects.declared import coerce, dereference, resolve, type_name
from wirelint.model import Json, Tool
from wirelint.text.escaping import excerpt

if TYPE_CHECKING:
    import jsonschema_rs

_PHRASES = lexicon.Phrases("schemas")

_LARGEST = 1 << 18
"""Bytes of a schema above which it is not compiled."""
_DEEPEST = 64
_ERRORS_READ = 50


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a schema's `keyword` at the place `path` of a value.

    `types` are the JSON types that are allowed there; empty for other violations.
    """

    path: tuple[str | int, ...]
    keyword: str
    words: str
    types: frozenset[str] = frozenset()

    @property
    def where(self) -> str:
        return dotted(self.path)


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as messages show it: `plan[0].status`; empty for the whole value."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


class Validator:
    __slots__ = ("_compiled",)

    def __init__(self, compiled: jsonschema_rs.Validator) -> None:
        self._compiled = compiled

    def accepts(self, value: Json) -> bool:
        try:
            return self._compiled.is_valid(value)
        except ValueError:  # an integer or a text that the validator cannot hold: unknown is not wrong
            return True

    def violations(self, value: Json) -> tuple[Violation, ...]:
        """Return the violations of a value, shallow places first; at most a few dozen."""
        if self.accepts(value):
            return ()
        found: list[Violation] = []
        with contextlib.suppress(ValueError):  # a message with half of a surrogate pair, as in `accepts`
            for error in self._compiled.iter_errors(value):
                if type(error.kind).__name__.removeprefix("ValidationErrorKind_") not in _UNKNOWN:
                    keyword = str(error.schema_path[-1]) if error.schema_path else "schema"
                    types = frozenset(_allowed_types(error))
                    words = _words(error, keyword, types)
                    found.append(Violation(tuple(error.instance_path), keyword, words, types))
                if len(found) >= _ERRORS_READ:
                    break
        return tuple(sorted(found, key=lambda violation: (len(violation.path), violation.where)))

    def coerced(self, value: Json) -> Json:
        """Return the value with wrong types converted (`"20"` → 20), if that alone makes it valid; else None."""
        violations = self.violations(value)
        if not violations or not all(violation.types and violation.path for violation in violations):
            return None
        made = [value]
        for violation in violations:
            holder: Any = made
            place: Any = 0
            for step in violation.path:
                holder[place] = copy.copy(holder[place])
                holder, place = holder[place], step
            given = read = holder[place]
            if isinstance(given, str):
                read = coerce(given, {"type": [*sorted(violation.types)]})
            elif isinstance(given, int | float) and "string" in violation.types:
                read = _json(given)
            if type(read) is type(given):  # it spells none of the types
                return None
            holder[place] = read
        return made[0] if self.accepts(made[0]) else None


def validator(tool: Tool | None) -> Validator | None:
    """Return the validator of a tool's arguments; None without a schema that compiles."""
    source = _source(tool)
    return _compile(source) if source else None


def plain(tool: Tool | None) -> dict[str, Json] | None:
    """Return a tool's schema in plain JSON Schema; None without one that can be converted."""
    source = _source(tool)
    return _read(source) if source else None


def _source(tool: Tool | None) -> bytes:
    """Return the JSON text of a tool's schema; empty without a schema, or with one that is too large."""
    source = orjson.dumps(tool.schema) if tool is not None and tool.schema is not None else b""
    return source if len(source) <= _LARGEST else b""


def accepts(tool: Tool | None, value: Json) -> bool | None:
    """Return True if a tool accepts these arguments; None if that is unknown."""
    if tool is None or not isinstance(value, dict):
        return None
    if tool.schema is None:
        return True
    compiled = validator(tool)
    return compiled.accepts(value) if compiled is not None else None


@lru_cache(maxsize=512)
def _read(source: bytes) -> dict[str, Json] | None:
    try:
        read = _plain(orjson.loads(source), 0)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


@lru_cache(maxsize=512)
def _compile(source: bytes) -> Validator | None:
    import jsonschema_rs  # 4 MB, which traffic without tools does not need

    declared = _read(source)
    if declared is None:
        return None
    # First as declared, then without an unknown `$schema`, then as the draft in which `items` may be a list.
    draftless = {key: value for key, value in declared.items() if key not in ("$schema", "$id", "id")}
    attempts = ((jsonschema_rs.validator_for, declared), (jsonschema_rs.validator_for, draftless))
    for make, schema in (*attempts, (jsonschema_rs.Draft7Validator, draftless)):
        try:
            return Validator(make(schema, validate_formats=False, retriever=_refuse))
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError):
            continue
    return None


def _refuse(address: str) -> Json:
    raise ValueError(f"{address} is not fetched")


# --- plain JSON Schema ---------------------------------------------------------------------------------------------

_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset(_PHRASES.words("schemas"))
# Annotations constrain nothing; with a wrong type (`"description": null`) they would only keep the schema from compiling.
_ANNOTATIONS = frozenset(_PHRASES.words("annotations"))
_ALIASES: dict[str, str] = _PHRASES.table("types")


def _plain(schema: Json, depth: int) -> Json:
    """Return a schema in plain JSON Schema. Only subschemas are converted: a parameter may be named `nullable`."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _ANNOTATIONS or (value is None and key not in ("const", "enum")):
            continue
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            made[key] = {name: _plain(inner, depth + 1) for name, inner in value.items() if inner is not None}
        elif key in _SCHEMA_LISTS and isinstance(value, list):
            made[key] = [_plain(inner, depth + 1) for inner in value]
        elif key in _SCHEMAS:
            made[key] = _plain(value, depth + 1)
        else:
            made[key] = value
    if "type" in made:
        declared = made.pop("type")
        names = declared if isinstance(declared, list) else [declared]
        known = [_ALIASES.get(name.lower()) if isinstance(name, str) else None for name in names]
        # `any`, `file`, `TYPE_UNSPECIFIED`: an unknown type forbids nothing.
        if known and None not in known:
            made["type"] = list(dict.fromkeys(known)) if len(set(known)) > 1 else known[0]
    # `"required": true` on a parameter is draft 3; later drafts do not define it.
    if "required" in made and not isinstance(made["required"], list):
        del made["required"]
    if made.get("enum") == []:
        del made["enum"]
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        flag = made.get(exclusive)
        if isinstance(flag, bool):
            del made[exclusive]
            if flag and inclusive in made:
                made[exclusive] = made.pop(inclusive)
    # 19.99 is no multiple of 0.01 in binary; the schema wants two decimals.
    if isinstance(made.get("multipleOf"), float):
        del made["multipleOf"]
    return _nullable(made) if schema.get("nullable") is True else made


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    kind, values = schema.get("type"), schema.get("enum")
    if kind is None or {"anyOf", "oneOf", "allOf", "$ref", "const"} & schema.keys():
        return {"anyOf": [schema, {"type": "null"}]}
    made = {**schema, "type": [*(kind if isinstance(kind, list) else [kind]), "null"]}
    if isinstance(values, list):
        made["enum"] = [*values, None]
    return made


# --- violations ------------------------------------------------------------------------------------------------------

_UNKNOWN = frozenset({"BacktrackLimitExceeded", "RegexEngineFailure", "FromUtf8", "Referencing", "Custom"})


def _allowed_types(error: jsonschema_rs.ValidationError) -> Iterator[str]:
    import jsonschema_rs

    match error.kind:
        case jsonschema_rs.ValidationErrorKind.Type(types=types):
            yield from map(str, types)
        case (
            jsonschema_rs.ValidationErrorKind.AnyOf(context=context)
            | jsonschema_rs.ValidationErrorKind.OneOfNotValid(context=context)
        ):
            for branch in context:
                for inner in branch:
                    if list(inner.instance_path) == list(error.instance_path):
                        yield from _allowed_types(inner)
        case jsonschema_rs.ValidationErrorKind.Enum(options=options):
            # An enumeration of numbers that was given as text, or the other way round.
            given = isinstance(error.instance, str)
            kinds = {"integer" if isinstance(option, int) else "string" for option in options}
            yield from kinds if len(kinds) == 1 and given == (kinds == {"integer"}) else ()


def _words(error: jsonschema_rs.ValidationError, keyword: str, types: frozenset[str]) -> str:
    import jsonschema_rs

    given = excerpt(_json(error.instance), 40)
    match error.kind:
        case jsonschema_rs.ValidationErrorKind.Required(property=name):
            missing = str(name).strip('"')
            return f"{excerpt(missing, 40)} is missing"
        case jsonschema_rs.ValidationErrorKind.AdditionalProperties(unexpected=names):
            shown = ", ".join(excerpt(str(name), 40) for name in names[:3])
            return f"unknown parameter{'' if len(names) == 1 else 's'} {shown}"
        case jsonschema_rs.ValidationErrorKind.Enum(options=options):
            return f"{given} is not one of {excerpt(', '.join(map(_json, options)), 60)}"
        case _ if types:
            return f"{given} is not {' or '.join(sorted(types))}"
        case _ if keyword in ("anyOf", "oneOf"):
            return f"{given} fits none of the allowed forms"
    return excerpt(error.message, 80)


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


# Kinds of values that a schema allows at a place.
#
# The first character of an arriving value shows its kind, and whether it may be wrong. Constraints that are not read here
# count as allowed. `number` includes integers.

ANY = frozenset({"string", "number", "boolean", "null", "object", "array"})
_SCHEMA_PLACES_DEEPEST = 8


def kinds(schema: Json, root: Json, depth: int = 0) -> frozenset[str]:
    if not isinstance(schema, dict) or depth > _SCHEMA_PLACES_DEEPEST:
        return ANY
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    found = frozenset("number" if name == "integer" else name for name in names if isinstance(name, str))
    allowed = found if found and found <= ANY else ANY
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values:
        allowed &= frozenset(map(kind_of, values))
    for part in _parts(schema, root):
        allowed &= kinds(part, root, depth + 1)
    for options in _alternatives(schema):
        allowed &= frozenset().union(*(kinds(option, root, depth + 1) for option in options))
    return allowed


def inner_schema(schema: Json, step: str | int, root: Json, depth: int = 0) -> Json:
    """Return a schema that the member of this name, or the element at this position, must fit; None without one."""
    if not isinstance(schema, dict) or depth > _SCHEMA_PLACES_DEEPEST:
        return None
    if isinstance(step, str):
        own, properties = schema.get("additionalProperties"), schema.get("properties")
        if isinstance(properties, dict) and step in properties:
            own = properties[step]
        elif "patternProperties" in schema:
            own = None
    else:
        own, first = schema.get("items"), schema.get("prefixItems")
        if isinstance(own, list):
            own, first = schema.get("additionalItems"), own
        if isinstance(first, list) and step < len(first):
            own = first[step]
    found = [own, *(inner_schema(part, step, root, depth + 1) for part in _parts(schema, root))]
    kind = "object" if isinstance(step, str) else "array"
    for options in _alternatives(schema):
        fitting = [option for option in options if kind in kinds(option, root, depth + 1)]
        inner = [inner_schema(option, step, root, depth + 1) for option in fitting]
        if all(isinstance(one, dict) for one in inner):
            found += inner if len(inner) < 2 else [{"anyOf": inner}]
    demands = [one for one in found if isinstance(one, dict)]
    return {"allOf": [*demands]} if len(demands) > 1 else demands[0] if demands else None


def _parts(schema: dict[str, Json], root: Json) -> Iterable[Json]:
    """Yield the schemas that the value must fit too."""
    parts = schema.get("allOf")
    if isinstance(parts, list):
        yield from parts
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield root if reference == "#" else dereference(reference, root)


def _alternatives(schema: dict[str, Json]) -> Iterable[list[Json]]:
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and options:
            yield options


def kind_of(value: Json) -> str:
    """Return the JSON type of a value; `number` for every number."""
    return "number" if (name := type_name(value)) == "integer" else name


# The declared tool for an undeclared name: other case, a leaked prefix, markup around it, a repeated name.

# Namespaces of models that a server's parser should have removed: OpenAI's harmony and Kimi write `functions.NAME`, Gemini
# `default_api.NAME`; several may follow each other.
_PREFIX = re.compile(r"(?:(?:functions?|default_api|tools?|multi_tool_use|tool_call|assistant)(?:[.:/ ]+|__)|to=)+")
# A namespace without the characters that an API does not allow in names: `functionsNAME0`.
_FUSED = re.compile(r"(?:functions|default_api)(?P<name>[A-Za-z]\w*?)\d{0,3}\Z")
# The rest of harmony's header after the name, without its tokens: `NAME<|channel|>commentary <|constrain|>json`.
_HEADER = re.compile(
    r"(?:\s+(?:(?:in )?(?:commentary|analysis)(?: channel)?\s*(?:json|code)?|json|code)"
    r"|(?<=[^\W_])commentary\s*(?:json|code)?)\Z"
)
_COUNTER = re.compile(r":\d+\Z")
_MCP = re.compile(r"mcp__(?:[^_]|_(?!_))+__")
_TAG = re.compile(r"<[^<>]{0,80}>")
_MARKUP = re.compile(r"[<>|(){}\[\]\n\"'`]")
_PIECE = re.compile(r"[\w.:/-]+")
_TWICE = re.compile(r"(.+?)[ ._:/-]*\1\Z", re.DOTALL)
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Match:
    """The declared name for a wrong one. `certain`: no other name is possible. `why` completes "the name has …"."""

    name: str
    why: str
    certain: bool = True


def match(written: str, declared: Iterable[str]) -> Match | None:
    """Return the declared tool for `written`, an undeclared name; None if none or several fit."""
    offered = tuple(dict.fromkeys(name for name in declared if name))
    if not offered or not written.strip() or len(written) > _LONGEST:
        return None
    readings = list(dict.fromkeys(_readings(written)))
    for reading, why in readings:
        if reading in offered:
            return Match(reading, why)
    folded: dict[str, list[str]] = {}
    for name in offered:
        folded.setdefault(_fold(name), []).append(name)
    for reading, why in ((written, "another case or spelling"), *readings):
        names = folded.get(_fold(reading), ())
        if len(names) == 1:
            return Match(names[0], why)
    name = resolve(written, offered)
    if name not in offered:
        return None
    certain = _MCP.match(written) is not None or _MCP.match(name) is not None
    return Match(name, "another namespace", certain)


def _readings(written: str) -> Iterator[tuple[str, str]]:
    """Yield the possible originals of a name with additions, most likely first."""
    plain = written.strip(" \t\r\n*`'\"")
    yield plain, "blanks or quotes around it"
    if _MARKUP.search(plain):
        pieces = [piece for part in _PIECE.findall(_TAG.sub(" ", plain)) for piece in (part, part.partition("=")[2])]
        for piece in (*pieces, *_PIECE.findall(plain)):
            yield piece, "markup in it"
            yield _bare(piece), "markup in it"
    bare = _bare(plain)
    yield bare, "a prefix"
    yield _MCP.sub("", bare, count=1), "the prefix of an MCP server"
    if header := _HEADER.search(plain):
        yield _bare(plain[: header.start()]), "markup in it"
    if fused := _FUSED.fullmatch(plain):
        yield fused["name"], "a prefix"
    if twice := _TWICE.fullmatch(bare):
        yield twice[1], "itself twice in it"


def _bare(name: str) -> str:
    """Return a name without the framing of a native call: `functions.NAME:0`."""
    name = _COUNTER.sub("", name)
    prefix = _PREFIX.match(name)
    return name[prefix.end() :] if prefix and prefix.end() < len(name) else name


def tails(name: str) -> tuple[str, ...]:
    """Return a tool's name with and without a namespace or the prefix of its server: `mcp__files__read`, `read`."""
    found = [name, _bare(name)]
    found += [_MCP.sub("", one, count=1) for one in found]
    found += [tail for one in found for mark in ("__", ".", "/", ":") if (tail := one.rpartition(mark)[2])]
    return tuple(dict.fromkeys(one for one in found if one))


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
