"""What a text claims to have been done.

Theory of operation. A claim is a finished action in the first person or in a form that amounts to it: "I searched …",
"After reading …, I can confirm", "Deleted.", "The mail has been sent", "The search returned nothing". Patterns run
over single sentences of masked prose (`prose`), so nothing quoted and no code is ever a claim. What makes
the sentence unreal (a condition before the verb, a modal, a hedge, a question) or negates it leaves no claim. Whether
a claim concerns a tool at all is not decided here: see `toolkinds`.

Patterns are flat alternatives with bounded gaps, so that a text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from wirelint.claims.actions import (
    BASE,
    GERUND,
    PARTICIPLE,
    PAST,
    Kind,
    alternatives,
)
from wirelint.claims.foreign_claims import FOREIGN_CONDITION, foreign_claim, is_foreign, verb_of
from wirelint.text.prose import Cues, Prose, Sentence

# The forms in which finished actions are told, and what makes them unreal: the patterns that `claims` runs.
#
# Flat alternatives with bounded gaps, over one sentence at a time.

LONGEST_OBJECT = 240
MOST_CLAIMS = 16
"""Claims of one sentence that are looked at: more are no prose."""
ADVERBS = (
    r"(?:(?:just|now|already|also|then|first|next|successfully|finally|carefully|thoroughly|quickly|briefly|"
    r"personally|again|"
    r"gone ahead and|went ahead and|in fact|actually|since|even|double-|re-)[ ]?,?[ ]?){0,4}"
)
PAST_VERB = alternatives({*PAST, *PARTICIPLE} - {"run"})
PARTICIPLE_VERB = alternatives(PARTICIPLE)
SAID = re.compile(
    rf"\b(?:(?P<have>I(?:['’]ve| have|['’]d)|[Ww]e(?:['’]ve| have)) |I ){ADVERBS}(?P<verb>(?:{PAST_VERB})|run)\b"
)
PAST_ADVERB = re.compile(r"\b(?:just|already|also|finally|previously)\b")
SUBJECT = re.compile(
    rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)) {ADVERBS}(?:\w+ed|found|wrote|ran|sent|read|made|took)\b"
)
CHAINED = re.compile(rf"(?:\band|,|\bthen|;)[ ]+(?:then |also |have )?{ADVERBS}(?P<verb>{PAST_VERB}|run)\b")
SPLIT = re.compile(
    rf"\bI(?:['’]ve| have)? {ADVERBS}(?P<verb>looked|pulled|turned|switched|set) (?P<between>(?:[\w'’-]+ "
    rf"){{1,4}}?)(?P<particle>up|on|off)\b"
)
TRIED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:tried|attempted) (?:to (?P<base>{alternatives(BASE)})|"
    rf"(?P<gerund>{alternatives(GERUND)}))\b"
)
MANAGED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:just |now )?(?:(?:was able|managed|have managed) to (?:successfully )?"
    rf"(?P<base>{alternatives(BASE)})|"
    r"(?P<look>had|taken|took) a (?:quick |close |closer |brief )?look (?:at|into|through)|"
    rf"(?:performed|conducted|did|done|made|ran|run|carried out|completed) (?:an?|another|the|several|some|multiple) "
    r"(?:[\w-]+ ){0,3}?(?P<search>search(?:es)?|look-?ups?|quer(?:y|ies)))\b"
)
"""Softer ways to say that something was done."""
TRANSACTED = re.compile(
    r"^[^\w]{0,4}(?:The|Your|A|This) (?:[\w-]+ ){0,2}?(?P<noun>refund|payment|transfer|order|booking|reservation|"
    r"appointment|"
    r"cancel[l]?ation|purchase)\b[^!?;]{0,80}? (?:has|have) (?:now |just |successfully |also )?been (?:successfully )?"
    r"(?:completed|processed|issued|made|placed|confirmed|submitted|initiated|executed|carried out)\b"
)
SWITCHED = re.compile(
    r"^[^\w]{0,4}(?:(?:OK|Okay|Done|Sure|All right)\W{1,3})?(?:The|Your|Both|All(?: the)?) (?:[\w-]+ ){1,4}?(?:is|are) "
    r"(?:(?:now )(?P<now>on|off|set to|locked|unlocked|open|closed|dimmed|muted|paused)|"
    r"(?P<set>on|off|set to|locked|unlocked|open|closed|dimmed|muted|paused)\b[^,;]{0,20} now)\b"
)
"""A state into which somebody must have brought a thing."""
AFTER = re.compile(
    rf"\b(?:[Aa]fter|[Uu]pon|[Hh]aving|[Ff]rom) {ADVERBS}(?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b"
    r"(?P<rest>.{0,200}?)(?:,| that)? ?\b(?:I (?:can|could|found|see|saw|confirm|noticed|conclude|don['’]t|did)|"
    r"it (?:appears|looks|seems)|"
    r"there (?:is|are|was|were)|no (?:results|matches|records))\b"
)
NOTHING = r"(?:0|zero|no|any|\d+)"
HITS = (
    r"(?:results?|matches|hits|documents?|articles?|records?|entries|files?|rows?|occurrences|items|messages|"
    r"emails|events|"
    r"tickets|orders|pages|passages)"
)
OUTCOME = re.compile(
    r"\b(?:[Mm]y|[Tt]he|[Tt]his|[Aa]) (?:[\w-]+ ){0,3}?(?P<verb>search|query|"
    r"lookup)\b[^.!?]{0,120}?\b(?:returned|found|yielded|came back|turned "
    r"up|produced|revealed|(?:did not|didn['’]t) (?:return|find|yield|turn up|produce))\b|^(?:[\w-]+ "
    r"){0,2}(?P<verb2>[Ss]earch|[Qq]uery|[Ll]ookup) "
    r"(?:is )?(?:complete|completed|finished|done)\b|\b[Bb]ased on my (?:[\w-]+ ){0,2}?(?P<verb3>search|lookup|query)\b|"
    rf"\bI(?:['’]ve| have)? {ADVERBS}(?P<verb4>found) (?:{NOTHING} |a total of )(?:[\w-]+ ){{0,2}}{HITS}\b|"
    rf"^(?:0|Zero|No) (?:[\w-]+ ){{0,2}}{HITS} (?:were |was )?(?P<verb5>found|returned)\b"
)
RESULTS = re.compile(
    r"\b(?:[Bb]ased on|[Aa]ccording to|[Ff]rom) (?:the|my) (?P<verb>search results|tool(?:['’]s)? (?:output|"
    r"results?|response)|query results?|"
    r"results of (?:the|my) (?:search|query|lookup))\b"
)
MISSED = re.compile(
    r"\bI (?:couldn['’]t|could not|was unable to|wasn['’]t able to|didn['’]t|did not) (?P<verb>find|locate) "
    r"(?:any|anything|a|the)\b"
)
PASSIVE = re.compile(
    rf"\b(?:has|have) {ADVERBS}been {ADVERBS}(?P<verb>{PARTICIPLE_VERB})\b|\b(?:was|were) successfully "
    rf"(?P<verb2>{PARTICIPLE_VERB})\b"
    rf"|\b(?:is|are) now (?P<verb3>{PARTICIPLE_VERB})\b|\b(?P<verb4>{PARTICIPLE_VERB}) successfully\b"
)
STANDS = re.compile(
    r"^[^\w]{0,4}(?:(?:OK|Okay|Done|Sure|All right|Great)\W{1,3})?(?:The|Your|Both|A|An) (?:[\w.-]+ ){1,8}?"
    r"(?:is|are) (?:all )?"
    r"(?P<verb>booked|reserved|scheduled|ordered|refunded|cancell?ed|rescheduled|deleted|removed|sent|turned on|turned off|"
    r"switched on|switched off|locked|unlocked)\b"
)
"""What stands as it was ordered: "your table is reserved"."""
WENT_THROUGH = re.compile(
    r"^[^\w]{0,4}(?:The|Your|All) (?:[\w.-]+ ){1,6}?(?:has |have )?(?P<verb>completed|finished|succeeded|ran|run)"
    r"(?: successfully|\W|$)"
)
FOUND = re.compile(
    r"\bI(?:['’]ve| have)? (?:just |also |already )?(?P<verb>found) "
    r"(?!it\b|this\b|that\b|them\b|him\b|her\b|myself\b|out\b|you\b|no\b)"
)
IN_DOING = re.compile(rf"\b(?:after|having|by|from) (?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b", re.IGNORECASE)
"""An act that is told by the way. Like things that were found, it is worth something only beside news of what was asked."""
BY_OTHERS = re.compile(
    r"\b(?:by (?:the|a|an|your|someone|another|default)|since (?:version|v?\d|\d{4})|in (?:version|v?\d|\d{4})|"
    r"that (?:has|have)|which (?:has|have)|"
    r"many times|for years|in the past|deprecated|usually|typically|often|always|never)\b"
)
TERSE = re.compile(
    rf"^(?:[^\w\s`\"']{{1,3}}\s*)?(?:\*\*)?(?:Successfully "
    rf")?(?P<verb>{alternatives(word.capitalize() for word in PARTICIPLE)}|Ran|Wrote)\b(?!-)"
)
MARKED = re.compile(r"^(?:[✅✔☑🎉👍✓]\ufe0f?|\*\*)")
UNREAL = re.compile(
    r"\b(?:if|would|could|should|might|may|suppose|imagine|assuming|unless|whether|pretend|hypothetically|as if|"
    r"as though|once|when|"
    r"until|before|whenever|believe|think|probably|perhaps|maybe|wish|for example|for instance|such as|e\.g|say|"
    r"said|says|"
    r"claims?|wrote|replied|like|after|every time|not|never)\b|n['’]t\b",
    re.IGNORECASE,
)
ELSEWHEN = re.compile(
    r"\b(?:last (?:year|month|summer|winter|spring|fall|autumn|semester|quarter)|years? ago|months? ago|decades? ago|"
    r"(?:back )?in (?:my|the) (?:early |late )?(?:(?:19|20)?\d0s|youth|childhood|twenties|college|school|first job|"
    r"(?:previous|last|old|former|first) (?:job|role|position|company|team|employer|project))|"
    r"(?:back )?in (?:19|20)\d\d|when I was|as a (?:child|kid|student|boy|girl|teenager)|once upon a time|"
    r"at (?:my|our) (?:previous|last|old|former|first) (?:job|company|role|employer|team|startup|workplace)|"
    r"(?:letztes|voriges|vergangenes) Jahr|vor (?:\w+ )?(?:Jahren|Monaten)|als ich (?:noch|Kind|Student)|"
    r"l['’]année dernière|il y a (?:\w+ )?(?:ans|mois)|quand j['’]étais|el año pasado|hace (?:\w+ )?(?:años|meses)|"
    r"cuando era|(?:o )?ano passado|há (?:\w+ )?(?:anos|meses)|quando eu era|l['’]anno scorso|"
    r"(?:anni|mesi) fa|quando ero)\b|去年|前年|[几\d]+年前|小时候|昔|子供の頃|年前に",
    re.IGNORECASE,
)
"""A time outside of any conversation: what was done then was not done for the user."""
EARLIER = re.compile(
    r"\b(?:earlier|previously|before|above|last time|a moment ago|already|in (?:the|my|our) (?:previous|first|"
    r"last)|as I|at the (?:start|beginning)"
    r"|vorhin|bereits|zuvor|plus tôt|déjà|auparavant|antes|anteriormente|ya)\b|之前|刚才|此前",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(
    r"[;:](?=\s)|, (?:and|but|so|which|because|where|I)\b|\b(?:but|because|which|so that|I can|I could)\b|\band "
    r"(?:I|it|the|there|they|all|found|can|\w+ed)\b"
)
IDIOM = re.compile(
    r"(?:ran|run) (?:into|out|through|across|over|the numbers)\b|read (?:that|about|somewhere|between)\b|looked "
    r"(?:at (?:this|it|that) from|for (?:a|ways))\b|"
    r"pulled (?:together|off|ahead|back|myself)\b|"
    r"set (?:out|aside|forth)\b|made (?:sure|a (?:mistake|note|guess|list|point)|an? (?:error|assumption))\b|got "
    r"(?:it|you|that)\b|"
    r"tested (?:this|it|that)? ?(?:mentally|by hand)\b|(?:opened|started|begun|began) with\b|placed (?:emphasis|"
    r"the emphasis)\b",
    re.IGNORECASE,
)
HEDGED = re.compile(r"\b(?:probably|likely|may|might|could|would|should|must|will|if|typically|usually)\b")
NOTED = re.compile(
    rf"^[^\w]{{0,4}}(?:[\w'’.-]+ ){{1,4}}?(?P<verb>{PARTICIPLE_VERB})(?: successfully)?(?:[.!]|$| (?:to|at|for|"
    rf"in|on|as|with)\b|: | ?[✅✔☑✓👍🎉])"
)
"""A note without a finite verb: "Email sent to Bo."."""
FINITE = re.compile(
    r"\b(?:is|are|was|were|be|been|can|will|has|have|had|do|does|did|not|I|you|we|they|he|she|it|by|if|when|how|"
    r"to be)\b|n['’]t\b"
)
RELATIVE = re.compile(r"\b(?:[Tt]he|[Tt]his|[Aa]n?) (?:[\w-]+ ){1,3}(?:that |which )?$")
TESTS = re.compile(
    r"^[^\w]{0,4}(?:All|The|Every)(?: of the)?(?: \d+)?(?: \w+)? (?P<verb>tests?) (?:have |are |now |has "
    r")*(?:pass(?:ed|es|ing)?|succeeded|green)\b"
)
LETTER = re.compile(
    r"^(?:\*\*)?(?:Subject|Betreff|Objet|Asunto|主题) ?[:：]|^(?:Dear|Hi|Hello|Hey|Sehr geehrte\w*|Liebe[rs]?|Hallo|"
    r"Bonjour|Cher|Chère|Estimad[oa]s?|Hola)\b(?:[^\n.!?]|\b(?:Mrs?|Ms|Dr|Prof)\.){0,40},[ \t]*$|(?<=[\n:] )(?:Dear|"
    r"Sehr geehrte\w*) |"
    r"(?<=\n)(?:Dear|Sehr geehrte\w*) ",
    re.MULTILINE,
)
SIGNED = re.compile(
    r"\n[ \t]*(?:(?:kind |best |warm )?regards|best(?: wishes)?|cheers|thanks|thank you|sincerely|yours(?: \w+)?|"
    r"(?:viele|beste|liebe|freundliche) grüße|(?:mit )?(?:freundlichen|besten) grüßen|cordialement|bien à (?:vous|toi)|"
    r"(?:un )?saludos?|atentamente)[,.!]?[ \t]*(?:\n[^\n!?]{0,60}){0,3}\s*\Z",
    re.IGNORECASE,
)
"""How a letter closes."""
TEMPLATE = re.compile(
    r"\{\{ ?[\w.]+ ?\}\}|\[(?:Your |First |Last |Customer |Recipient(?:['’]s)? )?[Nn]ame\]|"
    r"\{(?:first_|last_|customer_)?name\}"
)
"""A field that is filled in later: its paragraph is a template, whoever will speak."""
LABELLED = re.compile(
    r"(?:^|(?<=[.!?\n] ))[*_#\- ]{0,6}(?:Title|Situation|Task|Action|Result|Summary|Description|Steps(?: to reproduce)?|"
    r"Expected|Actual|"
    r"Yesterday|Today|Blockers|Subject|Headline|Narrator|Agent|Customer|User|Assistant|Support|Me|You)\**: ?\**(?=\S)",
    re.MULTILINE,
)
"""Headings of the parts of a report, an account or a dialogue."""
ANSWERED = r"(?:returned|found|came back|turned up|yielded|gave (?:me )?(?:no|nothing|\d|an? )|reported)\b"
MADE_NAME = re.compile(r"\w[_-]\w|[a-z][A-Z]")
"""A name that no prose has: `search_docs`, `listEvents`."""
CONTAINER = re.compile(
    r"\s*(?:the|your|our|this) (?:[\w-]+ )?(?:repo(?:sitory)?|database|db|inbox|calendar|logs?|knowledge base|docs|"
    r"documentation|catalog(?:ue)?|wiki|tracker|crm|records|mailbox)\s*$"
)
LOOKED_INTO = frozenset(
    {"checked", "reviewed", "searched", "scanned", "went through", "looked at", "looked into", "queried"}
)
HYPHENATED = re.compile(r"[\w]-$")

DONE = re.compile(
    r"^[^\w]{0,4}(?:done|all done|all set|it['’]s done|task complete[d]?|completed|finished|erledigt|fertig|"
    r"c['’]est fait|listo|hecho|pronto|feito|fatto|完了(?:です|しました)|(?:已)?完成了?|搞定了?|办好了?)\b[.!。！ ]*",
    re.IGNORECASE,
)

I_THEN = re.compile(r"I(?:['’](?:ve|d)| have)? ([\w-]+)")
AFTER_I = frozenset({
    *(verb.split(" ")[0] for table in (PAST, PARTICIPLE) for verb in table),
    "just", "now", "already", "also", "then", "first", "next", "successfully", "finally", "carefully",
    "thoroughly", "quickly", "briefly", "personally", "again", "gone", "went", "in", "actually", "since",
    "even", "run", "tried", "attempted", "found", "have", "was", "managed", "had", "took",
})  # fmt: skip
"""Words that can follow "I" where something was done."""
LOOKED = Cues("earch", "uery", "ookup", "found", "returned", "esults", "tool")
CAME_OF_IT = Cues(
    "returned", "found", "yield", "came back", "turned up", "produce", "revealed", "return ", "find ",
    "turn up", "complete", "finished", "done", "ased on my", "ased on the", "ccording to", "rom the", "rom my",
)  # fmt: skip
CONCLUDED = Cues(
    "I can", "I could", "I found", "I see", "I saw", "I confirm", "I notic", "I conclude", "I don", "I did",
    "it appears", "it looks", "it seems", "there is", "there are", "there was", "there were", "no results",
    "no matches", "no records",
)  # fmt: skip
AFTER_SIGNS = Cues("fter ", "pon ", "aving ", "rom ")
PASSIVE_SIGNS = Cues("been", "successfully", "is now", "are now")


Form = Literal["said", "after", "outcome", "passive", "terse", "missed", "state", "stands", "news"]
"""How a claim is made. `outcome`: told by its result ("the search returned …"); `terse`: without a subject ("Deleted.");
`missed`: something that was not found, which says that it was looked for; `state`: that of a thing that was switched;
`stands`: that of a thing that was ordered ("is reserved"), which is worth something only as an answer to the order;
`news`: that of something found or told by the way, which is worth something only beside particulars."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with the action it speaks of. `object` is the rest of its sentence as written, `start`, `end` the whole."""

    kinds: frozenset[Kind]
    verb: str
    form: Form
    object: str
    start: int
    end: int
    earlier: bool = False


