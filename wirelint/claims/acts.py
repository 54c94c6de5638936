"""Finished acts that a short reply reports, found by grammar alone: any verb, with or without a subject.

What makes a sentence unreal (a condition, a negation, another time, a question) leaves no act in it. Whether an act is that
of a tool is not decided here: see `performed`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from wirelint import lexicon
from wirelint.claims.actions import AHEAD, ASKED, DONE, GERUND, PARTICIPLE, PARTICIPLES, PAST, PASTS, SOON, alternatives
from wirelint.claims.claims import ADVERBS, BY_OTHERS, EARLIER, FINITE, LABELLED, TEMPLATE, UNREAL, letter_start
from wirelint.text.prose import CODE, QUOTE, Prose, Sentence

_PHRASES = lexicon.Phrases("acts")

# What a text repeats of the user's last words: the very thing that an order was about, whatever noun it has.
#
# Nouns are countless, and tables of them never complete. A reply that announces or claims what was ordered, though, says it
# of the same thing, mostly by the same word: "list the pods" of "which pods crash?".

_LEAST = 3
_LONGEST = 2_000
_COMMON = frozenset(_PHRASES.words("common"))
_ACTS = frozenset(
    word
    for table in (AHEAD, GERUND, PARTICIPLE, PAST, *ASKED, *DONE, *SOON)
    for verb in table
    for word in verb.split(" ")
)
_ACTS_CJK = frozenset(word for word in _ACTS if not word.isascii() and len(word) <= 4)
_FORM_CJK = frozenset("我你您他她它已经了的吗呢吧为帮在请把这那就也都很是有和与个些得地着过")
_SMALL_CJK = frozenset(_PHRASES.words("small_cjk"))


def folded(text: str) -> str:
    """Return a text in lower case, without accents: `hôtel` becomes `hotel`."""
    text = text.casefold()
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def told_back(text: str, words: str) -> frozenset[str]:
    """Return the words of some weight that a text has in common with what the user said."""
    return _weighty(text) & _weighty(words)


def _weighty(text: str) -> frozenset[str]:
    found: set[str] = set()
    for spelled in _PHRASES["word"].findall(text[:_LONGEST]):
        plain = folded(spelled)
        if any(sign.isdigit() for sign in plain):
            if len(plain) > 1:
                found.add(plain)
        elif plain in _COMMON or plain in _ACTS or spelled.casefold() in _ACTS:
            continue
        elif len(plain) >= _LEAST or (spelled.isupper() and len(spelled) > 1):
            found.add(plain[:-1] if plain.endswith("s") and len(plain) > _LEAST else plain)
    for run in _PHRASES["cjk_run"].findall(text[:_LONGEST]):
        pairs = (run[at : at + 2] for at in range(len(run) - 1))
        found.update(
            pair
            for pair in pairs
            if pair not in _SMALL_CJK and not _FORM_CJK & set(pair) and not any(act in pair for act in _ACTS_CJK)
        )
    return frozenset(found)


LONGEST_REPLY = 500
FEW = 4
"""Sentences of a reply that may tell what was done; the rest are talk."""
_ED = r"[A-Za-z][a-z]+(?:-[a-z]+)?(?<!\bne)(?<!\bse)(?<!\bfe)(?<!\bspe)(?<!\bexce)(?<!\binde)(?<!\bhundr)(?<!\bproce)ed"
_FINISHED = rf"(?:{_ED}|{alternatives(PARTICIPLES)})"
_PAST = rf"(?:{_ED}|{alternatives(PASTS)}|set|put|cut|shut|split|reset)"
_MAY_FINISH = _PHRASES.pattern("may_finish", participles_pasts=alternatives(PARTICIPLES | PASTS))
_SAID = re.compile(rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)?) {ADVERBS}(?P<verb>{_PAST}|{_FINISHED})\b")
_THEN = re.compile(rf"(?:\band|,|;) (?:then |also )?(?P<verb>{_PAST}|{_FINISHED})\b")
_PERFECT = _PHRASES.pattern("perfect", finished=_FINISHED, adverbs=ADVERBS)
_WELL = _PHRASES.pattern("well", finished=_FINISHED)
_IS = _PHRASES.pattern("is", finished=_FINISHED)
_NOTE = _PHRASES.pattern("note", finished=_FINISHED)
_TERSE = _PHRASES.pattern("terse", form_pasts="|".join(sorted(form.capitalize() for form in PASTS)))
_YOURS = re.compile(rf"^(?P<who>You)(?:['’]ve| have)? (?P<verb>{_PAST})\b")
"""What only a tool can have told: "you rolled a 9"."""
_FORMS = (_PERFECT, _WELL, _IS, _PHRASES["state"], _NOTE, _PHRASES["comes_off"])
_SHOWS = re.compile(rf"[:：][\s*]*$|[:：]\s*[{CODE}{QUOTE}\"“«„`]")
"""Behind a colon stands what was made."""
_CHINESE = re.compile(r"已(?:经|為|为|将|把)?[\u4e00-\u9fff]|[\u4e00-\u9fff](?:成功|完成|完毕)[。！]?$")
_ROMANCE = ("e", *(f"{vowel}{sign}{end}" for vowel in "aiu" for sign in "dt" for end in "oaie"))
_ROOT = 3
DONE_CHINESE = "已"


@dataclass(frozen=True, slots=True)
class Act:
    """A finished act: its verb and its sentence.

    `said`: in the first person; `weak`: may be a state as well; `past`: may be of any time; `yours`: told as one of the
    user; `abroad`: in another language than English, where `verb` is the root, and in Chinese the particle `DONE_CHINESE`.
    """

    verb: str
    sentence: Sentence
    said: bool = False
    weak: bool = False
    past: bool = False
    yours: bool = False
    abroad: bool = False


def accounts(prose: Prose) -> bool:
    """Return True if a reply is short prose that neither regrets nor asks for something."""
    if len(prose.text) > LONGEST_REPLY or prose.fenced or "|" in prose.masked:
        return False
    return not regrets(prose) and not _is_for_others(prose)


def regrets(prose: Prose) -> bool:
    """Return True if a reply is more, or less, than an account of what was done."""
    return _PHRASES["unsure"].search(_PHRASES["closing"].sub("", prose.masked)) is not None


def _is_for_others(prose: Prose) -> bool:
    """Return True if a reply offers a letter or a template, in which somebody else speaks."""
    return letter_start(prose.text) < len(prose.text) or TEMPLATE.search(prose.masked) is not None


def acts(prose: Prose) -> Iterator[Act]:
    """Yield the acts of the first sentences of a text."""
    for sentence in prose.sentences[:FEW]:
        if sentence.question or not _MAY_FINISH.search(sentence.masked):
            continue
        opening = _PHRASES["opening"].match(sentence.masked)
        line = sentence.masked[opening.end() :] if opening else sentence.masked.lstrip("*_✅✔☑🎉👍✓\ufe0f ")
        found = tuple(_of(line, sentence))
        if found and not (
            BY_OTHERS.search(_PHRASES["in_time"].sub(" ", line))
            or EARLIER.search(line)
            or LABELLED.match(line)
            or _SHOWS.search(line)
        ):
            yield from found


def _of(line: str, sentence: Sentence) -> Iterator[Act]:
    if (said := _SAID.search(line)) and not UNREAL.search(line[: said.start()]):
        yield Act(said["verb"].lower(), sentence, said=True)
        yield from (Act(more["verb"].lower(), sentence, said=True) for more in _THEN.finditer(line, said.end()))
        return
    if yours := _YOURS.match(line):
        yield Act(yours["verb"].lower(), sentence, yours=True)
        return
    if sentence.bullet:
        line = line.rpartition(": ")[2]
    if abroad := _abroad(line, sentence):
        yield abroad
        return
    if terse := _TERSE.match(line):
        yield Act(terse["verb"].lower(), sentence)
    yield from _impersonal(line, sentence)


def _abroad(line: str, sentence: Sentence) -> Act | None:
    """Return the act of a sentence in the perfect tense of another language, with the root of its participle."""
    if not line.isascii() and _CHINESE.search(line) and not _PHRASES["unreal_chinese"].search(line):
        return Act(DONE_CHINESE, sentence, abroad=True)
    match = _PHRASES["perfect_abroad"].search(line)
    if match is None or _PHRASES["unreal_abroad"].search(line):
        return None
    verb = folded(next(filter(None, match.groups())))
    root = (
        _PHRASES["ending"].sub("", verb)
        if verb.endswith(_ROMANCE)
        else _PHRASES["prefix"].sub("", verb).removesuffix("t").removesuffix("en")
    )
    return Act(root, sentence, abroad=True) if len(root) >= _ROOT else None


def _impersonal(line: str, sentence: Sentence) -> Iterator[Act]:
    for form in _FORMS:
        match = form.match(line)
        if (
            match is None
            or _PHRASES["supposed"].search(match["who"])
            or _PHRASES["second_person"].search(match["who"].strip())
        ):
            continue
        if form is _NOTE and (len(line) > 160 or FINITE.search(line[: match.end("verb")])):
            continue
        groups = match.groupdict()
        verb = (groups["verb"] or groups["verb2"]).lower()
        yield Act(verb, sentence, weak=form is _IS and groups["now"] is None, past=groups.get("past") is not None)
        yield from (Act(more["verb"].lower(), sentence) for more in _THEN.finditer(line, match.end()))
        return
