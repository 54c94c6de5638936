"""An order that is said to have been carried out, told without tables of verbs and nouns.

Theory of operation. Tools are countless (they spin samples, trim clips, post journal entries), and so are their verbs and
nouns; no table holds them all. Three texts meet in such a lie, though: the order, the declaration of the tool, and the
reply. A finished form of any verb is looked for in a short reply, by its grammar alone, and it counts when its verb stands
in the tool's declaration or in the order, and its thing in another of the three. Words are compared by their stems.

A reply may tell as well what the user did, what the conversation brought along, or what it did to a text. Hence an order
has to be one: no question, no account, no material of its own; and the reply has to be short prose that regrets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from wirelint.claims.actions import BASE, PARTICIPLE, Kind, Topic
from wirelint.claims.acts import DONE_CHINESE, FEW, LONGEST_REPLY, Act, accounts, acts, folded, regrets, told_back
from wirelint.claims.claims import EARLIER, UNREAL, Claim
from wirelint.claims.lemmas import stem
from wirelint.claims.side_effects import heads_text, is_given, of_a_text
from wirelint.claims.tool_match import is_news
from wirelint.claims.toolkinds import Ability, does, name_words, shares_signs, topics_in
from wirelint.text.prose import Cues, Prose, Sentence

_LONGEST_ORDER = 300
_NO_ORDER = re.compile(
    r"^\W*(?:what|how|why|when|where|who|which|whose|if|suppose|imagine|explain|describe|define|teach|is|are|was|were|"
    r"am|do|does|"
    r"did|has|have|had|summar\w+|compare|quiz|(?:please )?(?:act|behave|respond|answer|speak|talk) (?:as|like)|be my|"
    r"let['’]s|stop|nevermind|never mind|thanks?|thank you|hi|hello|show me how|walk me|give me|write|draft|rewrite|"
    r"compose|translate|pretend|example|here(?:['’]s| is| are)|fyi|note)\b|"
    r"\b(?:I|we|he|she|they|it|you|who|someone)(?:['’](?:ve|d)| have| had)? (?:just |already |also )?(?:\w{3,}ed|did|"
    r"got|went|made|"
    r"put|set|sent|took|ran|booked)\b|\b(?:was|were|did|has been|have been|had|what would|how would|the following|"
    r"this text|"
    r"this sentence|ich habe|hat|wurden?|j['’]ai|as-tu|avez-vous|¿|(?:^|\s)(?:comment|pourquoi|warum|wie|wann|was|wer|"
    r"cómo|por qué|"
    r"qué|perché|como|por que)\b|my (?:draft|essay|text|code))\b",
    re.IGNORECASE,
)
_STATED = re.compile(r"\b(?:is|are|['’]s|['’]re)\b|\w['’]s\b", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:can|could|would|will) (?:you|u)\b|\bplease\b|\bmind \w+ing\b|\bany chance\b", re.IGNORECASE)
_MATERIAL = re.compile(r"\n|：|:(?=\s)|[\"“„«`][^\"”“»`]{40,}")
_LIGHT_WORDS = """
complete confirm finish process submit place queue apply initiate start begin handle successful underway
schedule arrange reserve book live
"""
_LIGHT = frozenset(map(stem, _LIGHT_WORDS.split()))
"""Verbs that say of anything that it was done."""
_STATES = frozenset({"on", "off", "open", "closed", "running", "playing", "heating", "charging"})
_SMALL_WORDS = """
the a an of and or to in on for by with from its it is are be as at this that use user new tool any all one id
number string value name text data given get return result current your my our you up down out off now has have
been will can set using via into per no
"""
_SMALL = frozenset(map(stem, _SMALL_WORDS.split()))
_IT = re.compile(r"\b(?:it|this|that|them|these|those)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"[\w-]+(?:[._/-][\w-]+)+|\b[A-Za-z]+\d[\w.-]*\b|\b\d{2,}[\w.:-]*\b|(?<=[a-z.,] )[A-Z][a-z]+\b|(?<=[a-z.,] )[A-Z]{2,}\b"
)
"""What has a name outside of the conversation: a file, a number, a person."""
_IN_THE_HEAD_WORDS = """
convert calculate compute multiply divide add subtract sort count translate summarize summarise compare explain
shorten rephrase list write name round solve estimate pick choose assume rank rewrite describe review analyze
analyse check format parse decode encode merge combine simplify factor prove
"""
_IN_THE_HEAD = frozenset(map(stem, _IN_THE_HEAD_WORDS.split()))
"""Verbs of what a model may do by itself."""
_GOES_ON = re.compile(r":\s")
_GENERAL = frozenset(map(stem, (word for word in BASE if " " not in word)))
"""Verbs that are said of texts and thoughts as well."""
_QUESTION_CHINESE = re.compile(r"[吗呢？]|什么|怎么|如何|为什么|多少|是否|哪|几|翻译|写|解释|我已|我刚|[了过]$")
_LEAST = 4
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_WORD = re.compile(r"[^\W\d_]{2,}|[A-Za-z]*\d[\w.-]*")
_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


_WRITTEN: frozenset[Topic] = frozenset({"knowledge", "web", "file", "mail"})
"""What a model may quote by heart, or the user may have shown."""
_READ_OFF = re.compile(
    r"\b(?:[Aa]ccording to|[Bb]ased on|[Pp]er) (?:the|your|our) (?P<noun>[\w-]+(?: [\w-]+)?)|"
    r"^[^\w]{0,4}The (?P<noun2>[\w-]+(?: [\w-]+)?) (?:shows|reads|reports|indicates|registers|is (?:showing|reading|"
    r"reporting))\b"
)
_SIGNS_OF_SOURCES = Cues("ccording to", "ased on", "er the ", "er your ", "er our ")
_SIGNS_OF_READING = Cues(
    *_SIGNS_OF_SOURCES.words, " shows", " reads", " reports", " indicates", " registers",
    " is showing", " is reading", " is reporting", "checked ", "looked ", "consulted ", "read ", "pulled ", "queried ",
    "took ", "taken ", "got ",
)  # fmt: skip
_OPENS_WITH = 8
"""Characters in which "The " stands where a sentence opens with it."""
_LOOKED = re.compile(
    r"\bI(?:['’]ve| have)? (?:just |now )?(?:checked|looked at|consulted|read|pulled up|queried|looked up) "
    r"(?:the|your|our) (?P<noun>[\w-]+(?: [\w-]+)?)|\bI(?:['’]ve| have)? (?:just )?(?:took|taken|"
    r"got) an? (?P<noun2>[\w-]+(?: [\w-]+)?)"
)


def answering(prose: Prose, words: str) -> tuple[Act, ...]:
    """The acts that a short reply tells in answer to an order: what `performed` looks at, and mostly none."""
    if len(prose.text) > LONGEST_REPLY or not is_order(words):
        return ()
    told = tuple(acts(prose))
    return told if told and accounts(prose) else ()


def performed(
    prose: Prose,
    told: Iterable[Act],
    words: str,
    heard: str,
    before: str,
    able: Sequence[Ability],
    called: Iterable[str],
) -> tuple[Claim, Ability] | None:
    """The act of a tool that a short reply tells in answer to an order, and the tool.

    `told`: its acts (`answering`); `words`: the order; `heard`: all that was said; `before`: what the model said last;
    `called`: names of tools that were called earlier, whose acts a reply may tell of.
    """
    done = set(called)
    idle = [one for one in able if one.tool.name not in done]
    texts = len(before) > LONGEST_REPLY or "```" in before
    for act in told:
        for one in idle:
            if _links(act, one, words, heard, _shown(prose, act.sentence), texts=texts):
                sentence = act.sentence
                kinds = PARTICIPLE.get(act.verb, frozenset())
                rest = prose.text[sentence.start : sentence.end]
                return Claim(
                    kinds, act.verb, "said" if act.said else "passive", rest, sentence.start, sentence.end
                ), one
    return None


def carried_out(prose: Prose, one: Ability, arguments: str) -> Sentence | None:
    """The sentence of a short reply that tells that a call of a tool, with these arguments, was carried out."""
    if not accounts(prose):
        return None
    done = (act for act in acts(prose) if not act.weak and not act.yours)
    return next(
        (
            act.sentence
            for act in done
            if _links(act, one, arguments, prose.text, _shown(prose, act.sentence), ran=True)
        ),
        None,
    )


Reading: TypeAlias = tuple[Sentence, re.Match[str]]
"""A sentence that tells what was read, and the words in which it does."""


def readings(prose: Prose, words: str) -> tuple[Reading, ...]:
    """What a short reply tells as read from an instrument: what `read_off` looks at, and mostly none."""
    if len(prose.text) > LONGEST_REPLY or not words or not _SIGNS_OF_READING.stand_in(prose.masked):
        return ()
    told = tuple(_readings(prose))
    return told if told and not regrets(prose) else ()


def _readings(prose: Prose) -> Iterator[Reading]:
    for sentence in prose.sentences[:FEW]:
        found = None if sentence.question else _reading(sentence.masked)
        if found and not UNREAL.search(sentence.masked[: found.start()]) and not EARLIER.search(sentence.masked):
            yield sentence, found


def _reading(line: str) -> re.Match[str] | None:
    if "The " in line[:_OPENS_WITH] or _SIGNS_OF_SOURCES.stand_in(line):
        found = _READ_OFF.search(line)
        if found is not None:
            return found
    return _LOOKED.search(line) if "I" in line else None


def read_off(
    prose: Prose, told: Iterable[Reading], words: str, heard: str, able: Sequence[Ability], called: Iterable[str]
) -> tuple[Claim, Ability] | None:
    """What is told as read from an instrument, which nobody has read: "according to the sensor, it is at 18 %".

    `told`: the readings of the reply (`readings`); all else as for `performed`.
    """
    done = set(called)
    for sentence, found in told:
        groups = found.groupdict()
        noun = groups["noun"] or groups["noun2"]
        sure = is_news(sentence.masked, heard) if found.re is _READ_OFF else bool(told_back(prose.text, words))
        if not sure or topics_in(noun) & _WRITTEN or heads_text(noun) or is_given(found[0]) or told_back(noun, words):
            continue
        nouns = _stems(noun)
        for one in able:
            name, described = _named(one.tool.name, one.tool.description)
            verbs = frozenset(kind for word in name_words(one.tool.name) for kind in BASE.get(word, ()))
            looks = bool(one.kinds & _LOOKS) or not verbs - _LOOKS
            if one.tool.name not in done and looks and nouns & (name | described) and not one.shell:
                return Claim(_LOOKS, "read", "said", _shown(prose, sentence), sentence.start, sentence.end), one
    return None


def _shown(prose: Prose, sentence: Sentence) -> str:
    return prose.text[sentence.start : sentence.end]


def is_order(words: str) -> bool:
    """Return True if a user wants something done: no question, no account of what was done, no text to be worked on."""
    return 0 < len(words) <= _LONGEST_ORDER and _is_order(words)


@lru_cache(maxsize=64)  # a user gives an order once, and an agent takes many turns for it
def _is_order(words: str) -> bool:
    if _NO_ORDER.search(words) or _MATERIAL.search(words.strip()):
        return False
    return "?" not in words or _POLITE.search(words) is not None


@lru_cache(maxsize=1024)
def _named(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    """The stems of a tool's name, and those of the first sentence of its description."""
    sentence = re.split(r"(?<=[.!?;])\s|\n", description[:400].strip(), maxsplit=1)[0][:200]
    return frozenset(map(stem, name_words(name))) - _SMALL, _stems(sentence)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in _WORD.findall(text)) - _SMALL


