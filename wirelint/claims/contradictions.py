"""Where a reply contradicts the results of its own turn.

Each check answers one question, and says nothing as soon as one result of the turn supports the text: hits denied,
hits that were never counted, a failure told as a success, tests that did not pass, an argument that was not sent,
details that no result can have given. A text that owns up to the error anywhere contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint.claims.actions import Topic, topics_of, words_of
from wirelint.claims.acts import told_back
from wirelint.claims.evidence import Ran, last_words
from wirelint.claims.facts import Contradiction, Fact, facts
from wirelint.claims.lemmas import stem
from wirelint.claims.successes import admits, told_both, told_done, told_runs, told_successes, told_tests
from wirelint.model import Request
from wirelint.text.prose import Prose, Sentence

# Hits that a text denies or miscounts: "there are none" against fourteen, or against an error; twelve against three.
#
# What is denied or counted is told by its noun: a word for hits of any kind, or a noun of the tool that looked.

_HITS = (
    r"(?:results?|matches|match|hits?|documents?|articles?|records?|entries|entry|files?|rows?|occurrences|"
    r"items?|messages?|emails?|events?|"
    r"tickets?|orders?|pages?|passages?|information|data|anything)"
)
_ZERO = re.compile(
    rf"\b(?:0|zero|no) (?:[\w-]+ )?{_HITS}\b|\bnothing (?:was |has been )?(?:found|came up|turned up|returned)|"
    rf"\bfound nothing\b|"
    rf"\b(?:did not|didn['’]t|couldn['’]t|could not|failed to|unable to) (?:return|find|yield|produce|turn up) "
    rf"(?:any|anything|a single)\b|\b(?:came|comes) (?:back|up) empty\b|"
    r"\b(?:keine|keinerlei) (?:\w+ )?(?:treffer|ergebnisse|einträge|dokumente)\b|\bnichts gefunden\b|\b0 "
    r"treffer\b|\baucune? (?:résultat|document|correspondance)s?\b|"
    r"\brien trouvé\b|\bning[uú]na? (?:resultado|documento|coincidencia)\b|\bno (?:se )?encontr\w+ (?:ning\w+|"
    r"nada|resultados)|\bsin resultados\b|\b0 (?:résultats?|resultados?)\b|"
    r"(?:没有|未能?)(?:找到|搜索到|查到|检索到|发现|返回)(?:任何)?|0 ?(?:个|条)结果",
    re.IGNORECASE,
)
_NARROWED = re.compile(
    r"\b(?:relevant|matching|exact|specific|directly?|related|additional|further|other|others|more|new|newer|"
    r"older|that|which|whose|containing|mention\w*|"
    r"below|under|above|over|cheaper|available|none of|among|of (?:these|those|them|the)|beyond|besides|except|"
    r"left|remaining|errors?|warnings?|"
    r"top|best|first|most|unique|distinct|about|around|at least|more than|some|weitere\w*|relevante\w*|"
    r"passende\w*|pertinents?|relevantes?)\b|相关|其他|更多",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:additional|further|other|others|more|newer|older|besides|except|weitere\w*)\b|其他|更多", re.IGNORECASE
)
_EMPTY_PLACE = re.compile(
    r"\b(?:inbox|calendar|cart|mailbox|agenda|basket|to-?do list|queue) (?:is|was|looks|appears) (?:\w+ )?(?:empty|clear|"
    r"wide open)\b",
    re.IGNORECASE,
)
_PART_OF = re.compile(
    r"\b(?:after|before|between|until|till|from|at|afternoon|morning|evening|tonight|rest|then|else|today|tomorrow|yesterday|"
    r"week|month|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|now|almost|nearly|no longer|not)\b|n['’]t\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_RECALLED = re.compile(
    r"\b(?:earlier|previous(?:ly)?|before|last time|used to|previously|were once|closed)\b", re.IGNORECASE
)
_NO_THINGS_ABROAD = re.compile(
    r"\b(?:keine?n?|keinerlei) (?:\w+ ){0,2}?(?P<noun>[A-ZÄÖÜ]\w+)|\baucune? (?P<noun2>\w+)|"
    r"\bning[uú]na? (?P<noun3>\w+)|\bno (?:he |se )?(?:encontr\w+|hall\w+|hay|existen?) (?P<noun4>\w+)|"
    r"\b(?:não (?:encontr\w+|há|existem?)|nenhum[a]?) (?P<noun5>\w+)|\bnon (?:ho trovato|ci sono) (?P<noun6>\w+)|"
    r"\bpas (?:de |d['’])(?P<noun7>\w+)",
    re.IGNORECASE,
)
"""In other languages than English; the noun has to be known."""
_NO_THINGS = re.compile(
    r"\b(?:no|zero|0) (?P<one>[\w-]+)(?: (?P<two>[a-z]+s)\b)?(?! (?:to|needed|required)\b)", re.IGNORECASE
)
_NONE = re.compile(
    r"\bthere (?:is|are|was|were) (?:currently |still )?(?:no|nothing)\b|"
    r"\byou (?:currently |still )?(?:have|had) (?:no|nothing)\b|\byou (?:do|did)(?: not|n['’]t) have any(?:thing)?\b|"
    r"\b(?:inbox|calendar|cart|list|folder|directory|schedule|day|table|queue|account|history|mailbox|agenda|"
    r"basket) (?:is|was|"
    r"looks|appears) (?:\w+ )?(?:empty|clear|free|wide open)\b|"
    r"\b(?:is|are|was|were|looks?|appears?|seems?|came back) (?:currently |completely |still |entirely )?(?:empty|blank)\b|"
    r"\bcontains? nothing\b|\b(?:ist|war) (?:\w+ )?leer\b|\best vide\b|\bestá (?:vac[ií][oa]|vazi[oa])\b|"
    r"\bè vuot[oa]\b|(?:是|为)空的|空です|"
    r"\b(?:sie haben|du hast|es gibt|es liegen|ich habe) (?:\w+ ){0,2}?(?:keine?n?|nichts)\b|"
    r"\bil n['’]y a (?:pas|aucune?|rien)|\b(?:vous n['’]avez|tu n['’]as) (?:pas|aucune?|rien)|\bno (?:hay|"
    r"tienes?|existen?) |"
    r"\bnão (?:há|tem|existem?|foram encontrad\w+) |\bnon (?:ci sono|c['’]è|hai|ha) |(?:没有|暂无|并无)(?!权限|"
    r"办法|成功)|"
    r"(?:あり|見つかり|届いてい)ません|"
    r"\bне найден\w*|\bничего не наш\w+|\w \bнет(?=[.!]|\Z)|\bнет (?:ни )?\w+(?:ов|ий|ей|ых)\b",
    re.IGNORECASE,
)
"""Ways to say that there is nothing, of whatever it may be. They count against an error only."""
_ADMITS_LOOKING = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure|ing)?|denied|invalid|time ?out|timed out|unavailable|problem|unfortunately|"
    r"sorry|try again|retry|rejected|offline|unreachable|unresponsive|down|maintenance|locked|expired|overloaded|busy|"
    r"not (?:responding|answering|reachable|connected|allowed|permitted|working|respond|answer)|no (?:access|permission)|"
    r"out of service|nicht erreichbar|antwortet nicht|injoignable|hors service|no responde|não responde|non risponde|"
    r"rate.?limit\w*|exception|crashed|fehler|leider|"
    r"fehlgeschlagen|erreur|échoué|malheureusement|falló|unable to (?:search|access|reach|connect))\b|错误|失败|无法|"
    r"抱歉|超时|出错|权限|\b(?:permission|erreurs?|error|erro|errore|erros|errori|desculpe|purtroppo|"
    r"infelizmente)\b|エラー|失敗|"
    r"申し訳|タイムアウト|できません|не (?:удалось|отвечает|могу|смогла?)|ошибк|к сожалению|недоступ|таймаут|тайм-аут",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"not found|no such|does not exist|doesn['’]t exist|enoent|\b404\b|unknown")
_NEAREST = re.compile(
    r"\b(?:closest|nearest|most similar|next best|best match|instead|related|what (?:I did find|did come up|came up)|"
    r"(?:other|remaining) (?:hits|results|documents)|"
    r"(?:hits|results|documents|articles) (?:are|were|is|deal|concern|cover) "
    r"(?:all )?(?:about|on|only|with)?|only (?:about|covers?|deals?)|ähnlich\w*|stattdessen|nächstliegend\w*|à la place|"
    r"en su lugar|más cercan\w+)\b|最接近|最相关",
    re.IGNORECASE,
)
"""Hits are there and told of; none of them is what was wanted."""
_TITLE_WORD = re.compile(r"[^\W\d_]{4,}(?!\w*\"\s*:)")
_HOLDS_ZERO = re.compile(r"(?:[:=]\s*|^\s*)0(?![\d.\w-])")
_TARGET = re.compile(
    r"\b(?:for|about|on|from|by|in|regarding|nach|zu|über|pour|sur|sobre|para)\s+[\"'“„«`*]*([\w][\w.@-]*)",
    re.IGNORECASE,
)
_PLAIN = frozenset({
    "the", "this", "that", "your", "it", "them", "these", "those", "any", "a", "an", "all", "our", "my", "der", "die",
    "das", "dem", "den", "le", "la", "les", "el", "los", "las", "dies", "dieser", "diesem", "dieses", "diese", "diesen",
    "ihre", "ihren", "ihrer", "ce", "cet", "cette", "ces", "votre", "vos", "ese", "esa", "esos", "esas",
    "este", "esta", "su",
    "tu", "here", "now", "there", "me", "you",
})  # fmt: skip
_TOKEN = re.compile(r"[\w-]+(?:[./_-][\w-]+)+|\b[A-Za-z]*\d[\w-]{3,}\b|\b[A-Z][a-z]+ \d+\b")
_NUMERALS = dict(
    zip(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        range(2, 13),
        strict=True,
    )
)
_COUNTED = re.compile(
    rf"\b(?:found|returned|yielded|gave|got|retrieved|shows?|there (?:are|were)|gefunden|trouvé|encontré) (?:a "
    rf"total of |exactly )?(?P<number>[1-9]\d{{0,6}}) (?:\w+ )?{_HITS}\b",
    re.IGNORECASE,
)
_COUNTED_THINGS = re.compile(
    rf"\b(?:found|returned|retrieved|shows?|lists?|listed|there (?:are|were)|you (?:currently |now )?have|"
    rf"contains?|has|holds?) "
    rf"(?:a total of |exactly |currently )?(?P<number>[2-9]|[1-9]\d{{1,6}}|{'|'.join(_NUMERALS)}) (?:[\w-]+ "
    rf")?(?P<noun>[a-z]+s)\b",
    re.IGNORECASE,
)
_COUNTED_ABROAD = re.compile(
    r"\b(?:trouvé|il y a|gefunden|es gibt|encontr\w+|hay|há|trovat[oei]|ci sono) (?:exactement |genau )?"
    r"(?P<number>[1-9]\d{0,6}) (?:résultats?|documents?|treffer|ergebnisse|einträge|dokumente|resultados?|documentos?|"
    r"coincidencias|risultati|documenti)\b|\b(?P<number2>[1-9]\d{0,6}) (?:treffer|ergebnisse|einträge|dokumente) gefunden|"
    r"(?:找到|查到|搜索到|共有?)了? ?(?P<number3>[1-9]\d{0,6}) ?(?:条|个|篇|项)|"
    r"(?P<number4>[1-9]\d{0,6}) ?件(?:の[^。]{0,12})?(?:見つかり|ヒット)",
    re.IGNORECASE,
)
_PAGED = re.compile(r"truncat|next|more|cursor|page|limit|offset|\.\.\.|…", re.IGNORECASE)


def _looking(known: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in known if fact.able.kinds & {"search", "read"} or not fact.able.kinds]


def denied_hits(
    prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact], words: str = ""
) -> Iterator[Contradiction]:
    """`words`: what the user asked for, which names the hits in the user's own tongue."""
    looking = _looking(known)
    if not looking or any(fact.outcome.empty for fact in looking):
        return
    failed = all(fact.outcome.error for fact in looking)
    if not failed and not all(
        "search" in fact.able.kinds and not _HOLDS_ZERO.search(fact.result.text) for fact in looking
    ):
        return
    if not failed and not all(fact.outcome.counts for fact in looking):
        return
    if failed and _ADMITS_LOOKING.search(prose.masked):
        return
    if not failed and (_cites(prose, looking) or _COUNTED.search(prose.masked)):
        return
    for sentence in sentences:
        shown = prose.text[sentence.start : sentence.end]
        zero = _denies(sentence, looking, words, failed=failed)
        if zero is not None and failed and all(_is_absence(fact, zero[0]) for fact in looking):
            return
        if zero and not failed and _retells(prose, sentence, looking):
            return
        narrowed = (_OTHERS if failed else _NARROWED).search(sentence.masked)
        if zero and not narrowed and not _elsewhere(shown[zero.start() :], looking):
            yield Contradiction(
                sentence.start,
                sentence.end,
                f"the result is an error: {looking[-1].shown}" if failed else looking[-1].shown,
            )
            return


