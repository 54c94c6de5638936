"""Replies that deny what a look-up found, or what a look-up that failed was to find.

Theory of operation. A denial is a word such as "none" with a noun behind it. It contradicts hits if it is about the
look-up: it has its arguments, words of the tool, or a general word for hits ("no results"). A denial after an error says
what nobody knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.actions import stem, words_of
from wirelint.claims.announcements import is_english
from wirelint.claims.counts import looking_up
from wirelint.claims.derivation import STOP, data, equals
from wirelint.claims.evidence import STATE_KEYS, SURE, Contradiction, Fact, Turn
from wirelint.claims.grounding import is_admission, particulars
from wirelint.claims.hidden_failures import failed_in_the_end, tells_failure, without_denied_faults, words_of_call
from wirelint.claims.moments import CELL, RELATIVE
from wirelint.claims.rows import Row, holds, tables
from wirelint.claims.states import states
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import LONGEST, values
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.text.prose import Cues, Prose, Sentence

_PHRASES = lexicon.Phrases("denials")
_OF_GROUNDING = lexicon.Phrases("grounding")
_WORD = re.compile(r"\w+")

_PLAIN = frozenset(_PHRASES.words("plain"))


def denied_hits(turn: Turn) -> Contradiction | None:
    """Return the denial of hits by a general word for them: "no results" against fourteen."""
    prose, looking = turn.prose, looking_up(turn.known)
    if not looking or any(fact.outcome.empty for fact in looking):
        return None
    if not all(
        "search" in fact.able.kinds and fact.outcome.counts and not _PHRASES["holds_zero"].search(fact.result.text)
        for fact in looking
    ):
        return None
    if _cites(prose, looking) or _PHRASES["counted"].search(prose.masked):
        return None
    for sentence in turn.sentences:
        of_call = _PHRASES["returned_none"].search(sentence.masked)
        zero = _PHRASES["zero"].search(sentence.masked) or of_call
        if zero is None:
            continue
        # "No results" denies the hits, "no files about it" may deny that they are about it.
        doubtful = _PHRASES["general_hits"].search(zero[0]) is None and all(map(_may_not_match, looking))
        if doubtful or _reports_hits(prose, sentence, looking):
            return None
        elsewhere = not of_call and _is_elsewhere(prose.text[sentence.start + zero.start() : sentence.end], looking)
        if not elsewhere and not _PHRASES["narrowed"].search(sentence.masked):
            return Contradiction(*sentence.span, looking[-1].shown, *SURE)
    return None


def denied_after_error(turn: Turn) -> Contradiction | None:
    """Return a denial of what a look-up that ended in an error was to find: "there are no claims", where nobody knows.

    Beside look-ups that did find something, the error is one of the service, and the denial has words of the failed call.
    """
    prose, looking = turn.prose, looking_up(turn.known)
    failed = [one.fact for one in failed_in_the_end(turn) if one.fact.outcome.error and one.fact in looking]
    if not failed or any(fact.outcome.empty for fact in looking) or _PHRASES["admits_looking"].search(prose.masked):
        return None
    if any(map(tells_failure, without_denied_faults(prose))):
        return None
    if not is_english(prose.masked) and _OF_GROUNDING["trouble"].search(prose.masked):
        return None
    if any(status in prose.text for fact in failed for status in _STATUS.findall(fact.result.text)):
        return None
    in_vain = len(failed) == len(looking)
    for sentence in turn.sentences:
        denial = next(filter(None, (_PHRASES[key].search(sentence.masked) for key in _DENIALS[in_vain])), None)
        if denial is None or _PHRASES["others"].search(sentence.masked) or _PHRASES["has_none"].search(sentence.masked):
            continue
        for fact in failed:
            own = words_of_call(fact)
            of_service = _PHRASES["out_of_order"].search(fact.result.text) is not None
            if in_vain and _is_absence(fact, denial[0]):
                return None
            elsewhere = _is_elsewhere(prose.text[sentence.start + denial.start() : sentence.end], looking)
            about_it = of_service and not own.isdisjoint(particulars(sentence.masked))
            if about_it or (in_vain and not elsewhere and denial.re != _PHRASES["none_exists"]):
                return Contradiction(*sentence.span, f"the result is an error: {fact.shown}", *SURE)
    return None


_DENIALS = {False: ("none_exists",), True: ("zero", "returned_none", "none", "none_exists")}
"""The patterns of denials, where not all look-ups failed and where all did."""
_STATUS = re.compile(r"\b[45]\d\d\b")


def _is_absence(fact: Fact, denial: str) -> bool:
    """Return True if the error itself reports that the thing does not exist, so that "none found" is a fair summary.

    "Order not found" may become "no orders"; "workspace not found" may not become "no results".
    """
    text = fact.result.text.lower()
    if not _PHRASES["absent"].search(text):
        return False
    if "search" not in fact.able.kinds:
        return True
    nouns = {word.rstrip("s") for word in re.findall(r"[a-z]+", denial.lower()) if len(word) > 3} - {
        "found",
        "nothing",
        "result",
        "anything",
    }
    return any(noun in text for noun in nouns)


def _is_elsewhere(shown: str, looking: Sequence[Fact]) -> bool:
    """Return True if a denial is about a target that no call of the turn looked for."""
    asked = " ".join(fact.arguments for fact in looking).lower()
    targets = [word.lower().rstrip(".-") for word in _PHRASES["target"].findall(shown) if word.lower() not in _PLAIN]
    return bool(targets and asked.strip() not in ("", "{}")) and not any(
        word in asked or stem(word) in asked for word in targets
    )


def _cites(prose: Prose, looking: Sequence[Fact]) -> bool:
    """Return True if the text contains a token that only a result contains."""
    asked = " ".join(fact.arguments for fact in looking)
    results = " ".join(fact.result.text[:20_000] for fact in looking)
    return any(token in results and token not in asked for token in _PHRASES["token"].findall(prose.text))


def _reports_hits(prose: Prose, denial: Sentence, looking: Sequence[Fact]) -> bool:
    """Return True if the text reports the hits beside the denial: as near misses, or in their own words."""
    if _PHRASES["nearest"].search(prose.masked):
        return True
    asked = set(_PHRASES["title_word"].findall(" ".join(fact.arguments for fact in looking).lower()))
    titles = set(_PHRASES["title_word"].findall(" ".join(fact.result.text[:LONGEST] for fact in looking).lower()))
    rest = f"{prose.text[: denial.start]} {prose.text[denial.end :]}".lower()
    return len(set(_PHRASES["title_word"].findall(rest)) & (titles - asked)) >= 2


def denied_items(turn: Turn) -> Contradiction | None:
    """Return a denial of what a look-up found, in any language, if the reply takes nothing from the list that it returned.

    The denial is about the arguments of the call. A search by words may return what does not match them, so its hits count
    only if they have all words of the search.
    """
    fact, text = turn.known[0], turn.known[0].result.text
    if len(turn.known) > 1 or fact.outcome.error or fact.outcome.empty:
        return None
    none = next((one for one in turn.sentences[:2] if _PHRASES["none_exists"].search(one.masked)), None)
    if none is None or len(text) > LONGEST:
        return None
    document = decode_json(text) if text.lstrip()[:1] in ("[", "{") else [dict(row.cells) for row in _only_table(text)]
    items = document if isinstance(document, list) else [*document.values()] if isinstance(document, dict) else []
    listed = items if isinstance(document, list) else next((one for one in items if isinstance(one, list)), [])
    if not listed or [] in items:
        return None
    wanted, found = particulars(fact.arguments), particulars(text)
    own = particulars(" ".join(fact.able.words))
    named = (
        particulars(none.masked) & wanted or words_of(none.masked) & fact.able.words or particulars(none.masked) & own
    )
    key = next((key for key, one in document.items() if one is listed), "") if isinstance(document, dict) else ""
    state = _state_in(none.masked, listed)
    is_named = bool(named) or state is not None
    says_key = (key in states() and holds(none.masked, key)) or state is not None
    if not says_key and _may_be_filtered(listed, _WORD.findall(f"{turn.order} {none.masked}")):
        return None
    denial = _PHRASES["none_exists"].search(none.masked)
    if not is_named or _may_not_match(fact) or is_admission(turn.prose, sad=True, denial=denial[0] if denial else ""):
        return None
    # "No open tickets", of a list of tickets: the model may have read which of them are open.
    keys = particulars(" ".join([*_KEY.findall(text), *(key for row in _only_table(text) for key in row.cells)]))
    narrowing = (particulars(_without(none.masked, fact.arguments)) & particulars(turn.order)) - wanted - keys - _SMALL
    narrowing -= particulars(state or "")
    if _PHRASES["others"].search(none.masked) or narrowing - own:
        return None
    retells = particulars(turn.prose.text) & (found - wanted - keys - particulars(f"{state or ''} {turn.order}"))
    return None if retells else Contradiction(*none.span, fact.shown)


def denied_list(turn: Turn) -> Contradiction | None:
    """Return a clause that denies what a list of the only result holds, by the list's key: "no findings" against two
    `findings`. The reply tells of none of them.
    """
    document = decode_json(turn.known[0].result.text) if len(turn.known) == 1 else None
    keys = dict(_lists(document, 0)) if isinstance(document, dict) else {}
    for sentence in turn.sentences if keys else ():
        for denial in _NONE_OF.finditer(sentence.masked):
            root = particulars(denial["noun"])
            key = next((key for key in keys if root and root == particulars(name_words(key)[-1])), None)
            if key is None or _PHRASES["others"].search(sentence.masked):
                continue
            told = particulars(" ".join(one.masked for one in turn.prose.sentences if one is not sentence))
            items = particulars(json.dumps(keys[key])) - particulars(f"{turn.order} {' '.join(turn.sent)}") - _SMALL
            if len(told & items) < _RETOLD:
                return Contradiction(*sentence.span, f"{key} has {len(keys[key])}: {turn.known[0].shown}")
    return None


_NONE_OF = _PHRASES.pattern("none_of")
"""A denial of a noun that nothing narrows."""
_RETOLD = 2
"""Particulars of the items that a reply has if it tells of them."""


def _lists(document: dict[str, Json], depth: int) -> Iterator[tuple[str, list[Json]]]:
    """Yield the lists of a document that are not empty, with their keys."""
    for key, cell in document.items():
        if isinstance(cell, list) and cell and name_words(key):
            yield key, cell
        elif isinstance(cell, dict) and depth < _DEEPEST:
            yield from _lists(cell, depth + 1)


_DEEPEST = 3


def _only_table(text: str) -> tuple[Row, ...]:
    return next(iter(tables(text)), ())


def _without(text: str, arguments: str) -> str:
    """Return a text without relative days, and without amounts that the arguments have: `3 millions` of 3000000."""
    sent = data(arguments)
    for value in reversed(values(text)):
        if any(equals(value, datum.value) for datum in sent):
            text = text[: value.start] + text[value.end :]
    return RELATIVE.sub(" ", text)


def _may_not_match(fact: Fact) -> bool:
    """Return True if the hits of a search by words do not have all of these words, so that none of them may be meant."""
    sent = decode_json(fact.arguments)
    searched = (
        [str(value) for key, value in sent.items() if key.lower() in _SEARCH_KEYS] if isinstance(sent, dict) else []
    )
    return not particulars(_OPERATOR.sub(" ", " ".join(searched))) <= particulars(fact.result.text)


_OPERATOR = re.compile(r"\b\w+:\w+")
"""A filter among the words of a search: `status:open`."""


def _may_be_filtered(items: Sequence[Json], words: Sequence[str]) -> bool:
    """Return True if items may not count by a flag, a zero or a state: `{"taken": true}`.

    All have the same, or a word of the order or the denial names one.
    """
    rows = [item for item in items if isinstance(item, dict)]
    columns = [(key, [row.get(key) for row in rows]) for key in (rows[0] if rows else ())]
    kinds = [(key, cells) for key, cells in columns if key.lower() in STATE_KEYS or any(map(_is_state_cell, cells))]
    if any(cells.count(cells[0]) == len(cells) for _, cells in kinds):
        return True
    keys = particulars(" ".join(" ".join(name_words(key)) for key, _ in kinds))
    words = [word for word in words if len(word) >= CELL]
    return bool(kinds) and any(word.casefold() in states() or particulars(word) & keys for word in words)


def _state_in(text: str, items: Sequence[Json]) -> str | None:
    """Return the state of some items that a denial names: `vacant` of "no vacant units", where two are."""
    cells = {str(cell) for item in items if isinstance(item, dict) for cell in item.values() if isinstance(cell, str)}
    return next((cell for cell in sorted(cells) if cell.casefold() in states() and holds(text, cell)), None)


def _is_state_cell(cell: Json) -> bool:
    return isinstance(cell, bool) or cell == 0 or str(cell).casefold() in states()


NONE_CUES = Cues(*_PHRASES.words("none_cues"))
_SEARCH_KEYS = frozenset(_PHRASES.words("search_keys"))
_KEY = re.compile(r'"[^"\n]{1,40}"\s*:')
_SMALL = frozenset(word[:5] for word in STOP)
