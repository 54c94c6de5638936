"""Claims of a text: actions that the text reports as finished.

Theory of operation. A claim is a finished action in the first person or in an equivalent form: "I searched …",
"After reading …, I can confirm", "Deleted.", "The mail has been sent", "The search returned nothing". Patterns run
over single sentences of masked prose (`prose`), so quotations and code are never claims. A condition before the verb, a
modal, a hedge, a question or a negation leaves no claim. `toolkinds` decides which tool a claim concerns, if any.

Patterns are flat alternatives with bounded gaps, so that a text is read in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from wirelint import lexicon
from wirelint.claims.actions import (
    AHEAD,
    ASKED,
    BASE,
    DONE,
    GERUND,
    PARTICIPLE,
    PARTICIPLES,
    PAST,
    PASTS,
    SOON,
    Kind,
    alternatives,
)
from wirelint.text.prose import CODE, QUOTE, Cues, Prose, Sentence, has_word_of, read

_PHRASES = lexicon.Phrases("claims")


# Claims in other languages than English: German, French, Spanish, Portuguese, Italian, Chinese, Japanese.
#
# A claim is an auxiliary or a particle beside a finished form (`actions.DONE`), without a condition or negation before it.

FOREIGN_CONDITION = re.compile(r"\b(?:wenn|falls|sobald|si|quando)\b", re.IGNORECASE)
# In the order of `actions.DONE`.
_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _CHINESE, _JAPANESE = (alternatives(table) for table in DONE)
# Spanish and Portuguese preterites need no auxiliary: "Envié el correo", "Enviei o e-mail".
_SPANISH_PAST, _PORTUGUESE_PAST = (
    alternatives(word for word in table if word.endswith(("é", "í", "ei", "ri")) and " " not in word)
    for table in (DONE[2], DONE[3])
)
_SAID = _PHRASES.patterns(
    "foreign_said",
    german=_GERMAN,
    french=_FRENCH,
    spanish=_SPANISH,
    spanish_past=_SPANISH_PAST,
    portuguese=_PORTUGUESE,
    portuguese_past=_PORTUGUESE_PAST,
    italian=_ITALIAN,
    chinese=_CHINESE,
    japanese=_JAPANESE,
)
_PASSIVE = _PHRASES.patterns(
    "foreign_passive", german=_GERMAN, french=_FRENCH, spanish=_SPANISH, portuguese=_PORTUGUESE, italian=_ITALIAN
)
_WORDS = frozenset(
    f"{word.split(' ')[0]}{ending}" for table in DONE for word in table for ending in ("", "e", "s", "es", "as", "os")
) | {"suche", "abfrage", "recherche", "búsqueda", "busca", "pesquisa", "ricerca", "requête", "consulta", "websuche"}


def is_foreign(line: str) -> bool:
    """Return True if a line has a finished form of another language."""
    if not line.isascii() and _PHRASES["cjk"].search(line):
        return True
    return has_word_of(line, _WORDS)


def foreign_claim(line: str) -> tuple[frozenset[Kind], str, Literal["said", "passive", "outcome"]] | None:
    """Return the kinds, the verb and the form of the first claim of a sentence, or None."""
    if not is_foreign(line):
        return None
    for table, pattern in zip(DONE, _SAID, strict=True):
        for match in pattern.finditer(line):
            verb = verb_of(match)
            unreal = _PHRASES["foreign_unreal"].search(line, max(match.start() - 160, 0), match.start())
            if not unreal and not _PHRASES["foreign_unreal"].search(match["gap"] or ""):
                return table[verb], verb, "said"
    for match in _PHRASES["performed"].finditer(line):
        if not _PHRASES["foreign_unreal"].search(line, max(match.start() - 160, 0), match.start()):
            return frozenset({"search"}), verb_of(match), "said"
    for table, pattern in zip(DONE, _PASSIVE, strict=False):
        passive = pattern.search(line)
        if passive is not None and not _PHRASES["foreign_unreal"].search(line):
            return table[passive["verb"]], passive["verb"], "passive"
    return None


def verb_of(match: re.Match[str]) -> str:
    """Return the text of the group `verb`, `verb2`, … of a match in lower case."""
    return next(word for name, word in match.groupdict().items() if word and name.startswith("verb")).lower()


# Patterns that `claims` runs: forms of finished actions, and signs that an action is not real.
#
# Flat alternatives with bounded gaps, over one sentence at a time.

LONGEST_OBJECT = 240
MOST_CLAIMS = 16
"""Claims of one sentence that are read. A sentence with more is no prose."""
ADVERBS = _PHRASES.text("adverbs")
PAST_VERB = alternatives({*PAST, *PARTICIPLE} - {"run"})
PARTICIPLE_VERB = alternatives(PARTICIPLE)
SAID = _PHRASES.pattern("said", past_verb=PAST_VERB)
PAST_ADVERB = re.compile(r"\b(?:just|already|also|finally|previously)\b")
CHAINED = re.compile(rf"(?:\band|,|\bthen|;)[ ]+(?:then |also |have )?{ADVERBS}(?P<verb>{PAST_VERB}|run)\b")
SPLIT = _PHRASES.pattern("split")
MANAGED = _PHRASES.pattern("managed", base=alternatives(BASE))
AFTER = _PHRASES.pattern("after", gerund_participle=alternatives({*GERUND, *PARTICIPLE}))
PASSIVE = _PHRASES.pattern("passive", participle_verb=PARTICIPLE_VERB)
TERSE = _PHRASES.pattern("terse", participle=alternatives(word.capitalize() for word in PARTICIPLE))
UNREAL = _PHRASES.pattern("unreal")
EARLIER = _PHRASES.pattern("earlier")
IDIOM = _PHRASES.pattern("idiom")
HEDGED = re.compile(r"\b(?:probably|likely|may|might|could|would|should|must|will|if|typically|usually)\b")
BY_OTHERS = _PHRASES.pattern("by_others")
NOTED = _PHRASES.pattern("noted", participle_verb=PARTICIPLE_VERB)
RELATIVE = re.compile(r"\b(?:[Tt]he|[Tt]his|[Aa]n?) (?:[\w-]+ ){1,3}(?:that |which )?$")
TEMPLATE = _PHRASES.pattern("template")
ANSWERED = r"(?:returned|found|came back|turned up|yielded|gave (?:me )?(?:no|nothing|\d|an? )|reported)\b"
MADE_NAME = re.compile(r"\w[_-]\w|[a-z][A-Z]")
"""A name in a form that does not occur in prose: `search_docs`, `listEvents`."""
LOOKED = Cues("earch", "uery", "ookup", "found", "returned", "esults", "tool")
CONCLUDED = Cues(*_PHRASES.words("concluded"))
AFTER_SIGNS = Cues("fter ", "pon ", "aving ", "rom ")
PASSIVE_SIGNS = Cues("been", "successfully", "is now", "are now")


Form = Literal["said", "after", "outcome", "passive", "terse", "state", "news"]
"""Form of a claim. `outcome`: the result of an action ("the search returned …"). `terse`: no subject ("Deleted.").
`state`: the state of a switched device. `news`: a find, which counts only beside particulars."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim. `object` is the rest of its sentence as written, `start`, `end` are the offsets of the sentence."""

    kinds: frozenset[Kind]
    verb: str
    form: Form
    object: str
    start: int
    end: int
    earlier: bool = False