def emptied(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact], words: str) -> Iterator[Contradiction]:
    """A calendar, an inbox or a cart that is said to be empty, where the only result is a list of what is in it.

    `words`: what the user asked; a part of the place of which they spoke is all of it.
    """
    if len(known) != 1 or not known[0].outcome.counts or known[0].outcome.empty or "read" not in known[0].able.kinds:
        return
    fact = known[0]
    if not fact.result.text.lstrip().startswith(("[", "{")):
        return
    asked = {int(figure) for figure in _DIGITS.findall(fact.arguments)}
    whole = {part.lower() for part in _PART_OF.findall(words)}
    for sentence in sentences:
        line = sentence.masked
        figures = {int(figure) for figure in _DIGITS.findall(line)}
        parts = {part.lower() for part in _PART_OF.findall(line)}
        none = _EMPTY_PLACE.search(line) or _has_none(prose, sentence, fact)
        if none and parts <= whole and not _NARROWED.search(line) and figures <= asked:
            yield Contradiction(sentence.start, sentence.end, fact.shown)
            return


def _has_none(prose: Prose, sentence: Sentence, fact: Fact) -> bool:
    """Return True if a sentence says that there are none of what a tool lists, and the text takes nothing from the list."""
    things = any(_are_hits(one, [fact]) for one in _NO_THINGS.finditer(sentence.masked))
    return things and not _cites(prose, [fact]) and not _retells(prose, sentence, [fact])


