"""JSON Pointers (RFC 6901): values in a decoded body, and their places in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from wirelint.model import Json


def tokens(pointer: str) -> list[str]:
    """Return the reference tokens of a pointer. Raises ValueError if it is malformed."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise ValueError(f"no JSON Pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def escaped(token: str) -> str:
    """Return a member's name as a reference token."""
    return token.replace("~", "~0").replace("/", "~1")


def at(value: object, pointer: str) -> Json:
    """Return the value at a place of a decoded body; None if the place does not exist.

    >>> at({"messages": [{"role": "user"}]}, "/messages/0/role")
    'user'
    """
    for token in tokens(pointer):
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value  # type: ignore[return-value]  # members of JSON are JSON


def document_order(value: object, pointer: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts places of a decoded body: members in the order of the document, items by number.

    Missing places come last, numbers as numbers.

    >>> document_order({"model": "m", "messages": ["a", "b"]}, "/messages/1")
    ((1, ''), (1, ''))
    """
    steps: list[tuple[int, str]] = []
    for token in tokens(pointer if pointer[:1] == "/" else ""):
        place: int | None = None
        if isinstance(value, dict):
            place = next((number for number, name in enumerate(value) if name == token), None)
            value = value.get(token)
        elif token.isdecimal():
            place = int(token)
            value = value[place] if isinstance(value, list) and place < len(value) else None
        else:
            value = None
        steps.append((place, "") if place is not None else (_NOT_THERE, token))
    return tuple(steps)


_NOT_THERE = 1 << 62


# Spans of the value of a JSON Pointer in the text of a body, and of a text within it as JSON spells it.
#
# Only containers on the way are read member by member; the C scanner of the `json` module skips all other values.

_BLANKS = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"?', re.DOTALL)
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
# Numbers stay text: Python refuses an integer of thousands of digits, and no caller uses them.
_scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False).scan_once  # type: ignore[attr-defined]


def locate(text: str, pointer: str) -> tuple[int, int, bool]:
    """Return start and end of the value at a pointer, or of the nearest value around it, and whether it exists.

    Of repeated keys the last counts. A text that is no JSON counts as one value.
    """
    start = skip_blanks(text, 1 if text.startswith("\ufeff") else 0)
    try:
        end = skip_value(text, start)
        for token in tokens(pointer):
            found = _step(text, start, token)
            if found is None:
                return start, end, False
            start, end = found
    except (ValueError, RecursionError):
        return start, len(text), False
    return start, end, True


def spelled(
    text: str, start: int, end: int, wanted: str, span: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """Return the span of a text in the strings of a part of JSON, escapes included; None without a match.

    `span`: the text must be a whole string, and these are the offsets in it that are wanted.
    """
    for at, raw, decoded in _strings(text, start, end) if wanted else ():
        if span is not None and decoded == wanted:
            return _within(raw, at, *span)
        if span is None and (offset := decoded.find(wanted)) >= 0:
            return _within(raw, at, offset, offset + len(wanted))
    return None


def matching(text: str, start: int, end: int, pattern: re.Pattern[str]) -> tuple[int, int] | None:
    """Return the span of a pattern's group `at` in the strings of a part of JSON, as spelled; None without a match."""
    for at, raw, decoded in _strings(text, start, end):
        found = pattern.search(decoded)
        if found is not None:
            return _within(raw, at, *found.span("at"))
    return None


def _within(raw: str, at: int, start: int, end: int) -> tuple[int, int]:
    """Convert offsets in a decoded string to offsets of the text that spells it `raw`, from `at` on."""
    if "\\" not in raw:
        return at + start, at + end
    first = last = None
    for number, unit in enumerate(_UNIT.finditer(raw)):
        if number == start:
            first = unit.start()
        if number == end:
            last = unit.start()
            break
    size = len(raw)
    return at + (size if first is None else first), at + (size if last is None else last)


def _strings(text: str, start: int, end: int) -> Iterator[tuple[int, str, str]]:
    """Yield the strings of a part of JSON: offset, spelling and decoded text."""
    for found in _STRING.finditer(text, start, end):
        raw = found[1]
        decoded = raw
        if "\\" in raw:
            try:
                decoded = scanstring(f'{raw}"', 0, False)[0]
            except ValueError:
                continue
        yield found.start(1), raw, decoded


def _step(text: str, start: int, token: str) -> tuple[int, int] | None:
    """Return the span of a member or element of a container; None if it is missing."""
    found = None
    for member in members(text, start) if text.startswith(("{", "["), start) else ():
        if member.name == token:
            found = member.value, member.end
            if text.startswith("[", start):
                break
    return found


class Member(NamedTuple):
    """A member of an object in a text: `start` is where its name begins, `value` its value, `end` the place after that."""

    name: str
    start: int
    value: int
    end: int


def members(text: str, start: int) -> Iterator[Member]:
    """Yield the members of the object at an offset, or the elements of the array, named by their numbers.

    Raises ValueError where the text is no JSON.
    """
    named, number = text.startswith("{", start), 0
    position = skip_blanks(text, start + 1)
    while text.startswith('"', position) if named else not text.startswith("]", position):
        name, value = str(number), position
        if named:
            name, colon = scanstring(text, position + 1, False)
            value = skip_blanks(text, skip_blanks(text, colon) + 1)
        member = Member(name, position, value, skip_value(text, value))
        yield member
        position = skip_blanks(text, member.end)
        if not text.startswith(",", position):
            break
        position, number = skip_blanks(text, position + 1), number + 1


def skip_value(text: str, start: int) -> int:
    """Return the offset after the JSON value at an offset. Raises ValueError without one."""
    try:
        end: int = _scan(text, start)[1]
    except StopIteration:
        raise ValueError(f"no JSON value at character {start}") from None
    return end


def skip_blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found is not None else position
