"""Which tool an announcement or a claim can only have been meant for, where no noun of it is known.

What links them is then not a field of nouns but the order itself: the reply speaks of the very thing that the user spoke
of, its verb is the kind of thing that the tool does, and there is nothing else in the reply that it could be about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from wirelint.claims.actions import AHEAD, GERUND, Kind, words_of
from wirelint.claims.acts import folded, told_back
from wirelint.claims.announcements import Announcement, announced_verb, asked, is_alone
from wirelint.claims.claims import Claim
from wirelint.claims.side_effects import heads_text, is_given, is_thought, of_a_text, shows
from wirelint.claims.toolkinds import Ability, does, name_words, topics_in
from wirelint.text.prose import Prose

_PEOPLE = re.compile(
    r"\bwith (?:the|my|our|your|a|an) (?:[\w-]+ )?(?:team|colleagues?|manager|supervisor|boss|department|specialist|"
    r"experts?|agent|lawyer|doctor|accountant|bank)\b|\bfrom here\b|\bback (?:in|with you)\b|"
    r"\b(?:en mi|dans ma|in meinem|na minha|nella mia) (?:memoria|mémoire|gedächtnis|memória)\b",
    re.IGNORECASE,
)
"""Acts of somebody who is no program."""
_GOES_ON = re.compile(r"[:：–—] ?\w")
"""What was announced follows in the same breath: "let me check: it does"."""
_NEVER = re.compile(
    r"\b(?:never|not|always|usually|nie|niemals|nicht|immer|meist\w*|jamais|pas|toujours|nunca|no|siempre|não|sempre|mai|non)\b|"
    r"n['’]t\b|不|没|ない|ません",
    re.IGNORECASE,
)
"""What is not done, or done at all times, is not about to be done."""
_BARE = re.compile(r"\W*(?:(?:it|that|this|them|for you|just|now|again|already|myself)\b\W*)*\Z")
_FOR_YOU = re.compile(r" for (?:you|us)\b")
_CANNOT = re.compile(r"\b(?:can['’]t|cannot|could ?n['’]t|unable|(?:don['’]t|only) have)\b")
_SEEN = frozenset({"encontrado", "revisado", "revisé"})
"""Forms that may as well be said of what stands in a text."""
_LOOKED_UP = frozenset(
    {"looked up", "searched", "queried", "fetched", "retrieved", "pulled up", "looked through", "googled"}
)
"""What nobody does within a reply, whatever it is done to."""
_STATED = re.compile(r"\b(?:is|are|was|were|has|had|I|I['’]\w+|it['’]s|if|when|because|my)\b")
_HANDED_OVER = re.compile(r"\n|：|:(?=\s|[\u3040-\u9fff])|[\"“„«「`]")
"""Marks of a message that brings its material with it."""
_MATERIAL = re.compile(r"\n|：|:(?=\s|[\u3040-\u9fff])")
"""Of an order to make something, which quotes what to call it."""
_QUOTED_BEHIND = re.compile(r"[:：]\s*[`\"“«„]")
_LONGEST_ORDER = 200
_RECKONED = re.compile(
    r"\d ?[=×÷*/^+] ?\d|\b(?:prime|divid\w+|multipl\w+|modulo|equation|proof|theorem)s?\b", re.IGNORECASE
)
"""Signs of work that is done in the head."""
_PASSED_ON: frozenset[Kind] = frozenset({"send", "book", "delete", "run", "control"})
"""Kinds of action of which the material is handed on, and comes back from nowhere."""
_MADE: frozenset[Kind] = frozenset({"create", "send", "book", "delete", "run", "control"})
_WRITTEN: frozenset[Kind] = frozenset({"write", "create"})
_NAMED = re.compile(r"[`\"“«„]|\d|\w[._/-]\w|\b[A-Z]")
_OUTSIDE: frozenset[Kind] = frozenset({"search", "send", "book", "delete", "run", "control"})
"""Kinds of action that nobody does within a reply."""


def meant(found: Announcement, prose: Prose, words: str, able: Iterable[Ability]) -> Ability | None:
    """The tool that an announcement is for which is all that a reply says, or which goes on with the order."""
    told = prose.masked[found.start : found.end]
    if (
        _NEVER.search(told)
        or is_given(found.object)
        or _PEOPLE.search(found.object)
        or _GOES_ON.search(found.object)
        or prose.fenced
    ):
        return None
    alone = is_alone(prose, found)
    shared = told_back(found.object, words)
    if not alone and not (found.at_once and shared):
        return None
    english = found.verb in AHEAD or found.verb in GERUND
    if english and (is_thought(_FOR_YOU.sub("", found.object)) or heads_text(found.object)):
        return None
    made = not found.kinds & (_OUTSIDE | {"read"})
    for one in able:
        own = words_of(found.object) & one.words
        if not does(one, found.kinds) or (not own and _is_elsewhere(found.object, one)):
            continue
        if own or shared or (alone and not english and not made):
            return one
    return None


def _is_elsewhere(text: str, one: Ability) -> bool:
    """Return True if what is spoken of belongs to a field with which a tool has nothing to do."""
    topics = topics_in(text)
    return bool(topics and one.topics and not topics & one.topics)


def ordered(claim: Claim, prose: Prose, words: str, heard: str, able: Sequence[Ability]) -> Ability | None:
    """The tool with which an order must have been carried out whose very words a claim takes up.

    `heard`: all that was said in the conversation; particulars that are not in it are news from somewhere.
    """
    wanted = asked(words) & claim.kinds
    handed = (_MATERIAL if wanted & _MADE else _HANDED_OVER).search(words.strip()) and not wanted & _PASSED_ON
    if (
        len(words) > _LONGEST_ORDER
        or handed
        or prose.fenced
        or _is_reckoned(prose.text)
        or claim.earlier
        or shows(claim, prose)
    ):
        return None
    told = prose.text[claim.start : claim.end]
    if _QUOTED_BEHIND.search(told):
        return None
    if is_given(claim.object) or heads_text(claim.object) or _PEOPLE.search(told) or _CANNOT.search(told):
        return None
    # "I just checked.": of what, the rest of the reply tells
    shared = told_back(prose.text if _BARE.match(claim.object) else claim.object, words)
    if claim.form in ("said", "after"):
        enough = len(shared) >= _least(claim, wanted, news=is_news(prose.text, heard))
    elif claim.form == "news":
        near = any(words_of(claim.object) & one.words for one in able if does(one, claim.kinds))
        enough = (near or bool(told_back(told, words))) and is_news(prose.text, heard) and not is_thought(claim.object)
    elif claim.form == "stands":
        enough = bool(wanted and shared)
    else:
        enough = claim.form == "passive" and len(shared) > (0 if wanted else 1)
    if claim.form in ("passive", "stands") and ("?" in words or "？" in words or _STATED.search(words)):
        return None
    if not enough or not (wanted or claim.kinds & (_OUTSIDE | {"read"})):
        return None
    able = [one for one in able if not of_a_text(claim.object, one.tool)]
    fitting = (one for one in able if does(one, claim.kinds) and not _is_elsewhere(claim.object, one))
    if claim.kinds <= _WRITTEN and not _NAMED.search(claim.object):
        # a text may have been worked on, unless the thing is the tool's
        return next(
            (one for one in fitting if words_of(claim.object) & one.words or one.topics & topics_in(claim.object)), None
        )
    return next(fitting, None)


@lru_cache(maxsize=16)
def _is_reckoned(text: str) -> bool:
    """Return True if a text shows how it was reckoned. Each claim of a text asks, and 100 KB take 5 ms (`tests.fuzz`)."""
    return _RECKONED.search(text) is not None


def _least(claim: Claim, wanted: frozenset[Kind], *, news: bool) -> int:
    """How many words of the order a claim has to take up."""
    if news and claim.verb in _LOOKED_UP and not is_thought(claim.object):
        return 0
    if wanted or ("search" in claim.kinds and claim.verb not in _SEEN):
        return 1
    return 1 if news and "read" in claim.kinds and not is_thought(claim.object) else 2


_PARTICULAR = re.compile(r"\d+(?:[.,:/-]\d+)*")


def is_news(text: str, heard: str) -> bool:
    """Return True if a text gives figures of some length that nobody has named before."""
    return any(figure not in heard for figure in _figures(text))


@lru_cache(maxsize=16)
def _figures(text: str) -> frozenset[str]:
    """The figures of some length in a text. Each claim of it asks, and 100 KB take 1 ms (`tests.fuzz`)."""
    return frozenset([figure for figure in _PARTICULAR.findall(text) if len(figure) > 1])


# --- verbs that only a tool's own name has --------------------------------------------------------------------------------


def announced_by_name(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Announcement, Ability] | None:
    """An announcement in the verb of a tool's name, which is all that a reply says: "Translating it now..."."""
    verbs = {} if _HANDED_OVER.search(words.strip()) else _own_verbs(able)
    found = announced_verb(prose, verbs) if verbs else None
    if found is None or is_given(found.object) or _GOES_ON.search(found.object) or not is_alone(prose, found):
        return None
    return found, verbs[found.verb]