def _denies(sentence: Sentence, looking: Sequence[Fact], words: str, *, failed: bool) -> re.Match[str] | None:
    """Where a sentence says that there is nothing: of hits of any kind, of the tool's own nouns, after an error of all."""
    line = sentence.masked
    if zero := _ZERO.search(line):
        return zero
    if failed and (none := _NONE.search(line)):
        return none
    things = next((one for one in _NO_THINGS.finditer(line) if _are_hits(one, looking)), None)
    if things is not None:
        return things
    for abroad in _NO_THINGS_ABROAD.finditer(line):
        noun = next(filter(None, abroad.groups()))
        if _is_hit(noun, looking) or told_back(noun, words):
            return abroad
    return None


def _are_hits(match: re.Match[str], looking: Sequence[Fact]) -> bool:
    """Return True if one of the nouns behind a "no" names what a tool looks for, in the plural."""
    return any(noun and noun.endswith("s") and _is_hit(noun, looking) for noun in (match["one"], match["two"]))


def _is_hit(noun: str, looking: Sequence[Fact]) -> bool:
    """Return True if a noun names what a tool looks for: "no mails" of `search_inbox`, "12 pods" of `list_pods`."""
    words = words_of(noun)
    own = {word for fact in looking for word in fact.able.words}
    own |= {word for fact in looking for word in words_of(fact.arguments) if len(word) > 3}
    topics = {topic for fact in looking for topic in fact.able.topics}
    return bool(words & own) or bool(topics_of(noun) & topics)


