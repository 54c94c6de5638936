"""The finished acts that a short reply tells, found by grammar alone: in any verb, with or without who did it.

What makes a sentence unreal (a condition, a negation, another time, a question) leaves no act in it. Whether an act is that
of a tool is not decided here: see `performed`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from wirelint.claims.actions import AHEAD, ASKED, DONE, GERUND, PARTICIPLE, PAST, SOON, alternatives
from wirelint.claims.claims import ADVERBS, BY_OTHERS, EARLIER, FINITE, LABELLED, TEMPLATE, UNREAL, letter_start
from wirelint.claims.lemmas import PARTICIPLES, PASTS
from wirelint.text.prose import CODE, QUOTE, Prose, Sentence

# What a text repeats of the user's last words: the very thing that an order was about, whatever noun it has.
#
# Nouns are countless, and tables of them never complete. A reply that announces or claims what was ordered, though, says it
# of the same thing, mostly by the same word: "list the pods" of "which pods crash?".

_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
_CJK_RUN = re.compile("[\u3400-\u9fff\u30a0-\u30ff]{2,}")
_LEAST = 3
_LONGEST = 2_000
_SMALL_WORDS = """
aber about adesso after again agora ahora ainda algo all alla alle allen alles allora alors als also although amanha
anche ancora and another antes any anything apres aqui aquilo are asi ask assim auch auf aus aussi aux available avant
avec avere ayer because been before bei being bene bien big bitte bonjour both buenas buenos but cada can cela cette
ceux che chez chi ciao com come comme como con cosa cosi could cual cuando cuanto currently dall dalla dann dans das
dass day dei dein deine deinen del della delle dello dem demain den depois der des desde despues deux did die diese
diesem diesen dieser dieses dir doch does domani donc donde done dont dopo dos dove down durch each ein eine einem
einen einer eines einmal ela ele elle ellos else encore end entre eso essa esse essere est esta estaba estan estas
este esto estos etes etre etwas even ever every everything faire fait fare favor fazer few find first foi for from
fuer full fur gerne get gia give gli going good got gracias grazie habe haben hacer had hai hallo has hasta have hay
hello help her here heute hier him his hoje hola how hoy ich ici ihm ihn ihre ihren ils immer into isso ist its jetzt
jour just kann kannst know koennen kurz las last later lei les let leur like look loro los luego lui maintenant mais
make mal man manana many mas may maybe meine meinem meinen meiner meme mentre merci mes mesmo meu mia mientras minha
mio mir mis mit moechte moi moins molto moment mon more morgen most much mucho muito muy nach nada nao nas necesito
need nei nel nella nelle never new next nicht noch noi non nos nosso not nothing nous now nuestro nur obrigado oder
oggi ogni ohne okay old once onde one only oppure ora other otra otro oui our out over own par para parce pas pela
pelo pendant per perche pero peu peux piu plait please plus plusieurs pode podrias poi por porque posso pour pourquoi
pouvez preciso puede puedes puoi put quais qual quale quand quando que quel quella quelle quelles quello quels questa
queste questo qui quiero quoi right run same sans say schon see sehr sein sem ser ses set seu shall she should show
sie sin sind sino sobre solo some something sono sont soon sous soy still sua such sul sulla suo sur sure sus suyo
take tambem tambien tell tem tengo tenho tes than thank thanks that the their them then there these they thing things
this those tiene todas today todo todos toi tomorrow too tous tout toute toutes tres try tua tudo tutte tutti tutto
two ueber uma una unas und une uno unos uns unter use user using usted very via viele voce vom von votre vous wann
want warum was way welche welchen welcher well wenn wer werde werden were what when where which while who why wie will
wir wird with without would wurde yes yesterday yet you your yours zwischen
"""
"""Without accents: words of any order, in the languages of `tongues`."""
_COMMON = frozenset(_SMALL_WORDS.split())
_ACTS = frozenset(
    word
    for table in (AHEAD, GERUND, PARTICIPLE, PAST, *ASKED, *DONE, *SOON)
    for verb in table
    for word in verb.split(" ")
)
_ACTS_CJK = frozenset(word for word in _ACTS if not word.isascii() and len(word) <= 4)
_FORM_CJK = frozenset("我你您他她它已经了的吗呢吧为帮在请把这那就也都很是有和与个些得地着过")
_SMALL_CJK = frozenset({
    "一下", "帮我", "我的", "请问", "现在", "今天", "明天", "什么", "怎么", "可以", "是否", "多少", "状态", "好的", "马上",
    "最新", "目前", "如何",
})  # fmt: skip


def folded(text: str) -> str:
    """A text in lower case, without accents: `hôtel` is `hotel`."""
    text = text.casefold()
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def told_back(text: str, words: str) -> frozenset[str]:
    """The words of some weight that a text has in common with what the user said."""
    return _weighty(text) & _weighty(words)


def _weighty(text: str) -> frozenset[str]:
    found: set[str] = set()
    for spelled in _WORD.findall(text[:_LONGEST]):
        plain = folded(spelled)
        if any(sign.isdigit() for sign in plain):
            if len(plain) > 1:
                found.add(plain)
        elif plain in _COMMON or plain in _ACTS or spelled.casefold() in _ACTS:
            continue
        elif len(plain) >= _LEAST or (spelled.isupper() and len(spelled) > 1):
            found.add(plain[:-1] if plain.endswith("s") and len(plain) > _LEAST else plain)
    for run in _CJK_RUN.findall(text[:_LONGEST]):
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
_MAY_FINISH = re.compile(
    rf"ed\b|\b(?:{alternatives(PARTICIPLES | PASTS)})\b|\b(?:complete|successful|on|off|open|live|underway)\b|"
    r"ge\w{3,}(?:t|en)\b|\bnow\b|iert\b|[aiu][dt][oae]s?\b|é(?:e|s|es)?\b|[已成完]",
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
    rf"^(?P<who>{_WHO}{{1,90}}?) (?:is|are|(?P<past>was|were)) (?P<now>(?:(?:both|all|also) )?now )?(?:(?:both|"
    rf"all) )?(?P<verb>{_FINISHED})\b"
)
_NOTE = re.compile(
    rf"^(?P<who>(?:[^\s,;:]+ ){{1,6}}?)(?:successfully )?(?P<verb>{_FINISHED})(?: successfully)?"
    r"(?:[.!]|$|,? (?:to|at|for|from|in|into|on|as|with|by|and|letting|—|-)\b|:? |: | ?[—–✅✔☑✓👍🎉])"
)
_TERSE = re.compile(
    rf"^(?:Successfully )?(?P<verb>(?:[A-Z][a-z]+(?:-[a-z]+)?ed|"
    rf"{'|'.join(sorted(form.capitalize() for form in PASTS))}|Set|Put|Cut|Reset))"
    r"(?: |: )(?=\S)"
)
_COMES_OFF = re.compile(
    r"^(?P<who>[^,;:!?]{1,90}?) (?:is |are )?(?:now |all )?(?P<verb>complete|completed|confirmed|successful|underway|"
    r"live)\b"
)
_STATE = re.compile(
    rf"^(?P<who>{_WHO}{{1,90}}?)(?: is| are|['’]s) (?:(?:both|all|also) )?now (?P<verb>set|on|off|open|closed|live|"
    rf"running|playing|"
    r"heating|charging|(?:at )?\d[\d.,]*)\b"
)
_YOURS = re.compile(rf"^(?P<who>You)(?:['’]ve| have)? (?P<verb>{_PAST})\b")
"""What only a tool can have told: "you rolled a 9"."""
_FORMS = (_PERFECT, _WELL, _IS, _STATE, _NOTE, _COMES_OFF)
_OPENING = re.compile(
    r"^[^\w]*(?:(?:ok(?:ay)?|done|all (?:set|done)|sure(?: thing)?|great|perfect|got it|alright|right|yes|confirmed|"
    r"good news|"
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
_SHOWS = re.compile(rf"[:：][\s*]*$|[:：]\s*[{CODE}{QUOTE}\"“«„`]")
"""Behind a colon stands what was made."""
_IN_TIME = re.compile(r"\bby the (?:time|end|way)\b|\bin (?!(?:19|20)\d\d\b)\d+\b")
_UNSURE = re.compile(
    r"\b(?:unfortunately|sorry|cannot|can only|unable|however|need(?:s)? (?:you|your|the|a|to)|please|before|once|"
    r"would you like "
    r"me to|shall I|should I|do you want me|which (?:one|of)|let me know (?:if|which|what|when|how|your)|if you|"
    r"as soon as|not|"
    r"never|nothing|no longer|only if|would|could|might|didn['’]t|good to (?:know|hear)|glad to hear|thanks for|"
    r"as you|pretend|imagin\w+|hypothetical\w*|for example|simulat\w+|mock|draft)\b|"
    r"n['’]t\b",
    re.IGNORECASE,
)
"""What makes of a reply more, or less, than the account of an order that was carried out."""
_CLOSING = re.compile(
    r"\b(?:(?:please )?let me know (?:if|when) [^.!?]*|would you like (?:me to|to|anything)? ?[^.!?]*\?|"
    r"(?:anything|is there anything|do you need anything)[^.!?]*\?|(?:shall|should) I (?:also|now)[^.!?]*\?|"
    r"if you (?:need|want|"
    r"would like|have|['’]d like)[^.!?]*[.!?]|do you want (?:me to|anything)[^.!?]*\?)\s*$",
    re.IGNORECASE,
)
"""A courtesy at the end, which takes nothing back."""
_PERFECT_ABROAD = re.compile(
    r"\b(?:[Ii]ch habe|habe ich|ist|sind|wurden?) [^.!?;:]{0,120}?\b((?:[a-zäöü]{2,6})?ge[a-zäöüß]{3,}(?:t|en)|"
    r"[a-zäöü]{3,}iert)(?=[.!,]|$| und\b)|"
    r"\b[Jj]['’]ai (?:bien |aussi )?(\w{3,}é)\b|\b(?:a|ont) (?:bien )?été (\w{3,}é)(?:e|s|es)?\b|"
    r"\b(?:[Hh]e|[Ss]e (?:ha|han)|(?:ha|han) sido) (\w{3,}[ai]d[oa])s?\b|\b(?:foi|foram) (\w{3,}[ai]d[oa])s?\b|"
    r"\b(?:[Hh]o|è stat[oa]|sono stat[ie]) (\w{3,}[aiu]t[oaie])\b"
)
_CHINESE = re.compile(r"已(?:经|為|为|将|把)?[\u4e00-\u9fff]|[\u4e00-\u9fff](?:成功|完成|完毕)[。！]?$")
_UNREAL_CHINESE = re.compile(
    r"如果|若|假如|一旦|是否|吗|没有|没|未|尚|不|可以|建议|例如|比如|之前|曾|上次|您已经?[有在]|据"
)
_UNREAL_ABROAD = re.compile(
    r"\b(?:wenn|falls|sobald|würde|könnte|hätte|ob|nicht|kein\w*|nie|bereits|schon|von (?:dir|ihnen|der|dem|einem|"
    r"einer)|si|lorsque|quand|dès|ne|pas|déjà|par (?:le|la|un|une|votre)|"
    r"cuando|no|aún|ya|por (?:el|la|un|una|su|tu)|se quando|não|ainda|já|non|ancora|già|dal\w*)\b",
    re.IGNORECASE,
)
_ROMANCE = ("e", *(f"{vowel}{sign}{end}" for vowel in "aiu" for sign in "dt" for end in "oaie"))
_ENDING = re.compile(r"(?:[aiu][dt][oaie]|e)$")
_PREFIX = re.compile(r"^(?:[a-z]{2,6})?ge(?=[a-z]{4})")
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
    return _UNSURE.search(_CLOSING.sub("", prose.masked)) is not None


def _is_for_others(prose: Prose) -> bool:
    """Return True if a reply offers a letter or a template, in which somebody else speaks."""
    return letter_start(prose.text) < len(prose.text) or TEMPLATE.search(prose.masked) is not None


def acts(prose: Prose) -> Iterator[Act]:
    """The acts of the first sentences of a text."""
    for sentence in prose.sentences[:FEW]:
        if sentence.question or not _MAY_FINISH.search(sentence.masked):
            continue
        opening = _OPENING.match(sentence.masked)
        line = sentence.masked[opening.end() :] if opening else sentence.masked.lstrip("*_✅✔☑🎉👍✓\ufe0f ")
        found = tuple(_of(line, sentence))
        if found and not (
            BY_OTHERS.search(_IN_TIME.sub(" ", line))
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
    """A perfect of another language, with the root of its participle."""
    if not line.isascii() and _CHINESE.search(line) and not _UNREAL_CHINESE.search(line):
        return Act(DONE_CHINESE, sentence, abroad=True)
    match = _PERFECT_ABROAD.search(line)
    if match is None or _UNREAL_ABROAD.search(line):
        return None
    verb = folded(next(filter(None, match.groups())))
    root = (
        _ENDING.sub("", verb) if verb.endswith(_ROMANCE) else _PREFIX.sub("", verb).removesuffix("t").removesuffix("en")
    )
    return Act(root, sentence, abroad=True) if len(root) >= _ROOT else None


def _impersonal(line: str, sentence: Sentence) -> Iterator[Act]:
    for form in _FORMS:
        match = form.match(line)
        if match is None or _SUPPOSED.search(match["who"]) or _SECOND_PERSON.search(match["who"].strip()):
            continue
        if form is _NOTE and (len(line) > 160 or FINITE.search(line[: match.end("verb")])):
            continue
        groups = match.groupdict()
        verb = (groups["verb"] or groups["verb2"]).lower()
        yield Act(verb, sentence, weak=form is _IS and groups["now"] is None, past=groups.get("past") is not None)
        yield from (Act(more["verb"].lower(), sentence) for more in _THEN.finditer(line, match.end()))
        return
