"""Abilities of declared tools, read from names and descriptions, and the actions that fit them.

An *ability* has kinds of action (the verbs), topics (the nouns), and a mark for shells, which can do anything to files and
programs. A claim fits a tool if they share a kind and a topic or a word, or if one of the two has no topic and the verb
alone is specific.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from wirelint import lexicon
from wirelint.claims.actions import BASE, ELSEWHERE, VERB_TOPICS, Kind, Topic, bare, topics_of, words_of
from wirelint.model import Tool

_PHRASES = lexicon.Phrases("toolkinds")

PATH = _PHRASES.pattern("path")
URL = re.compile(r"\bhttps?://\S+|\bwww\.\S+")

_EXTRA: Mapping[str, frozenset[Kind]] = {word: frozenset(kinds) for word, kinds in _PHRASES.table("extra").items()}
_NOUNS_TOO = frozenset(_PHRASES.words("nouns_too"))
_ELSEWHERE = {bare(_PHRASES["parts"].sub("", word)): kinds for word, kinds in ELSEWHERE[0].items()}
_ELSEWHERE |= {bare(word): kinds for table in ELSEWHERE[:-2] for word, kinds in table.items() if " " not in word}
_ELSEWHERE_CJK = {word: kinds for table in ELSEWHERE[-2:] for word, kinds in table.items() if len(word) > 1}
for _key, _table in (("elsewhere", _ELSEWHERE), ("elsewhere_cjk", _ELSEWHERE_CJK)):
    for _kind, _verbs in _PHRASES.table(_key).items():
        _table |= {_verb: frozenset({_kind, *_table.get(_verb, ())}) for _verb in _verbs.split()}
_SOURCES = frozenset(_PHRASES.words("sources"))
_OPENING_CJK = 12
_FITTING: Mapping[Kind, frozenset[Kind]] = {kind: frozenset(kinds) for kind, kinds in _PHRASES.table("fitting").items()}
_SHELL_KINDS: frozenset[Kind] = frozenset({"search", "read", "write", "create", "delete", "run"})
_STOP = frozenset(_PHRASES.words("stop"))
_OUTSIDE_TABLES: frozenset[Topic] = frozenset({"web", "file", "mail", "weather", "device", "calendar", "knowledge"})
_LONGEST_LEAD = 400
"""Characters of a description that are searched for the end of its first sentence."""
_TELLS_OF: frozenset[Kind] = frozenset({"search", "read"})
_TELLING: frozenset[Kind] = frozenset({"search", "send", "book", "delete"})
"""Kinds whose verbs need no noun, because a reply cannot search, send, book or delete by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Ability:
    """The abilities of a declared tool. `shell`: runs commands; `words`: the nouns of its name and description."""

    tool: Tool
    kinds: frozenset[Kind]
    topics: frozenset[Topic]
    words: frozenset[str]
    shell: bool = False


def abilities(tools: Iterable[Tool]) -> tuple[Ability, ...]:
    """Return the abilities of the tools that the client runs."""
    return _abilities(tuple(tools))


@lru_cache(maxsize=8)
def _abilities(tools: tuple[Tool, ...]) -> tuple[Ability, ...]:
    """Return the abilities of some tools, cached for the rules that check one request."""
    return tuple(ability(tool) for tool in tools if not tool.hosted)


def ability(tool: Tool) -> Ability:
    read = _read(tool.name, tool.description[:_LONGEST_LEAD].strip(), tool.type)
    return Ability(tool, *read)