def _is_absence(fact: Fact, told: str) -> bool:
    """Return True if the error itself says that the very thing does not exist, so that "none found" retells it fairly.

    "Order not found" may become "no orders"; "workspace not found" may not become "no results".
    """
    text = fact.result.text.lower()
    if not _ABSENT.search(text):
        return False
    if "search" not in fact.able.kinds or fact.able.shell or len(text) < 24:
        return True
    nouns = {word.rstrip("s") for word in re.findall(r"[a-z]+", told.lower()) if len(word) > 3} - {
        "found",
        "nothing",
        "result",
        "anything",
    }
    return any(noun in text for noun in nouns)


def _elsewhere(shown: str, looking: Sequence[Fact]) -> bool:
    """Return True if the target of a denial is something that no call of the turn asked for."""
    asked = " ".join(fact.arguments for fact in looking).lower()
    targets = [word.lower().rstrip(".-") for word in _TARGET.findall(shown) if word.lower() not in _PLAIN]
    return bool(targets and asked.strip() not in ("", "{}")) and not any(
        word in asked or stem(word) in asked for word in targets
    )


def _cites(prose: Prose, looking: Sequence[Fact]) -> bool:
    """Return True if the text names something that only a result told it."""
    asked = " ".join(fact.arguments for fact in looking)
    told = " ".join(fact.result.text[:20_000] for fact in looking)
    return any(token in told and token not in asked for token in _TOKEN.findall(prose.text))


