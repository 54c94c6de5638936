"""JSON text in pieces: a scanner, and the rest of a text whose beginning has already been sent.

Theory of operation. The scanner is a pushdown automaton over RFC 8259. Runs of characters that cannot change its state
(the inside of a string, white space, the digits of a number) are skipped by one regular expression, so the time depends
on the number of tokens, and nothing is read twice. It keeps offsets and a stack of brackets, no text.

`continuation` removes the cut token at the end of the prefix, closes the open containers, and decodes the result, all of
which must be part of the wanted value. Then it completes the cut token and writes the missing members. A prefix with
other content has no continuation.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from enum import Enum, auto

from wirelint.jsonvalues import Json, common_length, write
from wirelint.lexicon import lazy_pattern

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_BODY = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
"""Characters and whole escapes. A text with a `\\n` every ten characters takes ten times as long if each is read alone."""
_BLANKS = _SPACE.pattern
_SCALAR = rf'(?:"{_STRING_BODY.pattern}"|true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?){_BLANKS}'
_PAIR = rf'"{_STRING_BODY.pattern}"{_BLANKS}:{_BLANKS}'
_FLAT = (
    rf"(?:{_SCALAR}|\[{_BLANKS}(?:{_SCALAR}(?:,{_BLANKS}{_SCALAR})*+)?\]{_BLANKS}"
    rf"|\{{{_BLANKS}(?:{_PAIR}{_SCALAR}(?:,{_BLANKS}{_PAIR}{_SCALAR})*+)?\}}{_BLANKS})"
)
_FURTHER = {
    "[": lazy_pattern(rf"(?:,{_BLANKS}{_FLAT}(?=[,\]]))*+"),
    "{": lazy_pattern(rf"(?:,{_BLANKS}{_PAIR}{_FLAT}(?=[,}}]))*+"),
}
"""By open bracket: more elements or members without containers in their containers. Each alone takes 8 microseconds in the
four scanners of a repair, so that an array of 50,000 numbers took a second."""
_TOKEN_BODY = re.compile(r"[-+.0-9A-Za-z]*")
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE_BEGUN = re.compile(r"\\u[0-9a-fA-F]{0,3}")
_DEEPEST_SCANNED = 1000
"""Depth beyond which JSON parsers stop, and so does the scanner."""


class At(Enum):
    VALUE = auto()  # a value must come
    ITEM = auto()  # the first element of an array, or its end
    FIRST_KEY = auto()  # the first key of an object, or its end
    KEY = auto()  # a key must come
    COLON = auto()
    AFTER = auto()  # a comma, or the end of the open container
    STRING = auto()
    ESCAPE = auto()
    TOKEN = auto()  # inside a number or a literal
    END = auto()  # after the top-level value


class Scanner:
    """Incremental JSON scanner. Its fields are offsets in the whole text.

    `top` is the first character of the top-level value, at `top_at`; empty before it. `filled`: that value is an object and
    has a key. `closed` is the offset after the top-level value, `second` the offset of further text after it. `broken` is
    the first invalid character. `comma` is a comma between members or elements that no valid text follows yet. `lost`: the
    scanner has stopped at too deep or too long a value. `at` is the state, `open` the open brackets, `token_at` the offset
    of the last key or value, `in_key` whether a key has begun.
    """

    __slots__ = (
        *("broken", "closed", "comma", "filled", "length", "lost", "second", "top", "top_at"),
        *("at", "in_key", "open", "token_at", "_escape", "_token"),
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
        self.at = At.VALUE
        self.open: list[str] = []
        self.token_at = 0
        self.in_key = False
        self._escape = ""
        self._token = ""

    @property
    def over(self) -> bool:
        """Return True if more text cannot change the result."""
        return self.broken is not None or self.second is not None or self.lost

    @property
    def complete(self) -> bool:
        return self.closed is not None

    @property
    def is_object(self) -> bool:
        return self.closed is not None and self.second is None and self.top == "{"

    @property
    def is_wrong(self) -> bool:
        """Return True if the text is no JSON object, whole or cut."""
        return self.broken is not None or self.second is not None or self.top not in ("", "{")

    def feed(self, piece: str) -> int:
        """Read more text. Return its length so far."""
        base, size = self.length, len(piece)
        self.length += size
        # Nearly all pieces of long arguments are within one string.
        if self.at is At.STRING and not self.in_key and _STRING_BODY.fullmatch(piece):
            return self.length
        place = 0
        while place < size and not self.over:
            match self.at:
                case At.STRING:
                    place = self._string(piece, place, base)
                case At.ESCAPE:
                    place = self._escaped(piece, place, base)
                case At.TOKEN:
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
                    place = end
                case _:
                    place = _SPACE.match(piece, place).end()  # type: ignore[union-attr]
                    if self.at is At.AFTER and self._may_skip():
                        place = _FURTHER[self.open[-1]].match(piece, place).end()  # type: ignore[union-attr]
                    if place < size:
                        place = self._structure(piece[place], place, base)
        return self.length

    # Hooks of subclasses. A value is reported with its first character, a key with its raw text, unless `_may_skip` returns
    # True for its container.

    def _may_skip(self) -> bool:
        return True

    def _value_begins(self, character: str, offset: int) -> None: ...

    def _key_text(self, text: str) -> None: ...

    def _key_ends(self) -> None: ...

    def _container_ends(self) -> None: ...

    # --- inside a token -----------------------------------------------------------------------------------------------

    def _string(self, piece: str, place: int, base: int) -> int:
        end = _STRING_BODY.match(piece, place).end()  # type: ignore[union-attr]
        if self.in_key:
            self._key_text(piece[place:end])
        if end == len(piece):
            return end
        match piece[end]:
            case '"':
                if self.in_key:
                    self.in_key = False
                    self.at = At.COLON
                    self._key_ends()
                else:
                    self._value_ends(base + end + 1)
            case "\\":
                self._escape = "\\"
                self.at = At.ESCAPE
            case _:
                self.broken = base + end
        return end + 1

    def _escaped(self, piece: str, place: int, base: int) -> int:
        self._escape += piece[place]
        if _ESCAPE.fullmatch(self._escape):
            if self.in_key:
                self._key_text(self._escape)
            self.at = At.STRING
        elif not _ESCAPE_BEGUN.fullmatch(self._escape):
            self.broken = base + place
            return place
        return place + 1

    # --- between tokens -----------------------------------------------------------------------------------------------

    def _structure(self, character: str, place: int, base: int) -> int:
        offset = base + place
        at = self.at
        if at is At.END:
            self.second = offset
        elif at is At.COLON and character == ":":
            self.at = At.VALUE
        elif at is At.AFTER and character == ",":
            self.comma = offset
            self.at = At.KEY if self.open[-1] == "{" else At.VALUE
        elif at in (At.AFTER, At.FIRST_KEY, At.ITEM) and character == ("}" if self.open[-1] == "{" else "]"):
            self.open.pop()
            self._container_ends()
            self._value_ends(offset + 1)
        elif at in (At.KEY, At.FIRST_KEY) and character == '"':
            self.comma = None
            self.filled = self.filled or len(self.open) == 1
            self.in_key = True
            self.token_at = offset
            self.at = At.STRING
        elif at in (At.VALUE, At.ITEM):
            if not self.open:
                self.top, self.top_at = character, offset
            if character not in '"{[-0123456789tfn':
                self.broken = offset
                return place
            self.comma = None
            self.token_at = offset
            self._value_begins(character, offset)
            if character == '"':
                self.at = At.STRING
            elif character in "{[":
                self.open.append(character)
                self.at = At.FIRST_KEY if character == "{" else At.ITEM
                self.lost = len(self.open) > _DEEPEST_SCANNED
            else:
                self._token = ""
                self.at = At.TOKEN
                return place
            return place + 1
        else:
            self.broken = offset
        return place + 1

    def _value_ends(self, offset: int) -> None:
        if self.open:
            self.at = At.AFTER
        else:
            self.at = At.END
            self.closed = offset


_LONGEST_TOKEN = 400
"""Longest number; a double has seventeen digits."""


def _agreed(token: str) -> int:
    """Return the length of the valid prefix of an unfinished number or literal."""
    literal = _LITERALS.get(token[:1])
    if literal is None:
        return _NUMBER_BEGUN.match(token).end()  # type: ignore[union-attr]
    return common_length(token, literal)


_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]*)?)(?:[eE]([+-]?[0-9]*))?")
_STRING_BEGUN = re.compile(
    r'"(?P<said>(?:[^"\\]|\\u(?![dD][89abAB][0-9a-fA-F]{2}(?:\\?|\\u[0-9a-fA-F]{0,3})\Z)[0-9a-fA-F]{4}|\\[^u])*+)'
    r"(?P<cut>(?:\\u[0-9a-fA-F]{4})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?)"
)
"""A string that is not closed. `cut`: an escape, or the first escape of a surrogate pair, that the end cuts off."""
_DEEPEST = 400


def continuation(prefix: str, value: Json) -> str | None:
    """Return the text that completes `prefix` to a JSON text of `value`; None without one.

    >>> continuation('{"city": "Os', {"city": "Oslo", "days": 2})
    'lo","days":2}'
    """
    scanner = Scanner()
    scanner.feed(prefix)
    if scanner.over or len(scanner.open) > _DEEPEST:
        return None
    try:
        rest = _rest(prefix, scanner, value)
    except (ValueError, LookupError):
        return None
    return rest if _has_value(prefix + rest, value) else None


def same(one: Json, other: Json) -> bool:
    """Return True if two values are equal to all readers: 1 is neither 1.0 nor true, and members have no order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(inner, other[key]) for key, inner in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def _has_value(text: str, value: Json) -> bool:
    try:
        return same(json.loads(text), value)
    except (ValueError, RecursionError):
        return False


