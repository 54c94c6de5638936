"""JSON inside running text: the end of a value, and the most likely reading of a damaged one.

`decode_at` finds the end of a value by parsing it, so that a marker inside a string stays data. `repair` reads the
defects that models and gateways really produce (single quotes, Python literals, trailing commas, raw control
characters, missing or surplus brackets) and no other, which would need a guess about content.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

import orjson

from wirelint.model import Json

_FIRST_WINDOW = 512
_DEEPEST = 64
_SURE_DIGITS = 18  # of which each number fits into 64 bits
_LONGEST_TOKEN = 12  # characters at the end of a window that may be the cut half of a literal or of an escape


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value, the offset after it, and whether it was valid JSON.

    `missing`: the number of brackets that are missing at the end. `failed`: no value; the text was read up to `end`.
    """

    value: Json
    end: int
    healthy: bool = True
    missing: int = 0
    failed: bool = False


def decode_at(text: str, start: int) -> Decoded:
    """Decode the JSON value at `start`; raw control characters in strings and NaN pass as unhealthy."""
    size = _FIRST_WINDOW
    while True:
        # A window instead of the whole text: `JSONDecodeError` counts the lines of all its input, so an error would cost
        # more than was read.
        window = text[start : start + size]
        whole = start + size >= len(text)
        try:
            value, end = _DECODER.raw_decode(window)
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated string") or error.pos >= len(window) - _LONGEST_TOKEN
            if whole or not cut:
                return Decoded(None, start + (len(window) if cut else error.pos), healthy=False, failed=True)
        except (ValueError, RecursionError):  # thousands of digits; thousands of brackets
            return Decoded(None, start + len(window), healthy=False, failed=True)
        else:
            try:
                return Decoded(orjson.loads(window[:end]), start + end)
            except orjson.JSONDecodeError:
                return Decoded(value, start + end, healthy=False)
        size *= 8


def loads(text: str) -> Json:
    """Decode strict JSON. Integers beyond 64 bits, NaN and infinities are refused.

    Raises:
        ValueError: the text is not such a document.
    """
    try:
        value: Json = json.loads(text, parse_constant=_finite, parse_float=_finite)
        orjson.dumps(value)  # refuses an integer beyond 64 bits
    except (RecursionError, TypeError) as error:
        raise ValueError(str(error)) from error
    return value


def writable(value: Json) -> bool:
    """Return True if a value can be written as JSON: no lone surrogates, no excessive depth."""
    try:
        return bool(orjson.dumps(value))
    except TypeError:
        return False


def repair(text: str) -> Decoded | None:
    """Read the damaged object or array at the start of a text; None if that needs a guess."""
    reader = _TolerantReader(text)
    try:
        return Decoded(reader.value(), reader.position, healthy=False, missing=reader.missing)
    except ValueError:
        return None


def repair_whole(text: str) -> Decoded | None:
    """Read a damaged object or array that is all of a text, without missing brackets; None if it is none."""
    repaired = repair(text)
    return repaired if repaired is not None and not repaired.missing and repaired.end == len(text) else None


def whole_value(text: str) -> Json:
    """Return the JSON value that is all of a text, healthy or damaged; None without one."""
    decoded = decode_at(text, 0)
    found = repair_whole(text) if decoded.failed else decoded
    return found.value if found is not None and found.end == len(text) else None


_STRING = re.compile(r"""\"[^"\\]*+(?:\\.[^"\\]*+)*+\"|'[^'\\]*+(?:\\.[^'\\]*+)*+'""", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])|-?[A-Za-z]+")
_SPACE = re.compile(r"\s*")
_LITERALS: dict[str, Json] = {"true": True, "True": True, "false": False, "False": False}
_LITERALS |= dict.fromkeys(("null", "None", "NaN", "Infinity", "-Infinity"))
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}


class _TolerantReader:
    """A reader of JSON-like text, linear in it. It raises ValueError if the text needs a guess.

    `missing`: the number of brackets that are missing at the end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.missing = 0
        self._arrays = 0  # that are open

    def _peek(self) -> str:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        return self.text[self.position : self.position + 1]

    def value(self, depth: int = 0) -> Json:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        match self._peek():
            case "{":
                found: dict[str, Json] = {}
                self.position += 1
                while not self._closes("}"):
                    key = self._string()
                    if self._peek() != ":":
                        raise ValueError("no colon")
                    self.position += 1
                    found[key] = self.value(depth + 1)
                    self._separator("}")
                return found
            case "[":
                items: list[Json] = []
                self.position += 1
                self._arrays += 1
                while not self._closes("]"):
                    items.append(self.value(depth + 1))
                    self._separator("]")
                self._arrays -= 1
                return items
            case '"' | "'":
                return self._string()
            case _:
                return self._scalar()

    def _closes(self, bracket: str, *, read: bool = True) -> bool:
        """Return True at a bracket, and `read` it; also where it is missing, before the bracket of an outer array."""
        character = self._peek()
        if character == bracket:
            self.position += read
        elif not character or (character == "]" and bracket == "}" and self._arrays):
            self.missing += read
        else:
            return False
        return True

    def _separator(self, bracket: str) -> None:
        if self._peek() == ",":
            self.position += 1
        elif not self._closes(bracket, read=False):
            raise ValueError("no separator")

    def _string(self) -> str:
        match = _STRING.match(self.text, self.position) if self._peek() else None
        if match is None:
            raise ValueError("no string")
        self.position = match.end()
        return _ESCAPE.sub(unescape, match[0][1:-1])

    def _scalar(self) -> Json:
        match = _SCALAR.match(self.text, self.position)
        if match is None:
            raise ValueError("no value")
        self.position = match.end()
        word = match[0]
        if word in _LITERALS:
            return _LITERALS[word]
        if word.lstrip("-")[0].isalpha():
            raise ValueError("an unknown word")
        return int(word) if word.isdigit() and len(word) < _SURE_DIGITS else loads(word)


def unescape(match: re.Match[str]) -> str:
    """Return the character of a JSON escape; its groups are the units of `\\u`, or the character after the backslash."""
    if match[1]:
        return bytes.fromhex(match[1].replace("\\u", "")).decode("utf-16-be", errors="replace")
    return _ESCAPES.get(match[2], match[0])  # `\d` of an unescaped regular expression is kept


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(written)
    return number


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
