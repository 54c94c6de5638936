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
from wirelint.claims.actions import stem, words_of
from wirelint.claims.counts import looking_up, miscounted_states
from wirelint.claims.derivation import (
    STOP,
    data,
    equals,
    is_computed,
    is_of_kind,
    is_said,
    unit_of_key,
)
from wirelint.claims.evidence import STATE_KEYS, SURE, Contradiction, Fact, Outcome, Ran, Turn, facts
from wirelint.claims.failures import error_as_answer
from wirelint.claims.grounding import (
    LONGEST_REPLY,
    Given,
    Stated,
    is_about_this_case,
    is_admission,
    negates,
    particulars,
    stated,
    statements,
    wrong_value,
)
from wirelint.claims.listings import wrong_cells
from wirelint.claims.moments import CELL, RELATIVE, earlier_value, wrong_moment, wrong_weekday
from wirelint.claims.numbers import (
    wrong_currency,
    wrong_unit,
    wrong_version,
)
from wirelint.claims.row_checks import wrong_value_of_row
from wirelint.claims.row_values import is_beside_key
from wirelint.claims.rows import Row, holds, tables
from wirelint.claims.states import opposite_states, pattern_of, states
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import LONGEST, NUMERALS, values, whole_number
from wirelint.history.handed_back import handed_back
from wirelint.jsonvalues import decode_json
from wirelint.model import Json, Request
from wirelint.state.mcp_ledger import Passed
from wirelint.text.prose import Cues, Prose, Sentence
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
        if failing and _PHRASES["passed"].search(sentence.masked):
            return Contradiction(*sentence.span, tested[-1].shown, *SURE)
        if len(tested) > 1 or not figures:
            continue
        # "Build 7731 failed", "Peer 09 failed": the number of a thing is no figure.
        counted = _OF_THING.sub(lambda one: " " if one[0].casefold() in results else one[0], sentence.masked)
        stated = {one for one in _figures(counted) if not re.search(rf"\b{one[0]}\b", tested[0].arguments)}
        wrong = {one for one in stated if one not in figures and one[1] in {word for _, word in figures}}
        if wrong and not stated & figures:
            return Contradiction(*sentence.span, tested[-1].shown, *SURE)
        if wrong and not _PHRASES["of_before"].search(sentence.masked):
            return Contradiction(*sentence.span, tested[-1].shown)
    return None


_OF_THING = re.compile(r"[^\W\d_]{3,} \d+\b")


@remembered
def _tests(text: str) -> tuple[bool, frozenset[tuple[int, str]]]:
    """Return True if a result reports failures, and its numbers of tests."""
    lower = text.lower()
    if "fail" not in lower and "passed" not in lower:  # a test that is a hundred times as fast as the patterns
        return False, frozenset()
    return _PHRASES["failed"].search(text) is not None, _figures(text)


def _figures(text: str) -> frozenset[tuple[int, str]]:
    found = _FIGURE.findall(text)
    return frozenset((1 if a.lower() == "one" else whole_number(a or d), (b or c).lower()[:4]) for a, b, c, d in found)


_FIGURE = _PHRASES.pattern("figure", numerals=NUMERALS)


# Hits that a text denies: "there are none" against fourteen, or against an error.

_PLAIN = frozenset(_PHRASES.words("plain"))


def denied_hits(turn: Turn) -> Contradiction | None:
    """Return the denial of hits by a general word for them, or of anything after an error."""
    prose, looking = turn.prose, looking_up(turn.known)
    if not looking or any(fact.outcome.empty for fact in looking):
        return None
    if all(fact.outcome.error for fact in looking):
        return _denied_after_error(turn, looking)
    if not all(
        "search" in fact.able.kinds and fact.outcome.counts and not _PHRASES["holds_zero"].search(fact.result.text)
        for fact in looking
    ):
        return None
    if _cites(prose, looking) or _PHRASES["counted"].search(prose.masked):
        return None
    for sentence in turn.sentences:
        of_call = _PHRASES["returned_none"].search(sentence.masked)
        zero = _PHRASES["zero"].search(sentence.masked) or of_call
        if zero is None:
            continue
        # "No results" denies the hits, "no files about it" may deny that they are about it.
        doubtful = _PHRASES["general_hits"].search(zero[0]) is None and all(map(_may_not_match, looking))
        if doubtful or _reports_hits(prose, sentence, looking):
            return None
        elsewhere = not of_call and _is_elsewhere(prose.text[sentence.start + zero.start() : sentence.end], looking)
        if not elsewhere and not _PHRASES["narrowed"].search(sentence.masked):
            return Contradiction(*sentence.span, looking[-1].shown, *SURE)
    return None


