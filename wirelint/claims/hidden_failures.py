"""Failures in results that a reply does not tell.

Theory of operation. The last result of an action may hold a failure: an error, a state (`"status": "rejected"`), a list or
a number of failures (`"failed": 2`), a line of a log (`--- FAIL`). A reply about that action tells it if it has a word for
a failure anywhere, or a negation or a word of the failure in a sentence about the action. A reply that does neither hides
the failure, in whatever words it claims success.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from wirelint import lexicon
from wirelint.claims.actions import bare
from wirelint.claims.announcements import is_english
from wirelint.claims.derivation import STOP, equals, is_said
from wirelint.claims.evidence import REASONS, SURE, Contradiction, Fact, Turn
from wirelint.claims.grounding import ECHO, particulars, stated, statements
from wirelint.claims.rows import holds
from wirelint.claims.states import FAILURE, REFUSED, fields_of, object_of, pattern_of, states, states_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import LONGEST
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.text.prose import Prose, Sentence
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("hidden_failures")
_OF_GROUNDING = lexicon.Phrases("grounding")
_LOOKS = frozenset({"search", "read"})
_DEEPEST = 4
"""Levels of a result in which its states are searched."""
_MOST_FAILED = 16
"""Results with a failure that are compared with a reply."""
_LONGEST_SHOWN = 120
_SHORT_STATE = 4
"""Words of a cell that is a state: `failed to start`."""
_FLAGS = frozenset(_PHRASES.words("flags"))


class Failed(NamedTuple):
    """A result with a failure after which the same tool did not succeed in a later step.

    `words`: those of the failure; none for the error of a look-up, which a reply need not tell. `cause`: those of its
    reason. `replaced`: another action succeeded later, perhaps in place of it.
    """

    fact: Fact
    words: str
    cause: str
    replaced: bool

    @property
    def looks(self) -> bool:
        """True for the result of a look-up, which may tell of the failure of other things."""
        return bool(self.fact.able.kinds) and not _may_act(self.fact)

    @property
    def is_counted(self) -> bool:
        """True for a number or a list of failures: `failed: 2`."""
        return _counts_failures(self.words.partition(":")[0])


def failed_in_the_end(turn: Turn) -> list[Failed]:
    """Return the first results with a failure that no later step of the turn made up for."""
    steps = {call.pointer: at for at, message in enumerate(turn.request.turn) for call in message.calls}
    step = {one.result.pointer: steps.get(one.call.pointer, -1) for one in turn.ran if one.call and one.result}
    succeeded: dict[str, set[int]] = {}
    acted: set[str] = set()
    found: list[Failed] = []
    for fact in reversed(turn.known):
        name, at = fact.able.tool.name, step.get(fact.result.pointer, -1)
        words, cause = _failure_of(fact.result.text, not _may_act(fact), fact.outcome.error)
        if not words and not fact.outcome.error:
            succeeded.setdefault(name, set()).add(at)
            acted |= {name} if not fact.able.kinds <= _LOOKS else set()
        elif not succeeded.get(name, set()) - {at}:
            found.append(Failed(fact, words, cause, bool(acted - {name})))
    return found[: -_MOST_FAILED - 1 : -1]


def hidden_failure(turn: Turn) -> Contradiction | None:
    """Return a sentence about an action whose last result holds a failure that the reply does not tell."""
    prose = turn.prose
    failed = [one for one in failed_in_the_end(turn) if one.words and not one.replaced]
    texts = without_denied_faults(prose) if failed else []
    if not failed or any(map(tells_failure, texts)):
        return None
    denial, told = _denied_fault(prose, " ".join(turn.sent)), list(statements(prose))
    good = any(map(_has_good_state, texts))
    for one in failed:
        fact, grade = one.fact, () if one.looks else SURE
        if denial is not None and one.is_counted:
            return Contradiction(*denial.span, f"the result has {one.words}: {fact.shown}", *grade)
        if one.looks and not good and not fact.outcome.error:
            continue  # the record of a thing in a bad state, which any words may tell
        if _may_be_told(one, turn, texts):
            continue
        known = particulars(f"{fact.arguments} {fact.able.tool.name} {turn.order} {fact.result.text}")
        about = (each for each in told if not particulars(prose.text[slice(*each.span)]).isdisjoint(known))
        if (sentence := next(about, None)) is not None:
            return Contradiction(*sentence.span, f"the reply does not tell {one.words!r}: {fact.shown}", *grade)
    return None


def _has_good_state(text: str) -> bool:
    """Return True if a sentence has a good state, or speaks of all."""
    return pattern_of("all").search(text) is not None or any(pattern_of((pair, 0)).search(text) for pair in _good())


@cache
def _good() -> list[int]:
    """Return the pairs of states of which the first one is what an action is to reach."""
    return sorted({pair for word in _PHRASES.words("good") for pair, _ in states()[word]})


_QUOTED = re.compile(r"`([^`\n]+)`")


def _may_be_told(failed: Failed, turn: Turn, texts: Sequence[str]) -> bool:
    """Return True if a text may tell of a failure: by a negation, by words of the failure, or by an offer to try again.

    In another language than the result's, any negation may, and any words about one of several calls of a tool.
    """
    fact, english = failed.fact, is_english(turn.prose.masked)
    own = words_of_call(fact)
    siblings = [one for one in turn.known if one.able.tool.name == fact.able.tool.name and one is not fact]
    if not english and siblings and not _claims_it(fact, siblings, turn.prose):
        return True
    rest = fact.result.text.replace(failed.cause or failed.words, " ")
    known = own | _SMALL | particulars(rest)
    causes = particulars(failed.cause.replace("_", " ")) - known
    reasons = particulars(_KEY.sub(" ", failed.words)) - known
    for text in turn.texts if causes or reasons else ():  # each of them is read once for all checks
        elsewhere = particulars(text) if text != fact.result.text else frozenset[str]()
        causes, reasons = causes - elsewhere, reasons - elsewhere
    if not failed.is_counted:
        reasons = frozenset(word for word in reasons if not word[0].isdigit())
    of_it = own | reasons | causes
    if _tells_item(fact, turn.prose):
        return True
    if any(map(_PHRASES["partly"].search, texts)):
        return True
    if any(pattern_of(state).search(text) for state in _bad_states(fact.result.text) for text in texts):
        return True
    for text in texts:
        plain = _NO_NOUN.sub(
            lambda one: " " if particulars(one["noun"]).isdisjoint(of_it) else one[0], _CONDITION.sub(" ", text)
        )
        if may_tell(plain if english else text) and not (english and particulars(text).isdisjoint(of_it)):
            return True
        if not english and _OF_GROUNDING["trouble"].search(text):
            return True
    quoted = " ".join(_QUOTED.findall(turn.prose.text))  # "it dies on `WRONGPASS`"
    told = particulars(quoted).union(*map(particulars, texts))
    if len(told & reasons) >= (_OF_A_LIST if "[" in failed.words else 1):
        return True
    if causes and (len(told & causes) > 1 or 2 * len(told & causes) >= len(causes)):
        return True
    asks = (one.masked for one in turn.prose.sentences if one.question and _PHRASES["once_more"].search(one.masked))
    return any(not particulars(text).isdisjoint(own) for text in asks)


def _tells_item(fact: Fact, prose: Prose) -> bool:
    return any(item in prose.text for item in _failed_items(object_of(fact.result.text), 0))


def _failed_items(document: Json, depth: int) -> Iterator[str]:
    """Yield the texts in lists of failures: `"failed_addresses": ["t@oldmail.example"]`."""
    for key, cell in document.items() if isinstance(document, dict) else ():
        if isinstance(cell, list) and any(map(_counts_failures, (key, name_words(key)[0] if name_words(key) else key))):
            yield from (item for item in cell if isinstance(item, str) and len(item) > _SHORT_STATE)
        elif isinstance(cell, dict) and depth < _DEEPEST:
            yield from _failed_items(cell, depth + 1)


def _bad_states(text: str) -> set[tuple[int, int]]:
    """Return the states of a result that are the opposite of good ones: `"mode": "out_of_service"`."""
    cells = ((key, cell) for key, cell, _ in fields_of(object_of(text)) if isinstance(cell, str))
    return {state for key, cell in cells for state in states_of(key, cell) if state[1] == 1}


_NO_NOUN = re.compile(r"(?i)\bwith no (?P<noun>[a-z]+)")
"""A denial of one thing, which is none of the act unless the thing is its own: "with no fee"."""
_CONDITION = re.compile(r"(?i)\b(?:if|who|which|that)\b[^,.;:!?]*")
"""A condition or a relative clause, whose negation is of something else: "who hadn't answered"."""
_OF_A_LIST = 2
"""Words of a list of failures that pass it on: one may be a word of any text."""
_SMALL = particulars(" ".join(STOP))
_KEY = re.compile(r"['\"]?\w+['\"]?\s*:")


def words_of_call(fact: Fact) -> frozenset[str]:
    """Return the particulars of a call: those of its arguments and of the tool's name."""
    sent = decode_json(fact.arguments)
    values = " ".join(map(str, sent.values())) if isinstance(sent, dict) else fact.arguments
    return particulars(f"{values} {' '.join(name_words(fact.able.tool.name))}")


