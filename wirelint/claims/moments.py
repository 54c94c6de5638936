"""Dates and times of day of a reply against those of the results."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence, Set
from typing import TypeVar

from wirelint import lexicon
from wirelint.claims.derivation import (
    GivenDates,
    follows_from_clocks,
    follows_from_dates,
    is_last_day,
    minutes_given,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import statements
from wirelint.claims.values import Clock, Date, clocks, dates, unit_of, values
from wirelint.text.prose import Sentence

_PHRASES = lexicon.Phrases("grounding")
RELATIVE = lexicon.compiled(lexicon.load("dates")["relative"])
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_DURATION = re.compile(r"\d{1,2}:\d\d(?::\d\d\b| ?(?:per |/|min\b))")
"""`1:08:38`, which is a time of day only in logs; `5:30 per km`."""
_SECONDS = re.compile(r"\d\d:\d\d:(?!00)\d\d")
_MAY_BE_DURATION = re.compile(rf"{_DURATION.pattern}|\d:\d\d(?! ?[ap]\.?m)")
"""`1:25` beside times with seconds: minutes and seconds between two of them."""
_MINUTES = re.compile(r"(?<![\d:.-])(?:2[5-9]|[3-9]\d):[0-5]\d(?![\d:])")
_ANY_DURATION = re.compile(rf"{_DURATION.pattern}|\d{{1,2}}:\d\d(?! ?[ap]\.?m)")
"""`15:08` beside `58:41`, which is no time of day."""
_FEW_CLOCKS, _FEW_DATES = 12, 2
"""Times of day and dates of results so few that another one takes the place of one of them. A date may be today's."""
_MOST_MOMENTS = 32
"""Dates and times of a reply that are compared."""


def form_of_durations(returned: Sequence[str]) -> re.Pattern[str]:
    """Return the form of what looks like a time of day, but is a duration, beside some results."""
    if any(map(_MINUTES.search, returned)):
        return _ANY_DURATION
    return _MAY_BE_DURATION if any(map(_SECONDS.search, returned)) else _DURATION


def wrong_moment(turn: Turn) -> Contradiction | None:
    """Return a date or a time of day of a reply if results give other ones, of which the reply has none."""
    texts = turn.texts
    known = [clock for text in texts for clock in clocks(text)]
    given = GivenDates(texts)

    @functools.cache
    def minutes() -> frozenset[float]:
        durations = (one for one in values(turn.prose.masked) if one.unit is not None and one.unit.dimension == "time")
        own = (next(one.amounts()) / 60 for one in durations)  # "16 more minutes, so at 18:20"
        return minutes_given(turn.told, turn.results) | frozenset(own)

    def is_given(clock: Clock) -> bool:
        return follows_from_clocks(clock, known, minutes(), zones=given.spans.zones)

    def follows(date: Date) -> bool:
        if relative or given.are_too_many or follows_from_dates(date, given.dates, given.spans):
            return True
        return is_last_day(date, given.dates, turn.prose.masked[: date.start])

    # A distance from today, which the conversation need not give; the arguments of a call may have it as a date.
    is_dated = any(map(dates, turn.sent))
    relative = RELATIVE.search(turn.order) is not None and not is_dated
    return _displaced(turn, "time", clocks, is_given, _FEW_CLOCKS) or _displaced(
        turn, "date", dates, follows, _FEW_DATES
    )


Moment = TypeVar("Moment", Date, Clock)


def _displaced(
    turn: Turn, kind: str, read: Callable[[str], tuple[Moment, ...]], follows: Callable[[Moment], bool], most: int
) -> Contradiction | None:
    """Return a date or a time that follows from none. `most`: the results have this many different ones at most."""
    prose = turn.prose
    durations = form_of_durations(turn.returned)
    found = (one for one in read(prose.masked) if durations.match(prose.masked, one.start) is None)
    stated = list(itertools.islice(found, _MOST_MOMENTS))
    returned = {one.given for text in turn.returned for one in read(text)} if stated else set()
    if not returned:
        return None
    # `10:24` of a log that has `00:10:24`
    strange = [one for one in stated if not follows(one) and not _is_in(prose.text[one.start : one.end], turn.returned)]
    told = {one.given for one in stated}
    if len(returned) > most and not (len(strange) == 1 and _is_other_day(strange[0], returned - told)):
        return None
    spoken = list(statements(prose))
    own = {each: [one for one in stated if each.start <= one.start < each.end] for each in spoken}
    # A reply that has one of them may speak of other events too, unless one sentence lists all of them and one more.
    if len(strange) != len(stated):
        listed = {one.given for some in own.values() if all(one in some for one in strange) for one in some}
        if (
            len(strange) != 1
            or len(returned) < 2
            or not (
                returned <= listed
                or _is_other_day(strange[0], returned - told)
                or _is_only_one_left(stated, turn.returned, read)
            )
        ):
            return None
    for sentence in spoken:
        first = next((one for one in own[sentence] if one in strange), None)
        if first is None or _PHRASES["zone"].search(sentence.masked):
            continue
        if not _speaks_of_durations(sentence, first.start):
            shown = prose.text[first.start : first.end]
            against = f"the {kind} {shown!r} is in no result and follows from none: {turn.good[-1].shown}"
            return Contradiction(*sentence.span, against)
    return None


def _is_in(shown: str, texts: Sequence[str]) -> bool:
    return any(shown.strip(" .") in text for text in texts)


def _is_only_one_left(
    told: Sequence[Moment], returned: Sequence[str], read: Callable[[str], tuple[Moment, ...]]
) -> bool:
    """Return True if a reply has all dates of some results but one, "from 4 to 29 August" of 4 and 22 August, or two or
    more of their times of day, and all but one.
    """
    held = {one.given: one for text in returned for one in read(text)}
    missing = [one for one in held.values() if not any(_are_same(one, other) for other in told)]
    return len(missing) == 1 and len(held) > (1 if isinstance(missing[0], Date) else 2)


def _are_same(one: Date | Clock, other: Date | Clock) -> bool:
    return one.agrees(other) if isinstance(one, Date) and isinstance(other, Date) else one.given == other.given


def _is_other_day(one: Date | Clock, left: Set[tuple[int, ...]]) -> bool:
    """Return True if a date is one of those left out but for a digit of its day: 18 June of 28 June, 21 of 12 June."""
    if not isinstance(one, Date):
        return False
    shown = f"{one.day:02}"
    alike = [
        f"{other[2]:02}" for other in left if other[1] == one.month and 0 in {one.year, other[0], one.year - other[0]}
    ]
    return any(day != shown and (day[1] == shown[1] or day == shown[::-1]) for day in alike)


CELL = 4
"""Characters of a cell that a sentence repeats by no chance."""


def _speaks_of_durations(sentence: Sentence, at: int) -> bool:
    """Return True if a sentence has a word like "hours" or "Tage", so that its dates and times may be calculated.

    `at`: the offset of a date or a time of day. The word right before it may be "day": "el día 7 de mayo".
    """
    before = sentence.masked[: max(at - sentence.start, 0)].rstrip(" ")
    before = before[: before.rfind(" ") + 1]
    words = _WORD.findall(f"{before} {sentence.masked[max(at - sentence.start, 0) :]}")
    units = (unit_of(word) for word in words if len(word) > 2)
    return any(unit is not None and unit.dimension == "time" for unit in units)
