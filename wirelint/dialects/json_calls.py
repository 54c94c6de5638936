"""Calls written as JSON: `{"name": …, "arguments": {…}}`, the other keys that models use, and arguments alone.

`calls_of` reads a decoded value. `read_calls` reads the values at a position, one after another, alone or in an array, and
damaged ones up to the closer or the next opener of their notation; `read_enclosed` reads that closer too. `read_arguments`
reads the object of one call whose name is outside of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from wirelint.dialects import declared, jsontext
from wirelint.dialects.jsontext import Decoded
from wirelint.dialects.reader import Calls, NativeCall, Pattern, Reader, is_name
from wirelint.model import Json, Tool

NAME_KEYS = ("name", "tool_name", "function_name", "tool", "function", "recipient_name", "action")
_ENVELOPES = ("function", "tool_call", "function_call")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_ARGUMENT_KEYS = (*ARGUMENT_KEYS, "params", "function_args", "tool_input", "action_input")
_ID_KEYS = ("id", "tool_call_id", "call_id")
_FRAMING = frozenset({*NAME_KEYS, *_ID_KEYS, "type", "index"})
_WRITTEN_NAME = re.compile(r"""["'](?:name|tool_name|function_name)["']\s{0,4}:\s{0,4}["']([\w.:/-]{1,128})["']""")
_WRITTEN_KEY = re.compile(r"""\{\s{0,8}["']([\w.:/-]{1,128})["']\s{0,4}:\s{0,4}\{""")
ELLIPSIS = re.compile(r"[{\[:,]\s{0,4}(?:\.\.\.|…)")  # `{...}`: a description of a call
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
    """The keys that a notation uses; others are read too, as departures from it.

    `keyed`: the only key is the tool's name, and its value the arguments.
    """

    name: str = "name"
    arguments: str = "arguments"
    keyed: bool = False


KEYS = Keys()


@dataclass(slots=True)
class JsonCalls(Calls):
    """The result of `read_calls`: that many `values` side by side.

    `array`: the first value is one. `canonical`: all of it in the notation's own keys, and valid JSON. `closed`: the closer
    of the notation follows.
    """

    values: int = 0
    array: bool = False
    canonical: bool = True
    closed: bool = False

    def extend(self, calls: list[NativeCall], end: int, *, canonical: bool) -> None:
        self.calls += calls
        self.values += 1
        self.canonical &= canonical
        self.end = end


class Arguments(NamedTuple):
    """The arguments of one call; `value` is None if it is unreadable."""

    value: Json
    end: int
    complete: bool


def read_arguments(
    reader: Reader, position: int, stop: Pattern, *, starts: str = '{"', to_stop: bool = False
) -> Arguments:
    """Read the arguments at a position. `stop`: the text that may follow them in the notation, and ends damaged ones.

    Nothing before a stop means no arguments. At the end of the text an object must be whole. `starts`: the characters
    that JSON may begin with. `to_stop`: damaged arguments reach to the stop.
    """
    if reader.char(position) and reader.char(position) in starts:
        decoded = reader.json(position)
        if not decoded.failed:
            value = _unquoted(decoded.value) if isinstance(decoded.value, str) else decoded.value
            return Arguments(value, decoded.end, isinstance(value, dict))
    stopped = reader.next(stop, position)
    if stopped is not None and stopped.start() == position:
        return Arguments({}, position, complete=True)
    end = reader.stop(stopped)
    repaired = reader.repair(position, end)
    if repaired is None or (stopped is None and repaired.missing):
        return Arguments(None, end, complete=False)
    return Arguments(repaired.value, end if to_stop and stopped is not None else repaired.end, complete=True)


def decode_or_repair(reader: Reader, position: int) -> Decoded | None:
    """Read the JSON value at a position, damaged or not, up to the end of the text; None if it is not whole."""
    decoded = reader.json(position)
    repaired = reader.repair(position, reader.size) if decoded.failed else decoded
    return repaired if repaired is not None and not repaired.missing else None


