"""Orders that a reply claims to carry out or to have carried out, found without tables of verbs and nouns.

Theory of operation. Tools spin samples, trim clips, post journal entries: no table holds all their verbs and nouns. But a
false claim repeats words of three texts: the order, the declaration of the tool, and the reply. Grammar alone finds the
finished form of a verb in a short reply. It counts if the verb is in the tool's declaration or in the order, and the
object is in another of the three texts. Words are compared by their stems.

A reply may also report actions of the user, material of the conversation, or its own work on a text. So the user's message
must be an order (no question, no account, no material), and the reply must be short prose without regret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from wirelint import lexicon
from wirelint.claims.actions import AHEAD, BASE, GERUND, PARTICIPLE, Kind, stem, words_of
from wirelint.claims.announcements import Announcement, announced_verb, asked, is_alone
from wirelint.claims.claims import (
    LONGEST_REPLY,
    Act,
    Claim,
    acts,
    is_account,
    shared_words,
)
from wirelint.claims.side_effects import heads_text, is_given, is_thought, qualifies_text, shows_product
from wirelint.claims.toolkinds import Ability, does, name_words, topics_in
from wirelint.text.prose import Prose, Sentence

_PHRASES = lexicon.Phrases("order_check")

# The only possible tool of an announcement or a claim without a known noun.
#
# The order links them: the reply names the object of the order, the tool does actions of the verb's kind, and no other
# # word of the reply can be the object.

_SEEN = frozenset({"encontrado", "revisado", "revisé"})
"""Forms that may be about a text."""
_LOOKED_UP = frozenset(_PHRASES.words("looked_up"))
_HANDED_OVER = re.compile(r"\n|：|:(?=\s|[\u3040-\u9fff])|[\"“„«「`]")
"""Marks of a message that contains its material."""
_MATERIAL = re.compile(r"\n|：|:(?=\s|[\u3040-\u9fff])")
"""The same marks without quotation marks: an order to make something may quote its name."""
_LONGEST_PLAIN_ORDER = 200
_PASSED_ON: frozenset[Kind] = frozenset({"send", "book", "delete", "run", "control"})
"""Kinds of action that pass material on, and do not return it."""
_MADE: frozenset[Kind] = frozenset({"create", "send", "book", "delete", "run", "control"})
_WRITING: frozenset[Kind] = frozenset({"write", "create"})
_OUTSIDE: frozenset[Kind] = frozenset({"search", "send", "book", "delete", "run", "control"})
"""Kinds of action that are impossible within a reply."""


def meant(found: Announcement, prose: Prose, words: str, able: Iterable[Ability]) -> Ability | None:
    """Return the tool of an announcement that is a whole reply, or that repeats words of the order."""
    text = prose.masked[found.start : found.end]
    if (
        _PHRASES["never"].search(text)
        or is_given(found.object)
        or _PHRASES["people"].search(found.object)
        or _PHRASES["plain_goes_on"].search(found.object)
        or prose.fenced
    ):
        return None
    alone = is_alone(prose, found)
    shared = shared_words(found.object, words)
    if not alone and not (found.at_once and shared):
        return None
    english = found.verb in AHEAD or found.verb in GERUND
    if (
        english
        and _PHRASES["pronoun"].match(found.object) is None
        and (is_thought(_PHRASES["for_you"].sub("", found.object)) or heads_text(found.object))
    ):
        return None
    made = not found.kinds & (_OUTSIDE | {"read"})
    if alone and english and not made and _PHRASES["pronoun"].match(found.object):
        return next((one for one in able if words_of(words) & one.words), None)
    for one in able:
        own = words_of(found.object) & one.words
        if not does(one, found.kinds) or (not own and _is_elsewhere(found.object, one)):
            continue
        if own or shared or (alone and not english and not made):
            return one
    return None


def _is_elsewhere(text: str, one: Ability) -> bool:
    """Return True if all topics of a text are foreign to a tool."""
    topics = topics_in(text)
    return bool(topics and one.topics and not topics & one.topics)


def ordered(claim: Claim, prose: Prose, words: str, known: str, able: Sequence[Ability]) -> Ability | None:
    """Return the tool of a claim that repeats the words of the user's order.

    `known`: all texts of the conversation. Particulars that are not in them are news.
    """
    wanted = asked(words) & claim.kinds
    handed = (_MATERIAL if wanted & _MADE else _HANDED_OVER).search(words.strip()) and not wanted & _PASSED_ON
    if (
        len(words) > _LONGEST_PLAIN_ORDER
        or handed
        or prose.fenced
        or _is_reckoned(prose.text)
        or claim.earlier
        or shows_product(claim, prose)
    ):
        return None
    text = prose.text[claim.start : claim.end]
    if _PHRASES["quoted_behind"].search(text):
        return None
    if (
        is_given(claim.object)
        or heads_text(claim.object)
        or _PHRASES["people"].search(text)
        or _PHRASES["cannot"].search(text)
    ):
        return None
    # "I just checked.": the rest of the reply names the object
    shared = shared_words(prose.text if _PHRASES["bare"].match(claim.object) else claim.object, words)
    if claim.form in ("said", "after"):
        enough = len(shared) >= _least(claim, wanted, news=is_news(prose.text, known))
    elif claim.form == "news":
        near = any(words_of(claim.object) & one.words for one in able if does(one, claim.kinds))
        enough = (
            (near or bool(shared_words(text, words))) and is_news(prose.text, known) and not is_thought(claim.object)
        )
    elif claim.form == "stands":
        enough = bool(wanted and shared)
    else:
        enough = claim.form == "passive" and len(shared) > (0 if wanted else 1)
    if claim.form in ("passive", "stands") and (
        "?" in words or "？" in words or _PHRASES["plain_stated"].search(words)
    ):
        return None
    if not enough or not (wanted or claim.kinds & (_OUTSIDE | {"read"})):
        return None
    able = [one for one in able if not qualifies_text(claim.object, one.tool)]
    fitting = (one for one in able if does(one, claim.kinds) and not _is_elsewhere(claim.object, one))
    if claim.kinds <= _WRITING and not _PHRASES["named"].search(claim.object):
        # the object may be a text that the reply edits, unless the tool has such an object
        return next(
            (one for one in fitting if words_of(claim.object) & one.words or one.topics & topics_in(claim.object)), None
        )
    return next(fitting, None)


@lru_cache(maxsize=16)
def _is_reckoned(text: str) -> bool:
    """Return True if a text shows its calculation. Cached for the claims of a text: 100 KB take 5 ms (`tests.fuzz`)."""
    return _PHRASES["reckoned"].search(text) is not None


def _least(claim: Claim, wanted: frozenset[Kind], *, news: bool) -> int:
    """Return the number of words of the order that a claim must repeat."""
    if news and claim.verb in _LOOKED_UP and not is_thought(claim.object):
        return 0
    if wanted or ("search" in claim.kinds and claim.verb not in _SEEN):
        return 1
    return 1 if news and "read" in claim.kinds and not is_thought(claim.object) else 2


def is_news(text: str, known: str) -> bool:
    """Return True if a text has figures of two digits or more that the conversation does not have."""
    return any(figure not in known for figure in _figures(text))


@lru_cache(maxsize=16)
def _figures(text: str) -> frozenset[str]:
    """Return the figures of two digits or more. Cached for the claims of a text: 100 KB take 1 ms (`tests.fuzz`)."""
    return frozenset([figure for figure in _PHRASES["particular"].findall(text) if len(figure) > 1])


# --- verbs that only a tool's own name has --------------------------------------------------------------------------------


def announcement_by_name(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Announcement, Ability] | None:
    """Return an announcement in the verb of a tool's name that is a whole reply, or the end of one: "Voiding it now."."""
    verbs = {} if _HANDED_OVER.search(words.strip()) else _own_verbs(able)
    found = announced_verb(prose, verbs) if verbs else None
    if (
        found is None
        or is_given(found.object)
        or _PHRASES["plain_goes_on"].search(found.object)
        or not (found.at_once or is_alone(prose, found))
    ):
        return None
    return found, verbs[found.verb]


