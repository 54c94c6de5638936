"""Denials of tools: "I don't have any search tool", said by a model that was given one.

A denial that says for what there is no tool counts only where a declared tool is for that: "I have no tool that books
flights" is true of a model that can look up the weather.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wirelint.claims.actions import ASKED, BASE, GERUND, TOPIC_OF, Kind, topics_of, words_of
from wirelint.claims.toolkinds import abilities, does
from wirelint.model import Tool
from wirelint.text.prose import Cues, unquoted

_NOT = r"(?:do not|don['’]t|cannot|can['’]t|can not|am not|['’]m not)"
_AT_ALL = r"(?:currently |actually |really |seem to |appear to |directly |presently |unfortunately )*"
_TOOLS = r"(?:tools?|functions?|plugins?|tool[- ]?call(?:s|ing)?|function[- ]?call(?:s|ing)?|tool[- ]use)\b"
_DENIED = re.compile(
    rf"\bI {_AT_ALL}(?:{_NOT} {_AT_ALL}(?:have|see|possess)|have|lack|was not given|wasn['’]t given|was given)\b"
    rf"(?P<what>[^.!?;:\n]{{0,60}}?)\b(?P<tools>{_TOOLS})(?P<tail>[^.!?;:,\n]{{0,80}})"
    rf"|\bI {_AT_ALL}{_NOT} {_AT_ALL}(?:call|use|run|execute|invoke|make)(?P<use>[^.!?;:\n]{{0,20}}?)\b{_TOOLS}"
    rf"(?P<use_tail>[^.!?;:,\n]{{0,80}})"
    rf"|\bthere (?:is|are) no (?P<none>[^.!?;:\n]{{0,40}}?)\b{_TOOLS}(?P<none_tail>[^.!?;:,\n]{{0,80}})"
    rf"|\bno (?P<no>[^.!?;:\n]{{0,40}}?)\b{_TOOLS} (?:is|are|was|were|has been|have been) "
    r"(?:currently )?(?:available|provided|given|configured|connected|enabled|exposed)(?P<no_tail>[^.!?;:,\n]{0,60})"
    rf"|\bI(?:['’]d| would) need (?P<need>[^.!?;:\n]{{0,40}}?)\b{_TOOLS}(?P<need_tail>[^.!?;:,\n]{{0,40}})[,;]? "
    rf"(?:but|and|which) I {_AT_ALL}{_NOT} have(?: (?:one|any|it|that|access))?",
    re.IGNORECASE,
)
_NEGATED = re.compile(rf"\b(?:{_NOT}|no|not|lack|without|wasn['’]t)(?=\W|\Z)", re.IGNORECASE)
_ABLE = re.compile(
    rf"\bI {_AT_ALL}(?:(?:do not|don['’]t) {_AT_ALL}have|have no|lack) (?:the ability|a way|any way|any means|"
    r"(?:\w+[- ]?\w* )?access)\b(?: to)? (?P<object>[^.!?;:,\n]{3,80})"
    rf"|\bI(?:['’]m| am) {_AT_ALL}(?:unable|not able) to (?P<unable>[^.!?;:,\n]{{3,80}})"
    rf"|\bI {_AT_ALL}(?:cannot|can['’]t|can not) {_AT_ALL}"
    r"(?P<cannot>(?:access|browse|search|look up|query|read|check|fetch)\b[^.!?;:,\n]{3,80})",
    re.IGNORECASE,
)
_FOREIGN = re.compile(
    r"\bich (?:habe|verfüge)\b[^.!?\n]{0,40}\bkein(?:e[nrm]?)?\b[^.!?\n]{0,30}(?:tools?|werkzeuge?|funktion(?:en)?)\b"
    r"|\bje (?:n['’]ai|ne dispose)\b[^.!?\n]{0,30}\b(?:outils?|fonctions?)\b"
    r"|\bno (?:tengo|dispongo de)\b[^.!?\n]{0,40}\b(?:herramientas?|funci(?:ón|ones))\b"
    r"|\bnão tenho\b[^.!?\n]{0,40}\bferramentas?\b|\bnon ho\b[^.!?\n]{0,40}\bstrument[oi]\b"
    r"|\bу меня (?:сейчас |пока |здесь )?нет\b[^.!?\n]{0,30}\b(?:инструмент\w*|функци[йяи]\w*)"
    r"|\bnie mam\b[^.!?\n]{0,30}\bnarzędzi\w*|\bik heb geen\b[^.!?\n]{0,30}\b(?:tools?|hulpmiddel\w*|gereedschap\w*)\b"
    r"|\b(?:araç|araçlara)\b[^.!?\n]{0,20}\berişimim yok|(?:도구|함수)[^.!?\n]{0,16}(?:없습니다|없어요|사용할 수 없)"
    r"|我(?:目前|现在|当前|这里|并)*(?:没有|无法使用|不能使用)[^。！？\n]{0,20}(?:工具|函数)|(?:ツール|関数)[^。\n]{0,12}(?:ありません|使えません|利用できません)",
    re.IGNORECASE,
)
_DEED = re.compile(
    r"\A\W*(?:(?:to|for|that|which|capable of|with which to|can|could|would|will|lets?|allows?|enables?|me|us|"
    r"actually|directly|currently|automatically)\W+){0,5}(?P<verb>[a-z]+)\b",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"\b(?:please|could you|can you|would you)\b[^.!?\n]{0,30}"
    r"\b(?:provide|share|upload|paste|tell|specify|send|attach|give|let me know)"
    r"|\b(?:which|what) \w+[^.!?\n]{0,60}\?",
    re.IGNORECASE,
)
"""The model lacks what the user is to tell, not a tool."""
_ACTS = re.compile(
    r"(?:browse|search|look up|query|read|check|fetch|perform|run|execute|retrieve|make|send|create)\b", re.I
)
_UNTIL = re.compile(r"\b(?:without|until|unless|before|yet)\b", re.IGNORECASE)
_IF = re.compile(r"\b(?:if|when|unless|in case|whether|suppose|because)\W+(?:\w+\W+){0,3}\Z", re.IGNORECASE)
_EMPTY = frozenset({
    "a", "ability", "access", "action", "actions", "allow", "allows", "an", "and", "answer", "any", "appropriate",
    "are", "at", "available", "be", "because", "built-in", "by", "call", "called", "calling", "calls", "can",
    "capabilities", "capability", "chat", "connected", "context", "conversation", "could", "current", "currently",
    "data", "dedicated", "direct", "directly", "do", "enable", "enabled", "enables", "environment", "execute",
    "external", "for", "from", "function", "functions", "given", "has", "have", "help", "here", "i", "in",
    "information", "is", "it", "just", "kind", "let", "lets", "live", "me", "moment", "my", "necessary", "needed",
    "now", "of", "on", "or", "other", "perform", "performing", "proper", "provided", "question", "questions",
    "real", "real-time", "request", "required", "right", "session", "so", "sort", "specific", "such", "suitable",
    "task", "text", "than", "that", "the", "this", "time", "to", "tool", "tools", "type", "us", "use", "user's",
    "using", "way", "which", "will", "with", "work", "would", "you", "your",
})  # fmt: skip
"""Words of a denial that do not say what it is about."""
_TAILS = ("tail", "use_tail", "none_tail", "no_tail", "need_tail")
_FINDS: frozenset[Kind] = frozenset({"search", "read"})
_TO_THE_END = re.compile(r"[^.!?;:\n]{0,80}")
_NEGATIONS = Cues("n't", "n’t", " not ", "no ", "unable", "lack", "cannot")
_THINGS = Cues(
    "tool",
    "function",
    "access",
    "abilit",
    "able to",
    "way to",
    "means to",
    "plugin",
    "can't",
    "can’t",
    "cannot",
)
_ABROAD = Cues("kein", "werkzeug", "outil", "herramient", "ferrament", "strument", "geen", "nie mam", "yok")
"""Plain words to look for first: nearly every reply has none of them."""


@dataclass(frozen=True, slots=True)
class Denial:
    """`said` is the sentence's words, at `start` of the text. `outright`: of tools, and not of abilities alone."""

    said: str
    start: int
    outright: bool


