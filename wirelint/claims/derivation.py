"""Numbers of tool results, and the values that follow from them.

A *datum* is a number that a tool returned, with the words beside it: keys of JSON, its line. A value is *derived* from data
if it equals, rounds or converts one of them, or is a count, sum, difference, product, ratio or mean of data in one unit. A
date or a time of day is if it is one of those returned, or at a distance that the conversation gives.
"""

from __future__ import annotations

import bisect
import csv
import datetime
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.actions import bare, words_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import (
    LONGEST,
    Clock,
    Date,
    Unit,
    Value,
    clocks,
    dates,
    same,
    unit_of,
    values,
    without_moments,
)
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.text.prose import CODE, QUOTE
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("grounding")
STOP = frozenset(_PHRASES.words("stop"))
"""Words that say nothing about what a number is."""

MOST_DATA = 240
"""Data that are compared. A conversation with more of them is not checked by its numbers."""
_BINARY = tuple(1.024**power for power in (-3, -2, -1, 1, 2, 3))
"""Factors between amounts in units of 1000 and in units of 1024 bytes."""
_NUMBER_OF_LINE = "column "
"""The beginning of the column of a number in a line of text."""
_DEEPEST = 64
"""Levels of a JSON document that are read."""
_COLUMN = 3
"""Numbers without a unit under one key that may have the unit of a sum of them."""
_FEW = 40
"""Number of data in one unit of which sums and ratios of pairs are computed."""
NEAR = 32
"""Characters around a value whose words are compared with those beside a datum."""
_NO_UNITS = frozenset(_PHRASES.words("no_units"))


_TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")


class Datum(NamedTuple):
    """A number of a result. `words`: those beside it. `place`: its JSON pointer, or its line. `column`: its key, or its
    place in the line; `#` for the length of a list. `bare`: the result is this number alone."""

    value: Value
    words: frozenset[str]
    place: str
    column: str
    bare: bool = False


def as_datum(value: Value) -> Datum:
    """Return a value of a text as a datum without words, place and column."""
    return Datum(value, frozenset(), "", "")


@remembered
def data(text: str) -> tuple[Datum, ...]:
    """Return the numbers of a result."""
    document = document_of(text)
    if isinstance(document, (dict, list)):
        return tuple(itertools.islice(_of_json(document, (), frozenset()), MOST_DATA))
    lines = table_lines(text)
    if lines and not any(cell[0].isdigit() for cell in lines[0][1]):
        own = {number for number, _ in lines}
        rest = "\n".join("" if number in own else line for number, line in enumerate(text.splitlines(), 1))
        return tuple(itertools.islice(itertools.chain(_of_table(lines), _of_lines(rest)), MOST_DATA))
    return tuple(itertools.islice(_of_lines(text), MOST_DATA))


def document_of(text: str) -> Json:
    """Return the JSON of a result, with lists of cells as objects: `{"columns": ["id"], "rows": [[1]]}`; None for text."""
    return _with_headings(decode_json(text), 0) if text.lstrip().startswith(("{", "[")) else None


def _with_headings(document: Json, depth: int) -> Json:
    if not isinstance(document, dict) or depth > 1:
        return document
    heads = next((names for cells in document.values() if len(names := _names(cells)) > 1), [])
    if not heads:
        return {key: _with_headings(cells, depth + 1) for key, cells in document.items()}
    return {key: _as_objects(cells, heads) for key, cells in document.items()}


def _names(cells: Json) -> list[str]:
    """Return the texts of a list, or the names of its objects, `[{"name": "id"}]`; nothing for others."""
    listed = cells if isinstance(cells, list) else []
    named = [one.get("name") if isinstance(one, dict) else one for one in listed]
    names = [name for name in named if isinstance(name, str)]
    return names if len(names) == len(named) else []


def _as_objects(rows: Json, heads: Sequence[str]) -> Json:
    cells = [row for row in rows if isinstance(row, list) and len(row) == len(heads)] if isinstance(rows, list) else []
    return [dict(zip(heads, row, strict=True)) for row in cells] if cells and cells == rows else rows


