"""The one value of another row among those of the row that a part of a reply is about.

Theory of operation. A cell that only one row of a table has tells which row a reply is about. If it has several of one row
and, between them, one of another row in a column whose own cell it leaves out, that value took the place of the right one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.derivation import derived_from, is_computed
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import statements
from wirelint.claims.rows import Row, folded, holds, own_data, places, side_by_side, tables
from wirelint.claims.states import states
from wirelint.claims.values import Value, clocks, dates, without_moments
from wirelint.model import Json
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("grounding")
_OF_SUPERLATIVES = lexicon.Phrases("superlatives")
_FEWEST = 3
"""Cells of a row that a reply has if it is about the row."""
_SHORTEST, _LONGEST = 3, 60
"""Letters of a text that a reply has by no chance, and of one that is no name or word."""
_LEAST = 10
"""Whole numbers from which on a reply has one by no chance."""
_NEAR = 160
"""Characters between a value and those of the row around it."""


class _Mention(NamedTuple):
    """A part of a reply that is the cell of a row. `value`: its number."""

    start: int
    end: int
    row: Row
    key: str
    value: Value | None


def foreign_value(turn: Turn) -> Contradiction | None:
    """Return the one value of another row among several of one row, in a column whose own cell the reply leaves out."""
    for text in dict.fromkeys([*turn.returned, *side_by_side(turn.known)]):
        for table in tables(text):
            found = sorted(_mentions(turn.prose, table), key=lambda one: one[:2]) if len(table) > 1 else []
            if against := _foreign(turn, text, table, found):
                return against
    return None


def _foreign(turn: Turn, text: str, table: Sequence[Row], found: Sequence[_Mention]) -> Contradiction | None:
    homes = {span: {one.row.place for one in same} for span, same in itertools.groupby(found, lambda one: one[:2])}
    told = {(one.row.place, one.key) for one in found}
    sure = [one for one in found if len(homes[one[:2]]) == 1]
    keys: dict[str, set[str]] = {}
    for one in sure:
        keys.setdefault(one.row.place, set()).add(one.key)
    sure = [one for one in sure if not _is_in_brackets(turn.prose.text, one.start)]
    for at, one in enumerate(sure):
        around = sure[max(at - 1, 0) : at] + sure[at + 1 : at + 2]
        home = around[0].row if around else one.row
        own = home.cells.get(one.key)
        if one.row.place == home.place or any(near.row.place != home.place for near in around):
            continue
        between = turn.prose.text[around[0].end : around[-1].start]
        enclosed = len(around) > 1 and "\n\n" not in between and len(between) <= _NEAR
        if not enclosed and (one.value is not None or len(keys) > 2 or len(keys[one.row.place]) > 1):
            continue
        if (
            len(keys[home.place]) < _FEWEST
            or (home.place, one.key) in told
            or not _is_alike(own, one.row.cells[one.key])
        ):
            continue
        sentence = next((each for each in statements(turn.prose) if each.start <= one.start < each.end), None)
        if sentence is not None and not (
            _is_extreme(one, table) or _is_about_both(sentence.masked) or _is_explained(turn, text, one, home)
        ):
            shown = turn.prose.text[one.start : one.end]
            against = f"{shown!r} is of another row: {home.place}/{one.key} = {own}"
            return Contradiction(*sentence.span, against)
    return None


def _is_in_brackets(text: str, at: int) -> bool:
    start = text.rfind("\n", 0, at) + 1
    return text.count("(", start, at) > text.count(")", start, at)


def _is_extreme(one: _Mention, table: Sequence[Row]) -> bool:
    """Return True for the lowest or the highest number of a column, which may be told as that of all rows."""
    column = [cell for row in table if isinstance(cell := row.cells.get(one.key), (int, float))]
    return one.value is not None and one.row.cells[one.key] in (min(column), max(column))


def _is_alike(own: Json, other: Json) -> bool:
    return own != other and own is not None and isinstance(own, str) == isinstance(other, str)


def _is_explained(turn: Turn, text: str, one: _Mention, home: Row) -> bool:
    """Return True if a value of another row is also in the order or another result, or follows from the row itself."""
    shown = turn.prose.text[one.start : one.end]
    if any(holds(other, shown) for other in (*turn.told, *(other for other in turn.results if other != text))):
        return True
    own = own_data(home, text) if one.value is not None else []
    return one.value is not None and (bool(derived_from(one.value, own)) or is_computed(one.value, own))


def _is_about_both(text: str) -> bool:
    """Return True if a sentence compares rows, or denies something."""
    text = _PHRASES["still"].sub(" ", text)
    if any(_PHRASES[key].search(text) for key in ("compares", "negates")):
        return True
    return _OF_SUPERLATIVES["superlative"].search(text) is not None


def _mentions(prose: Prose, table: Sequence[Row]) -> Iterator[_Mention]:
    plain, moments, numbers = folded(prose.text), [*dates(prose.text)], without_moments(prose.text)
    times = clocks(prose.text)
    for row in table:
        for key, cell in row.cells.items():
            if isinstance(cell, bool) or not isinstance(cell, (str, int, float)):
                continue
            if not isinstance(cell, str):
                if abs(cell) >= _LEAST or cell != int(cell):
                    yield from (_Mention(one.start, one.end, row, key, one) for one in numbers if cell in one.readings)
            elif days := dates(cell):
                yield from (_Mention(one.start, one.end, row, key, None) for one in moments if one.agrees(days[0]))
            elif own := clocks(cell):
                minutes = own[0].possible
                held = (one for one in times if not one.possible.isdisjoint(minutes))
                yield from (_Mention(one.start, one.end, row, key, None) for one in held)
            elif _SHORTEST <= len(cell) <= _LONGEST and cell.casefold() not in states():
                yield from (_Mention(*span, row, key, None) for span in places(plain, folded(cell)))
