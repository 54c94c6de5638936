"""Rows of a result, and the parts of a reply that name them.

Theory of operation. A list of objects is a table. The strings of a column in which no two are equal name its rows; if a
reply has none of them, a time of day or a date may. A clause of the reply that has the name of one row is about that row,
and so are a bracket right behind a name and the items of a list below it. `row_values` compares the two.
"""

from __future__ import annotations

import bisect
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from wirelint import lexicon
from wirelint.claims.actions import PARTICIPLES, bare
from wirelint.claims.derivation import (
    MOST_ROWS,
    STOP,
    Datum,
    data,
    document_of,
    table_lines,
)
from wirelint.claims.evidence import Fact
from wirelint.claims.states import DEEPEST, FIRST_UNSPACED, states, states_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import LONGEST, clocks, dates, unit_of, values
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.text.prose import Prose
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("grounding")
_OF_TOTALS = lexicon.Phrases("totals")
_LONGEST_NAME = 60
_SHORT = 2
"""Letters of a name that is said with its kind."""
LARGE = 100
"""Whole numbers from which on two rows hardly share one by chance."""
_CLAUSE = re.compile(r"[^;；\n]+")
TABLE_LINE = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
DIGIT = re.compile(r"\d")
_INFLECTED, _ENDING = 6, re.compile(r"[a-z]{1,2}(?!\w)")
"""Letters from which on a name may have an ending of one or two letters."""
_CYRILLIC = re.compile(r"[а-яё]{5,}")
CLOCK = re.compile(r"\d{1,2}:\d\d")
_NAMING = re.compile(
    r"[^\W\d_]|\A\d{2,}(?: \d{2,})+\Z|\A\d{1,4}[-–]\d{1,4}\Z|\A\d+(?:\.\d+){2,}\Z|\A\d{3,}\Z|\A\d{1,2}:\d\d\Z"
)
SHORTEST_KEY = 4
"""Letters of a key that a reply may name."""
NAME_WORD = re.compile(r"(?<![\w-])[^\W\d_]{4,}(?![\w-])")
_CODE_WORD = re.compile(r"(?<![\w-])[a-z]{1,3}\d+[a-z]+\d+(?![\w-])")
"""A size or a type in a name: `m8x40`."""
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,11})(?:\.\d{1,6})?")


class Row(NamedTuple):
    """An object of a list in a result. `names`: strings that no other row has in their column. `place`: its pointer."""

    names: tuple[str, ...]
    cells: Mapping[str, Json]
    place: str

    def key_of(self, name: str) -> str | None:
        """Return the key of the cell that a name is; None for a word of a name, and for a name by the row's own key."""
        return next((key for key, cell in self.cells.items() if str(_name(key, cell)) == name), None)


@remembered
def tables(text: str) -> tuple[tuple[Row, ...], ...]:
    """Return the lists of objects in a result that is JSON, or the lines of one that has columns and a heading."""
    if len(text) > LONGEST:
        return ()
    if text.lstrip().startswith(("{", "[")):
        return tuple(_tables(document_of(text), "", 0))
    return tuple(_columns(text))


def _columns(text: str) -> Iterator[tuple[Row, ...]]:
    """Yield the table of a text whose lines have equal numbers of cells: `plan,count`, `starter,148`."""
    if lines := table_lines(text):
        heads = lines[0][1]
        if any(map(CLOCK.match, heads)):  # a log, which has no heading
            heads = [f"column {number}" for number in range(len(heads))]
        else:
            del lines[0]
        objects = [dict(zip(heads, map(_number_or_text, cells), strict=True)) for _, cells in lines]
        yield _rows_of(objects, [f"line {number}" for number, _ in lines])


def _number_or_text(cell: str) -> Json:
    return float(cell) if _DECIMAL.fullmatch(cell) else cell


