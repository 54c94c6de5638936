"""Numbers of a text with their units: `22 °C`, `$1,234.50`, `0.92 EUR`, `9 million`.

A number that is part of a name, an id, a version, a date or a time of day (`order-123`, `v1.2`, `2026-05-01`, `14:05`) is
no value, and neither is the number of a list item. A decimal comma and a comma between thousands look alike (`1,234`), so
a value has one or two readings. The unit is before or after the number (`lexicon/units.toml`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from wirelint import lexicon
from wirelint.text.remembered import remembered

LONGEST = 20_000
"""Characters of a text that are read, which takes up to 20 ms."""
_MOST = 500
"""Values of a text that are read."""
_SPACE = " \u00a0\u202f"
_RANGE = ("-", "–", "—", "to", "bis", "à", "~", "〜")
_LIST_ITEM = re.compile(r"(?:\A|\n)[ \t>*#-]*\Z")
_DIGITS = rf"\d{{1,3}}(?:[,.'’{_SPACE}]\d{{3}})+(?:[.,]\d{{1,8}})?(?!\d)|\d{{1,18}}(?:[.,]\d{{1,8}})?"
_BEFORE = rf"(?<![A-Za-z0-9_./#@\\&])(?<!\d[,:{_SPACE}])(?<!\w[-:])"


class Unit(NamedTuple):
    """A unit: the dimension that it measures, and its conversion to the first unit of that dimension."""

    name: str
    dimension: str
    factor: float
    offset: float


class Value(NamedTuple):
    """A number of a text. `readings`: its possible amounts. `step`: the amount of its last digit: 0.1 in `22.5`."""

    start: int
    end: int
    readings: tuple[float, ...]
    step: float
    unit: Unit | None
    ranges: bool = False
    """True for both ends of a range: `5-7 days`."""

    @property
    def is_whole(self) -> bool:
        return self.step >= 1

    def amounts(self) -> Iterator[float]:
        """Yield the readings in the first unit of the dimension."""
        for reading in self.readings:
            yield reading if self.unit is None else reading * self.unit.factor + self.unit.offset

    @property
    def tolerance(self) -> float:
        """The amount of the last digit in the first unit of the dimension."""
        return self.step * (1.0 if self.unit is None else self.unit.factor)


@cache
def _units() -> tuple[dict[str, Unit], dict[str, float]]:
    """Return units by spelling, and multipliers (`million`) by spelling."""
    units: dict[str, Unit] = {}
    scales: dict[str, float] = {}
    for dimension, rows in lexicon.load("units").items():
        for name, (factor, offset, spellings) in rows.items():
            for spelled in spellings.split():
                key = spelled.replace("_", " ")
                key = key if len(key) <= 2 else key.lower()
                if dimension == "scale":
                    scales[key] = factor
                else:
                    units[key] = Unit(name, dimension, factor, offset)
    return units, scales


def unit_of(word: str) -> Unit | None:
    """Return the unit that a word or a symbol names."""
    return _units()[0].get(word if len(word) <= 2 else word.lower())


@cache
def _pattern() -> re.Pattern[str]:
    units, scales = _units()

    def options(keys: dict[str, Unit] | dict[str, float]) -> str:
        parts = []
        for key in sorted(keys, key=len, reverse=True):
            spelled = re.escape(key).replace(r"\ ", rf"[{_SPACE}]")
            spelled = spelled if len(key) <= 2 else f"(?i:{spelled})"
            parts.append(spelled + ("(?![A-Za-z²³])" if key[-1].isascii() and key[-1].isalpha() else ""))
        return "|".join(parts)

    signs = "|".join(re.escape(key) for key in units if not key[0].isalnum() and key[0] != "°" and key[0] not in "%％")
    codes = "|".join(sorted(key.upper() for key in units if len(key) == 3 and key.isalpha() and units[key].name == key))
    return re.compile(
        rf"{_BEFORE}(?P<lead>(?:{signs}|R\$|C\$|A\$|US\$|(?:{codes})(?=[{_SPACE}]))[{_SPACE}]?)?(?P<sign>[-−])?(?P<digits>{_DIGITS})"
        rf"(?:[{_SPACE}]?(?P<scale>{options(scales)}))?(?:[{_SPACE}-]?(?P<unit>{options(units)}))?"
        rf"(?![A-Za-z0-9_@#]|[.,/:]\d|-\w)"
    )


@remembered
def values(text: str) -> tuple[Value, ...]:
    """Return the values of a text, in order; of a long text those of its beginning."""
    text = text[:LONGEST]
    found: list[Value] = []
    for match in _pattern().finditer(text):
        if len(found) == _MOST:
            break
        if (value := _value(text, match)) is not None:
            found.append(value)
    return tuple(_with_ranges(text, found))


def _value(text: str, match: re.Match[str]) -> Value | None:
    digits, after = match["digits"], text[match.end() : match.end() + 2]
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return None  # `0112` is a name
    plain = match["lead"] is None and match["unit"] is None and match["scale"] is None
    if plain and after[:1] in (".", ")") and _LIST_ITEM.search(text, 0, match.start("digits")) is not None:
        return None
    scale = _units()[1].get(_key(match["scale"]), 1.0) if match["scale"] else 1.0
    spelled = match["unit"] or (match["lead"] or "").strip(_SPACE)
    unit = unit_of(spelled.replace("\u00a0", " ").replace("\u202f", " ")) if spelled else None
    readings, decimals = _readings(digits)
    sign = -1.0 if match["sign"] else 1.0
    amounts = tuple(sign * reading * scale for reading in readings)
    return Value(match.start(), match.end(), amounts, scale * 10.0**-decimals, unit)


def _key(word: str) -> str:
    return word if len(word) <= 2 else word.lower()


def _readings(digits: str) -> tuple[tuple[float, ...], int]:
    """Return the possible amounts of digits with separators, and the number of decimals of the first one."""
    digits = re.sub(rf"['’{_SPACE}]", "", digits)
    marks = [mark for mark in digits if mark in ",."]
    if not marks:
        return (float(digits),), 0
    last = max(digits.rfind(","), digits.rfind("."))
    decimals = len(digits) - last - 1
    whole = float(re.sub(r"[,.]", "", digits))
    part = float(re.sub(r"[,.]", "", digits[:last]) + "." + digits[last + 1 :])
    if len(marks) > 1 and len(set(marks)) == 1:
        return (whole,), 0
    if len(marks) > 1 or decimals != 3:
        return (part,), decimals
    return ((whole, part), 0) if digits[last] == "," else ((part, whole), decimals)


def _with_ranges(text: str, found: list[Value]) -> Iterator[Value]:
    """Yield the values, with both ends of each range marked; the first end has the unit of the second."""
    joined = False
    for value, following in zip_longest(found, found[1:]):
        goes_on = following is not None and text[value.end : following.start].strip(_SPACE) in _RANGE
        if goes_on and following is not None and value.unit is None:
            value = value._replace(unit=following.unit)
        yield value._replace(ranges=goes_on or joined)
        joined = goes_on


def same(one: float, other: float, tolerance: float) -> bool:
    """Return True if two amounts are equal up to a tolerance, and up to the precision of floats."""
    return abs(one - other) <= tolerance * 1.000001 + 1e-9 * max(abs(one), abs(other), 1.0) and math.isfinite(other)