def _denied_after_error(turn: Turn, looking: Sequence[Fact]) -> Contradiction | None:
    if _PHRASES["admits_looking"].search(turn.prose.masked):
        return None
    for sentence in turn.sentences:
        of_call = _PHRASES["returned_none"].search(sentence.masked)
        zero = _PHRASES["zero"].search(sentence.masked) or of_call or _PHRASES["none"].search(sentence.masked)
        if zero is None:
            continue
        if all(_is_absence(fact, zero[0]) for fact in looking):
            return None
        shown = turn.prose.text[sentence.start + zero.start() : sentence.end]
        if not _PHRASES["others"].search(sentence.masked) and (of_call or not _is_elsewhere(shown, looking)):
            return Contradiction(*sentence.span, f"the result is an error: {looking[-1].shown}", *SURE)
    return None


def _is_absence(fact: Fact, denial: str) -> bool:
    """Return True if the error itself reports that the thing does not exist, so that "none found" is a fair summary.

    "Order not found" may become "no orders"; "workspace not found" may not become "no results".
    """
    text = fact.result.text.lower()
    if not _PHRASES["absent"].search(text):
        return False
    if "search" not in fact.able.kinds:
        return True
    nouns = {word.rstrip("s") for word in re.findall(r"[a-z]+", denial.lower()) if len(word) > 3} - {
        "found",
        "nothing",
        "result",
        "anything",
    }
    return any(noun in text for noun in nouns)


def _is_elsewhere(shown: str, looking: Sequence[Fact]) -> bool:
    """Return True if a denial is about a target that no call of the turn looked for."""
    asked = " ".join(fact.arguments for fact in looking).lower()
    targets = [word.lower().rstrip(".-") for word in _PHRASES["target"].findall(shown) if word.lower() not in _PLAIN]
    return bool(targets and asked.strip() not in ("", "{}")) and not any(
        word in asked or stem(word) in asked for word in targets
    )


def _cites(prose: Prose, looking: Sequence[Fact]) -> bool:
    """Return True if the text contains a token that only a result contains."""
    asked = " ".join(fact.arguments for fact in looking)
    results = " ".join(fact.result.text[:20_000] for fact in looking)
    return any(token in results and token not in asked for token in _PHRASES["token"].findall(prose.text))


def _reports_hits(prose: Prose, denial: Sentence, looking: Sequence[Fact]) -> bool:
    """Return True if the text reports the hits beside the denial: as near misses, or in their own words."""
    if _PHRASES["nearest"].search(prose.masked):
        return True
    asked = set(_PHRASES["title_word"].findall(" ".join(fact.arguments for fact in looking).lower()))
    titles = set(_PHRASES["title_word"].findall(" ".join(fact.result.text[:LONGEST] for fact in looking).lower()))
    rest = f"{prose.text[: denial.start]} {prose.text[denial.end :]}".lower()
    return len(set(_PHRASES["title_word"].findall(rest)) & (titles - asked)) >= 2