def side_by_side(known: Sequence[Fact]) -> Iterator[str]:
    """Yield the results of calls of one tool as a list of objects, each with the arguments that it was called with."""
    by_tool: dict[str, list[Fact]] = {}
    for fact in known:
        by_tool.setdefault(fact.able.tool.name, []).append(fact)
    for facts in by_tool.values():
        sent, back = (
            [decode_json(text) for text in texts]
            for texts in zip(*((f.arguments, f.result.text) for f in facts), strict=True)
        )
        pairs = list(zip(sent, back, strict=True)) if 1 < len(facts) <= MOST_ROWS else []
        thing = " ".join(name_words(facts[0].able.tool.name)[-1:])  # the `A` of `kiln({"id": "A"})` is kiln A
        rows = [
            {thing if key == "id" else key: cell for key, cell in {**one, **two}.items()}
            for one, two in pairs
            if isinstance(one, dict) and isinstance(two, dict)
        ]
        if rows and len(rows) == len(facts) and not any(fact.outcome.error for fact in facts):
            yield json.dumps(rows)


def _tables(document: Json, place: str, depth: int) -> Iterator[tuple[Row, ...]]:
    if isinstance(document, list):
        objects = [one for one in document if isinstance(one, dict)]
        if 1 < len(objects) == len(document) <= MOST_ROWS:
            yield _rows_of(objects, [f"{place}/{number}" for number in range(len(objects))])
    elif isinstance(document, dict) and depth < DEEPEST:
        alike: dict[frozenset[str], dict[str, dict[str, Json]]] = {}
        for key, one in document.items():
            if isinstance(one, dict):
                alike.setdefault(frozenset(one), {})[key] = one
        for named in (one for one in alike.values() if 1 < len(one) <= MOST_ROWS):
            rows = _rows_of([*named.values()], [f"{place}/{key}" for key in named])
            yield tuple(
                row._replace(names=(" ".join(name_words(key)), *row.names))
                for key, row in zip(named, rows, strict=True)
            )
        if _FEWEST_NUMBERS <= len(document) <= MOST_ROWS and all(map(_is_numbered, document, document.values())):
            yield tuple(
                Row((key,), {"date": key, place.rpartition("/")[2]: one}, f"{place}/{key}")
                for key, one in document.items()
            )
        if 1 < len(document) <= MOST_ROWS and all(str(one).casefold() in states() for one in document.values()):
            yield tuple(
                Row((" ".join(name_words(key)),), {key: one}, f"{place}/{key}") for key, one in document.items()
            )
        for key, value in document.items():
            yield from _tables(value, f"{place}/{key}", depth + 1)


_FEWEST_NUMBERS = 3


def _is_numbered(key: str, cell: Json) -> bool:
    """Return True for a number below a date or a time: `"2026-03-02": 21.5`."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and bool(dates(key) or clocks(key))


def _rows_of(objects: Sequence[Mapping[str, Json]], places: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of a table with their names: the texts of its naming columns, and words of the first of these."""
    naming = [key for key in objects[0] if _is_naming([_name(key, one.get(key)) for one in objects])]
    # A time of day names a row only if nothing else does: it may be told of other rows.
    naming = [key for key in naming if CLOCK.fullmatch(str(objects[0][key])) is None] or naming
    first = next((key for key in naming if NAME_WORD.search(str(objects[0][key]))), None)
    heads = ["" if first is None or _is_placeholder(one[first]) else str(one[first]).casefold() for one in objects]
    words = [[*NAME_WORD.findall(head), *_CODE_WORD.findall(head)] for head in heads]
    texts = (" ".join(map(str, one.values())).casefold() for one in objects)
    every = Counter(word for text in texts for word in {*NAME_WORD.findall(text), *_CODE_WORD.findall(text)})
    every_file = Counter(str(one.get(key)).rpartition("/")[2] for key in naming for one in objects)
    kinds = {str(one.get(naming[0])).rpartition(".")[0] for one in objects} if naming else set()
    rows = []
    numbered = _by_number(objects, places[0].rpartition("/")[0].rpartition("/")[2]) or [()] * len(objects)
    for one, own, place, number in zip(objects, words, places, numbered, strict=True):
        names = [*number, *(str(_name(key, one[key])) for key in naming if not _is_placeholder(one[key]))]
        names += [
            base for name in names if (base := name.rpartition("/")[2]) not in ("", name) and every_file[base] == 1
        ]
        names += [plain for name in names if (plain := _spoken(name, alike=len(kinds) == 1)) not in ("", name)]
        several = first is not None and len(str(one[first]).split()) > 1
        rows.append(Row((*names, *(word for word in own if every[word] == 1 and several)), one, place))
    return tuple(rows[:-1] if _is_total(objects) else rows)


