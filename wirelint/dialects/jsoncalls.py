"""Calls written as JSON objects: `{"name": …, "arguments": {…}}` and the other keys that models use.

`calls_of` reads a value that has been decoded. `read_calls` reads the values at a position, one after another, alone or in
an array, and the damaged ones up to the closer or the next opener of their notation; `close` reads that closer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.dialects import coercion, jsontext
from wirelint.dialects.reader import Match, Pattern, Reader, is_name
from wirelint.dialects.values import NativeCall
from wirelint.model import Json, Tool

_NAME_KEYS = ("name", "tool_name", "function_name", "tool", "function", "recipient_name", "action")
_ENVELOPES = ("function", "tool_call", "function_call")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "function_args", "tool_input", "action_input")
_ID_KEYS = ("id", "tool_call_id", "call_id")
_FRAMING = frozenset({*_NAME_KEYS, *_ID_KEYS, "type", "index"})

_WRITTEN_NAME = re.compile(r"""["'](?:name|tool_name|function_name)["']\s{0,4}:\s{0,4}["']([\w.:/-]{1,128})["']""")
_WRITTEN_KEY = re.compile(r"""\{\s{0,8}["']([\w.:/-]{1,128})["']\s{0,4}:\s{0,4}\{""")
_ELLIPSIS = re.compile(r"[{\[:,]\s{0,4}(?:\.\.\.|…)")  # `{...}`: a description of a call
_VALUE = re.compile(r"[\[{]")
_FURTHER = re.compile(r"\{|\[\s{0,16}\{")  # not the bracket of `[TOOL_CALLS]` or of a footnote
_SURPLUS = re.compile(r"[\s}\],]*")
_DOUBLED = re.compile(r"\{\s{0,4}(?=\{)")
_QUOTED = re.compile(
    r"\s{0,4}\{\s{0,4}[\"'](?:tool_|function_)?name[\"']\s{0,4}:\s{0,4}[\"'](?P<name>[\w.:/-]{1,128})[\"']\s{0,4},"
    r"\s{0,4}[\"'](?:arguments|parameters)[\"']\s{0,4}:\s{0,4}(?P<quote>[\"'])(?=\s{0,4}\{)"
)
_QUOTED_END = {quote: re.compile(rf"\s{{0,4}}{quote}\s{{0,4}}\}}") for quote in "\"'"}
_FENCE_END = re.compile(r"\s*`{3,}\s*")


class Keys(NamedTuple):
    """The keys that a notation itself uses; others are read too, as departures from it.

    `keyed`: the only key is the tool's name, and the arguments stand under it.
    """

    name: str = "name"
    arguments: str = "arguments"
    keyed: bool = False


KEYS = Keys()


@dataclass(slots=True)
class JsonCalls:
    """What `read_calls` has read: up to `end`, that many `values` side by side.

    `array`: the first value is one. `canonical`: all of it in the notation's own keys, and valid JSON.
    """

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    values: int = 0
    array: bool = False
    canonical: bool = True


class Closing(NamedTuple):
    """The end of what belongs to the calls, their closer if it stood there, and whether anything did between."""

    end: int
    closer: Match | None
    odd: bool

    @property
    def closed(self) -> bool:
        return self.closer is not None


def calls_of(reader: Reader, value: Json, keys: Keys = KEYS) -> tuple[list[NativeCall], bool]:
    """The calls that a JSON value describes (an object, or an array of them), and whether all do in the canonical way."""
    given = value if isinstance(value, list) else [value]
    items = [part for item in given for part in _parts(reader, item, keys)]
    read = [_call_of(reader, item, keys) for item in items]
    found = [call for call, _ in read if call is not None]
    return found, len(found) == len(given) and all(canonical for _, canonical in read)


