"""Sentences about rows of a result: one row in a clause, or several that are joined, listed or exchanged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import has_negation, is_admission, particulars, statements
from wirelint.claims.row_values import wrong_clause
from wirelint.claims.rows import (
    Clause,
    Named,
    NamedRow,
    Row,
    by_clock,
    clause_of,
    clauses_behind,
    clauses_of,
    fields_by_key,
    holds,
    named_rows,
    outermost,
    rows_by_date,
    side_by_side,
    tables,
    with_other_names,
    without_states,
)
from wirelint.claims.states import FAILURE, SUCCESS, object_of, opposite_state, pattern_of, states, states_of
from wirelint.claims.table_claims import out_of_bounds
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import LONGEST, NUMERALS, weekdays, whole_numbers, without_moments
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("grounding")
_CLAUSE = re.compile(r"[^;；\n]+")
_RANGE = re.compile(r"\s?[-–—~〜]\s?")


def wrong_value_of_row(turn: Turn) -> Contradiction | None:
    """Return a clause about a row of a result that gives it a value or a date that it does not have."""
    prose, good = turn.prose, [*turn.returned, *side_by_side(turn.known)]
    every = [(text, table) for text in dict.fromkeys(good) for table in tables(text)]
    of_text: dict[str, list[Sequence[Row]]] = {}
    for (text, _), table in zip(every, with_other_names([table for _, table in every]), strict=True):
        of_text.setdefault(text, []).append(without_states(table) if text in turn.outdated else table)
    for text in dict.fromkeys(good):
        around = object_of(text) if text in of_text else None
        for table in of_text.get(text, ()):
            parts = named_rows(prose, table) or named_rows(prose, by_clock(table)) or rows_by_date(prose, table)
            if not (parts or table[0].names):
                continue
            clauses = list(clauses_of(prose, parts))
            found = (
                _all_alike(prose, table)
                or _none_of_them(prose, table)
                or _mixed(prose, parts)
                or _listed_alike(prose, parts)
                or _stated_in_turn(prose, parts, table)
                or out_of_bounds(turn, around, table, parts)
                or wrong_clause(turn, text, table, clauses)
            )
            if found is not None:
                return found
        fields = fields_by_key(text) if len(text) <= LONGEST else ()
        parts = named_rows(prose, fields)
        clauses = list(clauses_behind(prose, parts))
        if found := wrong_clause(turn, text, fields, clauses, by_key=True):
            return found
    return None


def _mixed(prose: Prose, parts: Sequence[Named]) -> Contradiction | None:
    """Return a clause that joins names of two rows from two columns: `ledger-1 is in catchup`, the state of ledger-2.

    Each column is in the clause with one row. With several values the clause is a list of rows. From the end of one
    row to the beginning of the next is neither: `14:30~15:30 is free`.
    """
    for part, found in parts:
        found = _of_one_row_each(found)
        ends = sorted(span for span, _, _ in found)
        if any(_RANGE.fullmatch(prose.text[one[1] : other[0]]) for one, other in itertools.pairwise(ends)):
            continue
        clause, rows = prose.text[slice(*part)], {row.place: row for _, row, _ in found}
        if len(rows) != 2 or len(without_moments(clause)) > 1:
            continue
        related = _PHRASES["relates"].search(clause) is not None
        cells = dict.fromkeys((number, row.place) for number, row in _cells_named(found))
        whole = [(number, rows[place], rows[place].names[number]) for number, place in cells]
        columns = {column: {row.place for other, row, _ in whole if other == column} for column, _, _ in whole}
        if _PHRASES["negates"].search(clause) or any(len(places) > 1 for places in columns.values()):
            continue
        for column, row, name in whole:
            other = next((one for number, one, _ in whole if one is not row and number != column), None)
            alone = all(number == column for number, one, _ in whole if one is row)
            if other is None or not alone or name in map(str, other.cells.values()):
                continue
            key = name_words(row.key_of(name) or "")[-1:]
            if related and not (key and holds(clause, f"{key[0]} {name}")):
                continue  # "from N41 to N46", but not "from gate N46"
            if not holds(clause, other.names[column]):
                named = next(number for number, one, _ in whole if one is other)
                against = f"{name!r} is of another row than {other.names[named]!r}: {row.place}"
                return Contradiction(*part, against)
    return None


def _of_one_row_each(found: Sequence[NamedRow]) -> list[NamedRow]:
    """Return the names in a clause with one row each: of several rows with a name, one that has other names there."""
    rows: dict[str, list[str]] = {}
    for _, row, name in found:
        rows.setdefault(name, []).append(row.place)
    sure = {places[0] for places in rows.values() if len(set(places)) == 1}
    home = {name: next((place for place in places if place in sure), places[0]) for name, places in rows.items()}
    return [one for one in found if one[1].place == home[one[2]]]


def _cells_named(found: Sequence[NamedRow]) -> Iterator[tuple[int, Row]]:
    """Yield the cells that a clause names, by their columns: all of a cell, two words of it, "Bo Dale" of "Dr. Bo Dale", or
    the day of the week of a date."""
    days, _ = weekdays()
    for _, row, name in found:
        cells = [str(cell) for cell in row.cells.values()]
        words = {other for _, one, other in found if one.place == row.place and other not in cells}
        for number, cell in enumerate(row.names):
            whole = name == cell and (cell in cells or name.casefold() in days)
            if whole or (cell in cells and name in words and sum(holds(cell, one) for one in words) > 1):
                yield number, row


def _all_alike(prose: Prose, table: Sequence[Row]) -> Contradiction | None:
    """Return "all are open" if a row is closed, and "all eight were printed" if one failed."""
    for sentence in statements(prose):
        for line in _CLAUSE.findall(sentence.masked) if not sentence.masked.startswith("|") else ():
            every = pattern_of("all").search(line)
            if every is None or pattern_of("except").search(line):
                continue
            told = whole_numbers(line)
            if any(number != len(table) for number in (told if len(table) not in told else ())):
                continue
            against = _opposite(line, table)
            named = not told and any(holds(line, name) for row in table for name in row.names)
            if against is not None and not named:
                return Contradiction(*sentence.span, against)
            if _is_done(line) and (against := _failed_row(prose, table)) is not None:
                return Contradiction(*sentence.span, against)
    return None


def _none_of_them(prose: Prose, table: Sequence[Row]) -> Contradiction | None:
    """Return "none of them is overdue" if the flag of a row says that it is."""
    for sentence in statements(prose):
        for piece in _COMMA.split(sentence.masked):
            none = _PHRASES["none_of"].search(piece)
            rest = particulars(piece[none.end() :]) if none is not None else frozenset()
            for row in table if rest else ():
                for key, cell in row.cells.items():
                    words = particulars(" ".join(name_words(key))) if cell is True else frozenset()
                    is_state = isinstance(cell, str) and cell.casefold() in states() and holds(piece, cell)
                    if is_state or (words and words <= rest):
                        return Contradiction(*sentence.span, f"{row.place}/{key} = {cell}")
    return None


def _is_done(line: str) -> bool:
    return _PHRASES["done"].search(line) is not None or _PHRASES["done_in_english"].search(line) is not None


def _failed_row(prose: Prose, table: Sequence[Row]) -> str | None:
    """Return a row that failed, of a table in which others succeeded, if a reply tells of no failure."""
    of_rows = [(row, key, state) for row in table for key, cell in row.cells.items() for state in states_of(key, cell)]
    failed = next(((row, key) for row, key, state in of_rows if state == FAILURE), None)
    if failed is None or not any(state == SUCCESS for _, _, state in of_rows):
        return None
    if pattern_of(FAILURE).search(prose.text) or is_admission(prose) or has_negation(prose):
        return None
    row, key = failed
    return f"{row.place}/{key} = {row.cells[key]}"


def _listed_alike(prose: Prose, parts: Sequence[Named]) -> Contradiction | None:
    """Return "the gate, the side door and the exit are locked" if one of them is not. The names follow one another."""
    for part, found in parts:
        ends = itertools.pairwise(span for span, _, _ in outermost(found))
        text = prose.text[slice(*part)]
        between = (_IN_BRACKETS.sub("", prose.text[first[1] : second[0]]) for first, second in ends)
        alike = (
            any(pattern_of(key).search(text) for key in ("all", "both")) and _PHRASES["relates"].search(text) is None
        )
        alike = alike and _SOME_OF.search(text) is None
        if len(found) < 2 or not (alike or all(len(one) <= _BETWEEN_NAMES for one in between)):
            continue
        rows: Iterable[Row] = (
            () if pattern_of("except").search(text) else {row.place: row for _, row, _ in found}.values()
        )
        # What stands in brackets is about one of the rows: "quinoa (with nuts), rice and fish"
        if _opposite(_IN_BRACKETS.sub(" ", text), rows) and (against := _opposite(text, rows)):
            return Contradiction(*part, against)
    return None


def _stated_in_turn(prose: Prose, parts: Sequence[Named], table: Sequence[Row]) -> Contradiction | None:
    """Return a piece between commas about one row that has the opposite state, "the gate is open, the door is open"."""
    pieces = list(_between_commas(prose, parts))
    for piece in pieces:
        against = _opposite(piece.text, [piece.row])
        if against is not None:
            return Contradiction(piece.start, piece.end, against)
    return None


def _between_commas(prose: Prose, parts: Sequence[Named]) -> Iterator[Clause]:
    """Yield the pieces between commas about one row, of clauses that have commas, and those around an "and" of several."""
    for part, found in parts:
        pieces = list(_cut(prose.text, part, _COMMA))
        for piece in pieces if 1 < len(pieces) <= _MOST_PIECES else ():
            several = len({row.place for place, row, _ in found if piece[0] <= place[0] and place[1] <= piece[1]}) > 1
            for start, end in _cut(prose.text, piece, _AND) if several else [piece]:
                inside = [(place, row) for place, row, _ in found if start <= place[0] and place[1] <= end]
                text = prose.text[start:end]
                if len({row.place for _, row in inside}) != 1:
                    continue
                if _PHRASES["relates"].search(text) is None and pattern_of("except").search(text) is None:
                    yield clause_of(prose, inside[0][1], (start, end), [place for place, _ in inside])


def _cut(text: str, part: tuple[int, int], at: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a part between the matches of a pattern outside of brackets."""
    cuts = (cut.end() for cut in at.finditer(text, *part))
    whole = (cut for cut in cuts if text.count("(", part[0], cut) <= text.count(")", part[0], cut))
    return itertools.pairwise([part[0], *whole, part[1]])


_MOST_PIECES = 32
_COMMA = re.compile(r"[,，、](?!\d)")
_AND = re.compile(r"\s(?:and|und|et|y|e|en|och|og|и|ve|i|a)\s")


def _opposite(text: str, rows: Iterable[Row]) -> str | None:
    return next((why for row in rows if (why := opposite_state(text, row.cells, row.place))), None)


_SOME_OF = re.compile(rf"(?i)\b(?:\d+|{NUMERALS}) (?:of|von|de|des|di|van|z|из)\b")
_IN_BRACKETS = re.compile(r"\([^()]{0,40}\)")
_BETWEEN_NAMES = 9
"""Characters between two names of an enumeration: ` and the `."""