def claims(prose: Prose) -> Iterator[Claim]:
    """The claims of a text, in the order in which they stand; several of one sentence are possible."""
    letter: int | None = None
    looked_until = 0
    told_until = -1  # the end of the paragraph in which a story of another time has begun
    for number, sentence in enumerate(prose.sentences):
        if sentence.start < told_until or sentence.question:
            continue
        found = tuple(islice(_claims_of(prose, sentence, number), MOST_CLAIMS))
        if not found:
            continue
        letter = letter_start(prose.text) if letter is None else letter
        if sentence.start >= letter:
            return
        if _in_template(prose, sentence) or LABELLED.match(sentence.masked):
            continue
        begun = max(prose.masked.rfind("\n\n", looked_until, sentence.start) + 1, looked_until)
        looked_until = sentence.end
        if ELSEWHEN.search(prose.masked, begun, sentence.end):
            told_until = _paragraph_end(prose.masked, sentence.end)
        else:
            yield from found


def may_claim(text: str) -> bool:
    """Return True if a text can hold a claim in the first person, by its outcome or in another language, told cheaply.

    What a long text says without a subject ("Deleted."), or did not find, is not looked for.
    """
    flat = text.replace("\n", " ")
    if "e've " in flat or "e’ve " in flat or "e have " in flat:
        return True
    for match in I_THEN.finditer(flat):
        if match.start() and flat[match.start() - 1].isalnum():
            continue
        word = match[1].lower()
        if word in AFTER_I or word.startswith(("re-", "double-")):
            return True
    if LOOKED.stand_in(flat) and CAME_OF_IT.stand_in(flat):
        return True
    if AFTER_SIGNS.stand_in(flat) and CONCLUDED.stand_in(flat) and AFTER.search(flat):
        return True
    return is_foreign(text)