def claims(prose: Prose) -> tuple[Claim, ...]:
    """Return the claims of a text in order. A sentence may have several."""
    return _claims(prose.text)


@lru_cache(maxsize=16)  # several rules ask for those of the same reply
def _claims(text: str) -> tuple[Claim, ...]:
    return tuple(_read_claims(read(text)))


def _read_claims(prose: Prose) -> Iterator[Claim]:
    letter: int | None = None
    foreign = is_foreign(prose.masked)
    looked_until = 0
    story_until = -1  # the end of a paragraph with a story of another time
    for number, sentence in enumerate(prose.sentences):
        if sentence.start < story_until or sentence.question:
            continue
        found = tuple(islice(_claims_of(prose, sentence, number, foreign=foreign), MOST_CLAIMS))
        if not found:
            continue
        letter = letter_start(prose.text) if letter is None else letter
        if sentence.start >= letter:
            return
        if _is_in_template(prose, sentence) or _PHRASES["labelled"].match(sentence.masked):
            continue
        begun = max(prose.masked.rfind("\n\n", looked_until, sentence.start) + 1, looked_until)
        looked_until = sentence.end
        if _PHRASES["elsewhen"].search(prose.masked, begun, sentence.end):
            story_until = _paragraph_end(prose.masked, sentence.end)
        else:
            yield from found


