"""Values of a reply against the values of its conversation: which one rests on which, and which on none.

Theory of operation. A value of the reply may be the model's own knowledge if it does not follow from the results
(`derivation.py`) and its digits are not in the conversation. It contradicts a result only if it takes the place of a datum:
the two have one unit, nothing in the reply is derived from the datum, and either no other number is possible or the words
beside them agree.

No language is needed for this, except to find values that are general ("usually 5 days").
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.actions import bare, words_of
from wirelint.claims.derivation import (
    MONEY,
    MOST_DATA,
    NEAR,
    STOP,
    Datum,
    as_datum,
    data,
    derived_from,
    equals,
    is_computed,
    is_of_kind,
    is_percentage,
    is_said,
    simple_ratio,
    words_in,
)
from wirelint.claims.evidence import SURE, Contradiction, Fact, Turn, is_unseen, last_words
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import (
    LONGEST,
    Date,
    Value,
    dates,
    ends_with_hour,
    same,
    unit_of,
    values,
    whole_numbers,
    without_moments,
)
from wirelint.model import Request, Tool
from wirelint.text.prose import Prose, Sentence, read
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("grounding")
_GENERAL_WORDS = frozenset(_PHRASES.words("general_words"))

LONGEST_REPLY = 8_000
"""Characters of a reply that is compared; a longer one takes too long."""
MOST_STATED = 32
"""Values of a reply that are compared."""
_ONLY = 6
"""Numbers of a result that is about one thing: a value of the same kind can only be one of them."""
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d(?:[:.]\d\d| ?(?:uur|Uhr|h\b|[ap]m\b))|\d{1,2}:\d\d\b|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
_IN_NAME = re.compile(r"(?<=[^\W\d_])\d{2,}|(?<![\w/])\d{1,4}(?=/\d)|(?<=\d/)\d{1,4}(?![\w/])")
"""A number in a name, or one of a pair: `33/18`."""
_UNKNOWN_UNIT = re.compile(r" ?[^\W\d_a-z][^\W\d_]?(?![\w\u0900-\u0d7f])")  # the vowel signs of Hindi are no letters
_FRENCH_CLOCK = re.compile(r"(?:[01]?\d|2[0-4])h(?:[0-5]\d)?(?!\w)")
_FORMULA = re.compile(r"\d ?[^\W\d_]{0,12} ?[×÷*·+/x−-] ?\(?[$€£]?\d[^=\n]{0,60}[=≈]")
"""A calculation, which the model does by itself."""


# --- values of a reply ------------------------------------------------------------------------------------------------


class Stated(NamedTuple):
    """A value that a reply states as a fact, and its sentence."""

    value: Value
    sentence: Sentence
    words: frozenset[str]


def stated(prose: Prose) -> list[Stated]:
    """Return the values that a reply states: in no question, no condition, no range, and about this case."""
    return list(_stated_in(prose.text))


@remembered
def _stated_in(text: str) -> tuple[Stated, ...]:
    """Return the values of a text, cached for the checks that compare them."""
    return tuple(itertools.islice(_stated(read(text)), MOST_STATED))


def _stated(prose: Prose) -> Iterator[Stated]:
    found = without_moments(prose.masked)
    for sentence in statements(prose) if found else ():
        for value in (one for one in found if sentence.start <= one.start < sentence.end):
            near = prose.masked[max(value.start - NEAR, sentence.start) : min(value.end + NEAR, sentence.end)]
            words = words_in(sentence.masked if value.unit is not None else near)
            if not value.ranges and is_telling(value, prose.masked):
                yield Stated(value, sentence, words)


def is_telling(value: Value, text: str) -> bool:
    """Return True unless a value is a small number, a year, a time of day or a number in brackets."""
    if _FRENCH_CLOCK.match(text, value.start):
        return False
    amount = abs(value.readings[0])
    if (value.unit is None or value.unit.name == "min") and ends_with_hour(text[: value.start]):
        return False
    if value.unit is None and value.is_whole and (amount < 10 or 1900 <= amount <= 2100):
        return False
    if value.unit is None and _UNKNOWN_UNIT.match(text, value.end):
        return False
    return text[value.start - 1 : value.start] != "[" and not is_bound(value, text)


def is_bound(value: Value, text: str) -> bool:
    """Return True if a value is a bound, an aim or an approximation: "more than 600 g"."""
    return _PHRASES["bound"].search(text[max(value.start - NEAR, 0) : value.start]) is not None


def wrong_value(turn: Turn) -> Contradiction | None:
    """Return a value of a reply that takes the place of a number that a tool returned in this turn."""
    prose, good, results = turn.prose, turn.good, turn.results
    if is_unseen(turn.request) or any(len(text) > LONGEST for text in results):
        return None
    said = stated(prose)
    if all(one.value.unit is None and is_said(one.value, prose.masked, results) for one in said):
        return None
    pool = turn.numbers
    if len(pool) >= MOST_DATA:
        return None
    own = [_with_arguments(datum, fact) for fact in good for datum in data(fact.result.text)]
    free = [
        one
        for one in said
        if not any(derived_from(_rounded(value, prose.masked), pool) for value in _with_units_beside(one, said))
        and (
            not is_interval(one.value, results)
            or any(is_altered(one.value, mine.value) and _has_key(one, mine) for mine in own)
        )
    ]
    written = without_moments(prose.masked)[: 2 * MOST_STATED]
    possible = [datum for datum in own if _is_amount(datum)]
    left = [datum for datum in possible if not any(equals(value, datum.value) for value in written)] if free else []
    if not left:
        return None
    scaled = scaled_values(free, own)
    named = [number for text in results for number in _IN_NAME.findall(text)]  # "the last 500 m", of `t500`
    for one in free:
        if one in scaled or _PHRASES["apart"].match(prose.masked, one.value.end):
            continue
        replaced = _replaced(one, left, possible, [other for other in said if other not in free])
        if replaced is None or is_said(one.value, prose.masked, [*turn.told, *named]):
            continue
        alike = is_altered(one.value, replaced.value)
        if (len(pool) > _FEW_NUMBERS and not alike) or _follows(turn, one, replaced, said, own):
            continue
        shown = prose.text[one.value.start : one.value.end]
        sure = one.value.unit is not None
        against = (
            f"{shown!r} is not in the result: {replaced.place} = {replaced.value.shown}, "
            "and no rounding, conversion or sum leads from one to the other"
        )
        return Contradiction(*one.sentence.span, against, *(SURE if sure else ()))
    return None


def _with_units_beside(one: Stated, said: Sequence[Stated]) -> list[Value]:
    """Return a value, and one without a unit in those of its sentence: "14 knots from the west, gusting 21"."""
    if one.value.unit is not None:
        return [one.value]
    units = {other.value.unit for other in said if other.sentence == one.sentence}
    return [one.value._replace(unit=unit) for unit in {None, *units}]


def _follows(turn: Turn, one: Stated, replaced: Datum, said: Sequence[Stated], own: Sequence[Datum]) -> bool:
    """Return True if a value in place of a datum may be computed. The more alike the two are, the fewer steps count.

    `own`: the numbers of the turn's results.
    """
    value, order = one.value, values(turn.order)
    written = without_moments(turn.prose.masked)[: 2 * MOST_STATED]
    if not is_altered(value, replaced.value):
        adjusted = _PHRASES["adjusted"].search(one.sentence.masked) is not None
        return adjusted or _is_gain(value, replaced, own) or _is_from_steps(turn, one, replaced, said, own)
    if _is_sum_or_mean(value, replaced.column, own) or _is_sum_of_column(value, own) or _are_points(value, written):
        return True
    swapped = _is_swapped(value, replaced.value)
    if swapped and _has_key(one, replaced):
        near = [each for each in written if one.sentence.start <= each.start < one.sentence.end]
        return _is_from_told(value, [replaced.value, *near, *order])
    # Numbers that the reply does not tell may lead to it by chance: "204,000 together", beside 254000
    if _is_from_told(value, [replaced.value, *written, *order]):
        return True
    return (not swapped and is_computed(value, own)) or _is_gain(value, replaced, own)


def _is_sum_or_mean(value: Value, column: str, own: Sequence[Datum]) -> bool:
    """Return True if a value is the sum or the mean of all or of two amounts of a column."""
    amounts = [datum.value.readings[0] for datum in own if datum.column == column]
    parts = [amounts, *itertools.combinations(amounts[:_FEW_AMOUNTS], 2)] if amounts else []
    results = (result for part in parts for result in (sum(part), sum(part) / len(part)))
    return any(same(abs(value.readings[0]), abs(result), value.step / 2) for result in results)


def _are_points(value: Value, written: Sequence[Value]) -> bool:
    """Return True if a value is the difference of two percentages of the reply: "from 34 % to 21 %, 13 points less"."""
    shares = [one.readings[0] for one in written[:_FEW_AMOUNTS] if is_percentage(one)]
    apart = (abs(one - other) for one, other in itertools.combinations(shares, 2))
    return any(same(abs(value.readings[0]), one, value.step / 2) for one in apart)


def _is_sum_of_column(value: Value, own: Sequence[Datum]) -> bool:
    """Return True if a value is the sum of all amounts of any column."""
    sums: dict[str, float] = {}
    for datum in own:
        sums[datum.column] = sums.get(datum.column, 0.0) + datum.value.readings[0]
    return any(same(abs(value.readings[0]), abs(one), value.step / 2) for one in sums.values())


def _is_gain(value: Value, replaced: Datum, own: Sequence[Datum]) -> bool:
    """Return True if a value is a number of pieces times the difference of two amounts, all of the row of a datum."""
    row = replaced.place.rpartition("/")[0]
    amounts = [one.value.readings[0] for one in own if one.place.rpartition("/")[0] == row][:_FEW_AMOUNTS]
    gains = (first * (second - third) for first, second, third in itertools.permutations(amounts, 3))
    return any(same(abs(value.readings[0]), abs(gain), value.step / 2) for gain in gains)


_FEW_AMOUNTS = 12
"""Amounts of a column of which two may add up to a value, other than by chance."""


def _is_amount(datum: Datum) -> bool:
    """Return True unless a datum is a length, an id, or a 1, as of `1 USD = 0.92 EUR`."""
    named = datum.column == "#" or _PHRASES["names_only"].search(datum.column) is not None
    return not named and datum.value.readings != (1.0,)


def _is_from_told(value: Value, told: Sequence[Value]) -> bool:
    """Return True if a value comes from others in one step."""
    return is_computed(value, [as_datum(other) for other in told if other != value])


def _is_from_steps(turn: Turn, one: Stated, replaced: Datum, said: Sequence[Stated], own: Sequence[Datum]) -> bool:
    """Return True if a value in place of a datum comes from the conversation, perhaps by other values of the reply.

    `own`: the numbers of the turn's results.
    """
    text, pool, given = turn.prose.masked, turn.numbers, _given_rates(turn)
    # The arguments of a call whose result is one number are what that number was computed from.
    sent = [datum for fact in turn.good if len(data(fact.result.text)) != 1 for datum in data(fact.arguments)]
    ordered = [*pool, *(as_datum(value) for value in values(turn.order) if value.unit is not None)]
    written = without_moments(text)[: 2 * MOST_STATED]
    near = [each for each in written if one.sentence.start <= each.start < one.sentence.end and each != one.value]
    # 5 and 3 of "5 times 3 is 15" are the user's: what a calculator made of them stands in its result.
    users = [each for each in near if is_said(each, text, turn.told)]
    stated_too = [other.value for other in said]
    beside = [
        as_datum(each)
        for each in near
        if derived_from(each, ordered) or (each in stated_too if each in users else is_computed(each, pool))
    ]
    times = (each.readings[0] for each in near if each.is_whole and each.unit is None)
    if any(
        same(abs(one.value.readings[0]), abs(replaced.value.readings[0] * each), one.value.step / 2) for each in times
    ):
        return True  # "8 more boxes, for 148,000", at 18,500 each
    steps = [step for other, step in _steps(said, pool, given) if other is not one]
    sources = [*pool, *sent]
    alike = [step for step in steps if is_of_kind(one.value, step.value)]
    value = _rounded(one.value if one.value.unit else one.value._replace(unit=replaced.value.unit), text)
    computed = any(is_computed(value, known) for known in (sources, [*steps, *beside]))
    return computed or _is_rate(one._replace(value=value), said, [*pool, *alike], given)


def _rounded(value: Value, text: str) -> Value:
    """Return a value with the step that it is rounded to: tens for "about 1,360"."""
    if not value.is_whole or _PHRASES["about"].search(text[max(value.start - NEAR, 0) : value.start]) is None:
        return value
    digits = f"{abs(value.readings[0]):.0f}"
    return value._replace(step=float(10 ** min(len(digits) - len(digits.rstrip("0")), len(digits) - 1)))


def _given_rates(turn: Turn) -> list[float]:
    """Return the numbers that the user and the calls give, also as hundredths, and prices and percentages of the system."""
    told = [value for text in (turn.order, *(fact.arguments for fact in turn.good)) for value in values(text)]
    rules = [value for message in turn.request.messages if message.role == "system" for value in values(message.text)]
    rates = [value.readings[0] for value in rules if value.unit and value.unit.dimension in (*MONEY, "percent")]
    return [amount for value in told for one in value.readings for amount in (one, one / 100)] + rates


def _steps(said: Sequence[Stated], pool: Sequence[Datum], given: Sequence[float]) -> list[tuple[Stated, Datum]]:
    """Return the values that follow from data or from earlier ones of them: 400 is what 3,650 is more than 3,250."""
    steps: list[tuple[Stated, Datum]] = []
    for one in [*said, *said]:  # twice, since a value may stand before what it was computed from
        if any(one is other for other, _ in steps):
            continue
        known = [*pool, *(step for _, step in steps)]
        if is_computed(one.value, known) or _is_rate(one, said, known, given):
            readings = (one.value._replace(readings=(reading,)) for reading in one.value.readings)
            steps += [(one, as_datum(value)) for value in readings]
    return steps


def is_interval(value: Value, texts: Iterable[str]) -> bool:
    """Return True if a value may be the time between two dates or times of day in some texts."""
    if value.unit is None or value.unit.dimension != "time" or value.unit.name == "ms":
        return False
    least = 2 if value.unit.name in ("s", "min") else 1  # one date and today are days apart
    return len(list(itertools.islice(itertools.chain.from_iterable(map(_DATE.finditer, texts)), least))) == least


def scaled_values(free: Sequence[Stated], left: Sequence[Datum]) -> list[Stated]:
    """Return the values that are data of a result times one simple ratio, if there are two or more: a recipe for four."""
    factors: dict[Fraction, list[Stated]] = {}
    for one in free:
        for factor in {simple_ratio(one.value, datum.value, _SMALL_RATIO) for datum in left}:
            if factor not in (None, 1):
                factors.setdefault(factor, []).append(one)
    return [one for alike in factors.values() if len({one.value.readings for one in alike}) > 1 for one in alike]


_SMALL_RATIO = 12
"""The largest denominator of a factor between portions."""
_PERIODS = (7, 12, 24, 30, 52, 60, 365, 1000)
"""Days of a week, months of a year and so on: a rent by month gives one by year."""


def _is_rate(told: Stated, said: Sequence[Stated], known: Sequence[Datum], given: Sequence[float]) -> bool:
    """Return True if a value is a datum times, divided by, plus or minus another number: `at 6.5 knots, 15 hours`.

    A factor is in the sentence of the value, a percentage of the reply, a period, or in `given`, as terms are: the numbers
    of the user and of the calls.
    """
    beside = [
        other.value.readings[0]
        for other in said
        if other.sentence == told.sentence and other.value.start != told.value.start
    ]
    shares = [one.value.readings[0] / 100 for one in said if is_percentage(one.value)]
    factors = {
        *beside,
        *given,
        *_PERIODS,
        *(1 + share for share in shares),
        *(1 - share for share in shares),
    } - {0, 1}
    goal, step, amounts = told.value.readings[0], told.value.step / 2, {datum.value.readings[0] for datum in known}
    if any(same(abs(goal), abs(amount + term), step) for amount in amounts for one in given for term in (one, -one)):
        return True
    counts = whole_numbers(told.sentence.masked) - {0}  # "nine days left, which allows 320 MB a day"
    results = itertools.chain(
        (amount * one for amount in amounts for one in factors),
        (amount / one for amount in amounts for one in factors | counts),
    )
    return any(same(goal, result, step) for result in results)


def _with_arguments(datum: Datum, fact: Fact) -> Datum:
    return datum._replace(words=datum.words | words_in(fact.arguments))


def _replaced(one: Stated, left: Sequence[Datum], turn: Sequence[Datum], others: Sequence[Stated]) -> Datum | None:
    """Return the datum whose place a value takes; None if there is none for sure. `left`: those of `turn` without a use.

    A number without a unit may have come about in any way, so it takes the place of the only number of the turn, or of
    one whose key the sentence has.
    """
    kind = one.value
    kin = [datum for datum in turn if kind.unit is not None and is_of_kind(kind, datum.value)]
    sole = turn[:1] if len(turn) == 1 else ()
    possible = kin or [datum for datum in sole if _is_alike(kind, datum.value) and _is_meant(one, datum)]
    free = [datum for datum in possible if datum in left]
    beside = any(is_of_kind(kind, other.value) for other in others)
    if free and len(possible) <= _ONLY and len(free) == len(possible) and not beside:
        return max(free, key=partial(_shared, one))
    changed = [datum for datum in left if is_altered(kind, datum.value, len(left))]
    if len({datum.value for datum in changed}) == 1:
        return changed[0]
    alike = [datum for datum in left if datum in kin or (_is_alike(kind, datum.value) and _has_key(one, datum))]
    if not alike:
        return None
    best = max(alike, key=partial(_likeness, one))
    shared = _shared(one, best)
    rivals = [datum for datum in turn if datum is not best and _shared(one, datum) >= shared]
    return best if shared >= 2 and not rivals else None


_MANY_DIGITS = 5
"""Digits of numbers of which two hardly differ in one by chance, as a mean and one of its values do."""


def is_altered(value: Value, datum: Value, among: int = 1, *, least: int = _MANY_DIGITS) -> bool:
    """Return True if a number is another one with two digits swapped, or with one changed if it has `least` or more.

    `among`: the numbers that it is compared with. A short one may be one digit off another of many by chance.
    """
    digits, apart = _digits_apart(value, datum)
    one_digit = len(apart) == 1 and digits >= least and (value.unit is datum.unit or datum.unit is None)
    return (one_digit and _RARE * among * digits < 10 ** (digits - 1)) or _is_swapped(value, datum)


_RARE = 20
"""Times that numbers of some digits are more than those one digit off some of them."""


def _is_swapped(value: Value, datum: Value) -> bool:
    _, apart = _digits_apart(value, datum)
    return len(apart) == 2 and apart[0] == apart[1][::-1]


def _digits_apart(value: Value, datum: Value) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of digits of two numbers of one length and kind, and the pairs that differ; 0 for others."""
    if value.unit is not None and datum.unit is not None and not is_of_kind(value, datum):
        return 0, []
    exact = 1.0 if value.is_whole and datum.readings[0].is_integer() else datum.step  # JSON may have `1450.0`
    first, other = abs(value.readings[0]) or 1.0, f"{abs(datum.readings[0]) / exact:.0f}"
    for reading in value.readings:  # `1.725` may be two thousand: its step is then one
        amount, step = abs(reading) / exact, value.step * abs(reading) / first
        one = f"{amount:.0f}"
        # JSON leaves out zeros at the end: `2,318.40` of 2318.4
        if step <= exact * _ROUNDING and same(amount, round(amount), 0) and len(one) == len(other):
            return len(one), [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return 0, []


_ROUNDING = 1 + 1e-9
_FEW_NUMBERS = 3
"""Numbers of the results from which on a value that none of them leads to may still be computed, in more steps."""


def _is_meant(one: Stated, datum: Datum) -> bool:
    """Return True if a value can only be the one number of a result: the result is nothing else, both have decimals, or
    words agree."""
    both_decimal = not (one.value.is_whole or datum.value.is_whole)
    return both_decimal or datum.bare or (one.value.unit is datum.value.unit and _shared(one, datum) > 0)


def _has_key(one: Stated, datum: Datum) -> bool:
    """Return True if a sentence has a word of the key of a datum, other than the unit of the value."""
    keys = [
        word
        for word in name_words(datum.column)
        if len(word) > 2 and (one.value.unit is None or unit_of(word) is not one.value.unit)
    ]
    return any(own.startswith(key) for key in keys for own in one.words)


def _likeness(one: Stated, datum: Datum) -> tuple[bool, int]:
    return is_of_kind(one.value, datum.value), _shared(one, datum)


def _shared(one: Stated, datum: Datum) -> int:
    """Return the number of words beside a datum that the sentence repeats, also as beginnings: `lat` of "latitude"."""
    return sum(word in one.words or any(own.startswith(word) for own in one.words) for word in datum.words)


def _is_alike(value: Value, datum: Value) -> bool:
    """Return True if two numbers, of which one has no unit, are of similar size."""
    if value.unit is not None and datum.unit is not None:
        return False
    one, other = abs(value.readings[0]), abs(datum.readings[0])
    return (value.unit is not datum.unit or value.is_whole == datum.is_whole) and one < 20 * other < 400 * one


# --- replies that rest on nothing -------------------------------------------------------------------------------------

_CAPITAL = "A-ZÀ-ÖØ-ÞА-Я"
_NAME = re.compile(
    rf"(?<=[^\W\d_][ ,:])[ *_\"“„«(]{{0,4}}(?P<name>[{_CAPITAL}][^\W\d_]{{2,}}(?:[ -][{_CAPITAL}][^\W\d_]+)*)"
)
_CODE = re.compile(
    r"(?<![\w.+-])(?=[\w.+-]*\d)(?=[\w.+-]*[A-Za-z])[A-Za-z\d][\w.+-]{2,}(?<![.+-])|[\w./-]+\.[a-z]{1,4}:\d+"
)
"""An id, a version, a code: letters with digits; a line of a file: `src/a.py:12`."""
_NUMBER = re.compile(r"(?<![\w.,:/-])(?:[A-Za-z]{1,6}-?)?\d[\d-]*(?:-[A-Z]+)?(?![\w.,:/-]*\d)", re.ASCII)
_GROUPS = re.compile(r"(?<![\w.,-])\d{4}(?: \d{4}){1,4}(?![\w.,-])")
"""The number of a card: `3528 0611 9041`."""
LONGEST_ORDER = 600
_PARTICULAR = re.compile(
    r"\d[\d.,:]*\d|\d\d?|[\u0900-\u097f]{3,}|[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4,}|[\uac00-\ud7af]{2,}"
)
_SIGNS = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]{2,}")
ECHO = 3
"""Particulars of an order that a report on it repeats."""
LONGEST_REPORT = 300
_OTHER_UNIT = re.compile(r" ?(?:[a-zµμ]{1,5}/[a-zA-Z]|[㎍㎎㎏㎞㎡㎥])")
_ROOT = 5
"""Letters that two forms of a word have in common."""
_MULTIPLE = 13
"""Multiples of a given amount that are below this one, of things that a text counts in words."""
_SEVERAL = 3
"""Number of earlier results in one unit from which a reply may compute any value in many steps."""