def denied_items(turn: Turn) -> Contradiction | None:
    """Return a denial of what a look-up found, in any language, if the reply takes nothing from the list that it returned.

    The denial is about the arguments of the call. A search by words may return what does not match them, so its hits count
    only if they have all words of the search.
    """
    fact, text = turn.known[0], turn.known[0].result.text
    if len(turn.known) > 1 or fact.outcome.error or fact.outcome.empty:
        return None
    none = next((one for one in turn.sentences[:2] if _PHRASES["none_exists"].search(one.masked)), None)
    if none is None or len(text) > LONGEST:
        return None
    document = decode_json(text) if text.lstrip()[:1] in ("[", "{") else [dict(row.cells) for row in _only_table(text)]
    items = document if isinstance(document, list) else [*document.values()] if isinstance(document, dict) else []
    listed = items if isinstance(document, list) else next((one for one in items if isinstance(one, list)), [])
    if not listed or [] in items:
        return None
    wanted, found = particulars(fact.arguments), particulars(text)
    own = particulars(" ".join(fact.able.words))
    named = (
        particulars(none.masked) & wanted or words_of(none.masked) & fact.able.words or particulars(none.masked) & own
    )
    key = next((key for key, one in document.items() if one is listed), "") if isinstance(document, dict) else ""
    state = _state_in(none.masked, listed)
    is_named = bool(named) or state is not None
    says_key = (key in states() and holds(none.masked, key)) or state is not None
    if not says_key and _may_be_filtered(listed, _WORD.findall(f"{turn.order} {none.masked}")):
        return None
    denial = _PHRASES["none_exists"].search(none.masked)
    if not is_named or _may_not_match(fact) or is_admission(turn.prose, sad=True, denial=denial[0] if denial else ""):
        return None
    # "No open tickets", of a list of tickets: the model may have read which of them are open.
    keys = particulars(" ".join([*_KEY.findall(text), *(key for row in _only_table(text) for key in row.cells)]))
    narrowing = (particulars(_without(none.masked, fact.arguments)) & particulars(turn.order)) - wanted - keys - _SMALL
    narrowing -= particulars(state or "")
    if _PHRASES["others"].search(none.masked) or narrowing - own:
        return None
    retells = particulars(turn.prose.text) & (found - wanted - keys - particulars(state or ""))
    return None if retells else Contradiction(*none.span, fact.shown)


def _only_table(text: str) -> tuple[Row, ...]:
    return next(iter(tables(text)), ())


def _without(text: str, arguments: str) -> str:
    """Return a text without relative days, and without amounts that the arguments have: `3 millions` of 3000000."""
    sent = data(arguments)
    for value in reversed(values(text)):
        if any(equals(value, datum.value) for datum in sent):
            text = text[: value.start] + text[value.end :]
    return RELATIVE.sub(" ", text)


def _may_not_match(fact: Fact) -> bool:
    """Return True if the hits of a search by words do not have all of these words, so that none of them may be meant."""
    sent = decode_json(fact.arguments)
    searched = (
        [str(value) for key, value in sent.items() if key.lower() in _SEARCH_KEYS] if isinstance(sent, dict) else []
    )
    return not particulars(_OPERATOR.sub(" ", " ".join(searched))) <= particulars(fact.result.text)


_OPERATOR = re.compile(r"\b\w+:\w+")
"""A filter among the words of a search: `status:open`."""


def _may_be_filtered(items: Sequence[Json], words: Sequence[str]) -> bool:
    """Return True if items may not count by a flag, a zero or a state: `{"taken": true}`.

    All have the same, or a word of the order or the denial names one.
    """
    rows = [item for item in items if isinstance(item, dict)]
    columns = [(key, [row.get(key) for row in rows]) for key in (rows[0] if rows else ())]
    kinds = [(key, cells) for key, cells in columns if key.lower() in STATE_KEYS or any(map(_is_state_cell, cells))]
    if any(cells.count(cells[0]) == len(cells) for _, cells in kinds):
        return True
    keys = particulars(" ".join(" ".join(name_words(key)) for key, _ in kinds))
    words = [word for word in words if len(word) >= CELL]
    return bool(kinds) and any(word.casefold() in states() or particulars(word) & keys for word in words)


def _state_in(text: str, items: Sequence[Json]) -> str | None:
    """Return the state of some items that a denial names: `vacant` of "no vacant units", where two are."""
    cells = {str(cell) for item in items if isinstance(item, dict) for cell in item.values() if isinstance(cell, str)}
    return next((cell for cell in sorted(cells) if cell.casefold() in states() and holds(text, cell)), None)


def _is_state_cell(cell: Json) -> bool:
    return isinstance(cell, bool) or cell == 0 or str(cell).casefold() in states()