def read_calls(
    reader: Reader, position: int, closer: Pattern, openers: tuple[Pattern, ...] = (), keys: Keys = KEYS
) -> JsonCalls | None:
    """The calls at a position, None when nothing there can be one. `closer` and `openers` end what is damaged.

    The last call may be incomplete, when the text ends in it or when it cannot be read beyond its name.
    """
    found = JsonCalls(position, array=reader.char(position) == "[")
    at = position
    if doubled := reader.match(_DOUBLED, at):  # `{{…}}`, as templates escape a bracket
        at, found.canonical = doubled.end(), False
    while reader.match(_FURTHER if found.values else _VALUE, at):
        decoded = reader.json(at)
        if decoded.failed:
            _read_damaged(reader, at, found, (closer, *openers), keys)
            break
        calls, canonical = calls_of(reader, decoded.value, keys)
        if not calls:
            break
        _add(found, calls, decoded.end, canonical=canonical and decoded.healthy)
        at = reader.space(decoded.end)
        if reader.char(at) == ",":
            at = reader.space(at + 1)
    return found if found.calls else None


def read_quoted(reader: Reader, position: int) -> JsonCalls | None:
    """A call whose arguments stand between quotes of either kind, whatever quotes they hold themselves."""
    head = reader.match(_QUOTED, position)
    if head is None:
        return None
    decoded = reader.json(reader.space(head.end()))
    tail = reader.match(_QUOTED_END[head["quote"]], decoded.end) if not decoded.failed else None
    if decoded.failed or not (tail or reader.ended(decoded.end) or head["quote"] == "'"):
        return None
    call = reader.call(head["name"], decoded.value, complete=True)
    healthy = decoded.healthy and tail is not None
    return JsonCalls(tail.end() if tail is not None else decoded.end, [call], values=1, canonical=healthy)


def close(reader: Reader, position: int, closer: Pattern) -> Closing:
    """The closer after the calls, past brackets that are too many and the end of a fence."""
    surplus = reader.match(_SURPLUS, position)
    at = surplus.end() if surplus is not None else position
    reader.work += at - position
    odd = bool(reader.view.text[position:at].strip())
    if fence := reader.match(_FENCE_END, at):
        at, odd = fence.end(), True
    ending = reader.match(closer, at)
    return Closing(ending.end() if ending is not None else position, ending, odd)


def _add(found: JsonCalls, calls: list[NativeCall], end: int, *, canonical: bool) -> None:
    found.calls += calls
    found.values += 1
    found.canonical &= canonical
    found.end = end


def _read_damaged(reader: Reader, at: int, found: JsonCalls, stops: tuple[Pattern, ...], keys: Keys) -> None:
    stop = reader.first(stops, at)
    end = stop.start() if stop is not None else reader.size
    closed = stop is not None and stop.re is stops[0]
    # Without a closer only the outermost brackets may be missing: then the arguments themselves are whole.
    if _read_repaired(reader, at, found, keys, end, missing=end if closed else 1 + found.array):
        return
    inside = reader.char(at) == "["
    if inside:  # what stands before the damage is whole
        at = _read_elements(reader, at + 1, found, keys)
    if quoted := read_quoted(reader, at):
        _add(found, quoted.calls, quoted.end, canonical=False)
        return
    rest = inside and reader.char(at) == "{"
    if rest and _read_repaired(reader, at, found, keys, end, missing=end if closed else 1):
        return
    found.canonical = False
    written = (_WRITTEN_KEY if keys.keyed else _WRITTEN_NAME).search(reader.view.text, at, end)
    if written is not None and not _ELLIPSIS.search(reader.view.text, at, end):
        _add(found, [reader.call(written[1], None, complete=False)], end, canonical=False)


def _read_repaired(reader: Reader, at: int, found: JsonCalls, keys: Keys, end: int, *, missing: int) -> bool:
    repaired = reader.repair(at, end)
    if repaired is None or repaired.missing > missing:
        return False
    if repaired.missing and missing < end and not _argued(repaired.value, keys):
        return False  # cut off before its arguments
    calls, _ = calls_of(reader, repaired.value, keys)
    if calls:
        _add(found, calls, repaired.end, canonical=False)
    return bool(calls)


