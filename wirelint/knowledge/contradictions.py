"""Where a reply contradicts the results of its own turn.

Each check answers one question, and says nothing as soon as one result of the turn supports the text: hits denied,
hits that were never counted, a failure told as a success, tests that did not pass, an argument that was not sent,
details that no result can have given. A text that owns up to the error anywhere contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wirelint.knowledge.claims import claims
from wirelint.knowledge.evidence import Outcome, Ran, outcome
from wirelint.knowledge.excerpts import excerpt
from wirelint.knowledge.prose import Prose, Sentence
from wirelint.knowledge.toolkinds import Ability, ability, fits
from wirelint.model import Confidence, Request, Severity, Tool, ToolResult


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A statement, where it stands, and what the result says instead."""

    start: int
    end: int
    against: str
    severity: Severity = "error"
    confidence: Confidence = "high"


@dataclass(frozen=True, slots=True)
class Fact:
    """A result of the turn with what it says and what its call could do."""

    result: ToolResult
    outcome: Outcome
    able: Ability
    arguments: str

    @property
    def shown(self) -> str:
        return f"{self.able.tool.name or 'the tool'} gave {excerpt(self.result.text, 70)!r}"


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
_ADMITS = re.compile(
    r"\b(?:error|errors|fail\w*|could ?n['’]?t|could not|can['’]?t|cannot|unable|unsuccessful\w*|not found|does "
    r"?n['’]?t exist|does not exist|did ?n['’]?t|did not|no such|missing|"
    r"denied|invalid|time ?out|timed out|unavailable|problem|issue|unfortunately|sorry|wrong|try again|retry\w*|"
    r"not work|not available|not exist|not \w+|rejected|refused|"
    r"rate.?limit\w*|exception|crash\w*|broken|blocked|still|there (?:is|are) no|nothing to|no file|already|"
    r"instead|nicht|kein\w*|fehler\w*|leider|konnte\w*|fehlgeschlagen|"
    r"erreur|échec|échoué|impossible|malheureusement|pas|no pude|no se pudo|falló|fallo|lamentablemente|no "
    r"existe|no hay)\b|\b[45]\d\d\b|"
    r"错误|失败|无法|抱歉|不存在|未能|不能|没能|没有成功|超时|出错",
    re.IGNORECASE,
)
_ADMITS_LOOKING = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure|ing)?|denied|invalid|time ?out|timed out|unavailable|problem|unfortunately|"
    r"sorry|try again|retry|rejected|rate.?limit\w*|exception|crashed|fehler|leider|"
    r"fehlgeschlagen|erreur|échoué|malheureusement|falló|unable to (?:search|access|reach|connect))\b|错误|失败|无法|"
    r"抱歉|超时|出错",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"not found|no such|does not exist|doesn['’]t exist|enoent|\b404\b|unknown")