_NONE = Cues(*_PHRASES.words("none_cues"))
_SEARCH_KEYS = frozenset(_PHRASES.words("search_keys"))
_KEY = re.compile(r'"[^"\n]{1,40}"\s*:')
_SMALL = frozenset(word[:5] for word in STOP)


def value_for_null(turn: Turn) -> Contradiction | None:
    """Return a number or code for a field that is null: "your return has the number DV-20931" with `"return": null`."""
    known = "\n".join(fact.result.text[:LONGEST] for fact in turn.known)
    filled = set(_NOT_NULL.findall(known))
    lacking = [
        (key, fact) for fact in turn.known for key in _NULL.findall(fact.result.text[:LONGEST]) if key not in filled
    ]
    given = Given(turn.request, [], turn.prose)
    said = stated(turn.prose) if lacking else []
    if said and (measured := _filled_measure(turn, said, lacking)):
        return measured
    for sentence in statements(turn.prose) if lacking else ():
        is_cause = _PHRASES["because"].search(sentence.masked) is not None and len(given.new_words(sentence)) > 1
        held = next((one for one in lacking if _means(one[0], sentence.masked, is_cause=is_cause)), None)
        if held is None or negates(sentence):
            continue
        beside = [
            one.value
            for one in said
            if one.sentence == sentence and is_beside_key(one.value, held[0], turn.prose.masked)
        ]
        pool = [datum for fact in turn.known for datum in data(fact.result.text)] if beside else []
        if (
            _is_cause(held[0])
            or given.has_news(sentence, names=False)
            or not all(is_said(one, turn.prose.masked, turn.texts) or is_computed(one, pool) for one in beside)
        ):
            return Contradiction(*sentence.span, f"the result has {held[0]} = null: {held[1].shown}")
    return None


def _filled_measure(turn: Turn, said: Sequence[Stated], lacking: Sequence[tuple[str, Fact]]) -> Contradiction | None:
    """Return "the water stands at 2.6 m" where the results have `"water_level_m": null`, and no other length."""
    pool = turn.numbers
    for key, fact in lacking:
        unit = unit_of_key(key)
        for one in said:
            value = one.value
            if unit is None or value.unit is None or value.unit.dimension != unit.dimension or negates(one.sentence):
                continue
            if any(is_of_kind(value, datum.value) for datum in pool) or is_computed(value, pool):
                continue
            if not is_said(value, turn.prose.masked, turn.texts):
                return Contradiction(*one.sentence.span, f"the result has {key} = null: {fact.shown}")
    return None


_NULL = re.compile(r'"([^"\n]{4,40})"\s*:\s*null\b')
_NOT_NULL = re.compile(r'"([^"\n]{4,40})"\s*:\s*(?!null\b|\s)')
"""The key of a value that another row may lack."""


def _means(key: str, text: str, *, is_cause: bool) -> bool:
    """Return True if a text has all words of a key, in any form, or its one word in two: `pay out`; no key of errors and
    notes. `is_cause`: the text gives a cause, as the key of a reason does.
    """
    names = name_words(key)
    if _is_cause(key):
        return is_cause
    own = particulars(" ".join(names))
    told = own <= particulars(text) if own else all(holds(text, name) for name in names)
    in_two = len(names) == 1 and len(key) >= _JOINED and names[0] in text.casefold().replace(" ", "")
    return (told or in_two) and names[-1] not in _ERROR_KEYS


def _is_cause(key: str) -> bool:
    return name_words(key)[-1:] in (["reason"], ["cause"])


_JOINED = 6
"""Letters of a word that a text may write as two."""


_ERROR_KEYS = frozenset({"error", "errors", "fault", "message", "note", "notes", "comment", "warning"})


# Codes that take the place of those of the results.

_CODE = re.compile(
    r"https?://[^\s)\]>\"'<|`*]+[^\s)\]>\"'<|`*.,;:!?]|(?<![\w.+/-])(?=[\w.+/-]*\d[\w.+/-]*\d)(?=[\w.+/-]*[A-Za-z])[A-Za-z\d][\w.+/-]{3,}(?<![.+/-])"
    r"|(?<![\w.+/-])\d{3,}(?:-\d{3,})+(?![\w-])"
)
"""A URL, an id, a version: at least two digits, and letters; groups of digits: `6894-2201-7735`."""
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


