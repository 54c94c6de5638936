"""Counts of states in a reply against those of the results: "415 passed" of 409."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.actions import PARTICIPLES
from wirelint.claims.evidence import Contradiction, Fact, Turn
from wirelint.claims.grounding import statements
from wirelint.claims.states import states
from wirelint.claims.values import LONGEST, NUMERALS, whole_number

_PHRASES = lexicon.Phrases("contradictions")


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


def _is_state(word: str) -> bool:
    return word.lower() in states() or word.lower() in PARTICIPLES or word.lower().endswith("ed")


_STATE_COUNT = re.compile(
    rf"(?<!\bof )(?<![\w.,/:-])(?<!\d[ \u00a0\u202f])(?P<number>\d{{1,6}}|(?i:{NUMERALS})) "
    r"(?:(?!more|other|addi|furth)[^\W\d_]{3,12} )?(?P<word>[^\W\d_]{4,})(?![\w-])"
)