def _spoken(name: str, *, alike: bool) -> str:
    """Return how a reply may spell an id of joined words: `garden door` of `lock.garden_door`.

    `alike`: all ids begin with the same word and a dot, so that `lock.front` is `front`; `report.pdf` is not `pdf`.
    """
    kind, _, last = name.rpartition(".")
    joined = "_" in last or (kind.isalpha() and alike and last.isalpha())
    return " ".join(name_words(last)) if joined and " " not in last and not DIGIT.search(last) else ""


def _is_total(objects: Sequence[Mapping[str, Json]]) -> bool:
    """Return True if the last of some rows adds up the others: its first cell says so."""
    return _PHRASES["total_row"].match(str(next(iter(objects[-1].values()), ""))) is not None


def _by_number(objects: Sequence[Mapping[str, Json]], list_key: str) -> list[tuple[str, ...]]:
    """Return the names of each row by the number in the first column; nothing if two are equal.

    `line 3` of `"line": 3`, and `amendment 3` of `"no": 3` in a list with the key `amendments`.
    """
    key = next(iter(objects[0]), "")
    cells = [one.get(key) for one in objects]
    numbers = [cell for cell in cells if type(cell) is int and 0 <= cell < LARGE]
    named = len(numbers) == len(cells) == len(set(numbers)) and name_words(key)
    things = [word[:-1] for word in name_words(list_key)[-1:] if word.endswith("s") and word not in _PLACES]
    words = [name_words(key)[-1], *things] if named else []
    return [tuple(f"{word} {number}" for word in words) for number in numbers] if named else []


_PLACES = frozenset(("rows", "items", "results", "entries", "records", "lines", "hits"))
"""Keys of lists whose "item 3" is the third one, and not the one with this number."""


def without_states(table: Sequence[Row]) -> list[Row]:
    """Return a table without the flags and states of its rows."""
    return [
        row._replace(
            cells={key: cell for key, cell in row.cells.items() if not (isinstance(cell, bool) or states_of(key, cell))}
        )
        for row in table
    ]


def with_other_names(whole: Sequence[Sequence[Row]]) -> list[Sequence[Row]]:
    """Return tables whose rows have also the names that rows of the other tables with one of their names have.

    `{"person": "p22", "overtime": 4}` is Sten's if another result has `{"id": "p22", "name": "Sten"}`.
    """
    homes: dict[str, list[tuple[int, Row]]] = {}
    for number, table in enumerate(whole):
        for row in table:
            for name in row.names:
                homes.setdefault(name, []).append((number, row))
    return [
        _with_names(table, [_other_names(row, number, homes) for row in table]) for number, table in enumerate(whole)
    ]


def _other_names(row: Row, number: int, homes: Mapping[str, Sequence[tuple[int, Row]]]) -> dict[str, None]:
    """Return the names that rows of other tables than the one of this number have beside a name of a row."""
    beside = (one for own in row.names for one in homes[own] if len(homes[own]) <= _MOST_HOMES)
    return dict.fromkeys(name for at, one in beside if at != number for name in one.names)


def _with_names(table: Sequence[Row], more: Sequence[Mapping[str, None]]) -> Sequence[Row]:
    every = Counter(itertools.chain.from_iterable(more))
    return [
        row._replace(names=tuple(dict.fromkeys((*row.names, *(name for name in new if every[name] == 1)))))
        for row, new in zip(table, more, strict=True)
    ]


_MOST_HOMES = 8
"""Rows with one name, which many results may have."""


def by_clock(table: Sequence[Row]) -> list[Row]:
    """Return the rows of a table named by a time of day that no other row has: for a reply without their other names."""
    times = [[cell for cell in row.cells.values() if isinstance(cell, str) and CLOCK.fullmatch(cell)] for row in table]
    counts = Counter(itertools.chain.from_iterable(times))
    return [
        row._replace(names=tuple(one for one in own if counts[one] == 1)) for row, own in zip(table, times, strict=True)
    ]


