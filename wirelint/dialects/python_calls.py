r"""Calls in Python's syntax: `lookup(city='Graz', limit=3)`, alone or one after another.

Theory of operation. A small scanner finds the ends: it goes from bracket to bracket, from comma to comma, over
strings as a whole. So a marker inside a string is data, keywords need not be valid in Python (`from=`, `max-results=`),
and a call that is cut off keeps the arguments before the cut. The values are read by Python's own parser, as literals
only: nothing is evaluated. Strings are corrected first, since models leave
line ends and stray backslashes (`'\d'`, `'C:\Users'`) in them.

JSON literals count as Python's. Positional arguments are bound only where types leave no choice.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from wirelint.dialects import declared
from wirelint.dialects.reader import Calls, Match, NativeCall, Pattern, Reader
from wirelint.model import Json

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
    run = PythonCalls(position)
    at = position
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
    while (run := reader.certain(plain, at)) and (mark := reader.next(marks, run.end())):
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


_SHORT = 64
_BRACKET = re.compile(r"[\[{(]")


@lru_cache(maxsize=1024)
def _short_value(source: str) -> Json | ValueError:
    """Return the value of a short literal without brackets. Cached: each takes 12 microseconds, and loops repeat a few."""
    return _value(source)


def _value(source: str) -> Json | ValueError:
    if not source or source.startswith("#"):
        return ValueError(source)
    try:
        tree = ast.parse(f"({_PREFIXED.sub(_corrected, source)}\n)", mode="eval")
        return _json(tree.body)
    except ValueError as error:
        return error
    except (SyntaxError, MemoryError, RecursionError) as error:  # the last two: too many brackets or operators
        return ValueError(str(error))


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


def _json(node: ast.expr) -> Json:
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
            return [_json(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return dict(_pairs(keys, values))
        case ast.JoinedStr(values=parts):
            texts = [_json(part) for part in parts]
            return "".join(text for text in texts if isinstance(text, str))
        case _:
            raise ValueError(type(node).__name__)


def _pairs(keys: list[ast.expr | None], values: list[ast.expr]) -> Iterator[tuple[str, Json]]:
    for key, value in zip(keys, values, strict=True):
        name = _json(key) if key is not None else None
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise ValueError("a key that JSON has no word for")
        yield str(name), _json(value)
