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
from wirelint.claims.announcements import Announcement, announced_verb, asked, is_alone, is_english
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
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("order_check")

# The only possible tool of an announcement or a claim without a known noun.
#
# The order links them: the reply names the object of the order, the tool does actions of the verb's kind, and no other
# word of the reply can be the object.

_LOOKED_UP = frozenset(_PHRASES.words("looked_up"))
HANDED_OVER = re.compile(r"\n|：|:(?=\s|[\u3040-\u9fff])|[\"“„«「`]")
"""Marks of a message that contains its material."""
_LONGEST_PLAIN_ORDER = 200
_MANY_SHARED = 3
"""Words of an order that a report on it repeats by no chance."""
_WRITING: frozenset[Kind] = frozenset({"write", "create"})
_OUTSIDE: frozenset[Kind] = frozenset({"search", "send", "book", "delete", "run", "control"})
"""Kinds of action that are impossible within a reply."""


def meant(found: Announcement, prose: Prose, words: str, able: Iterable[Ability]) -> Ability | None:
    """Return the tool of an announcement that is a whole reply, or that repeats words of the order."""
    if is_given(found.object) or any(_PHRASES[one].search(found.object) for one in ("people", "plain_goes_on")):
        return None
    alone, shared = is_alone(prose, found), shared_words(found.object, words)
    if not alone and not (found.at_once and shared):
        return None
    english = found.verb in AHEAD or found.verb in GERUND
    pronoun = _PHRASES["pronoun"].match(found.object) is not None
    thought = is_thought(_PHRASES["for_you"].sub("", found.object)) or heads_text(found.object)
    if english and not pronoun and thought:
        return None
    made = not found.kinds & (_OUTSIDE | {"read"})
    if english and pronoun and not made:
        return next((one for one in able if words_of(words) & one.words), None)
    for one in able:
        own = words_of(found.object) & one.words
        if not does(one, found.kinds) or (not own and _is_elsewhere(found.object, one)):
            continue
        if own or shared or not (english or made):
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
    if claim.earlier or prose.fenced or _is_reckoned(prose.text) or shows_product(claim, prose):
        return None
    if is_given(claim.object) or heads_text(claim.object):
        return None
    wanted, news = asked(words) & claim.kinds, is_news(prose.text, known)
    # "I just checked.": the rest of the reply names the object
    shared = shared_words(prose.text if _PHRASES["bare"].match(claim.object) else claim.object, words)
    if claim.form in ("said", "after"):
        told = news and not is_thought(claim.object)
        looked = bool(claim.kinds & ({"search", "read"} if told else {"search"}))
        least = 0 if told and claim.verb in _LOOKED_UP else 1 if wanted or looked else 2
    elif claim.form == "news" and news:
        near = any(words_of(claim.object) & one.words for one in able if does(one, claim.kinds))
        least = 0 if near else 1
    elif claim.form == "passive" and wanted:
        least = 1
    else:
        return None
    if len(shared) < least or not (wanted or claim.kinds & (_OUTSIDE | {"read"})):
        return None
    same = len(shared) >= _MANY_SHARED
    fitting = [one for one in able if does(one, claim.kinds) and (same or not _is_elsewhere(claim.object, one))]
    if claim.kinds <= _WRITING and not _PHRASES["named"].search(claim.object):
        outside = next((one for one in fitting if one.kinds & _OUTSIDE), None) if len(shared) > 1 else None
        if outside is not None:
            return outside
        # the object may be a text that the reply edits, unless the tool has such an object
        topics, own = topics_in(claim.object), words_of(claim.object)
        return next((one for one in fitting if own & one.words or one.topics & topics), None)
    return next(iter(fitting), None)


@lru_cache(maxsize=16)
def _is_reckoned(text: str) -> bool:
    """Return True if a text shows its calculation. Cached for the claims of a text: 100 KB take 5 ms (`tests.fuzz`)."""
    return _PHRASES["reckoned"].search(text) is not None


def is_news(text: str, known: str) -> bool:
    """Return True if a text has figures of two digits or more that the conversation does not have."""
    return any(figure not in known for figure in _figures(text))


@lru_cache(maxsize=16)
def _figures(text: str) -> frozenset[str]:
    """Return the figures of two digits or more. Cached for the claims of a text: 100 KB take 1 ms (`tests.fuzz`)."""
    return frozenset([figure for figure in _PHRASES["particular"].findall(text) if len(figure) > 1])


# --- verbs that only a tool's own name has --------------------------------------------------------------------------------


def announcement_by_name(
    prose: Prose, words: str, known: str, able: Sequence[Ability]
) -> tuple[Announcement, Ability] | None:
    """Return an announcement in the verb of a tool's name that is a whole reply, or the end of one: "Voiding it now.".

    `words`: the user's last message. `known`: all texts of the conversation.
    """
    if HANDED_OVER.search(words.strip()):
        return None
    verbs = _own_verbs(able)
    found = announced_verb(prose, verbs) if verbs else None
    if found is None:  # any verb, in a reply that says nothing else and repeats the order
        found = announced_verb(prose, None)
        if found is None or not (found.at_once or is_alone(prose, found)):
            return None
        told = prose.text[found.start : found.end]
        named = (one for one in able if words_of(told) & words_of(" ".join(name_words(one.tool.name))))
        tool = next(named, next(iter(able), None) if not is_english(prose.masked) else None)
        shared = shared_words(told, known)
        linked = len(shared) > 1 or any(any(map(str.isdigit, word)) for word in shared)
        return (found, tool) if tool is not None and linked else None
    if is_given(found.object) or _PHRASES["plain_goes_on"].search(found.object):
        return None
    return (found, verbs[found.verb]) if found.at_once or is_alone(prose, found) else None


