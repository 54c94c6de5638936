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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from wirelint.knowledge.actions import (
    BASE,
    DONE,
    GERUND,
    PARTICIPLE,
    PAST,
    Kind,
    alternatives,
)
from wirelint.knowledge.prose import Prose, Sentence

Form = Literal["said", "after", "outcome", "passive", "terse", "missed"]
"""How a claim is made. `outcome`: told by its result ("the search returned …"); `terse`: without a subject ("Deleted.");
`missed`: something that was not found, which says that it was looked for."""


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


_LONGEST_OBJECT = 240
_MOST_CLAIMS = 16
"""Claims of one sentence that are looked at: more are no prose."""
_ADVERBS = (
    r"(?:(?:just|now|already|also|then|first|next|successfully|finally|carefully|thoroughly|quickly|briefly|"
    r"personally|again|"
    r"gone ahead and|went ahead and|in fact|actually|since|even|double-|re-)[ ]?,?[ ]?){0,4}"
)
_PAST_VERB = alternatives({*PAST, *PARTICIPLE} - {"run"})
_PARTICIPLE_VERB = alternatives(PARTICIPLE)
_SAID = re.compile(
    rf"\b(?:(?P<have>I(?:['’]ve| have|['’]d)|[Ww]e(?:['’]ve| have)) |I ){_ADVERBS}(?P<verb>(?:{_PAST_VERB})|run)\b"
)
_SUBJECT = re.compile(
    rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)) {_ADVERBS}(?:\w+ed|found|wrote|ran|sent|read|made|took)\b"
)
_CHAINED = re.compile(rf"(?:\band|,|\bthen|;)[ ]+(?:then |also |have )?{_ADVERBS}(?P<verb>{_PAST_VERB})\b")
_SPLIT = re.compile(
    rf"\bI(?:['’]ve| have)? {_ADVERBS}(?P<verb>looked|pulled|turned|switched|set) (?P<between>(?:[\w'’-]+ "
    rf"){{1,4}}?)(?P<particle>up|on|off)\b"
)
_TRIED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:tried|attempted) (?:to (?P<base>{alternatives(BASE)})|"
    rf"(?P<gerund>{alternatives(GERUND)}))\b"
)
_AFTER = re.compile(
    rf"\b(?:[Aa]fter|[Uu]pon|[Hh]aving|[Ff]rom) {_ADVERBS}(?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b"
    r"(?P<rest>.{0,200}?)(?:,| that)? ?\b(?:I (?:can|could|found|see|saw|confirm|noticed|conclude|don['’]t|did)|"
    r"it (?:appears|looks|seems)|"
    r"there (?:is|are|was|were)|no (?:results|matches|records))\b"
)
_NOTHING = r"(?:0|zero|no|any|\d+)"
_HITS = (
    r"(?:results?|matches|hits|documents?|articles?|records?|entries|files?|rows?|occurrences|items|messages|"
    r"emails|events|"
    r"tickets|orders|pages|passages)"
)
_OUTCOME = re.compile(
    r"\b(?:[Mm]y|[Tt]he|[Tt]his|[Aa]) (?:[\w-]+ ){0,3}?(?P<verb>search|query|"
    r"lookup)\b[^.!?]{0,120}?\b(?:returned|found|yielded|came back|turned "
    r"up|produced|revealed|(?:did not|didn['’]t) (?:return|find|yield|turn up|produce))\b|^(?:[\w-]+ "
    r"){0,2}(?P<verb2>[Ss]earch|[Qq]uery|[Ll]ookup) "
    r"(?:is )?(?:complete|completed|finished|done)\b|\b[Bb]ased on my (?P<verb3>search|lookup|query)\b|"
    rf"\bI(?:['’]ve| have)? {_ADVERBS}(?P<verb4>found) (?:{_NOTHING} |a total of )(?:[\w-]+ ){{0,2}}{_HITS}\b|"
    rf"^(?:0|Zero|No) (?:[\w-]+ ){{0,2}}{_HITS} (?:were |was )?(?P<verb5>found|returned)\b"
)
_RESULTS = re.compile(
    r"\b(?:[Bb]ased on|[Aa]ccording to|[Ff]rom) (?:the|my) (?P<verb>search results|tool(?:['’]s)? (?:output|"
    r"results?|response)|query results?|"
    r"results of (?:the|my) (?:search|query|lookup))\b"
)
_MISSED = re.compile(
    r"\bI (?:couldn['’]t|could not|was unable to|wasn['’]t able to|didn['’]t|did not) (?P<verb>find|locate) "
    r"(?:any|anything|a|the)\b"
)
_PASSIVE = re.compile(
    rf"\b(?:has|have) {_ADVERBS}been {_ADVERBS}(?P<verb>{_PARTICIPLE_VERB})\b|\b(?:was|were) successfully "
    rf"(?P<verb2>{_PARTICIPLE_VERB})\b"
    rf"|\b(?:is|are) now (?P<verb3>{_PARTICIPLE_VERB})\b|\b(?P<verb4>{_PARTICIPLE_VERB}) successfully\b"
)
_BY_OTHERS = re.compile(
    r"\b(?:by (?:the|a|an|your|someone|another|default)|since (?:version|v?\d|\d{4})|in (?:version|v?\d|\d{4})|"
    r"that (?:has|have)|which (?:has|have)|"
    r"many times|for years|in the past|deprecated|usually|typically|often|always|never)\b"
)
_TERSE = re.compile(
    rf"^(?:[^\w\s`\"']{{1,3}}\s*)?(?:\*\*)?(?:Successfully "
    rf")?(?P<verb>{alternatives(word.capitalize() for word in PARTICIPLE)}|Ran|Wrote)\b(?!-)"
)
_MARKED = re.compile(r"^(?:[✅✔☑🎉👍✓]\ufe0f?|\*\*)")
_UNREAL = re.compile(
    r"\b(?:if|would|could|should|might|may|suppose|imagine|assuming|unless|whether|pretend|hypothetically|as if|"
    r"as though|once|when|"
    r"until|before|whenever|believe|think|probably|perhaps|maybe|wish|for example|for instance|such as|e\.g|say|"
    r"said|says|"
    r"claims?|wrote|replied|like|after|every time|not|never)\b|n['’]t\b",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"\b(?:earlier|previously|before|above|last time|a moment ago|already|in (?:the|my|our) (?:previous|first|"
    r"last)|as I|at the (?:start|beginning)"
    r"|vorhin|bereits|zuvor|plus tôt|déjà|auparavant|antes|anteriormente|ya)\b|之前|刚才|此前",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[;:](?=\s)|, (?:and|but|so|which|because|where|I)\b|\b(?:but|because|which|so that|I can|I could)\b|\band "
    r"(?:I|it|the|there|they|all|found|can|\w+ed)\b"
)
_IDIOM = re.compile(
    r"(?:ran|run) (?:into|out|through|across|over|the numbers)\b|read (?:that|about|somewhere|between)\b|looked "
    r"(?:at (?:this|it|that) from|for (?:a|ways))\b|"
    r"set (?:out|aside|forth)\b|made (?:sure|a (?:mistake|note|guess|list|point)|an? (?:error|assumption))\b|got "
    r"(?:it|you|that)\b|"
    r"tested (?:this|it|that)? ?(?:mentally|by hand)\b|opened with\b|placed (?:emphasis|the emphasis)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(r"\b(?:probably|likely|may|might|could|would|should|must|will|if|typically|usually)\b")
_NOTED = re.compile(
    rf"^[^\w]{{0,4}}(?:[\w'’.-]+ ){{1,4}}?(?P<verb>{_PARTICIPLE_VERB})(?: successfully)?(?:[.!]|$| (?:to|at|for|"
    rf"in|on|as|with)\b)"
)
"""A note without a finite verb: "Email sent to Bo."."""
_FINITE = re.compile(
    r"\b(?:is|are|was|were|be|been|can|will|has|have|had|do|does|did|not|I|you|we|they|he|she|it|by|if|when|how|"
    r"to be)\b|n['’]t\b"
)
_RELATIVE = re.compile(r"\b(?:[Tt]he|[Tt]his|[Aa]n?) (?:[\w-]+ ){1,3}(?:that |which )?$")
_TESTS = re.compile(
    r"^[^\w]{0,4}(?:All|The|Every)(?: of the)?(?: \d+)?(?: \w+)? (?P<verb>tests?) (?:have |are |now |has "
    r")*(?:pass(?:ed|es|ing)?|succeeded|green)\b"
)
_LETTER = re.compile(
    r"^(?:\*\*)?(?:Subject|Betreff|Objet|Asunto|主题) ?[:：]|^(?:Dear|Hi|Hello|Hey|Sehr geehrte\w*|Liebe[rs]?|Hallo|"
    r"Bonjour|Cher|Chère|Estimad[oa]s?|Hola)\b[^\n.!?]{0,40},[ \t]*$|(?<=[\n:] )(?:Dear|Sehr geehrte\w*) |"
    r"(?<=\n)(?:Dear|Sehr geehrte\w*) ",
    re.MULTILINE,
)
_HYPHENATED = re.compile(r"[\w]-$")

_FOREIGN_CONDITION = re.compile(r"\b(?:wenn|falls|sobald|si)\b", re.IGNORECASE)
_DONE = re.compile(
    r"^[^\w]{0,4}(?:done|all done|all set|it['’]s done|task complete[d]?|completed|finished|erledigt|fertig|"
    r"c['’]est fait|listo|hecho|(?:已)?完成了?|搞定了?|办好了?)\b[.!。！ ]*",
    re.IGNORECASE,
)

# German, French, Spanish, Chinese. Finished forms stand in the order of `actions.DONE`.
_GERMAN, _FRENCH, _SPANISH, _CHINESE = (alternatives(table) for table in DONE)
_FOREIGN_SAID = (
    re.compile(rf"\b(?:[Ii]ch habe?|habe ich)\b(?P<gap>[^!?;]{{0,160}}?)\b(?P<verb>{_GERMAN})\b"),
    re.compile(
        rf"\b[Jj]['’]ai (?:bien |déjà |aussi |ensuite |également |effectivement )?(?P<verb>{_FRENCH})\b(?P<gap>)"
    ),
    re.compile(rf"(?:^|[\s¡(])(?:[Hh]e (?:ya )?|[Yy]a |(?=[A-ZÁÉ])|y )(?P<verb>{_SPANISH})\b(?P<gap>)"),
    re.compile(
        rf"(?:我(?:们)?(?:已经|已|刚刚|刚才|刚)?(?:成功)?(?:[为帮给替](?:[您你]|"
        rf"[^，,。]{{1,10}}?))?(?:在[^，,。]{{1,20}})?(?P<verb>{_CHINESE})(?:了|过|完|好)"
        rf"|我(?:们)?(?:已经|已|刚刚|刚才)(?:成功)?(?:[为帮给替](?:[您你]|"
        rf"[^，,。]{{1,10}}?))?(?:在[^，,。]{{1,20}}[里中上])?(?P<verb2>{_CHINESE})"
        rf"|已经?(?:成功)?(?:[为帮给替](?:[您你]|[^，,。]{{1,10}}?))?(?P<verb3>{_CHINESE}))(?P<gap>)"
    ),
)
_FOREIGN_PASSIVE = (
    re.compile(rf"\b(?:wurden?|ist|sind) (?:[\w-]+ ){{0,6}}?(?:nun |jetzt |erfolgreich )?(?P<verb>{_GERMAN})\b"),
    re.compile(rf"\b(?:a|ont) (?:bien )?été (?P<verb>{_FRENCH})e?s?\b"),
    re.compile(rf"\b(?:(?:ha|han) sido|se (?:ha|han)) (?P<verb>{_SPANISH})(?:s|as|os)?\b"),
)
_FOREIGN_OUTCOME = re.compile(
    r"\b(?P<verb>Suche|Abfrage)\b[^.!?]{0,80}\b(?:ergab|lieferte|brachte)\b|"
    r"\b(?P<verb2>recherche)\b[^.!?]{0,80}\bn['’]a (?:donné|retourné|renvoyé)\b"
    r"|\b(?P<verb3>búsqueda)\b[^.!?]{0,80}\b(?:no (?:devolvió|arrojó|dio)|devolvió|arrojó)\b|(?P<verb4>搜索|"
    r"查询)[^。！？]{0,40}(?:没有找到|未找到|返回|找到)",
    re.IGNORECASE,
)
_FOREIGN_UNREAL = re.compile(
    r"\b(?:wenn|falls|sobald|würde|könnte|hätte|ob|nicht|kein\w*|noch nicht|nie|si|lorsque|quand|dès que|"
    r"pourrais|aurais|ne|pas|cuando|"
    r"podría|habría|no|aún|todavía)\b|如果|若|要是|可以|可能|假如|一旦|将会|会|没有|未|还没|尚未|不",
    re.IGNORECASE,
)


def claims(prose: Prose) -> Iterator[Claim]:
    """The claims of a text, in the order in which they stand; several of one sentence are possible."""
    letter = letter_start(prose.text)
    for number, sentence in enumerate(prose.sentences):
        if not sentence.question and sentence.start < letter:
            yield from islice(_claims_of(prose, sentence, number), _MOST_CLAIMS)


def letter_start(text: str) -> int:
    """Where a letter begins that a reply offers: what follows is said by whoever sends it. The length when there is none.

    A salutation on the first line is the reply's own.
    """
    found = _LETTER.search(text)
    if found is not None and found.start() == 0 and ":" not in found[0] and "：" not in found[0]:
        found = _LETTER.search(text, found.end())
    return found.start() if found else len(text)


def _claims_of(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    own = [*islice(_said(prose, sentence), _MOST_CLAIMS), *_told(prose, sentence)]
    yield from own
    if not own:
        yield from _impersonal(prose, sentence, number)
        yield from _foreign(prose, sentence)


def _said(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """In the first person: "I've updated …", "I opened …, fixed it and ran …", "I looked it up", "I tried to open …"."""
    line = sentence.masked
    for match in _SAID.finditer(line):
        verb, before = match["verb"].lower(), _before(line, match.start("verb"))
        idiom = _IDIOM.match(line, match.start("verb")) or (verb == "run" and not match["have"])
        if not idiom and _is_real(line, match.start()) and not _HYPHENATED.search(before):
            # "the query I just ran": the object stands before
            relative = _RELATIVE.search(_before(line, match.start()))
            at = max(match.start() - len(relative[0]), 0) if relative else match.end()
            yield _claim(prose, sentence, _kinds(verb), verb, "said", at)
    for match in _SPLIT.finditer(line):
        verb = f"{match['verb']} {match['particle']}"
        if verb in PAST and _is_real(line, match.start()):
            yield _claim(prose, sentence, PAST[verb], verb, "said", match.end("verb"))
    subject = _SUBJECT.search(line)
    if subject is not None and _is_real(line, subject.start()):
        for match in _CHAINED.finditer(line, subject.end()):
            yield _claim(prose, sentence, _kinds(match["verb"]), match["verb"], "said", match.end())
    for match in _TRIED.finditer(line):
        if _is_real(line, match.start()):
            kinds = BASE[match["base"]] if match["base"] else GERUND[match["gerund"]]
            yield _claim(prose, sentence, kinds, match["base"] or match["gerund"], "said", match.end())


def _told(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    """By what came of it: "After reading …, I can confirm", "The search returned …", "I couldn't find any …"."""
    line = sentence.masked
    after, outcome, results, missed = (pattern.search(line) for pattern in (_AFTER, _OUTCOME, _RESULTS, _MISSED))
    if after and _is_real(line, after.start()):
        verb = after["verb"].lower()
        yield _claim(prose, sentence, GERUND.get(verb) or PARTICIPLE[verb], verb, "after", after.end("verb"))
    if outcome and _is_real(line, outcome.start()) and not _HEDGED.search(outcome[0]):
        yield _claim(prose, sentence, frozenset({"search"}), _verb(outcome), "outcome", 0)
    elif results and _is_real(line, results.start()):
        yield _claim(prose, sentence, frozenset({"search", "read"}), "results", "outcome", 0)
    if missed and _is_real(line, missed.start()):
        yield _claim(prose, sentence, frozenset({"search"}), missed["verb"], "missed", missed.end())


def _impersonal(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    """Without a subject that acts: "All tests pass", "Email sent to Bo.", "It has been sent", "Deleted."."""
    line = sentence.masked
    noted, passive, terse = _NOTED.match(line), _PASSIVE.search(line), _TERSE.match(line)
    if _TESTS.search(line):
        yield _claim(prose, sentence, frozenset({"run"}), "tests", "passive", 0)
    elif noted and len(line) < 200 and not _FINITE.search(line):
        yield _claim(prose, sentence, PARTICIPLE[noted["verb"]], noted["verb"], "passive", 0)
    elif passive and _is_real(line, passive.start()) and not _BY_OTHERS.search(line):
        verb = _verb(passive)
        yield _claim(prose, sentence, PARTICIPLE[verb], verb, "passive", 0)
    elif terse and not line.rstrip("* ").endswith((":", "：")) and (_MARKED.match(line) or _opens(sentence, number)):
        verb = terse["verb"].lower()
        yield _claim(prose, sentence, _kinds(verb), verb, "terse", terse.end())


def _opens(sentence: Sentence, number: int) -> bool:
    """Whether a sentence is one with which a reply begins, not an item of what may be a change log."""
    return number < 2 and not sentence.bullet


def _foreign(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    line = sentence.masked
    for table, pattern in zip(DONE, _FOREIGN_SAID, strict=True):
        for match in pattern.finditer(line):
            verb = _verb(match)
            if _FOREIGN_UNREAL.search(_before(line, match.start())) or _FOREIGN_UNREAL.search(match["gap"] or ""):
                continue
            # A German verb ends its clause: the object stands before it.
            yield _claim(prose, sentence, table[verb], verb, "said", 0)
            return
    for table, pattern in zip(DONE, _FOREIGN_PASSIVE, strict=False):
        passive = pattern.search(line)
        if passive is not None and not _FOREIGN_UNREAL.search(line):
            yield _claim(prose, sentence, table[passive["verb"]], passive["verb"], "passive", 0)
            return
    if outcome := _FOREIGN_OUTCOME.search(line):
        yield _claim(prose, sentence, frozenset({"search"}), _verb(outcome), "outcome", 0)


def _claim(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, form: Form, at: int) -> Claim:
    start = sentence.start
    clause = _CLAUSE_END.search(sentence.masked, at, at + _LONGEST_OBJECT) if at else None
    shown = prose.text[start + at : start + clause.start() if clause else sentence.end]
    return Claim(
        kinds,
        verb,
        form,
        shown[:_LONGEST_OBJECT],
        start,
        sentence.end,
        _EARLIER.search(sentence.masked, max(at - 160, 0), at + _LONGEST_OBJECT) is not None,
    )


def _verb(match: re.Match[str]) -> str:
    return next(word for name, word in match.groupdict().items() if word and name.startswith("verb")).lower()


def _kinds(verb: str) -> frozenset[Kind]:
    verb = verb.lower()
    return PAST.get(verb) or PARTICIPLE[verb]


def _before(line: str, at: int) -> str:
    """What stands before an offset, as far back as a clause reaches."""
    return line[max(at - 160, 0) : at]


def _is_real(line: str, at: int) -> bool:
    """Whether what stands before a verb in its sentence leaves the claim a fact."""
    before = _before(line, at)
    return not (_UNREAL.search(before) or _FOREIGN_CONDITION.search(before))


def says_done(prose: Prose) -> Claim | None:
    """A bare "Done." that opens a short reply: it claims whatever was asked for."""
    match = _DONE.match(prose.text)
    if match is None or len(prose.text) > 200 or "?" in prose.text:
        return None
    return Claim(frozenset(), "done", "terse", prose.text, 0, match.end())
