"""A reader of literals as programs print them: Python's `repr`, JSON, and constructors with named arguments.

Nothing is evaluated. `TextBlock(text='Hi', type='text')` reads as `{"text": "Hi", "type": "text"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.model import Json

_BLANKS = re.compile(r"\s*")
_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"")
_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?(?![\w.])")
_NAME = re.compile(r"[A-Za-z_][\w.]{0,80}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0", "a": "\a", "v": "\v"}
_CONSTANTS: dict[str, tuple[Json, bool]] = {
    "True": (True, True),
    "False": (False, True),
    "None": (None, True),
    "true": (True, False),
    "false": (False, False),
    "null": (None, False),
}
_MOST_DEEP = 24


class _UnreadableError(Exception):
    """What stands there is no literal."""


class LiteralReader:
    """Reads one literal of a text from an offset on.

    Afterwards, `position` is the offset behind it and `failed` tells whether there was none. `pythonic`: something in it
    is written as Python does and JSON does not.
    """

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self.failed = False
        self.pythonic = False

    def read(self) -> Json:
        """The value, or None (see `failed`). Numbers are read as floats: they are looked at by nobody."""
        try:
            return self._value(0)
        except _UnreadableError:
            self.failed = True
            return None

    def read_items(self) -> Iterator[Json]:
        """The items of the list that begins here, one by one, or the only value where there is no list.

        Whoever finds one that he does not want can stop, and spare himself the rest.
        """
        listed = self.text.startswith("[", self.position)
        count = 0
        try:
            while not listed or self._goes_on("]", first=not count):
                yield self._value(1)
                count += 1
                if not listed:
                    return
        except _UnreadableError:
            self.failed = True

    def _value(self, depth: int) -> Json:
        if depth > _MOST_DEEP:
            raise _UnreadableError
        match self.text[self.position : self.position + 1]:
            case "[" | "(" as opener:
                return self._items("]" if opener == "[" else ")", depth)
            case "{":
                return self._members(depth)
            case "'" | '"':
                return self._string()
        if number := _NUMBER.match(self.text, self.position):
            self.position = number.end()
            return float(number[0])
        name = _NAME.match(self.text, self.position)
        if name is None:
            raise _UnreadableError
        self.position = name.end()
        if self.text.startswith("(", self.position):
            self.pythonic = True
            return self._arguments(depth)
        if name[0] not in _CONSTANTS:
            raise _UnreadableError
        value, pythonic = _CONSTANTS[name[0]]
        self.pythonic = self.pythonic or pythonic
        return value

    def _items(self, closer: str, depth: int) -> list[Json]:
        items: list[Json] = []
        while self._goes_on(closer, first=not items):
            items.append(self._value(depth + 1))
        return items

    def _members(self, depth: int) -> dict[str, Json]:
        members: dict[str, Json] = {}
        while self._goes_on("}", first=not members):
            key = self._string()
            self._blanks()
            self._expect(":")
            self._blanks()
            members[key] = self._value(depth + 1)
        return members

    def _arguments(self, depth: int) -> dict[str, Json]:
        arguments: dict[str, Json] = {}
        while self._goes_on(")", first=not arguments):
            name = _NAME.match(self.text, self.position)
            if name is None:
                raise _UnreadableError
            self.position = name.end()
            self._expect("=")
            arguments[name[0]] = self._value(depth + 1)
        return arguments

    def _goes_on(self, closer: str, *, first: bool) -> bool:
        """Whether another item follows; steps over the bracket, the comma and blanks on the way to it."""
        if first:
            self.position += 1
        self._blanks()
        if self.text.startswith(closer, self.position):
            self.position += 1
            return False
        if not first:
            self._expect(",")
            self._blanks()
        return True

    def _string(self) -> str:
        found = _STRING.match(self.text, self.position)
        if found is None:
            raise _UnreadableError
        self.position = found.end()
        self.pythonic = self.pythonic or found[1] is not None
        raw: str = found[1] if found[1] is not None else found[2]
        return _join_surrogates(_ESCAPE.sub(_unescape, raw)) if "\\" in raw else raw

    def _blanks(self) -> None:
        found = _BLANKS.match(self.text, self.position)
        self.position = found.end() if found is not None else self.position

    def _expect(self, wanted: str) -> None:
        if not self.text.startswith(wanted, self.position):
            raise _UnreadableError
        self.position += 1


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _PLAIN.get(escape[4], escape[4])
    number = int(code, 16)
    return chr(number) if number < 0x110000 else escape[0]


def _join_surrogates(text: str) -> str:
    """Two escapes of a UTF-16 unit each, as JSON has them, made one character."""
    if text.isascii() or not re.search(r"[\ud800-\udfff]", text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
