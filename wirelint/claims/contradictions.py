"""Contradictions between a reply and the results of its own turn.

Each check looks for one contradiction: denied hits, invented counts, a failure reported as success, tests that did not
pass, an argument that was not sent, details that no result can contain. One result of the turn that supports the text
silences a check, and so does a text that admits the error anywhere.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wirelint import lexicon
from wirelint.claims.counts import miscounted_rows
from wirelint.claims.denials import NONE_CUES, denied_after_error, denied_hits
from wirelint.claims.evidence import SURE, Contradiction, Fact, Outcome, Ran, Turn, facts
from wirelint.claims.failures import error_as_answer
from wirelint.claims.foreign import foreign_value
from wirelint.claims.grounding import (
    LONGEST_REPLY,
    is_about_this_case,
    is_admission,
    negates,
    statements,
    wrong_value,
)
from wirelint.claims.hidden_failures import answer_after_error, failed_act, hidden_failure
from wirelint.claims.moments import wrong_moment
from wirelint.claims.parallel import deviating_line
from wirelint.claims.row_checks import wrong_value_of_row
from wirelint.claims.states import opposite_states
from wirelint.claims.superlatives import wrong_superlative
from wirelint.claims.totals import wrong_total
from wirelint.claims.values import LONGEST, NUMERALS, whole_number, whole_numbers
from wirelint.history.handed_back import handed_back
from wirelint.model import Request
from wirelint.state.mcp_ledger import Passed
from wirelint.text.prose import Prose
from wirelint.text.remembered import remembered

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

_PHRASES = lexicon.Phrases("contradictions")
_OF_GROUNDING = lexicon.Phrases("grounding")

# Failed tests reported as passed.

_WORD = re.compile(r"\w+")


def false_test_reports(turn: Turn) -> Contradiction | None:
    """Return a report of passed tests that the last test run does not confirm, or other numbers than its own."""
    tested = [fact for fact in turn.known if any(_tests(fact.result.text))]
    if not tested:
        return None
    failing, _ = _tests(tested[-1].result.text)
    failing = failing and not _PHRASES["failed"].search(turn.prose.masked) and not is_admission(turn.prose)
    figures = {one for fact in tested for one in _tests(fact.result.text)[1]}
    results = "\n".join(fact.result.text.casefold() for fact in tested)
    for sentence in turn.sentences:
        told = {(number, "pass") for number in whole_numbers(sentence.masked)} & figures  # "37 of 38 tests pass"
        if failing and not told and _PHRASES["passed"].search(sentence.masked):
            return Contradiction(*sentence.span, tested[-1].shown, *SURE)
        if len(tested) > 1 or not figures:
            continue
        # "Build 7731 failed", "Peer 09 failed": the number of a thing is no figure.
        counted = _OF_THING.sub(lambda one: " " if one[0].casefold() in results else one[0], sentence.masked)
        stated = {one for one in _figures(counted) if not re.search(rf"\b{one[0]}\b", tested[0].arguments)}
        parts = {(sum(number for number, word in stated if word == one), one) for _, one in stated} & figures
        told_words = {word for _, word in figures} - {word for _, word in parts}
        wrong = {one for one in stated if one not in figures and one[1] in told_words}
        if wrong and not stated & figures:
            return Contradiction(*sentence.span, tested[-1].shown, *SURE)
        if wrong and not _PHRASES["of_before"].search(sentence.masked):
            return Contradiction(*sentence.span, tested[-1].shown)
    return None


_OF_THING = re.compile(r"[^\W\d_]{3,} \d+\b")


@remembered
def _tests(text: str) -> tuple[bool, frozenset[tuple[int, str]]]:
    """Return True if a result reports failures; and its numbers of tests, with the sums of those of several runs."""
    lower = text.lower()
    if "test" not in lower and "passed" not in lower:  # "order 41 failed" of a log is no test
        return False, frozenset()
    figures = _figures(text)
    sums = {word: sum(number for number, other in figures if other == word) for _, word in figures}
    return _PHRASES["failed"].search(text) is not None, frozenset([*figures, *((sums[word], word) for word in sums)])


def _figures(text: str) -> list[tuple[int, str]]:
    return [(whole_number(a or d), (b or c).lower()[:4]) for a, b, c, d in _FIGURE.findall(text)]


_FIGURE = _PHRASES.pattern("figure", numerals=NUMERALS)


# Codes that take the place of those of the results.

_CODE = re.compile(
    r"https?://[^\s)\]>\"'<|`*]+[^\s)\]>\"'<|`*.,;:!?]|(?<![\w.+/-])(?=[\w.+/-]*\d[\w.+/-]*\d)(?=[\w.+/-]*[A-Za-z])[A-Za-z\d][\w.+/-]{3,}(?<![.+/-])"
    r"|(?<![\w.+/-])\d{3,}(?:-\d{3,})+(?![\w-])|(?<![\w.+/-])(?:\+\d{1,3}|0\d{1,4})(?: \d{2,7}){1,4}(?![\w-])"
)
"""A URL, an id, a version: at least two digits, and letters; groups of digits: `6894-2201-7735`, `+44 1865 204417`."""
_FEW_DIGITS = 3
_AMOUNT = re.compile(r"[\d.,]+[^\W\d]{1,4}\Z")
_TWO_DIGITS = re.compile(r"\d[^\d\s]*\d")
_LONGEST_CODE = 120
_DIGITS_ONLY = str.maketrans(dict.fromkeys(string.digits, "9"))
_DIGITS_AND_LETTERS = _DIGITS_ONLY | str.maketrans(dict.fromkeys(string.ascii_letters, "a"))
_DIGIT = re.compile(r"\d")


def altered_codes(turn: Turn) -> Contradiction | None:
    """Return an id, version or URL that differs by some digits or letters from the only one of its form in the results
    that a reply does not have.
    """
    text, good = turn.prose.text, turn.returned
    stated = [one for one in dict.fromkeys(_codes(text)) if _AMOUNT.match(one) is None]
    unknown = [one for one in stated if not any(one in other for other in good)]
    if not unknown:
        return None
    returned = {one for other in good for one in _codes(other) if len(one) <= _LONGEST_CODE}
    known = "\n".join(turn.texts).casefold()
    for one in unknown:
        alike = [other for other in returned if len(other) == len(one) and _form(other) == _form(one)]
        if sum(_form(other) == _form(one) for other in unknown) == 1:
            alike = [other for other in alike if other not in text]
            alike = [other for other in alike if _is_swapped(one, other)] or alike
        if len(alike) != 1 or alike[0] in text or one.casefold() in known:
            continue
        sentence = next((each for each in turn.prose.sentences if one in text[each.start : each.end]), None)
        # "Please show R-58231", of R-58213: two digits that have changed places are no example.
        swapped = _is_swapped(one, alike[0]) and sum(map(str.isdigit, one)) > _FEW_DIGITS
        if sentence is not None and not sentence.question and (swapped or is_about_this_case(sentence)):
            against = f"the results have {alike[0]!r}, and {one!r} is nowhere in the conversation"
            return Contradiction(*sentence.span, against)
    return None


def wrong_version(turn: Turn) -> Contradiction | None:
    """Return the only version of a reply that no text has, if it leaves out one of a result: `4.12.2` for `4.2.11`."""
    told = [*_VERSION.finditer(turn.prose.text)]
    held = {version for text in turn.returned for version in _VERSION.findall(text)} if told else set()
    unknown = [one for one in told if not any(one[0].lstrip("v") in text for text in turn.texts)]
    left = held - {one[0] for one in told}
    if not left or len({one[0] for one in unknown}) != 1 or (len(told) > 1 and len(left) == len(held)):
        return None
    for sentence in statements(turn.prose):
        before = sentence.masked[: max(unknown[0].end() - sentence.start, 0) + _NEGATED_WITHIN]
        inside = sentence.start <= unknown[0].start() < sentence.end
        if inside and not _OF_GROUNDING["negates"].search(before):
            return Contradiction(*sentence.span, f"the results have {min(left)!r}: {turn.good[-1].shown}")
    return None


_NEGATED_WITHIN = 8
"""Characters behind a version in which it may be denied: "4.12.2 is not out"."""
_VERSION = re.compile(r"(?<![\w.-])v?\d{1,4}(?:\.\d{1,4}){2,3}(?![\w.]*\w|/\d)")


def dry_run_as_done(turn: Turn) -> Contradiction | None:
    """Return a report of a finished action if its result says that it was only tried: `"dry_run": true`."""
    tried = [fact for fact in turn.good if _TRIED.search(fact.result.text[:LONGEST])]
    if not tried or len(tried) < len(turn.good) or _PHRASES["only_tried"].search(turn.prose.masked):
        return None
    for sentence in statements(turn.prose):
        done = _PHRASES["acted"].search(sentence.masked)
        if done is not None and not negates(sentence):
            return Contradiction(*sentence.span, f"the action was only tried: {tried[0].shown}")
    return None


_TRIED = re.compile(r"(?i)[\"'](?:is_?)?(?:dry_?run|simulat(?:ed?|ion)|preview_only|what_?if)[\"']\s*:\s*true\b")


def _is_swapped(one: str, other: str) -> bool:
    """Return True if two codes of one length differ in two characters that have changed places."""
    apart = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return len(apart) == 2 and apart[0] == apart[1][::-1]


def _codes(text: str) -> list[str]:
    """Return the codes of a text. Only words with digits are searched, which is ten times as fast."""
    return _CODE.findall(" ".join(word for word in text.split() if not word.isalpha() and _TWO_DIGITS.search(word)))


def _form(code: str) -> str:
    """Return the form of a code: `9999-aaa` of `2041-abc`. Letters stay in a URL, where they are words."""
    return code.translate(_DIGITS_ONLY if code.startswith("http") else _DIGITS_AND_LETTERS)


def contradictions(
    prose: Prose, known: Sequence[Fact], called: Sequence[Ran], request: Request
) -> Iterator[Contradiction]:
    """Yield statements of a text that the facts of its turn contradict: one of each check at most."""
    turn = Turn(prose, known, called, request)
    checks = [denied_hits] if NONE_CUES.occur_in(prose.masked.lower()) else []
    checks += [denied_after_error, false_test_reports, dry_run_as_done, _wrong_argument]
    if len(prose.text) <= LONGEST_REPLY:
        readable = bool(turn.good) and all(len(text) <= LONGEST for text in turn.returned)
        numbers = readable and _DIGIT.search(prose.text) is not None
        checks += [
            error_as_answer,
            answer_after_error,
            miscounted_rows,
            *[wrong_value, wrong_total] * numbers,
            *[deviating_line, wrong_value_of_row, foreign_value, wrong_superlative] * readable,
            opposite_states,
            hidden_failure,
            failed_act,
        ]
        checks += [wrong_moment, altered_codes, wrong_version] if numbers else []
    yield from filter(None, (check(turn) for check in checks))


def _wrong_argument(turn: Turn) -> Contradiction | None:
    """Return "I called search with limit=5" where the call of that tool has another value of the argument."""
    calls = [one.call for one in turn.ran if one.call is not None and one.call.name]
    for sentence in turn.sentences:
        shown = turn.prose.text[sentence.start : sentence.end]
        if not ("=" in shown or ":" in shown) or not _PHRASES["called"].search(sentence.masked):
            continue
        named = [call for call in calls if re.search(rf"(?<!\w){re.escape(call.name or '')}(?!\w)", shown)]
        for key, value in _PHRASES["assigned"].findall(shown):
            sent = [arguments[key] for call in named if key in (arguments := call.arguments.mapping or {})]
            kinds = (str, int, float)
            scalars = [str(one).lower() for one in sent if isinstance(one, kinds) and not isinstance(one, bool)]
            if scalars and len(scalars) == len(sent) and not any(value.lower() in one for one in scalars):
                return Contradiction(*sentence.span, f"the call sent {key}={scalars[-1]}", "error")
    return None


# Errors of MCP servers among the results of a turn, and statements of a reply about them.

_REDACTED = "[redacted:"
_HEAD = 4000
_LONGEST = 400
_FEWEST = 3
"""Least number of words that identify an error. Fewer may be in any text."""
_LEADS = frozenset({"error", "mcp", "tool", "failed", "exception"})


def error_of(passed: Sequence[Passed]) -> Passed | None:
    """Return the failed call if every call like it is known to have failed."""
    if not passed or not all(one.answered and one.error is True for one in passed):
        return None
    return passed[-1]


def mcp_errors(request: Request, ran: Sequence[Ran], ledger: Ledger) -> tuple[Fact, ...]:
    """Return the results of the turn if one of them is an error of an MCP server, else nothing.

    The server's answer on this wire shows it, or the result itself: some clients pass on the JSON of the server.
    """
    results = [result for message in request.turn for result in message.results]
    failed = (
        {back.result.pointer for back in handed_back(request, ledger) if error_of(back.passed(ledger.tools))}
        if ledger.tools
        else set()
    )
    if not failed and not any(_is_envelope(result.text) for result in results):
        return ()
    known = facts(request, ran)
    if any(_REDACTED in fact.result.text for fact in known):
        return ()
    return tuple(
        Fact(fact.result, Outcome(True, frozenset()), fact.able, fact.arguments)
        if fact.result.pointer in failed
        else fact
        for fact in known
    )


def misreported_errors(
    prose: Prose, served: Sequence[Fact], ran: Sequence[Ran], request: Request
) -> Iterator[Contradiction]:
    """Yield the statements of a text that misreport the errors among `mcp_errors`."""
    if served and not _passes_on(prose.text, served):
        yield from (found for found in contradictions(prose, served, ran, request) if "error" in found.against)


def _passes_on(text: str, served: Sequence[Fact]) -> bool:
    """Return True if a reply quotes an error of the server: "Shelf C is locked, so the item stays where it is"."""
    match = f" {' '.join(_WORD.findall(text[:_HEAD].casefold()))} "
    for fact in served:
        words = _WORD.findall(fact.result.text[:_LONGEST].casefold()) if fact.outcome.error else []
        while words and words[0] in _LEADS:
            words = words[1:]
        if len(words) >= _FEWEST and f" {' '.join(words)} " in match:
            return True
    return False


def _is_envelope(text: str) -> bool:
    """Return True if a result is the unchanged JSON of a failed MCP call."""
    start = text[:_HEAD]
    return '"isError"' in start and '"content"' in text and "true" in start.partition('"isError"')[2][:6]
