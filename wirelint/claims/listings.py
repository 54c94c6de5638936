"""Lists and tables of a reply against the rows of a result that they retell.

Theory of operation. A line of the reply retells one row if one row has everything in the line that the table has. Where
most lines do, a line whose words and values are of different rows has exchanged them, and a line that has nothing of the
result, but values of the same form as the others, was added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from wirelint import lexicon
from wirelint.claims.announcements import asks_for_text
from wirelint.claims.derivation import (
    MOST_DATA,
    MOST_ROWS,
    Datum,
    GivenDates,
    as_datum,
    data,
    derived_from,
    equals,
    is_computed,
    is_said,
    words_in,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import MOST_STATED, follows, is_interval, is_telling, statements
from wirelint.claims.rows import (
    NAME_WORD,
    TABLE_LINE,
    Row,
    folded,
    holds,
    lists,
    own_data,
    places,
    side_by_side,
    tables,
)
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Date, Value, clocks, dates, same, values, without_moments
from wirelint.model import Json
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("grounding")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•|]|\d{1,3}[.)])[ \t]*(?P<item>\S.*)$", re.MULTILINE)
_RULE = re.compile(r"[\s|:-]+")
_SMALL_MARKER = re.compile(r"\s*\d[.)]")
_FEWEST_ITEMS = 3
_HEAD = 2
"""The heading and the rule of a table in Markdown."""
_TOKEN = re.compile(r"[^\W\d_]{4,}|\d[\d.,:]*\d")
_NUMBER = re.compile(r"\d[\d.,]*")
_DIGIT = re.compile(r"\d")
_SHORTEST = 3
"""Letters of a cell that a line may repeat."""


def mixed_lines(turn: Turn) -> Contradiction | None:
    """Return a line of a list that has the words and values of different rows, if other lines retell one row each."""
    lines = list(_ITEM.finditer(turn.prose.text))[: MOST_ROWS + _HEAD]
    for text in [*turn.returned, *side_by_side(turn.known)] if len(lines) >= _FEWEST_ITEMS else ():
        for table in tables(text):
            retold = _Retold(turn, text, table)
            if retold.is_too_long:
                return None
            told = [retold.by(line["item"]) for line in lines]
            whole = [line for line, cells in zip(lines, told, strict=True) if len(cells) > 1 and _of_one_row(cells)]
            mixed = [
                (line, cells)
                for line, cells in zip(lines, told, strict=True)
                if len(cells) > 1 and not _of_one_row(cells) and not _compares(cells)
            ]
            if mixed and len(whole) >= len(mixed):
                line, cells = mixed[0]
                (one, first), (other, second) = next(_apart(cells))
                against = f"{one!r} is of {sorted(first)[0]}, and {other!r} of {sorted(second)[0]}"
                return Contradiction(*line.span("item"), against)
    return None


_Cells = Mapping[str, Mapping[str, set[str]]]
"""The pieces of a line that are in a table, each with the rows and the columns in which it is."""


class _Retold:
    """A table with what the lines of a reply are searched for, read once, and what the conversation has outside of it."""

    def __init__(self, turn: Turn, text: str, table: Sequence[Row]) -> None:
        told = [*turn.told, *(other for other in turn.results if other != text)]
        self._elsewhere = told
        self._texts = turn.texts
        self._given = GivenDates(turn.texts)
        self._minutes = GivenDates(told)
        self.is_too_long = self._given.are_too_many
        self._words: list[tuple[str, str, str]] = []
        self._moments: list[tuple[str, str, tuple[Date, ...], frozenset[int]]] = []
        for row in table:
            for key, cell in _words_of(row):
                days, times = tuple(dates(cell)), frozenset(clock.minutes for clock in clocks(cell))
                word = folded(cell)
                if days or times:
                    self._moments.append((row.place, key, days, times))
                elif len(word) >= _SHORTEST - (_CODE.fullmatch(word) is not None):
                    self._words.append((row.place, key, word))
        self._numbers = {row.place: own_data(row, text) for row in table}
        inside = {datum.place for own in self._numbers.values() for datum in own}
        self._outside = [datum for datum in data(text) if datum.place not in inside and datum.column != "#"]

    def by(self, line: str) -> _Cells:
        """Return what a line repeats of the table. What is outside of the table too is left out."""
        found: dict[str, dict[str, set[str]]] = {}
        plain = folded(line)
        for place, key, word in self._words:
            if word not in plain or next(places(plain, word), None) is None:
                continue
            alone = NAME_WORD.fullmatch(word) is not None
            if (not alone or lists(plain, word)) and not any(holds(text, word) for text in self._elsewhere):
                found.setdefault(word, {}).setdefault(place, set()).add(key)
        for word in [one for one in found if any(one != other and one in other for other in found)]:
            del found[word]  # `hub` of `Porto hub`
        for date in dates(line):
            owners = [(place, key) for place, key, days, _ in self._moments if any(date.agrees(one) for one in days)]
            if sum(date.agrees(one) for one in self._given.dates) == len(owners):
                for place, key in owners:
                    found.setdefault(line[date.start : date.end], {}).setdefault(place, set()).add(key)
        for clock in clocks(line):
            if clock.minutes not in self._minutes.minutes:
                for place, key, _, times in self._moments:
                    if clock.minutes in times:
                        found.setdefault(line[clock.start : clock.end], {}).setdefault(place, set()).add(key)
        for value in without_moments(line):
            if value.ranges or not is_telling(value, line) or derived_from(value, self._outside):
                continue
            shown = line[value.start : value.end]
            age = is_interval(value, self._texts)  # of 6 days between two dates, no bare 6 is the source
            for place, own in self._numbers.items():
                alike = [datum for datum in own if datum.value.unit or not age]
                if columns := {datum.column for datum in alike if equals(value, datum.value)}:
                    found.setdefault(shown, {}).setdefault(place, set()).update(columns)
            for place, own in self._numbers.items() if shown in found else ():
                if is_computed(value, own):
                    found[shown].setdefault(place, set())
        return found


def _words_of(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the texts of a row with their keys, and those of its lists: `"units": ["E7", "L2"]`."""
    for key, cell in row.cells.items():
        for one in cell if isinstance(cell, list) else (cell,):
            if isinstance(one, str):
                yield key, one


