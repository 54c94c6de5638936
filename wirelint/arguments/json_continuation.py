"""Completion of a JSON text whose beginning has been sent already.

Theory of operation. The beginning is read beside the value that the whole is to have: what is complete in it must be
said by the value, what is cut in the middle (a string, an escape, a number, a literal) is brought to its end, and what
the value has beyond that is written after it. Where the beginning says something that the value does not, there is no
such rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from enum import Enum, auto

import orjson

from wirelint.jsonvalues import Json

# JSON text followed piece by piece, as it arrives: where it stops being JSON, where a value ends, what comes after it.
#
# Theory of operation. A pushdown automaton over RFC 8259. Runs of characters that cannot change its state (the inside of a
# string, white space, the digits of a number) are passed by one regular expression, so a piece costs what it has in tokens,
# and nothing is ever read twice. It keeps offsets and a stack of brackets, no text. A subclass may watch the values go by.

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*')
_TOKEN_BODY = re.compile(r"[-+.0-9A-Za-z]*")
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPABLE = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")
_DEEPEST_SCANNED = 1000
"""Brackets beyond which nobody reads JSON; the scanner then follows no further."""


class _At(Enum):
    VALUE = auto()  # a value must come
    ITEM = auto()  # the first element of an array, or its end
    FIRST_KEY = auto()  # the first key of an object, or its end
    KEY = auto()  # a key must come
    COLON = auto()
    AFTER = auto()  # a comma, or the end of what is open
    STRING = auto()
    ESCAPE = auto()
    TOKEN = auto()  # inside a number or a literal
    END = auto()  # after the top-level value


class Scanner:
    """Incremental JSON scanner. Its fields hold what it has found, as offsets in the whole text.

    `top` is the first character of the top-level value, at `top_at`; empty as long as there was only white space.
    `filled`: that value is an object and has a key. `closed` is the offset after the top-level value, `second` that of
    what follows it and is no white space. `broken` is the first character that JSON does not allow. `comma` is a comma
    between members or elements after which nothing has come yet, or nothing that may come there.
    """

    __slots__ = (
        *("broken", "closed", "comma", "filled", "length", "lost", "second", "top", "top_at"),
        *("_at", "_escape", "_in_key", "_stack", "_token"),
    )

    def __init__(self) -> None:
        self.length = 0
        self.top = ""
        self.top_at = 0
        self.filled = False
        self.closed: int | None = None
        self.second: int | None = None
        self.broken: int | None = None
        self.comma: int | None = None
        self.lost = False
        self._at = _At.VALUE
        self._stack: list[str] = []
        self._in_key = False
        self._escape = ""
        self._token = ""

    @property
    def over(self) -> bool:
        """Return True if more text could not tell anything more."""
        return self.broken is not None or self.second is not None or self.lost

    def feed(self, piece: str) -> None:
        base, size = self.length, len(piece)
        self.length += size
        # Nearly all pieces of long arguments lie within one string.
        if self._at is _At.STRING and not self._in_key and _STRING_BODY.fullmatch(piece):
            return
        place = 0
        while place < size and not self.over:
            match self._at:
                case _At.STRING:
                    place = self._string(piece, place, base)
                case _At.ESCAPE:
                    place = self._escaped(piece, place, base)
                case _At.TOKEN:
                    place = self._scalar(piece, place, base)
                case _:
                    place = _SPACE.match(piece, place).end()  # type: ignore[union-attr]
                    if place < size:
                        place = self._structure(piece[place], place, base)

    # Hooks of subclasses. A value is reported with its first character, a key with its raw text.

    def _value_begins(self, character: str, offset: int) -> None: ...

    def _key_text(self, text: str) -> None: ...

    def _key_ends(self) -> None: ...

    def _container_ends(self) -> None: ...

    # --- inside a token -----------------------------------------------------------------------------------------------

    def _string(self, piece: str, place: int, base: int) -> int:
        end = _STRING_BODY.match(piece, place).end()  # type: ignore[union-attr]
        if self._in_key:
            self._key_text(piece[place:end])
        if end == len(piece):
            return end
        match piece[end]:
            case '"':
                if self._in_key:
                    self._in_key = False
                    self._at = _At.COLON
                    self._key_ends()
                else:
                    self._value_ends(base + end + 1)
            case "\\":
                self._escape = "\\"
                self._at = _At.ESCAPE
            case _:
                self.broken = base + end
        return end + 1

    def _escaped(self, piece: str, place: int, base: int) -> int:
        character = piece[place]
        whole = False
        if self._escape == "\\":
            whole = character in _ESCAPABLE
            allowed = whole or character == "u"
        else:
            allowed = character in _HEX
            whole = allowed and len(self._escape) == 5
        if not allowed:
            self.broken = base + place
            return place
        self._escape += character
        if whole:
            if self._in_key:
                self._key_text(self._escape)
            self._at = _At.STRING
        return place + 1

    def _scalar(self, piece: str, place: int, base: int) -> int:
        end = _TOKEN_BODY.match(piece, place).end()  # type: ignore[union-attr]
        before = len(self._token)
        self._token += piece[place:end]
        known = _agreed(self._token)
        if known < len(self._token):
            self.broken = base + place + max(known - before, 0)
        elif end < len(piece):
            if _WHOLE_NUMBER.fullmatch(self._token) or self._token in _LITERALS.values():
                self._value_ends(base + end)
            else:
                self.broken = base + end
        elif len(self._token) > _LONGEST_TOKEN:
            self.lost = True
        return end

    # --- between tokens -----------------------------------------------------------------------------------------------

    def _structure(self, character: str, place: int, base: int) -> int:
        offset = base + place
        at = self._at
        if at is _At.END:
            self.second = offset
        elif at is _At.COLON and character == ":":
            self._at = _At.VALUE
        elif at is _At.AFTER and character == ",":
            self.comma = offset
            self._at = _At.KEY if self._stack[-1] == "{" else _At.VALUE
        elif (at in (_At.AFTER, _At.FIRST_KEY, _At.ITEM)) and self._closes(character):
            self._stack.pop()
            self._container_ends()
            self._value_ends(offset + 1)
        elif at in (_At.KEY, _At.FIRST_KEY) and character == '"':
            self.comma = None
            self.filled = self.filled or len(self._stack) == 1
            self._in_key = True
            self._at = _At.STRING
        elif at in (_At.VALUE, _At.ITEM):
            return self._value(character, place, offset)
        else:
            self.broken = offset
        return place + 1

    def _closes(self, character: str) -> bool:
        return character == ("}" if self._stack[-1] == "{" else "]")

    def _value(self, character: str, place: int, offset: int) -> int:
        if not self._stack:
            self.top, self.top_at = character, offset
        if character not in '"{[-0123456789tfn':
            self.broken = offset
            return place
        self.comma = None
        self._value_begins(character, offset)
        if character == '"':
            self._at = _At.STRING
        elif character in "{[":
            self._stack.append(character)
            self._at = _At.FIRST_KEY if character == "{" else _At.ITEM
            self.lost = len(self._stack) > _DEEPEST_SCANNED
        else:
            self._token = ""
            self._at = _At.TOKEN
            return place
        return place + 1

    def _value_ends(self, offset: int) -> None:
        if self._stack:
            self._at = _At.AFTER
        else:
            self._at = _At.END
            self.closed = offset


_LONGEST_TOKEN = 400
"""Characters of a number beyond which it is followed no further; a double has seventeen digits."""


def _agreed(token: str) -> int:
    """Return how many characters of an unfinished number or literal are right."""
    literal = _LITERALS.get(token[:1])
    if literal is None:
        return _NUMBER_BEGUN.match(token).end()  # type: ignore[union-attr]
    count = 0
    for given, wanted in zip(token, literal, strict=False):
        if given != wanted:
            break
        count += 1
    return count


_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_TOKEN = re.compile(r"[-+.0-9A-Za-z]*")
_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?)(?:[eE]([+-]?[0-9]*))?")
_DEEPEST = 400


def continuation(prefix: str, value: Json) -> str | None:
    """Return the text that makes `prefix` a JSON text of `value`; None when there is none.

    >>> continuation('{"city": "Os', {"city": "Oslo", "days": 2})
    'lo","days":2}'
    """
    try:
        rest = "".join(_Joiner(prefix).join(value))
    except _NoWayError:
        return None
    return rest if _says(prefix + rest, value) else None


def write(value: Json) -> str:
    """Return a value as JSON text, without white space; escaped to ASCII where it holds what UTF-8 cannot carry."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, integers of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


