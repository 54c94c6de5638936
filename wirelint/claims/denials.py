"""Replies that deny what a look-up found, or what a look-up that failed was to find.

Theory of operation. A denial is a word such as "none" with a noun behind it. It contradicts hits if it is about the
look-up: it has its arguments, words of the tool, or a general word for hits ("no results"). A denial after an error says
what nobody knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.actions import stem, words_of
from wirelint.claims.announcements import is_english
from wirelint.claims.counts import looking_up
from wirelint.claims.derivation import STOP, data, equals
from wirelint.claims.evidence import STATE_KEYS, SURE, Contradiction, Fact, Turn
from wirelint.claims.grounding import particulars
from wirelint.claims.hidden_failures import failed_in_the_end, tells_failure, without_denied_faults, words_of_call
from wirelint.claims.moments import CELL, RELATIVE
from wirelint.claims.rows import holds, tables
from wirelint.claims.states import states
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import FIRST_UNSPACED, LONGEST, values
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.text.prose import Cues, Sentence

_PHRASES = lexicon.Phrases("denials")
_OF_GROUNDING = lexicon.Phrases("grounding")
_WORD = re.compile(r"\w+")

_PLAIN = frozenset(_PHRASES.words("plain"))


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


def denied_hits(turn: Turn) -> Contradiction | None:
    """Return a denial of what a look-up found, if the reply takes nothing from the list that it returned."""
    for fact in turn.known:
        if fact.outcome.error or fact.outcome.empty or len(fact.result.text) > LONGEST:
            continue
        key, items = _list_of(fact.result.text)
        for sentence in turn.sentences if items else ():
            zero, none = (_PHRASES[key].search(sentence.masked) for key in ("zero", "none_exists"))
            if (denial := zero or none) is None:
                continue
            behind = sentence.masked[denial.start() :]
            names = (one[0] for one in (zero, none, _UNSPACED.match(behind)) if one is not None)
            of_hits = any(map(_PHRASES["general_hits"].search, names)) and not _is_elsewhere(behind, [fact])
            of_hits = of_hits or _PHRASES["returned_none"].search(sentence.masked) is not None
            of_list = any(particulars(one["noun"]) == _noun(key) for one in _NONE_OF.finditer(behind))
            looks = zero is not None or "search" in fact.able.kinds
            if _denies(
                turn, sentence, fact, items, looks=looks, by_name=of_hits or of_list, at_most=1 if of_list else 0
            ):
                return Contradiction(*sentence.span, fact.shown, *(SURE if of_hits else ()))
    return None


def _noun(key: str) -> frozenset[str]:
    return particulars(" ".join(name_words(key)[-1:])) or frozenset([key])


def _list_of(text: str) -> tuple[str, Sequence[Json]]:
    """Return the first list of a result, with its key: a document, a value of one, or the rows of a table; nothing beside
    an empty list.
    """
    if text.lstrip()[:1] not in ("[", "{"):
        return "", [dict(row.cells) for row in next(iter(tables(text)), ())]
    document = decode_json(text)
    if isinstance(document, list):
        return "", document
    fields = document if isinstance(document, dict) and [] not in document.values() else {}
    return next(((key, one) for key, one in fields.items() if isinstance(one, list)), ("", []))


def _denies(
    turn: Turn, sentence: Sentence, fact: Fact, items: Sequence[Json], *, looks: bool, by_name: bool, at_most: int
) -> bool:
    """Return True if a sentence with a denial is about the items that a call found: it has values that were sent, words
    of the tool or a state of some items, or names them. Items may not count by a state, and the reply may tell of some.

    `looks`: the call was a search, or the denial is one of things that are found. `by_name`: it is one of the results or
    of the key of their list. `at_most`: words of items in such a reply.
    """
    told, found = particulars(sentence.masked), particulars(json.dumps(items))
    tool = particulars(" ".join([*name_words(fact.able.tool.name), *fact.able.words]))
    sent, others = _sent(fact), frozenset[str]().union(*(_sent(one) for one in turn.known if one is not fact))
    state = _state_in(sentence.masked, items)
    of_tool = looks and (by_name or told & tool or words_of(sentence.masked) & fact.able.words)
    if any(one.outcome.empty and (_sent(one) & told or not _sent(one)) for one in turn.known):
        return False  # true of another look-up
    if told & (others - sent) or not (told & sent or of_tool or state or at_most):
        return False
    if (_may_not_match(fact) and not by_name) or _PHRASES["others"].search(sentence.masked):
        return False
    if state is None and _may_be_filtered(items, _words_unsent(turn, sentence, fact)):
        return False
    # "No open tickets", of a list of tickets: the model may have read which of them are open.
    rest = particulars(_without(sentence.masked, fact.arguments)) & particulars(turn.order)
    cells = [*_KEY.findall(fact.result.text), *(key for row in items if isinstance(row, dict) for key in row)]
    known = particulars(" ".join([*cells, state or "", fact.arguments]))
    if rest - known - tool - _SMALL and not (by_name or (looks and max(sentence.masked) >= FIRST_UNSPACED)):
        return False
    known |= others | particulars(f"{turn.order} 0")
    return len(particulars(turn.prose.text) & (found - known)) <= at_most


_UNSPACED = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]{2,12}")
"""The words from a denial on, of a language without spaces: `没有找到任何结果`."""
_NONE_OF = _PHRASES.pattern("none_of")
"""A denial of a noun that nothing narrows."""


def _words_unsent(turn: Turn, sentence: Sentence, fact: Fact) -> list[str]:
    """Return the words of the order and of a denial that the arguments of a call do not have."""
    sent = fact.arguments.casefold()
    return [word for word in _WORD.findall(f"{turn.order} {sentence.masked}") if word.casefold() not in sent]


def _sent(fact: Fact) -> frozenset[str]:
    """Return the particulars of the values that a call was sent."""
    sent = decode_json(fact.arguments)
    return particulars(" ".join(map(str, sent.values()))) if isinstance(sent, dict) else frozenset()


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