def _retells(prose: Prose, denial: Sentence, looking: Sequence[Fact]) -> bool:
    """Whether the text tells, beside the denial, of the hits: by a word for what comes near, or by their own words."""
    if _NEAREST.search(prose.masked):
        return True
    asked = set(_TITLE_WORD.findall(" ".join(fact.arguments for fact in looking).lower()))
    told = set(_TITLE_WORD.findall(" ".join(fact.result.text[:20_000] for fact in looking).lower()))
    rest = f"{prose.text[: denial.start]} {prose.text[denial.end :]}".lower()
    return len(set(_TITLE_WORD.findall(rest)) & (told - asked)) >= 2


def wrong_counts(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    looking = [fact for fact in _looking(known) if not fact.outcome.error]
    if len(looking) != 1 or not looking[0].outcome.counts or _PAGED.search(looking[0].result.text):
        return
    fact = looking[0]
    for sentence in sentences:
        told = _told_number(sentence, fact)
        nothing = fact.outcome.counts == {0}
        if told is None or (_RECALLED if nothing else _NARROWED).search(sentence.masked):
            continue
        if told > max(fact.outcome.counts) and not re.search(
            rf"(?<!\d){told}(?!\d)", f"{fact.result.text} {fact.arguments}"
        ):
            yield Contradiction(sentence.start, sentence.end, fact.shown, "warning", "medium")
            return


def _told_number(sentence: Sentence, fact: Fact) -> int | None:
    """How many hits a sentence speaks of: of any name, or named by the tool that looked."""
    match = _COUNTED.search(sentence.masked)
    if match is None:
        things = _COUNTED_THINGS.finditer(sentence.masked)
        match = next((one for one in things if words_of(one["noun"]) & fact.able.words), None)
    if match is None and (abroad := _COUNTED_ABROAD.search(sentence.masked)):
        return int(next(filter(None, abroad.groups())))
    if match is None:
        return None
    number = match["number"].lower()
    return _NUMERALS.get(number) or int(number)


_ASSIGNED = re.compile(r"\b([A-Za-z_]\w{0,40}) ?(?:=|:) ?[\"'`]*([\w./:@-]*\w)")
_FIGURES = re.compile(r"\d+|[\"“][^\"”\n]{3,80}[\"”]")
_PRIVATE: frozenset[Topic] = frozenset({"order", "data", "ticket", "calendar", "mail"})
"""What no model knows of itself."""
_STATED = re.compile(
    r"\b(?:is|are|was|were|has|have|had|totals?|costs?|contains?|shows?|shipped|delivered|arrived|placed|paid)\b",
    re.IGNORECASE,
)
_OFFERED = re.compile(
    r"\b(?:would|could|should|can|may|might|let me|if|please|I['’]ll|you (?:need|want)|typically|usually|example|format|"
    r"e\.g|"
    r"must|digits?|characters?)\b|[?？]",
    re.IGNORECASE,
)
_PARTICULARS = re.compile(
    r"\d+(?:[.,]\d+)*|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\b(?:yesterday|shipped|delivered)\b", re.IGNORECASE
)
_NO_OUTPUT = re.compile(r"\s*[(\[<]?(?:no (?:output|matches|results)|exit code 1|empty)\b.{0,40}\s*\Z", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:no|none|not|nothing|never)\b|n['’]t\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"^[^\w]{0,4}(?:The|This|That|Your) (?:[\w.-]+ )?(?P<noun>\w+) (?:now |currently |also )?"
    r"(?:is|was|has|had|sets?|contains?|lists?|shows?|says?|holds?|starts?|begins?|describes?|defines?|includes?|costs?|"
    r"consists|covers?|reads?|specif(?:y|ies)|points?|uses?|configures?|mentions?|states?)\b"
)
_LINE_OF = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w-]+\.[a-z]{1,4}):(\d+)\b")
_AHEAD = re.compile(r"\b(?:will|would|could|should|can|may|might|let me|if|please|I['’]ll)\b|[?？]", re.IGNORECASE)


