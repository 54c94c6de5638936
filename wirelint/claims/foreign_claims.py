"""Claims in other languages than English: German, French, Spanish, Portuguese, Italian, Chinese, Japanese.

A claim is told by an auxiliary or a particle beside a finished form (`actions.DONE`); one that stands behind a condition
or a negation of its language is none.
"""

from __future__ import annotations

import re
from typing import Literal

from wirelint.claims.actions import DONE, Kind, alternatives
from wirelint.text.prose import has_word_of

FOREIGN_CONDITION = re.compile(r"\b(?:wenn|falls|sobald|si|quando)\b", re.IGNORECASE)
# Finished forms stand in the order of `actions.DONE`.
_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _CHINESE, _JAPANESE = (alternatives(table) for table in DONE)
# Spanish and Portuguese preterites stand for themselves: "Envié el correo", "Enviei o e-mail".
_SPANISH_PAST, _PORTUGUESE_PAST = (
    alternatives(word for word in table if word.endswith(("é", "í", "ei", "ri")) and " " not in word)
    for table in (DONE[2], DONE[3])
)
_SAID = (
    re.compile(rf"\b(?:[Ii]ch habe?|habe ich)\b(?P<gap>[^!?;]{{0,160}}?)\b(?P<verb>{_GERMAN})\b"),
    re.compile(
        rf"\b[Jj]['’]ai (?:bien |déjà |aussi |ensuite |également |effectivement )?(?P<verb>{_FRENCH})\b(?P<gap>)"
    ),
    re.compile(
        rf"(?:^|[\s¡(])(?:[Hh]e (?:ya )?|[Yy]a |y )(?P<verb>{_SPANISH})\b(?P<gap>)|"
        rf"^\W{{0,4}}(?P<verb2>(?i:{_SPANISH_PAST}))\b"
    ),
    # Portuguese has a preterite for it ("enviei"), which needs no pronoun; its participles need one.
    re.compile(
        rf"(?:^|[\s(])(?:(?:[Ee]u |[Jj]á )(?:já |acabei de )?|(?:e|[Tt]enho|[Pp]ronto[,!]) "
        rf")(?P<verb>{_PORTUGUESE})\b(?P<gap>)|"
        rf"^\W{{0,4}}(?P<verb2>(?i:{_PORTUGUESE_PAST}))\b"
    ),
    re.compile(rf"(?:^|[\s(])[Hh]o (?:già |appena |anche |poi )?(?P<verb>{_ITALIAN})\b(?P<gap>)"),
    re.compile(
        rf"(?:我(?:们)?(?:已经|已|刚刚|刚才|刚)?(?:成功)?(?:[为帮给替](?:[您你]|"
        rf"[^，,。]{{1,10}}?))?(?:在[^，,。]{{1,20}})?(?P<verb>{_CHINESE})(?:了|过|完|好)"
        rf"|我(?:们)?(?:已经|已|刚刚|刚才)(?:成功)?(?:[为帮给替](?:[您你]|"
        rf"[^，,。]{{1,10}}?))?(?:在[^，,。]{{1,20}}[里中上])?(?P<verb2>{_CHINESE})"
        rf"|已经?(?:成功)?(?:[为帮给替](?:[您你]|[^，,。]{{1,10}}?))?(?:[将把][^，,。]{{1,20}}?)?(?P<verb3>{_CHINESE}))(?P<gap>)"
    ),
    re.compile(
        rf"(?P<verb>{_JAPANESE})(?:を)?(?:(?:いた|致)?しました|しておきました|ておきました|完了しました|済みです|"
        rf"(?<=[べみきしりえけい])ました|させていただきました)(?!ら|か)(?P<gap>)"
    ),
)
_PASSIVE = (
    re.compile(rf"\b(?:wurden?|ist|sind) (?:[\w-]+ ){{0,6}}?(?:nun |jetzt |erfolgreich )?(?P<verb>{_GERMAN})\b"),
    re.compile(rf"\b(?:a|ont) (?:bien )?été (?P<verb>{_FRENCH})e?s?\b"),
    re.compile(rf"\b(?:(?:ha|han) sido|se (?:ha|han)) (?P<verb>{_SPANISH})(?:s|as|os)?\b"),
    re.compile(rf"\b(?:foi|foram) (?P<verb>{_PORTUGUESE})s?\b"),
    re.compile(rf"\b(?:è stat[oa]|sono stat[ie]) (?P<verb>{_ITALIAN})\b"),
)
_PERFORMED = re.compile(
    r"\b[Jj]['’]ai (?:\w+ )?(?P<verb>effectué|fait|lancé|mené|réalisé) (?:une|la|des|plusieurs) (?:\w+ )?"
    r"(?:recherches?|requêtes?)\b|"
    r"\b(?:[Ii]ch habe?|habe ich) (?:\w+ ){0,4}?(?:[Ww]eb)?(?:[Ss]uche|[Aa]bfrage|[Rr]echerche)\b[^.!?]{0,80}?\b"
    r"(?P<verb2>durchgeführt|gestartet|gemacht|ausgeführt)\b|"
    r"\b(?:[Hh]e (?P<verb3>realizado|hecho|efectuado)|(?P<verb4>[Rr]ealicé|[Hh]ice)) una (?:\w+ )?(?:búsqueda|consulta)\b|"
    r"\b(?P<verb5>[Ff]iz|[Rr]ealizei|[Ee]fetuei) uma (?:\w+ )?(?:busca|pesquisa|consulta)\b|"
    r"\b[Hh]o (?P<verb6>fatto|effettuato|eseguito) una (?:\w+ )?(?:ricerca|interrogazione)\b|"
    r"我?(?:已经?|刚刚?)?(?:[为帮][您你])?(?P<verb7>进行|做|执行)了[^，,。]{0,8}(?:搜索|查询|检索)|"
    r"検索を(?P<verb8>行い|実行し|実施し|かけ)ました"
)
"""A search told by its noun: "j'ai effectué une recherche"."""
_OUTCOME = re.compile(
    r"\b(?P<verb>Suche|Abfrage)\b[^.!?]{0,80}\b(?:ergab|lieferte|brachte)\b|"
    r"\b(?P<verb2>recherche)\b[^.!?]{0,80}\bn['’]a (?:donné|retourné|renvoyé)\b"
    r"|\b(?P<verb3>búsqueda)\b[^.!?]{0,80}\b(?:no (?:devolvió|arrojó|dio)|devolvió|arrojó)\b|(?P<verb4>搜索|"
    r"查询)[^。！？]{0,40}(?:没有找到|未找到|返回|找到)|\b(?P<verb5>busca|pesquisa)\b[^.!?]{0,80}\b(?:não "
    r")?(?:retornou|encontrou)\b|"
    r"\b(?P<verb6>ricerca)\b[^.!?]{0,80}\b(?:non )?ha (?:dato|restituito|trovato|prodotto)\b|"
    r"(?P<verb7>検索)[^。！？]{0,40}(?:見つかりませんでした|ヒットしました|見つかりました)",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"\b(?:wenn|falls|sobald|würde|könnte|hätte|ob|nicht|kein\w*|noch nicht|nie|si|lorsque|quand|dès que|"
    r"pourrais|aurais|ne|pas|cuando|"
    r"podría|habría|no|aún|todavía|se|quando|não|ainda|poderia|teria|non|ancora|potrei|avrei)\b|もし|場合|"
    r"例えば|たとえば|"
    r"ように|(?:これ|この[^、。]{1,12}|ユーザー|あなた|お客様)[はが]|如果|若|要是|可以|可能|假如|一旦|将会|会|"
    r"没有|未|还没|尚未|不",
    re.IGNORECASE,
)
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_WORDS = frozenset(
    f"{word.split(' ')[0]}{ending}" for table in DONE for word in table for ending in ("", "e", "s", "es", "as", "os")
) | {"suche", "abfrage", "recherche", "búsqueda", "busca", "pesquisa", "ricerca", "requête", "consulta", "websuche"}


