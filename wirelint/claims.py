"""What a text claims to have been done, what it announces, and what a user asked for.

Theory of operation. A claim is a finished action in the first person or in a form that amounts to it: "I searched …",
"After reading …, I can confirm", "Deleted.", "The mail has been sent", "The search returned nothing". Patterns run over single
sentences of masked prose (`wirelint.prose`), so nothing quoted and no code is ever a claim. What makes the sentence unreal (a
condition before the verb, a modal, a hedge, a question) or negates it leaves no claim. Whether a claim concerns a tool at all
is not decided here: see `wirelint.toolkinds`.

Patterns are flat alternatives with bounded gaps, so that a text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wirelint.actions import (
    ASKED,
    BASE,
    DONE,
    GERUND,
    PARTICIPLE,
    PAST,
    SOON,
    Kind,
    alternatives,
)
from wirelint.prose import Prose, Sentence

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


@dataclass(frozen=True, slots=True)
class Announcement:
    """An action that is said to come next. `start`, `end`: its sentence."""

    kinds: frozenset[Kind]
    verb: str
    object: str
    start: int
    end: int


_ADVERBS = (
    r"(?:(?:just|now|already|also|then|first|next|successfully|finally|carefully|thoroughly|quickly|briefly|personally|again|"
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
    rf"\bI(?:['’]ve| have)? {_ADVERBS}(?P<verb>looked|pulled|turned|switched|set) (?P<between>(?:[\w'’-]+ ){{1,4}}?)(?P<particle>up|on|off)\b"
)
_TRIED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:tried|attempted) (?:to (?P<base>{alternatives(BASE)})|(?P<gerund>{alternatives(GERUND)}))\b"
)
_AFTER = re.compile(
    rf"\b(?:[Aa]fter|[Uu]pon|[Hh]aving|[Ff]rom) {_ADVERBS}(?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b"
    r"(?P<rest>.{0,200}?)(?:,| that)? ?\b(?:I (?:can|could|found|see|saw|confirm|noticed|conclude|don['’]t|did)|it (?:appears|looks|seems)|"
    r"there (?:is|are|was|were)|no (?:results|matches|records))\b"
)
_NOTHING = r"(?:0|zero|no|any|\d+)"
_HITS = (
    r"(?:results?|matches|hits|documents?|articles?|records?|entries|files?|rows?|occurrences|items|messages|emails|events|"
    r"tickets|orders|pages|passages)"
)
_OUTCOME = re.compile(
    r"\b(?:[Mm]y|[Tt]he|[Tt]his|[Aa]) (?:[\w-]+ ){0,3}?(?P<verb>search|query|lookup)\b[^.!?]{0,120}?\b(?:returned|found|yielded|came back|turned "
    r"up|produced|revealed|(?:did not|didn['’]t) (?:return|find|yield|turn up|produce))\b|^(?:[\w-]+ ){0,2}(?P<verb2>[Ss]earch|[Qq]uery|[Ll]ookup) "
    r"(?:is )?(?:complete|completed|finished|done)\b|\b[Bb]ased on my (?P<verb3>search|lookup|query)\b|"
    rf"\bI(?:['’]ve| have)? {_ADVERBS}(?P<verb4>found) (?:{_NOTHING} |a total of )(?:[\w-]+ ){{0,2}}{_HITS}\b|"
    rf"^(?:0|Zero|No) (?:[\w-]+ ){{0,2}}{_HITS} (?:were |was )?(?P<verb5>found|returned)\b"
)
_MISSED = re.compile(
    r"\bI (?:couldn['’]t|could not|was unable to|wasn['’]t able to|didn['’]t|did not) (?P<verb>find|locate) (?:any|anything|a|the)\b"
)
_PASSIVE = re.compile(
    rf"\b(?:has|have) {_ADVERBS}been {_ADVERBS}(?P<verb>{_PARTICIPLE_VERB})\b|\b(?:was|were) successfully (?P<verb2>{_PARTICIPLE_VERB})\b"
    rf"|\b(?:is|are) now (?P<verb3>{_PARTICIPLE_VERB})\b|\b(?P<verb4>{_PARTICIPLE_VERB}) successfully\b"
)
_BY_OTHERS = re.compile(
    r"\b(?:by (?:the|a|an|your|someone|another|default)|since (?:version|v?\d|\d{4})|in (?:version|v?\d|\d{4})|that (?:has|have)|which (?:has|have)|"
    r"many times|for years|in the past|deprecated|usually|typically|often|always|never)\b"
)
_TERSE = re.compile(
    rf"^(?:[^\w\s`\"']{{1,3}}\s*)?(?:\*\*)?(?:Successfully )?(?P<verb>{alternatives(word.capitalize() for word in PARTICIPLE)}|Ran|Wrote)\b(?!-)"
)
_MARKED = re.compile(r"^(?:[✅✔☑🎉👍✓]\ufe0f?|\*\*)")
_UNREAL = re.compile(
    r"\b(?:if|would|could|should|might|may|suppose|imagine|assuming|unless|whether|pretend|hypothetically|as if|as though|once|when|"
    r"until|before|whenever|believe|think|probably|perhaps|maybe|wish|for example|for instance|such as|e\.g|say|said|says|"
    r"claims?|wrote|replied|like|after|every time|not|never)\b|n['’]t\b",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"\b(?:earlier|previously|before|above|last time|a moment ago|already|in (?:the|my|our) (?:previous|first|last)|as I|at the (?:start|beginning)"
    r"|vorhin|bereits|zuvor|plus tôt|déjà|auparavant|antes|anteriormente|ya)\b|之前|刚才|此前",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[;:](?=\s)|, (?:and|but|so|which|because|where|I)\b|\b(?:but|because|which|so that|I can|I could)\b|\band (?:I|it|the|there|they|all|found|can|\w+ed)\b"
)
_IDIOM = re.compile(
    r"(?:ran|run) (?:into|out|through|across|over|the numbers)\b|read (?:that|about|somewhere|between)\b|looked (?:at (?:this|it|that) from|for (?:a|ways))\b|"
    r"set (?:out|aside|forth)\b|made (?:sure|a (?:mistake|note|guess|list|point)|an? (?:error|assumption))\b|got (?:it|you|that)\b|"
    r"tested (?:this|it|that)? ?(?:mentally|by hand)\b|opened with\b|placed (?:emphasis|the emphasis)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(r"\b(?:probably|likely|may|might|could|would|should|must|will|if|typically|usually)\b")
_RELATIVE = re.compile(r"\b(?:[Tt]he|[Tt]his|[Aa]n?) (?:[\w-]+ ){1,3}(?:that |which )?$")
_TESTS = re.compile(r"^[^\w]{0,4}(?:All|The|Every)(?: of the)?(?: \d+)?(?: \w+)? (?P<verb>tests?) (?:have |are |now |has )*(?:pass(?:ed|es|ing)?|succeeded|green)\b")
_LETTER = re.compile(
    r"^(?:\*\*)?(?:Subject|Betreff|Objet|Asunto|主题) ?[:：]|^(?:Dear|Hi|Hello|Hey|Sehr geehrte\w*|Liebe[rs]?|Hallo|Bonjour|Cher|Chère|Estimad[oa]s?|Hola)\b[^\n.!?]{0,40},[ \t]*$|(?<=[\n:] )(?:Dear|Sehr geehrte\w*) |(?<=\n)(?:Dear|Sehr geehrte\w*) ",
    re.MULTILINE,
)
_HYPHENATED = re.compile(r"[\w]-$")

# German, French, Spanish, Chinese. Finished forms stand in the order of `actions.DONE`.
_GERMAN, _FRENCH, _SPANISH, _CHINESE = (alternatives(table) for table in DONE)
_FOREIGN_SAID = (
    re.compile(rf"\b(?:[Ii]ch habe?|habe ich)\b(?P<gap>[^!?;]{{0,160}}?)\b(?P<verb>{_GERMAN})\b"),
    re.compile(
        rf"\b[Jj]['’]ai (?:bien |déjà |aussi |ensuite |également |effectivement )?(?P<verb>{_FRENCH})\b(?P<gap>)"
    ),
    re.compile(rf"(?:^|[\s¡(])(?:[Hh]e (?:ya )?|[Yy]a |(?=[A-ZÁÉ])|y )(?P<verb>{_SPANISH})\b(?P<gap>)"),
    re.compile(
        rf"(?:我(?:们)?(?:已经|已|刚刚|刚才|刚)?(?:成功)?(?:[为帮给替][您你])?(?:在[^，,。]{{1,20}})?(?P<verb>{_CHINESE})(?:了|过|完|好)"
        rf"|我(?:们)?(?:已经|已|刚刚|刚才)(?:成功)?(?:[为帮给替][您你])?(?:在[^，,。]{{1,20}}[里中上])?(?P<verb2>{_CHINESE})"
        rf"|已经?(?:成功)?(?:[为帮给替][您你])?(?P<verb3>{_CHINESE}))(?P<gap>)"
    ),
)
_FOREIGN_PASSIVE = (
    re.compile(rf"\b(?:wurden?|ist|sind) (?:[\w-]+ ){{0,6}}?(?:nun |jetzt |erfolgreich )?(?P<verb>{_GERMAN})\b"),
    re.compile(rf"\b(?:a|ont) (?:bien )?été (?P<verb>{_FRENCH})e?s?\b"),
    re.compile(rf"\b(?:(?:ha|han) sido|se (?:ha|han)) (?P<verb>{_SPANISH})(?:s|as|os)?\b"),
)
_FOREIGN_OUTCOME = re.compile(
    r"\b(?P<verb>Suche|Abfrage)\b[^.!?]{0,80}\b(?:ergab|lieferte|brachte)\b|\b(?P<verb2>recherche)\b[^.!?]{0,80}\bn['’]a (?:donné|retourné|renvoyé)\b"
    r"|\b(?P<verb3>búsqueda)\b[^.!?]{0,80}\b(?:no (?:devolvió|arrojó|dio)|devolvió|arrojó)\b|(?P<verb4>搜索|查询)[^。！？]{0,40}(?:没有找到|未找到|返回|找到)",
    re.IGNORECASE,
)
_FOREIGN_UNREAL = re.compile(
    r"\b(?:wenn|falls|sobald|würde|könnte|hätte|ob|nicht|kein\w*|noch nicht|nie|si|lorsque|quand|dès que|pourrais|aurais|ne|pas|cuando|"
    r"podría|habría|no|aún|todavía)\b|如果|若|要是|可以|可能|假如|一旦|将会|会|没有|未|还没|尚未|不",
    re.IGNORECASE,
)


def claims(prose: Prose) -> Iterator[Claim]:
    """The claims of a text, in the order in which they stand; several of one sentence are possible."""
    letter = letter_start(prose.text)
    for number, sentence in enumerate(prose.sentences):
        if not sentence.question and sentence.start < letter:
            yield from _claims_of(prose, sentence, number)


def letter_start(text: str) -> int:
    """Where a letter begins that a reply offers: what follows is said by whoever sends it. The length when there is none.

    A salutation on the first line is the reply's own.
    """
    found = _LETTER.search(text)
    if found is not None and found.start() == 0 and ":" not in found[0] and "：" not in found[0]:
        found = _LETTER.search(text, found.end())
    return found.start() if found else len(text)


def _claims_of(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    line = sentence.masked
    found = False
    for match in _SAID.finditer(line):
        verb = match["verb"].lower()
        if (
            (verb == "run" and not match["have"])
            or _IDIOM.match(line, match.start("verb"))
            or not _is_real(line[: match.start()])
            or _HYPHENATED.search(line[: match.start("verb")])
        ):
            continue
        found = True
        # "the query I just ran": the object stands before
        relative = _RELATIVE.search(line[: match.start()])
        yield _claim(prose, sentence, _kinds(verb), verb, "said", relative.start() if relative else match.end())
    for match in _SPLIT.finditer(line):
        if (kinds := PAST.get(f"{match['verb']} {match['particle']}")) and _is_real(line[: match.start()]):
            yield _claim(prose, sentence, kinds, f"{match['verb']} {match['particle']}", "said", match.end("verb"))
            found = True
    if subject := _SUBJECT.search(line):
        if _is_real(line[: subject.start()]):
            for match in _CHAINED.finditer(line, subject.end()):
                yield _claim(prose, sentence, _kinds(match["verb"]), match["verb"], "said", match.end())
                found = True
    for match in _TRIED.finditer(line):
        if _is_real(line[: match.start()]):
            kinds = BASE[match["base"]] if match["base"] else GERUND[match["gerund"]]
            yield _claim(prose, sentence, kinds, match["base"] or match["gerund"], "said", match.end())
            found = True
    if match := _AFTER.search(line):
        if _is_real(line[: match.start()]):
            verb = match["verb"].lower()
            yield _claim(prose, sentence, GERUND.get(verb) or PARTICIPLE[verb], verb, "after", match.end("verb"))
            found = True
    if (match := _OUTCOME.search(line)) and _is_real(line[: match.start()]) and not _HEDGED.search(match[0]):
        yield _claim(prose, sentence, frozenset({"search"}), _verb(match), "outcome", 0)
        found = True
    if (match := _MISSED.search(line)) and _is_real(line[: match.start()]):
        yield _claim(prose, sentence, frozenset({"search"}), match["verb"], "missed", match.end())
    if not found:
        yield from _impersonal(prose, sentence, number)
        yield from _foreign(prose, sentence)


def _impersonal(prose: Prose, sentence: Sentence, number: int) -> Iterator[Claim]:
    line = sentence.masked
    if match := _TESTS.search(line):
        yield _claim(prose, sentence, frozenset({"run"}), "tests", "passive", 0)
    elif (match := _PASSIVE.search(line)) and _is_real(line[: match.start()]) and not _BY_OTHERS.search(line):
        verb = _verb(match)
        yield _claim(prose, sentence, PARTICIPLE[verb], verb, "passive", 0)
    elif (match := _TERSE.match(line)) and not line.rstrip("* ").endswith((":", "：")):
        marked = _MARKED.match(line)
        if marked or (not sentence.bullet and number < 2):
            verb = match["verb"].lower()
            yield _claim(prose, sentence, _kinds(verb), verb, "terse", match.end())


def _foreign(prose: Prose, sentence: Sentence) -> Iterator[Claim]:
    line = sentence.masked
    for table, pattern in zip(DONE, _FOREIGN_SAID, strict=True):
        for match in pattern.finditer(line):
            verb = _verb(match)
            if _FOREIGN_UNREAL.search(line[: match.start()]) or _FOREIGN_UNREAL.search(match["gap"] or ""):
                continue
            # A German verb ends its clause: the object stands before it.
            yield _claim(prose, sentence, table[verb], verb, "said", 0)
            return
    for table, pattern in zip(DONE, _FOREIGN_PASSIVE, strict=False):
        if (match := pattern.search(line)) and not _FOREIGN_UNREAL.search(line):
            yield _claim(prose, sentence, table[match["verb"]], match["verb"], "passive", 0)
            return
    if match := _FOREIGN_OUTCOME.search(line):
        yield _claim(prose, sentence, frozenset({"search"}), _verb(match), "outcome", 0)


def _claim(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, form: Form, at: int) -> Claim:
    start = sentence.start
    clause = _CLAUSE_END.search(sentence.masked, at) if at else None
    shown = prose.text[start + at : start + clause.start() if clause else sentence.end]
    return Claim(kinds, verb, form, shown[:240], start, sentence.end, _EARLIER.search(sentence.masked) is not None)


def _verb(match: re.Match[str]) -> str:
    return next(word for name, word in match.groupdict().items() if word and name.startswith("verb")).lower()


def _kinds(verb: str) -> frozenset[Kind]:
    verb = verb.lower()
    return PAST.get(verb) or PARTICIPLE[verb]


def _is_real(before: str) -> bool:
    """Whether what stands before the verb in its sentence leaves the claim a fact."""
    return not (_UNREAL.search(before) or _FOREIGN_UNREAL_WORDS.search(before))


_FOREIGN_UNREAL_WORDS = re.compile(r"\b(?:wenn|falls|sobald|si)\b", re.IGNORECASE)

# What comes next.
_BASES = alternatives(BASE)
_GERUNDS = alternatives(GERUND)
_SOON_ADVERBS = r"(?:(?:now|first|then|also|quickly|just|go ahead and|next|immediately|start by|begin by|try to|need to|have to|use|call)[ ]){0,4}"
_SOON_EN = re.compile(
    rf"\b(?:[Ll]et me|[Ll]et['’]s|I['’]ll|I will|I['’]m going to|I am going to|I need to|I should|I have to|I['’]m about to|allow me to) "
    rf"{_SOON_ADVERBS}(?:(?P<base>{_BASES})|(?P<gerund>{_GERUNDS}))\b"
)
_SOON_ING = re.compile(
    rf"(?:\bI['’]m (?:now |currently )?|\bI am (?:now |currently )?|^[Nn]ow |^[Nn]ext up[:,]? |^[Nn]ext[:,]? |\b[Ss]tarting by |\bwhile I(?:['’]m| am) |"
    rf"^(?:ok(?:ay)?|sure(?: thing)?|right|alright|got it|great|understood|one (?:moment|sec(?:ond)?)|just a (?:moment|sec(?:ond)?)|hold on)\W{{1,4}}(?:now )?)(?P<gerund>{_GERUNDS})\b",
    re.IGNORECASE,
)
_BARE_ING = re.compile(
    rf"^[^\w\s]{{0,3}}\s*(?P<gerund>{_GERUNDS})\b(?=.{{0,100}}(?:\.\.\.|…|:|\bnow\b|\bfirst\b))(?!.*\b(?:is|are|was|can|will|helps?|means|requires?|should|takes|lets|allows)\b)",
    re.IGNORECASE,
)
_WHILE = re.compile(rf"\bwhile I (?P<base>{_BASES})\b")
_CALL_NAME = re.compile(r"\b(?:call|use|invoke|calling|using|invoking|run|running|try)$", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"\b(?:if|once|when|whenever|after you|as soon as|before (?:I|we|you)|until|unless|later|tomorrow|next (?:time|week|month)|from now on|in (?:the )?future|"
    r"every|each time|please|let me know|you (?:can|could|may|want|would|should)|would|could|shall|happy to|gladly|need(?:s)? (?:you|your)|"
    r"provide|confirm|here['’]?s|here (?:is|are)|as follows|follows|below|step by step|explain|summari[sz]e|wait|"
    r"wenn|falls|sobald|bitte|möchtest|soll ich|si tu|si vous|souhaitez|veux-tu|si (?:me|quieres|deseas)|quieres|por favor|cuando)\b|如果|请|一旦|是否|需要您|之后",
    re.IGNORECASE,
)
_DE, _FR, _ES, _ZH = (alternatives(table) for table in SOON)
_SOON_FOREIGN = (
    re.compile(
        rf"\b[Ii]ch (?:werde |muss )?(?:[\w.-]+ ){{0,2}}?(?P<verb>{_DE})\b|\b(?:[Ii]ch werde|[Ll]ass mich|[Ii]ch muss|werde ich) [^!?;]{{0,120}}?\b(?P<verb2>{_DE})\b"
    ),
    re.compile(
        rf"\b(?:[Jj]e vais|[Ll]aissez-moi|[Ll]aisse-moi|[Jj]e dois) (?:maintenant |d['’]abord )?(?P<verb>{_FR})\b|\b[Jj]e (?P<verb2>{_FR})\b"
    ),
    re.compile(
        rf"\b(?:[Vv]oy a|[Dd]éjame|[Pp]ermíteme|[Vv]amos a|[Dd]ebo) (?:ahora )?(?P<verb>{_ES})\b|\b[Aa]hora (?:mismo )?(?P<verb2>{_ES})\b"
    ),
    re.compile(
        rf"(?:让我|我来|我将|我会|我要|我去|我先|我现在|我马上|我这就|接下来我?(?:将|会|要)?|正在)(?:先|来|去|立即|马上|开始|为您|帮您|帮你|使用|调用|重新|一下|现在|将|会)*(?P<verb>{_ZH})"
    ),
)
_FILLER = re.compile(
    r"^(?:[^\w\s]*\s*)?(?:one moment|just a (?:moment|second|sec)|hold on|please (?:wait|hold)|this (?:may|might|will|should) (?:only )?take|bear with me|give me a (?:moment|second|sec)"
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
    for pattern in (_SOON_EN, _WHILE, _SOON_ING, _BARE_ING):
        if match := pattern.search(line):
            groups = match.groupdict()
            base, gerund = groups.get("base"), (groups.get("gerund") or "").lower()
            kinds = BASE[base] if base else GERUND[gerund]
            return _announce(prose, sentence, kinds, base or gerund, match.end())
    for table, foreign in zip(SOON, _SOON_FOREIGN, strict=True):
        if match := foreign.search(line):
            verb = _verb(match)
            return _announce(prose, sentence, table[verb], verb, 0)
    return None


def _announce(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, at: int) -> Announcement:
    return Announcement(kinds, verb, prose.text[sentence.start + at : sentence.end][:240], sentence.start, sentence.end)


# What a user asks for.
_ASKS = re.compile(
    rf"(?:^|[.!?;,:\n]|\b(?:please|pls|can you|could you|would you|will you|and|then|to|now|just|also|kindly|let['’]s|sure|me)\b)[ ]*(?P<verb>{_BASES}|find|text|mail|remind|tell(?! me))\b",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\b(?:how (?:do|can|to|would|should|does|did)|why (?:do|does|did|is|was)|what (?:does|happens|is the))\b[^.?!\n]*",
    re.IGNORECASE,
)
_EXTRA_ASKS: dict[str, frozenset[Kind]] = {
    "find": frozenset({"search"}),
    "mail": frozenset({"send"}),
    "tell": frozenset({"send"}),
    "remind": frozenset({"create", "book"}),
}
_FOREIGN_ASKS = tuple(re.compile(rf"\b(?:{alternatives(table)})\b", re.IGNORECASE) for table in ASKED[:3])
_LOOKS_BACK = re.compile(
    r"\b(?:what|which|why|how|when|where|who)\b[^?.]{0,40}\b(?:did|have|had|was|were) (?:you|that|it|this)\b|^\s*(?:did|have|were|are) you\b|\bhave you\b|"
    r"\b(?:recap|remind me (?:what|which|how)|so far|summari[sz]e (?:what|our|the (?:conversation|session|chat)|everything)|what happened|what['’]s the status|"
    r"are you sure|really|is it done|where(?:['’]s| is) (?:that|it) from|what was|how come|you (?:said|told|found|did))\b|"
    r"\bwas hast du\b|\bhast du\b|\bqu['’]as-tu\b|\bas-tu\b|\bavez-vous\b|\bqué (?:hiciste|has)\b|做了什么|你(?:刚才|之前)",
    re.IGNORECASE,
)
_COMPOSES = re.compile(
    r"\b(?:write|draft|compose|rephrase|reword|translate|rewrite|proofread|generate|give me|tell|make|suggest|summari[sz]e)\b[^.!?\n]{0,60}\b(?:blog|story|essay|poem|haiku|"
    r"letter|post|script|dialogue|article|tweet|message|e?-?mail|letter|note|release notes|changelog|commit message|notes|diary|monologue|novel|scene|example|sentence|"
    r"transcript|conversation|cover letter|report|paragraph|german|french|spanish|english|chinese|speech|caption|headline|joke|status update)\b|"
    r"\bwrite (?:to|back)\b|"
    r"\b(?:role-?play|pretend|rephrase|paraphrase|übersetze|traduis|traduce|translate)\b|翻译",
    re.IGNORECASE,
)


def asked(text: str) -> frozenset[Kind]:
    """The kinds of action that a user's words ask for."""
    kinds: set[Kind] = set()
    text = _HOW_TO.sub(" ", text)
    for match in _ASKS.finditer(text):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    for table, pattern in zip(ASKED, _FOREIGN_ASKS, strict=False):
        for found in pattern.finditer(text):
            kinds |= table.get(found[0].lower(), frozenset())
    for word, found_kinds in ASKED[3].items():
        if word in text:
            kinds |= found_kinds
    return frozenset(kinds)


def looks_back(text: str) -> bool:
    """Whether a user asks about what was done before, not for something to be done."""
    return _LOOKS_BACK.search(text) is not None


def composes(text: str) -> bool:
    """Whether a user asks for a text, in which "I" is whoever the text speaks for."""
    return _COMPOSES.search(text) is not None


_DONE = re.compile(
    r"^[^\w]{0,4}(?:done|all done|all set|it['’]s done|task complete[d]?|completed|finished|erledigt|fertig|c['’]est fait|listo|hecho|(?:已)?完成了?|搞定了?|办好了?)\b[.!。！ ]*",
    re.IGNORECASE,
)


def says_done(prose: Prose) -> Claim | None:
    """A bare "Done." that opens a short reply: it claims whatever was asked for."""
    match = _DONE.match(prose.text)
    if match is None or len(prose.text) > 200 or "?" in prose.text:
        return None
    return Claim(frozenset(), "done", "terse", prose.text, 0, match.end())