def failures_as_success(turn: Turn) -> Contradiction | None:
    """Return a report that all went well, or one of the things, if some failed: "all five files were uploaded" or "I
    uploaded a.pdf" with `"failed": [{"file": "a.pdf", …}]`, or if one of several calls failed to the end.
    """
    text = turn.prose.masked
    failed = [fact for fact in turn.good if _FAILED_SOME.search(fact.result.text[:LONGEST])] or _failed_calls(turn)
    if not failed or _PHRASES["failed"].search(text) or is_admission(turn.prose):
        return None
    named = {word for fact in failed for word in _failed_things(fact.result.text)}
    is_whole = all(isinstance(decode_json(fact.result.text), dict) for fact in failed)  # no list of parts
    for sentence in statements(turn.prose):
        shown = turn.prose.text[slice(*sentence.span)]
        if shown.startswith("|") or _ALL_THAT.search(shown):
            continue
        acted = _PHRASES["acted"].search(sentence.masked) or _OF_GROUNDING["done"].search(sentence.masked)
        in_all = pattern_of("all").search(sentence.masked) and (acted or named)
        one_of_them = acted and any(holds(shown, word) for word in named)
        fault = _OF_GROUNDING["no_fault"].search(sentence.masked) if is_whole else None
        # Not "no CRC errors", or "no errors of the parser"
        plain = fault is not None and len([word for word in fault[0].split() if word != "any"]) == _TWO_WORDS
        without_fault = plain and fault is not None and _CLAUSE_ENDS.match(sentence.masked, fault.end())
        if without_fault or ((in_all or one_of_them) and not negates(sentence)):
            return Contradiction(*sentence.span, f"some failed: {failed[0].shown}")
    return None


_FAILED_SOME = re.compile(
    r"(?i)\"(?:failed|failures|errors|rejected|not_(?:sent|uploaded|processed))\"\s*:\s*(?:\[\s*[\"{]|[1-9])"
)


def _failed_calls(turn: Turn) -> list[Fact]:
    """Return the last calls of acting tools that succeeded before and then failed."""
    last = {fact.able.tool.name: fact for fact in turn.known if fact.able.kinds - {"search", "read", "run"}}
    succeeded = {fact.able.tool.name for fact in turn.good}
    return [fact for name, fact in last.items() if fact.outcome.error and name in succeeded and not fact.able.shell]


_TWO_WORDS = 2
_CLAUSE_ENDS = re.compile(r"\W*\Z|[,;:.!]")
_ALL_THAT = re.compile(r"(?i)\b(?:all|alles|tout|todo|tutto) (?:that|I|we|you|was|ce|lo que|quello)\b")


def _failed_things(text: str) -> Iterator[str]:
    """Yield the names in the lists of failures of a result: `a.pdf`, `chiara` of `chiara@example.org`."""
    document = decode_json(text)
    for key, listed in document.items() if isinstance(document, dict) else ():
        if isinstance(listed, list) and _FAILED_SOME.match(f'"{key}": ["'):
            for one in listed:
                first = next(iter(one.values()), None) if isinstance(one, dict) else one
                if isinstance(first, str) and len(first) >= CELL:
                    yield from (first, first.partition("@")[0])


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
    checks = [denied_hits]
    if _NONE.occur_in(prose.masked.lower()):
        checks.append(denied_items)
    checks += [miscounted_states, false_test_reports, dry_run_as_done, failures_as_success, _wrong_argument]
    if len(prose.text) <= LONGEST_REPLY:
        readable = bool(turn.good) and all(len(text) <= LONGEST for text in turn.returned)
        numbers = readable and _DIGIT.search(prose.text) is not None
        checks += [
            error_as_answer,
            value_for_null,
            *[wrong_value, wrong_unit, wrong_currency] * numbers,
            *[wrong_cells, wrong_value_of_row] * readable,
            opposite_states,
            earlier_value,
        ]
        checks += [wrong_moment, wrong_weekday, altered_codes, wrong_version] if numbers else []
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