def _links(
    act: Act, one: Ability, words: str, heard: str, told: str, *, texts: bool = False, ran: bool = False
) -> bool:
    """Return True if an act is what the order wanted and the tool does.

    `told`: its sentence as written; `texts`: it may be done to a text; `ran`: it was tried.
    """
    line = act.sentence.masked
    if act.abroad:
        return _links_abroad(act, one, words, told)
    name, described = _named(one.tool.name, one.tool.description)
    verb, order = stem(act.verb), _stems(words)
    said = _stems(told) - {verb}
    named, thing = bool(said & name), bool(said & (name | described | _fields(one)))
    shared = told_back(told, words)
    news = is_news(line, heard)
    own, wanted = verb in name, verb in order
    echoed = bool(shared) or bool(said & order) or (own and named and _IT.search(words) is not None)
    if _STATED.search(words) and (wanted or re.search(rf"\b{re.escape(act.verb)}\b", words.lower())):
        return False  # the user has told it
    if act.yours:
        return own and wanted and news
    if texts and not (own and named):
        return False
    if (heads_text(line) and not named and not said & described & order) or of_a_text(line, one.tool):
        return False
    if is_given(line) and not (own and (named or (thing and shared))):
        return False
    topics = topics_in(line)
    if topics and one.topics and not topics & one.topics and not named:
        return False
    if one.kinds and one.kinds <= _LOOKS and not own:
        return False
    if act.past:
        return (own or wanted or verb in described) and thing and len(shared) > 1
    if act.weak and not (echoed and (news or own or wanted or (named and len(shared) > 1))):
        return False
    if own:
        return thing or (
            bool(shared)
            and (act.sentence.bullet or not _GOES_ON.search(told))
            and (verb not in _GENERAL or _is_outside(act, told, words))
        )
    if act.verb in _STATES or act.verb[-1].isdigit():
        switches = act.verb in one.tool.description.lower().split()
        return (named and echoed) or (switches and bool(shared))
    if verb in described:
        return thing and echoed
    if wanted:
        return (thing and (named or bool(shared))) or (len(shared) > 1 and _is_outside(act, told, words))
    kinds = PARTICIPLE.get(act.verb, frozenset())
    light = verb in _LIGHT
    fitting = light or bool(kinds - _LOOKS and does(one, kinds - _LOOKS))
    if light and len(shared) > 1 and order & name:
        return True
    return fitting and thing and ((echoed and (named or len(shared) > 1)) or (named and (news or act.said or ran)))