def _paragraph_end(text: str, at: int) -> int:
    end = text.find("\n\n", at)
    return len(text) if end < 0 else end


def letter_start(text: str) -> int:
    """Return the offset of a letter for somebody else to send; the text's length if there is none."""
    found = _PHRASES["letter"].search(text)
    return found.start() if found else len(text)


def _is_in_template(prose: Prose, sentence: Sentence) -> bool:
    """Return True if a sentence is in a paragraph of a template, with fields to fill in."""
    if "{" not in prose.masked and "[" not in prose.masked:
        return False
    begun = prose.masked.rfind("\n\n", 0, sentence.start) + 1
    return TEMPLATE.search(prose.masked, begun, _paragraph_end(prose.masked, sentence.end)) is not None


def _claims_of(prose: Prose, sentence: Sentence, number: int, *, foreign: bool) -> Iterator[Claim]:
    own = [*islice(_said(prose, sentence), MOST_CLAIMS), *_managed(prose, sentence), *_by_outcome(prose, sentence)]
    yield from own
    if not own:
        yield from _news(prose, sentence)
        yield from _impersonal(prose, sentence, number)
        if foreign and (found := foreign_claim(sentence.masked)):
            # A German verb ends its clause, so the object is before it.
            yield _claim(prose, sentence, *found, 0)


_OF_NOTHING = re.compile(r" (?:(?:absolutely |exactly )?nothing|no one|nobody)\b")
"""The object of a denial: "I've booked nothing so far"."""