def is_brief(prose: Prose) -> bool:
    """Return True if a reply is as short as one has to be to be told by the verb of a tool's name or of the order."""
    return len(prose.text.strip()) <= _LONGEST_ORDER


def done_by_name(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Claim, Ability] | None:
    """A claim in the verb of a tool's name, in a reply that shows nothing of it: "I've translated document 8."."""
    told = prose.text.strip()
    if not is_brief(prose) or "\n" in told or "\n" in words.strip():
        return None
    if _SHOWN.search(told) and not is_news(told, words):
        return None
    verbs = _own_verbs(able)
    for sentence in prose.sentences if verbs else ():
        match = None if sentence.question else _DONE.search(sentence.masked)
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
        if match is None or verb is None or _CANNOT.search(sentence.masked):
            continue
        rest = prose.text[sentence.start + match.end() : sentence.end]
        if not is_given(rest) and (told_back(prose.text[sentence.start : sentence.end], words) or is_news(told, words)):
            return Claim(frozenset(), verb, "said", rest, sentence.start, sentence.end), verbs[verb]
    return None


_SHOWN = re.compile(r"[:：] ?(?!-?\d)\w|[“„«「`]")
"""What was made stands in the reply."""
_DONE = re.compile(
    r"^[^\w]{0,4}(?:Now|Currently) (?P<ing>[a-z]{4,}ing)\b|^[^\w]{0,4}(?P<bare>[A-Z][a-z]{3,}ed)\b(?=\W)|"
    r"(?:^|[.,!] )(?:I(?:['’]ve| have)?|You have been|(?:The|Your) (?:[\w.-]+ ){1,5}?(?:has|have) been) "
    r"(?:just |now |already |successfully )*(?P<past>[a-z]{4,}ed)\b"
)
_SPEAKS = frozenset({
    "think", "plan", "ask", "answer", "help", "handle", "respond", "talk", "chat", "tell", "explain", "final", "task",
    "complete", "attempt", "finish", "sequential", "agent", "summarize", "summarise", "describe", "suggest", "decide",
    "reason", "reflect", "note",
})  # fmt: skip
"""Verbs of tools for what a model does as well by itself, in its reply."""