_CODE = re.compile(r"[a-z]\d|\d[a-z]")


def _of_one_row(cells: _Cells) -> bool:
    return bool(set.intersection(*(set(rows) for rows in cells.values())))


def _compares(cells: _Cells) -> bool:
    """Return True if a line has two cells of one column, and so tells of two rows."""
    columns = [{key for keys in rows.values() for key in keys} for rows in cells.values()]
    return len(set[str]().union(*columns)) < sum(map(len, columns))


def _apart(cells: _Cells) -> Iterator[tuple[tuple[str, set[str]], tuple[str, set[str]]]]:
    """Yield pairs of pieces that no row has both, and at last the first two pieces."""
    pieces = [(piece, set(rows)) for piece, rows in cells.items()]
    for at, one in enumerate(pieces):
        yield from ((one, other) for other in pieces[at + 1 :] if one[1].isdisjoint(other[1]))
    yield pieces[0], pieces[1]


def wrong_total(turn: Turn) -> Contradiction | None:
    """Return a total that the amounts of a reply do not add up to, nor any numbers of the conversation.

    The reply gives two or more of the results' amounts in its unit; of numbers without a unit, a whole column.
    """
    text, prose = turn.prose.masked, turn.prose
    if _PHRASES["adjusted"].search(text):
        return None
    known = [*turn.numbers, *(as_datum(value) for other in (turn.order, *turn.sent) for value in values(other))]
    stated = [one for one in without_moments(text) if not one.ranges][:MOST_STATED]
    named = _cells_of_named_rows(turn)
    spans = [one.span for one in statements(prose)] + [line.span() for line in TABLE_LINE.finditer(prose.text)]
    for start, end in spans if len(known) < MOST_DATA else ():
        for value in (one for one in stated if start <= one.start < end and is_telling(one, text)):
            if value.unit is None and _OTHER_UNIT.match(text, value.end):
                continue
            near = (
                text[max(start, value.start - _BEFORE_TOTAL) : value.start].rpartition("\n")[2],
                text[value.end : value.end + _BEHIND_TOTAL].partition("\n")[0],
            )
            # "You spent €262 on:", and the list; "you owe €95: €48 for judo and €47 for theatre"
            heads = text[start:end].rstrip("* ").endswith((":", "：")) or _HEADS.match(text, value.end)
            if not (heads or any(map(_PHRASES["total"].search, near))) or is_said(value, text, turn.told):
                continue
            others = [one for one in stated if one is not value]
            parts = _parts(value, others, known) or named
            # What comes later may be computed from the wrong total.
            pool = [
                *known,
                *(as_datum(one) for one in others if one.start < value.start and not derived_from(one, known)),
            ]
            if value.unit is None:
                pool = [one._replace(value=one.value._replace(unit=None)) for one in pool]
            if not parts or _is_sum_of_told(value, others):
                continue
            if not derived_from(value, pool) and not is_computed(value, pool):
                shown = prose.text[value.start : value.end]
                return Contradiction(start, end, f"the amounts add up to {sum(parts):g}, not {shown}")
    return None


def _is_sum_of_told(value: Value, others: Sequence[Value]) -> bool:
    """Return True if a total is the sum of some amounts of the reply, told or computed; also if there are too many."""
    amounts = [abs(one.readings[0]) for one in others if one.unit == value.unit]
    if len(amounts) > _MOST_SUMMED:
        return True
    most = _MOST_OF_ONE if len(set(amounts)) <= _FEW_AMOUNTS else 1  # "two chairs (€40 each) and a table (€120)"
    sums = {0.0}
    for amount in set(amounts) if most > 1 else amounts:
        sums |= {round(one + count * amount, 4) for one in sums for count in range(1, most + 1)}
    exact = value.step == 1 and all(amount.is_integer() for amount in amounts)
    return any(same(abs(goal), one, 0.0 if exact else value.step) for goal in value.readings for one in sums)