def may_deny(text: str) -> bool:
    """Return True if a text has words that a denial is made of: a look that costs less than the search."""
    lowered = text.lower()
    here = _NEGATIONS.stand_in(lowered) and _THINGS.stand_in(lowered)
    return here or not text.isascii() or _ABROAD.stand_in(lowered)


def denial(text: str, asked: str, tools: Sequence[Tool]) -> Denial | None:
    """The first denial of what a declared tool is for. `asked`: what the user last said."""
    return next(_denials(unquoted(text), asked, tools), None) if may_deny(text) else None


def _denials(text: str, asked: str, tools: Sequence[Tool]) -> Iterator[Denial]:
    for match in _DENIED.finditer(text):
        found = match[0]
        groups = [words for name, words in match.groupdict().items() if name != "tools" and words]
        if _IF.search(text[max(match.start() - 40, 0) : match.start()]) or not _NEGATED.search(found):
            continue
        if any(_is_undone(match[name] or "", tools) for name in _TAILS):
            continue
        about = _about(" ".join(groups))
        if _meets(about, tools) if about else _is_any(match) or _meets(_about(asked), tools):
            yield Denial(found.strip(), match.start(), outright=True)
    foreign = _FOREIGN.search(text)
    if foreign is not None and not _is_for_another(foreign, text, tools):
        yield Denial(foreign[0].strip(), foreign.start(), outright=True)
    for match in _ABLE.finditer(text):
        about = _about(next(words for words in match.groupdict().values() if words))
        supposed = _IF.search(text[max(match.start() - 40, 0) : match.start()])
        acts = _ACTS.match(match["unable"] or match["cannot"] or "") is not None
        known = _names(about, tools) or (acts and _meets(about, tools))
        known = known and not _is_undone(match["object"] or match["unable"] or "", tools)
        if known and not supposed and not _UNTIL.search(match[0]) and not _WANTED.search(text, match.start()):
            yield Denial(match[0].strip(), match.start(), outright=False)