def is_brief(prose: Prose) -> bool:
    """Return True if a reply is short enough for claims in the verb of a tool's name or of the order."""
    return len(prose.text.strip()) <= _LONGEST_PLAIN_ORDER


def claim_by_name(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Claim, Ability] | None:
    """Return a claim in the verb of a tool's name whose product the reply does not show: "I've translated document 8."."""
    text = prose.text.strip()
    if not is_brief(prose) or "\n" in text or "\n" in words.strip():
        return None
    if _PHRASES["shown"].search(text) and not is_news(text, words):
        return None
    verbs = _own_verbs(able)
    for sentence in prose.sentences if verbs else ():
        match = None if sentence.question else _PHRASES["done"].search(sentence.masked)
        verb = next(
            (
                verb
                for verb in verbs
                if match
                and (match["past"] or match["ing"] or match["bare"]).lower()
                in (*_pasts(verb), f"{verb.removesuffix('e')}ing")
            ),
            None,
        )
        if match is None or verb is None or _PHRASES["cannot"].search(sentence.masked):
            continue
        rest = prose.text[sentence.start + match.end() : sentence.end]
        if not is_given(rest) and (
            shared_words(prose.text[sentence.start : sentence.end], words) or is_news(text, words)
        ):
            return Claim(frozenset(), verb, "said", rest, sentence.start, sentence.end), verbs[verb]
    return None


