"""Plausible arguments for a JSON Schema: small, valid, and made from the words of the user.

Covers what tool schemas use: const, enum, default, examples, type (lists too), required, nested objects and arrays,
bounds, lengths, common formats, anyOf / oneOf / allOf and local `$ref`. Patterns are not solved. Values are never
placeholders (`string`, `default`, `/path/to/file`): a healthy server must not look like a model that invents them.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from wirelint.model import Json
from wirelint.text.pointers import at

MAX_DEPTH = 12
"""Nesting at which recursive schemas end with an empty value."""


def load_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this folder."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


SAMPLES = load_table("samples")
_STOP_WORDS = frozenset(SAMPLES["stop_words"].split())


@dataclass(frozen=True, slots=True)
class Topic:
    """The topic of a user message: its last four words without stop words, and the last name (`Lisbon`)."""

    words: tuple[str, ...]
    proper: str | None

    @classmethod
    def of(cls, text: str) -> Topic:
        words = re.findall(r"[^\W\d_]\w*(?:[-'][^\W_]+)*", text[-2000:])
        telling = tuple(word for word in words if word.lower() not in _STOP_WORDS)[-4:]
        proper = next((word for word in reversed(words[1:]) if word[0].isupper() and len(word) > 2), None)
        return cls(telling or ("release", "notes"), proper)

    @property
    def phrase(self) -> str:
        return " ".join(self.words)


def make_arguments(schema: dict[str, Json], topic: Topic, *, salt: int = 0) -> dict[str, Json]:
    """Make a JSON object for a tool's schema; another `salt` gives another object where the schema allows it."""
    made = _Maker(schema, topic, salt).make(schema, "", 0)
    return made if isinstance(made, dict) else {}


@dataclass(frozen=True, slots=True)
class _Maker:
    root: dict[str, Json]
    topic: Topic
    salt: int

    def make(self, schema: Json, name: str, depth: int) -> Json:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return self._string({}, name) if schema is True else None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        for key in ("enum", "examples"):
            values = schema.get(key)
            if isinstance(values, list) and values:
                return values[self.salt % len(values)]
        if "default" in schema:
            return schema["default"]
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer":
                return int(self._number(schema, whole=True))
            case "number":
                return self._number(schema, whole=False)
            case "boolean":
                return self.salt % 2 == 0
            case "null":
                return None
            case _:
                return self._string(schema, name)

    def _resolved(self, schema: dict[str, Json]) -> dict[str, Json]:
        """Follow local references, merge allOf, take the first alternative that is not null."""
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref")
            if isinstance(reference, str):
                target = at(self.root, f"/{reference.removeprefix('#').strip('/')}".rstrip("/"))
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = target | rest if isinstance(target, dict) else rest
                continue
            options = next((schema[key] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), None)
            if isinstance(options, list) and options:
                chosen = next((one for one in options if isinstance(one, dict) and one.get("type") != "null"), None)
                rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
                schema = _merged(rest, chosen or {"type": "null"})
                continue
            parts = schema.get("allOf")
            if not isinstance(parts, list):
                break
            schema = {key: value for key, value in schema.items() if key != "allOf"}
            for part in parts:
                schema = _merged(schema, self._resolved(part) if isinstance(part, dict) else {})
        return schema

    def _object(self, schema: dict[str, Json], depth: int) -> dict[str, Json]:
        declared = schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        required = schema.get("required")
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        # Models fill in the first parameter of a schema that requires none.
        chosen = names or list(properties)[:1]
        return {name: self.make(properties.get(name, True), name, depth + 1) for name in chosen}

    def _array(self, schema: dict[str, Json], name: str, depth: int) -> list[Json]:
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list):
            return [self.make(item, name, depth + 1) for item in prefix]
        least = max(_integer(schema, "minItems", 1), 1)
        number = min(least, _integer(schema, "maxItems", least))
        items = schema.get("items", True)
        return [_Maker(self.root, self.topic, self.salt + at).make(items, name, depth + 1) for at in range(number)]

    def _number(self, schema: dict[str, Json], *, whole: bool) -> float:
        step = _float(schema, "multipleOf", 1.0 if whole else 0.5)
        low = max(_float(schema, "minimum", -math.inf), _float(schema, "exclusiveMinimum", -math.inf))
        high = min(_float(schema, "maximum", math.inf), _float(schema, "exclusiveMaximum", math.inf))
        wanted = 5 + self.salt
        if low <= wanted * step < high and wanted * step != low:
            return wanted * step
        if low > -math.inf:
            value = math.ceil(low / step) * step
            return value + step if value <= _float(schema, "exclusiveMinimum", -math.inf) else value
        value = math.floor(high / step) * step
        return value - step if value >= _float(schema, "exclusiveMaximum", math.inf) else value

    def _string(self, schema: dict[str, Json], name: str) -> str:
        kind = schema.get("format")
        formats: dict[str, str] = SAMPLES["formats"]
        text = formats.get(kind) if isinstance(kind, str) else None
        if text is None:
            text = self._plain_string(name.lower())
        most = _integer(schema, "maxLength", len(text))
        least = _integer(schema, "minLength", 0)
        return text[:most].ljust(least, "a")

    def _plain_string(self, name: str) -> str:
        for row in SAMPLES["parameters"]:
            if any(key in name for key in row["names"]):
                if "city" in row["names"] and self.topic.proper and self.salt == 0:
                    return self.topic.proper
                return str(row["values"][self.salt % len(row["values"])])
        return self.topic.phrase if self.salt == 0 else f"{self.topic.phrase} part {self.salt + 1}"


def _type_of(schema: dict[str, Json]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _merged(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    merged = one | other
    for key in ("properties", "required"):
        mine, theirs = one.get(key), other.get(key)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            merged[key] = mine | theirs
        elif isinstance(mine, list) and isinstance(theirs, list):
            merged[key] = [*mine, *(name for name in theirs if name not in mine)]
    return merged


def _float(schema: dict[str, Json], key: str, otherwise: float) -> float:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _integer(schema: dict[str, Json], key: str, otherwise: int) -> int:
    return int(_float(schema, key, otherwise))
