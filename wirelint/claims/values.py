"""Numbers of a text with their units: `22 °C`, `$1,234.50`, `0.92 EUR`, `9 million`; dates and times of day.

A number that is part of a name, an id, a version, a date or a time of day (`order-123`, `v1.2`, `2026-05-01`, `14:05`) is
no value, and neither is the number of a list item. A decimal comma and a comma between thousands look alike (`1,234`), so
a value has one or two readings. The unit is before or after the number (`lexicon/units.toml`).

A date has a day and a month (`lexicon/dates.toml`), and perhaps a year. `03/04/2025` has two readings.
"""

from __future__ import annotations

import datetime
import math
import re
import string
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from wirelint import lexicon
from wirelint.text.remembered import remembered

LONGEST = 20_000
"""Characters of a text that are read, which takes up to 20 ms."""
_MOST = 256
"""Values of a text that are read."""
_SPACE = " \u00a0\u202f"
_RANGE = ("-", "–", "—", "to", "bis", "à", "~", "〜")
_BEFORE_ITEM, _DEEPEST_ITEM = "\n \t>*#-", 64
"""Characters before the number of a list item in its line, and their most."""
_DIGITS = (
    rf"\d{{1,3}}(?:[,.'’{_SPACE}]\d{{3}})+(?:[.,]\d{{1,12}})?(?!\d)"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d{1,12})?(?!\d)"  # 1,05,200 in India
    r"|\d{1,18}(?:[.,]\d{1,12})?"
)
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
    def shown(self) -> str:
        """The first reading and the name of the unit."""
        return f"{self.readings[0]:g}" + (f" {self.unit.name}" if self.unit is not None else "")

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
            unit = Unit(name, dimension, factor, offset)  # one for all spellings: units are compared by identity
            for spelled in spellings.split():
                key = spelled.replace("_", " ")
                key = key if len(key) <= 2 else key.lower()
                if dimension == "scale":
                    scales[key] = factor
                else:
                    units[key] = unit
    return units, scales


def unit_of(word: str) -> Unit | None:
    """Return the unit that a word or a symbol names."""
    return _units()[0].get(word if len(word) <= 2 else word.lower())


@cache
def _by_first(table: str) -> dict[str, re.Pattern[str]]:
    """Return the spellings of units or of multipliers by their first character, in lower case, longest first.

    One expression of all 300 spellings takes 5 microseconds at each number.
    """
    keys: dict[str, list[str]] = {}
    for key in sorted(_units()[0] if table == "units" else _units()[1], key=len, reverse=True):
        spelled = re.escape(key).replace(r"\ ", rf"[{_SPACE}]")
        spelled = spelled if len(key) <= 2 else f"(?i:{spelled})"
        spelled += "(?![A-Za-zÀ-ɏ²³])" if key[-1].isascii() and key[-1].isalpha() else ""
        keys.setdefault(key[0].lower(), []).append(spelled)
    return {first: re.compile("|".join(spellings)) for first, spellings in keys.items()}


@cache
def _lead() -> re.Pattern[str]:
    """Return the form of what is before the digits of a value, up to them: `US$ -`."""
    units = _units()[0]
    signs = "|".join(re.escape(key) for key in units if not key[0].isalnum() and key[0] != "°" and key[0] not in "%％")
    money = (key for key, unit in units.items() if unit.name == unit.dimension != "percent")
    codes = "|".join(sorted(key.upper() for key in money if len(key) == 3 and key.isascii() and key.isalpha()))
    return re.compile(
        rf"{_BEFORE}(?P<lead>(?:{signs}|R\$|C\$|A\$|US\$|(?:{codes}|yüzde)(?=[{_SPACE}]))[{_SPACE}]?)?(?P<sign>[-−])?\Z"
    )


