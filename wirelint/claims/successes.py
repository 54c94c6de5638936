"""Failures that a text tells as successes: an action that was refused, a program that crashed, tests that did not pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint.claims.actions import PARTICIPLE, alternatives
from wirelint.claims.claims import Claim, claims
from wirelint.claims.facts import Contradiction, Fact
from wirelint.claims.order_check import carried_out
from wirelint.claims.side_effects import Reach, reach
from wirelint.claims.toolkinds import fits
from wirelint.text.prose import Prose, Sentence
from wirelint.text.remembered import remembered

_ADMITS = re.compile(
    r"\b(?:error|errors|fail\w*|could ?n['’]?t|could not|can['’]?t|cannot|unable|unsuccessful\w*|not found|does "
    r"?n['’]?t exist|does not exist|did ?n['’]?t|did not|no such|missing|"
    r"denied|invalid|time ?out|timed out|unavailable|problem|issue|unfortunately|sorry|wrong|try again|retry\w*|"
    r"not work|not available|not exist|not \w+|rejected|refused|"
    r"rate.?limit\w*|exception|crash\w*|broken|blocked|still|there (?:is|are) no|nothing to|no file|already|"
    r"instead|nicht|kein\w*|fehler\w*|leider|konnte\w*|fehlgeschlagen|"
    r"erreur|échec|échoué|impossible|malheureusement|pas|no pude|no se pudo|falló|fallo|lamentablemente|no "
    r"existe|no hay)\b|\b[45]\d\d\b|"
    r"错误|失败|无法|抱歉|不存在|未能|不能|没能|没有成功|超时|出错|"
    r"でき(?:ません|なかった|ず)|失敗|エラー|申し訳|残念|"
    r"не (?:удалось|получилось|могу|смогла?)|ошибк|к сожалению|невозможно|недоступ|отказ",
    re.IGNORECASE,
)
_PASSED = re.compile(
    r"\b(?:all|every|each)(?: of)?(?: the)?(?: \d+)?(?: \w+)? tests? (?:are |is |have |has |now )*(?:pass\w*|"
    r"green|succeed\w*)|\btests? (?:now )?pass(?:es)?\b(?! (?:if|when))|"
    r"\b(?:test run|test suite|suite|tests|ci|pipeline|build) (?:is|are|was|were|came back|looks) "
    r"(?:all |now |fully )*green\b|"
    r"\b(?:there (?:are|were)|with|:) (?:no|zero|0) (?:test )?failures\b|\bno tests? (?:failed|fails?)\b|"
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


_NO_FAULT = re.compile(
    r"\b(?:no|zero|0|without(?: any| a single)?|free of|not a single|any|never) (?:[\w-]+ )?(?:errors?|issues?|"
    r"problems?|"
    r"failures?|warnings?|exceptions?|crash(?:es)?|failed|failing)\b|"
    r"\bnothing (?:failed|broke|went wrong)\b|\berror-free\b|\bdid ?(?:not|n['’]t) (?:fail|crash|produce any "
    r"errors?)\b|"
    r"\b(?:keine?n?|ohne|keinerlei) (?:\w+ )?(?:fehler\w*|probleme?\w*|schwierigkeiten)\b|\bfehlerfrei\b|"
    r"\b(?:sans|aucune?) (?:erreur|problème)s?\b|\b(?:sin|ningún) (?:error|problema)(?:e?s)?\b|"
    r"\b(?:sem|nenhum) (?:erro|problema)s?\b|\b(?:senza|nessun) (?:error[ei]|problem[ai])\b|"
    r"(?:没有|无|零)(?:任何|出现|发生|报)*(?:错误?|问题|异常)|エラー(?:は|も)?(?:なし|なく|ありません|"
    r"発生しませんでした|出ませんでした)|問題なく",
    re.IGNORECASE,
)
"""The absence of a fault, which is no admission of one."""
_WENT_WELL = re.compile(
    r"\b(?:ran|runs|executed|completed|finished|compiled|compiles|built|builds|exited|worked|works|went|deployed|"
    r"installed|started|passed|processed) (?:\w+ ){0,2}?(?:successfully|cleanly|fine|smoothly|through|perfectly|"
    r"ok|as expected|"
    r"without (?:any |a single )?(?:errors?|issues?|problems?|failures?|warnings?|hitch))\b|"
    r"\b(?:command|script|program|build|job|migration|deployment|query|installation|import|upload|request|"
    r"operation|process|"
    r"run|task|test suite|workflow|pipeline) (?:has |was |is )?(?:succeeded|successful|worked|a success)\b|"
    r"\b(?:produced|gave|reported|raised|threw|showed|shows|with|there (?:are|were)) (?:no|zero|0) (?:errors?|"
    r"failures?|"
    r"exceptions?)\b|\bexit(?:ed)?(?: with)?(?: code| status)* (?:of )?0\b|"
    r"\b(?:läuft|lief|durchgelaufen|ausgeführt|abgeschlossen) (?:\w+ )?(?:erfolgreich|fehlerfrei|ohne fehler)|"
    r"\b(?:erfolgreich|fehlerfrei|ohne (?:\w+ )?(?:fehler|probleme)) (?:ausgeführt|gelaufen|durchgelaufen|"
    r"abgeschlossen|beendet|"
    r"gestartet)|"
    r"\b(?:exécutée?|terminée?|déroulée?) (?:\w+ )?(?:correctement|avec succès|sans (?:erreur|problème))|"
    r"\b(?:ejecut\w+|termin\w+|complet\w+) (?:\w+ )?(?:correctamente|con éxito|sin (?:errores|problemas))|"
    r"\b(?:execut\w+|rodou|conclu\w+|termin\w+) (?:\w+ )?(?:com sucesso|corretamente|sem (?:erros|problemas))|"
    r"\b(?:esegui\w+|completat\w+|terminat\w+) (?:\w+ )?(?:con successo|correttamente|senza (?:errori|problemi))|"
    r"(?:成功|顺利)(?:地)?(?:运行|执行|完成|部署|安装)|(?:运行|执行|部署|安装|编译|查询|检索|搜索|读取|操作|请求)(?:已经?|都|均)?成功|"
    r"正常に(?:実行|完了|終了|動作)|"
    r"(?:実行|処理|ビルド)(?:が|は)?(?:成功|問題なく)",
    re.IGNORECASE,
)
_STATE = re.compile(
    rf"(?:\b(?:is|are|was|were)|['’](?:s|re)|\bhas been|\bhave been|\bgot) (?:now |all |fully |officially |"
    rf"successfully |already )?"
    rf"(?P<verb>{alternatives(PARTICIPLE)})\b"
)
_SETTLED = re.compile(
    r"^\W{0,4}(?:(?:all |you['’]re (?:all )?|it['’]s (?:all )?|that['’]s |everything['’]?s? (?:is )?)?(?:done|"
    r"set|confirmed|"
    r"complete|taken care of|in place|ready)\b|success\b|erledigt\b|fertig\b|c['’]est fait|listo\b|hecho\b|"
    r"pronto\b|feito\b|"
    r"fatto\b|(?:已)?完成|搞定|办好|完了(?:です|しました))|"
    r"\b(?:is|are|has been|have been|was|were|['’]s|['’]re) (?:now |all |fully )?(?:confirmed|live|in place|on "
    r"(?:its|the) way|all set|"
    r"in effect|complete)\b|(?:成功|已)(?:预订|预约|发送|创建|添加|删除|更新|保存|提交|取消)|(?:予約|送信|作成|"
    r"追加|削除|更新|保存)(?:が)?(?:できました|完了)|"
    r"[\u4e00-\u9fff]{2,4}(?:が|は|を)?(?:完了(?:いた)?しました|いたしました)|"
    r"已经?(?:将|把)[^，。！？\n]{1,40}(?=[，。！]|\Z)|"
    r"(?:^|[,.!] )(?:готово|выполнено|сделано)\b|\bуспешно \w+",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_BOTH = re.compile(
    r"\b(?:both|all (?:of them|(?:of )?the \w+|two|three|four|five|\d+)|each of|every one of|everything|beide|alle|"
    r"les deux|"
    r"tous|ambos|ambas|todos|todas|entrambi)\b|(?:两|都|全部)",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:is|are|were|was|have been)(?: now)? (?:off|on|done|set|open|closed|locked|unlocked|gone|up to date|"
    r"in place|booked|"
    r"complete)\b",
    re.IGNORECASE,
)
_DID = re.compile(rf"\bI(?:['’]ve| have)? (?:{alternatives(PARTICIPLE)})\b")
_UNSURE = re.compile(
    r"\b(?:if|once|when|until|before|whether|would|could|should|might|may|will|can|not|never|already|by)\b|n['’]t\b",
    re.IGNORECASE,
)


def admits(prose: Prose) -> bool:
    """Return True if a text owns up to a fault anywhere. "Without errors" owns up to none."""
    return _ADMITS.search(_NO_FAULT.sub(" ", prose.masked)) is not None


def _acts(fact: Fact) -> bool:
    return fact.able.shell or bool(fact.able.kinds - {"search", "read"})


def told_runs(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    """A program that ran well, or something done, where every call of the turn that could have done it gave an error."""
    acting = [fact for fact in known if _acts(fact)]
    if not acting or not all(fact.outcome.error for fact in acting) or admits(prose):
        return
    running = [fact for fact in acting if fact.able.shell or "run" in fact.able.kinds]
    for sentence in sentences:
        line = sentence.masked
        if running and (well := _WENT_WELL.search(line)) and not _UNSURE.search(line[: well.start()]):
            yield Contradiction(sentence.start, sentence.end, f"the result is an error: {running[-1].shown}")
            return
        for match in _STATE.finditer(line):
            kinds = PARTICIPLE[match["verb"]]
            shown = prose.text[sentence.start : sentence.end]
            done = len(acting) == 1 and not acting[0].able.shell and fits(acting[0].able, kinds, match["verb"], shown)
            if done and not _UNSURE.search(line):
                yield Contradiction(sentence.start, sentence.end, f"the result is an error: {acting[0].shown}")
                return
        if len(known) == 1 and _SETTLED.search(line) and not _UNSURE.search(line):
            yield Contradiction(sentence.start, sentence.end, f"the result is an error: {acting[-1].shown}")
            return


def told_done(prose: Prose, known: Sequence[Fact]) -> Iterator[Contradiction]:
    """An act of whatever tool, told as done, where every call of the turn was one of that tool and gave an error."""
    if not known or not all(fact.outcome.error for fact in known) or len({fact.able.tool.name for fact in known}) > 1:
        return
    if admits(prose) or (known[-1].able.kinds and not _acts(known[-1])):
        return
    if told := carried_out(prose, known[-1].able, known[-1].arguments):
        yield Contradiction(told.start, told.end, f"the result is an error: {known[-1].shown}")


def told_successes(prose: Prose, known: Sequence[Fact]) -> Iterator[Contradiction]:
    if not any(fact.outcome.error for fact in known) or admits(prose):
        return
    for claim in claims(prose):
        if claim.earlier or claim.kinds <= {"search"} or claim.form in ("outcome", "missed", "stands", "news"):
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
        if not fitting and _was_meant(claim, prose, known):
            fitting = list(known)
        if not fitting or not all(fact.outcome.error for fact in fitting):
            continue
        if claim.verb in _VAGUE and not _SUCCESS.search(prose.text[claim.start : claim.end]):
            continue
        yield Contradiction(claim.start, claim.end, f"the result is an error: {fitting[-1].shown}")
        return


def _was_meant(claim: Claim, prose: Prose, known: Sequence[Fact]) -> bool:
    """Whether an act without a known noun is that of the calls, all of which failed: "I've replaced x by y in a."."""
    if claim.form != "said" or prose.fenced or claim.kinds <= {"search", "read"}:
        return False
    if not all(fact.outcome.error and claim.kinds & fact.able.kinds for fact in known):
        return False
    if reach(claim, prose, known[-1].able) is not Reach.NO:
        return True
    sent = {word for fact in known for word in _WORD.findall(fact.arguments.lower())}
    return len(set(_WORD.findall(claim.object.lower())) & sent) >= 2


def told_both(prose: Prose, sentences: Sequence[Sentence], together: Sequence[Fact]) -> Iterator[Contradiction]:
    """Several calls of a tool that were made together, one of which failed, told as if all had been carried out."""
    acting = [fact for fact in together if _acts(fact)]
    failed = [fact for fact in acting if fact.outcome.error]
    if not failed or len(failed) == len(acting) or len({fact.able.tool.name for fact in acting}) != 1 or admits(prose):
        return
    for sentence in sentences:
        line = sentence.masked
        both = _BOTH.search(line)
        if both and not _UNSURE.search(line) and (_STATE.search(line) or _NOW.search(line) or _DID.search(line)):
            yield Contradiction(sentence.start, sentence.end, f"one of the results is an error: {failed[-1].shown}")
            return


def told_tests(prose: Prose, sentences: Sequence[Sentence], known: Sequence[Fact]) -> Iterator[Contradiction]:
    tested = [fact for fact in known if any(_tests(fact.result.text))]
    if not tested:
        return
    failing, _ = _tests(tested[-1].result.text)
    figures = {one for fact in tested for one in _tests(fact.result.text)[1]}
    for sentence in sentences:
        if failing and _PASSED.search(sentence.masked) and not _FAILED.search(prose.masked) and not admits(prose):
            yield Contradiction(sentence.start, sentence.end, tested[-1].shown)
            return
        if len(tested) == 1 and figures:
            told = _figures(sentence.masked)
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


@remembered
def _tests(text: str) -> tuple[bool, frozenset[tuple[int, str]]]:
    """Whether a result tells of failures, and its figures of tests."""
    lower = text.lower()
    if "fail" not in lower and "passed" not in lower:  # found out a hundred times as fast
        return False, frozenset()
    return _FAILED.search(text) is not None, _figures(text)


def _figures(text: str) -> frozenset[tuple[int, str]]:
    return frozenset((int(a or d), (b or c).lower()) for a, b, c, d in _FIGURE.findall(text))