def _rest(prefix: str, scanner: Scanner, value: Json) -> str:
    """Return the rest of a text; the caller compares the values. Raises ValueError or LookupError without one.

    The prefix is decoded without the token that its end cuts off, and with null for an incomplete last value.
    """
    inside = scanner.at in (At.STRING, At.ESCAPE, At.TOKEN)
    token = prefix[scanner.token_at :] if inside else ""
    head = prefix[: scanner.token_at] if inside else prefix
    lacks_key = scanner.in_key if inside else scanner.at is At.KEY
    lacks_value = not scanner.in_key if inside else scanner.at in (At.COLON, At.VALUE)
    colon = ":" if scanner.at is At.COLON else ""
    head = head.rstrip(" \t\r\n").removesuffix(",") if lacks_key else head
    closers = "".join("}" if bracket == "{" else "]" for bracket in reversed(scanner.open))
    part: Json = json.loads(f"{head}{colon}{'null' * lacks_value}{closers}", object_pairs_hook=_members)
    begun, ends = "", [""]
    for level in range(1, len(scanner.open) + 1):
        is_open = level < len(scanner.open) or lacks_value  # the last member or element is incomplete
        if isinstance(part, dict) and isinstance(value, dict):
            left = [name for name in value if name not in part]
            if lacks_key and not is_open:
                name, begun = _rest_of_key(token, left)
                left.remove(name)
                begun = f"{begun}:{write(value[name])}"
            members = ",".join(f"{write(name)}:{write(value[name])}" for name in left)
            ends.append(f"{',' if members and (part or begun) else ''}{members}}}")
            if is_open:
                name = list(part)[-1]
                part, value = part[name], value[name]
        elif isinstance(part, list) and isinstance(value, list):
            count = len(part)
            items = ",".join(map(write, value[count:]))
            ends.append(f"{',' if items and part else ''}{items}]")
            if is_open:
                part, value = part[-1], value[count - 1]
        else:
            raise ValueError
    if lacks_value:
        begun = colon + _rest_of_scalar(token, value)
    return begun + "".join(reversed(ends))


