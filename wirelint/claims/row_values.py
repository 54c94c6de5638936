"""Clauses of a reply about one row of a result: what they give the row that it does not have.

A value of the clause contradicts the row if another row has it in a column of which the clause leaves out the row's own
value; or if no text of the conversation has it, nothing leads to it, and the row has another value of the same unit or key.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from fractions import Fraction

from wirelint import lexicon
from wirelint.claims.derivation import (
    MONEY,
    Datum,
    GivenDates,
    as_datum,
    data,
    days_apart,
    derived_from,
    equals,
    follows_from_dates,
    is_computed,
    is_last_day,
    is_percentage,
    is_said,
    simple_ratio,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import (
    is_bound,
    is_interval,
)
from wirelint.claims.moments import form_of_durations
from wirelint.claims.rows import DIGIT, LARGE, Clause, Row, holds, own_data, times_of
from wirelint.claims.states import FIRST_UNSPACED, opposite_state, pattern_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Date, Value, clocks, dates, same, unit_of, values, without_moments
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("grounding")
_LONGEST_WORD = 30
_TELLING = 10
"""Whole numbers from which on this holds in a table with one column of numbers."""
_ROW = re.compile(r"(?:/[^/]*?)*?/\d+(?=/)")
"""The pointer of a row: `/items/3` of `/items/3/price`."""
_NEXT_THING = re.compile(r"[,;，、](?!\d)|\s(?:and|und|et|y|e|en|och|og|и)\s")
_ROOT = 4
"""Signs of a key that are beside its number: `安全在庫` of `安全在庫箱`."""
_SHORT_KEY = 3
_KEY_NEAR = 24
"""Characters between a number and the word of its key."""


def wrong_clause(
    turn: Turn,
    text: str,
    table: Sequence[Row],
    clauses: Sequence[Clause],
    *,
    by_key: bool = False,
) -> Contradiction | None:
    """Return a clause that contradicts its row of a result. `by_key`: the rows are fields, named by their keys."""
    if not clauses:
        return None
    everywhere = GivenDates(turn.texts)
    given = everywhere if by_key else GivenDates(turn.told)
    others = (other for other in turn.results if other != text and text in turn.results)
    asked = [*(as_datum(value) for value in values(turn.order)), *(datum for other in others for datum in data(other))]
    elsewhere = [*turn.told, *(other for other in turn.results if other != text and text in turn.results)]
    ratios = Counter(ratio for clause in clauses for ratio in _ratios(values(clause.text), own_data(clause.row, text)))
    portions = {ratio for ratio, count in ratios.items() if count > 1}
    for clause in clauses:
        against = (
            _value_of_another(clause, text, table, asked, elsewhere, portions)
            or _date_of_another(turn.prose, clause, table, everywhere, by_key=by_key)
            or _time_of_another(turn.prose, clause, table, clauses, everywhere)
            or (None if by_key else _only_time_of_another(turn.prose, clause, table, given))
            or _state_of_clause(clause)
        )
        if against is not None:
            return Contradiction(clause.start, clause.end, against)
    return None


def _ratios(told: Iterable[Value], own: Sequence[Datum]) -> set[Fraction]:
    """Return the simple ratios to numbers of a row, of the values that the row does not have themselves; never 1."""
    other = (one for one in told if not derived_from(one, own))
    ratios = (simple_ratio(one, mine.value, _SMALL_RATIO) for one in other for mine in own)
    return {ratio for ratio in ratios if ratio is not None and ratio != 1}


_SMALL_RATIO = 4
"""The largest denominator of a factor between portions."""


def _value_of_another(
    clause: Clause,
    text: str,
    table: Sequence[Row],
    asked: Sequence[Datum],
    texts: Sequence[str],
    portions: Set[Fraction],
) -> str | None:
    """Return why a value of a clause is not of its row.

    `asked`: the values of the user's message and of other results. `portions`: ratios that several rows have.
    """
    stated = without_moments(clause.text)
    pool = data(text) if stated else ()
    own = own_data(clause.row, text) if stated else []
    sole = len(clause.row.cells) == 1
    if sole and stated:  # a field without a unit may have any: `"offen": 584.1`
        own = [one if one.value.unit else one._replace(value=one.value._replace(unit=stated[0].unit)) for one in own]
    rows = {row.place for row in table} - {clause.row.place}
    below = tuple(f"{place}/" for place in rows)
    others = [datum for datum in pool if datum.place in rows or datum.place.startswith(below)]
    related = _PHRASES["compares"].search(clause.text) is not None  # the clause tells of another row too
    elsewhere = {} if related else _in_one_other_row(stated, own, others)
    name = blanks.start() if (blanks := _BLANKS.search(clause.text)) is not None else 0
    for value in stated[:1] if sole else stated:
        if sole and (_ratios([value], own) or _NEXT_THING.search(clause.text, 0, value.start)):
            continue  # a recipe for three times as many, or the next thing
        datum = elsewhere.get(value) if not (value.ranges or is_bound(value, clause.text)) else None
        if datum is not None and any(mine.column == datum.column for mine in own):
            return f"{clause.text[value.start : value.end]!r} belongs to another row: {datum.place}"
        if _is_no_amount(value, clause.text) or not portions.isdisjoint(_ratios([value], own)):
            continue
        lacking = [datum for datum in own if not any(equals(other, datum.value) for other in stated)]
        columns = {datum.column for datum in _sources(value, others, text)} - {"#"}
        # The value of another row with the word of its key has hardly been computed: "8.5 in Maths"
        labelled = {one.column for one in lacking if is_beside_key(value, one.column, clause.text)} & columns
        beside = [as_datum(other) for other in stated if other is not value]
        if (
            derived_from(value, own)
            or (not labelled and _is_of_row(value, own, beside, asked))
            or (not labelled and is_said(value, clause.text, texts))
        ):
            continue
        telling = value.unit is not None or not value.is_whole or abs(value.readings[0]) >= LARGE
        if not telling and _are_one_column([*own, *others]):
            telling = _is_only_unsaid(value, stated, clause.text, texts)
        # "third with 44 points, so only 5 behind the first": the comparison is another piece of the clause
        compared = related and any(
            map(_PHRASES["compares"].search, (_piece(clause.text, at) for at in (value.start, name)))
        )
        if columns and not compared:
            same = (datum for datum in lacking if datum.column in columns)
            mine = next((datum for datum in same if telling or is_beside_key(value, datum.column, clause.text)), None)
            if mine is not None and not any(equals(value, datum.value) for datum in pool if datum not in others):
                shown = clause.text[value.start : value.end]
                return f"{shown!r} belongs to another row: {mine.place} = {mine.value.readings[0]:g}"
    return None


def _piece(text: str, at: int) -> str:
    """Return the piece of a clause between commas and brackets that has an offset."""
    start = max(text.rfind(sign, 0, at) for sign in _PIECE_ENDS) + 1
    return text[start : min((end for sign in _PIECE_ENDS if (end := text.find(sign, at)) >= 0), default=len(text))]


_PIECE_ENDS = ",()"


def _is_only_unsaid(value: Value, stated: Sequence[Value], shown: str, texts: Sequence[str]) -> bool:
    """Return True if a number of two digits is the only one of a clause that no text has."""
    return abs(value.readings[0]) >= _TELLING and all(one is value or is_said(one, shown, texts) for one in stated)


def _sources(value: Value, others: Sequence[Datum], text: str) -> Iterator[Datum]:
    """Yield the data of other rows that a value may be. Those of a whole number with a unit have a unit, too, but money."""
    between = is_interval(value, [text])
    measured = value.is_whole and value.unit is not None and value.unit.dimension not in MONEY
    for datum in others:
        if datum.value.unit is None and (between or measured):
            continue  # "6 days" or "6 kg", of 6 places
        if equals(value, datum.value) and value.is_whole >= datum.value.is_whole:
            yield datum


def _is_no_amount(value: Value, text: str) -> bool:
    """Return True for a number that a row need not have: a range, a bound, a price for a unit, one denied or set apart."""
    if value.ranges or is_bound(value, text) or _TO_NAME.match(text, value.end):
        return True
    if _PHRASES["negates"].search(_PHRASES["still"].sub(" ", _piece(text, value.start))):
        return True  # "hasn't paid the £40 deposit"
    return _PHRASES["apart"].match(text, value.end) is not None


_TO_NAME = re.compile(r"\s?(?:to|bis|à|a|do|-|–)\s{2}")
"""The middle of a range whose end names the row, and is blank: "from 30K to 40K"."""


def _is_of_row(value: Value, own: Sequence[Datum], beside: Sequence[Datum], asked: Sequence[Datum]) -> bool:
    """Return True if a value follows from its row, with the values beside it and those that the user asked about."""
    known = [*own, *beside, *(one for one in asked if is_percentage(one.value))]
    return is_computed(value, known) or _is_part_of_pack(value, own, [*beside, *asked])


_MOST_PIECES = 24
"""Numbers that are tried as a number of pieces."""


def _is_part_of_pack(value: Value, own: Sequence[Datum], pieces: Sequence[Datum]) -> bool:
    """Return True if a value is the price of some pieces of a pack: 1.20 for 4 of 10 at 3.00."""
    prices = [one.value.readings[0] for one in own if one.value.unit is not None and one.value.unit.dimension in MONEY]
    packs = [one.value.readings[0] for one in own if one.value.is_whole and one.value.readings[0] > 1]
    several = [one.value.readings[0] for one in pieces[:_MOST_PIECES] if one.value.is_whole]
    parts = (price * count / pack for price, count, pack in itertools.product(prices, several, packs))
    return any(same(value.readings[0], part, value.step / 2) for part in parts)


def _are_one_column(some: Sequence[Datum]) -> bool:
    columns = {one.column for one in some} - {"#"}
    return len({column for column in columns if _PHRASES["names_only"].search(column) is None}) == 1


def _in_one_other_row(stated: Sequence[Value], own: Sequence[Datum], others: Sequence[Datum]) -> dict[Value, Datum]:
    """Return the values of a clause that are not of its row, if one other row has two or more of them: `4 booked, 5 free`.

    Nothing if a value is only that of the row: the clause then tells of both rows.
    """
    strange = [value for value in stated if not derived_from(value, own) and not is_computed(value, own)]
    if any(value not in strange and not derived_from(value, others) for value in stated):
        return {}
    rows: dict[str, dict[Value, Datum]] = {}
    for value in strange:
        for datum in others:
            if datum.column != "#" and equals(value, datum.value):
                row = _ROW.match(datum.place)
                rows.setdefault(row[0] if row else datum.place, {}).setdefault(value, datum)
    several = (found for found in rows.values() if len({datum.column for datum in found.values()}) > 1)
    return next((found for found in several if len({value.readings for value in found}) > 1), {})


def is_beside_key(value: Value, key: str, text: str) -> bool:
    """Return True if a word of a key is near a value: `pulse 64`."""
    near = text[max(value.start - _KEY_NEAR, 0) : value.end + _KEY_NEAR].casefold()
    words = (word[:_ROOT] if word[:1] >= FIRST_UNSPACED else word for word in name_words(key))
    return any(
        (word in near if len(word) > _SHORT_KEY else len(word) == _SHORT_KEY and holds(near, word))
        for word in words
        if unit_of(word) is None
    )


def _date_of_another(
    prose: Prose, clause: Clause, table: Sequence[Row], everywhere: GivenDates, *, by_key: bool
) -> str | None:
    """Return why a date of a clause contradicts its row: it is that of another row or, in place of the date of a key,
    follows from nothing. `everywhere`: the dates of the conversation.
    """
    known = _dates_of(clause.row)
    stated = dates(prose.text[clause.start : clause.end]) if known else ()
    if not stated or everywhere.are_too_many:
        return None
    for date in dates(clause.text):
        if any(date.agrees(mine) or any(map(mine.agrees, stated)) for mine in known):
            continue
        if any(re.search(rf"(?<!\d){mine.day}\.(?!\d)", clause.text) for mine in known):
            continue  # "until the 10th": `bis zum 10. und`
        in_table = sum(date.agrees(other) for row in table for other in _dates_of(row))
        before = clause.text[: date.start]
        labelled = by_key and in_table > 0 and _RIGHT_BEHIND.fullmatch(before) is not None
        if not labelled and sum(date.agrees(other) for other in everywhere.dates) > in_table:
            continue
        computed = in_table == 0
        if by_key:  # "ends on 31 July": a date right behind a key is that of the key
            given = [*known, *everywhere.dates]
            computed = not _RIGHT_BEHIND.fullmatch(before) and follows_from_dates(date, given, everywhere.spans)
        if computed or is_last_day(date, known, before) or _is_after_interval(date, clause.row):
            continue
        shown = clause.text[date.start : date.end]
        own = next(f"{key} = {cell}" for key, cell in clause.row.cells.items() if isinstance(cell, str) and dates(cell))
        return f"the date {shown!r} is not that of its row: {clause.row.place}/{own}"
    return None


def _is_after_interval(date: Date, row: Row) -> bool:
    """Return True if a date is as many days from one of its row as the row tells: watered on 1 June, every 18 days.

    A date one day off counts, too, if the row has a time of day: the reply may use another time zone.
    """
    apart = {abs(days_apart(date, mine) or 0) for mine in _dates_of(row)}
    if 1 in apart and times_of(row):
        return True
    return any(cell in apart for cell in row.cells.values() if isinstance(cell, (int, float)) and cell > 1)


def _dates_of(row: Row) -> list[Date]:
    return [date for cell in row.cells.values() if isinstance(cell, str) for date in dates(cell)]


_RIGHT_BEHIND = re.compile(r"\W{0,8}(?:\w{1,8}\W{1,4})?")


def _time_of_another(
    prose: Prose, clause: Clause, table: Sequence[Row], clauses: Sequence[Clause], everywhere: GivenDates
) -> str | None:
    """Return why a time in a clause contradicts its row, if the reply has another time of the row, or the times of
    another row, unchanged.

    The clause has all times of the row but one, and another one in its place.
    """
    own, told = times_of(clause.row), clocks(clause.text)
    strange = [clock for clock in told if clock.possible.isdisjoint(own)]
    whole = _told_times(prose, clause)
    if home := next((row for row in table if len(whole) > 1 and times_of(row) == whole != own), None):
        return f"the times belong to another row: {home.place}" if strange and own else None
    left = own - whole
    if len(strange) != 1 or len(left) != 1 or everywhere.are_too_many:
        return None
    if not strange[0].possible.isdisjoint(everywhere.minutes):
        return None
    (hour, minute), (own_hour, own_minute) = divmod(strange[0].minutes, 60), divmod(left.pop(), 60)
    if hour != own_hour and minute != own_minute:
        return None  # neither the hour nor the minutes are the row's: rather computed
    if form_of_durations([*map(str, clause.row.cells.values())]).match(clause.text, strange[0].start):
        return None
    before = clause.text[: strange[0].start]
    if _PHRASES["bound"].search(before) or _DEADLINE.search(before) or _IN_PLACE.match(clause.text, strange[0].end):
        return None
    others = (one for one in clauses if one.row is not clause.row and times_of(one.row))
    as_it_is = len(told) > 1 or any(_told_times(prose, one) == times_of(one.row) for one in others)
    shown = clause.text[strange[0].start : strange[0].end]
    return f"the time {shown!r} is not that of its row: {clause.row.place}" if as_it_is else None


def _only_time_of_another(prose: Prose, clause: Clause, table: Sequence[Row], given: GivenDates) -> str | None:
    """Return why the only time of day in a clause is that of another row: "Mbeki is at 13:00", the time of Hargreaves."""
    own, told = times_of(clause.row), clocks(clause.text)
    if len(own) != 1 or len(told) != 1 or not told[0].possible.isdisjoint(own | given.minutes):
        return None
    if not own.isdisjoint(_told_times(prose, clause)):
        return None  # the row is named by its time, and the other one is of another row
    if any(_PHRASES[key].search(clause.text) for key in ("relates", "negates")) or _DEADLINE.search(clause.text):
        return None
    whole = prose.text[clause.start : clause.end]
    if not any(
        isinstance(cell, str) and not DIGIT.search(cell) and holds(whole, cell) for cell in clause.row.cells.values()
    ):
        return None  # named by a word of a longer text
    home = next((row for row in table if times_of(row) == {told[0].minutes}), None)
    shown = clause.text[told[0].start : told[0].end]
    return f"the time {shown!r} belongs to another row: {home.place}" if home is not None else None


_IN_PLACE = re.compile(r" \(?(?!Uhr\b)[A-ZÀ-ÖØ-Þ][^\W\d_]{2,}")
"""The place of a time of day, which may be in another zone: `03:00 Denver`."""
_DEADLINE = re.compile(r"(?i)\b(?:by|until|till|before|avant|antes de(?: las)?|prima delle|voor|przed|innan)\W{1,2}\Z")
"""What makes a time a deadline, which may be computed: "the next update is due by 16:50"."""


def _told_times(prose: Prose, clause: Clause) -> set[int]:
    """Return the times of day of a clause, with those that name the row."""
    return {clock.minutes for clock in clocks(prose.text[clause.start : clause.end])}


def _state_of_clause(clause: Clause) -> str | None:
    if pattern_of("all").search(clause.text) and pattern_of("except").search(clause.text):
        return None  # "all are healthy except crane-b"
    name = _BLANKS.search(clause.text)
    cuts = _SECOND_CLAUSE.finditer(clause.text, 0, name.start()) if name is not None else ()
    start = max((cut.end() for cut in cuts), default=0)  # "it is not free, and crane-b is": the first one is another
    return opposite_state(clause.text[start:], clause.row.cells, clause.row.place)


_BLANKS = re.compile(r" {3,}")
_SECOND_CLAUSE = re.compile(r", (?:and|und|et|y|e|en|och|og|i|и|а|ve) ")