def fields_by_key(text: str) -> tuple[Row, ...]:
    """Return the fields of the objects of a result, each as a row with the words of its key as names: `hora prevista`.

    A key that two objects have names none of them. Lists are tables, and not read here.
    """
    rows = [
        Row(names, {key: cell}, place)
        for place, key, cell in _scalars(decode_json(text), "", 0)
        if (names := _key_names(place.split("/")[-2] if key in _PLAIN_KEYS and place.count("/") > 1 else key))
    ]
    counts = Counter(name for row in rows for name in row.names)
    rows = [row._replace(names=tuple(name for name in row.names if counts[name] == 1)) for row in rows]
    return tuple(row for row in rows if row.names)[:MOST_ROWS]


_PLAIN_KEYS = frozenset(("date", "value", "amount", "at", "time", "number", "text", "datum", "fecha", "data", "until"))
"""Keys that say only with the one around them what they hold: `"service": {"date": "2026-05-04"}`."""


def _scalars(document: Json, place: str, depth: int) -> Iterator[tuple[str, str, Json]]:
    for key, value in document.items() if isinstance(document, dict) and depth < DEEPEST else ():
        if isinstance(value, dict):
            yield from _scalars(value, f"{place}/{key}", depth + 1)
        elif not isinstance(value, (list, bool)) and DIGIT.search(str(value)):
            yield f"{place}/{key}", key, value


@cache
def _key_names(key: str) -> tuple[str, ...]:
    """Return how a reply may name a key: `last payment` of `last_payment_eur`, `average` of `avg`."""
    words = [word for word in name_words(key) if unit_of(word) is None and unit_of(word.upper()) is None]
    whole = " ".join(words)  # `valid from` beside `valid to`
    words = [word for word in words if word not in STOP and not any(map(str.isdigit, word))]
    longer = [_PHRASES.table("longer_keys").get(word, word) for word in words]
    names = dict.fromkeys((whole, " ".join(words), " ".join(longer), *(words[:1] if len(key.split("_")) > 2 else ())))
    return (
        tuple(name for name in names if len(name) >= SHORTEST_KEY) if _PHRASES["names_only"].search(key) is None else ()
    )


def _name(key: str, cell: Json) -> Json:
    """Return what may name a row: a text, `field B` of `"field": "B"`, or the number of a thing: `"batch_id": 2208`."""
    if isinstance(cell, str) and 0 < len(cell) <= _SHORT and cell.isascii() and (cell.isalpha() or cell.isdigit()):
        return " ".join((*name_words(key)[-1:], cell))
    is_id = isinstance(cell, int) and cell >= LARGE and _PHRASES["names_only"].search(key) is not None
    return f"{cell}" if is_id else cell


def _is_naming(column: Sequence[Json]) -> bool:
    """Return True if no two cells of a column are equal, and all are short texts."""
    column = [one for one in column if not _is_placeholder(one)]
    texts = [one for one in column if isinstance(one, str) and _is_text_of_name(one)]
    folded = [one.casefold().replace("_", " ") for one in texts]
    if 2 * sum(one.endswith("ed") or one in PARTICIPLES or one in states() for one in folded) > len(texts):
        return False  # events and states, which a sentence about other rows has too
    return 1 < len(texts) == len(column) == len({one.casefold() for one in texts})


def _is_placeholder(cell: Json) -> bool:
    """Return True for a cell in place of a name: `--` or `(no service)`."""
    return isinstance(cell, str) and _PLACEHOLDER.fullmatch(cell) is not None


_PLACEHOLDER = re.compile(r"-+|—|–|\([^()]*\)")


def _is_text_of_name(cell: str) -> bool:
    return cell == "/" or (1 < len(cell) <= _LONGEST_NAME and _NAMING.search(cell) is not None)


class Clause(NamedTuple):
    """A part of a reply about one row, with blanks in place of the names."""

    row: Row
    start: int
    end: int
    text: str


NamedRow: TypeAlias = tuple[tuple[int, int], Row, str]
Named: TypeAlias = tuple[tuple[int, int], list[NamedRow]]
"""A part of a reply by its offsets, and the names of rows in it with theirs."""