def _rest_of_key(token: str, names: list[str]) -> tuple[str, str]:
    """Return the first of some names that the cut key may become, and its rest."""
    for name in names:
        try:
            return name, _rest_of_string(token, name) if token else write(name)
        except ValueError:
            continue
    raise ValueError


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is repeated")
    return members


def _rest_of_scalar(token: str, value: Json) -> str:
    """Return the rest of a value that begins with `token`; of a whole value if the token is empty."""
    written = write(value)
    if token and isinstance(value, str):
        return _rest_of_string(token, value)
    if token and isinstance(value, int | float) and not isinstance(value, bool):
        return "" if _has_value(token, value) else _rest_of_number(token, value)
    if not written.startswith(token):
        raise ValueError
    return written[len(token) :]


def _rest_of_string(token: str, value: str) -> str:
    begun = _STRING_BEGUN.fullmatch(token)
    said: str = json.loads(f'"{begun["said"]}"') if begun is not None else ""
    if begun is None or not value.startswith(said):
        raise ValueError
    cut, left = begun["cut"], value[len(said) :]
    if not cut:
        return write(left)[1:]
    if not left:
        raise ValueError
    data = left[0].encode("utf-16-be", "surrogatepass").hex()  # two units for a character beyond the first plane
    units = "".join(f"\\u{data[place : place + 4]}" for place in range(0, len(data), 4))
    written = write(left[0])[1:-1]
    if cut == "\\" and written.startswith("\\"):
        units = written
    if not units.lower().startswith(cut.lower()):
        raise ValueError
    return units[len(cut) :] + write(left[1:])[1:]


def _rest_of_number(given: str, value: float) -> str:
    """Return the rest of an unfinished number: digits, a power of ten. The caller checks the whole."""
    written = write(value)
    if written.startswith(given):
        return written[len(given) :]
    begun = _NUMBER.fullmatch(given)
    if begun is None or isinstance(value, int):
        raise ValueError
    mantissa, power, wanted = begun[1], begun[2], Decimal(written)
    if power is None:  # the mantissa gets the digits that the wanted number has beyond it
        digits = "".join(map(str, wanted.as_tuple().digits)).lstrip("0")
        shown = mantissa.lstrip("-").replace(".", "").lstrip("0")
        full = f"{mantissa}{'' if '.' in mantissa else '.'}{digits[len(shown) :]}"
        full += "0" * full.endswith(".")
        return f"{full[len(mantissa) :]}e{wanted.adjusted() - Decimal(full).adjusted()}"
    exponent = wanted.adjusted() - Decimal(mantissa).adjusted()
    spellings = (f"{exponent}", f"{exponent:+}", f"{exponent:03}", f"{exponent:+03}")
    return next((spelled[len(power) :] for spelled in spellings if spelled.startswith(power)), "")
