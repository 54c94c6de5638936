"""Sums of a reply against those of the columns that it adds up: "€241.92 in all", where the payments come to 214.92."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.derivation import (
    MOST_DATA,
    MOST_ROWS,
    as_datum,
    data,
    derived_from,
    is_computed,
    is_percentage,
    is_said,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import is_bound, statements
from wirelint.claims.rows import Row, tables
from wirelint.claims.values import Unit, Value, same, values, without_moments
from wirelint.text.prose import Sentence

_PHRASES = lexicon.Phrases("totals")

_TELLING = 1000
"""Whole numbers from which on a column holds no numbers of pieces."""
_DECIMALS = 6


def wrong_total(turn: Turn) -> Contradiction | None:
    """Return a number that is called a total, and is the sum of no rows of a column."""
    prose, pool = turn.prose, turn.numbers
    said = [one for one in statements(prose) if _PHRASES["total"].search(one.masked)] if len(pool) < MOST_DATA else []
    every = [table for text in turn.returned for table in tables(text) if len(table) <= MOST_ROWS] if said else []
    columns = [column for table in every for column in _columns(table)]
    columns += _columns_of_lines(turn.returned) if said and not every else []
    told = without_moments(prose.masked) if columns else []
    for sentence, value in itertools.product(said, told):
        if not sentence.start <= value.start < sentence.end or not _is_called_total(value, sentence, told):
            continue
        if is_said(value, prose.masked, turn.texts) or derived_from(value, pool) or is_bound(value, prose.masked):
            continue
        likely = next((one for one in columns if _is_about(value, one)), None)
        rest = [other for other in told if other.start != value.start]
        if likely is None or is_computed(value, pool) or is_computed(value, [*map(as_datum, rest)]):
            continue
        before = [abs(one.readings[0]) for one in rest if one.start < value.start]
        parts = [*(column.numbers for column in columns), before[-_MOST_SUMMED:]]
        extras = [*(datum.value.readings[0] for datum in pool), *(one.readings[0] for one in values(turn.order))]
        if not any(_is_sum(value, numbers, extras) for numbers in parts):
            shown = prose.text[value.start : value.end]
            against = f"{shown!r} is the sum of no rows: that of {likely.name} is {sum(likely.numbers):.10g}"
            return Contradiction(*sentence.span, against)
    return None


class _Column(NamedTuple):
    """The numbers of a column. `step`: one in their last digit."""

    name: str
    numbers: tuple[float, ...]
    step: float


def _columns(table: Sequence[Row]) -> Iterator[_Column]:
    """Yield the columns of numbers of a table, and the products of prices and numbers of pieces."""
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


def _is_called_total(value: Value, sentence: Sentence, told: Sequence[Value]) -> bool:
    """Return True if the piece of a sentence with a value calls it a total, and has no other but small whole numbers."""
    text, at = sentence.masked, value.start - sentence.start
    start = max(text.rfind(sign, 0, at) for sign in _ENDS[1:]) + 1  # "In total: £12"
    ends = (found for sign in _ENDS if (found := text.find(sign, value.end - sentence.start)) >= 0)
    end = min(ends, default=len(text))
    first, last = (text.rfind("|", 0, at), text.find("|", at)) if text.startswith("|") else (start, end)  # a cell
    others = (one for one in told if first <= one.start - sentence.start < last and one is not value)
    is_alone = all(one.unit is None and one.is_whole and abs(one.readings[0]) < _SMALL for one in others)
    is_amount = not value.ranges and not is_percentage(value) and abs(value.readings[0]) >= _LEAST
    return is_amount and is_alone and _PHRASES["total"].search(text, start, end) is not None


_ENDS = (": ", ", ", "; ", " (", ") ")
_SMALL = 32
"""Whole numbers of days or of rows are below."""
_LEAST = 10
"""Below it, a number is the sum of some rows by chance."""
_NEAREST, _FARTHEST = 0.6, 1.6
"""Bounds of the ratio of a wrong total to the true one."""


def _is_about(value: Value, column: _Column) -> bool:
    """Return True if a value may be meant for the total of a column: it has about its size, and its decimals."""
    amount = abs(sum(column.numbers))
    return value.step <= column.step and any(_NEAREST * amount <= one <= _FARTHEST * amount for one in value.readings)


def _is_sum(value: Value, numbers: Sequence[float], extras: Sequence[float]) -> bool:
    """Return True if a value is the sum of some numbers, of any if they are few; or of all, with another one added, taken
    off, times or in percent: a delivery, a discount.
    """
    step = value.step * 10.0 ** min(_zeros(value.readings[0] / value.step), _DECIMALS)
    sums = {0.0}
    for number in numbers[:_MOST_SUMMED]:
        sums |= {round(one + number, _DECIMALS) for one in sums}
    sums |= {*itertools.accumulate(numbers), *itertools.accumulate(reversed(numbers))}
    amount = sum(numbers)
    for extra in extras:
        sums |= {amount + extra, amount - extra, amount * extra, amount * (1 + extra / 100), amount * (1 - extra / 100)}
    return any(same(reading, abs(one), step) for reading in value.readings for one in sums)


_MOST_SUMMED = 10
"""Rows of which all sums are tried."""


def _whole_columns(table: Sequence[Row]) -> Iterator[tuple[str, list[int]]]:
    """Yield the columns of small whole numbers, of which not all are 1."""
    for key in table[0].cells:
        cells = [row.cells.get(key) for row in table]
        pieces = [one for one in cells if type(one) is int and 0 < one < _TELLING]
        if len(pieces) == len(cells) and set(pieces) != {1}:
            yield key, pieces


def _zeros(number: float) -> int:
    """Return the number of zeros at the end of a whole number; many for zero."""
    digits = f"{abs(number):.0f}"
    return len(digits) - len(digits.rstrip("0")) if number else len(str(_TELLING)) * 2
