"""Counts of a reply against the rows and the counts of results: "twelve matches" of three, "four are stopped" of two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.actions import PARTICIPLES, words_of
from wirelint.claims.derivation import data
from wirelint.claims.evidence import Contradiction, Fact, Turn
from wirelint.claims.grounding import negates, statements
from wirelint.claims.rows import holds, tables
from wirelint.claims.states import states
from wirelint.claims.values import LONGEST, NUMERALS, whole_number
from wirelint.text.prose import Sentence

_PHRASES = lexicon.Phrases("contradictions")
_COUNTED_THINGS = tuple(_PHRASES.pattern(key, numerals=NUMERALS) for key in ("counted_things", "counted_subjects"))


def looking_up(known: Sequence[Fact]) -> list[Fact]:
    """Return the results of calls that search or read, or may."""
    return [fact for fact in known if fact.able.kinds & {"search", "read"} or not fact.able.kinds]


def miscounted_states(turn: Turn) -> Contradiction | None:
    """Return a number beside a word that the results have with another one only: "415 passed" with `"passed": 409`."""
    for sentence in statements(turn.prose) if len(turn.good) == len(turn.known) else ():
        found = [one for one in _STATE_COUNT.finditer(sentence.masked) if _is_state(one["word"])]
        for one in found:
            key = re.compile(rf"(?i)(?<![\w-])[\"']?{re.escape(one['word'])}[\"']?\s*[:=]\s*(\d+)\b(?![.,]?\d)")
            held = {int(number) for text in turn.returned if len(text) <= LONGEST for number in key.findall(text)}
            told = [whole_number(other["number"]) for other in found if other["word"].lower() == one["word"].lower()]
            if len(held) == 1 and held.isdisjoint({*told, sum(told)}):
                return Contradiction(*sentence.span, f"the results have {one['word']} = {held.pop()}")
    return None


def count_above_rows(turn: Turn) -> Contradiction | None:
    """Return a count of rows in a state that is above their number: "four machines are stopped" of two such rows."""
    lists = [table for text in turn.returned for table in tables(text)]
    if len(lists) != 1 or len(turn.good) < len(turn.known) or _PHRASES["paged"].search(turn.returned[0]):
        return None
    cells = Counter(cell.casefold() for row in lists[0] for cell in row.cells.values() if isinstance(cell, str))
    for sentence in turn.sentences:
        counted = _SUBJECT_COUNT.match(sentence.masked)
        named = [cell for cell in cells if cell in states() and holds(sentence.masked, cell)] if counted else []
        if counted is None or len(named) != 1 or negates(sentence):
            continue
        if whole_number(counted["number"]) > cells[named[0]] and counted["number"] not in turn.returned[0]:
            return Contradiction(*sentence.span, f"{cells[named[0]]} rows have {named[0]!r}: {turn.good[-1].shown}")
    return None


_SUBJECT_COUNT = re.compile(
    rf"(?i)\W*(?:yes, |currently,? )?(?P<number>\d{{1,3}}|{NUMERALS}) (?:[\w-]+ ){{1,5}}(?:is|are|were|was)\b"
)


def _is_state(word: str) -> bool:
    return word.lower() in states() or word.lower() in PARTICIPLES or word.lower().endswith("ed")


_STATE_COUNT = re.compile(
    rf"(?<!\bof )(?<![\w.,/:-])(?<!\d[ \u00a0\u202f])(?P<number>\d{{1,6}}|(?i:{NUMERALS})) "
    r"(?:(?!more|other|addi|furth)[^\W\d_]{3,12} )?(?P<word>[^\W\d_]{4,})(?![\w-])"
)


def wrong_counts(turn: Turn) -> Contradiction | None:
    """Return a count of hits above what the only look-up of the turn returned."""
    looking = [fact for fact in looking_up(turn.known) if not fact.outcome.error]
    if len(looking) != 1 or not looking[0].outcome.counts:
        return None
    fact = looking[0]
    for sentence in turn.sentences:
        stated = _reported_count(sentence, fact, words_of(turn.order))
        if stated is None or stated <= max(fact.outcome.counts) or stated in _column_sums(fact.result.text):
            continue
        if fact.outcome.counts == {0} and _PHRASES["recalled"].search(sentence.masked):
            continue
        if not re.search(rf"(?<!\d){stated}(?!\d)", f"{fact.result.text} {fact.arguments}"):
            paged = _PHRASES["paged"].search(fact.result.text)
            return None if paged else Contradiction(*sentence.span, fact.shown)
    return None


def _column_sums(text: str) -> set[float]:
    """Return the sums of the numbers under each key of a result: 73 parcels at three stops."""
    sums: dict[str, float] = {}
    for datum in data(text):
        sums[datum.column] = sums.get(datum.column, 0.0) + datum.value.readings[0]
    return {*sums.values()}


def _reported_count(sentence: Sentence, fact: Fact, asked: frozenset[str]) -> int | None:
    """Return the number of hits in a sentence: with a general word for hits, or with a noun of the tool or the order."""
    text = sentence.masked.replace("*", "")
    match = _PHRASES["counted"].search(text)
    if match is None:
        things = (one for pattern in _COUNTED_THINGS for one in pattern.finditer(text))
        nouns = (
            fact.able.words
            | asked
            | words_of(" ".join(key for table in tables(fact.result.text) for key in table[0].cells))
        )
        match = next((one for one in things if words_of(one["noun"]) & nouns), None)
    if match is None and (abroad := _PHRASES["counted_abroad"].search(sentence.masked)):
        return int(next(filter(None, abroad.groups())))
    if match is None:
        return None
    return whole_number(match["number"])