_SPEAKS = frozenset(_PHRASES.words("speaks"))


_DESCRIBES = frozenset(_PHRASES.words("describes"))


def _own_verbs(able: Iterable[Ability]) -> Mapping[str, Ability]:
    """Return the verbs of tool names and descriptions that no table has: `translate` of `translate_document`."""
    return _verbs_of_all(tuple(able))


@lru_cache(maxsize=8)
def _verbs_of_all(able: tuple[Ability, ...]) -> Mapping[str, Ability]:
    """Return the verbs of all tools, cached for the rules that check one request."""
    verbs: dict[str, Ability] = {}
    for one in able:
        for verb in _verbs_of(one.tool.name, one.tool.description[:_LONGEST_LEAD]):
            verbs.setdefault(verb, one)
    return verbs


@lru_cache(maxsize=4096)
def _verbs_of(name: str, description: str) -> tuple[str, ...]:
    """Return the verbs of one declaration, cached for all requests that repeat it."""
    opening = _PHRASES["first_word"].match(description)
    said = opening[1].lower() if opening else ""
    named = [word for word in name_words(name) if word.isalpha() and len(word) >= _SHORTEST]
    described = [verb for verb in (said, said.removesuffix("s")) if verb and verb not in _DESCRIBES]
    return tuple(
        verb for verb in (*named, *described) if verb not in AHEAD and verb not in _SPEAKS and not topics_in(verb)
    )


_LONGEST_LEAD = 80


_SHORTEST = 4


def _pasts(verb: str) -> tuple[str, str]:
    return f"{verb.removesuffix('e')}ed", f"{verb}{verb[-1]}ed"


_LONGEST_ORDER = 300
_LIGHT = frozenset(map(stem, _PHRASES.words("light")))
"""Verbs that fit every object."""
_STATES = frozenset({"on", "off", "open", "closed", "running", "playing", "heating", "charging"})
_SMALL = frozenset(map(stem, _PHRASES.words("small")))
_IN_THE_HEAD = frozenset(map(stem, _PHRASES.words("in_the_head")))
"""Verbs of actions that need no tool."""
_GENERAL = frozenset(map(stem, (word for word in BASE if " " not in word)))
"""Verbs that also fit texts and thoughts."""
_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


def answering(prose: Prose, words: str) -> tuple[Act, ...]:
    """Return the actions that a short reply reports after an order, for `performed`. Mostly none."""
    if len(prose.text) > LONGEST_REPLY or not is_order(words):
        return ()
    found = tuple(acts(prose))
    return found if found and is_account(prose) else ()


def performed(
    prose: Prose,
    actions: Iterable[Act],
    words: str,
    known: str,
    before: str,
    able: Sequence[Ability],
    called: Iterable[str],
) -> tuple[Claim, Ability] | None:
    """Return the action of a tool that a short reply reports after an order, and the tool.

    `actions`: those of the reply (`answering`). `words`: the order. `known`: all its texts. `before`: the model's
    last message. `called`: tools that were called earlier, whose actions a reply may report.
    """
    done = set(called)
    idle = [one for one in able if one.tool.name not in done]
    texts = len(before) > LONGEST_REPLY or "```" in before
    for act in actions:
        for one in idle:
            if _links(act, one, words, known, _shown(prose, act.sentence), texts=texts):
                sentence = act.sentence
                kinds = PARTICIPLE.get(act.verb, frozenset())
                rest = prose.text[sentence.start : sentence.end]
                return Claim(
                    kinds, act.verb, "said" if act.is_own else "passive", rest, sentence.start, sentence.end
                ), one
    return None


