"""Sums and means of a reply against those of columns: "€241.92 in all", where the payments come to 214.92."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.derivation import (
    MOST_DATA,
    MOST_ROWS,
    Datum,
    as_datum,
    data,
    derived_from,
    is_computed,
    is_percentage,
    is_said,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import is_bound, statements
from wirelint.claims.rows import Row, holds, tables
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Unit, Value, same, unit_of, values, whole_numbers, without_moments
from wirelint.text.prose import Sentence

_PHRASES = lexicon.Phrases("totals")
_OF_SUPERLATIVES = lexicon.Phrases("superlatives")

_TELLING = 1000
"""Whole numbers from which on a column holds no numbers of pieces."""
_DECIMALS = 6


def wrong_total(turn: Turn) -> Contradiction | None:
    """Return a number that is called a total or a mean, or has the name of a column, and is that of no rows of one."""
    prose, pool = turn.prose, turn.numbers
    every = [table for text in turn.returned for table in tables(text) if len(table) <= MOST_ROWS]
    columns = [column for table in every for column in _columns(table)] if len(pool) < MOST_DATA else []
    if not every and _PHRASES["total"].search(prose.masked):
        columns = _columns_of_lines(turn.returned)
    told = without_moments(prose.masked) if columns else []
    for sentence, value in itertools.product(statements(prose) if told else (), told):
        if not sentence.start <= value.start < sentence.end:
            continue
        called, piece = _called(value, sentence, told)
        likely = next((one for one in columns if _is_about(value, one, called, piece)), None)
        if likely is None or is_percentage(value) or value.ranges or abs(value.readings[0]) < _LEAST:
            continue
        if is_said(value, prose.masked, turn.texts) or derived_from(value, pool) or is_bound(value, prose.masked):
            continue
        rest = [other for other in told if other.start < sentence.end and other.start != value.start]
        if called != "mean" and is_computed(value, [*map(as_datum, rest)]):
            continue
        if called == "mean" and _OF_SUPERLATIVES["part"].search(sentence.masked):
            continue
        before = [abs(one.readings[0]) for one in rest if one.start < value.start]
        parts = [*(column.numbers for column in columns), before[-_MOST_SUMMED:]]
        asked = [one.readings[0] for one in values(turn.order)]
        result, extras = (
            (_is_mean, [*asked, *whole_numbers(sentence.masked)])
            if called == "mean"
            else (_is_sum, [*map(_amount, pool), *asked])
        )
        if not any(result(value, numbers, extras) for numbers in parts):
            shown, true = prose.text[value.start : value.end], sum(likely.numbers)
            true = true / len(likely.numbers) if called == "mean" else true
            against = f"{shown!r} is the {called or 'sum'} of no rows: that of {likely.name} is {true:.10g}"
            return Contradiction(*sentence.span, against.replace("the total of", "the sum of"))
    return None


def _amount(datum: Datum) -> float:
    return datum.value.readings[0]


class _Column(NamedTuple):
    """The numbers of a column. `step`: one in their last digit."""

    name: str
    numbers: tuple[float, ...]
    step: float


def _columns(table: Sequence[Row], *, grouped: bool = False) -> Iterator[_Column]:
    """Yield the columns of numbers of a table, and the products of prices and numbers of pieces; also those of the rows
    that have a cell in common.
    """
    for key in table[0].cells:
        cells = [row.cells.get(key) for row in table]
        numbers = [float(one) for one in cells if isinstance(one, (int, float)) and not isinstance(one, bool)]
        if len(numbers) < max(len(cells), 2):
            continue
        decimals = max(len(f"{one:.{_DECIMALS}f}".rstrip("0").partition(".")[2]) for one in numbers)
        yield _Column(key, tuple(numbers), 10.0**-decimals)
        for other, pieces in _whole_columns(table):
            if other != key:
                products = tuple(number * piece for number, piece in zip(numbers, pieces, strict=True))
                yield _Column(f"{key} times {other}", products, 10.0**-decimals)
    for key in table[0].cells if not grouped else ():
        for cell in {cell for row in table if isinstance(cell := row.cells.get(key), (str, bool))}:
            group = [row for row in table if row.cells.get(key) == cell]
            if 1 < len(group) < len(table):
                yield from _columns(group, grouped=True)


def _columns_of_lines(texts: Iterable[str]) -> list[_Column]:
    """Return the columns of texts without a heading: the numbers at one place of several lines."""
    columns: dict[tuple[str, Unit | None], list[Value]] = {}
    for datum in (datum for text in texts for datum in data(text)):
        columns.setdefault((datum.column, datum.value.unit), []).append(datum.value)
    return [
        _Column(name, tuple(one.readings[0] for one in own), min(one.step for one in own))
        for (name, _), own in columns.items()
        if len(own) > 2
    ]


def _called(value: Value, sentence: Sentence, told: Sequence[Value]) -> tuple[str, str]:
    """Return what the piece of a sentence with a value calls it, `total` or `mean`, and the piece up to the value.

    Both are empty if the piece has other than small whole numbers beside it.
    """
    text, at = sentence.masked, value.start - sentence.start
    start = max(text.rfind(sign, 0, at) for sign in _ENDS[1:]) + 1  # "In total: £12"
    ends = (found for sign in _ENDS if (found := text.find(sign, value.end - sentence.start)) >= 0)
    end = min(ends, default=len(text))
    first, last = (text.rfind("|", 0, at), text.find("|", at)) if text.startswith("|") else (start, end)  # a cell
    others = (one for one in told if first <= one.start - sentence.start < last and one is not value)
    if not all(one.unit is None and one.is_whole and abs(one.readings[0]) < _SMALL for one in others):
        return "", ""
    called = (key for key in ("mean", "total") if _PHRASES[key].search(text, start, end))
    return next(called, ""), text[start:at]


_ENDS = (": ", ", ", "; ", " (", ") ")
_SMALL = 32
"""Whole numbers of days or of rows are below."""
_LEAST = 10
"""Below it, a number is the sum of some rows by chance."""
_NEAREST, _FARTHEST = 0.6, 1.6
"""Bounds of the ratio of a wrong total to the true one."""


def _is_about(value: Value, column: _Column, called: str, piece: str) -> bool:
    """Return True if a value may be meant for the total or the mean of a column: it has about its size, and its decimals.

    `called`: what the reply calls it. Without it `piece`, the text before it, is a label with the name of the column:
    `Spent to date: `.
    """
    amount = abs(sum(column.numbers)) / (len(column.numbers) if called == "mean" else 1)
    if value.step > column.step or not any(_NEAREST * amount <= one <= _FARTHEST * amount for one in value.readings):
        return False
    label = _LABEL.search(piece)
    if called or label is None:
        return bool(called)
    names = [word for word in name_words(column.name) if unit_of(word) is None]
    return len(column.numbers) >= _FEWEST and bool(names) and all(holds(label["name"], word) for word in names)


_LABEL = re.compile(r"^\W*(?P<name>[^:|]{3,40}):\W*\Z")
_FEWEST = 3
"""Rows of a column whose sum has its name for a label."""


def _is_mean(value: Value, numbers: Sequence[float], extras: Sequence[float]) -> bool:
    """Return True if a value is the mean of all numbers, or of as many in a row as a text says (`extras`)."""
    counts = {len(numbers), len(numbers) - 1, len(numbers) + 1, *map(int, extras)}
    sums = {(sum(numbers), count) for count in counts}
    for start, end in itertools.combinations(range(min(len(numbers), _MOST_AVERAGED) + 1), 2):
        if end - start in extras:
            sums.add((sum(numbers[start:end]), end - start))
    means = (amount / count for amount, count in sums if count > 0)
    return any(same(reading, abs(mean), step / 2) for mean in means for reading, step in _readings(value))


def _is_sum(value: Value, numbers: Sequence[float], extras: Sequence[float]) -> bool:
    """Return True if a value is the sum of some numbers, of any if they are few; or of all, with another one added, taken
    off, times or in percent: a delivery, a discount.
    """
    sums = {0.0}
    for number in numbers[:_MOST_SUMMED]:
        sums |= {round(one + number, _DECIMALS) for one in sums}
    sums |= {*itertools.accumulate(numbers), *itertools.accumulate(reversed(numbers))}
    amount = sum(numbers)
    for extra in extras:
        sums |= {amount + extra, amount - extra, amount * extra, amount * (1 + extra / 100), amount * (1 - extra / 100)}
    return any(same(reading, abs(one), step) for reading, step in _readings(value) for one in sums)


_MOST_SUMMED, _MOST_AVERAGED = 10, 40
"""Rows of which all sums are tried, and those of which all stretches are."""


def _whole_columns(table: Sequence[Row]) -> Iterator[tuple[str, list[int]]]:
    """Yield the columns of small whole numbers, of which not all are 1."""
    for key in table[0].cells:
        cells = [row.cells.get(key) for row in table]
        pieces = [one for one in cells if type(one) is int and 0 < one < _TELLING]
        if len(pieces) == len(cells) and set(pieces) != {1}:
            yield key, pieces


def _readings(value: Value) -> list[tuple[float, float]]:
    """Return the readings of a value, each with one in its last digit that is not zero: 100 of "about 102,600"."""
    step, first = value.step * 10.0 ** min(_zeros(value.readings[0] / value.step), _DECIMALS), abs(value.readings[0])
    return [(one, step * abs(one) / first if first else step) for one in value.readings]


def _zeros(number: float) -> int:
    """Return the number of zeros at the end of a whole number; many for zero."""
    digits = f"{abs(number):.0f}"
    return len(digits) - len(digits.rstrip("0")) if number else len(str(_TELLING)) * 2