def same(one: Json, other: Json) -> bool:
    """Return True if two values are the same for every reader: 1 is neither 1.0 nor true; the order of members says
    nothing.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(inner, other[key]) for key, inner in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _says(text: str, value: Json) -> bool:
    try:
        return same(json.loads(text), value)
    except (ValueError, RecursionError):
        return False


class _NoWayError(Exception):
    pass


class _Joiner:
    def __init__(self, prefix: str) -> None:
        self.text = prefix
        self.place = 0

    def join(self, value: Json) -> Iterator[str]:
        yield from self._value(value, 0)
        if not self._over():
            raise _NoWayError  # something follows the value

    def _over(self) -> bool:
        """Return True if the prefix is at its end; passes white space."""
        self.place = _SPACE.match(self.text, self.place).end()  # type: ignore[union-attr]
        return self.place == len(self.text)

    def _take(self, character: str) -> None:
        if self.text[self.place] != character:
            raise _NoWayError
        self.place += 1

    def _value(self, value: Json, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            raise _NoWayError
        if self._over():
            yield write(value)
            return
        match value:
            case dict():
                yield from self._object(value, depth)
            case list():
                yield from self._array(value, depth)
            case str():
                yield from self._string(value)
            case bool() | None:
                yield self._literal(write(value))
            case _:
                yield self._number(value)

    def _object(self, value: dict[str, Json], depth: int) -> Iterator[str]:
        self._take("{")
        left = dict(value)
        first = True
        while True:
            if self._over():
                members = ",".join(f"{write(key)}:{write(inner)}" for key, inner in left.items())
                yield f"{'' if first or not members else ','}{members}}}"
                return
            if self.text[self.place] == "}" and not left:
                self.place += 1
                return
            if not first:
                self._take(",")
                if self._over():
                    yield from self._members_after_comma(left)
                    return
            key, rest = self._key(left)
            yield rest
            if self._over():
                yield ":"
            else:
                self._take(":")
            yield from self._value(left.pop(key), depth + 1)
            first = False

    def _members_after_comma(self, left: dict[str, Json]) -> Iterator[str]:
        if not left:
            raise _NoWayError
        yield ",".join(f"{write(key)}:{write(inner)}" for key, inner in left.items()) + "}"

    def _key(self, left: dict[str, Json]) -> tuple[str, str]:
        """Return the next key, and what it lacks to be complete."""
        start = self.place
        if self.text[start] != '"':
            raise _NoWayError
        end = _end_of_string(self.text, start)
        if end is not None:
            self.place = end
            try:
                key = json.loads(self.text[start:end])
            except ValueError:
                raise _NoWayError from None
            if key not in left:
                raise _NoWayError
            return key, ""
        for key in left:
            self.place = start
            try:
                return key, "".join(self._string(key))
            except _NoWayError:
                continue
        raise _NoWayError

    def _array(self, value: list[Json], depth: int) -> Iterator[str]:
        self._take("[")
        for number, inner in enumerate(value):
            if self._over():
                rest = ",".join(map(write, value[number:]))
                yield f"{',' if number else ''}{rest}]"
                return
            if number:
                self._take(",")
            yield from self._value(inner, depth + 1)
        if self._over():
            yield "]"
        else:
            self._take("]")

    # --- scalars ------------------------------------------------------------------------------------------------------

    def _string(self, value: str) -> Iterator[str]:
        text = self.text
        self._take('"')
        said = 0
        while self.place < len(text):
            end = _PLAIN.match(text, self.place).end()  # type: ignore[union-attr]
            if end > self.place:
                if not value.startswith(text[self.place : end], said):
                    raise _NoWayError
                said += end - self.place
                self.place = end
                continue
            if text[end] == '"' and said == len(value):
                self.place = end + 1
                return
            if text[end] != "\\" or said >= len(value):
                raise _NoWayError
            wanted, rest = self._escape(value[said])
            said += wanted
            yield rest
        yield write(value[said:])[1:]

    def _escape(self, wanted: str) -> tuple[int, str]:
        """Pass an escape, whole or cut, that stands for `wanted`; return its rest."""
        text = self.text
        if self.place + 1 == len(text):
            self.place += 1
            written = write(wanted)
            return 1, written[2:-1] if written.startswith('"\\') else _units(wanted)[1:]
        kind = text[self.place + 1]
        if kind != "u":
            if _ESCAPES.get(kind) != wanted:
                raise _NoWayError
            self.place += 2
            return 1, ""
        spelled = _units(wanted)
        given = text[self.place : self.place + len(spelled)]
        if spelled[: len(given)].lower() != given.lower():
            raise _NoWayError
        self.place += len(given)
        return 1, spelled[len(given) :]

    def _literal(self, spelled: str) -> str:
        given = _TOKEN.match(self.text, self.place)[0]  # type: ignore[index]
        whole = self.place + len(given) < len(self.text)
        if not spelled.startswith(given) or not given or (whole and given != spelled):
            raise _NoWayError
        self.place += len(given)
        return spelled[len(given) :]

    def _number(self, value: float) -> str:
        given = _TOKEN.match(self.text, self.place)[0]  # type: ignore[index]
        self.place += len(given)
        if self.place < len(self.text) or _is_number(given, value):
            return _whole(given, value)
        return _finished(given, value)


def _end_of_string(text: str, start: int) -> int | None:
    place = start + 1
    while True:
        place = _PLAIN.match(text, place).end()  # type: ignore[union-attr]
        if place >= len(text):
            return None
        if text[place] == '"':
            return place + 1
        place += 2
        if place > len(text):
            return None


def _units(character: str) -> str:
    """Return a character as JSON's `\\u` escapes: one, or two for those beyond the first plane."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _is_number(given: str, value: float) -> bool:
    try:
        return same(json.loads(given), value)
    except ValueError:
        return False


