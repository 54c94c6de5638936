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

from wirelint.knowledge.actions import BASE, PARTICIPLE, Kind, Topic
from wirelint.knowledge.claim_patterns import ADVERBS, BY_OTHERS, EARLIER, FINITE, LABELLED, TEMPLATE, UNREAL
from wirelint.knowledge.claims import Claim, letter_start
from wirelint.knowledge.echoes import folded, told_back
from wirelint.knowledge.lemmas import PARTICIPLES, PASTS, stem
from wirelint.knowledge.meant import is_news
from wirelint.knowledge.prose import Prose, Sentence
from wirelint.knowledge.reach import heads_text, is_given
from wirelint.knowledge.toolkinds import Ability, does, name_words, shares_signs, topics_in

LONGEST_REPLY = 500
_LONGEST_ORDER = 300
_FEW = 4
"""Sentences of a reply that may tell what was done; the rest are talk."""
_ED = r"[A-Za-z][a-z]+(?:-[a-z]+)?(?<!\bne)(?<!\bse)(?<!\bfe)(?<!\bspe)(?<!\bexce)(?<!\binde)(?<!\bhundr)(?<!\bproce)ed"
_FINISHED = rf"(?:{_ED}|{'|'.join(sorted(PARTICIPLES, key=len, reverse=True))})"
_PAST = rf"(?:{_ED}|{'|'.join(sorted(PASTS, key=len, reverse=True))}|set|put|cut|shut|split|reset)"
_MAY_FINISH = re.compile(
    rf"ed\b|\b(?:{'|'.join(sorted(PARTICIPLES | PASTS))})\b|\b(?:complete|successful|on|off|open|live|underway)\b|"
    r"\bge\w{3,}t\b|iert\b|[aiu][dt][oae]s?\b|é(?:e|s|es)?\b|[已成完]",
    re.IGNORECASE,
)
_WHO = r"(?:[^,;:(]|\([^()\n]{0,40}\)|(?<=\d)[,:](?=\d))"
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
    rf"^(?:Successfully )?(?P<verb>(?:[A-Z][a-z]+(?:-[a-z]+)?ed|{'|'.join(sorted(form.capitalize() for form in PASTS))}|Set|Put|Cut|Reset))"
    r"(?: |: )(?=\S)"
)
_COMES_OFF = re.compile(
    r"^(?P<who>[^,;:!?]{1,90}?) (?:is |are )?(?:now |all )?(?P<verb>complete|completed|confirmed|successful|underway|live)\b"
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
_SUPPOSED = re.compile(
    r"\b(?:if|would|could|should|might|may|suppose|imagine|assuming|unless|whether|as if|once|when|until|before|whenever|"
    r"believe|think|probably|perhaps|maybe|wish|for example|for instance|such as|after|every time|not|never)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Before a subject: `UNREAL` without the words that are things as well, a claim or a say."""
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
    r"this sentence|ich habe|hat|wurden?|j['’]ai|as-tu|avez-vous|¿|(?:^|\s)(?:comment|pourquoi|warum|wie|wann|was|wer|cómo|por qué|"
    r"qué|come|perché|como|por que)\b|my (?:draft|essay|text|code))\b",
    re.IGNORECASE,
)
_STATED = re.compile(r"\b(?:is|are|['’]s|['’]re)\b|\w['’]s\b", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:can|could|would|will) (?:you|u)\b|\bplease\b|\bmind \w+ing\b|\bany chance\b", re.IGNORECASE)
_MATERIAL = re.compile(r"\n|：|:(?=\s)|[\"“„«`][^\"”“»`]{40,}")
_LIGHT = frozenset(
    stem(word)
    for word in ("complete", "confirm", "finish", "process", "submit", "place", "queue", "apply", "initiate", "start", "begin",
                 "handle", "successful", "underway", "schedule", "arrange", "reserve", "book", "live")
)  # fmt: skip
"""Verbs that say of anything that it was done."""
_STATES = frozenset({"on", "off", "open", "closed", "running", "playing", "heating", "charging"})
_SMALL = frozenset(
    stem(word)
    for word in "the a an of and or to in on for by with from its it is are be as at this that use user new tool any all one id "
    "number string value name text data given get return result current your my our you up down out off now has have been will "
    "can set using via into per not no".split()
)
_IT = re.compile(r"\b(?:it|this|that|them|these|those)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[\w-]+(?:[._/-][\w-]+)+|\b[A-Za-z]*\d{2,}[\w.-]*\w")
_IN_THE_HEAD = frozenset(
    stem(word)
    for word in ("convert calculate compute multiply divide add subtract sort count translate summarize summarise compare explain "
                 "shorten rephrase list write name round solve estimate pick choose assume rank rewrite describe review analyze "
                 "analyse check format parse decode encode merge combine simplify factor prove").split()
)  # fmt: skip
"""Verbs of what a model may do by itself."""
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_WORD = re.compile(r"[^\W\d_]{2,}|[A-Za-z]*\d[\w.-]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOOKS: frozenset[Kind] = frozenset({"search", "read"})


_WRITTEN: frozenset[Topic] = frozenset({"knowledge", "web", "file", "mail"})
"""What a model may quote by heart, or the user may have shown."""
_READ_OFF = re.compile(
    r"\b(?:[Aa]ccording to|[Bb]ased on|[Pp]er) (?:the|your|our) (?P<noun>[\w-]+(?: [\w-]+)?)|"
    r"^[^\w]{0,4}The (?P<noun2>[\w-]+(?: [\w-]+)?) (?:shows|reads|reports|indicates|registers|is (?:showing|reading|reporting))\b"
)
_LOOKED = re.compile(
    r"\bI(?:['’]ve| have)? (?:just |now )?(?:checked|looked at|consulted|read|pulled up|queried|looked up) (?:the|your|our) "
    r"(?P<noun>[\w-]+(?: [\w-]+)?)"
)


_PERFECT_ABROAD = re.compile(
    r"\b(?:[Ii]ch habe|habe ich|ist|sind|wurden?) [^.!?;:]{0,120}?\b((?:[a-zäöü]{2,6})?ge[a-zäöüß]{3,}t|[a-zäöü]{3,}iert)(?=[.!,]|$| und\b)|"
    r"\b[Jj]['’]ai (?:bien |aussi )?(\w{3,}é)\b|\b(?:a|ont) (?:bien )?été (\w{3,}é)(?:e|s|es)?\b|"
    r"\b(?:[Hh]e|[Ss]e (?:ha|han)|(?:ha|han) sido) (\w{3,}[ai]d[oa])s?\b|\b(?:foi|foram) (\w{3,}[ai]d[oa])s?\b|"
    r"\b(?:[Hh]o|è stat[oa]|sono stat[ie]) (\w{3,}[aiu]t[oaie])\b"
)
_CHINESE = re.compile(r"已(?:经|為|为|将|把)?[\u4e00-\u9fff]|[\u4e00-\u9fff](?:成功|完成|完毕)[。！]?$")
_UNREAL_CHINESE = re.compile(
    r"如果|若|假如|一旦|是否|吗|没有|没|未|尚|不|可以|建议|例如|比如|之前|曾|上次|您已经?[有在]|据"
)
_QUESTION_CHINESE = re.compile(r"[吗呢？]|什么|怎么|如何|为什么|多少|是否|哪|几|翻译|写|解释|我已|我刚|[了过]$")
_UNREAL_ABROAD = re.compile(
    r"\b(?:wenn|falls|sobald|würde|könnte|hätte|ob|nicht|kein\w*|nie|bereits|schon|von (?:dir|ihnen|der|dem|einem|einer)|si|lorsque|quand|dès|ne|pas|déjà|par (?:le|la|un|une|votre)|"
    r"cuando|no|aún|ya|por (?:el|la|un|una|su|tu)|se quando|não|ainda|já|non|ancora|già|dal\w*)\b",
    re.IGNORECASE,
)
_ROMANCE = (
    "e",
    "ado",
    "ada",
    "ido",
    "ida",
    "ato",
    "ata",
    "ati",
    "ate",
    "ito",
    "ita",
    "iti",
    "ite",
    "uto",
    "uta",
    "uti",
    "ute",
)
_ENDING = re.compile(r"(?:[aiu][dt][oaie]|e)$")
_PREFIX = re.compile(r"^(?:[a-z]{2,6})?ge(?=[a-z]{4})")
_ROOT = 4


@dataclass(frozen=True, slots=True)
class _Found:
    """A finished act: its verb and its sentence. `said`: in the first person; `weak`: may be a state as well; `yours`: told as one of the user; `abroad`: a root."""

    verb: str
    sentence: Sentence
    said: bool = False
    weak: bool = False
    yours: bool = False
    abroad: bool = False


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
    if len(prose.text) > LONGEST_REPLY or prose.fenced or not _MAY_FINISH.search(prose.text):
        return None
    if _UNSURE.search(_CLOSING.sub("", prose.masked)) or _is_for_others(prose):
        return None
    acts = (act for act in _acts(prose) if not act.weak and not act.yours)
    return next(
        (
            act.sentence
            for act in acts
            if _links(act, one, arguments, prose.text, _shown(prose, act.sentence), ran=True)
        ),
        None,
    )


def read_off(
    prose: Prose, words: str, heard: str, able: Sequence[Ability], called: Iterable[str]
) -> tuple[Claim, Ability] | None:
    """What is told as read from an instrument, which nobody has read: "according to the sensor, it is at 18 %"."""
    if len(prose.text) > LONGEST_REPLY or not words or _UNSURE.search(_CLOSING.sub("", prose.masked)):
        return None
    done = set(called)
    for sentence in prose.sentences[:_FEW]:
        found = None if sentence.question else (_READ_OFF.search(sentence.masked) or _LOOKED.search(sentence.masked))
        if found is None or UNREAL.search(sentence.masked[: found.start()]) or EARLIER.search(sentence.masked):
            continue
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
        if abroad := _abroad(line, sentence):
            yield abroad
            continue
        if terse := _TERSE.match(line):
            yield _Found(terse["verb"].lower(), sentence)
        yield from _impersonal(line, sentence)


def _abroad(line: str, sentence: Sentence) -> _Found | None:
    """A perfect of another language, with the root of its participle."""
    if _CHINESE.search(line) and not _UNREAL_CHINESE.search(line):
        return _Found("已", sentence, abroad=True)
    match = _PERFECT_ABROAD.search(line)
    if match is None or _UNREAL_ABROAD.search(line):
        return None
    verb = folded(next(filter(None, match.groups())))
    root = (
        _ENDING.sub("", verb) if verb.endswith(_ROMANCE) else _PREFIX.sub("", verb).removesuffix("t").removesuffix("en")
    )
    return _Found(root, sentence, abroad=True) if len(root) >= _ROOT else None


def _impersonal(line: str, sentence: Sentence) -> Iterator[_Found]:
    for form in _FORMS:
        match = form.match(line)
        if match is None or _SUPPOSED.search(match["who"]) or _SECOND_PERSON.search(match["who"].strip()):
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


def _links(
    act: _Found, one: Ability, words: str, heard: str, told: str, *, texts: bool = False, ran: bool = False
) -> bool:
    """Whether an act is what the order wanted and the tool does.

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
    if heads_text(line) and not named and not said & described & order:
        return False
    if is_given(line) and not (own and (named or (thing and shared))):
        return False
    topics = topics_in(line)
    if topics and one.topics and not topics & one.topics and not named:
        return False
    if one.kinds and one.kinds <= _LOOKS and not own:
        return False
    if act.weak and not (echoed and (news or own or wanted or (named and len(shared) > 1))):
        return False
    if own:
        return thing or bool(shared)
    if act.verb in _STATES or act.verb.startswith("at "):
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


def _links_abroad(act: _Found, one: Ability, words: str, told: str) -> bool:
    """Whether the root is one of the tool's, or of the order's, and what is spoken of that of both."""
    if act.verb == "已":
        asked = _QUESTION_CHINESE.search(words) is None
        return asked and bool(told_back(told, words)) and shares_signs(told, one.tool)
    own = {folded(word) for word in (*name_words(one.tool.name), *_LETTERS.findall(one.tool.description[:200]))}
    order = {folded(word) for word in _LETTERS.findall(words)}
    rooted = any(word.startswith(act.verb) for word in own)
    wanted = any(word.startswith(act.verb) for word in order)
    said = {folded(word) for word in _LETTERS.findall(told)}
    thing = {word for word in said & own if len(word) >= _ROOT and not word.startswith(act.verb)}
    shared = told_back(told, words)
    return (
        bool(shared)
        and not heads_text(told)
        and ((rooted and (bool(thing) or len(shared) > 1)) or (wanted and bool(thing)))
    )


def _is_outside(act: _Found, told: str, words: str) -> bool:
    """Whether an act in the very verb of the order is no work of the head: it names what has a name outside."""
    if stem(act.verb) in _IN_THE_HEAD or re.search(r":\s", told):
        return False
    return any(mark in told for mark in _IDENTIFIER.findall(words))


def _fields(one: Ability) -> frozenset[str]:
    properties = (one.tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(stem(word) for name in properties for word in name_words(name)) - _SMALL
