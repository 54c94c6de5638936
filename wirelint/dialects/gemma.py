"""Gemma's tokens around `call:NAME{…}`, and the notation of keys and values inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.dialects import coercion, jsontext, python_calls, weak
from wirelint.dialects.json_calls import read_calls
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Found, NativeCall, Reading
from wirelint.model import Json, Tool

_TOKENS = table(__name__, "gemma")


class _Notation(NamedTuple):
    dialect: str
    start: Pattern
    end: Pattern


_NOTATIONS = (
    _Notation("gemma4", _TOKENS.start, _TOKENS.end),
    _Notation("functiongemma", _TOKENS.function_start, _TOKENS.function_end),
)


def read_gemma(reader: Reader, position: int) -> Reading:
    for notation in _NOTATIONS:
        if start := reader.match(notation.start, position):
            return _read_call(reader, start, notation)
    return _read_mimic(reader, position)


def _read_call(reader: Reader, start: Match, notation: _Notation) -> Reading:
    at = reader.space(start.end())
    nothing = Found(notation.dialect, start.start(), start.end(), (), "sentinel", malformed=True)
    if reader.char(at) in ("{", "["):
        found = read_calls(reader, at, notation.end, (notation.start,))
        return _close(reader, start, found.end, tuple(found.calls), notation, malformed=True) if found else nothing
    header = reader.match(_TOKENS.call, at)
    if header is None:
        return nothing
    if reader.char(header.end()) == "<":
        if not reader.match(notation.end, header.end()):
            return nothing
        call = reader.call(header["name"], {}, complete=True)
        return _close(reader, start, header.end(), (call,), notation, malformed=True)
    body = read_body(reader, header.end(), reader.tool(header["name"]), (notation.end, notation.start))
    call = reader.call(header["name"], body.arguments, complete=body.complete)
    malformed = body.malformed or header["call"] is None or header.end() != header.end("name")
    return _close(reader, start, body.end, (call,), notation, malformed=malformed)


def _close(
    reader: Reader, start: Match, end: int, calls: tuple[NativeCall, ...], notation: _Notation, *, malformed: bool
) -> Reading:
    closer = reader.match(notation.end, reader.space(end))
    end = closer.end() if closer is not None else end
    malformed |= closer is None or closer[0] not in ("<tool_call|>", "<end_function_call>")
    return reader.block(notation.dialect, start.start(), end, calls, "sentinel", malformed)


def _read_mimic(reader: Reader, position: int) -> Reading:
    if not reader.tools or position < reader.dead.get("mimic", 0):
        return None
    at = reader.space(position)
    opening = reader.match(weak.compiled(reader, _TOKENS.named["mimic"]), at)
    call = python_calls.read_call(reader, opening.start("name")) if opening is not None else None
    reader.dead["mimic"] = call.end if call is not None else 0
    if opening is None or call is None or not call.closed or reader.char(call.end) != "]":
        return None
    native = reader.call(opening["name"], None, complete=False)
    return reader.block("gemma4", position, call.end + 1, (native,), "weak", malformed=True)


# -- keys and values ---------------------------------------------------------------------------------------------------

_DEEPEST = 64
_DELIMITERS = {token: re.compile(re.escape(token)) for token in ('<|"|>', "<escape>", "<ctrl46>")}
_BARE_END = {"}": _TOKENS.bare_in_braces, ")": _TOKENS.bare_in_parentheses, "]": _TOKENS.item_end}
_BARE_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


@dataclass(slots=True)
class Body:
    """The inside of a call. If it is cut off, `arguments` are those before the cut."""

    end: int
    arguments: dict[str, Json] | None = field(default_factory=dict)
    complete: bool = False
    malformed: bool = False


class _CutError(Exception):
    """The text ends before the value does."""


class _UnreadableError(Exception):
    pass


def read_body(reader: Reader, position: int, tool: Tool | None, stops: tuple[Pattern, ...]) -> Body:
    """Read the arguments in the braces (or parentheses) at a position. `stops` end an unreadable body."""
    body = Body(position)
    properties = coercion.properties_of(tool.schema) if tool is not None else {}
    values = _Values(reader, properties, tool.schema if tool is not None else None)
    arguments: dict[str, Json] = {}
    try:
        body.end = values.read_object(position, arguments, depth=0)
        body.arguments, body.complete = arguments, True
    except _CutError:
        body.end, body.arguments = reader.size, arguments
    except _UnreadableError:
        stop = reader.first(stops, position)
        body.end, body.arguments = (stop.start(), None) if stop is not None else (reader.size, arguments)
    body.malformed = values.malformed or not body.complete
    return body


class _Values:
    """A linear reader of the notation's values. Top-level values without delimiters follow the schema."""

    def __init__(self, reader: Reader, properties: Mapping[str, Json], schema: Json) -> None:
        self.reader = reader
        self.properties = properties
        self.schema = schema
        self.malformed = False

    def read_object(self, position: int, found: dict[str, Json], depth: int) -> int:
        """Fill `found`; return the offset after the closer."""
        reader = self.reader
        closer = ")" if reader.char(position) == "(" else "}"
        self.malformed |= closer == ")"
        at = reader.space(position + 1)
        while (sign := reader.char(at)) != closer:
            key = reader.match(_TOKENS.key, at)
            if key is None:
                raise _UnreadableError if sign else _CutError
            self.malformed |= bool(key["quote"])
            value, end = self._value(key.end(), closer, depth, key["key"])
            found[key["key"]] = value
            if not depth and reader.match(_TOKENS.last, reader.space(end)):  # the brace is missing, and nothing else
                self.malformed = True
                return end
            at = self._separated(end, closer)
        return at + 1

    def _list(self, position: int, depth: int) -> tuple[list[Json], int]:
        found: list[Json] = []
        at = self.reader.space(position + 1)
        while self.reader.char(at) != "]":
            value, end = self._value(at, "]", depth, None)
            found.append(value)
            at = self._separated(end, "]")
        return found, at + 1

    def _separated(self, position: int, closer: str) -> int:
        at = self.reader.space(position)
        sign = self.reader.char(at)
        if sign == ",":
            return self.reader.space(at + 1)
        if not sign:
            raise _CutError
        if sign != closer:
            raise _UnreadableError
        return at

    def _value(self, position: int, closer: str, depth: int, key: str | None) -> tuple[Json, int]:
        reader = self.reader
        at = reader.space(position)
        if depth > _DEEPEST:
            raise _UnreadableError
        if delimiter := reader.match(_TOKENS.delimiter, at):
            end = reader.next(_DELIMITERS[delimiter[0]], delimiter.end())
            if end is None:
                raise _CutError
            return reader.value(delimiter.end(), end.start()), end.end()
        match reader.char(at):
            case "":
                raise _CutError
            case "{":
                inner: dict[str, Json] = {}
                end_of_object = self.read_object(at, inner, depth + 1)
                return inner, end_of_object
            case "[":
                return self._list(at, depth + 1)
            case '"' | "'":
                return self._quoted(at)
            case _:
                return self._bare(at, closer, key if not depth else None)

    def _quoted(self, at: int) -> tuple[Json, int]:
        """Read a string in plain quotes, as JSON and Python write it."""
        self.malformed = True
        string = self.reader.match(python_calls.STRING, at)
        if string is None:
            raise _CutError
        self.reader.work += string.end() - at
        written = self.reader.value(at, string.end())
        try:
            return jsontext.loads(written), string.end()
        except ValueError:
            pass
        try:
            return python_calls.literal(written), string.end()
        except ValueError as error:
            raise _UnreadableError from error

    def _bare(self, at: int, closer: str, key: str | None) -> tuple[Json, int]:
        """Read a number, a word of JSON, or text whose delimiters were lost."""
        end = self.reader.next(_BARE_END[closer], at)
        if end is None:
            raise _CutError
        text = self.reader.value(at, end.start()).strip()
        if not text:
            raise _UnreadableError
        declared = self.properties.get(key) if key is not None else None
        typed = bool(coercion.types_of(declared, self.schema))
        value = coercion.coerce(text, declared, self.schema) if typed else _literal(text)
        self.malformed |= isinstance(value, str)
        return value, end.start()


def _literal(text: str) -> Json:
    if text in _BARE_WORDS:
        return _BARE_WORDS[text]
    try:
        return jsontext.loads(text)
    except ValueError:
        return text