def _unquoted(text: str) -> Json:
    """Decode arguments that were encoded twice."""
    try:
        return jsontext.loads(text)
    except ValueError:
        return None


def calls_of(reader: Reader, value: Json, keys: Keys = KEYS) -> tuple[list[NativeCall], bool]:
    """Return the calls in a JSON value (an object, or an array of objects), and whether all are canonical."""
    given = value if isinstance(value, list) else [value]
    items = [part for item in given for part in _parts(reader, item, keys)]
    read = [_call_of(reader, item, keys) for item in items]
    found = [call for call, _ in read if call is not None]
    return found, len(found) == len(given) and all(canonical for _, canonical in read)


def read_calls(
    reader: Reader, position: int, closer: Pattern, openers: tuple[Pattern, ...] = (), keys: Keys = KEYS
) -> JsonCalls | None:
    """Read the calls at a position; None if nothing there can be a call. `closer` and `openers` end damaged values.

    The last call may be incomplete, if the text ends in it or if it is unreadable beyond its name.
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
        found.extend(calls, decoded.end, canonical=canonical and decoded.healthy)
        at = _after_comma(reader, decoded.end)
    return found if found.calls else None


def read_quoted(reader: Reader, position: int) -> JsonCalls | None:
    """Read a call with arguments between quotes of either kind, which may contain such quotes: `'{"a": 1}'`."""
    head = reader.match(_QUOTED, position)
    if head is None:
        return None
    decoded = reader.json(reader.space(head.end()))
    tail = reader.match(_QUOTED_END[head["quote"]], decoded.end) if not decoded.failed else None
    if decoded.failed or not (tail or reader.ended(decoded.end) or head["quote"] == "'"):
        return None
    found = JsonCalls(position)
    end = tail.end() if tail is not None else decoded.end
    call = reader.call(head["name"], decoded.value, complete=True)
    found.extend([call], end, canonical=decoded.healthy and tail is not None)
    return found


def read_enclosed(
    reader: Reader, position: int, closer: Pattern, openers: tuple[Pattern, ...] = ()
) -> JsonCalls | None:
    """Read the calls after the white space at a position, and their closer."""
    found = read_calls(reader, reader.space(position), closer, openers)
    if found is not None:
        close(reader, found, closer)
    return found


def close(reader: Reader, found: JsonCalls, closer: Pattern) -> None:
    """Read the closer after the calls, past surplus brackets and the end of a fence."""
    at = reader.after(_SURPLUS, found.end)
    reader.work += at - found.end
    ending = reader.match(closer, reader.after(_FENCE_END, at))
    if ending is not None:
        found.end, found.closed = ending.end(), True


def _after_comma(reader: Reader, position: int) -> int:
    at = reader.space(position)
    return reader.space(at + 1) if reader.char(at) == "," else at


def _read_damaged(reader: Reader, at: int, found: JsonCalls, stops: tuple[Pattern, ...], keys: Keys) -> None:
    stop = reader.first(stops, at)
    end = reader.stop(stop)
    closed = stop is not None and stop.re == stops[0]
    # Without a closer only the outermost brackets may be missing: then the arguments themselves are whole.
    if _read_repaired(reader, at, found, keys, end, missing=end if closed else 1 + found.array):
        return
    inside = reader.char(at) == "["
    if inside:  # the elements before the damage are whole
        at = _read_elements(reader, at + 1, found, keys)
    if quoted := read_quoted(reader, at):
        found.extend(quoted.calls, quoted.end, canonical=False)
        return
    rest = inside and reader.char(at) == "{"
    if rest and _read_repaired(reader, at, found, keys, end, missing=end if closed else 1):
        return
    found.canonical = False
    written = (_WRITTEN_KEY if keys.keyed else _WRITTEN_NAME).search(reader.view.text, at, end)
    if written is not None and not ELLIPSIS.search(reader.view.text, at, end):
        found.extend([reader.call(written[1], None, complete=False)], end, canonical=False)


def _read_repaired(reader: Reader, at: int, found: JsonCalls, keys: Keys, end: int, *, missing: int) -> bool:
    repaired = reader.repair(at, end)
    if repaired is None or repaired.missing > missing:
        return False
    if repaired.missing and missing < end and not _has_arguments(repaired.value, keys):
        return False  # cut off before its arguments
    calls, _ = calls_of(reader, repaired.value, keys)
    if calls:
        found.extend(calls, repaired.end, canonical=False)
    return bool(calls)


def _has_arguments(value: Json, keys: Keys) -> bool:
    """Return True if the last call of a value reaches its arguments."""
    last = value[-1] if isinstance(value, list) and value else value
    inner = last.get("function") if isinstance(last, dict) else None
    call = inner if isinstance(inner, dict) else last
    return isinstance(call, dict) and (keys.keyed or any(key in call for key in (keys.arguments, *_ARGUMENT_KEYS)))


def _read_elements(reader: Reader, at: int, found: JsonCalls, keys: Keys) -> int:
    """Read the whole calls at the start of a damaged array; return the offset after them."""
    at = reader.space(at)
    while reader.char(at) == "{":
        decoded = reader.json(at)
        calls, _ = ([], False) if decoded.failed else calls_of(reader, decoded.value, keys)
        if not calls:
            break
        found.extend(calls, decoded.end, canonical=False)
        at = _after_comma(reader, decoded.end)
    return at


def _parts(reader: Reader, value: Json, keys: Keys) -> list[Json]:
    """Split an object that is keyed by several tools."""
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
    # OpenAI's own shape, {"type": "function", "function": {…}}, and models' variants of it.
    inner = next((value[key] for key in _ENVELOPES if isinstance(value.get(key), dict)), None)
    if isinstance(inner, dict) and "name" in inner:
        call, _ = _call_of(reader, {**_ids(value), **inner}, keys)
        return call, False
    name = next((value[key] for key in (keys.name, *NAME_KEYS) if isinstance(value.get(key), str)), None)
    if not isinstance(name, str) or not is_name(name) or _is_declaration(value):
        return None, False
    tool = reader.tool(name)
    key = next((key for key in (keys.arguments, *_ARGUMENT_KEYS) if key in value), None)
    if key is None and tool is None:
        return None, False
    arguments = _decoded(value[key]) if key is not None else _beside(value, tool)
    canonical = key == keys.arguments and keys.name in value and isinstance(value[key], dict)
    if isinstance(arguments, dict) and tool is not None:
        arguments = declared.unwrap(arguments, declared.properties_of(tool.schema))
    identifier = next(iter(_ids(value).values()), None)
    native_id = identifier if isinstance(identifier, str) else None
    return reader.call(name, arguments, complete=True, native_id=native_id), canonical


def _ids(value: dict[str, Json]) -> dict[str, Json]:
    return {key: value[key] for key in _ID_KEYS if isinstance(value.get(key), str)}


def _beside(value: dict[str, Json], tool: Tool | None) -> Json:
    """Return the arguments beside the name; None if the tool has no such parameters."""
    arguments = {key: item for key, item in value.items() if key not in _FRAMING}
    properties = declared.properties_of(tool.schema) if tool is not None else {}
    return arguments if arguments.keys() <= properties.keys() else None


def _decoded(arguments: Json) -> Json:
    """Decode arguments that were encoded twice; null and an empty text mean none."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    text = arguments.strip()
    if not text:
        return {}
    return whole_value(text)


def whole_value(text: str) -> Json:
    """Return the JSON value that is all of a text, healthy or damaged; None without one."""
    decoded = jsontext.decode_at(text, 0)
    found = jsontext.repair_whole(text) if decoded.failed else decoded
    return found.value if found is not None and found.end == len(text) else None


def _is_declaration(value: dict[str, Json]) -> bool:
    """Return True for a tool's declaration, as system prompts list them in `<tools>`."""
    schema = value.get("parameters") or value.get("input_schema")
    if "description" in value or not isinstance(schema, dict):
        return "description" in value
    # A parameter may be named `properties`.
    return isinstance(schema.get("properties"), dict) and (schema.get("type") == "object" or "required" in schema)