def _is_years_off(one: Date, other: Date) -> bool:
    """Return True for the same day of another year: twelve months after a date of the conversation."""
    return (one.day, one.month) == (other.day, other.month)


@remembered
def particulars(text: str) -> frozenset[str]:
    """Return the numbers, the beginnings of longer words, and the pairs of ideographs and kana of a text."""
    words = {bare(word)[:_ROOT].casefold() for word in _PARTICULAR.findall(text)}
    signs = {run[at : at + 2] for run in _SIGNS.findall(text) for at in range(len(run) - 1)}
    return frozenset(words | signs)


def numbers_of_things(text: str) -> Iterator[str]:
    """Yield the numbers that name one thing, as of an order or a train.

    They have five digits, or four in a code with a hyphen, or three behind letters and a hyphen: `order-123`.
    """
    yield from _GROUPS.findall(text)
    for number in _NUMBER.findall(text):
        least = 3 if number[:2].isalpha() and "-" in number else 4 if "-" in number else 5
        if sum(map(str.isdigit, number)) >= least and not _DATE.match(number):
            yield number


def statements(prose: Prose) -> Iterator[Sentence]:
    """Yield the sentences about this case; of one with a general conclusion, the part before it."""
    for sentence in prose.sentences:
        length = 0 if sentence.question else _length_about_this_case(sentence.masked)
        if length == len(sentence.masked):
            yield sentence
        elif length:
            yield replace(sentence, masked=sentence.masked[:length], end=sentence.start + length)


