"""Tables and lists of a reply that retell the rows of a result.

Theory of operation. A table in Markdown, or a list, whose lines each name one row of a result, retells it. If all its
lines but one give the cell of a column, that line should give it, too. It contradicts its row if it has another value of
that kind in its place: in a table below the same heading, in a list at the same place among as many values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from wirelint.claims.derivation import derived_from, equals, is_computed, is_percentage, is_said
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.rows import Row, folded, named_in, own_data, side_by_side, tables
from wirelint.claims.values import Clock, Date, Value, clocks, dates, values, without_moments
from wirelint.text.prose import Prose


class Word(NamedTuple):
    """A text between commas, dashes and brackets, or a whole cell, that is no number, date or time of day."""

    start: int
    end: int
    text: str


Moment: TypeAlias = "Value | Date | Clock | Word"
_LINE = re.compile(r"^[ \t]*(?:(?P<table>\|)|(?P<item>[-*•]|\d{1,2}[.)])[ \t]|(?P<head>#{1,6} |\*\*)).*$", re.MULTILINE)
_RULE = re.compile(r"[\s|:-]+")
_MOST_LINES = 40
_FEWEST = 3
"""Lines of a list from which on a deviation of one of them shows."""
_FEW = 4
"""One line of so many may deviate."""


class _Line(NamedTuple):
    """A line about one row. `cells`: the texts between the bars of a table; of a list the text behind the name alone."""

    row: Row
    start: int
    end: int
    cells: tuple[str, ...]


def deviating_line(turn: Turn) -> Contradiction | None:
    """Return the one line of a table or a list with another value than its row has in a column that the others retell."""
    blocks = list(_blocks(turn.prose)) if "\n" in turn.prose.text else []
    for text in dict.fromkeys([*turn.returned, *side_by_side(turn.known)]) if blocks else ():
        for table, block in itertools.product(tables(text), blocks):
            lines = list(_lines_of(turn.prose, block, table))
            if len({line.row.place for line in lines}) == len(lines) >= _FEWEST:
                for place in range(max(len(line.cells) for line in lines)):
                    if found := _deviation(turn, lines, place, text):
                        return found
    return None


def _blocks(prose: Prose) -> Iterator[list[re.Match[str]]]:
    """Yield the tables and lists of a reply, each as its lines. Lines of text between two items belong to the first."""
    lines = [line for line in _LINE.finditer(prose.text) if not _RULE.fullmatch(line[0])][:_MOST_LINES]
    for _, block in itertools.groupby(lines, key=lambda line: line["table"] is not None):
        yield list(block)


def _lines_of(prose: Prose, block: Sequence[re.Match[str]], table: Sequence[Row]) -> Iterator[_Line]:
    """Yield the lines of a block that are about one row each."""
    ends = [*(line.start() for line in block[1:]), len(prose.text)]
    for line, end in zip(block, ends, strict=True):
        is_table = line["table"] is not None
        end = line.end() if is_table else _end_of_item(prose.text, line.end(), end, is_head=line["head"] is not None)
        text = prose.text[line.start() : end]
        cells = [cell.strip(" \t*_`") for cell in text.split("|")] if is_table else []
        rows = _rows_named(cells, text, table)
        if len(rows) != 1:
            continue
        (row, name_end) = rows[0]
        yield _Line(row, line.start(), end, tuple(cells) if is_table else (text[name_end:],))


def _end_of_item(text: str, end: int, limit: int, *, is_head: bool) -> int:
    """Return the end of a list item with the indented lines below it, or of a heading with the lines up to a blank one."""
    while end < limit and (
        text[end : end + 2] in ("\n ", "\n\t") or (is_head and text[end : end + 2] not in ("", "\n\n"))
    ):
        following = text.find("\n", end + 1)
        end = limit if following < 0 else min(following, limit)
    return end


def _rows_named(cells: Sequence[str], text: str, table: Sequence[Row]) -> list[tuple[Row, int]]:
    """Return the rows that a line names, with the end of the name: by a name, or by the first cell of each."""
    plain = folded(text)
    found: dict[str, tuple[Row, int]] = {}
    for (_, end), row, _ in named_in(plain, table):
        found.setdefault(row.place, (row, end))
    if found or len(cells) < _FEWEST:
        return list(found.values())
    first = cells[1]
    return [
        (row, 0) for row in table if first and str(next(iter(row.cells.values()), "")).casefold() == first.casefold()
    ]


def _deviation(turn: Turn, lines: Sequence[_Line], place: int, text: str) -> Contradiction | None:
    """Return the line whose cell at a place is not that of the column which the other lines have there."""
    shown = [(line, line.cells[place]) for line in lines if place < len(line.cells)]
    is_table = len(lines[0].cells) > 1
    found: list[Contradiction] = []
    for key in lines[0].row.cells:
        own = [_moments(line.row, key, text) for line, _ in shown]
        both = [(cell, mine) for (_, cell), mine in zip(shown, own, strict=True)]
        given = [(cell, mine) for cell, mine in both if mine and _place_of(mine, cell) is not None]
        counts = {len(_told(cell, mine)) for cell, mine in given}
        alike = [cell for cell, mine in both if mine and len(_told(cell, mine)) in counts]
        without = len(alike) - len(given)
        if len(given) == len(shown) and is_table:
            return None  # a column that fits all lines
        if len(alike) < _FEWEST or not 0 < without <= max(1, len(alike) // _FEW):
            continue
        for (line, cell), mine in zip(shown, own, strict=True):
            if mine and _place_of(mine, cell) is None and (told := _in_place(turn, line, cell, mine, given, text)):
                against = f"{told!r} is not that of its row: {line.row.place}/{key} = {line.row.cells[key]}"
                found.append(Contradiction(line.start, line.end, against))
    return found[0] if len(found) == 1 else None


def _moments(row: Row, key: str, text: str) -> list[Moment]:
    """Return the numbers of a cell, or its dates, or its times of day."""
    cell = row.cells.get(key)
    if isinstance(cell, str) and (days := dates(cell)):
        return [*days]
    if isinstance(cell, str) and (times := clocks(cell)):
        return [*times]
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)):
        return []
    if isinstance(cell, str):
        amounts = values(cell)[:1]
        return [*amounts] if amounts else [Word(0, len(cell), _plain(cell))]
    return [datum.value for datum in own_data(row, text) if datum.column == key]


def _told(cell: str, own: Sequence[Moment]) -> list[Moment]:
    """Return the values of a text that are of the kind of some others. Of the readings of a date, 3/4, that of one of them
    counts, or else the first.
    """
    kind = own[0]
    if isinstance(kind, Word):
        return [Word(*piece.span(), plain) for piece in _PIECE.finditer(cell) if (plain := _plain(piece[0]))]
    if isinstance(kind, Date):
        readings = itertools.groupby(dates(cell), key=lambda date: date.start)
        each = [list(same) for _, same in readings]
        return [next((one for one in same if any(_is(one, mine) for mine in own)), same[0]) for same in each]
    return [*clocks(cell)] if isinstance(kind, Clock) else [*without_moments(cell)]


def _place_of(own: Sequence[Moment], cell: str) -> int | None:
    """Return which of the values of a text is one of a row: 0 for the first; None if none is."""
    return next((at for at, told in enumerate(_told(cell, own)) if any(_is(told, mine) for mine in own)), None)


def _is(told: Moment, mine: Moment) -> bool:
    if isinstance(told, Word):
        return isinstance(mine, Word) and told.text == mine.text
    if isinstance(told, Date):
        return isinstance(mine, Date) and told.agrees(mine)
    if isinstance(told, Clock):
        return isinstance(mine, Clock) and not told.possible.isdisjoint(mine.possible)
    return isinstance(mine, Value) and equals(told, mine)


def _in_place(
    turn: Turn, line: _Line, cell: str, own: Sequence[Moment], given: Sequence[tuple[str, Sequence[Moment]]], text: str
) -> str | None:
    """Return what a line has in place of its own value: where all other lines have theirs among as many values."""
    told = _told(cell, own)
    places = {(len(_told(other, mine)), _place_of(mine, other), type(mine[0])) for other, mine in given}
    if len(places) != 1:
        return None
    ((many, at, kind),) = places
    if many != len(told) or at is None or kind is not type(own[0]):
        return None
    one = told[at]
    if isinstance(one, Value):
        units = {other.unit for cell, _ in given if isinstance(other := _told(cell, [one])[at], Value)}
        data = own_data(line.row, text)
        known = bool(derived_from(one, data)) or (not is_percentage(one) and is_computed(one, data))
        if one.unit not in units or one.ranges or known or is_said(one, cell, [turn.order]):
            return None
    elif isinstance(one, Word):
        if not isinstance(own[0], Word) or not _is_of_kind(one.text, own[0].text, given):
            return None
    elif any(_is(one, other) for other in _told(turn.order, [one])):
        return None
    return cell[one.start : one.end].strip()


def _is_of_kind(told: str, own: str, given: Sequence[tuple[str, Sequence[Moment]]]) -> bool:
    """Return True if a text is the cell of another line, has the own one's form, `38K` for `83K`, or is another word."""
    if told.isalpha() and own.isalpha() and min(len(told), len(own)) >= _SHORTEST:
        return told[:_ROOT] != own[:_ROOT]
    form = _DIGIT.sub("9", own)
    others = (mine.text for _, all_of in given for mine in all_of if isinstance(mine, Word))
    return told in others or (form != own and _DIGIT.sub("9", told) == form)


_DIGIT = re.compile(r"\d")
_SHORTEST, _ROOT = 4, 3
"""Letters of words that are compared, and those that the forms of one have in common."""
_PIECE = re.compile(r"[^,;:–—|()]+")


def _plain(cell: str) -> str:
    return cell.strip(" \t\n*_`.").casefold().replace("_", " ")
