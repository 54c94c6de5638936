"""Tables of a reply against the rows of a result that they retell: a cell stands below the key of its column."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.derivation import (
    MOST_ROWS,
    as_datum,
    equals,
    is_computed,
    words_in,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.rows import (
    NAME_WORD,
    TABLE_LINE,
    Row,
    holds,
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
    """Return a line of a Markdown table with a number under the heading of a key, which no row of that name has."""
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
            if _is_other_number(cells[place], held, named):
                against = f"{cells[place]!r} is not the {key} of {named[0].place}: {held[0]}"
                return Contradiction(line.start(), line.end(), against)
    return None


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