def _claims_it(failed: Fact, siblings: Sequence[Fact], prose: Prose) -> bool:
    """Return True if a text reports all as done, or what only the failed one of several calls was about."""
    own = particulars(failed.arguments) - particulars(" ".join(one.arguments for one in siblings))
    done = (prose.text[slice(*one.span)] for one in prose.sentences if _OF_GROUNDING["done"].search(one.masked))
    return any(pattern_of("all").search(text) or not own.isdisjoint(particulars(text)) for text in done)


def _denied_fault(prose: Prose, sent: str) -> Sentence | None:
    """Return the sentence that denies all faults: "without any errors", not "no errors of the parser".

    `sent`: the arguments of the calls. One of them may follow: "no errors in `src/cart`".
    """
    for sentence in statements(prose):
        fault = _OF_GROUNDING["no_fault"].search(sentence.masked)
        words = fault[0].split() if fault is not None else []
        if fault is None or len(words) - words.count("any") != _TWO:
            continue
        place = _IN_CODE.match(prose.text, sentence.start + fault.end())
        if _CLAUSE_ENDS.match(sentence.masked, fault.end()) or (place is not None and place[1] in sent):
            return sentence
    return None


_TWO = 2
_IN_CODE = re.compile(r" (?:in|for|on|under) `([^`\n]+)`")
_CLAUSE_ENDS = re.compile(r"\W*\Z|[,;:.!]")