_HOLDS_ZERO = re.compile(r"(?:[:=]\s*|^\s*)0(?![\d.\w-])")
_TARGET = re.compile(
    r"\b(?:for|about|on|from|by|in|regarding|nach|zu|über|pour|sur|sobre|para)\s+[\"'“„«`*]*([\w][\w.@-]*)",
    re.IGNORECASE,
)
_PLAIN = frozenset({
    "the", "this", "that", "your", "it", "them", "these", "those", "any", "a", "an", "all", "our", "my", "der", "die",
    "das", "dem", "den", "le", "la", "les", "el", "los", "las", "dies", "dieser",
})  # fmt: skip
_TOKEN = re.compile(r"[\w-]+(?:[./_-][\w-]+)+|\b[A-Za-z]*\d[\w-]{3,}\b|\b[A-Z][a-z]+ \d+\b")
_COUNTED = re.compile(
    rf"\b(?:found|returned|yielded|gave|got|retrieved|shows?|there (?:are|were)|gefunden|trouvé|encontré) (?:a "
    rf"total of |exactly )?([1-9]\d{{0,6}}) (?:\w+ )?{_HITS}\b",
    re.IGNORECASE,
)
_PAGED = re.compile(r"truncat|next|more|cursor|page|limit|offset|\.\.\.|…", re.IGNORECASE)
_PASSED = re.compile(
    r"\b(?:all|every|each)(?: of)?(?: the)?(?: \d+)?(?: \w+)? tests? (?:are |is |have |has |now )*(?:pass\w*|"
    r"green|succeed\w*)|\btests? (?:now )?pass(?:es)?\b(?! (?:if|when))|"
    r"\beverything (?:now )?passes\b|\bbuild (?:now )?(?:succeeded|succeeds|passes|is green)\b|\balle tests "
    r"(?:laufen|bestehen|sind)\b|\btous les tests passent\b|所有测试(?:都|均)?通过",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\b([1-9]\d*) (?:tests? )?(?:failed|failures?|failing)\b|\bfailures?[=:] ?([1-9]\d*)|^FAILED\b|\bBUILD "
    r"FAILED\b|test result: FAILED",
    re.IGNORECASE | re.MULTILINE,
)
_FIGURE = re.compile(r"\b(\d+) (?:tests? )?(?:have )?(passed|failed)\b|\b(passed|failed)[:=] ?(\d+)", re.IGNORECASE)
_SUCCESS = re.compile(
    r"\b(?:success\w*|succeeded|passed|passes|without (?:any )?(?:errors?|issues?|problems?)|completed|worked|"
    r"erfolgreich|avec succès|con éxito)\b|成功",
    re.IGNORECASE,
)
_VAGUE = frozenset({
    "ran", "run", "executed", "called", "invoked", "used", "tested", "started", "checked", "reran", "searched",
    "queried", "looked", "up", "tried",
})  # fmt: skip
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w{0,40}) ?(?:=|:) ?[\"'`]*([\w./:@-]*\w)")
_FIGURES = re.compile(r"\d+|[\"“][^\"”\n]{3,80}[\"”]")
_AHEAD = re.compile(r"\b(?:will|would|could|should|can|may|might|let me|if|please|I['’]ll)\b|[?？]", re.IGNORECASE)


def facts(request: Request, ran: Sequence[Ran]) -> tuple[Fact, ...]:
    """The results of a turn, each with the ability of the tool that gave it."""
    made: list[Fact] = []
    for one in ran:
        if one.result is None:
            continue
        name = (one.call.name if one.call else None) or one.result.name or ""
        able = ability(request.tool(name) or Tool(name, one.result.pointer))
        made.append(Fact(one.result, outcome(one.result), able, one.call.arguments.text if one.call else ""))
    return tuple(made)


def contradictions(prose: Prose, known: Sequence[Fact], ran: Sequence[Ran]) -> Iterator[Contradiction]:
    """What in a text the facts of its turn contradict."""
    sentences = [sentence for sentence in prose.sentences if not sentence.question]
    yield from _denied_hits(prose, sentences, known)
    yield from _wrong_count(prose, sentences, known)
    yield from _told_success(prose, known)
    yield from _tests(prose, sentences, known)
    yield from _wrong_argument(prose, sentences, ran)
    yield from _details(prose, sentences, known)


def _looking(known: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in known if fact.able.kinds & {"search", "read"} or not fact.able.kinds]