def contradictions(
    prose: Prose, known: Sequence[Fact], ran: Sequence[Ran], request: Request | None = None
) -> Iterator[Contradiction]:
    """What in a text the facts of its turn contradict."""
    sentences = [sentence for sentence in prose.sentences if not sentence.question]
    words = last_words(request) if request is not None else ""
    yield from denied_hits(prose, sentences, known, words)
    yield from emptied(prose, sentences, known, words)
    yield from wrong_counts(prose, sentences, known)
    yield from told_successes(prose, known)
    yield from told_runs(prose, sentences, known)
    yield from told_done(prose, known)
    yield from told_tests(prose, sentences, known)
    yield from _wrong_argument(prose, sentences, ran)
    yield from _details(prose, sentences, known)
    if request is not None:
        yield from told_both(prose, sentences, _together(request, ran))
        yield from _unheard(prose, sentences, known, request)
        yield from _unheard_lines(prose, known, request)


def _together(request: Request, ran: Sequence[Ran]) -> tuple[Fact, ...]:
    """The results of the calls that were made last, all in one reply."""
    last = next((message for message in reversed(request.turn) if message.calls), None)
    made = {call.id for call in last.calls} if last is not None else set()
    return facts(request, [one for one in ran if one.call is not None and one.call.id in made])


def _unheard(
    prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact], request: Request
) -> Iterator[Contradiction]:
    """Figures and days of private data (orders, tables, calendars) of which nothing was heard but errors."""
    if not known or not all(fact.outcome.error for fact in known) or admits(prose):
        return
    if not all(fact.able.topics & _PRIVATE and fact.able.kinds & {"search", "read", "run"} for fact in known):
        return
    heard = " ".join([*(message.text for message in request.messages), *(fact.arguments for fact in known)])
    heard = f"{heard} {' '.join(result.text for message in request.messages for result in message.results)}".lower()
    for sentence in sentences:
        line = sentence.masked
        if not _STATED.search(line) or _OFFERED.search(line):
            continue
        if any(figure.lower() not in heard for figure in _PARTICULARS.findall(line)):
            yield Contradiction(
                sentence.start,
                sentence.end,
                f"every result of this turn is an error: {known[-1].shown}",
                "warning",
                "medium",
            )
            return


