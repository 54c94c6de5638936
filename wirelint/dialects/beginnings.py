"""Where markup may begin in a text: the openers of all families, made into as few searches as can be.

Theory of operation. Openers come in four kinds, by what their first piece says: a literal (`<`, `[`, `✿`), the beginning of
a word, of a line, of the text. Those of literals and of words are grouped by the character that they begin with, those of
lines stand behind a line feed, so that each group is one search that skips to a character. A group is searched for only
where one of its *sparks* occurs, the first literals of its openers, which costs a substring search each; clean text has few
of them. Behind `<`, which code is full of, a look at the next few characters tells most tags from all openers together.
What begins the text is looked for there, and elsewhere only after reasoning.

Openers with the name of a declared tool in them are searched for with any name in its place, which is looked up then: so
nothing is made anew for the tools of a request.

What the end of a text that is not over may still begin (`Cut`) is told the same way: from where an opener begins that is
not complete, nothing stands up to the end that is in none of its kind.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from wirelint.dialects.openers import (
    NAME,
    NAME_CHARS,
    THOUGHT_ENDS,
    Either,
    LineStart,
    Name,
    Opener,
    Piece,
    Run,
    TextStart,
    WordStart,
    alphabet,
    cut_pattern,
    full_pattern,
    has_name,
)

if TYPE_CHECKING:
    from wirelint.dialects.reader import Reader

Kind: TypeAlias = Literal["literal", "word", "line", "text"]
_NO_TAG = r"(?<![\w\"'|/\]=?-])"
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


class _Cut(NamedTuple):
    """Openers of a kind that are not complete: where they may begin, and what tells them there, by the first character.

    Openers of lines and of texts begin at a place between characters: they have one pattern, under "".
    """

    kind: Kind
    places: re.Pattern[str]
    patterns: Mapping[str, re.Pattern[str]]

    def place(self, text: str, start: int) -> int | None:
        if not _may_stand(self.kind, text, start):
            return None
        patterns = self.patterns
        for place in self.places.finditer(text, start):
            at = place.start()
            pattern = patterns.get("") or patterns.get(text[at])
            if pattern is not None and pattern.match(text, at):
                return at
        return None


class _NamedCut(NamedTuple):
    """A cut opener with a name in it: cut off in the name, or behind it."""

    kind: Kind
    places: re.Pattern[str]
    inside: re.Pattern[str]
    behind: re.Pattern[str]

    def place(self, text: str, start: int, names: Collection[str]) -> int | None:
        if not _may_stand(self.kind, text, start):
            return None
        for place in self.places.finditer(text, start):
            if self._matches(text, place.start(), names):
                return place.start()
        return None

    def _matches(self, text: str, place: int, names: Collection[str]) -> bool:
        inside = self.inside.match(text, place)
        if inside is not None and any(name.startswith(inside["name"] or "") for name in names):
            return True
        behind = self.behind.match(text, place)
        return behind is not None and behind["name"] in names


def _may_stand(kind: Kind, text: str, start: int) -> bool:
    """Whether an opener of a kind may begin at or after an offset: a cheap look."""
    match kind:
        case "line":
            return start == 0 or "\n" in text
        case "text":
            return start == 0 or "</" in text or "[/" in text
        case _:
            return True


class Beginnings:
    """The openers of all families. `more` are openers that are only held back, and not searched for."""

    def __init__(self, openers: Iterable[Opener], more: Iterable[Opener] = ()) -> None:
        self.openers: tuple[Opener, ...] = tuple(dict.fromkeys(openers))
        self.kinds = _by_kind(self.openers)
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
        self._cuts = [_cut(kind, some) for kind, some in _by_kind(plain).items()]
        self._named = [_named_cut(opener) for opener in held if has_name(opener)]

    def within(self, text: str, names: Collection[str]) -> list[Group]:
        """The groups of which an opener may stand in a text: a cheap look."""
        found = self._always.copy()
        for spark, groups in self._by_spark:
            if spark in text:
                found += (group for group in groups if group not in found)
        for group in self._firsts:
            match = group.pattern.match(text)
            if match is not None and (not group.named or match["name"] in names):
                found.append(group)
        if any(group.named for group in found):
            named = any(name in text for name in names)
            found = [group for group in found if named or not group.named]
        return found

    def search(self, reader: Reader) -> Search:
        return Search(self.within(reader.shadow, reader.tools), reader)

    def cut(self, text: str, start: int, names: Collection[str]) -> int | None:
        """The offset at or after `start` from where on the end of the text may begin an opener that is not complete."""
        found = [cut.place(text, start) for cut in self._cuts]
        if names:
            found += [cut.place(text, start, names) for cut in self._named]
        return min((place for place in found if place is not None), default=None)


def _cut(kind: Kind, openers: list[Opener]) -> _Cut:
    places = re.compile(_places(kind, openers))
    if kind in ("line", "text"):
        return _Cut(kind, places, {"": re.compile(cut_pattern(openers))})
    by_first: dict[str, list[Opener]] = defaultdict(list)
    for opener in openers:
        for first in {head[0] for head in heads(opener)}:
            by_first[first].append(opener)
    return _Cut(kind, places, {first: re.compile(cut_pattern(some)) for first, some in by_first.items()})


def _named_cut(opener: Opener) -> _NamedCut:
    at = opener.index(NAME)
    before, after = opener[:at], opener[at + 1 :]
    head = full_pattern([before])
    inside = rf"(?:{cut_pattern([before])}|{head}(?P<name>{NAME_CHARS}{{0,128}})\Z)" if before else ""
    behind = rf"{head}(?P<name>{NAME_CHARS}{{1,128}}){cut_pattern([after], empty=True)}" if after else "(?!)(?P<name>)"
    return _NamedCut(
        _kind(opener), re.compile(_places(_kind(opener), [opener])), re.compile(inside), re.compile(behind)
    )


def _by_kind(openers: Iterable[Opener]) -> dict[Kind, list[Opener]]:
    kinds: dict[Kind, list[Opener]] = defaultdict(list)
    for opener in openers:
        kinds[_kind(opener)].append(opener)
    return kinds


def _kind(opener: Opener) -> Kind:
    match opener[0]:
        case WordStart():
            return "word"
        case LineStart():
            return "line"
        case TextStart():
            return "text"
        case _:
            return "literal"


def heads(opener: Opener) -> Iterator[str]:
    """The literals that an opener may begin with. Classes of characters before them may match nothing."""
    for piece in opener:
        match piece:
            case str():
                yield piece
                return
            case Either(options):
                for option in options:
                    yield from heads(option)
                if all(options):
                    return
            case Run(least=0) | LineStart() | WordStart() | TextStart():
                continue
            case Run() | Name():
                return


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
        for expanded in _expanded(opener[1:] if kind == "word" else opener):
            head = expanded[0]
            assert isinstance(head, str)
            groups[head[0]].append(expanded)
    for character, group in groups.items():
        rests = dict.fromkeys(_without_first(opener) for opener in group)
        before = rf"(?<![\w.=/-]{re.escape(character)})" if kind == "word" else ""
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
        leads = set(_leads(opener, ""))
        if "" in leads:
            wild.append(opener)
        for lead in leads if "" not in leads else ():
            tame.setdefault(lead, []).append(opener)
    if len(tame) < _LEAD:
        return full_pattern(openers)
    options = [rf"(?={_GAP}{{0,8}}{_tree(sorted(tame))}){full_pattern(dict.fromkeys(itertools.chain(*tame.values())))}"]
    return "(?:" + "|".join([*options, *([full_pattern(wild)] if wild else [])]) + ")"


def _leads(opener: Opener, lead: str) -> Iterator[str]:
    """The first few literal characters of an opener, gaps aside; empty where it begins with a class of characters."""
    if len(lead) >= _LEAD or not opener:
        yield lead[:_LEAD]
        return
    match opener[0]:
        case str(literal):
            stripped = literal if lead else literal.lstrip("|/ \n")
            yield from _leads(opener[1:], lead + stripped)
        case Either(options):
            for option in options:
                yield from _leads((*option, *opener[1:]), lead)
        case Run(chars, least=0) if not lead and re.fullmatch(r"(?:\\[stn]|[ |/])+", chars):
            yield from _leads(opener[1:], lead)
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


def _expanded(opener: Opener) -> Iterator[Opener]:
    """The opener with a literal in front, however it began."""
    first = opener[0]
    if isinstance(first, Either):
        for option in first.options:
            yield from _expanded((*option, *opener[1:]))
    else:
        yield opener


def _places(kind: Kind, openers: list[Opener]) -> str:
    """Where the end of a text may begin an opener of a kind."""
    chars = alphabet(openers)
    match kind:
        case "literal":
            marks = {head[0] for opener in openers for head in heads(opener)}
            places = [rf"[{''.join(sorted(map(re.escape, marks - {'>'})))}]"] if marks - {">"} else []
            # Nearly every `>` is the end of a tag, and nothing begins with it.
            places += [f"{_NO_TAG}>"] if ">" in marks else []
            return rf"(?:{'|'.join(places)})(?=[{chars}]*+\Z)"
        case "word":
            first = "".join(sorted({re.escape(head[0]) for opener in openers for head in heads(opener)}))
            return rf"(?<![\w.=/-])[{first}](?=[{chars}]*+\Z)"
        case "line":
            return rf"(?m:^)(?=[\s\S])(?=[{chars}]*+\Z)"
        case "text":
            return rf"{full_pattern([(TextStart(),)])}(?=[\s\S])(?=[{chars}]*+\Z)"
