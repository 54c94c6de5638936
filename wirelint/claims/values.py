"""Numbers of a text with their units: `22 °C`, `$1,234.50`, `0.92 EUR`, `9 million`; dates and times of day.

A number that is part of a name, an id, a version, a date or a time of day (`order-123`, `v1.2`, `2026-05-01`, `14:05`) is
no value, and neither is the number of a list item. A decimal comma and a comma between thousands look alike (`1,234`), so
a value has one or two readings. The unit is before or after the number (`lexicon/units.toml`).

A date has a day and a month (`lexicon/dates.toml`), and perhaps a year. `03/04/2025` has two readings.
"""

from __future__ import annotations

import itertools
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


# --- dates and times of day -------------------------------------------------------------------------------------------


class Date(NamedTuple):
    """A date of a text. `year`: 0 if the text gives none."""

    start: int
    end: int
    year: int
    month: int
    day: int

    def agrees(self, other: Date) -> bool:
        """Return True if two dates are the same day, as far as both give it."""
        years = self.year == other.year or not self.year or not other.year
        return years and (self.month, self.day) == (other.month, other.day)


@cache
def _dated() -> tuple[re.Pattern[str], dict[str, int]]:
    """Return the form of dates, and the months by name."""
    rows = lexicon.load("dates")["months"]
    months = {name: number for number, row in enumerate(rows, 1) for name in row.split()}
    name = "|".join(sorted(months, key=len, reverse=True))
    day = r"(?<![\d.,/:-])(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?"
    year = r"(?P<year{0}>(?:1[5-9]|20)\d\d)(?!\d)"
    return re.compile(
        r"(?P<year1>\d{4})-(?P<month1>\d\d)-(?P<day1>\d\d)(?![\d-])"
        rf"|{day.format(2)} (?:of |de )?(?P<name2>{name})\.?(?!\w)(?:,? (?:de )?{year.format(2)})?"
        rf"|(?<!\w)(?P<name3>{name})\.? {day.format(3)}(?![\d:.]\d)(?:,? {year.format(3)})?"
        rf"|(?<![\d./-])(?P<one>\d{{1,2}})[./](?P<other>\d{{1,2}})[./]{year.format(4)}"
        r"|(?:(?P<year5>\d{4})[年년] ?)?(?P<month5>\d{1,2})[月월] ?(?P<day5>\d{1,2})[日일]",
        re.IGNORECASE,
    ), months


@remembered
def dates(text: str) -> tuple[Date, ...]:
    """Return the dates of a text, in order; two for `03/04/2025`. Of a long text those of its beginning."""
    pattern, months = _dated()
    found: list[Date] = []
    for match in itertools.islice(pattern.finditer(text[:LONGEST]), _MOST):
        given = {key.rstrip("12345"): value for key, value in match.groupdict().items() if value is not None}
        year = int(given.get("year", 0))
        if "name" in given:
            days = [(months[given["name"].lower()], int(given["day"]))]
        elif "one" in given:
            one, other = int(given["one"]), int(given["other"])
            days = [(other, one), (one, other)]
        else:
            days = [(int(given["month"]), int(given["day"]))]
        found += [
            Date(match.start(), match.end(), year, month, day) for month, day in days if month <= 12 and 0 < day <= 31
        ]
    return tuple(found)


_CLOCK = re.compile(
    r"(?<![\d:.,+-])(?P<hour>[01]?\d|2[0-4])[:h](?P<minute>[0-5]\d)(?!\d|:\d\d:)(?: ?(?P<half>[ap])\.?m\b)?",
    re.IGNORECASE,
)


class Clock(NamedTuple):
    """A time of day of a text, in minutes after midnight."""

    start: int
    end: int
    minutes: int


@remembered
def clocks(text: str) -> tuple[Clock, ...]:
    """Return the times of day of a text, in order: `14:05`, `2:05 pm`, and that of `2025-05-01T14:05:00`."""
    found = []
    for match in itertools.islice(_CLOCK.finditer(text[:LONGEST]), _MOST):
        hour, half = int(match["hour"]), (match["half"] or "").lower()
        hour = hour % 12 + 12 * (half == "p") if half else hour
        found.append(Clock(match.start(), match.end(), hour * 60 + int(match["minute"])))
    return tuple(found)