def is_foreign(line: str) -> bool:
    """Return True if a line has a finished form of another language."""
    if not line.isascii() and _CJK.search(line):
        return True
    return has_word_of(line, _WORDS)


def foreign_claim(line: str) -> tuple[frozenset[Kind], str, Literal["said", "passive", "outcome"]] | None:
    """The kinds, the verb and the form of the first claim of a sentence, or None."""
    if not is_foreign(line):
        return None
    for table, pattern in zip(DONE, _SAID, strict=True):
        for match in pattern.finditer(line):
            verb = verb_of(match)
            unreal = _UNREAL.search(line, max(match.start() - 160, 0), match.start())
            if not unreal and not _UNREAL.search(match["gap"] or ""):
                return table[verb], verb, "said"
    for match in _PERFORMED.finditer(line):
        if not _UNREAL.search(line, max(match.start() - 160, 0), match.start()):
            return frozenset({"search"}), verb_of(match), "said"
    for table, pattern in zip(DONE, _PASSIVE, strict=False):
        passive = pattern.search(line)
        if passive is not None and not _UNREAL.search(line):
            return table[passive["verb"]], passive["verb"], "passive"
    if outcome := _OUTCOME.search(line):
        return frozenset({"search"}), verb_of(outcome), "outcome"
    return None


def verb_of(match: re.Match[str]) -> str:
    """What a pattern caught under `verb`, `verb2`, …"""
    return next(word for name, word in match.groupdict().items() if word and name.startswith("verb")).lower()