_HEADS = re.compile(r"[*_]{0,2}\s?[:：]")
_MOST_SUMMED = 12
_FEW_AMOUNTS, _MOST_OF_ONE = 3, 9


def _parts(value: Value, others: Sequence[Value], known: Sequence[Datum]) -> list[float]:
    """Return the amounts of a reply that a total is of: those of its unit, or a column that the reply has whole."""
    if value.unit is not None:
        parts = [one.readings[0] for one in others if one.unit == value.unit and derived_from(one, known)]
        return parts if len(parts) > 1 else []
    for column in dict.fromkeys(one.column for one in known if one.column not in ("", "#")):
        cells = [one.value for one in known if one.column == column]
        if len(cells) >= _FEWEST_ITEMS and all(any(equals(one, cell) for one in others) for cell in cells):
            return [cell.readings[0] for cell in cells]
    return []


def _cells_of_named_rows(turn: Turn) -> list[float]:
    """Return the numbers of the only column with decimals in a table, if the reply names all of its rows."""
    for text in turn.returned:
        for table in tables(text):
            if len(table) < _FEWEST_ITEMS or not all(
                any(holds(turn.prose.text, one) for one in row.names) for row in table
            ):
                continue
            own = [datum for row in table for datum in own_data(row, text) if not datum.value.is_whole]
            if len(own) == len(table) == sum(datum.column == own[0].column for datum in own):
                return [datum.value.readings[0] for datum in own]
    return []


_OTHER_UNIT = re.compile(r" ?(?:[A-Zµ%°€$£][\w³²/]*|[a-z]{1,2})(?!\w)")
"""A unit that the table of units lacks: `MWh`."""
_BEFORE_TOTAL, _BEHIND_TOTAL = 48, 24
"""Characters beside a number in which a word makes it a total."""


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


def _follows(turn: Turn, line: re.Match[str], pool: Sequence[Datum], given: GivenDates) -> bool:
    """Return True if all values, dates and times of an item follow from the results, or from other values of the reply."""
    item, start = line["item"], line.start("item")
    told = [value for value in without_moments(item) if is_telling(value, item)]
    others = [value for value in values(turn.prose.masked) if not start <= value.start < line.end("item")]
    for value in told:
        is_known = derived_from(value, pool) or is_computed(value, pool) or follows(turn, start + value.start)
        if not is_known and not any(equals(value, other) for other in others):
            return False
    days = all(any(one.agrees(other) for other in given.dates) for one in dates(item))
    return days and given.minutes.issuperset(clock.minutes for clock in clocks(item))


def added_items(turn: Turn) -> Contradiction | None:
    """Return an item of a list that no text of the conversation has, if the list retells the rows of a result.

    Most items have words or numbers of the result; the added one has none of them, but values of the same form, and these
    follow from none.
    """
    lines = [line for line in _ITEM.finditer(turn.prose.text) if _DIGIT.search(line["item"])]
    if len(lines) < _FEWEST_ITEMS or asks_for_text(turn.order):
        return None
    returned = frozenset[str]().union(*map(_tokens, turn.returned))
    shared = [(line, _tokens(line["item"]) & returned) for line in lines]
    retold = [line for line, words in shared if len(words) > 1 or any(map(_LONG_NUMBER.fullmatch, words))]
    if len(retold) < _FEWEST_ITEMS - 1 or len(retold) * 2 < len(lines):
        return None
    forms = {_numbers(line["item"]) for line in retold}
    given = returned.union(*map(_tokens, turn.texts))
    pool = turn.returned_numbers
    given_dates = GivenDates(turn.texts)
    for line in lines if len(pool) < MOST_DATA else ():
        tokens = _tokens(line["item"])
        # One number alone, as in a plan or a recipe, may be the model's own.
        few = len(_NUMBER.findall(line[0])) - bool(_SMALL_MARKER.match(line[0])) < 2
        if few or not tokens or tokens & given or _numbers(line["item"]) not in forms:
            continue
        if any(_PHRASES[key].search(line["item"]) for key in ("labels", "total", "mean")):
            continue
        if not _follows(turn, line, pool, given_dates):
            return Contradiction(*line.span("item"), f"no result and no message has it: {turn.known[-1].shown}")
    return None


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
_LONG_NUMBER = re.compile(r"\d{3,}")


@remembered
def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text.casefold()))


def _numbers(text: str) -> str:
    """Return the form of the numbers of a text, with their units: `9 L` of `| Hexane | 2.0 L |`."""
    return " ".join(re.findall(r"9(?: ?[^\W\d_]{1,4}\b)?", _NUMBER.sub("9", text)))