def clauses_of(prose: Prose, parts: Sequence[Named]) -> Iterator[Clause]:
    """Yield the clauses of rows."""
    for part, found in parts:
        one_row = len({row.place for _, row, _ in found}) == 1
        starts = (start for (start, _), _, _ in found)
        if not one_row and any(_COMPARED.search(prose.text, max(part[0], at - _BEFORE_NAME), at) for at in starts):
            continue  # "38 minutes more than the scooter, but only €2.30": what follows is about the first row
        first = next((key for _, row, name in found if (key := row.key_of(name)) is not None), None)
        found = [one for one in found if one_row or one[1].key_of(one[2]) in (None, first)]
        for piece, inside in (
            [(_of_one_subject(prose.text, part, found), found)] if one_row else _stretches(prose.text, part, found)
        ):
            yield clause_of(prose, inside[0][1], piece, [span for span, _, _ in inside])


def _of_one_subject(text: str, part: tuple[int, int], found: Sequence[NamedRow]) -> tuple[int, int]:
    """Return a clause up to another subject in it: "saithe has plenty, and ling is untouched at 900 kg"."""
    other = _PHRASES["other_subject"].search(text, found[-1][0][1], part[1])
    listed = _NEXT_IN_BRACKETS.match(text, found[-1][0][1], part[1])  # "ash (until May) and elm (until June)"
    return part[0], listed.start("next") if listed is not None else other.start() if other is not None else part[1]


_NEXT_IN_BRACKETS = re.compile(r"[ *]*\([^()]*\)(?P<next>,? (?:\w{1,4} )?[^\W\d_][^,.()]* \()")
_COMPARED = re.compile(
    r"(?i)\b(?:than|als|que|do que|di|rispetto a|dan|än|end|niż|чем|decât|mint)\s+"
    r"(?:(?:the|der|die|das|dem|den|l[aeo]s?|il|a|o|as|os|el|de|het|det)\s+)?\Z"
)
"""The words right before the name of a row that another row is compared with: `than the `."""


def clauses_behind(prose: Prose, parts: Sequence[Named]) -> Iterator[Clause]:
    """Yield the text behind each name, up to the next one."""
    for part, whole in parts:
        found = list(outermost(whole))
        ends = [*(start for (start, _), _, _ in found[1:]), part[1]]
        for ((_, start), row, _), end in zip(found, ends, strict=True):
            yield clause_of(prose, row, (start, max(start, end)), ())


def outermost(named: Sequence[NamedRow]) -> Iterator[NamedRow]:
    """Yield the names that are in no longer one: of "due date" not "date"."""
    reached, last = -1, (-1, -1)
    for one in sorted(named, key=lambda one: (one[0][0], -one[0][1])):
        if one[0][1] > reached or one[0] == last:
            yield one
            reached, last = one[0][1], one[0]


def _stretches(text: str, part: tuple[int, int], found: Sequence[NamedRow]) -> Iterator[Named]:
    """Yield the pieces of a clause from the name of one row to that of the next: `A-1: 12 EUR, A-2: 3 EUR`.

    Nothing if a number stands before the first name, or none behind a name: the numbers may then belong to the next name.
    """
    runs = [list(run) for _, run in itertools.groupby(found, key=lambda one: one[1].place)]
    starts = [run[0][0][0] for run in runs]
    ends = [_closed(text, run[-1][0][1], end) for run, end in zip(runs, [*starts[1:], part[1]], strict=True)]
    pieces = list(zip(starts, ends, strict=True))
    told = (
        DIGIT.search(text, run[-1][0][1], end) or any(CLOCK.fullmatch(name) for _, _, name in run[1:])
        for run, (_, end) in zip(runs, pieces, strict=True)
    )
    head = values(text[part[0] : starts[0]].rpartition(":")[2])  # "On day 8 there are three:" gives nothing
    rows = {run[0][1].place: run[0][1] for run in runs}
    of_all = (all(value.readings[0] in row.cells.values() for row in rows.values()) for value in head)
    if len(rows) == len(runs) and all(of_all):  # "after 20 games", which all of them have
        yield from zip(pieces, runs, strict=True) if all(told) else ()


def _closed(text: str, start: int, end: int) -> int:
    """Return the first bracket after a name that closes one before it, or else the end: "one refused (the harp), one …"."""
    depth = 0
    for at in range(start, end):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth < 0:
            return at
    return end


