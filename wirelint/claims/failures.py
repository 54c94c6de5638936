"""Results that are errors, and replies that retell them as answers or as success.

Theory of operation. If every result of a turn is an error or empty, a reply that says something new and admits no failure
hides it. A reply admits a failure by a word for it, or by words of the error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wirelint import lexicon
from wirelint.claims.announcements import announcement, is_english
from wirelint.claims.claims import claims
from wirelint.claims.derivation import words_in
from wirelint.claims.evidence import SURE, Contradiction, Fact, Turn, is_unseen, last_words
from wirelint.claims.grounding import (
    ECHO,
    LONGEST_REPORT,
    Given,
    has_negation,
    is_admission,
    negates,
    nouns_of,
    particulars,
    statements,
)
from wirelint.claims.toolkinds import fits
from wirelint.model import Request
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("grounding")
_ROOT = 5
"""Letters that the forms of a word have in common."""
_STATUS = re.compile(r"\b[45]\d\d\b")
"""A status of HTTP."""
_PASSED_ON = 0.2
"""Share of the words of an error whose repetition passes the error on."""
_MANY = 12
"""Words of an error from which on any text may repeat one of them."""
_MUCH = 6
"""New words from which on a reply cannot be only a note about a failure."""


def error_as_answer(turn: Turn) -> Contradiction | None:
    """Return a sentence with news if every result of the turn is an error or empty, and the reply admits no failure."""
    prose, known, request = turn.prose, turn.known, turn.request
    failed = [fact for fact in known if fact.outcome.error]
    # A result without text may be an image or a file.
    in_vain = all(fact.outcome.error or (fact.outcome.empty and fact.result.text) for fact in known)
    if not known or not in_vain or is_unseen(request):
        return None
    if is_admission(prose, sad=True, made=frozenset(n for one in failed for n in nouns_of(one.able.tool))):
        return None
    order = turn.order.casefold()
    settled, asked = bool(failed) and _is_settled(prose, failed, order), words_in(order)
    if _asks_back(prose, failed) or announcement(prose) is not None:
        return None
    against = f"every result of this turn is {'an error' if failed else 'empty'}: {(failed or known)[-1].shown}"
    english = is_english(prose.masked)
    tools = {fact.able.tool.name for fact in failed}
    if not english and any(fact.able.tool.name in tools and not fact.outcome.error for fact in known):
        return None  # the reply may tell of the call that failed in its own words
    if not english and ((settled and _has_trouble(prose, order)) or _has_word_of(prose, failed, request)):
        return None
    affirms = settled and _affirms(prose, failed, request)
    if (settled or not failed or not english) and has_negation(prose) and not affirms:
        if failed and all(fact.able.kinds & {"search", "read"} for fact in failed) and not _has_trouble(prose, order):
            wanted = particulars(turn.order)
            none = (one for one in statements(prose) if _PHRASES["negates"].search(one.masked))
            if found := next((one for one in none if len(particulars(one.masked) & wanted) > 1), None):
                return Contradiction(*found.span, against)
        return None
    given = Given(request, [fact.result.text for fact in known], prose)
    nouns = frozenset(word for fact in failed for word in nouns_of(fact.able.tool))
    if _tells_why(prose, failed, asked | nouns) and not _claims_success(prose, failed):
        return None
    if _tells_fault(prose, failed, asked | nouns):
        return None
    if any(_PHRASES["absent"].search(fact.result.text) for fact in failed) and has_negation(prose):
        return None
    roots, told = frozenset(word[:_ROOT] for word in nouns), 0
    for sentence in statements(prose):
        if settled:
            return Contradiction(*sentence.span, against, *SURE)
        words, new = words_in(sentence.masked), given.new_words(sentence)
        told += len(new)
        about_it = not roots.isdisjoint(word[:_ROOT] for word in words) and bool(new)
        if failed and words & asked and _PHRASES["negates"].search(sentence.masked):
            about_it = True  # "none", where nobody knows
        if about_it or given.has_news(sentence) or (told >= _MUCH and not _has_trouble(prose, order)):
            return Contradiction(*sentence.span, against)
    return None


def _tells_why(prose: Prose, failed: Sequence[Fact], known: frozenset[str]) -> bool:
    """Return True if a reply has a status of the errors, or words of them other than known ones and those of the calls."""
    sent = " ".join(fact.arguments for fact in failed).lower()
    reasons = words_in(" ".join(fact.result.text for fact in failed)) - known
    reasons -= frozenset[str]().union(*(fact.able.words for fact in failed))
    statuses = {one for fact in failed for one in _STATUS.findall(fact.result.text)}
    told = frozenset(reason for reason in reasons if reason not in sent)
    return _passes_on(prose, told) or any(one in prose.text for one in statuses)


def _tells_fault(prose: Prose, failed: Sequence[Fact], known: frozenset[str]) -> bool:
    """Return True if one sentence repeats several words of an error: "fault D07 (door obstruction) came back"."""
    sent = " ".join(fact.arguments for fact in failed).lower()
    reasons = words_in(" ".join(fact.result.text for fact in failed)) - known
    return any(
        sum(word not in sent for word in words_in(one.masked) & reasons) >= _SEVERAL for one in statements(prose)
    )


_SEVERAL = 3


def _asks_back(prose: Prose, failed: Sequence[Fact]) -> bool:
    """Return True if a reply ends with a question after look-ups that failed: "Which Brest do you mean?"."""
    if not failed or not prose.sentences or any(claim.form == "news" for claim in claims(prose)):
        return False  # "I found 42 of them. Shall I list them?"
    if any(map(negates, statements(prose))):
        return False  # "There are no free dates. Shall I look at the next week?"
    return prose.sentences[-1].question and not any(fact.able.kinds - {"search", "read"} for fact in failed)


def _affirms(prose: Prose, failed: Sequence[Fact], request: Request) -> bool:
    """Return True if a sentence reports the order as done without a negation: "The container is now on hold"."""
    given = particulars(" ".join([last_words(request), *(fact.arguments for fact in failed)]))
    return any(
        _PHRASES["done_in_english"].search(sentence.masked)
        and not negates(sentence)
        and len(particulars(prose.text[sentence.start : sentence.end]) & given) >= ECHO
        for sentence in statements(prose)
    )


def _passes_on(prose: Prose, reasons: frozenset[str]) -> bool:
    """Return True if a text repeats the words of an error; of a long one, beside a negation."""
    spoken = [(words_in(sentence.masked) & reasons, sentence) for sentence in prose.sentences]
    repeated = {word for words, _ in spoken for word in words}
    if len(repeated) < max(1.0, len(reasons) * _PASSED_ON):
        return False
    return len(reasons) < _MANY or any(negates(sentence) for words, sentence in spoken if words)


def _has_word_of(prose: Prose, failed: Sequence[Fact], request: Request) -> bool:
    """Return True if a text without a finished action has a word of an error in any form, which the order does not have:
    `kilitli` of `kilit`."""
    if _PHRASES["done"].search(prose.masked) or _PHRASES["done_in_english"].search(prose.masked):
        return False
    sent = (f"{fact.arguments} {' '.join(fact.able.words)}" for fact in failed)
    known = particulars(" ".join([last_words(request), *sent]))
    reasons = frozenset[str]().union(*(particulars(fact.result.text) for fact in failed)) - known
    return any(not word[0].isdigit() for word in reasons & particulars(prose.text))


def _has_trouble(prose: Prose, order: str) -> bool:
    """Return True if a text has a word that may excuse a missing answer, and that the user's order has not: "try later"."""
    found = (one[0].casefold() for one in _PHRASES["trouble"].finditer(prose.masked))
    return any(word not in order for word in found)


def _claims_success(prose: Prose, failed: Sequence[Fact]) -> bool:
    """Return True if a text claims the action of a failed call: "I've created the ticket"."""
    said = (claim for claim in claims(prose) if claim.form == "said" and not claim.earlier)
    return any(fits(fact.able, claim.kinds, claim.verb, claim.object) for claim in said for fact in failed)


def _is_settled(prose: Prose, failed: Sequence[Fact], words: str) -> bool:
    """Return True if a short reply that asks nothing follows failed actions: whatever it says, it hides the failure.

    A tool of an unknown kind acts if the reply repeats the order.
    """
    acting = any(fact.able.shell or fact.able.kinds - {"search", "read"} for fact in failed)
    unknown = any(not fact.able.kinds for fact in failed)
    acting = acting or (unknown and len(particulars(prose.text) & particulars(words)) > 1)
    asks = any(sentence.question for sentence in prose.sentences)
    at_once = _PHRASES["done_at_once"].search(prose.masked) is not None  # "Done! Anything else?"
    return acting and len(prose.text) <= LONGEST_REPORT and (at_once or not asks)
