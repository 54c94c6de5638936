"""States in results against the words for them in replies: `"status": "REFUSED"` and "the permit is approved".

Theory of operation. `lexicon/polarity.toml` has pairs of opposite states with their words in several languages. A cell
is in a state by its word, by its flag (`"locked": false`) or by its number (`"delay_min": 17`). A sentence contradicts the
cell if it has a word of the opposite state, no word of the state itself, and no negation beside the word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TypeAlias

from wirelint import lexicon
from wirelint.claims.actions import bare
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import is_admission, particulars, statements
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import FIRST_UNSPACED as FIRST_UNSPACED
from wirelint.claims.values import LONGEST, dates, weekdays
from wirelint.jsonvalues import decode_json
from wirelint.model import Json

_PHRASES = lexicon.Phrases("grounding")
MOST_WORDS = 6
"""Different words of a column that says in which of a few states a row is."""
DEEPEST = 6
"""Levels of a result that are searched."""

_State: TypeAlias = tuple[int, int]
"""A pair of opposite states of `lexicon/polarity.toml`, and the side: 0 or 1."""
_POLARITY = lexicon.load("polarity")
_SHORT_CELL = 4
"""Words of a cell that says in which state a row is."""
_OUTCOMES = 2
"""The pair of success and failure, which results of any action have."""
SUCCESS, FAILURE, REFUSED = (_OUTCOMES, 0), (_OUTCOMES, 1), (1, 1)
_SHORTEST_STATE = 4


def _words(listed: str) -> tuple[str, ...]:
    return tuple(word.replace("_", " ") for word in listed.split())


@cache
def states() -> dict[str, set[_State]]:
    states: dict[str, set[_State]] = {}
    for number, pair in enumerate(_POLARITY["pair"]):
        for side, key in enumerate(("one", "other")):
            for word in _words(pair[key]):
                for form in {word, bare(word)}:  # codes have no accents: `REJETE`
                    states.setdefault(form, set()).add((number, side))
    return states


@cache
def pattern_of(key: str | _State) -> re.Pattern[str]:
    """Return the expression of a list of words, or of the words of a state that are long enough to mean it."""
    words = _words(_POLARITY[key] if isinstance(key, str) else _POLARITY["pair"][key[0]][("one", "other")[key[1]]])
    spaced = [
        word for word in words if word[0] < FIRST_UNSPACED and (isinstance(key, str) or len(word) >= _SHORTEST_STATE)
    ]
    unspaced = [re.escape(word) for word in words if word[0] >= FIRST_UNSPACED]
    bounded = "|".join(sorted(map(re.escape, spaced), key=len, reverse=True)).replace("'", "['’]")
    # The vowel signs of Hindi are no letters to `re`. "Alle 10:20" tells a time in Italian.
    form = rf"(?<![\w-])(?:{bounded})(?![\w\u0900-\u097f-]| \d\d?[:.]\d\d)"
    return re.compile("|".join([form, *unspaced]), re.IGNORECASE)


def states_of(key: str, cell: Json) -> set[_State]:
    """Return the states that a cell means: `"status": "REFUSED"`, `"pets_allowed": false`, `"delay_min": 17`."""
    if isinstance(cell, bool):
        names = name_words(key) or ("",)
        found = {state for word in names for state in states().get(word, ())} if names[0] not in _SETTINGS else set()
        return {(pair, side if cell else 1 - side) for pair, side in found}
    if isinstance(cell, (int, float)):
        above = (state for word in name_words(key) for state in _measured().get(word, ()))
        return {(pair, side if cell > 0 else 1 - side) for pair, side in above}
    if not isinstance(cell, str):
        return set()
    words = cell.casefold().replace("_", " ")
    head = words.split(" ")[0] if 1 < len(words.split(" ")) <= _SHORT_CELL else words  # `waiting_for_parts`
    return set(states().get(words) or states().get(head, set()))


_SETTINGS = frozenset(
    ["allow", "allows", "can", "may", "should", "require", "requires", "show", "notify", "auto", "on", "if"]
)
"""First words of flags that say what may be, not what is: `allow_failure`."""


@cache
def _measured() -> dict[str, list[_State]]:
    """Return the states that a number above zero means, by a word of its key: `delay_min`, `units_left`."""
    above: dict[str, list[_State]] = {}
    for number, pair in enumerate(_POLARITY["pair"]):
        for side, key in enumerate(("counted", "measured")):
            for word in pair.get(key, "").split():
                above.setdefault(word, []).append((number, side))
    return above


_ADJECTIVE = re.compile(
    r"[a-z]{3,}(?:ed|able|ible|[aiu]d[oa]|[aiu]t[oa]|ona|ony|iert|ee)|(?:ge|be|ver|aus|ein)[a-z]{2,}(?:t|en)"
)
"""A flag that says what a thing is, in the languages that form it with an ending."""
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_PARTING = ",;:、，；：。"


def opposite_state(text: str, cells: Mapping[str, Json], place: str = "") -> str | None:
    """Return why a text contradicts a state of a row: it has a word of the opposite state, and none of the state."""
    if _PHRASES["at_first"].search(text):
        return None  # "the load had failed at first"
    for key, cell in cells.items():
        said = _flag_in(text, key) if isinstance(cell, bool) else None
        if said is None:
            continue
        affirmed = _says_what(key) and not _is_negated(text, said) and not _PHRASES["trouble"].search(text)
        affirmed = affirmed and not any(pattern_of(state).search(text) for state in (*_off(), "off"))
        if _is_denied(text, said) if cell else affirmed:
            return f"{said[0]!r} is the opposite of {place}/{key} = {cell}"
    given = {state: key for key, cell in cells.items() for state in states_of(key, cell)}
    for (pair, side), key in given.items():
        if (pair, 1 - side) in given:
            continue
        if own := pattern_of((pair, side)).search(text):
            if isinstance(cells[key], bool) and _is_denied(text, own):
                return f"{own[0]!r} is denied: {place}/{key} = {cells[key]}"
            continue
        found = pattern_of((pair, 1 - side)).search(text)
        if (
            found is not None
            and not _is_negated(text, found)
            and _PHRASES["expected"].search(text[: found.start()]) is None
            and (" " in found[0] or _PHRASES["doer"].search(text[: found.start()]) is None)  # "we have it in stock"
        ):
            return f"{found[0]!r} is the opposite of {place}/{key} = {cells[key]}"
    return None


@cache
def _off() -> list[_State]:
    """Return the states in which what a flag names is not: "gift aid is switched off"."""
    return [state for word in ("disabled", "unavailable", "excluded") for state in states()[word]]


_PREPOSITION = re.compile(
    r"(?i) (?:under|in|on|within|of|by|with|unter|mit|en|sous|con|bajo|sob|sotto|onder) (?:the )?\Z"
)
_BESIDE = 10
"""Characters before a word in which a negation is of the word: `sin `, `is not `, `n'est pas `."""


def _is_denied(text: str, word: re.Match[str]) -> bool:
    """Return True if a negation is right before a word."""
    start = max(text.rfind(sign, 0, word.start()) + 1 for sign in _PARTING)
    before = _PREPOSITION.sub(" ", text[max(word.start() - 2 * _BESIDE, start) : word.start()])
    before = _PHRASES["still"].sub(" ", before)[-_BESIDE:]
    return _PHRASES["negates"].search(before) is not None


def _flag_in(text: str, key: str) -> re.Match[str] | None:
    """Return the word of a flag's key in a text, in any form and also without accents: `complet` of `"complet": true`.

    For a key of several words, the last of them in a text with all: "two of them allow pets", of `pets_allowed`.
    """
    words = [word for word in name_words(key) if len(word) >= _SHORTEST_STATE]
    if not words or not states().keys().isdisjoint(name_words(key)) or not _roots(words) <= particulars(text):
        return None
    found = [one for one in _LONG_WORD.finditer(text) if _roots([one[0]]) <= _roots(words)]
    return next((one for one in found if _is_denied(text, one)), found[0] if found else None)


def _roots(words: Iterable[str]) -> frozenset[str]:
    return particulars(" ".join(words))


def _says_what(key: str) -> bool:
    """Return True if a key says what a thing is or may be: `refundable`, `insured`, `pets_allowed`; a noun does not."""
    words = name_words(key)
    return _ADJECTIVE.fullmatch(words[-1]) is not None or len(words) > 1


def _is_negated(text: str, word: re.Match[str]) -> bool:
    """Return True if a part of a sentence between commas has a negation beside a word; "still" is none."""
    start = max(text.rfind(sign, 0, word.start()) for sign in _PARTING) + 1
    ends = [end for sign in _PARTING if (end := text.find(sign, word.end())) >= 0]
    part = _PHRASES["still"].sub(" ", text[start : min(ends, default=len(text))])
    return _PHRASES["negates"].search(part) is not None or _PHRASES["without"].search(part) is not None


def opposite_states(turn: Turn) -> Contradiction | None:
    """Return a state of which the results have only the opposite: "approved" for "refused"."""
    prose, texts = turn.prose, [fact.result.text for fact in turn.known]
    if len("".join(texts)) > LONGEST or (len(turn.good) < len(turn.known) and is_admission(prose)):
        return None
    again = {fact.able.tool.name for fact in turn.good}  # a call that failed, and another one that did not
    old = {
        fact.result.text for fact in turn.known if fact.outcome.error and fact.able.tool.name in again
    } | turn.outdated
    fields = [field for text in texts if text not in old for field in fields_of(object_of(text))]
    # Null for a participle is "not yet": `"approved": null`.
    fields = [
        (key, False, is_alone) if cell is None and key.endswith("ed") else (key, cell, is_alone)
        for key, cell, is_alone in fields
    ]
    sides: dict[int, set[int]] = {}
    for key, cell, _ in fields:
        for pair, side in states_of(key, cell):
            sides.setdefault(pair, set()).add(side)
    flags = Counter(key for key, cell, _ in fields if isinstance(cell, bool) and _flag_in(prose.text, key))
    keys = Counter(key for key, _, _ in fields)
    sent = [decode_json(text) for text in turn.sent]  # a result may repeat what was looked for: `"direct": true`
    echoed = [(key, cell) for one in sent if isinstance(one, dict) for key, cell in one.items()]
    alone = [(key, cell) for key, cell, is_alone in fields if is_alone and (key, cell) not in echoed]
    found: list[tuple[str, Json, re.Pattern[str] | None]] = []
    if len(flags) <= MOST_WORDS:
        found += [(key, cell, None) for key, cell in alone if isinstance(cell, bool) and flags[key] == 1]
    for key, cell in alone:
        for pair, side in states_of(key, cell):
            told = not isinstance(cell, bool) and pattern_of((pair, side)).search(prose.text)
            if pair != _OUTCOMES and len(sides[pair]) == 1 and not told:
                found.append((key, cell, pattern_of((pair, 1 - side))))
    subject = particulars(f"{turn.order} {' '.join(turn.sent)}")
    for key, cell, opposite in found:
        for sentence in statements(prose):
            against = opposite_state(sentence.masked, {key: cell})
            if against is None or _is_of_other_day(key, sentence.masked):
                continue
            rest = opposite.sub(" ", sentence.masked) if opposite is not None else sentence.masked
            word = _flag_in(sentence.masked, key) if opposite is None else opposite.search(sentence.masked)
            plain = (
                len(turn.known) == 1
                and word is not None
                and _is_plain_flag(key, cell, turn, sentence.masked[: word.end()])
            )
            of_one = (len(turn.known) == 1 or keys[key] == 1) and PRONOUN.match(sentence.masked) is not None
            if plain or of_one or not particulars(rest).isdisjoint(subject):
                return Contradiction(*sentence.span, against)
    return None


def _is_of_other_day(key: str, text: str) -> bool:
    """Return True if a key is a day of the week and a text names others: "on Sunday it is open", of `monday`."""
    names, pattern = weekdays()
    told = {names[day.casefold()] for day in pattern.findall(text)}
    return bool(told) and names.get(key.casefold()) not in (None, *told)


PRONOUN = re.compile(
    r"(?i)\W*(?:it|they|he|she|this|that|es|er|sie|il|elle|ello|él|ella|ele|ela|hij|zij|het|on|ona|o|bu)\b"
)


def _is_plain_flag(key: str, cell: Json, turn: Turn, told: str) -> bool:
    """Return True if a sentence needs no word of the order to be about a flag: "The copy is encrypted".

    `told`: the sentence up to the word. It has one clause and no date, and the reply no word of the flag's own state.
    """
    own = (pattern_of(state) for state in states_of(key, cell))
    if not isinstance(cell, bool) or any(one.search(turn.prose.text) for one in own):
        return False
    return not any(sign in told for sign in _PARTING) and not dates(told)


def object_of(text: str) -> Json:
    """Return the JSON of a result, or the lines `name: value` of a text as an object."""
    return (
        decode_json(text)
        if text.lstrip().startswith(("{", "["))
        else {key.strip(): cell for key, cell in _FIELD.findall(text)}
    )


_FIELD = re.compile(r"^ *(\w[\w ]{0,24}): *(\w[\w -]{1,22}) *$", re.MULTILINE)


def fields_of(document: Json, depth: int = 0, *, alone: bool = True) -> Iterator[tuple[str, Json, bool]]:
    """Yield the keys and cells of a document, and whether they are in no list."""
    if depth > DEEPEST:
        return
    if isinstance(document, list):
        for item in document:
            yield from fields_of(item, depth + 1, alone=False)
    elif isinstance(document, dict):
        for key, cell in document.items():
            if isinstance(cell, (dict, list)):
                yield from fields_of(cell, depth + 1, alone=alone)
            elif not _WISHES.isdisjoint(name_words(key)):
                continue  # `"requested": "open"` is no state
            else:
                yield key, cell, alone


_WISHES = frozenset({"requested", "desired", "target", "wanted", "expected"})
