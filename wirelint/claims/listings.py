"""Tables of a reply against the rows of a result that they retell: a cell stands below the key of its column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.derivation import (
    MOST_ROWS,
    Datum,
    as_datum,
    derived_from,
    equals,
    is_computed,
    is_said,
    words_in,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.rows import (
    NAME_WORD,
    TABLE_LINE,
    Clause,
    Row,
    holds,
    own_data,
    places,
    side_by_side,
    tables,
)
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Value, values, without_moments
from wirelint.model import Json

_PHRASES = lexicon.Phrases("grounding")
_HEAD = 2
"""The heading and the rule of a table in Markdown."""


def wrong_cells(turn: Turn) -> Contradiction | None:
    """Return a line of a Markdown table with a number or a word under the heading of a key, which no row of that name has.

    A word counts if another row has it under that key.
    """
    every = [*turn.returned, *side_by_side(turn.known)]
    known = [row for text in every for table in tables(text) for row in table if row.names]
    if not 0 < len(known) <= MOST_ROWS:
        return None
    lines = list(TABLE_LINE.finditer(turn.prose.text))
    texts = [turn.order, *turn.sent]
    heads = [words_in(cell) for cell in lines[0][0].split("|")] if len(lines) > _HEAD else []
    keys = {key: words_in(" ".join(name_words(key))) for row in known for key in row.cells}
    columns = {place: key for place, head in enumerate(heads) for key, words in keys.items() if head and head == words}
    if found := _below_name(lines, known):
        return found
    for line in lines[_HEAD:MOST_ROWS]:
        cells, plain = [cell.strip(" *_`") for cell in line[0].split("|")], line[0].casefold()
        named = [row for row in known if any(True for name in row.names for _ in places(plain, name.casefold()))]
        for place, key in columns.items():
            held = [row.cells[key] for row in named if key in row.cells]
            if place >= len(cells) or not held or any(holds(text, cells[place]) for text in texts):
                continue
            others = [row.cells.get(key) for row in known if row not in named]
            if _is_other_number(cells[place], held, named) or _is_other_word(cells[place], held, others):
                against = f"{cells[place]!r} is not the {key} of {named[0].place}: {held[0]}"
                return Contradiction(line.start(), line.end(), against)
    return None


def odd_number(turn: Turn, text: str, clauses: Sequence[Clause]) -> Contradiction | None:
    """Return the one line of a list or table whose number is not its row's, where the numbers at that place of all others
    are those of one column.
    """
    placed: dict[int, list[tuple[Clause, Value]]] = {}
    for one in clauses:
        for place, value in _numbers_by_place(turn.prose.text, one):
            placed.setdefault(place, []).append((one, value))
    for told in placed.values():
        rows = {one.row.place: one.row for one, _ in told}
        alike = len({(value.unit, value.is_whole) for _, value in told}) == 1
        for key in told[0][0].row.cells if alike and _FEWEST_LINES <= len(told) == len(rows) else ():
            odd = [(one, value) for one, value in told if not _is(value, one.row.cells.get(key))]
            if len(odd) != 1 or len({str(row.cells.get(key)) for row in rows.values()}) < _FEWEST_LINES:
                continue
            (one, value), own = odd[0], own_data(odd[0][0].row, text)
            elsewhere = [*turn.told, *(other for other in turn.results if other != text)]
            if key not in one.row.cells or derived_from(value, own) or is_computed(value, [*own, *_ordered(turn)]):
                continue
            if not is_said(value, one.text, elsewhere):
                shown = one.text[value.start : value.end]
                against = f"{shown!r} is not the {key} of {one.row.place}: {one.row.cells[key]}"
                return Contradiction(one.start, one.end, against)
    return None


_FEWEST_LINES = 3
"""Lines with numbers of one column: two may be alike by chance."""


def _numbers_by_place(text: str, one: Clause) -> Iterator[tuple[int, Value]]:
    """Yield the numbers of a line of a table with their columns, or those of an item of a list in order."""
    line = text[text.rfind("\n", 0, one.start) + 1 : one.end].lstrip()
    for at, value in enumerate(without_moments(one.text)) if line[:1] in ("|", "-", "*", "•") else ():
        yield (one.text.count("|", 0, value.start) if line[0] == "|" else at), value


def _ordered(turn: Turn) -> list[Datum]:
    return [as_datum(value) for value in values(turn.order)]


def _below_name(lines: Sequence[re.Match[str]], known: Sequence[Row]) -> Contradiction | None:
    """Return a line of a table whose columns are rows of a result, with a number of another of them: 19.4 °C twice."""
    heads = [cell.strip(" *_`").casefold() for cell in lines[0][0].split("|")] if len(lines) > _HEAD else []
    named = {
        place: [row for row in known if any(holds(head, name) for name in row.names)]
        for place, head in enumerate(heads)
    }
    columns = {place: rows[0] for place, rows in named.items() if len(rows) == 1 and heads[place]}
    for line in lines[_HEAD:MOST_ROWS] if len(columns) > 1 else ():
        cells = line[0].split("|")
        for place, row in columns.items():
            told = without_moments(cells[place]) if place < len(cells) else []
            if len(told) != 1 or any(_is(told[0], cell) for cell in row.cells.values()):
                continue
            for key, own in row.cells.items():
                others = (other.cells.get(key) for other in columns.values() if other is not row)
                if isinstance(own, (int, float)) and any(_is(told[0], other) for other in others):
                    against = f"{cells[place].strip()!r} is not the {key} of {row.place}: {own}"
                    return Contradiction(line.start(), line.end(), against)
    return None


def _is(value: Value, cell: Json) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and any(one == cell for one in value.readings)


def _is_other_number(cell: str, held: Sequence[Json], rows: Sequence[Row]) -> bool:
    if NAME_WORD.search(cell) is not None:
        return False
    told, own = without_moments(cell), [value for one in held for value in values(str(one))]
    beside = [as_datum(value) for row in rows for other in row.cells.values() for value in values(str(other))]
    if any(is_computed(value, beside) for value in told):
        return False  # a product of two columns under the name of one
    return len(told) == 1 and told[0].unit is None and bool(own) and not any(equals(told[0], value) for value in own)


def _is_other_word(cell: str, held: Sequence[Json], others: Sequence[Json]) -> bool:
    words = {one.casefold() for one in others if isinstance(one, str)}
    return all(isinstance(one, str) and one.casefold() != cell.casefold() for one in held) and cell.casefold() in words
