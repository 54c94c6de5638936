"""Sums of a reply against those of the columns that it adds up: "€241.92 in all", where the payments come to 214.92."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirelint.claims.derivation import MONEY, MOST_DATA, MOST_ROWS, as_datum, equals, is_computed, is_said
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import is_altered, stated
from wirelint.claims.rows import Row, tables
from wirelint.claims.values import Value, values

_MOST_TOTALS = 200
"""Sums that a number is compared with; of more of them, one may be alike by chance."""
_MOST_GROUPS = 6
"""Different cells of a column that puts rows into groups."""
_DIGITS = 4
"""Digits of a sum of which a reply may have one wrong."""
_TELLING = 1000
"""Sums in their last digit from which on another one hardly differs in one digit by chance."""
_DECIMALS = 6


class _Total(NamedTuple):
    """The sum of a column. `step`: one in the last digit of its numbers."""

    name: str
    amount: float
    step: float


def altered_total(turn: Turn) -> Contradiction | None:
    """Return a number that is the sum of a column, or of the rows with a common cell, but for one digit or two."""
    pool = turn.numbers
    said = stated(turn.prose) if len(pool) < MOST_DATA else []
    unknown = [one for one in said if not one.value.ranges and not is_said(one.value, turn.prose.masked, turn.texts)]
    every = [table for text in turn.returned for table in tables(text) if len(table) <= MOST_ROWS] if unknown else []
    totals = list(dict.fromkeys(total for table in every for total in _totals(table)))
    told = values(turn.prose.masked)
    for one in unknown if len(totals) <= _MOST_TOTALS else ():
        found = next((total for total in totals if _is_altered(one.value, total, len(totals), told)), None)
        beside = [as_datum(value) for value in told if value.start != one.value.start]
        if found is not None and not is_computed(one.value, pool) and not is_computed(one.value, beside):
            shown = turn.prose.text[one.value.start : one.value.end]
            against = f"{shown!r} is not in the result, and the sum of {found.name} is {found.amount:.10g}"
            return Contradiction(*one.sentence.span, against)
    return None


def _is_altered(value: Value, total: _Total, among: int, told: Sequence[Value]) -> bool:
    """Return True if a number is a sum with other digits, and no number of the reply is the sum itself."""
    step = total.step
    if step >= 1 and value.unit is not None and value.unit.dimension in MONEY:
        return False  # whole numbers without a currency
    step *= 10.0 ** min(_zeros(total.amount / step), _zeros(value.readings[0] / step))
    summed = value._replace(readings=(total.amount,), step=step)
    if abs(total.amount / step) < _TELLING or not is_altered(value, summed, among, least=_DIGITS):
        return False
    return not any(equals(other, summed) for other in told)


def _totals(table: Sequence[Row]) -> Iterator[_Total]:
    """Yield the sums of the columns of numbers, over all rows and over those with a common cell."""
    for key in table[0].cells:
        cells = [row.cells.get(key) for row in table]
        numbers = [float(one) for one in cells if isinstance(one, (int, float)) and not isinstance(one, bool)]
        if len(numbers) < len(cells):
            continue
        decimals = max(len(f"{one:.{_DECIMALS}f}".rstrip("0").partition(".")[2]) for one in numbers)
        step = 10.0**-decimals if decimals else 10.0 ** min(map(_zeros, numbers))
        yield _Total(key, sum(numbers), step)
        if decimals:  # prices, each of them times a number of pieces
            for other, pieces in _whole_columns(table):
                product = sum(number * piece for number, piece in zip(numbers, pieces, strict=True))
                yield _Total(f"{key} times {other}", round(product, _DECIMALS), step)
        for other in table[0].cells if len(table[0].cells) * len(table) <= MOST_DATA else ():
            groups: dict[str, list[float]] = {}
            for row, number in zip(table, numbers, strict=True):
                groups.setdefault(str(row.cells.get(other)), []).append(number)
            for cell, own in groups.items() if other != key and 1 < len(groups) <= _MOST_GROUPS else ():
                if len(own) > 1:
                    yield _Total(f"{key} for {other} = {cell}", sum(own), step)


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
