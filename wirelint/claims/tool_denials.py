"""Denials of tools: "I don't have any search tool" from a model with a declared one.

A denial with a purpose counts only if a declared tool serves that purpose: "I have no tool that books flights" is true of
a model with a weather tool.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wirelint import lexicon
from wirelint.claims.actions import ASKED, BASE, GERUND, TOPIC_OF, Kind, topics_of, words_of
from wirelint.claims.toolkinds import abilities, does
from wirelint.model import Tool
from wirelint.text.prose import Cues, unquoted

_PHRASES = lexicon.Phrases("tool_denials")

_NOT = _PHRASES.text("not")
_NEGATED = re.compile(rf"\b(?:{_NOT}|no|not|lack|without|wasn['’]t)(?=\W|\Z)", re.IGNORECASE)
_EMPTY = frozenset(_PHRASES.words("empty"))
_TAILS = ("tail", "use_tail", "none_tail", "no_tail", "need_tail")
_FINDS: frozenset[Kind] = frozenset({"search", "read"})
_NEGATIONS = Cues("n't", "n’t", " not ", "no ", "unable", "lack", "cannot")
_THINGS = Cues(*_PHRASES.words("things"))
_ABROAD = Cues("kein", "werkzeug", "outil", "herramient", "ferrament", "strument", "geen", "nie mam", "yok")
"""Plain words that are searched first: nearly every reply has none of them."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A denial. `said`: its sentence, at `start` of the text. `outright`: of tools, not only of abilities."""

    said: str
    start: int
    outright: bool


def may_deny(text: str) -> bool:
    """Return True if a text has words of a denial. Cheaper than the search."""
    lowered = text.lower()
    here = _NEGATIONS.occur_in(lowered) and _THINGS.occur_in(lowered)
    return here or not text.isascii() or _ABROAD.occur_in(lowered)


def denial(text: str, asked: str, tools: Sequence[Tool]) -> Denial | None:
    """Return the first denial of an ability that a declared tool has. `asked`: the user's last message."""
    return next(_denials(unquoted(text), asked, tools), None) if may_deny(text) else None


def _denials(text: str, asked: str, tools: Sequence[Tool]) -> Iterator[Denial]:
    for match in _PHRASES["denied"].finditer(text):
        found = match[0]
        groups = [words for name, words in match.groupdict().items() if name != "tools" and words]
        if _PHRASES["if"].search(text[max(match.start() - 40, 0) : match.start()]) or not _NEGATED.search(found):
            continue
        if any(_is_undone(match[name] or "", tools) for name in _TAILS):
            continue
        about = _about(" ".join(groups))
        if _names_purpose(about, tools) if about else _is_any(match) or _names_purpose(_about(asked), tools):
            yield Denial(found.strip(), match.start(), outright=True)
    foreign = _PHRASES["foreign"].search(text)
    if foreign is not None and not _is_for_another(foreign, text, tools):
        yield Denial(foreign[0].strip(), foreign.start(), outright=True)
    for match in _PHRASES["able"].finditer(text):
        about = _about(next(words for words in match.groupdict().values() if words))
        supposed = _PHRASES["if"].search(text[max(match.start() - 40, 0) : match.start()])
        acts = _PHRASES["acts"].match(match["unable"] or match["cannot"] or "") is not None
        known = _names(about, tools) or (acts and _names_purpose(about, tools))
        known = known and not _is_undone(match["object"] or match["unable"] or "", tools)
        if (
            known
            and not supposed
            and not _PHRASES["until"].search(match[0])
            and not _PHRASES["wanted"].search(text, match.start())
        ):
            yield Denial(match[0].strip(), match.start(), outright=False)


def _is_undone(deed: str, tools: Sequence[Tool]) -> bool:
    """Return True if no declared tool does the denied deed: "to delete files" where a tool reads files."""
    found = _PHRASES["deed"].match(deed)
    verb = found["verb"].lower() if found is not None else ""
    kinds = BASE.get(verb) or GERUND.get(verb) or BASE.get(verb.removesuffix("s"))
    if not kinds or kinds <= _FINDS:
        return False
    return not any(does(able, kinds) or able.shell or not able.kinds for able in abilities(tools))


def _is_for_another(match: re.Match[str], text: str, tools: Sequence[Tool]) -> bool:
    """Return True if a denial in another language is about a deed of no tool: "kein Werkzeug, um zu löschen"."""
    words = _PHRASES["to_the_end"].match(text, match.end())
    plain = [_plain(word) for word in _PHRASES["word"].findall(words[0])] if words is not None else []
    kinds = {kind for word in plain for stem, kinds in _STEMS.items() if word.startswith(stem) for kind in kinds}
    kinds -= _FINDS
    return bool(kinds) and not any(
        does(able, frozenset(kinds)) or able.shell or not able.kinds for able in abilities(tools)
    )


def _about(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return words_of(" ".join(word for word in _PHRASES["word"].findall(text.lower()) if word not in _EMPTY))


def _is_any(match: re.Match[str]) -> bool:
    """Return True if a denial is about all tools: "any tools", "no functions", and not "a tool for that"."""
    plain = " ".join(match[0].lower().split())
    return not re.search(r"\b(?:an?|the|this|that) (?:\w+ )?(?:tool|function|plugin)\b|\bfor (?:that|this|it)\b", plain)


def _names_purpose(about: frozenset[str], tools: Sequence[Tool]) -> bool:
    """Return True if words name the purpose of a declared tool: by its own words, or by a shared topic."""
    if not about:
        return False
    topics = {topic for word in about for topic in TOPIC_OF.get(word, ())}
    for tool in tools:
        words = f"{_spelled(tool.name)} {tool.description[:400]}"
        if about & _about(words) or topics & topics_of(_spelled(tool.name)):
            return True
    return False


def _names(about: frozenset[str], tools: Sequence[Tool]) -> bool:
    """Return True if a text shares a word with the tools' names, except for common verbs."""
    topics = {topic for word in about for topic in TOPIC_OF.get(word, ())}
    return any(
        about & (_about(_spelled(tool.name)) - _VERBS) or topics & topics_of(_spelled(tool.name)) for tool in tools
    )


_VERBS = frozenset(_PHRASES.words("verbs"))


def _plain(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if letter.isalpha())


_STEMS = {
    _plain(word)[:-1]: kinds
    for table in ASKED
    for word, kinds in table.items()
    if len(_plain(word)) >= 5 and " " not in word
}
"""Verbs of orders without their endings, which are beginnings of their other forms."""


def _spelled(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.:/-]+", " ", name)
