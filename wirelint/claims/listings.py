"""Lists and tables of a reply against the rows of a result that they retell.

Theory of operation. Where most lines of a list retell rows of a result, a line that has nothing of the result, but values
of the same form as the others, was added. A cell of a table stands below the key of its column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.announcements import asks_for_text
from wirelint.claims.derivation import (
    MOST_ROWS,
    as_datum,
    derived_from,
    equals,
    is_computed,
    words_in,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import is_telling
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
from wirelint.claims.values import clocks, dates, values, without_moments
from wirelint.model import Json

_PHRASES = lexicon.Phrases("grounding")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•|]|\d{1,3}[.)])[ \t]*(?P<item>\S.*)$", re.MULTILINE)
_RULE = re.compile(r"[\s|:-]+")
_FEWEST_ITEMS = 3
_HEAD = 2
"""The heading and the rule of a table in Markdown."""
_DIGIT = re.compile(r"\d")


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


def added_rows(turn: Turn) -> Contradiction | None:
    """Return an item of a list under a name that no text of the conversation has, if the other items are named as rows.

    Its numbers are those of no row that the list leaves out: such a row may have another name in the reply.
    """
    lines = list(_ITEM.finditer(turn.prose.text))[: MOST_ROWS + _HEAD]
    if rule := next((at for at, line in enumerate(lines) if _RULE.fullmatch(line[0])), None):
        del lines[rule - 1 : rule + 1]  # the heading of a table
    if len(lines) < _FEWEST_ITEMS or asks_for_text(turn.order) or _PHRASES["plans"].search(turn.order):
        return None
    known = "\n".join(turn.texts).casefold()
    leads = [_LEAD.match(line["item"].lstrip("*_`[ ")) for line in lines]
    names = [_NAME.findall(lead[0].casefold()) if lead is not None else [] for lead in leads]
    for table in (table for text in turn.returned for table in tables(text)):
        for key in table[0].cells:
            cells = [_NAME.findall(str(row.cells.get(key)).casefold()) for row in table]
            homes = [next((at for at, cell in enumerate(cells) if _is_name_of(name, cell)), None) for name in names]
            strange = [number for number, home in enumerate(homes) if home is None]
            if len(lines) - len(strange) < _FEWEST_ITEMS - 1 or len(strange) != 1:
                continue
            line, words = lines[strange[0]], names[strange[0]]
            left = [row for at, row in enumerate(table) if at not in homes]
            # The list has every row of the table and one more item.
            more = [] if left else [word for word in words if not word.isdigit()]
            if not words or any(word in known or _PHRASES["total"].search(word) for word in more or words):
                continue
            if any(_PHRASES[key].search(word) for key in ("labels", "mean") for word in words):
                continue
            lead = leads[strange[0]]
            rest = line["item"][lead.end() if lead is not None else 0 :]
            if _DIGIT.match(rest[1:]):
                continue  # a time of day: `06:38:55`
            other = _DIGIT.search(rest) and not any(_has_numbers(row, rest) for row in left)
            if other or (more and _DIGIT.search(line["item"]) and not _follows_from(turn, line["item"])):
                shown = " ".join(words)
                return Contradiction(
                    *line.span("item"), f"no result and no message has {shown!r}: {turn.known[-1].shown}"
                )
    return None


def _follows_from(turn: Turn, item: str) -> bool:
    """Return True if an item has values, and all of them follow from the results: "Together 59.1 kg"."""
    told = [value for value in without_moments(item) if is_telling(value, item)]
    pool = turn.returned_numbers if told else []
    return bool(told) and all(derived_from(value, pool) or is_computed(value, pool) for value in told)


def _is_name_of(words: Sequence[str], cell: Sequence[str]) -> bool:
    """Return True if an item begins with words of a cell, or has all of two or more: "2 packs of green lentils, 500 g"."""
    return bool(words) and (set(words) <= set(cell) or (len(cell) > 1 and set(cell) <= set(words)))


def _has_numbers(row: Row, text: str) -> bool:
    """Return True if a row has all numbers, dates and times of day of a text."""
    cells = " | ".join(map(str, row.cells.values()))
    own, days = values(cells), list(dates(cells))
    told = without_moments(text)
    minutes = {clock.minutes for clock in clocks(cells)}
    return (
        all(any(equals(one, other) for other in own) for one in told)
        and all(any(one.agrees(other) for other in days) for one in dates(text))
        and minutes.issuperset(clock.minutes for clock in clocks(text))
    )


_LEAD = re.compile(r"[^:–—|,(;*]{2,40}")
"""The beginning of an item, up to the first mark that ends a name."""
_NAME = re.compile(r"[^\W\d_]{3,}|[\w-]*\d[\w-]*")


def added_names(turn: Turn) -> Contradiction | None:
    """Return an item of a list under a marked name that no text has: `**left-pad**`, beside names of the results.

    The name is that of a thing, with a sign or a capital within, so that it is no heading such as "Total".
    """
    found = list(_MARKED_ITEM.finditer(turn.prose.text))
    known = "\n".join(turn.texts).casefold() if len(found) >= _FEWEST_ITEMS else ""
    unknown = [one for one in found if one["name"].casefold() not in known]
    if not known or len(unknown) != 1 or asks_for_text(turn.order) or not _THING.fullmatch(unknown[0]["name"]):
        return None
    others = [one["name"] for one in found if one is not unknown[0]]
    if not all(any(name.casefold() in text.casefold() for text in turn.returned) for name in others):
        return None
    return Contradiction(*unknown[0].span("name"), f"no result and no message has it: {turn.known[-1].shown}")


_MARKED_ITEM = re.compile(
    r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+(?:\*\*|`)(?P<name>[^*`\n]{2,40})(?:\*\*|`)", re.MULTILINE
)
_THING = re.compile(r"(?=\S*(?:[-_./@\d]|[a-z][A-Z]))[\w./@-]+")
