r"""Calls in Python's syntax, alone or one after another, in lists, lines and fences, between tokens or tags.

    lookup(city='Graz', limit=3)

Theory of operation. A small scanner finds the ends: it goes from bracket to bracket, from comma to comma, over
strings as a whole. So a marker inside a string is data, keywords need not be valid in Python (`from=`, `max-results=`),
and a call that is cut off keeps the arguments before the cut. The values are read by Python's own parser, as literals
only: nothing is evaluated. Strings are corrected first, since models leave
line ends and stray backslashes (`'\d'`, `'C:\Users'`) in them.

JSON literals count as Python's. Positional arguments are bound only where types leave no choice. Gemma's tokens are here
too: `call:NAME{…}`, with a special notation for keys and values.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from wirelint.dialects import declared, json_blocks, jsontext
from wirelint.dialects.reader import Arguments, Calls, Match, NativeCall, Pattern, Reader, Reading
from wirelint.dialects.tables import Table, tables
from wirelint.model import Json, Tool

_PYTHONIC, _RAVEN, _CODE, _TOKENS = tables(__name__, "pythonic", "raven", "gemma_code", "gemma")
_DEEPEST = 64
_HEAD = re.compile(r"(?P<name>[A-Za-z_][\w.:/-]{0,127})\s{0,3}\(")
_KEY = re.compile(
    r"""(?P<quote>["']?)(?P<key>[A-Za-z_$][\w.$-]{0,127})(?P=quote)\s{0,8}[=:]|(?P<unpacked>\*\*\s{0,3}(?=\{))"""
)
_LEAD = re.compile(r"\s*+(?:#[^\n]*+\n\s*+)*+")
_MARKS = r"[\"'()\[\]{},]"
STRING = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""|"(?!"")[^"\\]*+(?:\\.[^"\\]*+)*+"'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''|'(?!'')[^'\\]*+(?:\\.[^'\\]*+)*+'",
    re.DOTALL,
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BETWEEN = re.compile(r"\s*+(?:[,;]\s*+)?")


@dataclass(slots=True)
class PythonCall:
    """A call, read up to `end`.

    `closed`: its parenthesis was there. `whole`: no argument is missing, because the parenthesis or the closer of the
    notation around the call follows the last one; else the text ends in it. `readable`: every argument so far is a
    literal.
    """

    name: str
    end: int
    keywords: dict[str, Json] = field(default_factory=dict)
    positional: list[Json] = field(default_factory=list)
    closed: bool = False
    whole: bool = False
    readable: bool = True

    def native(self, reader: Reader, written: str | None = None) -> NativeCall:
        """Return the call of the declared tool; not complete if an argument could not be read or bound."""
        name = self.name if written is None else written
        tool = reader.tool(name)
        bound: dict[str, Json] | None = {} if self.readable or not self.whole else None
        if self.positional:
            bound = _bind(self.positional, self.keywords, declared.properties_of(tool.schema)) if tool else None
        arguments = None if bound is None else {**bound, **self.keywords}
        return reader.call(name, arguments, complete=self.whole and self.readable)


@dataclass(slots=True)
class PythonCalls(Calls):
    """Calls in a row. `whole`: the last one is not cut off."""

    whole: bool = True


def read_call(reader: Reader, position: int, closer: Pattern | None = None) -> PythonCall | None:
    """Read the call at a position; None if there is none. `closer` ends the notation around it.

    A call without an end reaches to the end of the text.
    """
    opening = reader.match(_HEAD, position)
    if opening is None:
        return None
    call = PythonCall(opening["name"], opening.end())
    while _read_argument(reader, call, closer):
        pass
    return call


def read_calls(reader: Reader, position: int, closer: Pattern | None = None) -> PythonCalls | None:
    """Read the calls at a position, separated by commas, semicolons or white space, up to one that is not closed."""
    run, at = PythonCalls(position), position
    while call := read_call(reader, at, closer):
        run.add(call.native(reader), call.end)
        run.whole = call.whole
        if not call.closed:
            break
        at = reader.after(_BETWEEN, call.end)
    return run if run.calls else None


def _read_argument(reader: Reader, call: PythonCall, closer: Pattern | None) -> bool:
    """Read one argument and its separator; return False if the call has ended."""
    start = reader.after(_LEAD, call.end)
    if reader.char(start) == ")":
        call.end, call.closed, call.whole = start + 1, True, True
        return False
    if closer is not None and reader.match(closer, start):
        call.end, call.whole = start, True
        return False
    key = reader.match(_KEY, start)
    begin = key.end() if key is not None else start
    end = _value_end(reader, begin, call, closer)
    if end is None:
        call.end = reader.size
        return False
    _add(call, key, reader.value(begin, end))
    stop = reader.char(end)
    if stop == ",":
        call.end = end + 1
        return True
    call.whole = True
    call.closed = stop == ")"
    call.end = end + 1 if call.closed else end
    return False


def _value_end(reader: Reader, position: int, call: PythonCall, closer: Pattern | None) -> int | None:
    """Return the end of the value that begins at a position; None if the text ends first."""
    plain, marks = _plain_and_marks(closer)
    expected: list[str] = []
    at = position
    while (run := reader.certain(plain, at)) and (mark := reader.next(run.end(), marks)):
        sign, at = mark[0], mark.end()
        if sign in "\"'":  # not closed
            reader.match(STRING, mark.start())
            return None
        if sign in _PAIRS:
            expected.append(_PAIRS[sign])
        elif not expected and (sign in ",)]}" or len(sign) > 1):
            return mark.start()
        elif len(sign) > 1:
            call.readable = False
            return mark.start()
        elif sign != ",":
            call.readable &= expected.pop() == sign and len(expected) < _DEEPEST
    return None


@lru_cache(maxsize=32)
def _plain_and_marks(closer: Pattern | None) -> tuple[Pattern, Pattern]:
    """Return the pattern of text and strings between marks, and that of marks. The closer of the notation is a mark."""
    end = f"|{closer.pattern}" if closer is not None else ""
    plain = rf"(?:[^\"'()\[\]{{}},<`]++|(?!{end.removeprefix('|') or '(?!)'})[<`]|{STRING.pattern})*+"
    return re.compile(plain, re.DOTALL), re.compile(f"{_MARKS}{end}")


def _add(call: PythonCall, key: Match | None, text: str) -> None:
    try:
        value = literal(text)
    except ValueError:
        call.readable = False
        return
    if key is None:
        call.positional.append(value)
    elif key["unpacked"] is None:
        call.keywords[key["key"]] = value
    elif isinstance(value, dict):
        call.keywords |= value
    else:
        call.positional.append(value)


def _bind(values: list[Json], keywords: Mapping[str, Json], properties: Mapping[str, Json]) -> dict[str, Json] | None:
    """Name positional arguments: a single object of arguments, or each in order if its type leaves no choice."""
    free = {key: declared.types_of(schema) for key, schema in properties.items() if key not in keywords}
    (first, *more) = values
    if isinstance(first, dict) and not (more or keywords) and first.keys() <= properties.keys():
        return first
    if len(values) > len(free):
        return None
    bound: dict[str, Json] = {}
    for key, value in zip(tuple(free), values, strict=False):
        kind = declared.type_name(value)
        fits = {kind, "number"} if kind == "integer" else {kind}
        fitting = [name for name, types in free.items() if not types or types & fits]
        if fitting != [key]:
            return None
        bound[key] = value
        del free[key]
    return bound


# -- literals ----------------------------------------------------------------------------------------------------------

_PREFIXED = re.compile(rf"(?P<prefix>\b[A-Za-z]{{1,2}})?(?P<string>{STRING.pattern})", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|N\{[A-Z0-9 -]{1,80}\}"
    r"|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7])|[\\'\"abfnrtv\n])|(?P<stray>\\)"
)
_RAW = {"\r": "\\r", "\0": "\\x00"}
_SURROGATES = re.compile("[\ud800-\udfff]")
_NAMES: dict[str, Json] = {"true": True, "false": False, "null": None}


def literal(text: str) -> Json:
    """Return the value of a Python literal, tuples as lists.

    Raises:
        ValueError: it is no literal, or JSON cannot hold it.
    """
    source = text.strip()
    is_short = len(source) <= _SHORT and _BRACKET.search(source) is None
    value = _short_value(source) if is_short else _value(source)
    if isinstance(value, ValueError):
        raise value
    return value


def _value(source: str) -> Json | ValueError:
    try:
        return json_of(parse(source))
    except (ValueError, RecursionError) as error:
        return ValueError(str(error))


def parse(source: str) -> ast.expr:
    """Parse an expression without white space around it, with its strings corrected.

    Raises:
        ValueError: it is no expression.
    """
    if not source or source.startswith("#"):
        raise ValueError(source)
    try:
        return ast.parse(f"({_PREFIXED.sub(_corrected, source)}\n)", mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:  # the last two: too many brackets
        raise ValueError(str(error)) from error


_SHORT = 64
_BRACKET = re.compile(r"[\[{(]")
_short_value = lru_cache(maxsize=1024)(_value)
"""Values of short literals without brackets. Each takes 12 microseconds, and loops repeat a few."""


def _corrected(match: Match) -> str:
    prefix, string = match["prefix"] or "", match["string"]
    if "r" in prefix.lower():
        return match[0]
    size = 3 if string[:3] in ('"""', "'''") else 1
    body = _ESCAPE.sub(lambda escape: "\\\\" if escape["stray"] else escape[0].replace("\\\n", ""), string[size:-size])
    for character, escape in _RAW.items():
        body = body.replace(character, escape)
    if size == 1:
        body = body.replace("\n", "\\n")
    return f"{prefix}{string[:size]}{body}{string[-size:]}"


def json_of(node: ast.expr) -> Json:
    """Return the value of a literal, tuples as lists. Raises ValueError for other expressions."""
    match node:
        case ast.Constant(value=str(text)):
            # Pairs of UTF-16 escapes are one character.
            paired = _SURROGATES.search(text) is not None
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if paired else text
        case ast.Constant(value=None | bool() | int() as value):
            return value
        case ast.Constant(value=float(number)) if math.isfinite(number):
            return number
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float() as number)) if (
            not isinstance(number, bool) and math.isfinite(number)
        ):
            return -number if isinstance(sign, ast.USub) else number
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [json_of(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return dict(_pairs(keys, values))
        case ast.JoinedStr(values=parts):
            texts = [json_of(part) for part in parts]
            return "".join(text for text in texts if isinstance(text, str))
        case _:
            raise ValueError(type(node).__name__)


def _pairs(keys: list[ast.expr | None], values: list[ast.expr]) -> Iterator[tuple[str, Json]]:
    for key, value in zip(keys, values, strict=True):
        name = json_of(key) if key is not None else None
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise ValueError("a key that JSON has no word for")
        yield str(name), json_of(value)


# -- lists, lines and fences -------------------------------------------------------------------------------------------

_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")
_BLANKS = re.compile(r"[ \t]{0,8}")


def grammar(table: Table) -> Table:
    """Return the grammar of calls between two markers, `start` and `end`, which is the family's table itself.

    With `sure`, a block counts on sight; else it must be closed, or call a declared tool. `json` matches JSON calls.
    """
    return table


def read(reader: Reader, position: int, grammar: Table) -> Reading:
    """Read the calls between two markers, with or without brackets."""
    start, dialect = reader.match(grammar.start, position), grammar.data["dialect"]
    if start is None or position < reader.dead[dialect]:
        return None
    at = reader.space(start.end())
    opening = reader.match(_OPENING, at)
    found: Calls | None
    if reader.match(grammar.json, at):
        found = json_blocks.read_calls(reader, at, grammar.end, (grammar.start,))
    elif found := read_calls(reader, opening.end() if opening is not None else at, grammar.end):
        found.end = reader.after(_CLOSING, found.end)  # also a bracket that closes what none has opened
    sure = "sure" in grammar.data
    if found is None:
        return reader.block(dialect, position, start.end()) if sure else None
    end = reader.past(found.end, grammar.end)
    if sure:
        return reader.block(dialect, position, end, found.calls)
    return reader.generic_block(dialect, position, end, found.calls, sure=end > found.end)


def read_pythonic(reader: Reader, position: int) -> Reading:
    if not reader.tools or not reader.begins(position) or position < reader.dead["pythonic_list"]:
        return None
    at = reader.space(position)
    opening = _PYTHONIC.named(reader, "head", at)
    if opening is None:
        return None
    bracket = opening["bracket"] or ""
    found = read_calls(reader, at + len(bracket))
    assert found is not None
    reader.dead["pythonic_list"] = found.end
    end = reader.after(_CLOSING, found.end) if bracket and found.whole else found.end
    if not all(map(reader.fits, found.calls)) or not reader.concludes(end):
        return None
    read = all(call.complete for call in (found.calls if found.whole else found.calls[:-1]))
    counts = read and (found.whole or bracket or found.calls[-1].arguments)
    return reader.block("pythonic_list", position, end, found.calls, "weak") if counts else None


def read_raven(reader: Reader, position: int) -> Reading:
    gorilla = reader.match(_RAVEN.function, position)
    prefix = gorilla or reader.match(_RAVEN.call, position)
    dialect, end_of_calls = ("gorilla_openfunctions", _RAVEN.function) if gorilla else ("nexus_raven", _RAVEN.call_end)
    if prefix is None or position < reader.dead[dialect]:
        return None
    found = read_calls(reader, prefix.end(), end_of_calls)
    if found is None:
        return None
    if gorilla:
        return reader.generic_block(dialect, position, found.end, found.calls, sure=found.whole)
    end = reader.dead[dialect] = reader.after(_RAVEN.call_end, found.end)
    if end > found.end:
        return reader.block(dialect, position, end, found.calls, "generic")
    alone = reader.char(reader.after(_BLANKS, end)) in ("", "\n", "\r")
    counts = alone and all(map(reader.fits, found.calls))
    return reader.block(dialect, position, end, found.calls, "weak") if counts else None


def read_gemma_code(reader: Reader, position: int) -> Reading:
    if fence := reader.match(_CODE.fence, position):
        if fence.start() < reader.dead["gemma_tool_code"]:
            return None
        at = reader.space(fence.end())
        opening = reader.match(_OPENING, at)
        lines, api = _read_lines(reader, opening.end() if opening is not None else at)
        if not lines.calls:
            return None
        lines.end = lines.end if opening is None else reader.after(_CLOSING, lines.end)
        reader.dead["gemma_tool_code"] = lines.end
        end = reader.after(_CODE.fence_end, lines.end)
        dialect = "gemini_default_api" if api else "gemma_tool_code"
        return reader.generic_block(dialect, position, end, lines.calls, sure=end > lines.end)
    at = reader.after(_CODE.control, reader.after(_BLANKS, position))
    if notation := reader.match(_CODE.notation, at):
        tool = reader.tool(notation["name"])
        if tool is None or position < reader.dead[_CODE.notation]:
            return None
        arguments, end, complete = _read_body(reader, notation.end(), tool, (_CODE.notation,))
        reader.dead[_CODE.notation] = end
        # A `declaration:` repeats the tool instead of calling it.
        call = reader.call(notation["name"], arguments if notation["kind"] == "call" else None, complete=complete)
        return reader.block("gemini_default_api", position, reader.after(_CODE.control, end), (call,), "generic")
    word = reader.match(_CODE.word, position)
    start = word.end() if word is not None else at
    return _read_bare(reader, position, start) if reader.match(_CODE.namespace, start) else None


def _read_bare(reader: Reader, position: int, at: int) -> Reading:
    """Read lines without a fence: of declared tools, in the namespace, and with nothing else on the last line."""
    if position < reader.dead["gemini_default_api"]:
        return None
    lines, _ = _read_lines(reader, at)
    if not lines.calls:
        return None
    reader.dead["gemini_default_api"] = lines.end
    ends_line = reader.char(reader.after(_BLANKS, lines.end)) in ("", "\n", "\r", "`")
    if not (ends_line and all(call.name in reader.tools for call in lines.calls)):
        return None
    return reader.block("gemini_default_api", position, lines.end, lines.calls, "generic")


def _read_lines(reader: Reader, at: int) -> tuple[Calls, bool]:
    """Return the calls of some lines, and whether the namespace is named."""
    lines, api = Calls(at), False
    while True:
        while aside := reader.match(_CODE.aside, at):
            at = reader.space(aside.end())
        if lines.calls and (echo := reader.match(_CODE.echo, at)):
            lines.end = echo.end()
            at = reader.space(echo.end())
            continue
        lead = reader.match(_CODE.lead, at)
        call = read_call(reader, lead.end()) if lead is not None else None
        if lead is None or call is None or call.name == "print":
            return lines, api
        end = reader.after(_CODE.lead_end, call.end) if call.closed and lead["print"] is not None else call.end
        lines.add(call.native(reader, call.name.removeprefix("default_api.")), end)
        api |= lead["api"] is not None
        if not call.closed:
            return lines, api
        at = reader.space(reader.after(_CODE.separator, end))


def read_gemma(reader: Reader, position: int) -> Reading:
    gemma4 = reader.match(_TOKENS.start, position)
    if start := gemma4 or reader.match(_TOKENS.function_start, position):
        closer = _TOKENS.end if gemma4 else _TOKENS.function_end
        found = _read_call(reader, start, closer)
        end = reader.past(found.end, closer) if found.calls else found.end
        return reader.block("gemma4" if gemma4 else "functiongemma", position, end, found.calls)
    if not reader.tools or position < reader.dead["mimic"]:
        return None
    opening = _TOKENS.named(reader, "mimic", reader.space(position))
    call = read_call(reader, opening.start("name")) if opening is not None else None
    reader.dead["mimic"] = call.end if call is not None else 0
    if opening is None or call is None or not call.closed or reader.char(call.end) != "]":
        return None
    native = reader.call(opening["name"], None, complete=False)
    return reader.block("gemma4", position, call.end + 1, (native,), "weak")


def _read_call(reader: Reader, start: Match, closer: Pattern) -> Calls:
    at = reader.space(start.end())
    if reader.char(at) in ("{", "["):
        return json_blocks.read_calls(reader, at, closer, (start.re,)) or Calls(start.end())
    header = reader.match(_TOKENS.call, at)
    empty = header is not None and reader.char(header.end()) == "<"
    if header is None or (empty and not reader.match(closer, header.end())):
        return Calls(start.end())
    arguments, end, complete = Arguments({}, header.end(), complete=True)
    if not empty:
        tool = reader.tool(header["name"])
        arguments, end, complete = _read_body(reader, header.end(), tool, (closer, start.re))
    return Calls(end, [reader.call(header["name"], arguments, complete=complete)])


# -- keys and values ---------------------------------------------------------------------------------------------------

_DELIMITERS = {token: re.compile(re.escape(token)) for token in ('<|"|>', "<escape>", "<ctrl46>")}
_BARE_END = {"}": _TOKENS.bare_in_braces, ")": _TOKENS.bare_in_parentheses, "]": _TOKENS.item_end}
_BARE_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class _CutError(Exception):
    """The text ends before the value does."""


class _UnreadableError(Exception):
    """The text is no value."""


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
        stop = reader.next(position, *stops)
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
            end = reader.next(delimiter.end(), _DELIMITERS[delimiter[0]])
            if end is None:
                raise _CutError
            return reader.value(delimiter.end(), end.start()), end.end()
        match reader.char(at):
            case "":
                raise _CutError
            case "{":
                inner: dict[str, Json] = {}
                return inner, self.read_object(at, inner, depth + 1)
            case "[":
                items: list[Json] = []
                at = reader.space(at + 1)
                while reader.char(at) != "]":
                    item, end_of_item = self._value(at, "]", depth + 1, None)
                    items.append(item)
                    at = self._separated(end_of_item, "]")
                return items, at + 1
            case '"' | "'":
                return self._quoted(at)
            case _:
                # A number, a word of JSON, or text whose delimiters were lost.
                ending = reader.next(at, _BARE_END[closer])
                if ending is None:
                    raise _CutError
                text = reader.value(at, ending.start()).strip()
                if not text:
                    raise _UnreadableError
                own = self.properties.get(key) if key is not None and not depth else None
                typed = bool(declared.types_of(own, self.schema))
                return declared.coerce(text, own, self.schema) if typed else _literal(text), ending.start()

    def _quoted(self, at: int) -> tuple[Json, int]:
        """Read a string in plain quotes, as JSON and Python write it."""
        string = self.reader.match(STRING, at)
        if string is None:
            raise _CutError
        written = self.reader.value(at, string.end())
        for read in (jsontext.loads, literal):
            try:
                return read(written), string.end()
            except ValueError:
                continue
        raise _UnreadableError


@lru_cache(maxsize=256)
def _literal(text: str) -> Json:
    if text in _BARE_WORDS:
        return _BARE_WORDS[text]
    try:
        return jsontext.loads(text)
    except ValueError:
        return text