def _shown(prose: Prose, sentence: Sentence) -> str:
    return prose.text[sentence.start : sentence.end]


def is_order(words: str) -> bool:
    """Return True if a message orders an action: no question, no account, no text to work on."""
    return 0 < len(words) <= _LONGEST_ORDER and _is_order(words)


@lru_cache(maxsize=64)  # a user gives an order once, and an agent takes many turns for it
def _is_order(words: str) -> bool:
    if _PHRASES["no_order"].search(words) or _PHRASES["material"].search(words.strip()):
        return False
    return "?" not in words or _PHRASES["polite"].search(words) is not None


@lru_cache(maxsize=1024)
def _named(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of a tool's name, and those of the first sentence of its description."""
    sentence = re.split(r"(?<=[.!?;])\s|\n", description[:400].strip(), maxsplit=1)[0][:200]
    return frozenset(map(stem, name_words(name))) - _SMALL, _stems(sentence)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in _PHRASES["word"].findall(text)) - _SMALL


def _links(act: Act, one: Ability, words: str, known: str, text: str, *, texts: bool = False) -> bool:
    """Return True if an action fits the order and the tool.

    `text`: its sentence as written. `texts`: its object may be a text.
    """
    line = act.sentence.masked
    name, described = _named(one.tool.name, one.tool.description)
    verb, order = stem(act.verb), _stems(words)
    stems = _stems(text) - {verb}
    named, thing = bool(stems & name), bool(stems & (name | described | _fields(one)))
    shared = shared_words(text, words)
    news = is_news(line, known)
    own, wanted = verb in name, verb in order
    echoed = bool(shared) or bool(stems & order) or (own and named and _PHRASES["it"].search(words) is not None)
    if _PHRASES["stated"].search(words) and (wanted or re.search(rf"\b{re.escape(act.verb)}\b", words.lower())):
        return False  # the user reported it
    if act.is_by_user:
        return own and wanted and news
    if texts and not (own and named):
        return False
    if (heads_text(line) and not named and not stems & described & order) or qualifies_text(line, one.tool):
        return False
    if is_given(line) and not (own and (named or (thing and shared))):
        return False
    topics = topics_in(line)
    if topics and one.topics and not topics & one.topics and not named:
        return False
    if one.kinds and one.kinds <= _LOOKS and not own:
        return False
    if act.may_be_past:
        return (own or wanted or verb in described) and thing and len(shared) > 1
    if act.may_be_state and not (echoed and (news or own or wanted or (named and len(shared) > 1))):
        return False
    if own:
        return thing or (
            bool(shared)
            and (act.sentence.bullet or not _PHRASES["goes_on"].search(text))
            and (verb not in _GENERAL or _is_outside(act, text, words))
        )
    if act.verb in _STATES or act.verb[-1].isdigit():
        switches = act.verb in one.tool.description.lower().split()
        return (named and echoed) or (switches and bool(shared))
    if verb in described:
        return thing and echoed
    if wanted:
        return (thing and (named or bool(shared))) or (len(shared) > 1 and _is_outside(act, text, words))
    kinds = PARTICIPLE.get(act.verb, frozenset())
    light = verb in _LIGHT
    fitting = light or bool(kinds - _LOOKS and does(one, kinds - _LOOKS))
    if light and len(shared) > 1 and order & name:
        return True
    return fitting and thing and ((echoed and (named or len(shared) > 1)) or (named and (news or act.is_own)))


def _is_outside(act: Act, text: str, words: str) -> bool:
    """Return True if an action in the verb of the order has an outer object: an identifier of the order."""
    if stem(act.verb) in _IN_THE_HEAD or _PHRASES["goes_on"].search(text):
        return False
    return any(mark in text for mark in _PHRASES["identifier"].findall(words))


def _fields(one: Ability) -> frozenset[str]:
    properties = (one.tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(stem(word) for name in properties for word in name_words(name)) - _SMALL