@lru_cache(maxsize=4096)
def _read(name: str, description: str, type_: str) -> tuple[frozenset[Kind], frozenset[Topic], frozenset[str], bool]:
    """Return kinds, topics, words and True for a shell, cached for requests that repeat the declaration."""
    named = _PHRASES["camel"].sub("_", name).replace("-", "_").replace(".", "_").lower()
    parts = name_words(name)
    sentence = re.split(r"(?<=[.!?。])\s|\n", description, maxsplit=1)[0][:200]
    described = words_of(sentence)
    spoken = parts[:-1] if len(parts) > 1 and parts[-1] == "text" else parts
    verbs = list(spoken) + [" ".join(pair) for pair in pairwise(spoken)]
    kinds = _kinds_of_all(verbs)
    opening = [] if _ONE_OF.match(sentence) else re.findall(r"[A-Za-z-]+", sentence)[:4]
    kinds |= _kinds_of_all(word.lower() for word in opening)
    kinds = kinds or _kinds_elsewhere(parts, sentence) or ({"read"} if _is_source(parts, sentence) else set())
    shell = bool(
        _PHRASES["shell"].search(named) or _PHRASES["shell_says"].search(sentence) or type_.startswith("bash_")
    )
    interpreter = not shell and bool(_PHRASES["interpreter"].search(named))
    topics = topics_of(f"{' '.join(parts)} {sentence}")
    if shell:
        kinds, topics = kinds | _SHELL_KINDS, topics | {"file", "run"}
    elif interpreter:
        kinds, topics = kinds | {"run"}, topics | {"run"}
    elif type_.startswith("text_editor"):
        kinds, topics = {"read", "write", "create"}, frozenset({"file"})
    words = (frozenset(parts) | described | words_of(" ".join(parts))) - _STOP - frozenset(BASE)
    return frozenset(kinds), topics, words, shell or interpreter


_ONE_OF = re.compile(r"[^\W\d_]+ of\b")
"""A description that begins with a noun: `Text of a motion`."""


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of the name of a tool or a key, however it joins them."""
    joined = _PHRASES["camel"].sub("_", name).replace("-", "_").replace(".", "_").lower()
    return tuple(word for word in joined.split("_") if word)


def _is_source(parts: Sequence[str], sentence: str) -> bool:
    """Return True if a tool without a known verb is named after what it returns: `order_status`, "Stock of an article"."""
    if _PHRASES["imperative"].match(sentence):
        return False
    named = {*parts[-1:], *(part for part in parts[:1] if part not in _NOUNS_TOO)}
    return not named.isdisjoint(_SOURCES) or _PHRASES["noun_of"].match(sentence) is not None


def _kinds_of_all(words: Iterable[str]) -> set[Kind]:
    """Return the kinds of a tool's verbs. A word that may be a noun counts as a noun beside a verb: "list mail", "search
    posts", `mail_search`."""
    kinds: set[Kind] = set()
    before, words = "", list(words)
    sure = {word for word in words if word.removesuffix("s") not in _NOUNS_TOO and _kinds_of(word)}
    if sure and " " not in words[0] and words[0] in _NOUNS_TOO:
        words = words[1:]
    for word in words:
        stem = word.removesuffix("s")
        if not kinds or stem not in _NOUNS_TOO or before in ("and", "or", "to"):
            kinds |= _kinds_of(word) | _kinds_of(stem) | _kinds_of(word.removesuffix("es"))
        before = word
    return kinds


def _kinds_elsewhere(parts: Sequence[str], sentence: str) -> set[Kind]:
    """Return the kinds of a tool that is named or described in another language than English: `crear_pedido`."""
    said = {bare(word) for word in (*parts[:2], *re.findall(r"[^\W\d_]+", sentence.lower())[:2])}
    spelled = (word if word in _ELSEWHERE else word.removesuffix("t") for word in said)
    kinds = {kind for word in spelled for kind in _ELSEWHERE.get(word, ())}
    if not sentence.isascii():
        opening = sentence[:_OPENING_CJK]
        kinds |= {kind for word, found in _ELSEWHERE_CJK.items() if word in opening for kind in found}
    return kinds


def _kinds_of(word: str) -> frozenset[Kind]:
    found = _EXTRA.get(word)
    return BASE.get(word, frozenset()) if found is None else found


def topics_in(text: str, verb: str = "") -> frozenset[Topic]:
    """Return the topics of an action's object: those of its nouns, and of paths and addresses."""
    topics = set(topics_of(_PHRASES["code"].sub(" ", text)))
    if verb in VERB_TOPICS:
        topics.add(VERB_TOPICS[verb])
    if URL.search(text):
        topics.add("web")
    if _MAILBOX.search(text):
        topics.add("mail")
    if PATH.search(URL.sub(" ", text)):
        topics.add("file")
    return frozenset(topics)


_MAILBOX = re.compile(r"\w@\w")


def does(able: Ability, kinds: frozenset[Kind]) -> bool:
    """Return True if a tool does anything of these kinds, to any object. A tool without a verb searches and reads."""
    return any(_FITTING[kind] & (able.kinds or _TELLS_OF) for kind in kinds)


