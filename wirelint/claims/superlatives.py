"""Rows of a result that a reply calls the highest or the lowest: "the cheapest ferry is the Gull"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.derivation import derived_from, equals
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.rows import (
    LARGE,
    SHORTEST_KEY,
    Row,
    clause_of,
    folded,
    named_rows,
    rows_by_date,
    side_by_side,
    tables,
)
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Value, clocks, dates, values, without_moments
from wirelint.model import Json

_PHRASES = lexicon.Phrases("superlatives")
_PIECE = re.compile(r"[^,;:、，；]+")
_BEHIND = re.compile(r"[\d,;:(–—$€£¥]")
_PREPOSITION = re.compile(r"\w+\W*\Z|\w+ [€$£]?\d[\d.,]*")
"""The word right before a value or what stands behind: `with` of "with 95 minutes"."""
_CUT = re.compile(r"[,;:(–—](?! ?\d)")
_WORD = re.compile(r"[^\W\d_]{4,}")
_FEWEST = 3
"""Rows of a table of which one is called the highest."""


def wrong_superlative(turn: Turn) -> Contradiction | None:
    """Return a clause that calls a row the highest or the lowest, which in no column it is."""
    if _PHRASES["superlative"].search(turn.prose.masked) is None or _PHRASES["bounds"].search(turn.order):
        return None
    for result in dict.fromkeys([*turn.returned, *side_by_side(turn.known)]):
        for table in tables(result):
            if len(table) < _FEWEST:
                continue
            for row, start, end, text in _called(turn, table):
                if against := _not_so(row, text, table, computed=_computes(turn)):
                    return Contradiction(start, end, against)
    return None


def _called(turn: Turn, table: Sequence[Row]) -> Iterator[tuple[Row, int, int, str]]:
    """Yield the rows that are called the highest or the lowest, with the clause that does: its offsets, and its text with
    blanks in place of the names.
    """
    prose = turn.prose
    for (start, end), found in named_rows(prose, table) or rows_by_date(prose, table):
        pieces = [(start, end)]
        if len({row.place for _, row, _ in found}) > 1:
            pieces = [piece.span() for piece in _PIECE.finditer(prose.text, start, end)]
        for first, last in pieces:
            inside = [one for one in found if first <= one[0][0] and one[0][1] <= last]
            if len({row.place for _, row, _ in inside}) != 1:
                continue
            text = clause_of(prose, inside[0][1], (first, last), [span for span, _, _ in inside]).text
            if (said := _PHRASES["superlative"].search(text)) is None:
                continue
            # What stands behind both is about the row: "the Gull at 12:15 for 27.00, with a bar on board"
            at = inside[0][0][0] - first
            behind = _BEHIND.search(text, max(said.end(), inside[0][0][1] - first))
            end = behind.start() if behind is not None else len(text)
            start = min(at, max((cut.end() for cut in _BEHIND.finditer(text, 0, said.start())), default=0))
            before, beside = text[:end], _PREPOSITION.sub(" ", text[at if at < said.start() else start : end])
            between = text[min(at, said.end()) : max(at, said.start())]
            if between.count("(") != between.count(")"):
                continue  # "Ash (the largest) and Birch"
            limited = any(_PHRASES[key].search(before) for key in ("part", "bounds"))
            if not limited and not _PHRASES["beside"].search(beside):
                cut = _CUT.search(text, end)
                length = cut.start() if cut is not None else last - first
                yield inside[0][1], first, first + length, text[:length]


def _not_so(row: Row, text: str, table: Sequence[Row], *, computed: bool) -> str | None:
    """Return why a row is neither the highest nor the lowest in the column of a value or word of its clause, or in any."""
    columns = {key: amounts for key in row.cells if (amounts := _amounts(key, table)) is not None}
    told = values(text)
    pinned = {key: own for key, own in columns.items() if any(_is_told(value, row.cells[key]) for value in told)}
    pinned = pinned or {key: own for key, own in columns.items() if any(word in folded(text) for word in _words(key))}
    if not columns or ((told or computed) and not pinned):
        return None
    at = next(number for number, one in enumerate(table) if one.place == row.place)
    for amounts in (pinned or columns).values():
        for group in _groups(row, table):
            inside = [amounts[number] for number in group]
            if amounts[at] in (min(inside), max(inside)):
                return None
    key = next(iter(pinned or columns))
    best = max(range(len(table)), key=columns[key].__getitem__)
    of_best = f"{table[best].place}/{key} = {table[best].cells[key]}"
    return f"{row.place}/{key} = {row.cells[key]} is neither the highest nor the lowest: {of_best}"


def _computes(turn: Turn) -> bool:
    """Return True if a reply has a number that no result has: it may be the one that is the highest."""
    told = (one for one in without_moments(turn.prose.masked) if abs(one.readings[0]) >= LARGE or not one.is_whole)
    return any(not derived_from(one, turn.numbers) for one in told)


def _groups(row: Row, table: Sequence[Row]) -> Iterator[list[int]]:
    """Yield the places of all rows, and of those that have a cell or a word of one with the row in common."""
    yield [*range(len(table))]
    for key, cell in row.cells.items():
        for word in _WORD.findall(cell) if isinstance(cell, str) else ():  # "the newest menu", of files
            alike = [number for number, other in enumerate(table) if word in _WORD.findall(str(other.cells.get(key)))]
            if 1 < len(alike) < len(table):
                yield alike
        alike = [number for number, other in enumerate(table) if other.cells.get(key) == cell]
        if len(alike) > 1 or isinstance(cell, bool):
            yield alike


def _amounts(key: str, table: Sequence[Row]) -> list[float] | None:
    """Return the cells of a column as numbers that can be compared; None if one is no number, date or time of day."""
    found: list[float] = []
    for row in table:
        amount = _amount(row.cells.get(key))
        if amount is None:
            return None
        found.append(amount)
    return found if len(set(found)) > 1 else None


def _amount(cell: Json) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)):
        return None
    if not isinstance(cell, str):
        return float(cell)
    clock = next(iter(clocks(cell)), None)
    if day := next(iter(dates(cell)), None):
        return (day.year * 400 + day.month * 32 + day.day) * 1440.0 + (clock.minutes if clock is not None else 0)
    if clock is not None:
        return float(clock.minutes)
    told = values(cell)
    return next(iter(told[0].amounts())) if len(told) == 1 and told[0].start < _LEAD else None


_LEAD = 4
"""Signs before the number of a cell that is an amount: `USD 12`."""


def _is_told(value: Value, cell: Json) -> bool:
    return any(equals(value, one) for one in values(str(cell))) and not isinstance(cell, bool)


def _words(key: str) -> list[str]:
    """Return the words of a key that a clause may name."""
    return [word for word in name_words(key) if len(word) >= SHORTEST_KEY]