def _argued(value: Json, keys: Keys) -> bool:
    """Whether the last call of a value has got as far as its arguments."""
    last = value[-1] if isinstance(value, list) and value else value
    inner = last.get("function") if isinstance(last, dict) else None
    call = inner if isinstance(inner, dict) else last
    return isinstance(call, dict) and (keys.keyed or any(key in call for key in (keys.arguments, *_ARGUMENT_KEYS)))


def _read_elements(reader: Reader, at: int, found: JsonCalls, keys: Keys) -> int:
    """The whole calls at the beginning of an array that is not whole itself; the offset after them."""
    at = reader.space(at)
    while reader.char(at) == "{":
        decoded = reader.json(at)
        calls, _ = ([], False) if decoded.failed else calls_of(reader, decoded.value, keys)
        if not calls:
            break
        _add(found, calls, decoded.end, canonical=False)
        at = reader.space(decoded.end)
        if reader.char(at) == ",":
            at = reader.space(at + 1)
    return at


def _parts(reader: Reader, value: Json, keys: Keys) -> list[Json]:
    """An object keyed by several tools, one by one."""
    if keys.keyed and isinstance(value, dict) and len(value) > 1 and value.keys() <= reader.tools.keys():
        return [{key: item} for key, item in value.items()]
    return [value]


def _call_of(reader: Reader, value: Json, keys: Keys) -> tuple[NativeCall | None, bool]:
    if not isinstance(value, dict):
        return None, False
    if keys.keyed and len(value) == 1:
        ((only, item),) = value.items()
        under = _decoded(item)
        if is_name(only) and isinstance(under, dict):
            return reader.call(only, under, complete=True), isinstance(item, dict)
    # OpenAI's own shape, {"type": "function", "function": {…}}, and what models make of it.
    inner = next((value[key] for key in _ENVELOPES if isinstance(value.get(key), dict)), None)
    if isinstance(inner, dict) and "name" in inner:
        call, _ = _call_of(reader, {**_ids(value), **inner}, keys)
        return call, False
    name = next((value[key] for key in (keys.name, *_NAME_KEYS) if isinstance(value.get(key), str)), None)
    if not isinstance(name, str) or not is_name(name) or _declares(value):
        return None, False
    tool = reader.tool(name)
    key = next((key for key in (keys.arguments, *_ARGUMENT_KEYS) if key in value), None)
    if key is None and tool is None:
        return None, False
    arguments = _decoded(value[key]) if key is not None else _beside(value, tool)
    canonical = key == keys.arguments and keys.name in value and isinstance(value[key], dict)
    if isinstance(arguments, dict) and tool is not None:
        arguments = coercion.unwrap(arguments, coercion.properties_of(tool.schema))
    identifier = next(iter(_ids(value).values()), None)
    native_id = identifier if isinstance(identifier, str) else None
    return reader.call(name, arguments, complete=True, native_id=native_id), canonical


def _ids(value: dict[str, Json]) -> dict[str, Json]:
    return {key: value[key] for key in _ID_KEYS if isinstance(value.get(key), str)}


def _beside(value: dict[str, Json], tool: Tool | None) -> Json:
    """Arguments beside the name instead of under a key of their own; unreadable when the tool has no such parameters."""
    arguments = {key: item for key, item in value.items() if key not in _FRAMING}
    declared = coercion.properties_of(tool.schema) if tool is not None else {}
    return arguments if arguments.keys() <= declared.keys() else None


def _decoded(arguments: Json) -> Json:
    """Arguments that were encoded twice, or written as null for none."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    text = arguments.strip()
    if not text:
        return {}
    decoded = jsontext.decode_at(text, 0)
    if not decoded.failed:
        return decoded.value if decoded.end == len(text) else None
    repaired = jsontext.repair(text)
    return repaired.value if repaired is not None and not repaired.missing and repaired.end == len(text) else None


def _declares(value: dict[str, Json]) -> bool:
    """A tool's declaration, as system prompts list them in `<tools>`, is no call."""
    schema = value.get("parameters") or value.get("input_schema")
    if "description" in value or not isinstance(schema, dict):
        return "description" in value
    # A parameter may be named `properties`.
    return isinstance(schema.get("properties"), dict) and (schema.get("type") == "object" or "required" in schema)
