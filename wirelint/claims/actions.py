"""Verbs of action, grouped by the kind of tool that carries them out, and the nouns that they act on.

The verbs are in `lexicon/<language>.toml`. English forms are derived from the base form; the other languages list the
forms that agents and users write. Nouns are in `lexicon/topics.toml`, sorted by topic: `file`, `web`, `mail`, …
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from wirelint import lexicon

Kind = Literal["search", "read", "write", "create", "delete", "send", "run", "book", "control"]
Topic = Literal[
    "file", "web", "knowledge", "data", "mail", "calendar", "order", "travel", "ticket", "weather", "device", "run",
    "memory",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
LANGUAGES = {
    language: lexicon.load(language)
    for language in ("de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ru", "sv", "ar", "hi", "ko", "zh", "ja")
}
"""Tables of the languages besides English. Chinese and Japanese, which put no blanks between words, are last."""
_ENGLISH = lexicon.load("en")
_DOUBLED = frozenset(_ENGLISH["english"]["doubled"])

Verbs = dict[str, frozenset[Kind]]


def _past(verb: str) -> tuple[str, str]:
    """Return past and participle of an English verb. `l?` in them is a letter of British spelling."""
    head, _, tail = verb.partition("_")
    irregular = _ENGLISH["irregular"].get(head)
    if irregular:
        past, participle = irregular.split()
    elif head.endswith("e"):
        past = participle = f"{head}d"
    elif head.endswith("y") and head[-2] not in "aeou":
        past = participle = f"{head[:-1]}ied"
    else:
        past = participle = f"{head}{head[-1]}ed" if head in _DOUBLED else f"{head}ed"
    if head == "cancel":
        past = participle = "cancell?ed"
    return (f"{past} {tail}", f"{participle} {tail}") if tail else (past, participle)


def _gerund(verb: str) -> str:
    head, _, tail = verb.partition("_")
    if head in _DOUBLED:
        made = f"{head}{head[-1]}ing"
    elif head == "cancel":
        made = "cancell?ing"
    elif head.endswith("e") and not head.endswith("ee"):
        made = f"{head[:-1]}ing"
    else:
        made = f"{head}ing"
    return f"{made} {tail}" if tail else made


def _by_form(forms: Iterable[tuple[Kind, str]]) -> Verbs:
    kinds: dict[str, set[Kind]] = {}
    for kind, form in forms:
        word = form.replace("_", " ")
        for spelled in (word.replace("l?", "l"), word.replace("l?", "")) if "l?" in word else (word,):
            kinds.setdefault(spelled, set()).add(kind)
    return {word: frozenset(found) for word, found in kinds.items()}


def _listed(*tables: Mapping[str, Any]) -> Verbs:
    """Return the verbs of some tables of a lexicon, each of which lists words by kind."""
    return _by_form((kind, word) for kind in KINDS for table in tables for word in table.get(kind, ()))


_VERBS = [(kind, verb) for kind in KINDS for verb in _ENGLISH["verbs"][kind]]
BASE = _by_form(_VERBS)
PAST = _by_form((kind, _past(verb)[0]) for kind, verb in _VERBS)
PARTICIPLE = _by_form((kind, _past(verb)[1]) for kind, verb in _VERBS)
GERUND = _by_form((kind, _gerund(verb)) for kind, verb in _VERBS)
AHEAD = {**BASE, **_by_form((kind, verb) for kind, verbs in _ENGLISH["ahead"].items() for verb in verbs)}
"""Base forms in announcements."""
DONE = tuple(_listed(tables["done"]) for tables in LANGUAGES.values() if "done" in tables)
"""Finished forms, a table per language."""
SOON = tuple(_listed(tables["soon"]) for tables in LANGUAGES.values())
"""Forms of announcements."""
ASKED = tuple(_listed(tables["asked"]) for tables in LANGUAGES.values() if "asked" in tables)
"""Forms of orders."""
ELSEWHERE = tuple(_listed(tables["soon"], tables.get("asked", {})) for tables in LANGUAGES.values())
"""Infinitives and present forms, as tools are named and described."""
VERB_TOPICS: dict[str, Topic] = {verb: topic for topic, verbs in _ENGLISH["own_topics"].items() for verb in verbs}
"""Verbs that imply their object: "emailed"."""


def alternatives(words: Iterable[str]) -> str:
    """Return the source of a regular expression that matches any of `words`, longest first."""
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in sorted(words, key=lambda word: (-len(word), word)))


def _topics() -> dict[str, frozenset[Topic]]:
    found: dict[str, set[Topic]] = {}
    table: dict[Topic, list[str]] = lexicon.load("topics")  # type: ignore[assignment]
    for topic, nouns in table.items():
        for noun in nouns:
            found.setdefault(noun.replace("_", " "), set()).add(topic)
    return {noun: frozenset(topics) for noun, topics in found.items()}


TOPIC_OF: Mapping[str, frozenset[Topic]] = _topics()
# No blanks bound these nouns, or they hold blanks: they are searched for in the whole text.
_UNBOUNDED = tuple(noun for noun in TOPIC_OF if "\u3040" <= noun[0] <= "\u9fff" or " " in noun)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, each also without a plural ending."""
    found = {word.lower() for word in _WORD.findall(text)}
    singular = {word[:-1] for word in found if word.endswith("s") and len(word) > 3}
    singular |= {f"{word[:-3]}y" for word in found if word.endswith("ies") and len(word) > 4}
    singular |= {word[:-2] for word in found if word.endswith(("xes", "ches", "shes", "sses", "ien", "ern"))}
    return frozenset(found | singular)


def bare(text: str) -> str:
    """Return a text without its accents: `hôtel` becomes `hotel`, and `altın` `altin`."""
    if text.isascii():
        return text
    letters = (sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
    return "".join(letters).translate(_PLAIN_LETTERS)


_PLAIN_LETTERS = str.maketrans(
    {"ı": "i", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"}
)


def topics_of(text: str) -> frozenset[Topic]:
    """Return the topics of the nouns of a text."""
    words = words_of(text)
    if not text.isascii():
        words |= words_of(bare(text))
    found = {topic for word in words for topic in TOPIC_OF.get(word, ())}
    lowered = text.lower()
    for noun in _UNBOUNDED:
        if noun in lowered:
            found |= TOPIC_OF[noun]
    return frozenset(found)


_BASE_OF = {
    form: base for base, *forms in map(str.split, _ENGLISH["english"]["forms"]) for form in (base, *forms)
}  # fmt: skip
PASTS = frozenset(form for form, base in _BASE_OF.items() if form != base)
PARTICIPLES = (PASTS | frozenset(_ENGLISH["english"]["unchanged"])) - frozenset(_ENGLISH["english"]["pasts_only"])
"""Finished forms that do not end in -ed."""
_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return the stem of an English verb in lower case: `dimmed`, `dims` and `dimming` share one.

    Stems serve for comparison only: that `rating` and `rate` share one with `rat` is harmless beside a second sign.
    """
    if word in _BASE_OF:
        return _stripped(_BASE_OF[word])
    for ending, least in (("ing", 3), ("ied", 2), ("ed", 3), ("ies", 2), ("es", 3), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            return _stripped(f"{cut}y" if ending in ("ied", "ies") else cut)
    return _stripped(word)


def _stripped(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in _VOWELS:
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