def answer_after_error(turn: Turn) -> Contradiction | None:
    """Return values of a thing whose look-up ended in an error, beside things whose look-ups did not."""
    prose = turn.prose
    failed = [one.fact for one in failed_in_the_end(turn) if one.fact.outcome.error and not one.fact.able.shell]
    if not failed or any(map(tells_failure, without_denied_faults(prose))):
        return None
    strange = [
        one.value.start
        for one in stated(prose)
        if not any(equals(one.value, datum.value) for datum in turn.numbers)
        and not is_said(one.value, prose.masked, turn.told)
    ]
    for fact in failed:
        others = " ".join(one.arguments for one in turn.known if one is not fact)
        own = [name for name in _things(fact) if not holds(others, name.rpartition(" ")[2])]
        for one in statements(prose) if strange and own else ():
            if any(holds(one.masked, name) for name in own):
                new = sum(one.start <= start < one.end for start in strange)
                if new > 1 or (new and not may_tell(one.masked)):
                    return Contradiction(*one.span, f"the result is an error: {fact.shown}", *SURE)
    return None


def failed_act(turn: Turn) -> Contradiction | None:
    """Return a sentence that reports the act of a call that failed as done: "the sluice has been closed to 40 percent"."""
    prose = turn.prose
    failed = [
        one.fact
        for one in failed_in_the_end(turn)
        if (one.words or one.fact.outcome.error) and not one.looks and not one.fact.able.shell
    ]
    for fact in (one for one in failed if not _tells_item(one, prose)):
        own = words_of_call(fact)
        others = [words_of_call(one) for one in turn.known if one is not fact]
        for sentence in statements(prose):
            if not any(_OF_GROUNDING[key].search(sentence.masked) for key in ("done", "done_in_english")):
                continue
            behind = [one.masked for one in prose.sentences if one.end >= sentence.end]
            shared = particulars(prose.text[slice(*sentence.span)])
            if may_tell(sentence.masked) or any(map(tells_failure, behind)) or len(shared & own) < ECHO:
                continue
            if all(len(shared & other) < len(shared & own) for other in others):
                return Contradiction(*sentence.span, f"the result is an error: {fact.shown}", *SURE)
    return None


