"""Where a reply contradicts the results of its own turn.

Each check answers one question, and says nothing as soon as one result of the turn supports the text: hits denied,
hits that were never counted, a failure told as a success, tests that did not pass, an argument that was not sent,
details that no result can have given. A text that owns up to the error anywhere contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint.claims.actions import Topic, topics_of, words_of
from wirelint.claims.denials import denied_hits, emptied, wrong_counts
from wirelint.claims.evidence import Ran, last_words
from wirelint.claims.facts import Contradiction, Fact, facts
from wirelint.claims.successes import admits, told_both, told_done, told_runs, told_successes, told_tests
from wirelint.model import Request
from wirelint.text.prose import Prose, Sentence

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