def named_rows(prose: Prose, table: Sequence[Row]) -> list[Named]:
    """Return the clauses of statements and the lines of tables that name rows, and the items below a row's name."""
    named = named_in(folded(prose.text), table)
    named = [one for one in named if _FROM.search(prose.text, max(one[0][0] - _BEFORE_NAME, 0), one[0][0]) is None]
    parts = _parts(prose, named)
    return [*parts, *_items_below_names(prose, named), *_sentences_behind(prose, parts, table)]


def named_in(plain: str, table: Sequence[Row]) -> list[NamedRow]:
    """Return the names of rows in a text without capitals and accents."""
    return [(span, row, name) for row in table for name in row.names for span in places(plain, folded(name))]


def rows_by_date(prose: Prose, table: Sequence[Row]) -> list[Named]:
    """Return the clauses with a date that only one row of a table has; no row has two."""
    days = [[day for cell in row.cells.values() if isinstance(cell, str) for day in dates(cell)] for row in table]
    if any(len(own) != 1 for own in days):
        return []
    homes = [
        (day, [row for row, own in zip(table, days, strict=True) if day.agrees(own[0])]) for day in dates(prose.text)
    ]
    return _parts(prose, [((day.start, day.end), rows[0], "") for day, rows in homes if len(rows) == 1])


def _parts(prose: Prose, named: Sequence[NamedRow]) -> list[Named]:
    named = sorted(named, key=itemgetter(0))
    spans = [(one.start, one.end) for one in prose.sentences if not one.question]
    spans += [line.span() for line in TABLE_LINE.finditer(prose.text)]
    found: list[Named] = []
    for start, end in dict.fromkeys(part.span() for span in spans for part in _CLAUSE.finditer(prose.text, *span)):
        first, last = (bisect.bisect_left(named, at, key=_start) for at in (start, end))
        if inside := [one for one in named[first:last] if one[0][1] <= end]:
            found.append(((start, end), inside))
    return found


def _sentences_behind(prose: Prose, parts: Sequence[Named], table: Sequence[Row]) -> Iterator[Named]:
    """Yield the sentences behind one about one row, in the same line, up to one with a word of another row's name."""
    names = {part: found[:1] for part, found in parts if len({row.place for _, row, _ in found}) == 1}
    start, about, others = 0, list[NamedRow](), set[str]()
    for one in prose.sentences:
        inside = [part for part, _ in parts if one.start <= part[0] and part[1] <= one.end]
        if inside:
            start, about = inside[-1][0], names.get(inside[-1], []) if len(inside) == 1 else []
            others = _words_of_others(about[0][1], table) if about else set()
        elif about and not (
            "\n" in prose.text[start : one.start]
            or one.question
            or _has_any(one.masked, others)
            or _is_of_several(one.masked)
        ):
            yield (one.start, one.end), about
        else:
            about = []


def _is_of_several(text: str) -> bool:
    """Return True if a sentence compares, is about what is usual or possible, or about all rows: "the mean is 6.8"."""
    return any(_PHRASES[key].search(text) for key in ("compares", "general")) or any(
        _OF_TOTALS[key].search(text) for key in ("mean", "total")
    )


def _has_any(text: str, words: set[str]) -> bool:
    return not words.isdisjoint(_NAME_PART.findall(text.lower()))


def _words_of_others(row: Row, table: Sequence[Row]) -> set[str]:
    """Return the words in names of rows other than one: `shop` of `shop.mill.example`."""
    own = {word for name in row.names for word in _NAME_PART.findall(name.lower())}
    return {word for other in table for name in other.names for word in _NAME_PART.findall(name.lower())} - own


_NAME_PART = re.compile(r"[^\W\d_]{3,}|\d{3,}|[^\W\d_]\d+")


