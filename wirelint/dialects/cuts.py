"""What the end of a text that is not over may begin: an opener that is not complete.

Where an opener of a kind may begin is told by its first piece: at a literal character, at the beginning of a word, of a
line, of the text. At each such place, and only if nothing up to the end of the text is in no opener of the kind, the
openers that begin so are tried.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from wirelint.dialects.openers import (
    NAME,
    NAME_CHARS,
    Either,
    LineStart,
    Name,
    Opener,
    Run,
    TextStart,
    WordStart,
    alphabet,
    cut_pattern,
    full_pattern,
    word_start,
)

_MOST_BRACKETS = 16
"""Characters that begin openers which one opener can have in it: 10, with those that have most."""
Kind: TypeAlias = Literal["literal", "word", "line", "text"]
NO_TAG = r"(?<![\w\"'|/\]=?-])"
"""What does not stand before a `>` with which something begins: nearly every one is the end of a tag."""


class Cut(NamedTuple):
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
        for at in _near(self.kind, self.places, text, start):
            pattern = patterns.get("") or patterns.get(text[at])
            if pattern is not None and pattern.match(text, at):
                return at
        return None


class NamedCut(NamedTuple):
    """A cut opener with a name in it: cut off in the name, or behind it."""

    kind: Kind
    places: re.Pattern[str]
    inside: re.Pattern[str]
    behind: re.Pattern[str]

    def place(self, text: str, start: int, names: Collection[str]) -> int | None:
        if not _may_stand(self.kind, text, start):
            return None
        for at in _near(self.kind, self.places, text, start):
            if self._matches(text, at, names):
                return at
        return None

    def _matches(self, text: str, place: int, names: Collection[str]) -> bool:
        inside = self.inside.match(text, place)
        if inside is not None and any(name.startswith(inside["name"] or "") for name in names):
            return True
        behind = self.behind.match(text, place)
        return behind is not None and behind["name"] in names


def _near(kind: Kind, places: re.Pattern[str], text: str, start: int) -> Sequence[int]:
    """The places at which an opener may begin; of many brackets in a row only as many as one opener can have."""
    found = [place.start() for place in places.finditer(text, start)]
    return found[-_MOST_BRACKETS:] if kind == "literal" else found


def _may_stand(kind: Kind, text: str, start: int) -> bool:
    """Whether an opener of a kind may begin at or after an offset: a cheap look."""
    match kind:
        case "line":
            return start == 0 or "\n" in text
        case "text":
            return start == 0 or "</" in text or "[/" in text
        case _:
            return True


def cut(kind: Kind, openers: list[Opener]) -> Cut:
    places = re.compile(_places(kind, openers))
    if kind in ("line", "text"):
        return Cut(kind, places, {"": re.compile(cut_pattern(openers))})
    by_first: dict[str, list[Opener]] = defaultdict(list)
    for opener in openers:
        for first in {head[0] for head in heads(opener)}:
            by_first[first].append(opener)
    return Cut(kind, places, {first: re.compile(cut_pattern(some)) for first, some in by_first.items()})


def named_cut(opener: Opener) -> NamedCut:
    at = opener.index(NAME)
    before, after = opener[:at], opener[at + 1 :]
    head = full_pattern([before])
    inside = rf"(?:{cut_pattern([before])}|{head}(?P<name>{NAME_CHARS}{{0,128}})\Z)" if before else ""
    behind = rf"{head}(?P<name>{NAME_CHARS}{{1,128}}){cut_pattern([after], empty=True)}" if after else "(?!)(?P<name>)"
    return NamedCut(
        kind_of(opener), re.compile(_places(kind_of(opener), [opener])), re.compile(inside), re.compile(behind)
    )


def by_kind(openers: Iterable[Opener]) -> dict[Kind, list[Opener]]:
    kinds: dict[Kind, list[Opener]] = defaultdict(list)
    for opener in openers:
        kinds[kind_of(opener)].append(opener)
    return kinds


def kind_of(opener: Opener) -> Kind:
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


def _places(kind: Kind, openers: list[Opener]) -> str:
    """Where the end of a text may begin an opener of a kind."""
    chars = alphabet(openers)
    match kind:
        case "literal":
            marks = {head[0] for opener in openers for head in heads(opener)}
            places = [rf"[{''.join(sorted(map(re.escape, marks - {'>'})))}]"] if marks - {">"} else []
            places += [f"{NO_TAG}>"] if ">" in marks else []
            return rf"(?:{'|'.join(places)})(?=[{chars}]*+\Z)"
        case "word":
            first = "".join(sorted({re.escape(head[0]) for opener in openers for head in heads(opener)}))
            return rf"{word_start()}[{first}](?=[{chars}]*+\Z)"
        case "line":
            return rf"(?m:^)(?=[\s\S])(?=[{chars}]*+\Z)"
        case "text":
            return rf"{full_pattern([(TextStart(),)])}(?=[\s\S])(?=[{chars}]*+\Z)"
