"""Numbers of rows in a state or a group, "seven of the eight lifts are open", against those of the results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.evidence import Contradiction, Fact, Turn
from wirelint.claims.grounding import statements
from wirelint.claims.rows import Row, holds, tables
from wirelint.claims.states import MOST_WORDS, pattern_of, states_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import NUMERALS, unit_of, whole_number, whole_numbers

_OF_GROUNDING = lexicon.Phrases("grounding")


def looking_up(known: Sequence[Fact]) -> list[Fact]:
    """Return the results of calls that search or read, or may."""
    return [fact for fact in known if fact.able.kinds & {"search", "read"} or not fact.able.kinds]


def miscounted_rows(turn: Turn) -> Contradiction | None:
    """Return "seven of the eight lifts are open" where five rows of eight are, and "of 8 runs, 6 passed and 2 failed"."""
    every = [table for text in turn.returned if text not in turn.outdated for table in tables(text)]
    groups = _groups(every)
    for sentence in statements(turn.prose) if every else ():
        for number, cell in _told_of_groups(sentence.masked, groups):
            if number not in groups[cell]:
                count = max(groups[cell])
                return Contradiction(*sentence.span, f"{count} of the rows are {cell!r}, and not {number}")
        shares = [*_shares(sentence.masked), *_shares_by_cell(sentence.masked, every)]
        for number, whole, text in shares:
            alike = [table for table in every if len(table) == whole]
            if not text.strip() or len(alike) != 1 or number >= whole or _OF_GROUNDING["negates"].search(text):
                continue
            for least, most in _counted(text, alike[0]):
                if not least <= number <= most:
                    place = alike[0][0].place
                    return Contradiction(
                        *sentence.span, f"{least} of the {whole} rows from {place} on are, and not {number}"
                    )
    return None


def _groups(every: Sequence[Sequence[Row]]) -> dict[str, set[int]]:
    """Return the numbers of rows that have a text in common, which puts them into groups: in each table, and in all."""
    groups: dict[str, set[int]] = {}
    for table in every:
        for key in table[0].cells:
            cells = [cell.casefold().replace("_", " ") for row in table if isinstance(cell := row.cells.get(key), str)]
            counts = Counter(cells)
            if len(cells) == len(table) and 1 < len(counts) <= min(MOST_WORDS, len(table) - 1):
                heads = [head.casefold() for head in table[0].cells]  # the first line of a list without a heading
                for cell, count in counts.items():
                    groups.setdefault(cell, set()).add(count + (cell in heads))
    telling = (cell for cell in groups if len(cell) > 1 and not cell.isdigit() and unit_of(cell) is None)
    return {cell: {*groups[cell], sum(groups[cell])} for cell in telling}


def _told_of_groups(text: str, groups: dict[str, set[int]]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of rows in a group that nothing narrows: "three of them are P1", "four dirty rooms"."""
    plain = text.casefold() if not (text.startswith("|") or _OF_GROUNDING["negates"].search(text)) else ""
    for cell in groups if plain else ():
        if cell not in plain:
            continue
        for found in re.finditer(_IN_GROUP.format(cell=re.escape(cell), numerals=NUMERALS), plain):
            yield whole_number(found["number"]), cell


_IN_GROUP = (
    r"(?<!\bother )(?<!\bmore )(?<!\bfirst )(?<!\blast )(?<!\bnext )(?<!\btop )(?<!\bonly )(?<!\bof )(?<![\w.,/:-])"
    r"(?P<number>(?:(?<=^)|(?<=[*\n,;(–] )|(?<=\b(?:the|and|are|und|the)\s)|(?<=\*\*))\d{{1,3}}|{numerals})"
    r"(?: of (?:them|these|those|which)| davon| d['’]entre eux| di essi| de ell[oa]s)?"
    r"(?: (?:are|were|sind|sont|son|sono|são|są|är))? \**{cell}\**(?: [^\W\d_]{{3,14}})?(?=\**(?:[.,;:!–—\n]|\Z| and ))"
)