def table_lines(text: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each line of a table with its number: `plan,count`, or columns that blanks align.

    The first line is the heading. Lines before and after it do not count, nor do lines without letters and digits, as
    below a heading, and comments: `# heater set to 48F`.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if _LETTER_OR_DIGIT.search(line)]
    lines = [*lines[:1], *(one for one in lines[1:] if not one[1].startswith("# "))]
    while lines and _FOOTER.fullmatch(lines[-1][1].strip()):
        del lines[-1]
    if not 2 < len(lines) <= _MOST_LINES:
        return []
    shown = [line for _, line in lines]
    for separator in _SEPARATORS:
        if len(lines) <= MOST_ROWS and (cells := _separated(shown, separator)):
            return [(number, row) for (number, _), row in zip(lines, cells, strict=True)]
    # Among other lines only what no prose has: lines between cells (`psql`), and columns.
    first, cells = max(_piped(shown), _aligned(shown), key=_size)
    return [(number, row) for (number, _), row in zip(lines[first:], cells, strict=False)]


_FOOTER = re.compile(r"(?i)\(?\d+ rows?\b[^,;|\t]*|exit code: ?\d+")
"""The last line that a database or a shell adds below a table: `(4 rows)`, `exit code: 0`."""


def _separated(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of lines with equally many of them, all of the heading filled; else nothing."""
    cells = [_cells(line.strip("| "), separator) for line in lines]
    alike = len(cells) > 2 and len(cells[0]) > 1 and {len(row) for row in cells} == {len(cells[0])}
    return cells if alike and all(cells[0]) else []


def _cells(line: str, separator: str) -> list[str]:
    """Return the cells of a line. Those of CSV may be in quotes: `"Ames, Carol",5`."""
    if separator in (",", ";") and '"' in line and len(line) <= LONGEST:  # `csv` refuses cells of 128 KB
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
    return [cell.strip() for cell in re.split(separator, line)]


def _piped(lines: Sequence[str]) -> tuple[int, list[list[str]]]:
    """Return the longest run of lines with equally many cells between `|`, and its first line."""
    best: tuple[int, list[list[str]]] = (0, [])
    for count, run in itertools.groupby(enumerate(lines), key=lambda line: line[1].count("|")):
        block = list(run)
        cells = _separated([line for _, line in block][:MOST_ROWS], r"\|") if count > 0 and len(block) > 2 else []
        best = max(best, (block[0][0], cells), key=_size)
    return best


def _size(found: tuple[int, list[list[str]]]) -> int:
    return sum(map(len, found[1]))


def _aligned(lines: Sequence[str]) -> tuple[int, list[list[str]]]:
    """Return the largest block of lines whose columns stand below one another, three at least, and its first line.

    A column begins behind a place that is blank in all lines, and has a heading. The block ends where a line runs across
    the gap between two headings. A title above the heading may look like one.
    """
    best: tuple[int, list[list[str]]] = (0, [])
    lines = [line[:_WIDEST] for line in lines]
    blank = [int(line.ljust(_WIDEST).encode("ascii", "replace").translate(_BLANK), 2) for line in lines]
    at = 0
    while at < len(lines) - 2:
        common, last = _block(lines[at], blank[at : at + MOST_ROWS])
        cells = _cells_between(lines[at : at + last], common) if last > 2 else []
        best = max(best, (at, cells), key=_size)
        at += 1 if at < _MOST_TITLES else max(last - 1, 1)
    return best


def _block(heading: str, blank: Sequence[int]) -> tuple[int, int]:
    """Return the places that are blank in a heading and the lines below it, as bits, and the number of these lines.

    `blank`: the blank places of the lines, the first character as the highest bit.
    """
    gaps = [range(*gap.span()) for gap in _GAP.finditer(heading.rstrip()) if gap.start() > 0]
    if len(gaps) < _FEWEST_COLUMNS - 1:
        return 0, 0
    between = [sum(1 << (_WIDEST - 1 - at) for at in gap) for gap in gaps]
    common = blank[0]
    for number, places in enumerate(blank[1:], 1):
        if not all(common & places & gap for gap in between):
            return common, number
        common &= places
    return common, len(blank)


def _cells_between(lines: Sequence[str], blank: int) -> list[list[str]]:
    """Return the cells of lines that have common blank places, up to a line whose first two are empty."""
    places = f"{blank:0{_WIDEST}b}"
    starts = [at for at in range(_WIDEST) if places[at] == "0" and (at == 0 or places[at - 1] == "1")]
    edges = [start for start, end in itertools.pairwise([*starts, _WIDEST]) if lines[0][start:end].strip()]
    bounds = list(itertools.pairwise([*edges, _WIDEST]))
    rows = ([line[start:end].strip() for start, end in bounds] for line in lines)
    whole = list(itertools.takewhile(lambda row: bool(row[0] and row[1]), rows))
    return whole if len(whole) > 2 and edges[0] == starts[0] else []


_BLANK = bytes(ord("1" if sign == 32 else "0") for sign in range(256))
_GAP = re.compile(r" {2,}")
MOST_ROWS = 60
_MOST_LINES, _MOST_TITLES, _WIDEST, _FEWEST_COLUMNS = 200, 3, 200, 3
_LETTER_OR_DIGIT, _LETTER = re.compile(r"[^\W_]"), re.compile(r"[^\W\d_]")
_SEPARATORS = (r"\t", r"\|", ",", ";", " {2,}")


def _of_table(lines: Sequence[tuple[int, list[str]]]) -> Iterator[Datum]:
    heading = lines[0][1]
    for number, cells in lines[1:]:
        words = words_in(" ".join(cells))
        for key, cell in zip(heading, cells, strict=True):
            for value in values(cell) if _TIME_OF_DAY.fullmatch(cell) is None else ():
                told = value if value.unit else value._replace(unit=unit_of_key(key))
                yield Datum(told, words | _key_words((key,)), f"line {number}", key)


def _of_lines(text: str, place: str = "", around: frozenset[str] = frozenset(), column: str = "") -> Iterator[Datum]:
    line_start, place_in_line = -1, 0
    for value in values(text):
        start, end = text.rfind("\n", 0, value.start) + 1, text.find("\n", value.end)
        place_in_line = place_in_line + 1 if start == line_start else 0
        line_start = start
        line = text[max(start, value.start - 2 * NEAR) : min(end if end >= 0 else len(text), value.end + 2 * NEAR)]
        number = text.count("\n", 0, value.start) + 1
        bare = value.end - value.start == len(text.strip())
        words = words_in(line) | around
        key = _KEY_BEFORE.search(text, max(value.start - _LONGEST_KEY, start), value.start)
        if key is not None and value.unit is None:
            value = value._replace(unit=unit_of_key(key[1]))
        yield Datum(value, words, place or f"line {number}", column or f"{_NUMBER_OF_LINE}{place_in_line}", bare)


_KEY_BEFORE = re.compile(r"([^\W\d][\w.-]*) ?[=:] ?\Z")
"""The name right before a number: `temp_c=6.5`, `Volume: 12`."""
_LONGEST_KEY = 40


_UNIT = re.compile(r"(?i)unit|uom|einheit|unidad|eenheid|jednostka")
"""A key whose cell is the unit of the numbers beside it."""


def _of_json(document: Json, path: tuple[str, ...], around: frozenset[str]) -> Iterator[Datum]:
    """Yield the numbers of a document. `around`: words of the texts beside it, which name its row."""
    match document:
        case dict() if len(path) < _DEEPEST:
            own = [str(value) for value in document.values() if isinstance(value, str) and len(value) < 2 * NEAR]
            row = around | words_in(" ".join(own))
            stated = next(
                (unit_of(cell) for key, cell in document.items() if isinstance(cell, str) and _UNIT.search(key)), None
            )
            if path and all(isinstance(cell, (int, float)) for cell in document.values()):
                stated = unit_of_key(path[-1])  # `"ingredients_g": {"flour": 4200, "salt": 84}`
            for key, value in document.items():
                inner = (*path, key)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield _scalar(value, inner, row, stated)
                elif isinstance(value, str):
                    if _TIME_OF_DAY.fullmatch(value) is None:  # its hours and minutes are no amounts
                        yield from _of_lines(value, _pointer(inner), row | _key_words(inner), key)
                else:
                    yield from _of_json(value, inner, row)
        case list() if len(path) < _DEEPEST:
            yield Datum(_amount(len(document), None), around | _key_words(path), f"{_pointer(path)} (length)", "#")
            for number, value in enumerate(document[:MOST_DATA]):
                inner = (*path, str(number))
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield _scalar(value, inner, around, None)
                elif isinstance(value, str):
                    yield from _of_lines(value, _pointer(inner), around | _key_words(inner), "")
                else:
                    yield from _of_json(value, inner, around)


def _scalar(number: float, path: tuple[str, ...], row: frozenset[str], stated: Unit | None) -> Datum:
    key = next((part for part in reversed(path) if _LETTER.search(part)), "")  # `2026-07` is a row
    unit = unit_of_key(key) or stated
    return Datum(_amount(number, unit), row | _key_words(path), _pointer(path), key)


@lru_cache(maxsize=1024)
def unit_of_key(key: str) -> Unit | None:
    """Return the unit that a key names, cached for the rows of a list: `price_eur_kg` is in EUR, `last_7_days_mb` in MB."""
    words = name_words(key)
    parts = [word for before, word in zip(("", *words), words, strict=False) if not before.isdigit()]
    if words[-1:] == ("ms",) and not _SPEEDS.isdisjoint(words):
        return unit_of("m/s")  # `gust_ms`
    if len(parts) > 1 and parts[-1] in _PERIODS and (unit := unit_of(parts[0])) is not None and len(parts[0]) > 1:
        return unit  # `minutes_week`
    units = parts[1:] if len(parts) > 1 or len(key) < 2 or key.lower() in _NO_UNITS else parts
    pairs = ("/".join(pair) for pair in itertools.pairwise(units))  # `mg_l`
    return next((found for part in (*pairs, *units) if (found := (unit_of(part) or unit_of(part.upper())))), None)


_PERIODS = frozenset({"hour", "day", "week", "month", "year"})
_SPEEDS = frozenset({"wind", "gust", "speed", "velocity"})


def _amount(number: float, unit: Unit | None) -> Value:
    decimals = len(repr(number).partition(".")[2]) if isinstance(number, float) else 0
    return Value(0, 0, (float(number),), 10.0**-decimals, unit)


def _pointer(path: Iterable[str]) -> str:
    return "".join(f"/{part}" for part in path)


def _key_words(path: Sequence[str]) -> frozenset[str]:
    return _words_of_keys(tuple(part for part in path[-2:] if not part.isdigit()))


@lru_cache(maxsize=1024)
def _words_of_keys(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for key in keys for word in name_words(key)) - STOP


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text, each also without accents, since the names of tools have none."""
    text = text.replace(CODE, " ").replace(QUOTE, " ")
    words = words_of(text) if text.isascii() else words_of(text) | words_of(bare(text))
    return frozenset(word for word in words if len(word) > 2 and not word.isdigit()) - STOP


def derived_from(value: Value, known: Sequence[Datum]) -> list[Datum]:
    """Return the data that a value equals, rounds or converts."""
    return [datum for datum in known if equals(value, datum.value)]


def equals(value: Value, datum: Value) -> bool:
    if value.unit is None or datum.unit is None:
        pairs = itertools.product(value.readings, datum.readings)
        step, exact, converted = value.step, datum.step, False
    elif value.unit.dimension == datum.unit.dimension:
        pairs = itertools.product(value.amounts(), datum.amounts())
        step, exact, converted = value.tolerance, datum.tolerance, value.unit.name != datum.unit.name
    else:
        return False
    # Half of the last digit for rounding, all of it for cutting digits off; a converted number may be rounded twice.
    rounded, cut = (step / 2, step) if exact < step else (0.0, 0.0)
    for one, other in pairs:
        one, other = abs(one), abs(other)
        if same(one, other, max(step, other * 0.01) if converted else rounded) or 0 < other - one < cut:
            return True
        # 1 GB of 1024 MB: between two units there may be 2.4 % for each step.
        in_bytes = converted and value.unit is not None and value.unit.dimension == "bytes"
        if in_bytes and any(same(one * factor, other, step * factor) for factor in _BINARY):
            return True
    # `0.35` as 35 %
    if is_percentage(value) and datum.unit is None:
        return any(same(one, other * 100, value.step / 2) for one in value.readings for other in datum.readings)
    return False


def is_computed(value: Value, known: Sequence[Datum]) -> bool:
    """Return True if a value is a sum, a mean, a difference, a product or a ratio of data, or counts them."""
    if is_percentage(value):
        ratios = [abs(ratio) for ratio in _percentages(known)]
        return any(same(abs(goal), ratio, value.tolerance) for goal in value.amounts() for ratio in ratios)
    factors = (1.0, *_BINARY) if value.unit is not None and value.unit.dimension == "bytes" else (1.0,)
    first = abs(value.readings[0]) or 1.0  # `2.108` is two thousand with a step of 1, or two with one of 0.001
    steps = [value.tolerance * (abs(reading) / first if len(value.readings) > 1 else 1.0) for reading in value.readings]
    goals = list(zip(value.amounts(), steps, strict=True))
    return any(_is_computed(value, goal * factor, step, known) for goal, step in goals for factor in factors)


def _is_computed(value: Value, goal: float, step: float, known: Sequence[Datum]) -> bool:
    columns = Counter(datum.column for datum in known)
    # Of the first numbers of lines, some measured, the bare ones are another thing: `ERROR 408` beside `OK a.pdf 1.2 MB`
    measured = {one.column for one in known if one.value.unit is not None and one.column.startswith(_NUMBER_OF_LINE)}
    is_money = value.unit is not None and value.unit.dimension in MONEY  # amounts often have their currency elsewhere
    kind = [
        datum
        for datum in known
        if is_of_kind(value, datum.value)
        or (
            datum.value.unit is None
            and (is_money or (columns[datum.column] >= _COLUMN and datum.column not in measured))
        )
    ]
    converted = (datum.value.unit not in (None, value.unit) for datum in kind)
    exact = step / 2 if any(converted) or any(datum.value.tolerance < step for datum in kind) else 0.0
    for column in {datum.column for datum in kind} | {None}:
        own = [amount_for(value, datum) for datum in kind if column in (None, datum.column)]
        whole = (sum(own), float(len(own)), max(own) - min(own)) if len(own) > 1 else ()
        if any(same(goal, one, exact) for one in whole) or (whole and same(goal, sum(own) / len(own), step / 2)):
            return True
        if column is not None and len(own) >= _COLUMN and same(goal, (max(own) - min(own)) / (len(own) - 1), step / 2):
            return True  # the mean of the changes from one to the next
    if _is_near(abs(goal), _sums(tuple(amount_for(value, datum) for datum in kind[:_FEW])), exact):
        return True
    shares = list(_shares(known))
    if any(same(abs(goal), abs(amount_for(value, datum) * share), step / 2) for datum in kind for share in shares):
        return True
    if value.unit is not None and any(same(abs(goal), one, step / 2) for one in _of_rates(value.unit, known)):
        return True
    if value.unit is None or value.unit.dimension in MONEY:
        return _is_near(goal, _products(tuple(datum.value.readings[0] for datum in known[:_FEW])), step / 2)
    return False


def _of_rates(unit: Unit, known: Sequence[Datum]) -> Iterator[float]:
    """Yield the amounts that rates lead to: 7.2 of `"yield_t_ha"` and 38.5 of `"area_ha"` to 277 t."""
    for rate in known:
        words = tuple(word for word in name_words(rate.column)[-3:] if word != "per")
        own = rate.value.unit
        if own is None or own.dimension != unit.dimension or len(words) < 2 or own is not unit_of(words[-2]):
            continue
        for other in known:
            if other.value.unit is not own and name_words(other.column)[-1:] == words[-1:]:
                yield abs(rate.value.readings[0] * own.factor * other.value.readings[0])


def _shares(known: Iterable[Datum]) -> Iterator[float]:
    """Yield the factors that percentages stand for: 0.15, 0.85 and 1.15 of `"discount_pct": 15`."""
    for share in (datum.value.readings[0] / 100 for datum in known if is_percentage(datum.value)):
        yield from (share, 1 - share, 1 + share)


def is_percentage(value: Value) -> bool:
    return value.unit is not None and value.unit.dimension == "percent"


@lru_cache(maxsize=64)
def _sums(amounts: tuple[float, ...]) -> list[float]:
    """Return the sums and differences of two amounts without their signs, sorted: every value of a reply is compared."""
    pairs = itertools.combinations(amounts, 2)
    return sorted(filter(math.isfinite, {abs(result) for one, other in pairs for result in (one + other, one - other)}))


@lru_cache(maxsize=64)
def _products(amounts: tuple[float, ...]) -> list[float]:
    """Return the products and ratios of two amounts, sorted."""
    pairs = list(itertools.permutations(amounts, 2))
    results = {one * other for one, other in pairs} | {one / other for one, other in pairs if other}
    return sorted(filter(math.isfinite, results))


def _is_near(goal: float, results: Sequence[float], tolerance: float) -> bool:
    """Return True if one of the sorted numbers is the same as a goal up to a tolerance."""
    at = bisect.bisect_left(results, goal)
    return any(same(goal, one, tolerance) for one in results[max(at - 1, 0) : at + 1])


def amount_for(value: Value, datum: Datum) -> float:
    """Return the amount of a datum in the first unit of a value's dimension."""
    unit = datum.value.unit or value.unit
    reading = datum.value.readings[0]
    return reading if unit is None or value.unit is None else reading * unit.factor + unit.offset


def _percentages(known: Sequence[Datum]) -> Iterator[float]:
    """Yield the shares and the changes of two data, as percentages."""
    columns = Counter(datum.column for datum in known)
    sums = (
        sum(datum.value.readings[0] for datum in known if datum.column == column)
        for column in columns
        if columns[column] > 1
    )
    pool = [*(amount for datum in known for amount in datum.value.readings), *sums][:_FEW]
    for one, other in itertools.permutations(pool, 2):
        if other:
            yield from (100 * one / other, 100 * (one - other) / other)


MONEY = frozenset(_PHRASES.words("money"))


def is_of_kind(value: Value, datum: Value) -> bool:
    if value.unit is None or datum.unit is None:
        return value.unit is datum.unit
    return value.unit.dimension == datum.unit.dimension


def simple_ratio(value: Value, datum: Value, largest: int) -> Fraction | None:
    """Return the first number divided by the second if that is a simple fraction: 3/2 for six people instead of four.

    Return None if their units are of two kinds. A second number without a unit has that of the first. The first may be
    rounded.
    `largest`: no simple fraction has a larger denominator.
    """
    datum = datum if datum.unit is not None else datum._replace(unit=value.unit)
    amount = next(datum.amounts()) if is_of_kind(value, datum) else 0
    ratio = next(value.amounts()) / amount if amount else math.inf
    if not math.isfinite(ratio):
        return None
    simple = Fraction(ratio).limit_denominator(largest)
    rounded = max(_ROUNDED_RATIO, abs(value.tolerance / amount / 2)) if value.unit is not datum.unit else _ROUNDED_RATIO
    return simple if abs(simple - ratio) < rounded else None


_ROUNDED_RATIO = 0.002


def is_said(value: Value, shown: str, texts: Iterable[str]) -> bool:
    """Return True if the digits of a value are in a text, in no date. `shown`: the text of the reply with the value."""
    digits = re.search(r"\d[\d.,]*\d|\d", shown[value.start : value.end])
    if digits is None:
        return False
    plain = digits[0].replace(",", "")
    spelled = rf"(?<![\d.])(?:{re.escape(digits[0])}|{re.escape(plain)})(?![\d])"
    return any(re.search(spelled, _without_days(text)) for text in texts if plain in text or digits[0] in text)


@remembered
def _without_days(text: str) -> str:
    return _ISO_DAY.sub(" ", text)


_ISO_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d")


# --- dates and times of day -------------------------------------------------------------------------------------------

_LONGEST_SPAN = 400
"""Days between two dates that a number of a conversation may give."""
_MOST_READ = 100_000
"""Characters of a conversation whose dates are read."""
_DAY = 24 * 60
_WEEK = 7
_WEEKS = 12 * _WEEK
_QUARTER = 15
"""Minutes of the offsets of time zones."""
_ROUNDED = 5
"""Minutes to which a time of day is rounded."""


class Spans(NamedTuple):
    """Days that texts may put between two dates. `longer`: also months or years. `zones`: a time zone is named."""

    counts: frozenset[float]
    longer: bool
    zones: bool

    def joined(self, other: Spans) -> Spans:
        return Spans(self.counts | other.counts, self.longer or other.longer, self.zones or other.zones)


def spans_of(texts: Sequence[str]) -> Spans:
    amounts = [value for text in texts for value in without_moments(text)]
    # Not 0 and 1, which stand in nearly every result, but for "1 day".
    counts = (abs(value.readings[0]) for value in amounts if value.is_whole and (value.readings[0] > 1 or value.unit))
    longer = any(value.unit is not None and value.unit.name in ("month", "year") for value in amounts)
    zones = any(map(_PHRASES["zone"].search, texts))
    return Spans(frozenset(count for count in counts if count <= _LONGEST_SPAN), longer, zones)


class GivenDates:
    """The dates of some texts, and the days that these may put between two. They are read when they are first needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @property
    def are_too_many(self) -> bool:
        """Return True if the texts are too long, or have too many dates, to know whether a date follows from them."""
        return sum(map(len, self._texts)) > _MOST_READ or len(self.dates) > MOST_DATA

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        """One more than `MOST_DATA` at most."""
        return tuple(itertools.islice(itertools.chain.from_iterable(map(dates, self._texts)), MOST_DATA + 1))

    @cached_property
    def minutes(self) -> frozenset[int]:
        """The times of day of the texts, in minutes after midnight."""
        return frozenset(clock.minutes for text in self._texts for clock in clocks(text))

    @cached_property
    def spans(self) -> Spans:
        return spans_of(self._texts)


def follows_from_dates(date: Date, known: Sequence[Date], spans: Spans) -> bool:
    """Return True if a date is one of `known`, or some days, weeks, months or years away."""
    for other in known:
        if date.agrees(other) or (spans.longer and date.day == other.day):
            return True
        apart = days_apart(date, other)
        if apart is None:
            continue
        if (apart % _WEEK == 0 and apart <= _WEEKS) or (apart == 1 and spans.zones):
            return True
        if date.day == other.day and (date.month - other.month + 12 * (date.year - other.year)) in spans.counts:
            return True  # "every 24", of months
        # Working days: up to half as many again, and a weekend; or with both ends: 1 to 5 July are five days.
        least = math.ceil((apart - 2) / 1.5)
        if least <= _LONGEST_SPAN and any(count in spans.counts for count in range(max(least, 1), apart + 2)):
            return True
    return False


def is_last_day(date: Date, known: Iterable[Date], before: str) -> bool:
    """Return True for "until 31 March" if 1 April is known. `before`: the text before the date."""
    return _PHRASES["until"].search(before[-NEAR:]) is not None and any(days_apart(date, one) == 1 for one in known)


def days_apart(one: Date, other: Date) -> int | None:
    year = one.year or other.year or 2000
    try:
        first = datetime.date(year, one.month, one.day)
        return abs((first - datetime.date(other.year or year, other.month, other.day)).days)
    except ValueError:
        return None


def minutes_given(told: Sequence[str], results: Sequence[str]) -> frozenset[float]:
    """Return the numbers of minutes that texts may put between two times of day, and those of hours, as minutes too.

    A number of the results without a unit is no number of hours.
    """
    given = [value for text in told for value in values(text) if value.readings[0] <= _DAY]
    returned = [datum.value for text in results for datum in data(text) if datum.value.readings[0] <= _DAY]
    hours = (*given, *(one for one in returned if one.unit is not None))
    return frozenset([value.readings[0] for value in (*given, *returned)] + [one.readings[0] * 60 for one in hours])


def follows_from_clocks(clock: Clock, known: Iterable[Clock], given: frozenset[float], *, zones: bool) -> bool:
    """Return True if a time of day is one of `known`, in another time zone, rounded, or some minutes or hours away.

    `given`: those of `minutes_given`. `zones`: a time zone is named.
    """
    known = list(itertools.islice(known, MOST_DATA))
    if not given.isdisjoint((clock.minutes / 60, clock.minutes / 60 - 12)):
        return True  # "at 10"
    for other in known:
        apart = abs(clock.minutes - other.minutes)
        apart = min(apart, _DAY - apart) if apart <= _DAY else apart
        other_half = apart == _DAY // 2 and not (clock.exact and other.exact)
        if apart == 0 or other_half or apart in given or (zones and apart % _QUARTER == 0):
            return True
        if apart < _ROUNDED and clock.minutes % _ROUNDED == 0:
            return True
    if any(other.minutes and clock.minutes / other.minutes in given for other in known):
        return True  # 5 km at 4:35 take 22:55
    return any(clock.minutes == abs(one.minutes - other.minutes) for one in known for other in known)