def _said(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """Yield claims in the first person: "I've updated …", "I opened …, fixed it and ran …", "I tried to open …"."""
    line = sentence.masked
    if "I" not in line and "we" not in line and "We" not in line:
        return
    for match in SAID.finditer(line):
        verb = match["verb"].lower()
        idiom = IDIOM.match(line, match.start("verb")) or (verb == "run" and not match["have"])
        idiom = idiom or _is_conditional(match, verb) or _OF_NOTHING.match(line, match.end("verb"))
        if not idiom and _is_real(line, match.start()):
            # "the query I just ran": the object is before the verb
            relative = RELATIVE.search(_before(line, match.start()))
            at = max(match.start() - len(relative[0]), 0) if relative else match.end()
            yield _claim(prose, sentence, _kinds(verb), verb, "said", at)
    for match in SPLIT.finditer(line):
        verb = f"{match['verb']} {match['particle']}"
        if verb in PAST and _is_real(line, match.start()):
            yield _claim(prose, sentence, PAST[verb], verb, "said", match.end("verb"))
    subject = _PHRASES["subject"].search(line)
    if subject is not None and _is_real(line, subject.start()):
        for match in CHAINED.finditer(line, subject.end()):
            if match["verb"] == "run" and "ve " not in subject[0]:
                continue
            yield _claim(prose, sentence, _kinds(match["verb"]), match["verb"], "said", match.end())


_MANAGED_SIGNS = Cues(" able to ", " managed to ", " look ", " search", " lookup", " quer")


def _managed(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """Yield claims with a softer verb: "I was able to retrieve …", "I had a look at …"."""
    line = sentence.masked
    if not _MANAGED_SIGNS.occur_in(line):
        return
    for match in MANAGED.finditer(line):
        if match["search"] and _is_real(line, match.start()):
            yield _claim(prose, sentence, frozenset({"search"}), "searched", "said", match.end())
        elif _is_real(line, match.start()):
            verb = match["base"] or "look at"
            yield _claim(prose, sentence, BASE[verb], verb, "said", match.end())


def _by_outcome(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """Yield claims by their outcome: "After reading …, I can confirm", "The search returned …"."""
    line = sentence.masked
    after = AFTER.search(line) if AFTER_SIGNS.occur_in(line) and CONCLUDED.occur_in(line) else None
    outcome = _PHRASES["outcome"].search(line) if LOOKED.occur_in(line) else None
    if after and _is_real(line, after.start()):
        verb = after["verb"].lower()
        yield _claim(prose, sentence, GERUND.get(verb) or PARTICIPLE[verb], verb, "after", after.end("verb"))
    if outcome and _is_real(line, outcome.start()) and not HEDGED.search(outcome[0]):
        yield _claim(prose, sentence, frozenset({"search"}), verb_of(outcome), "outcome", 0)


_NOBODY = re.compile(r"\W*(?:nothing|no|none|neither)\b", re.IGNORECASE)


def _impersonal(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    """Yield claims without an acting subject: "Email sent to Bo.", "The file has been deleted", "Deleted."."""
    line = sentence.masked
    passive = PASSIVE.search(line) if PASSIVE_SIGNS.occur_in(line) else None
    noted = NOTED.match(line) if len(line) < 200 else None
    terse = TERSE.match(line)
    switched = _PHRASES["switched"].match(line) if " now" in line else None
    if switched:
        yield _claim(prose, sentence, frozenset({"control"}), (switched["now"] or switched["set"]), "state", 0)
    elif noted and not _PHRASES["finite"].search(line):
        yield _claim(prose, sentence, PARTICIPLE[noted["verb"]], noted["verb"], "passive", 0)
    elif passive and _is_real(line, passive.start()) and not BY_OTHERS.search(line) and not _NOBODY.match(line):
        verb = verb_of(passive)
        yield _claim(prose, sentence, PARTICIPLE[verb], verb, "passive", 0)
    elif terse and number < 2 and not sentence.bullet and not line.rstrip("* ").endswith((":", "：")):
        # Later notes and items may be a change log or a plan.
        verb = terse["verb"].lower()
        yield _claim(prose, sentence, _kinds(verb), verb, "terse", terse.end())


def _news(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """Yield finds: "I found 42 of them"."""
    found = _PHRASES["found"].search(sentence.masked) if " found " in sentence.masked else None
    if found and _is_real(sentence.masked, found.start()):
        yield _claim(prose, sentence, frozenset({"search"}), "found", "news", found.end())


def _claim(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, form: Form, at: int) -> Claim:
    start = sentence.start
    clause = _PHRASES["clause_end"].search(sentence.masked, at, at + LONGEST_OBJECT) if at else None
    shown = prose.text[start + at : start + clause.start() if clause else sentence.end]
    return Claim(
        kinds,
        verb,
        form,
        shown[:LONGEST_OBJECT],
        start,
        sentence.end,
        EARLIER.search(sentence.masked, max(at - 160, 0), at + LONGEST_OBJECT) is not None,
    )


def _kinds(verb: str) -> frozenset[Kind]:
    verb = verb.lower()
    return PAST.get(verb) or PARTICIPLE[verb]


def _is_conditional(match: re.Match[str], verb: str) -> bool:
    """Return True if "I'd run" is "I would run": the participle is the base form, and no adverb marks the past."""
    have = match["have"]
    return have is not None and have.endswith("d") and verb in BASE and not PAST_ADVERB.search(match[0])


def _before(line: str, at: int) -> str:
    """Return up to 160 characters before an offset, about the length of a clause."""
    return line[max(at - 160, 0) : at]


def _is_real(line: str, at: int) -> bool:
    """Return True if the words before a verb do not make its action unreal."""
    before = _before(line, at)
    return not (UNREAL.search(before) or FOREIGN_CONDITION.search(before))


def reported_outcome(prose: Prose, name: str) -> Claim | None:
    """Return the outcome of a tool that a text names: "search_docs returned nothing"."""
    if name not in prose.text or not MADE_NAME.search(name):
        return None
    # Names are often in code spans, which the mask hides.
    report = re.compile(rf"(?<![\w/.]){re.escape(name)}(?:\(\))?`? (?:tool |call )?{ANSWERED}")
    return _outcome(prose, name, report)


def reported_call(prose: Prose) -> Claim | None:
    """Return the outcome of a call that a text tells: "The second call succeeded"."""
    return _outcome(prose, "call", _PHRASES["call_outcome"])


def _outcome(prose: Prose, name: str, report: re.Pattern[str]) -> Claim | None:
    for sentence in prose.sentences:
        match = report.search(prose.text, *sentence.span)
        if match and not sentence.question and _is_real(sentence.masked, match.start() - sentence.start):
            return Claim(frozenset({"search"}), name, "outcome", match[0], *sentence.span)
    return None


def bare_done(prose: Prose) -> Claim | None:
    """Return the claim of a bare "Done." that opens a short reply: everything that the user ordered."""
    match = _PHRASES["done"].match(prose.text)
    if match is None or len(prose.text) > 200 or "?" in prose.text:
        return None
    return Claim(frozenset(), "done", "terse", prose.text, 0, match.end())


# Words of the user's last message that a text repeats: the object of an order, for any noun.
#
# No table of nouns is complete. But a reply that announces or claims an ordered action mostly repeats the user's word for
# its object: "list the pods" of "which pods crash?".

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


def shared_words(text: str, words: str) -> frozenset[str]:
    """Return the content words that a text shares with the user's words."""
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


# Finished actions that a short reply reports, found by grammar alone: any verb, with or without a subject. A condition, a
# negation, another time or a question leaves no action. `order_check.performed` decides whether a tool did it.

LONGEST_REPLY = 500
FEW = 4
"""First sentences of a reply, in which it may report actions."""
_ED = r"[A-Za-z][a-z]+(?:-[a-z]+)?(?<!\bne)(?<!\bse)(?<!\bfe)(?<!\bspe)(?<!\bexce)(?<!\binde)(?<!\bhundr)(?<!\bproce)ed"
_FINISHED = rf"(?:{_ED}|{alternatives(PARTICIPLES)})"
_PAST = rf"(?:{_ED}|{alternatives(PASTS)}|set|put|cut|shut|split|reset)"
_MAY_FINISH = _PHRASES.pattern("may_finish", participles_pasts=alternatives(PARTICIPLES | PASTS))
_SAID_BY_ME = re.compile(rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)?) {ADVERBS}(?P<verb>{_PAST}|{_FINISHED})\b")
_THEN = re.compile(rf"(?:\band|,|;) (?:then |also )?(?P<verb>{_PAST}|{_FINISHED})\b")
_PERFECT = _PHRASES.pattern("perfect", finished=_FINISHED, adverbs=ADVERBS)
_WELL = _PHRASES.pattern("well", finished=_FINISHED)
_IS = _PHRASES.pattern("is", finished=_FINISHED)
_NOTE = _PHRASES.pattern("note", finished=_FINISHED)
_FORMS = (_PERFECT, _WELL, _IS, _PHRASES["state"], _NOTE, _PHRASES["comes_off"])
_SHOWS = re.compile(rf"[:：][\s*]*$|[:：]\s*[{CODE}{QUOTE}\"“«„`]")
"""A colon followed by the product."""


@dataclass(frozen=True, slots=True)
class Act:
    """A finished action: its verb and its sentence."""

    verb: str
    sentence: Sentence


def is_account(prose: Prose) -> bool:
    """Return True if a reply is prose without regret, request, letter or template."""
    template = TEMPLATE.search(prose.masked) is not None
    return not regrets(prose) and not template and letter_start(prose.text) == len(prose.text)


def regrets(prose: Prose) -> bool:
    """Return True if a reply expresses regret, doubt or a request beside its account."""
    return _PHRASES["unsure"].search(_PHRASES["closing"].sub("", prose.masked)) is not None


def acts(prose: Prose) -> Iterator[Act]:
    """Yield the finished actions of the first sentences of a text."""
    for sentence in prose.sentences[:FEW]:
        if sentence.question or not _MAY_FINISH.search(sentence.masked):
            continue
        opening = _PHRASES["opening"].match(sentence.masked)
        line = sentence.masked[opening.end() :] if opening else sentence.masked.lstrip("*_✅✔☑🎉👍✓\ufe0f ")
        found = tuple(_of(line, sentence))
        if found and not (
            BY_OTHERS.search(_PHRASES["in_time"].sub(" ", line)) or EARLIER.search(line) or _SHOWS.search(line)
        ):
            yield from found


def _of(line: str, sentence: Sentence) -> Iterator[Act]:
    if (match := _SAID_BY_ME.search(line)) and not UNREAL.search(line[: match.start()]):
        yield Act(match["verb"].lower(), sentence)
        yield from (Act(more["verb"].lower(), sentence) for more in _THEN.finditer(line, match.end()))
        return
    if sentence.bullet:
        line = line.rpartition(": ")[2]
    yield from _without_subject(line, sentence)


def _without_subject(line: str, sentence: Sentence) -> Iterator[Act]:
    for form in _FORMS:
        match = form.match(line)
        if (
            match is None
            or _PHRASES["supposed"].search(match["who"])
            or _PHRASES["second_person"].search(match["who"].strip())
        ):
            continue
        if form is _NOTE and (len(line) > 160 or _PHRASES["finite"].search(line[: match.end("verb")])):
            continue
        groups = match.groupdict()
        verb = (groups["verb"] or groups["verb2"]).lower()
        yield Act(verb, sentence)
        yield from (Act(more["verb"].lower(), sentence) for more in _THEN.finditer(line, match.end()))
        return
