"""Python calls in lists and lines: between tokens or tags, after a prefix, in a fence, or as the whole message.

Gemma's tokens are here too: `call:NAME{…}`, with a special notation for keys and values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from wirelint.dialects import declared, json_calls, jsontext, python_calls
from wirelint.dialects.json_calls import Arguments
from wirelint.dialects.python_calls import PythonCalls
from wirelint.dialects.reader import Calls, Match, Pattern, Reader, Reading, Tier
from wirelint.dialects.tables import table
from wirelint.model import Json, Tool

_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")
_BLANKS = re.compile(r"[ \t]{0,8}")


def _read_list(reader: Reader, at: int, end: Pattern, *, lone_closer: bool = False) -> PythonCalls | None:
    """Read the calls at a position, with or without brackets. `lone_closer`: a bracket may close what none has opened."""
    opening = reader.match(_OPENING, at)
    found = python_calls.read_calls(reader, opening.end() if opening is not None else at, end)
    if found is not None and (opening is not None or lone_closer):
        found.end = reader.after(_CLOSING, found.end)
    return found


_LFM = table(__name__, "lfm")


def read_lfm(reader: Reader, position: int) -> Reading:
    start = reader.match(_LFM.start, position)
    if start is None:
        return None
    at = reader.space(start.end())
    found: Calls | None
    if reader.match(_LFM.json, at):
        found = json_calls.read_calls(reader, at, _LFM.end, (_LFM.start,))
    else:
        found = _read_list(reader, at, _LFM.end, lone_closer=True)
    if found is None:
        return reader.block("lfm2", position, start.end())
    return reader.block("lfm2", position, reader.past(found.end, _LFM.end), found.calls)


_OLMO = table(__name__, "olmo")


def read_olmo(reader: Reader, position: int) -> Reading:
    start = reader.match(_OLMO.start, position)
    if start is None or position < reader.dead.get("olmo3", 0):
        return None
    found = _read_list(reader, reader.space(start.end()), _OLMO.end)
    if found is None:
        return None
    end = reader.past(found.end, _OLMO.end)
    # A tag that is not closed is an aside in prose, unless a declared tool is called after it.
    if end == found.end and not reader.declares_any(found.calls):
        reader.dead["olmo3"] = end
        return None
    return reader.block("olmo3", position, end, found.calls, "generic")


_PYTHONIC = table(__name__, "pythonic")


def read_pythonic(reader: Reader, position: int) -> Reading:
    if start := reader.match(_PYTHONIC.start, position):  # calls of any tool; other code is reported without a call
        wrapped = _read_list(reader, reader.space(start.end()), _PYTHONIC.end)
        if wrapped is None:
            return reader.block("pythonic_list", position, start.end())
        return reader.block("pythonic_list", position, reader.past(wrapped.end, _PYTHONIC.end), wrapped.calls)
    if not reader.tools or not reader.begins(position) or position < reader.dead.get("pythonic_list", 0):
        return None
    at = reader.space(position)
    opening = _PYTHONIC.named(reader, "head", at)
    if opening is None:
        return None
    bracket = opening["bracket"] or ""
    found = python_calls.read_calls(reader, at + len(bracket))
    assert found is not None
    reader.dead["pythonic_list"] = found.end
    end = reader.after(_CLOSING, found.end) if bracket and found.whole else found.end
    if not all(map(reader.fits, found.calls)) or not reader.concludes(end):
        return None
    if not all(call.complete for call in (found.calls if found.whole else found.calls[:-1])):
        return None
    if not (found.whole or bracket or found.calls[-1].arguments):
        return None
    return reader.block("pythonic_list", position, end, found.calls, "weak")


_RAVEN = table(__name__, "raven")


def read_raven(reader: Reader, position: int) -> Reading:
    gorilla = reader.match(_RAVEN.function, position)
    prefix = gorilla or reader.match(_RAVEN.call, position)
    dialect, end_of_calls = ("gorilla_openfunctions", _RAVEN.function) if gorilla else ("nexus_raven", _RAVEN.call_end)
    if prefix is None or position < reader.dead.get(dialect, 0):
        return None
    found = python_calls.read_calls(reader, prefix.end(), end_of_calls)
    if found is None:
        return None
    if gorilla:
        reader.dead[dialect] = found.end
        known = found.whole or reader.declares_any(found.calls)
        return reader.block(dialect, position, found.end, found.calls, "generic") if known else None
    token = reader.match(_RAVEN.call_end, found.end)
    end = reader.dead["nexus_raven"] = token.end() if token is not None else found.end
    if token is None:
        alone = reader.char(reader.after(_BLANKS, end)) in ("", "\n", "\r")
        if not (alone and all(map(reader.fits, found.calls))):
            return None
    tier: Tier = "generic" if token is not None else "weak"
    return reader.block("nexus_raven", position, end, found.calls, tier)


_CODE = table(__name__, "gemma_code")


@dataclass(slots=True)
class _Lines(Calls):
    """The calls of some lines. `api`: the namespace is named."""

    api: bool = False


def read_gemma_code(reader: Reader, position: int) -> Reading:
    if fence := reader.match(_CODE.fence, position):
        return _read_fence(reader, fence)
    at = reader.after(_CODE.control, reader.after(_BLANKS, position))
    if notation := reader.match(_CODE.notation, at):
        return _read_notation(reader, position, notation)
    word = reader.match(_CODE.word, position)
    start = word.end() if word is not None else at
    return _read_bare(reader, position, start) if reader.match(_CODE.namespace, start) else None


def _read_fence(reader: Reader, fence: Match) -> Reading:
    if fence.start() < reader.dead.get("gemma_tool_code", 0):
        return None
    at = reader.space(fence.end())
    opening = reader.match(_OPENING, at)
    lines = _read_lines(reader, opening.end() if opening is not None else at)
    if not lines.calls:
        return None
    if opening is not None:
        lines.end = reader.after(_CLOSING, lines.end)
    closer = reader.match(_CODE.fence_end, lines.end)
    reader.dead["gemma_tool_code"] = lines.end
    if closer is None and not reader.declares_any(lines.calls):
        return None
    end = closer.end() if closer is not None else lines.end
    dialect = "gemini_default_api" if lines.api else "gemma_tool_code"
    return reader.block(dialect, fence.start(), end, lines.calls, "generic")


def _read_bare(reader: Reader, position: int, at: int) -> Reading:
    """Read lines without a fence: of declared tools, in the namespace, and with nothing else on the last line."""
    if position < reader.dead.get("gemini_default_api", 0):
        return None
    lines = _read_lines(reader, at)
    if not lines.calls:
        return None
    reader.dead["gemini_default_api"] = lines.end
    ends_line = reader.char(reader.after(_BLANKS, lines.end)) in ("", "\n", "\r", "`")
    if not (ends_line and all(call.name in reader.tools for call in lines.calls)):
        return None
    return reader.block("gemini_default_api", position, lines.end, lines.calls, "generic")


def _read_lines(reader: Reader, position: int) -> _Lines:
    lines = _Lines(position)
    at = position
    while True:
        while aside := reader.match(_CODE.aside, at):
            at = reader.space(aside.end())
        if lines.calls and (echo := reader.match(_CODE.echo, at)):
            lines.end = echo.end()
            at = reader.space(echo.end())
            continue
        lead = reader.match(_CODE.lead, at)
        call = python_calls.read_call(reader, lead.end()) if lead is not None else None
        if lead is None or call is None or call.name == "print":
            return lines
        end = reader.after(_CODE.lead_end, call.end) if call.closed and lead["print"] is not None else call.end
        lines.add(call.native(reader, call.name.removeprefix("default_api.")), end)
        lines.api |= lead["api"] is not None
        if not call.closed:
            return lines
        at = reader.space(reader.after(_CODE.separator, end))


def _read_notation(reader: Reader, position: int, notation: Match) -> Reading:
    """Read `call:default_api:lookup{…}`; a `declaration:` repeats the tool instead of calling it."""
    tool = reader.tool(notation["name"])
    if tool is None or position < reader.dead.get(_CODE.notation, 0):
        return None
    arguments, end, complete = _read_body(reader, notation.end(), tool, (_CODE.notation,))
    reader.dead[_CODE.notation] = end
    call = reader.call(notation["name"], arguments if notation["kind"] == "call" else None, complete=complete)
    return reader.block("gemini_default_api", position, reader.after(_CODE.control, end), (call,), "generic")


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
            found = _read_call(reader, start, notation)
            end = reader.past(found.end, notation.end) if found.calls else found.end
            return reader.block(notation.dialect, position, end, found.calls)
    if not reader.tools or position < reader.dead.get("mimic", 0):
        return None
    opening = _TOKENS.named(reader, "mimic", reader.space(position))
    call = python_calls.read_call(reader, opening.start("name")) if opening is not None else None
    reader.dead["mimic"] = call.end if call is not None else 0
    if opening is None or call is None or not call.closed or reader.char(call.end) != "]":
        return None
    native = reader.call(opening["name"], None, complete=False)
    return reader.block("gemma4", position, call.end + 1, (native,), "weak")


def _read_call(reader: Reader, start: Match, notation: _Notation) -> Calls:
    """Read the text after the opening token."""
    nothing = Calls(start.end())
    at = reader.space(start.end())
    if reader.char(at) in ("{", "["):
        return json_calls.read_calls(reader, at, notation.end, (notation.start,)) or nothing
    header = reader.match(_TOKENS.call, at)
    if header is None:
        return nothing
    if reader.char(header.end()) == "<":  # no arguments
        if not reader.match(notation.end, header.end()):
            return nothing
        return Calls(header.end(), [reader.call(header["name"], {}, complete=True)])
    tool = reader.tool(header["name"])
    arguments, end, complete = _read_body(reader, header.end(), tool, (notation.end, notation.start))
    return Calls(end, [reader.call(header["name"], arguments, complete=complete)])


# -- keys and values ---------------------------------------------------------------------------------------------------

_DEEPEST = 64
_DELIMITERS = {token: re.compile(re.escape(token)) for token in ('<|"|>', "<escape>", "<ctrl46>")}
_BARE_END = {"}": _TOKENS.bare_in_braces, ")": _TOKENS.bare_in_parentheses, "]": _TOKENS.item_end}
_BARE_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class _CutError(Exception):
    """The text ends before the value does."""


class _UnreadableError(Exception):
    pass


def _read_body(reader: Reader, position: int, tool: Tool | None, stops: tuple[Pattern, ...]) -> Arguments:
    """Read the arguments in the braces (or parentheses) at a position, or those before a cut.

    `stops` end an unreadable body.
    """
    arguments: dict[str, Json] = {}
    try:
        end = _Values(reader, tool.schema if tool is not None else None).read_object(position, arguments, depth=0)
    except _CutError:
        return Arguments(arguments, reader.size, complete=False)
    except _UnreadableError:
        stop = reader.first(stops, position)
        return Arguments(arguments if stop is None else None, reader.stop(stop), complete=False)
    return Arguments(arguments, end, complete=True)


class _Values:
    """A linear reader of the notation's values. Top-level values without delimiters follow the schema."""

    def __init__(self, reader: Reader, schema: Json) -> None:
        self.reader, self.schema = reader, schema
        self.properties = declared.properties_of(schema)

    def read_object(self, position: int, found: dict[str, Json], depth: int) -> int:
        """Fill `found`; return the offset after the closer."""
        reader = self.reader
        closer = ")" if reader.char(position) == "(" else "}"
        at = reader.space(position + 1)
        while (sign := reader.char(at)) != closer:
            key = reader.match(_TOKENS.key, at)
            if key is None:
                raise _UnreadableError if sign else _CutError
            value, end = self._value(key.end(), closer, depth, key["key"])
            found[key["key"]] = value
            if not depth and reader.match(_TOKENS.last, reader.space(end)):  # only the brace is missing
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
        string = self.reader.match(python_calls.STRING, at)
        if string is None:
            raise _CutError
        self.reader.work += string.end() - at
        written = self.reader.value(at, string.end())
        for read in (jsontext.loads, python_calls.literal):
            try:
                return read(written), string.end()
            except ValueError:
                continue
        raise _UnreadableError

    def _bare(self, at: int, closer: str, key: str | None) -> tuple[Json, int]:
        """Read a number, a word of JSON, or text whose delimiters were lost."""
        end = self.reader.next(_BARE_END[closer], at)
        if end is None:
            raise _CutError
        text = self.reader.value(at, end.start()).strip()
        if not text:
            raise _UnreadableError
        own = self.properties.get(key) if key is not None else None
        typed = bool(declared.types_of(own, self.schema))
        return declared.coerce(text, own, self.schema) if typed else _literal(text), end.start()


@lru_cache(maxsize=256)
def _literal(text: str) -> Json:
    if text in _BARE_WORDS:
        return _BARE_WORDS[text]
    try:
        return jsontext.loads(text)
    except ValueError:
        return text
