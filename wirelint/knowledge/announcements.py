"""What a text ends on announcing: an action that is said to come next, and comes not.

Only the end of a text counts: an announcement that is followed by the answer, a question, an offer or a block of text has
been kept, or waits for the user. Sentences that speak of a condition, of another time or of the user's part announce
nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.knowledge.actions import AHEAD, BASE, GERUND, SOON, Kind, alternatives
from wirelint.knowledge.prose import Prose, Sentence


@dataclass(frozen=True, slots=True)
class Announcement:
    """An action that is said to come next. `start`, `end`: its sentence."""

    kinds: frozenset[Kind]
    verb: str
    object: str
    start: int
    end: int


_BASES = alternatives(BASE)
_AHEAD = alternatives(AHEAD)
_GERUNDS = alternatives(GERUND)
_SOON_ADVERBS = (
    r"(?:(?:now|first|then|also|quickly|just|go ahead and|next|immediately|start by|begin by|try to|"
    r"need to|have to|use|call)[ ]){0,4}"
)
_SOON_EN = re.compile(
    rf"\b(?:[Ll]et me|[Ll]et['’]s|I['’]ll|I will|I['’]m going to|I am going to|I need to|I should|I have to|"
    rf"I['’]m about to|allow me to) "
    rf"{_SOON_ADVERBS}(?:(?P<base>{_AHEAD})|(?P<gerund>{_GERUNDS}))\b"
)
_SOON_ING = re.compile(
    rf"(?:\bI['’]m (?:now |currently )?|\bI am (?:now |currently )?|^[Nn]ow |^[Nn]ext up[:,]? |^[Nn]ext[:,]? |"
    rf"\b[Ss]tarting by |\bwhile I(?:['’]m| am) |"
    rf"^(?:ok(?:ay)?|sure(?: thing)?|right|alright|got it|great|understood|one (?:moment|sec(?:ond)?)|just a "
    rf"(?:moment|sec(?:ond)?)|hold on)\W{{1,4}}(?:now )?)(?P<gerund>{_GERUNDS})\b",
    re.IGNORECASE,
)
_CALLING = re.compile(r"^[^\w\s]{0,3}\s*(?P<gerund>calling|invoking|executing) (?!it|this|that)", re.IGNORECASE)
_BARE_ING = re.compile(
    rf"^[^\w\s]{{0,3}}\s*(?P<gerund>{_GERUNDS})\b(?=.{{0,100}}(?:\.\.\.|…|:|\bnow\b|\bfirst\b))(?!.*\b(?:is|are|"
    rf"was|can|will|helps?|means|requires?|should|takes|lets|allows)\b)",
    re.IGNORECASE,
)
_WHILE = re.compile(rf"\bwhile I (?P<base>{_BASES})\b")
_CALL_NAME = re.compile(r"\b(?:call|use|invoke|calling|using|invoking|run|running|try)$", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"\b(?:if|once|when|whenever|after you|as soon as|before (?:I|we|you)|until|unless|later|tomorrow|next "
    r"(?:time|week|month)|from now on|in (?:the )?future|"
    r"every|each time|please|let me know|you (?:can|could|may|want|would|should)|would|could|shall|happy to|"
    r"gladly|need(?:s)? (?:you|your)|"
    r"provide|confirm|here['’]?s|here (?:is|are)|as follows|follows|below|step by step|explain|summari[sz]e|"
    r"(?:will|[’']ll) wait|wait for you|"
    r""
    r"wenn|falls|sobald|bitte|möchtest|soll ich|si tu|si vous|souhaitez|veux-tu|si (?:me|quieres|deseas)|quieres|"
    r"por favor|cuando)\b|如果|请|一旦|是否|需要您|之后",
    re.IGNORECASE,
)
_DE, _FR, _ES, _ZH = (alternatives(table) for table in SOON)
_SOON_FOREIGN = (
    re.compile(
        rf"\b[Ii]ch (?:werde |muss )?(?:[\w.-]+ ){{0,2}}?(?P<verb>{_DE})\b|\b(?:[Ii]ch werde|[Ll]ass mich|[Ii]ch "
        rf"muss|werde ich) [^!?;]{{0,120}}?\b(?P<verb2>{_DE})\b"
    ),
    re.compile(
        rf"\b(?:[Jj]e vais|[Ll]aissez-moi|[Ll]aisse-moi|[Jj]e dois) (?:maintenant |d['’]abord "
        rf")?(?P<verb>{_FR})\b|\b[Jj]e (?P<verb2>{_FR})\b"
    ),
    re.compile(
        rf"\b(?:[Vv]oy a|[Dd]éjame|[Pp]ermíteme|[Vv]amos a|[Dd]ebo) (?:ahora )?(?P<verb>{_ES})\b|\b[Aa]hora "
        rf"(?:mismo )?(?P<verb2>{_ES})\b"
    ),
    re.compile(
        rf"(?:让我|我来|我将|我会|我要|我去|我先|我现在|我马上|我这就|接下来我?(?:将|会|要)?|正在)(?:先|来|去|立即|马上|开始|为您|帮您|帮你|使用|调用|重新|一下|现在|将|"
        rf"会)*(?P<verb>{_ZH})"
    ),
)
_FILLER = re.compile(
    r"^(?:[^\w\s]*\s*)?(?:one moment|just a (?:moment|second|sec)|hold on|please (?:wait|hold)|this (?:may|might|"
    r"will|should) (?:only )?take|bear with me|give me a (?:moment|second|sec)"
    r"|einen moment|un instant|un momento|请稍(?:等|候)|稍等)\b.{0,60}$|^[^\w]*$",
    re.IGNORECASE,
)


def announcement(prose: Prose) -> Announcement | None:
    """The action that a text ends on announcing, or None: it ends on something else, asks, offers or waits."""
    last = _last(prose)
    if last is None:
        return None
    found = _announced(prose, last)
    if found is None or last.bullet:
        return None
    return None if any(sentence.question for sentence in prose.sentences[-4:]) else found


def _last(prose: Prose) -> Sentence | None:
    """The last sentence that is more than a plea for patience; None when the text ends on code, a quotation or a table."""
    for sentence in reversed(prose.sentences[-3:]):
        if sentence.question:
            return None
        tail = prose.text[sentence.end :].strip()
        if tail and not prose.masked[sentence.end :].strip("\ue002 \n\t\r."):
            return None  # a block follows: the product, not an announcement
        if not _FILLER.match(sentence.masked) or _announced(prose, sentence) is not None:
            return sentence
    return None


def _announced(prose: Prose, sentence: Sentence) -> Announcement | None:
    line = sentence.masked
    if _NOT_NOW.search(line):
        return None
    for pattern in (_SOON_EN, _WHILE, _SOON_ING, _BARE_ING, _CALLING):
        if match := pattern.search(line):
            groups = match.groupdict()
            base, gerund = groups.get("base"), (groups.get("gerund") or "").lower()
            kinds = AHEAD[base] if base else GERUND[gerund]
            return _announce(prose, sentence, kinds, base or gerund, match.end())
    for table, foreign in zip(SOON, _SOON_FOREIGN, strict=True):
        if match := foreign.search(line):
            verb = _verb(match)
            return _announce(prose, sentence, table[verb], verb, 0)
    return None


def _announce(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, at: int) -> Announcement:
    return Announcement(kinds, verb, prose.text[sentence.start + at : sentence.end][:240], sentence.start, sentence.end)


def _verb(match: re.Match[str]) -> str:
    return next(word for name, word in match.groupdict().items() if word and name.startswith("verb")).lower()