_FIRST_WORD = re.compile(r"\s*([A-Z][a-z]{2,})\s")
_DESCRIBES = frozenset({
    "the", "this", "that", "tool", "use", "used", "return", "provide", "allow", "let", "enable", "given", "when", "perform",
    "current", "latest", "remaining", "analyze", "analyse", "calculate", "compute", "estimate", "solve", "recommend",
    "evaluate", "consider", "give", "take", "make", "assist", "support", "function", "interact", "work", "manage", "want",
    "offer", "present", "know", "keep", "start", "begin", "continue", "wait", "put", "assess", "compare", "list", "focus",
})  # fmt: skip
"""First words of descriptions that a reply says of itself as well."""


def _own_verbs(able: Iterable[Ability]) -> Mapping[str, Ability]:
    """The verbs of tool names and descriptions that no table has: `translate` of `translate_document`."""
    return _verbs_of_all(tuple(able))


@lru_cache(maxsize=8)
def _verbs_of_all(able: tuple[Ability, ...]) -> Mapping[str, Ability]:
    """The same, told once for all the rules that ask about one request."""
    verbs: dict[str, Ability] = {}
    for one in able:
        for verb in _verbs_of(one.tool.name, one.tool.description[:_LONGEST_LEAD]):
            verbs.setdefault(verb, one)
    return verbs


@lru_cache(maxsize=4096)
def _verbs_of(name: str, description: str) -> tuple[str, ...]:
    """The same for every request that declares the tool so."""
    opening = _FIRST_WORD.match(description)
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


# --- the order's own verb -----------------------------------------------------------------------------------------------

_ORDER = re.compile(
    r"\W*(?:(?:please|pls|can you|could you|now|bitte|s['’]il (?:te|vous) plaît|por favor|per favore)\W+)*"
    r"(?P<verb>[^\W\d_]{5,})",
    re.IGNORECASE,
)
_HAVE = re.compile(r"\b(?:[Jj]['’]ai|[Hh]e|[Hh]o|[Ii]ch habe)\b(?P<rest>[^.!?:;]{0,160})")
_STEM = 5


def done_as_ordered(prose: Prose, words: str, able: Iterable[Ability]) -> tuple[Claim, Ability] | None:
    """A claim, in another language than English, in the very verb of the order: "Redémarre-le." "J'ai redémarré …"."""
    order = _ORDER.match(words)
    told = prose.text.strip()
    if (
        order is None
        or order["verb"].lower() in AHEAD
        or not is_brief(prose)
        or len(words) > _LONGEST_ORDER
        or "?" in words
    ):
        return None
    if _HANDED_OVER.search(words.strip()) or _HANDED_OVER.search(told):
        return None
    stem = folded(order["verb"])[:_STEM]
    for sentence in prose.sentences:
        have = None if sentence.question else _HAVE.search(sentence.masked)
        if have is None or _NEVER.search(sentence.masked) or not told_back(sentence.masked, words):
            continue
        verb = next((word for word in re.findall(r"\w+", folded(have["rest"])) if _is_of(word, stem)), None)
        doer = next((one for one in able if not does(one, _LOOKS) or not one.kinds), None) if verb else None
        if verb and doer and not is_given(sentence.masked) and not heads_text(have["rest"]):
            return Claim(frozenset(), verb, "said", have["rest"], sentence.start, sentence.end), doer
    return None


_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


def _is_of(word: str, stem: str) -> bool:
    return word.startswith(stem) or word.removeprefix("ge").startswith(stem)