def _items_below_names(prose: Prose, named: Sequence[NamedRow]) -> Iterator[Named]:
    """Yield the items of lists below a line that names one row and ends with a colon, or is a heading, bold or an item."""
    for block in itertools.chain(_LIST.finditer(prose.text), _LIST_IN_LIST.finditer(prose.text)):
        above = [one for one in named if block.start("head") <= one[0][0] < block.end("head")]
        inside = [one for one in named if block.start("items") <= one[0][0] < block.end("items")]
        if not above or len({row.place for _, row, _ in (*above, *inside)}) != 1:
            continue
        for item in _LIST_ITEM.finditer(prose.text, *block.span("items")):
            yield item.span(), above[:1]


_LIST_ITEM = re.compile(r"^[ \t]*[-*•] .+$", re.MULTILINE)
_LIST = re.compile(
    r"^(?P<head>#+ .+|\*\*.+\*\*|.*:\**)[ \t]*\n(?:[ \t]*\n)?(?P<items>(?:[ \t]*[-*•] .+(?:\n|\Z)){1,24})", re.MULTILINE
)
_LIST_IN_LIST = re.compile(r"^[-*•] (?P<head>.+)\n(?P<items>(?:[ \t]+[-*•] .+(?:\n|\Z)){1,24})", re.MULTILINE)


_FROM = re.compile(r"\d\W?\w{0,4} (?:from|past|beyond) (?:\w+ )?\Z")
"""A distance from a thing: `31.5 nm from` the light."""
_BEFORE_NAME = 24


def folded(text: str) -> str:
    """Return a text of the same length in lower case and without accents, but for letters that are two without: `ß`."""
    lowered = text.lower() if len(text.lower()) == len(text) else text
    plain = bare(lowered)
    if len(plain) == len(text):
        return plain
    return "".join(plain if len(plain := bare(letter)) == 1 else letter for letter in lowered)


def _start(named: NamedRow) -> int:
    return named[0][0]


_SMALL_WORDS = r"\W+(?:\w{1,4}\W+){0,2}"


def places(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of a name as a whole word; a long one may have an ending: `Altandörren` of `altandörr`."""
    if not name:
        return
    words = name.split(" ")
    if _CYRILLIC.fullmatch(name):  # `Лесную` of `Лесная`
        form = rf"(?<!\w){name[:-2]}[а-яё]{{1,3}}(?!\w)" if name[:-2] in text else ""
    elif name in text:
        form = ""
    elif len(words) > 1 and all(word.isalpha() and word in text for word in words):  # `paspoort voor een volwassene`
        form = rf"(?<![\w-]){_SMALL_WORDS.join(words)}(?![\w-])"
    elif len(name) >= _INFLECTED and name.isalpha() and name.endswith(("a", "e", "o")) and name[:-1] in text:
        form = rf"(?<![\w-]){name[:-1]}[a-z]{{1,2}}(?![\w-])"  # `Statystykę` of `Statystyka`
    else:
        return
    if form:
        yield from (found.span() for found in re.finditer(form, text))
        return
    inflected = len(name) >= _INFLECTED and name.isalpha()
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if inflected and (ending := _ENDING.match(text, end)):
            end = ending.end()
        beside = text[max(start - 1, 0) : start] + text[end : end + 1]
        if not any((sign.isalnum() and sign < FIRST_UNSPACED) or sign in "_-" for sign in beside):
            yield start, end
        start = text.find(name, end)


def clause_of(prose: Prose, row: Row, span: tuple[int, int], names: Sequence[tuple[int, int]]) -> Clause:
    start, end = span
    text = prose.text[start:end]
    for first, last in ((first - start, last - start) for first, last in names if start <= first and last <= end):
        text = f"{text[:first]}{' ' * (last - first)}{text[last:]}"
    return Clause(row, start, end, text)


def holds(text: str, word: str) -> bool:
    """Return True if a text has a word or words, in any case, with no letter, digit or `_` beside them."""
    text, word = text.lower(), word.lower()
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        beside = text[max(at - 1, 0) : at] + text[end : end + 1]
        if not any(sign.isalnum() or sign == "_" for sign in beside):
            return True
        at = text.find(word, at + 1)
    return False


def own_data(row: Row, text: str) -> list[Datum]:
    return [datum for datum in data(text) if datum.place == row.place or datum.place.startswith(f"{row.place}/")]


def times_of(row: Row) -> set[int]:
    return {clock.minutes for cell in row.cells.values() if isinstance(cell, str) for clock in clocks(cell)}