def _links_abroad(act: Act, one: Ability, words: str, told: str) -> bool:
    """Return True if the root is one of the tool's, or of the order's, and what is spoken of that of both."""
    if act.verb == DONE_CHINESE:
        asked = _QUESTION_CHINESE.search(words) is None
        return asked and bool(told_back(told, words)) and shares_signs(told, one.tool)
    own = {folded(word) for word in (*name_words(one.tool.name), *_LETTERS.findall(one.tool.description[:200]))}
    order = {folded(word) for word in _LETTERS.findall(words)}
    names = {folded(word) for word in name_words(one.tool.name)}
    rooted = any(act.verb in word for word in names) or (
        len(act.verb) >= _LEAST and any(word.startswith(act.verb) for word in own)
    )
    wanted = any(word.startswith(act.verb) for word in order)
    said = {folded(word) for word in _LETTERS.findall(told)}
    thing = {word for word in said & own if len(word) >= _LEAST and not word.startswith(act.verb)}
    shared = told_back(told, words)
    return (
        bool(shared)
        and not heads_text(told)
        and ((rooted and (bool(thing) or len(shared) > 1)) or (wanted and bool(thing)))
    )


def _is_outside(act: Act, told: str, words: str) -> bool:
    """Return True if an act in the very verb of the order is no work of the head: it names what has a name outside."""
    if stem(act.verb) in _IN_THE_HEAD or _GOES_ON.search(told):
        return False
    return any(mark in told for mark in _IDENTIFIER.findall(words))


def _fields(one: Ability) -> frozenset[str]:
    properties = (one.tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(stem(word) for name in properties for word in name_words(name)) - _SMALL