@remembered
def values(text: str) -> tuple[Value, ...]:
    """Return the values of a text, in order; of a long text those of its beginning."""
    text = text[:LONGEST]
    before = _lead()
    found: list[Value] = []
    done = 0
    # From digit to digit: a search for the whole form takes ten times as long.
    for run in _RUN.finditer(text):
        start = run.start()
        if start < done or text[start - 1 : start] in _NAMING:
            continue
        if len(found) == _MOST:
            break
        digits = _FIGURES.match(text, start)
        read = _measured(text, digits.end()) if digits is not None else None
        if digits is None or read is None:
            continue
        lead = before.search(text, max(start - _LONGEST_LEAD, 0), start)
        if lead is not None:
            done = read[2]
            if (value := _value(text, lead, digits[0], *read)) is not None:
                found.append(value)
    return tuple(_with_ranges(text, _joined(text, found)))


def _joined(text: str, found: list[Value]) -> list[Value]:
    """Join the two parts of a number like `1억 3,200만` or `12万750`, and of a measure like `2 h 50 min`.

    The numbers of `6 h 10` are not joined, because it may be a time of day.
    """
    for number in range(len(found) - 1, 0, -1):
        one, other = found[number - 1 : number + 1]
        between = text[one.end : other.start]
        if text[one.start : one.end].rstrip()[-1:] in _LARGE_UNITS and not between.strip() and len(between) < 2:
            readings = (one.readings[0] + other.readings[0],)
            found[number - 1 : number + 1] = [other._replace(start=one.start, readings=readings)]
        elif (measure := _in_two_units(one, other, between)) is not None:
            found[number - 1 : number + 1] = [measure]
    return found


def _in_two_units(one: Value, other: Value, between: str) -> Value | None:
    """Return the measure of which two values are the parts, in the smaller unit; None if they are two measures."""
    larger, smaller = one.unit, other.unit
    if larger is None or not one.is_whole or between.strip(_SPACE) not in _JOINTS:
        return None
    if smaller is None or smaller.dimension != larger.dimension or larger.offset or smaller.offset:
        return None
    rest, factor = other.readings[0], larger.factor / smaller.factor
    if not 0 <= rest < factor:
        return None
    return other._replace(start=one.start, readings=(one.readings[0] * factor + rest,), unit=smaller)


_BETWEEN = re.compile(r"(?<!\w)(?i:between|zwischen|entre|tra|fra|tussen|między|mellan|mellem|между) ?\Z")
_JOINTS = ("", ",", "and", "und", "et", "y", "e", "en", "i", "ve", "och", "og", "и")
_LARGE_UNITS = frozenset("억億亿万萬만")


_RUN = re.compile(r"\d+")
_FIGURES = re.compile(_DIGITS)
_NAMING = frozenset(f"{string.ascii_letters}{string.digits}_./#@\\&")
"""Characters before the digits of a name, a path or an id."""
_NO_END = re.compile(r"[A-Za-z0-9_@#]|[.,/:]\d|-\w")
"""What follows the digits of a name, a date, a version or a longer number."""
_PER = re.compile(r"/(?:s|sec|min|h|hr|kg|m|l|L|mL|dl|dL|100)\b")
FIRST_UNSPACED = "\u3040"
"""The first sign of the scripts that put no blanks between words: in `1時間20分` the number goes on after its unit."""
_LONGEST_LEAD = 6
"""Characters of `US$ -`, with which a value may begin."""