def _paragraph_end(text: str, at: int) -> int:
    end = text.find("\n\n", at)
    return len(text) if end < 0 else end


def letter_start(text: str) -> int:
    """Where a letter begins that a reply offers: what follows is said by whoever sends it. The length when there is none.

    A salutation on the first line is the reply's own, unless a signature closes it.
    """
    found = LETTER.search(text)
    if found is not None and found.start() == 0 and ":" not in found[0] and "：" not in found[0]:
        if SIGNED.search(text, found.end()):
            return 0
        found = LETTER.search(text, found.end())
    return found.start() if found else len(text)


def _in_template(prose: Prose, sentence: Sentence) -> bool:
    """Return True if a sentence stands in a paragraph with fields to be filled in."""
    if "{" not in prose.masked and "[" not in prose.masked:
        return False
    begun = prose.masked.rfind("\n\n", 0, sentence.start) + 1
    return TEMPLATE.search(prose.masked, begun, _paragraph_end(prose.masked, sentence.end)) is not None


def _claims_of(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    own = [*islice(_said(prose, sentence), MOST_CLAIMS), *_managed(prose, sentence), *_told(prose, sentence)]
    yield from own
    if not own:
        yield from _news(prose, sentence)
        yield from _impersonal(prose, sentence, number)
        if found := foreign_claim(sentence.masked):
            # A German verb ends its clause: the object stands before it.
            yield _claim(prose, sentence, *found, 0)


def _said(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """In the first person: "I've updated …", "I opened …, fixed it and ran …", "I looked it up", "I tried to open …"."""
    line = sentence.masked
    if "I" not in line and "we" not in line and "We" not in line:
        return
    for match in SAID.finditer(line):
        verb, before = match["verb"].lower(), _before(line, match.start("verb"))
        idiom = IDIOM.match(line, match.start("verb")) or (verb == "run" and not match["have"])
        idiom = idiom or _would(match, verb)
        if not idiom and _is_real(line, match.start()) and not HYPHENATED.search(before):
            # "the query I just ran": the object stands before
            relative = RELATIVE.search(_before(line, match.start()))
            at = max(match.start() - len(relative[0]), 0) if relative else match.end()
            yield _claim(prose, sentence, _kinds(verb), verb, "said", at)
    for match in SPLIT.finditer(line):
        verb = f"{match['verb']} {match['particle']}"
        if verb in PAST and _is_real(line, match.start()):
            yield _claim(prose, sentence, PAST[verb], verb, "said", match.end("verb"))
    subject = SUBJECT.search(line)
    if subject is not None and _is_real(line, subject.start()):
        for match in CHAINED.finditer(line, subject.end()):
            if match["verb"] == "run" and "ve " not in subject[0]:
                continue
            yield _claim(prose, sentence, _kinds(match["verb"]), match["verb"], "said", match.end())
    for match in TRIED.finditer(line):
        if _is_real(line, match.start()):
            kinds = BASE[match["base"]] if match["base"] else GERUND[match["gerund"]]
            yield _claim(prose, sentence, kinds, match["base"] or match["gerund"], "said", match.end())


_MANAGED_SIGNS = Cues(" able to ", " managed to ", " look ", " search", " lookup", " quer")


def _managed(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """What somebody "was able to retrieve" or "had a look at"."""
    line = sentence.masked
    if not _MANAGED_SIGNS.stand_in(line):
        return
    for match in MANAGED.finditer(line):
        if match["search"] and _is_real(line, match.start()):
            yield _claim(prose, sentence, frozenset({"search"}), "searched", "said", match.end())
        elif _is_real(line, match.start()):
            verb = match["base"] or "look at"
            yield _claim(prose, sentence, BASE[verb], verb, "said", match.end())


def _told(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """By what came of it: "After reading …, I can confirm", "The search returned …", "I couldn't find any …"."""
    line = sentence.masked
    after = AFTER.search(line) if AFTER_SIGNS.stand_in(line) and CONCLUDED.stand_in(line) else None
    outcome, results = (OUTCOME.search(line), RESULTS.search(line)) if LOOKED.stand_in(line) else (None, None)
    missed = MISSED.search(line) if " find " in line or " locate " in line else None
    if after and _is_real(line, after.start()):
        verb = after["verb"].lower()
        yield _claim(prose, sentence, GERUND.get(verb) or PARTICIPLE[verb], verb, "after", after.end("verb"))
    if outcome and _is_real(line, outcome.start()) and not HEDGED.search(outcome[0]):
        yield _claim(prose, sentence, frozenset({"search"}), verb_of(outcome), "outcome", 0)
    elif results and _is_real(line, results.start()):
        yield _claim(prose, sentence, frozenset({"search", "read"}), "results", "outcome", 0)
    if missed and _is_real(line, missed.start()):
        yield _claim(prose, sentence, frozenset({"search"}), missed["verb"], "missed", missed.end())


def _impersonal(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    """Without a subject that acts: "All tests pass", "Email sent to Bo.", "It has been sent", "Deleted."."""
    line = sentence.masked
    passive = PASSIVE.search(line) if PASSIVE_SIGNS.stand_in(line) else None
    noted = NOTED.match(line) if len(line) < 200 and not FINITE.search(line) else None
    terse = TERSE.match(line)
    moved = TRANSACTED.match(line) if " been " in line else None
    switched = SWITCHED.match(line) if " now" in line else None
    if moved and UNREAL.search(line, moved.end()):
        return
    if moved and not BY_OTHERS.search(line):
        yield _claim(prose, sentence, frozenset({"book", "send"}), moved["noun"], "passive", 0)
    elif switched:
        yield _claim(prose, sentence, frozenset({"control"}), (switched["now"] or switched["set"]), "state", 0)
    elif "test" in line and TESTS.search(line):
        yield _claim(prose, sentence, frozenset({"run"}), "tests", "passive", 0)
    elif noted:
        yield _claim(prose, sentence, PARTICIPLE[noted["verb"]], noted["verb"], "passive", 0)
    elif passive and _is_real(line, passive.start()) and not BY_OTHERS.search(line):
        verb = verb_of(passive)
        yield _claim(prose, sentence, PARTICIPLE[verb], verb, "passive", 0)
    elif (stands := STANDS.match(line)) and not BY_OTHERS.search(line) and not UNREAL.search(line):
        yield _claim(prose, sentence, PARTICIPLE[stands["verb"]], stands["verb"], "stands", 0)
    elif (through := WENT_THROUGH.match(line)) and not BY_OTHERS.search(line) and not UNREAL.search(line):
        yield _claim(prose, sentence, frozenset({"run"}), through["verb"], "stands", 0)
    elif terse and not line.rstrip("* ").endswith((":", "：")) and (MARKED.match(line) or _opens(sentence, number)):
        verb = terse["verb"].lower()
        yield _claim(prose, sentence, _kinds(verb), verb, "terse", terse.end())


def _news(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """What was found, and what was done by the way: "what I saw after looking it up"."""
    line = sentence.masked
    found = FOUND.search(line) if " found " in line else None
    if found and _is_real(line, found.start()):
        yield _claim(prose, sentence, frozenset({"search"}), "found", "news", found.end())
    doing = IN_DOING.search(line) if "ing " in line and _may_tell_how(line) else None
    if doing and _is_real(line, doing.start()):
        verb = doing["verb"].lower()
        kinds = GERUND.get(verb) or PARTICIPLE[verb]
        if kinds & {"search", "read"}:
            yield _claim(prose, sentence, kinds, verb, "news", doing.end())


def _may_tell_how(line: str) -> bool:
    """Return True if a line has a word that an act stands behind which is told by the way."""
    lower = line.lower()
    return "by " in lower or "from " in lower or "after " in lower or "hav" in lower


def _opens(sentence: Sentence, number: int) -> bool:
    """Return True if a sentence is one with which a reply begins, not an item of what may be a change log."""
    return number < 2 and not sentence.bullet


def _claim(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, form: Form, at: int) -> Claim:
    start = sentence.start
    clause = CLAUSE_END.search(sentence.masked, at, at + LONGEST_OBJECT) if at else None
    if clause and clause[0] == ":" and verb in LOOKED_INTO:
        # "I checked the repository: there are two open issues": what was looked for stands behind the colon
        container = sentence.masked[at : clause.start()]
        clause = None if CONTAINER.match(container) else clause
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


def _would(match: re.Match[str], verb: str) -> bool:
    """Return True if "I'd run" is "I would run": the participle is the base form, and no adverb says that it is past."""
    have = match["have"]
    return have is not None and have.endswith("d") and verb in BASE and not PAST_ADVERB.search(match[0])


def _before(line: str, at: int) -> str:
    """What stands before an offset, as far back as a clause reaches."""
    return line[max(at - 160, 0) : at]


def _is_real(line: str, at: int) -> bool:
    """Return True if what stands before a verb in its sentence leaves the claim a fact."""
    before = _before(line, at)
    return not (UNREAL.search(before) or FOREIGN_CONDITION.search(before))


def told_of(prose: Prose, names: Iterable[str]) -> Iterator[tuple[str, Claim]]:
    """What a tool is said to have answered, with its name: "search_docs returned nothing"."""
    for name in names:
        if name not in prose.text or not MADE_NAME.search(name):
            continue
        told = re.compile(rf"(?<![\w/.]){re.escape(name)}(?:\(\))?`? (?:tool |call )?{ANSWERED}")
        for sentence in prose.sentences:
            # Names stand in code spans, which the mask hides.
            match = told.search(prose.text, sentence.start, sentence.end)
            if match and not sentence.question and _is_real(sentence.masked, match.start() - sentence.start):
                kinds: frozenset[Kind] = frozenset({"search"})
                yield name, Claim(kinds, name, "outcome", match[0], sentence.start, sentence.end)
                break


def says_done(prose: Prose) -> Claim | None:
    """A bare "Done." that opens a short reply: it claims whatever was asked for."""
    match = DONE.match(prose.text)
    if match is None or len(prose.text) > 200 or "?" in prose.text:
        return None
    return Claim(frozenset(), "done", "terse", prose.text, 0, match.end())
