"""Failures that a text tells as successes: an action that was refused, a program that crashed, tests that did not pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.actions import PARTICIPLE, alternatives
from wirelint.claims.claims import Claim, claims
from wirelint.claims.facts import Contradiction, Fact
from wirelint.claims.order_check import carried_out
from wirelint.claims.side_effects import Reach, reach
from wirelint.claims.toolkinds import fits
from wirelint.text.prose import Prose, Sentence
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("successes")

_ADMITS = _PHRASES.pattern("admits")
_PASSED = _PHRASES.pattern("passed")
_FAILED = _PHRASES.pattern("failed")
_FIGURE = re.compile(r"\b(\d+) (?:tests? )?(?:have )?(passed|failed)\b|\b(passed|failed)[:=] ?(\d+)", re.IGNORECASE)
_SUCCESS = _PHRASES.pattern("success")
_VAGUE = frozenset(_PHRASES.words("vague"))


_NO_FAULT = _PHRASES.pattern("no_fault")
_WENT_WELL = _PHRASES.pattern("went_well")
_STATE = _PHRASES.pattern("state", participle=alternatives(PARTICIPLE))
_SETTLED = _PHRASES.pattern("settled")
_WORD = re.compile(r"\w+")
_BOTH = _PHRASES.pattern("both")
_NOW = _PHRASES.pattern("now")
_DID = re.compile(rf"\bI(?:['’]ve| have)? (?:{alternatives(PARTICIPLE)})\b")
_UNSURE = _PHRASES.pattern("unsure")


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