def _measured(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the multiplier and the unit after digits, and the end of the value; None if the digits are no value."""
    scale = _spelled("scales", text, at, _SPACE)
    after = at if scale is None else scale.end()
    unit = _spelled("units", text, after, _SPACE + "-")
    if unit is not None and (_NO_END.match(text, unit.end()) is None or unit[0][-1] >= FIRST_UNSPACED):
        return "" if scale is None else scale[0], unit[0], unit.end()
    if scale is not None and (scale[0] in _LARGE_UNITS or _NO_END.match(text, after) is None):
        return scale[0], "", after
    return ("", "", at) if _NO_END.match(text, at) is None else None


def _spelled(table: str, text: str, at: int, joints: str) -> re.Match[str] | None:
    for start in (at + 1, at) if text[at : at + 1] in joints and at < len(text) else (at,):
        options = _by_first(table).get(text[start : start + 1].lower())
        if options is not None and (found := options.match(text, start)) is not None:
            return found
    return None


def _value(text: str, lead: re.Match[str], digits: str, scaled: str, spelled: str, end: int) -> Value | None:
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return None  # `0112` is a name
    plain = lead["lead"] is None and not spelled and not scaled
    if plain and text[end : end + 1] in (".", ")") and _begins_item(text, lead.end()):
        return None
    scale = _units()[1].get((scaled if len(scaled) <= 2 else scaled.lower()), 1.0) if scaled else 1.0
    spelled = spelled or (lead["lead"] or "").strip(_SPACE)
    unit = unit_of(spelled.replace("\u00a0", " ").replace("\u202f", " ")) if spelled else None
    if unit is not None and unit.dimension in ("length", "mass") and _PER.match(text, end):
        unit = None  # `549 km/s`: another unit, which is not in the table
    readings, decimals = _readings(digits)
    sign = -1.0 if lead["sign"] else 1.0
    amounts = tuple(sign * reading * scale for reading in readings)
    return Value(lead.start(), end, amounts, scale * 10.0**-decimals, unit)


def _begins_item(text: str, at: int) -> bool:
    """Return True if only marks of lists and quotes are before an offset in its line."""
    start = max(at - _DEEPEST_ITEM, 0)
    line = text.rfind("\n", start, at)
    return (line >= 0 or start == 0) and not text[max(line, start) : at].strip(_BEFORE_ITEM)


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
        between = text[value.end : following.start].strip(_SPACE) if following is not None else ""
        led = _BETWEEN.search(text, max(value.start - 2 * _LONGEST_LEAD, 0), value.start)
        goes_on = following is not None and (between in _RANGE or (between in _JOINTS and led is not None))
        if goes_on and following is not None and value.unit is None:
            value = value._replace(unit=following.unit)
        yield value._replace(ranges=goes_on or joined)
        joined = goes_on


def same(one: float, other: float, tolerance: float) -> bool:
    """Return True if two amounts are equal up to a tolerance, and up to the precision of floats."""
    return abs(one - other) <= tolerance * 1.000001 + 1e-9 * max(abs(one), abs(other), 1.0) and math.isfinite(other)


_NUMERALS = dict(
    zip(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        range(2, 13),
        strict=True,
    )
)
NUMERALS = "|".join(_NUMERALS)
"""The expression of the English words for numbers."""
_WHOLE = re.compile(rf"(?i)(?<![\w.,:-])(?:\d{{1,6}}|{NUMERALS})(?![\w.,:-]*\d|\w)")


def whole_numbers(text: str) -> set[int]:
    """Return the whole numbers of a text in figures or English words: `all eight parents`."""
    return {whole_number(one) for one in _WHOLE.findall(text)}


def whole_number(figures_or_word: str) -> int:
    word = figures_or_word.lower()
    return 1 if word == "one" else _NUMERALS.get(word) or int(word)


# --- dates and times of day -------------------------------------------------------------------------------------------


class Date(NamedTuple):
    """A date of a text. `year`: 0 if the text gives none."""

    start: int
    end: int
    year: int
    month: int
    day: int

    @property
    def given(self) -> tuple[int, ...]:
        return self.year, self.month, self.day

    @property
    def weekday(self) -> int | None:
        """The day of the week, 0 for Monday; None for no day of the calendar."""
        try:
            return datetime.date(self.year, self.month, self.day).weekday()
        except ValueError:
            return None

    def agrees(self, other: Date) -> bool:
        """Return True if two dates are the same day, as far as both give it."""
        years = self.year == other.year or not self.year or not other.year
        return years and (self.month, self.day) == (other.month, other.day)


@cache
def _dated() -> tuple[re.Pattern[str], dict[str, int]]:
    """Return the form of dates from their first digit on, and the months by name."""
    rows = lexicon.load("dates")["months"]
    months = {name: number for number, row in enumerate(rows, 1) for name in row.split()}
    name = "|".join(sorted(months, key=len, reverse=True))
    ordinal, year = r"(?:st|nd|rd|th|er|º|\.)?", r"(?P<year{0}>(?:1[5-9]|20)\d\d)(?!\d)"
    return re.compile(
        r"(?P<year1>\d{4})-(?P<month1>\d\d)-(?P<day1>\d\d)(?![\d-])"
        rf"|(?P<day2>\d{{1,2}}){ordinal} (?:of |de )?(?P<name2>{name})\.?(?!\w)(?:,? (?:de )?{year.format(2)})?"
        rf"|(?P<one>\d{{1,2}})[./](?P<other>\d{{1,2}})[./]{year.format(4)}"
        r"|(?:(?P<year5>\d{4})[年년] ?)?(?P<month5>\d{1,2})[月월] ?(?P<day5>\d{1,2})[日일]"
        rf"|(?P<day3>\d{{1,2}}){ordinal}(?![\d:.,]\d)(?:,? {year.format(3)})?",
        re.IGNORECASE,
    ), months


@cache
def weekdays() -> tuple[dict[str, int], re.Pattern[str]]:
    """Return the days of the week by name, 0 for Monday, and the form of their names."""
    names = {name: day for day, row in enumerate(lexicon.load("dates")["weekdays"]) for name in row.split()}
    spaced = "|".join(sorted((name for name in names if name[0] < FIRST_UNSPACED), key=len, reverse=True))
    unspaced = "|".join(sorted((name for name in names if name[0] >= FIRST_UNSPACED), key=len, reverse=True))
    return names, re.compile(rf"(?<!\w)(?:{spaced})(?!\w)|{unspaced}", re.IGNORECASE)


@remembered
def dates(text: str) -> tuple[Date, ...]:
    """Return the dates of a text, in order; two for `03/04/2025`. Of a long text those of its beginning."""
    return tuple(_read_dates(text[:LONGEST]))


def _read_dates(text: str) -> Iterator[Date]:
    if _MAY_BE_DATED.search(text) is None and _MAY_BE_NAMED.search(text) is None:
        return
    pattern, months = _dated()
    done = 0
    for digit in _RUN.finditer(text):
        start = digit.start()
        if start < done or digit.end() - start not in (1, 2, 4):
            continue
        joined = text[start - 1 : start] in _JOINED and not (start - 1 == done > 0 and text[done] == "/")
        if joined and text[start - 1] != ",":
            continue  # but for the end of `2026-04-01/2027-03-31`
        match = pattern.match(text, start)
        if match is None or (joined and match["year1"] is None):
            continue  # `Pils,2025-01-21` of CSV, and not `2,21 May`
        given = {key.rstrip("12345"): value for key, value in match.groupdict().items() if value is not None}
        if match["day3"] is not None:  # `March 3`: the name is before the number
            named = _NAME_BEFORE.search(text, max(start - _LONGEST_NAME, 0), start)
            if named is None or (given.setdefault("name", named[1].lower())) not in months:
                continue
            start = named.start()
        days = [(int(given.get("month", 0)) or months.get(given.get("name", "").lower(), 0), int(given.get("day", 0)))]
        if "one" in given:
            one, other = int(given["one"]), int(given["other"])
            days = [(other, one), (one, other)]
        year, done = int(given.get("year", 0)), match.end()
        yield from (Date(start, done, year, month, day) for month, day in days if 0 < month <= 12 and 0 < day <= 31)


_MAY_BE_DATED = re.compile(r"[0-9](?:[-./年년月월]|(?:st|nd|rd|th|er|º)? (?:of |de )?[^\W\d_]{3})")
_MAY_BE_NAMED = re.compile(r" [0-9](?<=[^\W\d_] [0-9])| [0-9](?<=[^\W\d_]\. [0-9])")
_JOINED = frozenset(".,/:-")
"""Characters before a number that is a part of a longer one."""
_NAME_BEFORE = re.compile(r"(?<!\w)([^\W\d_]{3,12})\.? \Z")
_LONGEST_NAME = 14

_MINUTES = re.compile(
    r"(?::| ?h ?)(?P<minutes>[0-5][0-9])(?!\d|:\d\d:| ?min)(?: ?(?P<half>[ap])\.?m\b)?"
    r"|(?:時|点|點|시) ?(?P<signs>[0-5]?[0-9])(?:分|분)",
    re.ASCII,
)
"""`:05`, and in French `h05`, and ` h 05` after an hour of two digits or `à `: else it is rather a duration; `時05分`."""
_HOUR = re.compile(r"(?<![\d:.,+])(?:[01]?\d|2[0-4])\Z", re.ASCII)
_SPAN = re.compile(r"(?<![\dT:-])\d{1,2}:\d\d-\Z")
"""The first half of `12:00-16:00`."""


_AT = re.compile(r"(?i)(?<!\w)(?:à|vers|dès|avant|après|de) \Z")
_NEAR_HOUR = 8
"""Characters before an hour that may say that it is one: `à 9 h 10`."""


class Clock(NamedTuple):
    """A time of day of a text, in minutes after midnight. `exact`: it is of one half of the day: `2:05 pm`, `14:05`."""

    start: int
    end: int
    minutes: int
    exact: bool = False

    @property
    def given(self) -> tuple[int, ...]:
        return (self.minutes,)

    @property
    def possible(self) -> frozenset[int]:
        """The minutes after midnight that may be meant: two of `1:45`."""
        return frozenset({self.minutes} if self.exact else {self.minutes, (self.minutes + _HALF_DAY) % (2 * _HALF_DAY)})


_HALF_DAY = 12 * 60


@remembered
def clocks(text: str) -> tuple[Clock, ...]:
    """Return the times of day of a text, in order: `14:05`, `2:05 pm`, and that of `2025-05-01T14:05:00`."""
    return tuple(_read_clocks(text[:LONGEST]))


def _read_clocks(text: str) -> Iterator[Clock]:
    for match in _MINUTES.finditer(text):
        hour = _HOUR.search(text, max(match.start() - 2, 0), match.start())
        if (
            hour is not None
            and text[hour.start() - 1 : hour.start()] == "-"
            and not _SPAN.search(text, max(hour.start() - 8, 0), hour.start())
        ):
            continue  # an offset, as of `T12:10:00-05:00`
        is_sure = hour is not None and (len(hour[0]) > 1 or " " not in match[0][:2])
        if hour is not None and (is_sure or _AT.search(text, max(hour.start() - _NEAR_HOUR, 0), hour.start())):
            half = match["half"]
            hours = int(hour[0]) % 12 + 12 * (half == "p") if half else int(hour[0])
            exact = half is not None or hours > 12 or hour[0].startswith("0")
            yield Clock(hour.start(), match.end(), hours * 60 + int(match["minutes"] or match["signs"]), exact)


def without_moments(text: str) -> list[Value]:
    """Return the values of a text that are no part of a date or a time of day."""
    moments = [one for read in (dates, clocks) for one in read(text)]
    return [
        one
        for one in values(text)
        if not any(at.start <= one.start < at.end for at in moments)
        and (one.unit is not None or _OCLOCK.match(text, one.end) is None)  # not "11,00 € am Tag"
    ]


_OCLOCK = re.compile(r" ?(?:[ap]\.?m\b|Uhr\b|uur\b|[hH]rs\b|o['’]clock\b|時(?!間)|点|시(?!간))")
"""What follows an hour: `11 am`."""


def ends_with_hour(text: str) -> bool:
    """Return True if one of the last two words of a text is an hour: "an hour and", before "25 minutes"."""
    units = (unit_of(word) for word in text[-_TWO_WORDS:].split()[-2:])
    return any(unit is not None and unit.name == "h" for unit in units)


_TWO_WORDS = 32
