"""Announcements at the end of a text: actions that the model promises as the next step and does not carry out.

Only the end of a text counts: if the answer, a question, an offer or a block of text follows, the model kept its
promise or waits for the user. Sentences with a condition, about another time or about the user's part announce nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from wirelint import lexicon
from wirelint.claims.actions import AHEAD, ASKED, BASE, GERUND, LANGUAGES, SOON, Kind, alternatives, bare
from wirelint.claims.claims import verb_of
from wirelint.text.prose import Cues, Prose, Sentence, has_word_of
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("announcements")

# Purpose of a user's words: an action, an account of past actions, or a text to be composed.

_INTENT_BASES = alternatives(BASE)
_ASKS = _PHRASES.pattern("asks", intent_bases=_INTENT_BASES)
_EXTRA_ASKS: dict[str, frozenset[Kind]] = {
    "find": frozenset({"search"}),
    "mail": frozenset({"send"}),
    "tell": frozenset({"send"}),
    "remind": frozenset({"create", "book", "write"}),
}
_FOREIGN_ASKS = tuple(re.compile(rf"\b(?:{alternatives(table)})\b", re.IGNORECASE) for table in ASKED[:-2])
_VOICED = _PHRASES.text("voiced")
_GENRE = _VOICED.replace("|scene|", "|scene (?:about|where|between|with|set|in which)|")
"""For bare phrases: "the night scene" may belong to a home."""
_NAMES_GENRE = _PHRASES.pattern("names_genre", intent_bases=_INTENT_BASES, genre=_GENRE)
_LONGEST_PHRASE = 160
_BESIDES = _PHRASES.pattern("besides", intent_bases=_INTENT_BASES)


def asked(text: str) -> frozenset[Kind]:
    """Return the kinds of action that a user orders."""
    kinds: set[Kind] = set()
    text = _PHRASES["how_to"].sub(" ", text)
    for match in _ASKS.finditer(text):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    for table, pattern in zip(ASKED, _FOREIGN_ASKS, strict=False):
        for found in pattern.finditer(text):
            kinds |= table.get(found[0].lower(), frozenset())
    for table in ASKED[-2:]:
        kinds.update(kind for word, found_kinds in table.items() if word in text for kind in found_kinds)
    return frozenset(kinds)


def asks_about_past(text: str) -> bool:
    """Return True if a user wants an account of earlier actions instead of a new one."""
    return _PHRASES["looks_back"].search(text) is not None


def asks_for_text(text: str) -> bool:
    """Return True if a user orders a text, whose "I" may not be the model."""
    if _PHRASES["composes"].search(text) is not None:
        return True
    return len(text) <= _LONGEST_PHRASE and "?" not in text and _NAMES_GENRE.match(text) is not None


def orders_beside_text(text: str) -> frozenset[Kind]:
    """Return the kinds of action that a user orders beside a text: "draft a note and send it to Ann"."""
    payload = _PHRASES["payload"].search(text)
    order = text[: payload.start()] if payload else text
    kinds: set[Kind] = set()
    for match in _BESIDES.finditer(order):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    return frozenset(kinds)


def orders_role(text: str) -> bool:
    """Return True if a text orders the model to play a role, so that actions of its "I" are fiction."""
    return _PHRASES["plays"].search(text) is not None


@dataclass(frozen=True, slots=True)
class Announcement:
    """An action that a text announces. `start`, `end`: offsets of its sentence. `at_once`: it is about to happen.

    `bare`: a gerund alone ("Searching the code for callers."), which may also answer a question.
    """

    kinds: frozenset[Kind]
    verb: str
    object: str
    start: int
    end: int
    at_once: bool = False
    bare: bool = False


_BASES = alternatives(BASE)
_AHEAD = alternatives(AHEAD)
_GERUNDS = alternatives(GERUND)
_SOON_EN = _PHRASES.pattern("soon_en", ahead=_AHEAD, gerunds=_GERUNDS)
_WE_SOON = _PHRASES.pattern("we_soon", ahead=_AHEAD)
_SOON_ING = _PHRASES.pattern("soon_ing", gerunds=_GERUNDS)
_BARE_ING = _PHRASES.pattern("bare_ing", gerunds=_GERUNDS)
_ALONE_ING = _PHRASES.pattern("alone_ing", gerunds=_GERUNDS)
_WHILE = re.compile(rf"\bwhile I (?P<base>{_BASES})\b")
_SEPARABLE = {verb: kinds for verb, kinds in SOON[0].items() if " " in verb}
_HEADS = alternatives({verb.split(" ")[0] for verb in _SEPARABLE})
_PARTICLES = alternatives({verb.split(" ")[1] for verb in _SEPARABLE})
_DE = alternatives(SOON[0].keys() - _SEPARABLE.keys())
_SOON_FOREIGN = tuple(
    lexicon.compiled(tables["announces"], verbs=verbs)
    for tables, verbs in zip(LANGUAGES.values(), (_DE, *(alternatives(table) for table in SOON[1:])), strict=True)
)


_ANY_SOON_FOREIGN = tuple(
    lexicon.compiled(LANGUAGES[one]["announces"], verbs=r"[^\W\d_]{5,}") for one in ("es", "fr", "it", "pt")
)
"""Languages in which words before the verb make it an announcement."""
_ANY_NOW = tuple(lexicon.compiled(one["announces_now"]) for one in LANGUAGES.values() if "announces_now" in one)
"""Sentences of the form "I check it now", with any verb."""
_ROOT = 5
"""Letters that the forms of a verb have in common."""
_STAYS = frozenset(word[:_ROOT] for word in _PHRASES.words("stays"))
"""Beginnings of verbs for what a model does without a tool: to wait, to explain, to help."""


def _said(key: str) -> str:
    return "|".join(tables[key] for tables in LANGUAGES.values() if key in tables)


_ACKNOWLEDGED = _PHRASES.pattern("acknowledged", agrees=_said("agrees"))
_NOT_NOW = _PHRASES.pattern("not_now", puts_off=_said("puts_off"))
_GERMAN_APART = _PHRASES.pattern("german_apart", heads=_HEADS, particles=_PARTICLES)
_PATIENCE = _PHRASES.text("patience")
_PLEASE = r"(?:[ ,]*\b(?:please|bitte|s['’]il (?:vous|te) plaît|por favor|per favore|while I do (?:so|that|this))\b)?"
_FILLER = re.compile(rf"^(?:[^\w\s]*\s*)?{_PATIENCE}(?!\w).{{0,60}}$|^[^\w]*$", re.IGNORECASE)
_WAIT = re.compile(rf"(?<!\w){_PATIENCE}(?!\w){_PLEASE}|\bplease (?=\Z)", re.IGNORECASE)
_PLEA = re.compile(rf"(?<!\w)(?!this |moment\b){_PATIENCE}(?!\w)", re.IGNORECASE)
_LONGEST_PLEA = 300
_LONGEST_ALONE = 240
_LONGEST = 600
"""Characters of a sentence beyond which it is no announcement."""


_TAIL = 2_000
_OPENERS = Cues(*_PHRASES.words("openers"))

_MAY_THINK = re.compile(rf"\b(?:so|now|then|must|need to|time to) (?:\w+ ){{0,4}}?(?:{_AHEAD})\b", re.IGNORECASE)
_SOON_HEADS = tuple(
    None if any(word[0] > "\u0590" for word in table) else frozenset(word.split(" ")[0] for word in table)
    for table in SOON
)
"""The first words of the verbs of a language; None for languages that join words."""
_ELIDED = re.compile(r"\b[djlDJL]['’]")
_SOON_WORDS = frozenset(part for table in SOON for verb in table for part in verb.split(" ")[:1])


def may_announce(text: str, *, thought: bool = False) -> bool:
    """Return True if the end of a text may hold an announcement. A cheap check."""
    tail = text[-_TAIL:].replace("\n", " \n")
    if _OPENERS.occur_in(tail) or (thought and _MAY_THINK.search(tail)):
        return True
    if not tail.isascii() and _PHRASES["other_letters"].search(tail):
        return True
    return has_word_of(tail, _SOON_WORDS)


def announcement(prose: Prose, *, thought: bool = False) -> Announcement | None:
    """Return the action that the end of a text announces; None for other ends, questions, offers and pleas.

    `thought`: the text is reasoning, which has no addressee.
    """
    last = _last(prose, thought=thought)
    if last is None:
        return None
    found = _announced(prose, last, thought=thought)
    if found is None or last.bullet or _PHRASES["reckons"].search(found.object):
        return None
    return None if any(sentence.question for sentence in prose.sentences[-4:]) else found


def plea(prose: Prose) -> Sentence | None:
    """Return the plea for patience at the end of a short text that asks nothing: "One moment, I'm on it."."""
    if len(prose.text) > _LONGEST_PLEA or not prose.sentences or any(one.question for one in prose.sentences):
        return None
    last = prose.sentences[-1]
    found = _PLEA.search(last.masked)
    if found is None:
        return None
    if _PHRASES["before_ago"].search(last.masked, 0, found.start()) or _PHRASES["ago"].match(last.masked, found.end()):
        return None  # "hace un momento"
    short = _PHRASES["short_time"].fullmatch(found[0])
    if short and not _PHRASES["before_time"].search(last.masked[: found.start()]):
        return None
    return None if _NOT_NOW.search(last.masked.replace(found[0], " ")) else last


def is_without_content(prose: Prose) -> bool:
    """Return True if a text only agrees or begs for patience: "Sure. One moment please."."""
    return len(prose.text) < 200 and all(
        _ACKNOWLEDGED.match(_WAIT.sub(" ", sentence.masked))
        or (_FILLER.match(sentence.masked) and _announced(prose, sentence, thought=False) is None)
        for sentence in prose.sentences
    )


def announced_verb(prose: Prose, verbs: Iterable[str] | None) -> Announcement | None:
    """Return the announcement at the end of a text with one of `verbs`, which are in no table.

    `verbs` None: with any verb, in languages in which words beside it make it an announcement.
    """
    last = prose.sentences[-1] if prose.sentences else None
    if last is None or last.question or last.bullet or _is_put_off(last) or _PHRASES["reckons"].search(last.masked):
        return None
    match = _PHRASES["any_soon"].search(last.masked)
    if match is None:
        # "Vou emitir" for `emitir_nota`: the verbs have one root.
        roots = {bare(verb)[:_ROOT]: verb for verb in verbs or ()}
        for pattern in (*_ANY_SOON_FOREIGN, *(_ANY_NOW if verbs is None else ())):
            match = pattern.search(last.masked)
            said = bare(verb_of(match)) if match is not None else ""
            verb = roots.get(said[:_ROOT]) if verbs is not None else None if said[:_ROOT] in _STAYS else said
            if match is not None and verb:
                return _announce(prose, last, frozenset(), verb, match.end())
        return None
    said = (match["base"] or match["ing"]).lower()
    if verbs is None:
        return None if said[:_ROOT] in _STAYS else _announce(prose, last, frozenset(), said, match.end())
    for verb in verbs:
        if said in (verb, f"{verb.removesuffix('e')}ing", f"{verb}{verb[-1]}ing"):
            return _announce(prose, last, frozenset(), verb, match.end())
    return None


def is_alone(prose: Prose, found: Announcement) -> bool:
    """Return True if a text consists only of an announcement, assent and pleas for patience."""
    others = [sentence for sentence in prose.sentences if not found.start <= sentence.start < found.end]
    return len(prose.text) < _LONGEST_ALONE and all(
        _ACKNOWLEDGED.match(_WAIT.sub(" ", sentence.masked)) or _FILLER.match(sentence.masked) for sentence in others
    )


def _last(prose: Prose, *, thought: bool) -> Sentence | None:
    """Return the last sentence before pleas for patience; None for a text that ends with code, a quotation or a table."""
    for sentence in reversed(prose.sentences[-3:]):
        if sentence.question:
            return None
        tail = prose.text[sentence.end :].strip()
        if tail and not prose.masked[sentence.end :].strip("\ue002 \n\t\r."):
            return None  # a block follows: the product, not an announcement
        if not _FILLER.match(sentence.masked) or _announced(prose, sentence, thought=thought) is not None:
            return sentence
    return None


def _announced(prose: Prose, sentence: Sentence, *, thought: bool) -> Announcement | None:
    found = _found(prose, sentence, thought=thought) if len(sentence.masked) <= _LONGEST else None
    return None if found is None or _is_put_off(sentence) else found


def _is_put_off(sentence: Sentence) -> bool:
    """Return True if a sentence makes the action depend on something else."""
    return _NOT_NOW.search(_WAIT.sub(" ", sentence.masked)) is not None


def _found(prose: Prose, sentence: Sentence, *, thought: bool) -> Announcement | None:
    line = sentence.masked
    for pattern in (_SOON_EN, _WHILE, _SOON_ING, _BARE_ING, _PHRASES["calling"], *[_WE_SOON] * thought):
        if match := pattern.search(line):
            groups = match.groupdict()
            base, gerund = groups.get("base"), (groups.get("gerund") or "").lower()
            if gerund and _SUBJECT.match(line):
                continue
            kinds = AHEAD[base] if base else GERUND[gerund]
            return _announce(prose, sentence, kinds, base or gerund, match.end())
    alone = _ALONE_ING.match(line) if len(prose.sentences) == 1 and not _PHRASES["finite"].search(line) else None
    if alone:
        gerund = alone["gerund"].lower()
        return replace(_announce(prose, sentence, GERUND[gerund], gerund, alone.end("gerund")), bare=True)
    for apart in _GERMAN_APART.finditer(line):
        verb = f"{(apart['head'] or apart['head2']).lower()} {apart['particle']}"
        if verb in _SEPARABLE:
            return _announce(prose, sentence, _SEPARABLE[verb], verb, 0)
    for table, words, foreign in zip(SOON, _SOON_HEADS, _SOON_FOREIGN, strict=True):
        # Most sentences are in one language; a search takes seven microseconds.
        if words is None and line.isascii():
            continue
        if words is not None and not has_word_of(line, words) and _ELIDED.search(line) is None:
            continue
        if match := foreign.search(line):
            verb = verb_of(match)
            return _announce(prose, sentence, table[verb], verb, 0)
    return None


_SUBJECT = re.compile(r"\W*\w+ing\b[^,;:.]{1,60} (?:gives|shows|makes|means|leaves|saves|yields|brings|is|was)\b")
"""A gerund that is the subject of its sentence: "Adding up all looms gives 27 hours"."""


def _announce(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, at: int) -> Announcement:
    shown = prose.text[sentence.start + at : sentence.end][:240]
    at_once = _PHRASES["at_once"].search(sentence.masked) is not None
    if "run" in kinds and _PHRASES["searches"].search(shown):
        kinds |= {"search"}
    return Announcement(kinds, verb, shown, sentence.start, sentence.end, at_once)


def decision(prose: Prose, names: Iterable[str]) -> tuple[Announcement, str] | None:
    """Return the tool that the end of a thought decides to call, by its name: `Next: look_up(plant="thyme")`.

    The sentence before the last one counts if the last only carries it out: `We need to use look_up. Let me do that now.`
    """
    ending = list(prose.sentences[-2:])
    if len(ending) == 2 and _PHRASES["commits"].fullmatch(prose.text, ending[1].start, ending[1].end) is None:
        del ending[0]
    if not ending or any(sentence.question for sentence in ending):
        return None
    for sentence in ending:
        said = prose.text[sentence.start : sentence.end]
        for name in names:
            found = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said) if name[:1] else None
            if found is None or _PHRASES["hedged"].search(said[: found.start()]):
                continue
            if said[found.end() :].lstrip("`*")[:1] == "(" or _PHRASES["calls_it"].search(said[: found.start()]):
                return Announcement(frozenset(), "call", name, sentence.start, ending[-1].end, at_once=True), name
    return None


@remembered
def is_english(text: str) -> bool:
    """Return True if a text has two different small words of English, or one if it is short; a title may have one."""
    words = {one[0].casefold() for one in itertools.islice(_PHRASES["english"].finditer(text), _MOST_SMALL_WORDS)}
    return len(words) > (len(text) > _SHORT_TEXT) and _PHRASES["foreign"].search(text) is None


_SHORT_TEXT = 60
_MOST_SMALL_WORDS = 16