def _things(fact: Fact) -> Iterator[str]:
    """Yield the arguments of a call that name a thing: `hive 3` of `{"hive": 3}`, and `Leo` of `{"name": "Leo"}`."""
    sent = decode_json(fact.arguments)
    for key, value in sent.items() if isinstance(sent, dict) else ():
        words, text = name_words(key), str(value)
        if isinstance(value, (int, str)) and not isinstance(value, bool) and words and text:
            yield f"{words[-1]} {text}" if len(text) <= _TWO or text.isdigit() else text


def without_denied_faults(prose: Prose) -> list[str]:
    """Return the sentences of a text without "no errors" and "nothing else to do", which deny no act."""
    return [_PHRASES["no_more"].sub(" ", _OF_GROUNDING["no_fault"].sub(" ", one.masked)) for one in prose.sentences]


def tells_failure(text: str) -> bool:
    """Return True if a sentence has a word for a failure, other than that the model is sorry."""
    found = _OF_GROUNDING["admits"].search(_ISSUES.sub(" ", _OF_GROUNDING["regrets"].sub(" ", text)))
    return found is not None and _PHRASES["not_done"].match(found[0]) is None


_ISSUES = re.compile(r"(?i)\b(?:can|could|to|will|would|must|may|I|we|they)(?:['’]ll)? issue\b")
"""To hand out something, which is no failure: "I can issue a pass"."""


def may_tell(text: str) -> bool:
    """Return True if a sentence has a negation."""
    return any(_OF_GROUNDING[key].search(text) for key in ("negates", "without", "admits"))


def _may_act(fact: Fact) -> bool:
    return fact.able.shell or not fact.able.kinds <= _LOOKS


@remembered
def _failure_of(text: str, looks: bool, error: bool) -> tuple[str, str]:
    """Return the words of a failure in a result, and those of its reason. `looks`: the result of a look-up."""
    if len(text) > LONGEST:
        return "", ""
    document = decode_json(text) if text.lstrip()[:1] in ("{", "[") else None
    found, cause = next(_failures(document, 0), ("", "")) if isinstance(document, dict) else ("", "")
    if not found and error and isinstance(document, dict):
        cause = " ".join(_reasons(document, 0))
    if document is None and (line := _PHRASES["marked_line" if looks else "failed_line"].search(text)) is not None:
        found = line[0].strip()
    return (found or (text if error and not looks else ""))[:_LONGEST_SHOWN], cause


def _failures(document: dict[str, Json], depth: int) -> Iterator[tuple[str, str]]:
    """Yield the states, lists and numbers of a document that are failures, with their reasons. Items of lists are other
    things."""
    for key, cell in document.items():
        if isinstance(cell, str):
            failed = _is_failed(cell) and _PHRASES["no_state"].search(key) is None
        elif isinstance(cell, bool):
            failed = key.casefold() in _FLAGS and not cell
        else:
            counted = isinstance(cell, (int, float, list)) and bool(cell)
            failed = counted and _counts_failures(key)
        if failed:
            told = ((why.casefold(), one) for why, one in document.items() if isinstance(one, str) and one is not cell)
            reasons = (one for why, one in told if why in REASONS or why == "error")
            yield f"{key}: {cell}", " ".join(reasons)
        elif isinstance(cell, dict) and depth < _DEEPEST:
            yield from _failures(cell, depth + 1)


def _counts_failures(key: str) -> bool:
    """Return True for the key of a number or a list of failures: `failed`, `errorCount`."""
    return _PHRASES["counted"].match("_".join(name_words(key))) is not None


def _reasons(document: dict[str, Json], depth: int) -> Iterator[str]:
    for key, cell in document.items():
        if isinstance(cell, str) and key.casefold() in REASONS:
            yield cell
        elif isinstance(cell, dict) and depth < _DEEPEST:
            yield from _reasons(cell, depth + 1)


def _is_failed(cell: str) -> bool:
    words = bare(cell.casefold().replace("_", " ").replace("-", " ")).split()
    head = {" ".join(words), words[0]} if 0 < len(words) <= _SHORT_STATE else set()
    return any(not states().get(word, set()).isdisjoint({FAILURE, REFUSED}) for word in head)