def _whole(given: str, value: float) -> str:
    if not _is_number(given, value):
        raise _NoWayError
    return ""


def _finished(given: str, value: float) -> str:
    """Return the rest of an unfinished number: digits, a power of ten."""
    if write(value).startswith(given):
        return write(value)[len(given) :]
    wanted = Decimal(write(value))
    begun = _NUMBER.fullmatch(given)
    if begun is None or isinstance(value, int):
        raise _NoWayError
    mantissa, power = begun[1], begun[2]
    full = mantissa if power is not None else _digits(mantissa, wanted)
    exponent = _power_between(Decimal(full), wanted)
    if power is None:
        return f"{full[len(mantissa) :]}e{exponent}"
    for spelled in (f"{exponent}", f"{exponent:+}", f"{exponent:03}", f"{exponent:+03}"):
        if spelled.startswith(power):
            return spelled[len(power) :]
    raise _NoWayError


def _digits(mantissa: str, wanted: Decimal) -> str:
    """Return the mantissa with the digits that the wanted number has beyond it."""
    digits = "".join(map(str, wanted.as_tuple().digits)).lstrip("0")
    shown = mantissa.lstrip("-").replace(".", "").lstrip("0")
    full = mantissa + ("" if "." in mantissa else ".") + digits[len(shown) :]
    return f"{full}0" if full.endswith(".") else full


def _power_between(mantissa: Decimal, wanted: Decimal) -> int:
    if not wanted:
        return 0
    if not mantissa:
        raise _NoWayError
    with localcontext() as context:
        context.prec = 100
        ratio = (wanted / mantissa).normalize().as_tuple()
    if ratio.digits != (1,) or ratio.sign:
        raise _NoWayError
    return int(ratio.exponent)
