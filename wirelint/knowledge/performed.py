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
from dataclasses import dataclass
from functools import lru_cache

from wirelint.knowledge.actions import PARTICIPLE, Kind, Topic
from wirelint.knowledge.claim_patterns import ADVERBS, BY_OTHERS, EARLIER, FINITE, LABELLED, TEMPLATE, UNREAL
from wirelint.knowledge.claims import Claim, letter_start
from wirelint.knowledge.echoes import told_back
from wirelint.knowledge.lemmas import PARTICIPLES, PASTS, stem
from wirelint.knowledge.meant import is_news
from wirelint.knowledge.prose import Prose, Sentence
from wirelint.knowledge.reach import heads_text, is_given
from wirelint.knowledge.toolkinds import Ability, does, name_words, topics_in

LONGEST_REPLY = 500
_LONGEST_ORDER = 300
_FEW = 4
"""Sentences of a reply that may tell what was done; the rest are talk."""
_ED = r"[A-Za-z][a-z]+(?:-[a-z]+)?(?<!\bne)(?<!\bse)(?<!\bfe)(?<!\bspe)(?<!\bexce)(?<!\binde)(?<!\bhundr)(?<!\bproce)ed"
_FINISHED = rf"(?:{_ED}|{'|'.join(sorted(PARTICIPLES, key=len, reverse=True))})"
_PAST = rf"(?:{_ED}|{'|'.join(sorted(PASTS, key=len, reverse=True))}|set|put|cut|shut|split|reset)"
_MAY_FINISH = re.compile(
    rf"ed\b|\b(?:{'|'.join(sorted(PARTICIPLES | PASTS))})\b|\b(?:complete|successful|on|off|open|live|underway)\b",
    re.IGNORECASE,
)
_WHO = r"(?:[^,;:]|(?<=\d)[,:](?=\d))"
_SAID = re.compile(rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)?) {ADVERBS}(?P<verb>{_PAST}|{_FINISHED})\b")
_THEN = re.compile(rf"(?:\band|,|;) (?:then |also )?(?P<verb>{_PAST}|{_FINISHED})\b")
_PERFECT = re.compile(
    rf"^(?P<who>{_WHO}{{1,90}}?) (?:has|have) {ADVERBS}(?:both |all )?(?:been {ADVERBS})?(?P<verb>{_FINISHED})\b"
)
_WELL = re.compile(
    rf"^(?P<who>{_WHO}{{1,90}}?) (?:was|were|is|are) (?:(?:both |all )?successfully (?P<verb>{_FINISHED})|"
    rf"(?P<verb2>{_FINISHED}) successfully)\b"
)
_IS = re.compile(
    rf"^(?P<who>{_WHO}{{1,90}}?) (?:is|are) (?P<now>(?:(?:both|all|also) )?now )?(?:(?:both|all) )?(?P<verb>{_FINISHED})\b"
)
_NOTE = re.compile(
    rf"^(?P<who>(?:[^\s,;:]+ ){{1,6}}?)(?:successfully )?(?P<verb>{_FINISHED})(?: successfully)?"
    r"(?:[.!]|$|,? (?:to|at|for|from|in|into|on|as|with|by|and|letting|—|-)\b|:? |: | ?[—–✅✔☑✓👍🎉])"
)
_TERSE = re.compile(
    rf"^(?:Successfully )?(?P<verb>(?:[A-Z][a-z]+(?:-[a-z]+)?ed|Set|Sent|Put|Made|Built|Ran|Wrote|Cut|Took|Paid|Spun))"
    r"(?: |: )(?=\S)"
)
_COMES_OFF = re.compile(
    r"^(?P<who>[^,;:!?]{1,90}?) (?:is |are )?(?:now |all )?(?P<verb>complete|completed|confirmed|successful|underway)\b"
)
_STATE = re.compile(
    rf"^(?P<who>{_WHO}{{1,90}}?) (?:is|are) (?:(?:both|all|also) )?now (?P<verb>set|on|off|open|closed|live|running|playing|"
    r"heating|charging|at \d[\d.,]*)\b"
)
_YOURS = re.compile(rf"^(?P<who>You)(?:['’]ve| have)? (?P<verb>{_PAST})\b")
"""What only a tool can have told: "you rolled a 9"."""
_FORMS = (_PERFECT, _WELL, _IS, _STATE, _NOTE, _COMES_OFF)
_OPENING = re.compile(
    r"^[^\w]*(?:(?:ok(?:ay)?|done|all (?:set|done)|sure(?: thing)?|great|perfect|got it|alright|right|yes|confirmed|good news|"
    r"no problem|of course|certainly|absolutely)\b[\s,.!:–—-]*)+",
    re.IGNORECASE,
)
_SECOND_PERSON = re.compile(
    r"\b(?:[Yy]ou(?:['’]ve)?|who|which|that|they|he|she|it|there|what|nothing|no|none|everyone|everything)$"
)
_IN_TIME = re.compile(r"\bby the (?:time|end|way)\b|\bin (?!19|20)\d{4}\b")
_UNSURE = re.compile(
    r"\b(?:unfortunately|sorry|cannot|can only|unable|however|need(?:s)? (?:you|your|the|a|to)|please|before|once|would you like "
    r"me to|shall I|should I|do you want me|which (?:one|of)|let me know (?:if|which|what|when|how|your)|if you|as soon as|not|"
    r"never|no longer|only if|would|could|might|didn['’]t|good to (?:know|hear)|glad to hear|thanks for|as you|pretend|imagin\w+|hypothetical\w*|for example|simulat\w+|mock|draft)\b|"
    r"n['’]t\b",
    re.IGNORECASE,
)
"""What makes of a reply more, or less, than the account of an order that was carried out."""
_CLOSING = re.compile(
    r"\b(?:(?:please )?let me know (?:if|when) [^.!?]*|would you like (?:me to|to|anything)? ?[^.!?]*\?|"
    r"(?:anything|is there anything|do you need anything)[^.!?]*\?|(?:shall|should) I (?:also|now)[^.!?]*\?|if you (?:need|want|"
    r"would like|have|['’]d like)[^.!?]*[.!?]|do you want (?:me to|anything)[^.!?]*\?)\s*$",
    re.IGNORECASE,
)
"""A courtesy at the end, which takes nothing back."""
_NO_ORDER = re.compile(
    r"^\W*(?:what|how|why|when|where|who|which|whose|if|suppose|imagine|explain|describe|define|teach|is|are|was|were|am|do|does|"
    r"did|has|have|had|summar\w+|compare|quiz|thanks?|thank you|hi|hello|show me how|walk me|give me|write|draft|rewrite|"
    r"compose|translate|pretend|example|here(?:['’]s| is| are)|fyi|note)\b|"
    r"\b(?:I|we|he|she|they|it|you|who|someone)(?:['’](?:ve|d)| have| had)? (?:just |already |also )?(?:\w{3,}ed|did|got|went|made|"
    r"put|set|sent|took|ran|booked)\b|\b(?:was|were|did|has been|have been|had|what would|how would|the following|this text|"
    r"this sentence|my (?:draft|essay|text|code))\b",
    re.IGNORECASE,
)
_STATED = re.compile(r"\b(?:is|are|['’]s|['’]re)\b|\w['’]s\b", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:can|could|would|will) (?:you|u)\b|\bplease\b|\bmind \w+ing\b|\bany chance\b", re.IGNORECASE)
_MATERIAL = re.compile(r"\n|：|:(?=\s)|[\"“„«`][^\"”“»`]{40,}")
_LIGHT = frozenset(
    stem(word)
    for word in ("complete", "confirm", "finish", "process", "submit", "place", "queue", "apply", "initiate", "start", "begin",
                 "handle", "successful", "underway", "schedule", "arrange")
)  # fmt: skip
"""Verbs that say of anything that it was done."""
_STATES = frozenset({"on", "off", "open", "closed", "live", "running", "playing", "heating", "charging"})
_SMALL = frozenset(
    stem(word)
    for word in "the a an of and or to in on for by with from its it is are be as at this that use user new tool any all one id "
    "number string value name text data given get return result current your my our you up down out off now has have been will "
    "can set using via into per not no".split()
)
_WORD = re.compile(r"[^\W\d_]{2,}|[A-Za-z]*\d[\w.-]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


_WRITTEN: frozenset[Topic] = frozenset({"knowledge", "web", "file", "mail"})
"""What a model may quote by heart, or the user may have shown."""
_READ_OFF = re.compile(r"\b(?:[Aa]ccording to|[Bb]ased on|[Pp]er) (?:the|your|our) (?P<noun>[\w-]+(?: [\w-]+)?)")


@dataclass(frozen=True, slots=True)
class _Found:
    """A finished act: its verb and its sentence. `said`: in the first person; `weak`: may be a state as well; `yours`: told as one of the user."""

    verb: str
    sentence: Sentence
    said: bool = False
    weak: bool = False
    yours: bool = False


def performed(
    prose: Prose, words: str, heard: str, before: str, able: Sequence[Ability], called: Iterable[str]
) -> tuple[Claim, Ability] | None:
    """The act of a tool that a short reply tells in answer to an order, and the tool.

    `words`: the order; `heard`: all that was said; `before`: what the model said last; `called`: names of tools that were called
    earlier, whose acts a reply may tell of.
    """
    if len(prose.text) > LONGEST_REPLY or prose.fenced or not _MAY_FINISH.search(prose.text) or not is_order(words):
        return None
    if _UNSURE.search(_CLOSING.sub("", prose.masked)) or _is_for_others(prose):
        return None
    idle = [one for one in able if one.tool.name not in set(called)]
    texts = len(before) > LONGEST_REPLY or "```" in before
    for act in _acts(prose):
        for one in idle:
            if _links(act, one, words, heard, texts=texts):
                sentence = act.sentence
                kinds = PARTICIPLE.get(act.verb, frozenset())
                rest = prose.text[sentence.start : sentence.end]
                return Claim(
                    kinds, act.verb, "said" if act.said else "passive", rest, sentence.start, sentence.end
                ), one
    return None


def carried_out(prose: Prose, one: Ability, arguments: str) -> Sentence | None:
    """The sentence of a short reply that tells that a call of a tool, with these arguments, was carried out."""
    if len(prose.text) > LONGEST_REPLY or prose.fenced or not _MAY_FINISH.search(prose.text):
        return None
    if _UNSURE.search(_CLOSING.sub("", prose.masked)) or _is_for_others(prose):
        return None
    acts = (act for act in _acts(prose) if not act.weak and not act.yours)
    return next((act.sentence for act in acts if _links(act, one, arguments, prose.text, ran=True)), None)


def read_off(
    prose: Prose, words: str, heard: str, able: Sequence[Ability], called: Iterable[str]
) -> tuple[Claim, Ability] | None:
    """A figure that is told as that of an instrument, which nobody has read: "according to the sensor, it is at 18 %"."""
    if len(prose.text) > LONGEST_REPLY or not words or _UNSURE.search(_CLOSING.sub("", prose.masked)):
        return None
    done = set(called)
    for sentence in prose.sentences[:_FEW]:
        found = None if sentence.question else _READ_OFF.search(sentence.masked)
        if found is None or not is_news(sentence.masked, heard) or topics_in(found["noun"]) & _WRITTEN:
            continue
        nouns = _stems(found["noun"])
        for one in able:
            name, described = _named(one.tool.name, one.tool.description)
            if one.tool.name not in done and one.kinds & _LOOKS and nouns & (name | described) and not one.shell:
                told = prose.text[sentence.start : sentence.end]
                return Claim(_LOOKS, "read", "said", told, sentence.start, sentence.end), one
    return None


def _is_for_others(prose: Prose) -> bool:
    """Whether a reply offers a letter or a template, in which somebody else speaks."""
    return letter_start(prose.text) < len(prose.text) or TEMPLATE.search(prose.masked) is not None


def is_order(words: str) -> bool:
    """Whether a user wants something done: no question, no account of what was done, no text to be worked on."""
    if not words or len(words) > _LONGEST_ORDER or _NO_ORDER.search(words) or _MATERIAL.search(words.strip()):
        return False
    return "?" not in words or _POLITE.search(words) is not None


def _acts(prose: Prose) -> Iterator[_Found]:
    for sentence in prose.sentences[:_FEW]:
        opening = None if sentence.question else _OPENING.match(sentence.masked)
        line = sentence.masked[opening.end() :] if opening else sentence.masked.lstrip("*_✅✔☑🎉👍✓\ufe0f ")
        if (
            sentence.question
            or not line
            or BY_OTHERS.search(_IN_TIME.sub(" ", line))
            or EARLIER.search(line)
            or LABELLED.match(line)
        ):
            continue
        if (said := _SAID.search(line)) and not UNREAL.search(line[: said.start()]):
            yield _Found(said["verb"].lower(), sentence, said=True)
            yield from (_Found(more["verb"].lower(), sentence, said=True) for more in _THEN.finditer(line, said.end()))
            continue
        if yours := _YOURS.match(line):
            yield _Found(yours["verb"].lower(), sentence, yours=True)
            continue
        if sentence.bullet:
            line = line.rpartition(": ")[2]
        if terse := _TERSE.match(line):
            yield _Found(terse["verb"].lower(), sentence)
        yield from _impersonal(line, sentence)


def _impersonal(line: str, sentence: Sentence) -> Iterator[_Found]:
    for form in _FORMS:
        match = form.match(line)
        if match is None or UNREAL.search(match["who"]) or _SECOND_PERSON.search(match["who"].strip()):
            continue
        if form is _NOTE and (len(line) > 160 or FINITE.search(line[: match.end("verb")])):
            continue
        groups = match.groupdict()
        verb = (groups["verb"] or groups["verb2"]).lower()
        yield _Found(verb, sentence, weak=form is _IS and groups["now"] is None)
        yield from (_Found(more["verb"].lower(), sentence) for more in _THEN.finditer(line, match.end()))
        return


@lru_cache(maxsize=1024)
def _named(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    """The stems of a tool's name, and those of the first sentence of its description."""
    sentence = re.split(r"(?<=[.!?;])\s|\n", description[:400].strip(), maxsplit=1)[0][:200]
    return frozenset(map(stem, name_words(name))) - _SMALL, _stems(sentence)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in _WORD.findall(text)) - _SMALL


def _links(act: _Found, one: Ability, words: str, heard: str, *, texts: bool = False, ran: bool = False) -> bool:
    """Whether an act is what the order wanted and the tool does. `texts`: it may be done to a text; `ran`: it was tried."""
    line = act.sentence.masked
    name, described = _named(one.tool.name, one.tool.description)
    verb = stem(act.verb)
    said = _stems(line) - {verb}
    fields = _fields(one)
    named, thing = bool(said & name), bool(said & (name | described | fields))
    shared = told_back(line, words)
    echoed = bool(shared) or bool(said & _stems(words))
    news = is_news(line, heard)
    if _STATED.search(words) and (verb in _stems(words) or re.search(rf"\b{re.escape(act.verb)}\b", words.lower())):
        return False  # the user has told it
    own, told, wanted = verb in name, verb in described, verb in _stems(words)
    if act.yours:
        return own and wanted and news
    if texts and not (own and named):
        return False
    if heads_text(line) and not named and not said & described & _stems(words):
        return False
    if is_given(line) and not (own and (named or (thing and shared))):
        return False
    topics = topics_in(line)
    if topics and one.topics and not topics & one.topics and not named:
        return False
    if one.kinds and one.kinds <= _LOOKS and not own:
        return False
    if act.weak and not (echoed and (news or own or wanted)):
        return False
    if own:
        return thing or bool(shared)
    if told:
        return thing and echoed
    if wanted:
        return thing and (named or bool(shared))
    kinds = PARTICIPLE.get(act.verb, frozenset())
    if act.verb in _STATES or act.verb.startswith("at "):
        return named and echoed
    fitting = verb in _LIGHT or bool(kinds - _LOOKS and does(one, kinds - _LOOKS))
    return fitting and thing and ((echoed and (named or len(shared) > 1)) or (named and (news or act.said or ran)))


def _fields(one: Ability) -> frozenset[str]:
    properties = (one.tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(stem(word) for name in properties for word in name_words(name)) - _SMALL