_SPEAKS = frozenset(_PHRASES.words("speaks"))


_DESCRIBES = frozenset(_PHRASES.words("describes"))


def claim_by_name(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Claim, Ability] | None:
    """Return a claim in the verb of a tool's name whose product the reply does not show: "I've translated document 8."."""
    text = prose.text.strip()
    brief = len(text) <= _LONGEST_PLAIN_ORDER and "\n" not in text and "\n" not in words.strip()
    verbs = _own_verbs(able) if brief else {}
    if not verbs or (_PHRASES["shown"].search(text) and not is_news(text, words)):
        return None
    forms = {form: verb for verb in verbs for form in (f"{verb.removesuffix('e')}ed", f"{verb}{verb[-1]}ed")}
    for sentence in prose.sentences:
        done = None if sentence.question else _PHRASES["done"].search(sentence.masked)
        verb = forms.get(done["past"]) if done is not None else None
        if done is None or verb is None or _PHRASES["cannot"].search(sentence.masked):
            continue
        told, rest = prose.text[sentence.start : sentence.end], prose.text[sentence.start + done.end() : sentence.end]
        if not is_given(rest) and (shared_words(told, words) or is_news(text, words)):
            return Claim(frozenset(), verb, "said", rest, sentence.start, sentence.end), verbs[verb]
    return None


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


_LONGEST_ORDER = 300
_LIGHT = frozenset(map(stem, _PHRASES.words("light")))
"""Verbs that fit every object."""
_SMALL = frozenset(map(stem, _PHRASES.words("small")))
_GENERAL = frozenset(map(stem, (word for word in BASE if " " not in word)))
"""Verbs that also fit texts and thoughts."""
_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


def performed(
    prose: Prose, words: str, known: str, able: Sequence[Ability], called: Iterable[str]
) -> tuple[Claim, Ability] | None:
    """Return the action of a tool that a short reply reports after an order, and the tool.

    `words`: the order. `known`: all its texts. `called`: tools that were called earlier, whose actions a reply may report.
    """
    if len(prose.text) > LONGEST_REPLY or not is_order(words):
        return None
    found, done = tuple(acts(prose)), set(called)
    for act in found if found and is_account(prose) else ():
        text = prose.text[act.sentence.start : act.sentence.end]
        for one in able:
            if one.tool.name not in done and _links(act, one, words, known, text):
                kinds = PARTICIPLE.get(act.verb, frozenset())
                return Claim(kinds, act.verb, "said", text, *act.sentence.span), one
    return None


def is_order(words: str) -> bool:
    """Return True if a message orders an action: no question, no account, no text to work on."""
    return 0 < len(words) <= _LONGEST_ORDER and _is_order(words)


@lru_cache(maxsize=64)  # a user gives an order once, and an agent takes many turns for it
def _is_order(words: str) -> bool:
    words = _PHRASES["greeting"].sub("", words)
    if _PHRASES["no_order"].search(words) or _PHRASES["material"].search(words.strip()):
        return False
    return "?" not in words or is_polite(words)


def is_polite(words: str) -> bool:
    """Return True if a question may be an order: "Could you move it?"."""
    return _PHRASES["polite"].search(words) is not None


@lru_cache(maxsize=1024)
def _named(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of a tool's name, and those of the first sentence of its description."""
    sentence = re.split(r"(?<=[.!?;])\s|\n", description[:400].strip(), maxsplit=1)[0][:200]
    return frozenset(map(stem, name_words(name))) - _SMALL, _stems(sentence)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in _PHRASES["word"].findall(text)) - _SMALL


def _links(act: Act, one: Ability, words: str, known: str, text: str) -> bool:
    """Return True if an action fits the order and the tool. `text`: its sentence as written."""
    line = act.sentence.masked
    name, described = _named(one.tool.name, one.tool.description)
    verb, order = stem(act.verb), _stems(words)
    stems = _stems(text) - {verb}
    own, wanted = verb in name, verb in order
    if _PHRASES["stated"].search(words) and (wanted or re.search(rf"\b{re.escape(act.verb)}\b", words.lower())):
        return False  # the user reported it
    if qualifies_text(line, one.tool) or (one.kinds and one.kinds <= _LOOKS and not own):
        return False
    thing, shared = bool(stems & (name | described | _fields(one))), shared_words(text, words)
    if own:
        return (
            thing
            or len(shared) >= _MANY_SHARED
            or bool(shared and verb not in _GENERAL and not _PHRASES["goes_on"].search(text))
        )
    kinds = PARTICIPLE.get(act.verb, frozenset()) - _LOOKS
    fitting = verb in described or wanted or verb in _LIGHT or bool(kinds and does(one, kinds))
    return fitting and thing and bool(shared) and (bool(stems & name) or len(shared) > 1)


def _fields(one: Ability) -> frozenset[str]:
    properties = (one.tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(stem(word) for name in properties for word in name_words(name)) - _SMALL
