"""JSON text followed piece by piece, as it arrives: where it stops being JSON, where a value ends, what comes after it.

Theory of operation. A pushdown automaton over RFC 8259. Runs of characters that cannot change its state (the inside of a
string, white space, the digits of a number) are passed by one regular expression, so a piece costs what it has in tokens,
and nothing is ever read twice. It keeps offsets and a stack of brackets, no text. A subclass may watch the values go by.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*')
_TOKEN_BODY = re.compile(r"[-+.0-9A-Za-z]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_ESCAPABLE = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")
_DEEPEST = 1000
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
    """`feed` it with the pieces of a text; what it has found stands in its fields, as offsets in the whole text.

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
        """Whether more text could not tell anything more."""
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

    # What a subclass may watch. A value is announced by its first character, a key by its raw text.

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
            if _NUMBER.fullmatch(self._token) or self._token in _LITERALS.values():
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
            self.lost = len(self._stack) > _DEEPEST
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
    """How many characters of an unfinished number or literal are right."""
    literal = _LITERALS.get(token[:1])
    if literal is None:
        return _NUMBER_BEGUN.match(token).end()  # type: ignore[union-attr]
    count = 0
    for given, wanted in zip(token, literal, strict=False):
        if given != wanted:
            break
        count += 1
    return count