def is_about_this_case(sentence: Sentence) -> bool:
    """Return True unless a sentence is about what is usual, possible or to come, or calculates: `2 x 1.2 = 2.4`."""
    return _length_about_this_case(sentence.masked) == len(sentence.masked)


@remembered
def _length_about_this_case(text: str) -> int:
    """Return the length of the part of a sentence that is about this case.

    "The copy is encrypted, so it is safe even if the device is stolen": only the conclusion is general.
    """
    conclusion = _PHRASES["conclusion"].search(text)
    head = text[: conclusion.start()] if conclusion is not None else text
    if _FORMULA.search(text) or _PHRASES["general"].search(head):
        return 0
    if _PHRASES["to_come"].search(_PHRASES["conclusion"].sub("", text)):
        return 0
    return len(head) if _PHRASES["general"].search(text) else len(text)


def is_admission(prose: Prose, *, sad: bool = False, made: frozenset[str] = frozenset(), denial: str = "") -> bool:
    """Return True if a text admits a failure, or that it rests on the model's own knowledge.

    `sad`: "unfortunately" alone admits nothing. `made`: nor do the things of a tool: "your issue", of `create_issue`.
    `denial`: nor does the denial of hits, "couldn't find any".
    """
    text = _PHRASES["no_fault"].sub(" ", prose.masked.replace(denial, " ") if denial else prose.masked)
    text = (
        _PHRASES["own_thing"].sub(lambda one: " " if one["thing"].lower() in made else one[0], text) if made else text
    )
    return _PHRASES["admits"].search(_PHRASES["regrets"].sub(" ", text) if sad else text) is not None


