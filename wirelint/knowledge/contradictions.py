"""Where a reply contradicts the results of its own turn.

Each check answers one question, and says nothing as soon as one result of the turn supports the text: hits denied,
hits that were never counted, a failure told as a success, tests that did not pass, an argument that was not sent,
details that no result can have given. A text that owns up to the error anywhere contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint.knowledge.denials import denied_hits, wrong_counts
from wirelint.knowledge.evidence import Ran
from wirelint.knowledge.facts import Contradiction, Fact
from wirelint.knowledge.prose import Prose, Sentence
from wirelint.knowledge.successes import admits, told_runs, told_successes, told_tests

_ASSIGNED = re.compile(r"\b([A-Za-z_]\w{0,40}) ?(?:=|:) ?[\"'`]*([\w./:@-]*\w)")
_FIGURES = re.compile(r"\d+|[\"“][^\"”\n]{3,80}[\"”]")
_AHEAD = re.compile(r"\b(?:will|would|could|should|can|may|might|let me|if|please|I['’]ll)\b|[?？]", re.IGNORECASE)


def contradictions(prose: Prose, known: Sequence[Fact], ran: Sequence[Ran]) -> Iterator[Contradiction]:
    """What in a text the facts of its turn contradict."""
    sentences = [sentence for sentence in prose.sentences if not sentence.question]
    yield from denied_hits(prose, sentences, known)
    yield from wrong_counts(prose, sentences, known)
    yield from told_successes(prose, known)
    yield from told_runs(prose, sentences, known)
    yield from told_tests(prose, sentences, known)
    yield from _wrong_argument(prose, sentences, ran)
    yield from _details(prose, sentences, known)


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
