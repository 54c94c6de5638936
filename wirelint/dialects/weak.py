"""The conditions for shapes that people write too: a declared tool, arguments that fit it, nothing else in the message.

Theory of operation. A JSON object, or a line `Action: lookup`, is a call only by the tool that it names. So the names of
the declared tools are in the patterns themselves (`compiled`): an answer that begins with `{"name": "Bob"` stops matching
at the `B`, and a stream that is held back is released there.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wirelint.dialects import coercion, jsontext
from wirelint.dialects.reader import Pattern, Reader
from wirelint.model import Json, Tool

_QUOTE = "[\"']"
_LAST_QUOTED = re.compile(r"[\"']([^\"']{1,160})[\"']\Z")
_SPACE = r"\s{0,64}"
_COLON = rf"{_SPACE}:{_SPACE}"
_NAME_KEYS = "name|tool_name|function_name|tool|function|recipient_name|action"
_ARGUMENT_KEYS = "arguments|parameters|args|input"
_BEFORE = (
    rf"(?:{_QUOTE}(?:id|call_id|tool_call_id){_QUOTE}{_COLON}{_QUOTE}[\w.:-]{{0,128}}{_QUOTE}{_SPACE},{_SPACE}"
    rf"|{_QUOTE}type{_QUOTE}{_COLON}{_QUOTE}(?:function|function_call|tool_call|tool_use){_QUOTE}{_SPACE},{_SPACE}"
    rf"|{_QUOTE}index{_QUOTE}{_COLON}[0-9]{{1,4}}{_SPACE},{_SPACE}){{0,3}}"
)


def is_whole(reader: Reader, start: int, end: int) -> bool:
    """Return True if a stretch is the whole message, except for white space, control tokens and the reasoning before it."""
    return reader.begins(start) and reader.concludes(end)


def fits(tool: Tool | None, arguments: Json) -> bool:
    """Return True if arguments are an object with keys that the tool has; a schema without any fits all."""
    if tool is None or not isinstance(arguments, dict):
        return False
    schema = tool.schema
    if schema is None or not ("properties" in schema or "allOf" in schema):
        return True
    more = schema.get("additionalProperties")
    return isinstance(more, dict) or more is True or arguments.keys() <= coercion.properties_of(schema).keys()


def infer(reader: Reader, arguments: dict[str, Json], *, empty: bool = False) -> str | None:
    """Return the only declared tool that these arguments fit, for a call without a name. `empty`: no arguments may fit."""
    fitting = []
    for tool in reader.tools.values():
        properties = coercion.properties_of(tool.schema)
        required = tool.schema.get("required") if tool.schema is not None else None
        needed = {key for key in required if isinstance(key, str)} if isinstance(required, list) else set()
        if properties and (arguments or empty) and needed <= arguments.keys() <= properties.keys():
            fitting.append(tool.name)
    return fitting[0] if len(fitting) == 1 else None


def bound(tool: Tool | None, text: str) -> dict[str, Json] | None:
    """Return plain text as the arguments of a tool: the value of its only parameter, or of the only required one."""
    if tool is None or tool.schema is None:
        return None
    properties = coercion.properties_of(tool.schema)
    required = tool.schema.get("required")
    needed = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
    keys = list(properties) if len(properties) == 1 else needed
    if len(keys) != 1:
        return None
    declared = properties.get(keys[0])
    value = coercion.coerce(text, declared, tool.schema)
    types = coercion.types_of(declared, tool.schema)
    return None if isinstance(value, str) and types and "string" not in types else {keys[0]: value}


def read_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object of a text, healthy or damaged; None if it is none or not whole."""
    decoded = jsontext.decode_at(text, 0)
    if not decoded.failed and decoded.end == len(text):
        return decoded.value if isinstance(decoded.value, dict) else None
    repaired = jsontext.repair(text)
    if repaired is None or repaired.missing or repaired.end != len(text):
        return None
    return repaired.value if isinstance(repaired.value, dict) else None


def compiled(reader: Reader, source: str) -> Pattern:
    """Compile a pattern for the declared tools.

    `DECLARED` stands for any of their names, as the group `name`. `NAMES` stands for a name with or without `functions.`.
    `HEAD` stands for the start of a JSON object that calls one of them, up to the name of the tool, or, where the
    arguments come first, up to a parameter that a tool has.
    """
    keys = sorted({key for tool in reader.tools.values() for key in coercion.properties_of(tool.schema)})
    return _compiled(source, tuple(sorted(reader.tools)), tuple(keys))


def called(reader: Reader, text: str) -> str | None:
    """Return the declared name in quotes at the end of a text."""
    written = _LAST_QUOTED.search(text)
    return written[1] if written is not None and reader.tool(written[1]) is not None else None


@lru_cache(maxsize=256)
def _compiled(pattern: str, declared: tuple[str, ...], keys: tuple[str, ...]) -> Pattern:
    written = rf"(?:functions?\.)?(?:{'|'.join(map(re.escape, declared))})"
    parameter = "|".join(map(re.escape, keys)) or "(?!)"
    inner = rf"(?:\{{{_SPACE}{_QUOTE}name{_QUOTE}{_COLON})?"
    named = rf"{_QUOTE}(?:{_NAME_KEYS}){_QUOTE}{_COLON}{inner}{_QUOTE}{written}{_QUOTE}"
    inverted = (
        rf"{_QUOTE}(?:{_ARGUMENT_KEYS}){_QUOTE}{_COLON}\{{{_SPACE}(?:\}}|{_QUOTE}(?:{parameter}){_QUOTE}{_SPACE}:)"
    )
    head = rf"\{{{_SPACE}{_BEFORE}(?:{named}|{inverted})"
    declared_name = f"(?P<name>{'|'.join(map(re.escape, sorted(declared, key=len, reverse=True))) or '(?!)'})"
    return re.compile(pattern.replace("HEAD", head).replace("NAMES", written).replace("DECLARED", declared_name))