def _is_undone(deed: str, tools: Sequence[Tool]) -> bool:
    """Whether what there is no tool for is something that no declared one does: "to delete files", of a reader of files."""
    found = _DEED.match(deed)
    verb = found["verb"].lower() if found is not None else ""
    kinds = BASE.get(verb) or GERUND.get(verb) or BASE.get(verb.removesuffix("s"))
    if not kinds or kinds <= _FINDS:
        return False
    return not any(does(able, kinds) or able.shell or not able.kinds for able in abilities(tools))


def _is_for_another(said: re.Match[str], text: str, tools: Sequence[Tool]) -> bool:
    """The same, in another language: "kein Werkzeug, um Dateien zu löschen"."""
    words = _TO_THE_END.match(text, said.end())
    told = [_plain(word) for word in _WORD.findall(words[0])] if words is not None else []
    kinds = {kind for word in told for stem, kinds in _STEMS.items() if word.startswith(stem) for kind in kinds}
    kinds -= _FINDS
    return bool(kinds) and not any(
        does(able, frozenset(kinds)) or able.shell or not able.kinds for able in abilities(tools)
    )


def _about(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    return words_of(" ".join(word for word in _WORD.findall(text.lower()) if word not in _EMPTY))


def _is_any(match: re.Match[str]) -> bool:
    """Return True if it is tools of any kind that are not there: "any tools", "no functions", and not "a tool for that"."""
    plain = " ".join(match[0].lower().split())
    return not re.search(r"\b(?:an?|the|this|that) (?:\w+ )?(?:tool|function|plugin)\b|\bfor (?:that|this|it)\b", plain)


def _meets(about: frozenset[str], tools: Sequence[Tool]) -> bool:
    """Return True if words name what a declared tool is for: by its own words, or by a field that both belong to."""
    if not about:
        return False
    topics = {topic for word in about for topic in TOPIC_OF.get(word, ())}
    for tool in tools:
        words = f"{_spelled(tool.name)} {tool.description[:400]}"
        if about & _about(words) or topics & topics_of(_spelled(tool.name)):
            return True
    return False


def _names(about: frozenset[str], tools: Sequence[Tool]) -> bool:
    """The same, by the names of the tools alone, without the verbs that many names begin with."""
    topics = {topic for word in about for topic in TOPIC_OF.get(word, ())}
    return any(
        about & (_about(_spelled(tool.name)) - _VERBS) or topics & topics_of(_spelled(tool.name)) for tool in tools
    )


_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_VERBS = frozenset(
    {"get", "set", "list", "find", "fetch", "run", "make", "create", "check", "read", "search", "look", "query"}
)


def _plain(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if letter.isalpha())


_STEMS = {
    _plain(word)[:-1]: kinds
    for table in ASKED
    for word, kinds in table.items()
    if len(_plain(word)) >= 5 and " " not in word
}
"""Verbs of orders without their endings: other forms of them begin so."""


def _spelled(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.:/-]+", " ", name)