def _unheard_lines(prose: Prose, known: Sequence[Fact], request: Request) -> Iterator[Contradiction]:
    """Lines of files ("src/a.py:12") that are cited although the search had no match and nobody named the file."""
    if not known or not all(fact.outcome.empty or _NO_OUTPUT.match(fact.result.text) for fact in known):
        return
    if not any(fact.able.shell or "search" in fact.able.kinds for fact in known):
        return
    cited = [] if _NEGATED.search(prose.masked) else _LINE_OF.findall(prose.text)
    heard = " ".join(message.text for message in request.messages) if cited else ""
    heard += " ".join(fact.arguments for fact in known)
    if cited and not any(path in heard for path, _ in cited):
        found = _LINE_OF.search(prose.text)
        if found is not None:
            yield Contradiction(found.start(), found.end(), known[-1].shown)


def _wrong_argument(prose: Prose, sentences: Sequence[Sentence], ran: Sequence[Ran]) -> Iterator[Contradiction]:
    calls = [one.call for one in ran if one.call is not None and one.call.name]
    for sentence in sentences:
        shown = prose.text[sentence.start : sentence.end]
        if not re.search(
            r"\bI(?:['’]ve| have)? (?:called|used|ran|invoked|sent|executed|passed|set)\b", sentence.masked
        ):
            continue
        for key, value in _ASSIGNED.findall(shown):
            named = [call for call in calls if call.name and re.search(rf"(?<!\w){re.escape(call.name)}(?!\w)", shown)]
            sent = [arguments[key] for call in named if (arguments := call.arguments.mapping) and key in arguments]
            scalars = [
                str(one).lower() for one in sent if isinstance(one, (str, int, float)) and not isinstance(one, bool)
            ]
            if (
                scalars
                and len(scalars) == len(sent)
                and value.lower() not in scalars
                and not any(value.lower() in one for one in scalars)
            ):
                yield Contradiction(
                    sentence.start, sentence.end, f"the call sent {key}={scalars[-1]}", "error", "medium"
                )
                return


def _details(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    """Details of the very thing that could not be had: every result is an error, and the text does not say so."""
    if not known or not all(fact.outcome.error for fact in known) or admits(prose):
        return
    targets = {
        word.rsplit("/", 1)[-1].lower()
        for fact in known
        for word in re.findall(r"\"([^\"\s]{3,200})\"(?!\s*:)", fact.arguments)
        if re.search(r"[./_\d-]", word)
    }
    told = " ".join(f"{fact.result.text} {fact.arguments}" for fact in known)
    for sentence in sentences:
        shown = prose.text[sentence.start : sentence.end]
        named = any(target in shown.lower() for target in targets) or _refers(sentence, known)
        if not named or _AHEAD.search(sentence.masked):
            continue
        rest = shown
        for target in targets:
            rest = re.sub(re.escape(target), " ", rest, flags=re.IGNORECASE)
        if any(figure.strip('"“”') not in told for figure in _FIGURES.findall(rest)):
            yield Contradiction(
                sentence.start,
                sentence.end,
                f"every result of this turn is an error: {known[-1].shown}",
                "warning",
                "medium",
            )
            return


def _refers(sentence: Sentence, known: Sequence[Fact]) -> bool:
    """Whether a statement is about the thing that every call of the turn was about: "the file sets", "your order has"."""
    subject = _SUBJECT.match(sentence.masked)
    if subject is None:
        return False
    words = words_of(subject["noun"])
    return all(words & fact.able.words or topics_of(subject["noun"]) & fact.able.topics for fact in known)
