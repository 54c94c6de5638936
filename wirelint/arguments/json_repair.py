"""Damaged JSON brought in order, and proof that nothing was made up or lost on the way.

Theory of operation. Two readers propose what a damaged text says: our own, which knows the defects that need no guess,
and a repair library, which knows many more and guesses. A proposal counts only when the text spells it: walked through
beside it, the text holds every key and every scalar of the proposal in order, with its brackets and colons, and between
them nothing but commas, quotes and white space. What was cut off is not completed, and nothing is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import json_repair

from wirelint.arguments.json_continuation import same
from wirelint.dialects import jsontext
from wirelint.jsonvalues import Json

_MOST_GUESSED = 64 << 10
"""Characters up to which the library is asked: it reads a few hundred kilobytes a second."""
_SPACE = " \t\r\n"
_FILLING = re.compile(r"[\s,]*")
_BLANK = re.compile(r"\s*")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])")
_WORD = re.compile(r"\w+")
_WORDS = {True: ("true", "True", "TRUE"), False: ("false", "False", "FALSE"), None: ("null", "None", "NULL")}
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_UNIT = re.compile(r"\\u([0-9a-fA-F]{4})")
_DEEPEST = 64


def mended(text: str) -> dict[str, Json] | None:
    """The object that a damaged text spells; None when it spells none, or only with something added or left out."""
    text = text.strip(_SPACE)
    if not text.startswith("{"):
        return None
    return next((value for value in _proposals(text) if isinstance(value, dict) and spells(text, value)), None)


def _proposals(text: str) -> Iterator[Json]:
    own = jsontext.repair(text)
    if own is not None and not own.missing:
        yield own.value
    if len(text) <= _MOST_GUESSED:
        try:
            proposed: Json = json_repair.loads(text, skip_json_loads=True)  # type: ignore[assignment]
        except (ValueError, RecursionError):  # nested too deep for it
            return
        yield proposed


def spells(text: str, value: Json) -> bool:
    """Whether a text says this value, whatever is wrong with its punctuation; surplus brackets at its end say nothing."""
    reading = _Reading(text)
    try:
        reading.value(value, 0)
    except _OtherwiseError:
        return False
    return not text[reading.place :].strip(f"}}],{_SPACE}")


class _OtherwiseError(Exception):
    pass


class _Reading:
    """Walks through a text in which a known value is expected."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def value(self, value: Json, depth: int) -> None:
        if depth > _DEEPEST:
            raise _OtherwiseError
        self._pass(_BLANK)
        match value:
            case dict():
                self._take("{")
                for key, inner in value.items():
                    self._pass(_FILLING)
                    self._key(key)
                    self._pass(_BLANK)
                    self._take(":")
                    self.value(inner, depth + 1)
                self._pass(_FILLING)
                self._take("}")
            case list():
                self._take("[")
                for inner in value:
                    self._pass(_FILLING)
                    self.value(inner, depth + 1)
                self._pass(_FILLING)
                self._take("]")
            case str():
                self._string(value)
            case bool() | None:
                self._word(_WORDS[value])
            case _:
                self._number(value)

    def _pass(self, filling: re.Pattern[str]) -> None:
        self.place = filling.match(self.text, self.place).end()  # type: ignore[union-attr]

    def _take(self, character: str) -> None:
        if not self.text.startswith(character, self.place):
            raise _OtherwiseError
        self.place += len(character)

    def _word(self, words: tuple[str, ...]) -> None:
        found = _WORD.match(self.text, self.place)
        if found is None or found[0] not in words:
            raise _OtherwiseError
        self.place = found.end()

    def _number(self, value: float) -> None:
        found = _NUMBER.match(self.text, self.place)
        if found is None:
            raise _OtherwiseError
        digits = found[0].lstrip("+")
        read: Json = int(digits) if re.fullmatch(r"-?[0-9]{1,400}", digits) else float(digits)
        if not same(read, value):
            raise _OtherwiseError
        self.place = found.end()

    def _key(self, key: str) -> None:
        bare = _BARE_KEY.match(self.text, self.place)
        if bare is None:
            self._string(key)
        elif bare[0] == key:
            self.place = bare.end()
        else:
            raise _OtherwiseError

    def _string(self, value: str) -> None:
        """A quoted string. An escape that JSON does not have stands for itself (`\\d`), but then `\\n` may do so too."""
        closing = _QUOTES.get(self.text[self.place : self.place + 1])
        if closing is None:
            raise _OtherwiseError
        self.place += 1
        said = 0
        unknown = letters = False
        while said < len(value):
            backslash = self.text.find("\\", self.place)
            end = len(self.text) if backslash < 0 else backslash
            size = min(end - self.place, len(value) - said)
            if size:
                piece = self.text[self.place : self.place + size]
                if piece != value[said : said + size] or closing in piece:  # which quote ends it would be a guess
                    raise _OtherwiseError
                self.place += size
                said += size
                continue
            meant, length = self._escape()
            if not value.startswith(meant, said):
                raise _OtherwiseError
            unknown = unknown or len(meant) > 1 or length == 1
            letters = letters or self.text[self.place + 1 : self.place + 2] in tuple("bfnrtu")
            said += len(meant)
            self.place += length
        if unknown and letters:
            raise _OtherwiseError
        self._take(closing)

    def _escape(self) -> tuple[str, int]:
        """What the escape at this place stands for, and its length."""
        unit = _UNIT.match(self.text, self.place)
        if unit is not None:
            code = int(unit[1], 16)
            second = _UNIT.match(self.text, unit.end()) if 0xD800 <= code < 0xDC00 else None
            if second is not None and 0xDC00 <= int(second[1], 16) < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + (int(second[1], 16) - 0xDC00)), 12
            return chr(code), 6
        kind = self.text[self.place + 1 : self.place + 2]
        return (_ESCAPES[kind], 2) if kind in _ESCAPES else (f"\\{kind}", 1 + len(kind))


def unquoted(text: str) -> dict[str, Json] | None:
    """The object in a text that was encoded as a JSON string and lost the quotes: `{\\"city\\":\\"Oslo\\"}`."""
    if not text.lstrip(_SPACE).startswith('{\\"'):
        return None
    try:
        inner = json.loads(f'"{text}"')
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