def _shares(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers of a text that are said to be in a state, with the number of all and the words for the state."""
    for found in _OF_ALL.finditer(text):
        behind = _CLAUSE_END.split(text[found.end() :], maxsplit=1)[0]
        yield whole_number(found["number"]), whole_number(found["all"]), behind
    for found in _OF_THEM.finditer(text):
        behind = _CLAUSE_END.split(text[found.end() :], maxsplit=1)[0]
        for whole in whole_numbers(text[: found.start()]):
            yield whole_number(found["number"]), whole, behind
    for found in _OF_THESE.finditer(text):
        for one in _STATE_COUNT.finditer(text, found.end()):
            yield whole_number(one["number"]), whole_number(found["all"]), one["word"]


def _shares_by_cell(text: str, every: Sequence[Sequence[Row]]) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers right before a cell that puts rows into groups, beside the number of all: "3张待质检" of 7."""
    told = whole_numbers(text)
    for table in every:
        for key in table[0].cells if len(table) in told or re.search(rf"(?<!\d){len(table)}(?!\d)", text) else ():
            cells = {cell for row in table if isinstance(cell := row.cells.get(key), str) and _WORD.search(cell)}
            cells = cells if 1 < len(cells) <= min(MOST_WORDS, len(table) - 1) else set()
            for cell in (cell for cell in cells if cell in text):
                for found in re.finditer(
                    rf"(?<![\d.,])(\d{{1,3}}) ?[^\W\d_a-zA-Z]?{re.escape(cell)}(?!\w*[a-z])", text
                ):
                    yield int(found[1]), len(table), cell


def _counted(text: str, table: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yield the least and the largest number of rows that may be in a state that a text names, for each column."""
    for key in table[0].cells:
        flags = [_FLAGS.get(str(row.cells.get(key)).casefold()) for row in table]
        if None not in flags and name_words(key) and holds(text, name_words(key)[-1]):
            yield sum(map(bool, flags)), sum(map(bool, flags))
        of_rows = [(str(cell := row.cells.get(key)).casefold(), states_of(key, cell)) for row in table]
        held = {cell for cell, own in of_rows if not own and len(cell) > _SHORT and holds(text, cell.replace("_", " "))}
        if literal := sum(cell == text.casefold() or cell in held for cell, _ in of_rows):
            yield literal, literal
            continue
        for state in set[tuple[int, int]]().union(*(own for _, own in of_rows)):
            said = pattern_of(state).search(text)
            cells = [cell for cell, own in of_rows if state in own]
            word = said[0].casefold() if said is not None and said[0].casefold() in cells else cells[0]
            if said is not None and (word == said[0].casefold() or len(set(cells)) == 1):
                unknown = sum(
                    cell != word and all(one == state or _may_be_both(one, state) for one in own)
                    for cell, own in of_rows
                )
                yield cells.count(word), cells.count(word) + unknown


def _may_be_both(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if what is in a state may be in another one too: what is shipped is paid, what is pending is not."""
    return one[0] != other[0] and one[1] <= other[1]


_OF_THEM = re.compile(
    rf"(?i)(?<![\w.,/:-])(?P<number>\d{{1,3}}|one|{NUMERALS}) "
    r"(?:of (?:them|these|those)|davon|d['’]entre|di (?:essi|esse)|de ell[oa]s)\b"
)
_OF_THESE = re.compile(rf"(?i)\bof (?:the |all |these |those )?(?P<all>\d{{1,3}}|{NUMERALS})\b")
_OF_ALL = re.compile(
    rf"(?i)(?<![\w.,/:-])(?P<number>\d{{1,3}}|one|{NUMERALS}) (?:of|out of|von|sur|de|di|van|z|из|av|af) "
    rf"(?:the |den |les |las |los |dei |delle |os |as |de )?(?P<all>\d{{1,3}}|{NUMERALS})(?![\w.,-]*\d)\b"
)
_WORD = re.compile(r"[^\W\d_].*[^\W\d_]")
_SHORT = 3
"""Letters of a cell that a text may have by chance."""
_FLAGS = {"true": True, "false": False, "yes": True, "no": False}
_CLAUSE_END = re.compile(r"[,;:.(]")


_STATE_COUNT = re.compile(
    rf"(?<!\bof )(?<![\w.,/:-])(?<!\d[ \u00a0\u202f])(?P<number>\d{{1,6}}|(?i:{NUMERALS})) "
    r"(?:(?!more|other|addi|furth)[^\W\d_]{3,12} )?(?P<word>[^\W\d_]{4,})(?![\w-])"
)
