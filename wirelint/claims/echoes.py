"""What a text repeats of the user's last words: the very thing that an order was about, whatever noun it has.

Nouns are countless, and tables of them never complete. A reply that announces or claims what was ordered, though, says it
of the same thing, mostly by the same word: "list the pods" of "which pods crash?".
"""

from __future__ import annotations

import re
import unicodedata

from wirelint.claims.actions import AHEAD, ASKED, DONE, GERUND, PARTICIPLE, PAST, SOON

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