def _denied_hits(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
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
        zero = _ZERO.search(sentence.masked)
        if zero is not None and failed and all(_is_absence(fact, zero[0]) for fact in looking):
            return
        if zero and not _NARROWED.search(sentence.masked) and not _elsewhere(shown[zero.start() :], looking):
            yield Contradiction(
                sentence.start,
                sentence.end,
                f"the result is an error: {looking[-1].shown}" if failed else looking[-1].shown,
            )
            return


def _is_absence(fact: Fact, told: str) -> bool:
    """Whether the error itself says that the very thing does not exist, so that "none found" retells it fairly.

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
    """Whether the target of a denial is something that no call of the turn asked for."""
    asked = " ".join(fact.arguments for fact in looking).lower()
    targets = [word.lower().rstrip(".-") for word in _TARGET.findall(shown) if word.lower() not in _PLAIN]
    return bool(targets and asked.strip() not in ("", "{}")) and not any(word in asked for word in targets)


def _cites(prose: Prose, looking: Sequence[Fact]) -> bool:
    """Whether the text names something that only a result told it."""
    asked = " ".join(fact.arguments for fact in looking)
    told = " ".join(fact.result.text[:20_000] for fact in looking)
    return any(token in told and token not in asked for token in _TOKEN.findall(prose.text))


def _wrong_count(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    looking = [fact for fact in _looking(known) if not fact.outcome.error]
    if len(looking) != 1 or not looking[0].outcome.counts or _PAGED.search(looking[0].result.text):
        return
    fact = looking[0]
    for sentence in sentences:
        match = _COUNTED.search(sentence.masked)
        if match is None or _NARROWED.search(sentence.masked):
            continue
        told = int(match[1])
        if told > max(fact.outcome.counts) and not re.search(
            rf"(?<!\d){told}(?!\d)", f"{fact.result.text} {fact.arguments}"
        ):
            yield Contradiction(sentence.start, sentence.end, fact.shown, "warning", "medium")
            return


def _told_success(prose: Prose, known: Sequence[Fact]) -> Iterator[Contradiction]:
    if not any(fact.outcome.error for fact in known) or _ADMITS.search(prose.masked):
        return
    for claim in claims(prose):
        if claim.earlier or claim.kinds <= {"search"} or claim.form in ("outcome", "missed"):
            continue
        fitting = [
            fact
            for fact in known
            if fits(fact.able, claim.kinds, claim.verb, claim.object) or (fact.able.shell and claim.kinds & {"run"})
        ]
        if not fitting:
            fitting = (
                list(known)
                if claim.form in ("terse", "passive") and len(known) == 1 and claim.kinds & known[0].able.kinds
                else []
            )
        if not fitting or not all(fact.outcome.error for fact in fitting):
            continue
        if claim.verb in _VAGUE and not _SUCCESS.search(prose.text[claim.start : claim.end]):
            continue
        yield Contradiction(claim.start, claim.end, f"the result is an error: {fitting[-1].shown}")
        return


def _tests(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    tested = [fact for fact in known if _FIGURE.search(fact.result.text) or _FAILED.search(fact.result.text)]
    if not tested:
        return
    failing = _FAILED.search(tested[-1].result.text) is not None
    figures = {(int(a or d), (b or c).lower()) for fact in tested for a, b, c, d in _FIGURE.findall(fact.result.text)}
    for sentence in sentences:
        if (
            failing
            and _PASSED.search(sentence.masked)
            and not _FAILED.search(prose.masked)
            and not _ADMITS.search(prose.masked)
        ):
            yield Contradiction(sentence.start, sentence.end, tested[-1].shown)
            return
        if len(tested) == 1 and figures:
            told = {(int(a or d), (b or c).lower()) for a, b, c, d in _FIGURE.findall(sentence.masked)}
            if (
                any(word == other and number != figure for number, word in told for figure, other in figures)
                and not told & figures
            ):
                yield Contradiction(sentence.start, sentence.end, tested[-1].shown)
                return
            wrong = [one for one in told if one not in figures and one[1] in {word for _, word in figures}]
            if wrong and not re.search(
                r"\b(?:previously|before|earlier|were|was|of|from|fixed|now)\b", sentence.masked
            ):
                yield Contradiction(sentence.start, sentence.end, tested[-1].shown, "warning", "medium")
                return


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
    if not known or not all(fact.outcome.error for fact in known) or _ADMITS.search(prose.masked):
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
        if not any(target in shown.lower() for target in targets) or _AHEAD.search(sentence.masked):
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