def fits(able: Ability, kinds: frozenset[Kind], verb: str, text: str) -> bool:
    """Return True if a tool could do an action of one of `kinds` to an object in `text`."""
    if names(able.tool, text):
        return True
    if not does(able, kinds):
        return False
    topics = topics_in(text, verb)
    if topics & able.topics or words_of(text) & able.words:
        return True
    if "sql" in able.words and "search" in kinds and not topics & _OUTSIDE_TABLES:
        return True  # tables may hold any object
    if able.shell:
        code = _PHRASES["code"].search(text)  # "I ran `df -h` on web-3"
        return code is not None and bool(kinds & {"run", "delete"}) and (not topics or not text[: code.start()].strip())
    if topics:
        return not able.topics and not able.words
    return bool(kinds & _TELLING & able.kinds)


_SIDE_EFFECTS: Mapping[Kind, re.Pattern[str]] = {
    kind: re.compile(rf"(?<![a-z])(?:{stems})", re.IGNORECASE) for kind, stems in _PHRASES.table("side_effects").items()
}
_REPORTS: Mapping[Kind, re.Pattern[str]] = {
    kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _PHRASES.table("reported").items()
}
_SHORT_RESULT = 300


def cannot(able: Ability, kinds: frozenset[Kind]) -> bool:
    """Return True if a tool certainly does nothing of the kinds: its name and description are all about other kinds.

    A tool without a verb and one that runs something can do anything.
    """
    return bool(able.kinds) and "run" not in able.kinds and not does(able, kinds) and not may_also(able, kinds)


def may_also(able: Ability, kinds: frozenset[Kind]) -> bool:
    """Return True if a tool may do something of the kinds besides what its verb says."""
    return does_anything(able) or _tells(_SIDE_EFFECTS, told_by(able.tool), kinds)


def told_by(tool: Tool) -> str:
    """Return the words of a tool's name, and its description."""
    return f"{' '.join(name_words(tool.name))} {tool.description}"


def does_anything(able: Ability) -> bool:
    """Return True for a shell, an agent, or a tool that forwards requests."""
    named = _PHRASES["camel"].sub("_", able.tool.name).replace("-", "_").replace(".", "_").lower()
    return able.shell or _PHRASES["anything"].search(named) is not None


def reads_only(command: str) -> bool:
    """Return True if all programs of a shell's command only read: `ls -l | wc -l`."""
    if _WRITES_FILE.search(command):
        return False
    parts = [part.split() for part in _JOINTS.split(command)]
    return any(parts) and all(part[0] in _READERS or " ".join(part[:2]) in _READERS for part in parts if part)


_JOINTS = re.compile(r"&&|\|\|?|;|\n")
_WRITES_FILE = re.compile(r"(?<![12&])>(?!\s*/dev/null|&)|-delete\b|-exec\b|-i\b|\btee\b|`|\$\(")
_READERS = frozenset(word.replace("_", " ") for word in _PHRASES.words("readers"))


def reports(result: str, kinds: frozenset[Kind]) -> bool:
    """Return True if a result may report an action of the kinds: by a finished form, or in a short text by any word."""
    return _tells(_SIDE_EFFECTS if len(result) <= _SHORT_RESULT else _REPORTS, result, kinds)


def _tells(patterns: Mapping[Kind, re.Pattern[str]], text: str, kinds: frozenset[Kind]) -> bool:
    return any(kind in patterns and patterns[kind].search(text) is not None for kind in kinds)


def names(tool: Tool, text: str) -> bool:
    """Return True if a text names the tool: `search_orders`, in code or plain, with or without its case."""
    name = tool.name
    if len(name) < 3 or name.lower() not in text.lower():
        return False
    spelled = re.escape(name)
    if "_" in name or "-" in name or "." in name or _PHRASES["camel"].search(name):
        return re.search(rf"(?<![\w/]){spelled}(?!\w)", text, re.IGNORECASE) is not None
    return re.search(rf"`{spelled}(?:\(\))?`|\b{spelled} (?:tool|function)\b", text, re.IGNORECASE) is not None


def matching(able: Iterable[Ability], kinds: frozenset[Kind], verb: str, text: str) -> Iterator[Ability]:
    return (one for one in able if fits(one, kinds, verb, text))