def negates(sentence: Sentence) -> bool:
    """Return True if a sentence has a negation."""
    return _PHRASES["negates"].search(sentence.masked) is not None


def has_negation(prose: Prose) -> bool:
    texts = (_PHRASES["no_fault"].sub(" ", sentence.masked) for sentence in statements(prose))
    return any(_PHRASES["negates"].search(text) for text in texts)


def nouns_of(tool: Tool) -> frozenset[str]:
    """Return the words of a tool's name that say what it is about."""
    return words_of(" ".join(name_words(tool.name))) - _GENERAL_WORDS - STOP


class Given:
    """Texts and values of a conversation, without the numbers of errors: in "timed out after 30 s", 30 is no answer."""

    def __init__(self, request: Request, errors: Sequence[str], prose: Prose) -> None:
        self._request, self._errors, self._prose = request, errors, prose

    @cached_property
    def _stated(self) -> list[Stated]:
        return stated(self._prose)

    @cached_property
    def asks_back(self) -> bool:
        return any(sentence.question for sentence in self._prose.sentences)

    @cached_property
    def _texts(self) -> list[str]:
        request = self._request
        results = [result.text for result in request.results if result.text not in self._errors]
        return [
            *(message.text for message in request.messages),
            *(call.arguments.text for call in request.calls),
            *results,
        ]

    @cached_property
    def _known(self) -> str:
        descriptions = (tool.description for tool in self._request.tools)
        return " ".join([*self._texts, *self._errors, *descriptions]).casefold()

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(word[:_ROOT] for word in words_in(self._known))

    @cached_property
    def _data(self) -> list[Datum]:
        found = (as_datum(value) for text in reversed(self._texts) for value in values(text))
        return [*self._returned, *found][:MOST_DATA]

    @cached_property
    def _returned(self) -> list[Datum]:
        texts = (result.text for result in self._request.results if result.text not in self._errors)
        return [datum for text in texts for datum in data(text)][:MOST_DATA]

    @cached_property
    def _days(self) -> list[Date]:
        return [day for text in self._texts for day in dates(text)]

    def knows(self, word: str) -> bool:
        return word.casefold() in self._known

    def has_news(self, sentence: Sentence, *, names: bool = True) -> bool:
        """Return True if a sentence has a value, a code or, with `names`, a name that the conversation does not give."""
        if any(one.value in self._new for one in self._stated if one.sentence == sentence):
            return True
        if any(
            not any(one.agrees(day) or _is_years_off(one, day) for day in self._days) for one in dates(sentence.masked)
        ):
            return True
        named = [found["name"] for found in _NAME.finditer(sentence.masked)] if names else []
        named += _CODE.findall(sentence.masked)
        return any(word.casefold() not in self._known for name in named for word in name.split())

    def has_measure(self, sentence: Sentence) -> bool:
        """Return True if a sentence has a value with a unit or with decimals that the conversation does not give."""
        own = [one.value for one in self._stated if one.sentence == sentence]
        given = Counter(
            value.unit
            for value in own  # the 1 of `1 USD = 0.92 EUR` says nothing
            if value.unit is not None and value not in self._new and value.readings != (1.0,)
        )
        alike = Counter(value.unit for value in own)
        new = [value for value in own if value in self._new]
        is_price = any(value.unit is not None and value.unit.dimension in MONEY for value in new)
        is_price = is_price and not any(unit.dimension in MONEY for unit in given)
        if sentence.bullet or (not is_price and any(alike[unit] <= 2 * count for unit, count in given.items())):
            return False  # an item of a recipe; or computed from the value beside it
        own = [value for value in new if not _PHRASES["clock_behind"].match(self._prose.masked, value.end)]
        return any(
            value.unit is not None or not value.is_whole or _OTHER_UNIT.match(self._prose.masked, value.end) is not None
            for value in own
        )

    def is_new(self, value: Value) -> bool:
        """Return True for a stated value that does not follow from the conversation."""
        return value in self._new

    def has_bound(self, sentence: Sentence) -> bool:
        """Return True if a sentence has a bound with a unit that the conversation does not give: "up to 30 days"."""
        found = (value for value in values(self._prose.masked) if sentence.start <= value.start < sentence.end)
        bounds = (value for value in found if value.unit is not None and is_bound(value, self._prose.masked))
        return any(not self._follows(value) for value in bounds)

    def repeats_value(self, sentence: Sentence) -> bool:
        return any(one.value not in self._new for one in self._stated if one.sentence == sentence)

    @cached_property
    def _new(self) -> frozenset[Value]:
        """The values of the reply that do not follow from the conversation, in one step or in two."""
        own = {one.value for one in self._stated}
        told = [*own, *values(self._prose.masked)[: 2 * MOST_STATED]]
        following = {value for value in told if self._follows(value)}
        founded = [as_datum(value) for value in following]
        return frozenset(value for value in own - following if not is_computed(value, founded))

    def _follows(self, value: Value) -> bool:
        if is_said(value, self._prose.masked, self._texts) or any(equals(value, one.value) for one in self._data):
            return True
        if is_interval(value, self._texts):
            return True
        if any(simple_ratio(value, datum.value, 1) in range(2, _MULTIPLE) for datum in self._data):
            return True  # "five lunches at €4.20 come to €21.00"
        if sum(is_of_kind(value, datum.value) for datum in self._returned) >= _SEVERAL:
            return True  # computed from earlier results, perhaps in many steps
        return is_computed(value, self._data) or self._is_share(value)

    def _is_share(self, value: Value) -> bool:
        """Return True for an amount that a price by the hundred and a number of the user give: €96.40 per 100 l."""
        if value.unit is None or value.unit.dimension not in MONEY:
            return False
        goal, prices = abs(value.readings[0]), [datum.value for datum in self._data if is_of_kind(value, datum.value)]
        counts = [one.readings[0] for one in values(last_words(self._request))]
        return any(same(goal, abs(one.readings[0] * count) / 100, value.step / 2) for one in prices for count in counts)

    def new_words(self, sentence: Sentence) -> frozenset[str]:
        """Return the words of a sentence that the conversation does not have, in any form."""
        return frozenset(
            word for word in words_in(sentence.masked) if len(word) > 3 and word[:_ROOT] not in self._beginnings
        )
