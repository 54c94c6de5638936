"""Where markup may begin in a text: the openers of all families, made into as few searches as can be.

Theory of operation. Openers come in four kinds, by what their first piece says: a literal (`<`, `[`, `✿`), the beginning of
a word, of a line, of the text. Those of literals and of words are grouped by the character that they begin with, those of
lines stand behind a line feed, so that each group is one search that skips to a character. A group is searched for only
where one of its *sparks* occurs, the first literals of its openers, which costs a substring search each; clean text has few
of them. Behind `<`, which code is full of, a look at the next few characters tells most tags from all openers together.
What begins the text is looked for there, and elsewhere only after reasoning.

Openers with the name of a declared tool in them are searched for with any name in its place, which is looked up then: so
nothing is made anew for the tools of a request.

What the end of a text that is not over may still begin is told likewise (`cuts`).
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wirelint.dialects.cuts import Kind, by_kind, cut, heads, named_cut
from wirelint.dialects.openers import (
    THOUGHT_ENDS,
    Either,
    Opener,
    Piece,
    Run,
    cut_pattern,
    full_pattern,
    has_name,
    word_start,
)

if TYPE_CHECKING:
    from wirelint.dialects.reader import Reader

_LONGEST_BEFORE = 16
"""Characters that may stand before an opener and decide whether it is one."""


class Group(NamedTuple):
    """Openers that are searched for together, and what a text must hold for any of them to be there (empty: nothing).

    `behind` is there for openers that only count behind something: the search for both, of which only what stands before
    the opener is a match. `first`: they only count at the beginning of the text.
    """

    sparks: tuple[str, ...]
    pattern: re.Pattern[str]
    behind: re.Pattern[str] | None = None
    first: bool = False
    named: bool = False


class Search:
    """The openers of one text, from the first on. Nothing is looked for twice."""

    def __init__(self, groups: Iterable[Group], reader: Reader) -> None:
        self._groups = tuple(groups)
        self._found: list[tuple[int, re.Match[str] | None] | None] = [None] * len(self._groups)
        self._reader = reader

    def next(self, position: int) -> re.Match[str] | None:
        """The first complete opener at or after a position."""
        first: re.Match[str] | None = None
        for number, group in enumerate(self._groups):
            known = self._found[number]
            if known is None or (known[1] is not None and known[1].start() < position) or known[0] > position:
                known = self._found[number] = (position, self._seek(group, position))
            match = known[1]
            if match is not None and (first is None or match.start() < first.start()):
                first = match
        return first

    def _seek(self, group: Group, position: int) -> re.Match[str] | None:
        match = self._seek_any(group, position)
        while group.named and match is not None and match["name"] not in self._reader.tools:
            match = None if group.first else self._seek_any(group, match.start() + 1)
        return match

    def _seek_any(self, group: Group, position: int) -> re.Match[str] | None:
        text = self._reader.shadow
        if group.first:
            return group.pattern.match(text) if position == 0 else None
        if group.behind is None:
            match = group.pattern.search(text, position)
        else:
            before = group.behind.search(text, max(position - _LONGEST_BEFORE, 0))
            while before is not None and before.end() < position:
                before = group.behind.search(text, before.start() + 1)
            match = group.pattern.match(text, before.end()) if before is not None else None
        self._reader.work += (match.start() if match is not None else len(text)) - position + 1
        return match


class Beginnings:
    """The openers of all families. `more` are openers that are only held back, and not searched for."""

    def __init__(self, openers: Iterable[Opener], more: Iterable[Opener] = ()) -> None:
        self.openers: tuple[Opener, ...] = tuple(dict.fromkeys(openers))
        self.kinds = by_kind(self.openers)
        self._groups = [group for kind, some in self.kinds.items() for group in _groups(kind, some)]
        self._firsts = [group for group in self._groups if group.first]
        self._always = [group for group in self._groups if not (group.first or group.sparks)]
        by_spark: dict[str, list[Group]] = defaultdict(list)
        for group in self._groups:
            for spark in group.sparks:
                by_spark[spark].append(group)
        self._by_spark = tuple(by_spark.items())
        held = tuple(dict.fromkeys((*self.openers, *more)))
        plain = [opener for opener in held if not has_name(opener)]
        self._cuts = [cut(kind, some) for kind, some in by_kind(plain).items()]
        self._named = [named_cut(opener) for opener in held if has_name(opener)]
        self._full_at = {
            first: re.compile(full_pattern(some))
            for first, some in _by_first(opener for opener in self.openers if not has_name(opener)).items()
        }
        self._cut_at = {first: re.compile(cut_pattern(some)) for first, some in _by_first(plain).items()}

    def within(self, text: str, names: Collection[str]) -> list[Group]:
        """The groups of which an opener may stand in a text: a cheap look."""
        found = self._always.copy()
        for spark, groups in self._by_spark:
            if spark[0] in text and spark in text:  # one character is looked for in no time
                found += (group for group in groups if group not in found)
        for group in self._firsts:
            match = group.pattern.match(text)
            if match is not None and (not group.named or match["name"] in names):
                found.append(group)
        if [group for group in found if group.named] and not [name for name in names if name in text]:
            found = [group for group in found if not group.named]
        return found

    def search(self, reader: Reader) -> Search:
        return Search(self.within(reader.shadow, reader.tools), reader)

    def may_begin(self, text: str) -> bool:
        """Whether an opener that begins with a literal may stand at the beginning of a text, however that goes on.

        Openers in which the name of a tool takes the place of all words are left aside.
        """
        first = text[:1]
        patterns = self._full_at.get(first), self._cut_at.get(first)
        return any(pattern is not None and pattern.match(text) is not None for pattern in patterns)

    def cut(self, text: str, start: int, names: Collection[str]) -> int | None:
        """The offset at or after `start` from where on the end of the text may begin an opener that is not complete."""
        found = [cut.place(text, start) for cut in self._cuts]
        if names:
            found += [cut.place(text, start, names) for cut in self._named]
        return min((place for place in found if place is not None), default=None)


def _by_first(openers: Iterable[Opener]) -> dict[str, list[Opener]]:
    """The openers that begin with a literal, by the first character of it."""
    by_first: dict[str, list[Opener]] = defaultdict(list)
    for opener in by_kind(openers).get("literal", ()):
        for first in {head[0] for head in heads(opener)}:
            by_first[first].append(opener)
    return by_first


def _sparks(openers: Iterable[Opener]) -> tuple[str, ...]:
    """What tells cheaply that one of some openers may be there: for each the rarest of what it must have."""
    return tuple(sorted(frozenset[str]().union(*map(_marks_of, openers))))


def _marks_of(opener: Opener) -> frozenset[str]:
    certain = [marks for piece in opener if (marks := _marks(piece))]
    return min(certain, key=lambda marks: sum(map(_weight, marks)), default=frozenset())


def _marks(piece: Piece) -> frozenset[str]:
    """The marks of which a text has one when a piece stands in it; empty where none is certain."""
    match piece:
        case str():
            return frozenset({min(piece, key=_weight)}) if piece else frozenset()
        case Either(options):
            marks = [_marks_of(option) for option in options]
            return frozenset[str]().union(*marks) if all(marks) else frozenset()
        case _:
            return frozenset()


def _weight(mark: str) -> int:
    """How common a character is in prose."""
    return 40 if mark.isalnum() or mark in " \n,." else 4 if mark in "-'\"():" else 1


def _groups(kind: Kind, openers: list[Opener]) -> Iterator[Group]:
    yield from _plain_groups(kind, [opener for opener in openers if not has_name(opener)])
    for opener in filter(has_name, openers):
        yield from (group._replace(named=True) for group in _plain_groups(kind, [opener]))


def _plain_groups(kind: Kind, openers: list[Opener]) -> Iterator[Group]:
    if not openers:
        return
    match kind:
        case "text":
            inside = full_pattern(opener[1:] for opener in openers)
            ends = "|".join(map(re.escape, THOUGHT_ENDS))
            yield Group((), re.compile(inside), first=True)
            yield Group(("</", "[/"), re.compile(inside), re.compile(rf"(?:{ends})(?={inside})"))
        case "line":
            inside = full_pattern(opener[1:] for opener in openers)
            first = "".join(sorted({re.escape(head[0]) for opener in openers for head in heads(opener)}))
            yield Group((), re.compile(inside), first=True)
            yield Group(_sparks(openers), re.compile(inside), re.compile(rf"\n(?=[ \t]{{0,8}}[{first}])(?={inside})"))
        case _:
            yield from _by_character(kind, openers)


def _by_character(kind: Kind, openers: list[Opener]) -> Iterator[Group]:
    groups: dict[str, list[Opener]] = defaultdict(list)
    for opener in openers:
        for expanded in expand(opener[1:] if kind == "word" else opener):
            head = expanded[0]
            assert isinstance(head, str)
            groups[head[0]].append(expanded)
    for character, group in groups.items():
        rests = dict.fromkeys(_without_first(opener) for opener in group)
        before = word_start(re.escape(character)) if kind == "word" else ""
        yield Group(_sparks(group), re.compile(f"{re.escape(character)}{before}{_filtered(rests)}"))


def _without_first(opener: Opener) -> Opener:
    head = opener[0]
    assert isinstance(head, str)
    return (head[1:], *opener[1:]) if len(head) > 1 else opener[1:]


_GAP = r"[\s|/]"
"""What may stand between the bracket of a tag and its name."""
_LEAD = 4


def _filtered(openers: Iterable[Opener]) -> str:
    """A regular expression (source) for any of the openers: a few letters decide whether it is worth while to try them."""
    tame: dict[str, list[Opener]] = {}
    wild: list[Opener] = []
    for opener in openers:
        leads = set(first_letters(opener, ""))
        if "" in leads:
            wild.append(opener)
        for lead in leads if "" not in leads else ():
            tame.setdefault(lead, []).append(opener)
    if len(tame) < _LEAD:
        return full_pattern(openers)
    options = [rf"(?={_GAP}{{0,8}}{_tree(sorted(tame))}){full_pattern(dict.fromkeys(itertools.chain(*tame.values())))}"]
    return "(?:" + "|".join([*options, *([full_pattern(wild)] if wild else [])]) + ")"


def first_letters(opener: Opener, lead: str = "") -> Iterator[str]:
    """The first few literal characters of an opener, gaps aside; empty where it begins with a class of characters."""
    if len(lead) >= _LEAD or not opener:
        yield lead[:_LEAD]
        return
    match opener[0]:
        case str(literal):
            stripped = literal if lead else literal.lstrip("|/ \n")
            yield from first_letters(opener[1:], lead + stripped)
        case Either(options):
            for option in options:
                yield from first_letters((*option, *opener[1:]), lead)
        case Run(chars, least=0) if not lead and re.fullmatch(r"(?:\\[stn]|[ |/])+", chars):
            yield from first_letters(opener[1:], lead)
        case _:
            yield lead


def _tree(leads: Sequence[str]) -> str:
    """A regular expression (source) for any of some literals, character by character."""
    if "" in leads:
        return ""
    branches: dict[str, list[str]] = defaultdict(list)
    for lead in leads:
        branches[lead[0]].append(lead[1:])
    return "(?:" + "|".join(re.escape(first) + _tree(rest) for first, rest in branches.items()) + ")"


def expand(opener: Opener) -> Iterator[Opener]:
    """The opener with a literal in front, however it began."""
    first = opener[0]
    if isinstance(first, Either):
        for option in first.options:
            yield from expand((*option, *opener[1:]))
    else:
        yield opener
