r"""Openers: the starts of markup, found in whole text and in text that is still arriving.

Theory of operation. A dialect declares its openers in a subset of regular expressions:

    <\s{0,3}tool_call\s{0,3}>              literals, classes, `{m,n}`, `?`, groups `(?:a|b)`
    \bfunctions[. ][\w.-]{1,128}:          `\b`: the start of a word, as `word_start` defines it
    \Ecommentary[ \t]{0,2}to=              `\E`: right after the end of a sentence or of JSON, without a blank
    ^[ \t]{0,8}Action:                     `^`: the start of a line
    \A\s{0,8}\[\s{0,8}\{                   `\A`: the start of the text, or of the text after reasoning (`</think>`)
    <\s{0,2}{tool}\s{0,2}>                 `{tool}`: the name of a declared tool

`parse` reads an opener into pieces, and a pattern comes from the pieces. `re` finds openers by it, and `regex`, which
matches partially, finds the beginning of one at the very end of a text, which a stream must hold back (`is_cut`). Every
piece is bounded in length, so an opener is too. Openers are matched against shadow text (see `views`).

`OpenerIndex` searches for the openers of all families at once. An opener begins with a literal or with one of four anchors,
which is its kind. Openers at a literal, a word or the end of a sentence are grouped by first character, line openers
follow a line feed, so each group is one search that skips to a character. A group is searched for only if one of its cues
occurs, the literals of its openers that are rarest in prose. After `<`, which is frequent in code, the next letters rule
out most tags before all openers are tried. A tool's name is matched as any name, which is then looked up, so that nothing
is compiled for the tools of a request.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, assert_never

import regex

from wirelint.jsonvalues import common_length
from wirelint.lexicon import lazy_pattern

if TYPE_CHECKING:
    from wirelint.dialects.reader import Reader


@dataclass(frozen=True, slots=True)
class Run:
    """From `least` to `most` characters of a class. `chars` is the inside of the brackets: `\\w.:/-`."""

    chars: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Either:
    options: tuple[Opener, ...]


class Anchor(Enum):
    """A place without a length. The kind of an opener is the anchor that it begins with; None for a literal."""

    LINE = auto()
    WORD = auto()
    SENTENCE = auto()
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a declared tool. At most one in an opener, and not within alternatives."""


Piece: TypeAlias = str | Run | Either | Anchor | Name
Opener: TypeAlias = tuple[Piece, ...]

NAME = Name()
NAME_CHARS = r"[\w.-]"
THOUGHT_ENDS = ("</think>", "</thinking>", "[/THINK]", "</seed:think>", "</mm:think>")
_ENDING = {">": r"[\w\"'|/\]=?-]", "`": r"[a-zA-Z\d_]"}
"""Characters after which a sign ends something: nearly every `>` ends a tag, and a backtick after a letter ends a name."""
_ANCHORS: dict[str, Piece] = {
    "^": Anchor.LINE,
    r"\b": Anchor.WORD,
    r"\E": Anchor.SENTENCE,
    r"\A": Anchor.TEXT,
    "{tool}": NAME,
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST_NAME = 128
_LONGEST_BEFORE = 16
"""Characters before an opener that decide whether it is one."""
_SIGN = re.compile(r"[^\w\s.,]")
_HEADS = ("assistant", "analysis", "commentary", "final")


# -- from source to pieces ---------------------------------------------------------------------------------------------

_ATOM = re.compile(
    r"(?P<anchor>\^|\\b|\\E|\\A|\{tool\})|(?P<group>\(\?:)|(?P<end>[|)])"
    r"|(?P<class>\[(?:\\.|[^\]\\])+\]|\\[swd])|\\(?P<escaped>.)|(?P<char>[^\\\[\](){}?*+.$])",
    re.DOTALL,
)
_QUANTIFIER = re.compile(r"\{(\d+),(\d+)\}|(\?)")


def parse(source: str) -> Opener:
    """Read an opener. Raises ValueError if it is outside of the supported syntax."""
    (opener,), end = _parse_options(source, 0)
    if end != len(source):
        raise ValueError(f"opener {source!r}: unexpected {source[end:]!r}")
    return opener


def _parse_options(source: str, at: int) -> tuple[list[Opener], int]:
    options: list[list[Piece]] = [[]]
    while at < len(source) and source[at] != ")":
        atom = _ATOM.match(source, at)
        if atom is None:
            raise ValueError(f"opener {source!r}: unexpected {source[at:]!r}")
        at = atom.end()
        inner: list[Opener] = []
        if atom["end"]:
            options.append([])
            continue
        if atom["group"]:
            inner, at = _parse_options(source, at)
            at += 1
        quantifier = _QUANTIFIER.match(source, at)
        at = quantifier.end() if quantifier is not None else at
        for piece in _pieces(atom, inner, quantifier):
            last = options[-1][-1] if options[-1] else None
            if isinstance(piece, str) and isinstance(last, str):
                options[-1][-1] = last + piece
            else:
                options[-1].append(piece)
    return [tuple(option) for option in options], at


def _pieces(atom: re.Match[str], inner: list[Opener], quantifier: re.Match[str] | None) -> Opener:
    least, most = (int(quantifier[1]), int(quantifier[2])) if quantifier is not None and quantifier[1] else (0, 1)
    if atom["anchor"]:
        return (_ANCHORS[atom["anchor"]],)
    if atom["class"]:
        chars = atom["class"][1:-1] if atom["class"][0] == "[" else atom["class"]
        return (Run(chars, least, most) if quantifier is not None else Run(chars, 1, 1),)
    if atom["group"]:
        return (Either((*inner, ()) if quantifier is not None else tuple(inner)),)
    char = _CONTROLS.get(atom["escaped"], atom["escaped"]) if atom["escaped"] else atom["char"]
    if quantifier is None:
        return (char,)
    return (Either(((char,), ())) if quantifier[3] else Run(re.escape(char), least, most),)


# -- from pieces to patterns -------------------------------------------------------------------------------------------


def word_start(first: str = "") -> str:
    """Return the pattern source of the start of a word. `first`: its first character, if that is matched already.

    Not inside paths, assignments and dotted names, nor at the start of an item of a list (`- `, `1. `), nor in
    mid-sentence, that is after a word in small letters or a comma. Names of roles and channels (`assistant to=…`) may
    precede it.
    """
    inside, goes_on = rf"(?<![\w.=/-]{first})", rf"(?<![a-z\u00df-\u00ff,*-] {first})(?<!\d\. {first})"
    return inside + "(?:" + "|".join([goes_on, *(f"(?<={head} {first})" for head in _HEADS)]) + ")"


def sentence_end(first: str = "") -> str:
    """Return the pattern source of the place right after the end of a sentence or of JSON. `first` as in `word_start`."""
    return rf"(?<=[.!?…。！？\"'”’」)}}]{first})"


def no_end(first: str, *, behind: bool = False) -> str:
    """Return a look-behind that fails where a sign ends something, for the place before it. `behind`: for that after it."""
    return rf"(?<!{_ENDING[first]}{first * behind})" if first in _ENDING else ""


def full_pattern(openers: Iterable[Opener]) -> str:
    """Return the pattern source that matches any of the openers."""
    return "(?:" + "|".join(_full(opener) for opener in openers) + ")"


def any_of(words: Iterable[str]) -> str:
    """Return the pattern source of any of some words, the longest first. Their common beginnings are read once."""
    rests: dict[str, list[str]] = defaultdict(list)
    for word in words:
        rests[word[:1]].append(word[1:])
    options = []
    for first, rest in sorted(rests.items()):
        # At once: a name of a thousand letters is no thousand calls deep.
        shared = common_length(min(rest), max(rest))
        if first:
            options.append(re.escape(first + rest[0][:shared]) + any_of(word[shared:] for word in rest))
    if "" in rests and options:
        options.append("")
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})" if options else ""


class _Forms(NamedTuple):
    full: str
    longest: int
    alphabet: tuple[str, ...] = ()


@cache
def _forms(piece: Piece) -> _Forms:
    match piece:
        case str():
            return _Forms(re.escape(piece), len(piece), tuple(map(re.escape, piece)))
        case Run(chars, least, most):
            inside = chars.removesuffix("-") + r"\-" if chars.endswith("-") else chars
            return _Forms(f"[{chars}]{{{least},{most}}}", most, (inside,))
        case Either(options):
            alphabet = tuple(chars for option in options for inner in option for chars in _forms(inner).alphabet)
            return _Forms(f"(?:{'|'.join(map(_full, options))})", max(map(length, options)), alphabet)
        case Name():
            full = rf"(?P<name>{NAME_CHARS}{{1,{_LONGEST_NAME}}})"
            return _Forms(full, _LONGEST_NAME, (NAME_CHARS[1:-2] + r"\-",))
        case Anchor():
            after_thought = "|".join(rf"(?<={re.escape(end)})" for end in THOUGHT_ENDS)
            starts = {Anchor.LINE: "(?m:^)", Anchor.WORD: word_start(), Anchor.SENTENCE: sentence_end()}
            return _Forms(starts.get(piece, rf"(?:\A|{after_thought})"), 0)
        case _:
            assert_never(piece)


def _full(opener: Opener) -> str:
    return "".join(_forms(piece).full for piece in opener)


# -- properties of openers ---------------------------------------------------------------------------------------------


def length(opener: Opener) -> int:
    """Return the largest number of characters that an opener can have."""
    return sum(_forms(piece).longest for piece in opener)


def heads(opener: Opener) -> Iterator[str]:
    """Yield the first literals of an opener; every match contains one. Optional classes before them are skipped."""
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
            case Run(least=0) | Anchor():
                continue
            case Run() | Name():
                return


def expand(opener: Opener) -> Iterator[Opener]:
    """Yield the variants of an opener that start with a literal instead of alternatives."""
    first = opener[0]
    if isinstance(first, Either):
        for option in first.options:
            yield from expand((*option, *opener[1:]))
    else:
        yield opener


_LEAD = 4
_GAP = r"[\s|/]"
_LONGEST_GAP = 12
"""Characters between the bracket of a tag and its name."""


def first_letters(opener: Opener, lead: str = "", *, barred: bool = False) -> Iterator[str]:
    """Yield the first four literal characters of an opener without gaps; empty if it begins with a class.

    `barred`: bars that must be there are a gap too.
    """
    if len(lead) >= _LEAD or not opener:
        yield lead[:_LEAD]
        return
    match opener[0]:
        case str(literal):
            yield from first_letters(opener[1:], lead + (literal if lead else literal.lstrip("|/ \n")), barred=barred)
        case Either(options):
            for option in options:
                yield from first_letters((*option, *opener[1:]), lead, barred=barred)
        case Run(chars, least) if not (lead or (least and not barred)) and re.fullmatch(r"(?:\\[stn |]|[ |/])+", chars):
            yield from first_letters(opener[1:], lead, barred=barred)
        case _:
            yield lead


def _by_kind(openers: Iterable[Opener]) -> dict[Anchor | None, list[Opener]]:
    kinds: dict[Anchor | None, list[Opener]] = defaultdict(list)
    for opener in openers:
        kinds[opener[0] if isinstance(opener[0], Anchor) else None].append(opener)
    return kinds


def _first_characters(openers: Iterable[Opener]) -> set[str]:
    return {head[0] for opener in openers for head in heads(opener)}


# -- complete openers --------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Openers with one search pattern. A text contains one of the `cues` (if any) where it contains one of the openers.

    `before` matches the text before the opener, with the opener in a look-ahead. `initial`: the openers count only at the
    start of the text. `named`: the opener contains the name of a tool.
    """

    cues: tuple[str, ...]
    pattern: re.Pattern[str]
    before: re.Pattern[str] | None = None
    initial: bool = False
    named: bool = False


class Search:
    """The search for openers in one text, from left to right. No part is searched twice for a group."""

    def __init__(self, groups: Iterable[_Group], reader: Reader) -> None:
        self._groups = tuple(groups)
        self._found: dict[int, re.Match[str] | None] = {}
        self._reader = reader

    def next(self, position: int) -> re.Match[str] | None:
        """Return the first complete opener at or after a position, which never moves back."""
        first: re.Match[str] | None = None
        for number, group in enumerate(self._groups):
            match = self._found.get(number)
            if number not in self._found or (match is not None and match.start() < position):
                match = self._find(group, position)
                while group.named and match is not None and match["name"] not in self._reader.tools:
                    match = self._find(group, match.start() + 1)
                self._found[number] = match
            if match is not None and (first is None or match.start() < first.start()):
                first = match
        return first

    def _find(self, group: _Group, position: int) -> re.Match[str] | None:
        text = self._reader.shadow
        if group.initial:
            return group.pattern.match(text) if position == 0 else None
        if group.before is None:
            return group.pattern.search(text, position)
        before = group.before.search(text, max(position - _LONGEST_BEFORE, 0))
        while before is not None and before.end() < position:
            before = group.before.search(text, before.start() + 1)
        return group.pattern.match(text, before.end()) if before is not None else None


class OpenerIndex:
    """The openers of all families. `more` are openers that are held back at the end of a text, but not searched for."""

    def __init__(self, openers: Iterable[Opener], more: Iterable[Opener] = ()) -> None:
        self.openers: tuple[Opener, ...] = tuple(dict.fromkeys(openers))
        self.kinds = _by_kind(self.openers)
        groups = [(kind, group) for kind, some in _apart(self.openers) for group in _groups(kind, some)]
        self._initial = [group for _, group in groups if group.initial]
        self._searched = [group for _, group in groups if not group.initial]
        self._cues = sorted({cue for group in self._searched for cue in group.cues})
        self._literal = [group.pattern for kind, group in groups if kind is None and not group.named]
        held = dict.fromkeys((*self.openers, *more))
        self._cuts = [_Cut(some) for _, some in _apart(held)]
        # A loop in deltas of a character has few ends, each of which takes 60 microseconds.
        self._cut_at = lru_cache(maxsize=256)(self._find_cut)
        # Four rules and repairs look for openers in the text of each reply.
        self._groups_in = lru_cache(maxsize=32)(self._find_groups)

    def heads(self, kind: Anchor | None) -> set[str]:
        return {head for opener in self.kinds.get(kind, ()) for head in heads(opener)}

    def groups_in(self, text: str, names: Collection[str]) -> list[_Group]:
        """Return the groups that may have an opener in a text, judged by their cues."""
        return self._groups_in(text, frozenset(names))

    def _find_groups(self, text: str, names: frozenset[str]) -> list[_Group]:
        present = {cue for cue in self._cues if cue in text}
        found = [group for group in self._searched if not present.isdisjoint(group.cues)]
        for group in self._initial:
            match = group.pattern.match(text)
            if match is not None and (not group.named or match["name"] in names):
                found.append(group)
        if any(group.named for group in found) and not any(name in text for name in names):
            found = [group for group in found if not group.named]
        return found

    def search(self, reader: Reader) -> Search:
        return Search(self.groups_in(reader.shadow, reader.tools), reader)

    def may_begin(self, text: str) -> bool:
        """Return True if a text may begin with an opener that begins with a literal, whole or cut off.

        Openers with a tool's name are not considered.
        """
        if any(pattern.match(text) for pattern in self._literal):
            return True
        cuts = (cut.patterns.get(text[:1]) for cut in self._cuts if cut.kind is None and cut.named is None)
        return any(pattern is not None and is_cut(pattern, text) for pattern in cuts)

    def cut(self, text: str, start: int, names: Collection[str]) -> int | None:
        """Return the first offset from `start` on where the end of the text may begin an opener that is not complete."""
        before = max(start - _LONGEST_BEFORE, 0)
        at = self._cut_at(text[before:], start - before, frozenset(names))
        return at + before if at is not None else None

    def _find_cut(self, text: str, start: int, names: frozenset[str]) -> int | None:
        found = [cut.place(text, start, names) for cut in self._cuts]
        return min((place for place in found if place is not None), default=None)


def _apart(openers: Iterable[Opener]) -> Iterator[tuple[Anchor | None, list[Opener]]]:
    """Yield the openers of each kind together, those with the name of a tool one by one."""
    for kind, some in _by_kind(openers).items():
        if plain := [opener for opener in some if NAME not in opener]:
            yield kind, plain
        yield from ((kind, [opener]) for opener in some if NAME in opener)


def _groups(kind: Anchor | None, openers: list[Opener]) -> Iterator[_Group]:
    named = NAME in openers[0]
    if kind in (Anchor.TEXT, Anchor.LINE):
        inside = full_pattern(opener[1:] for opener in openers)
        yield _Group((), lazy_pattern(inside), initial=True, named=named)
        cues: tuple[str, ...] = ("</", "[/")
        before = "|".join(map(re.escape, THOUGHT_ENDS))
        if kind is Anchor.LINE:
            first = "".join(sorted(map(re.escape, _first_characters(openers))))
            cues, before = _cues(openers), rf"\n(?=[ \t]{{0,8}}[{first}])"
        yield _Group(cues, lazy_pattern(inside), lazy_pattern(rf"(?:{before})(?={inside})"), named=named)
        return
    by_first: dict[str, list[Opener]] = defaultdict(list)
    for opener in openers:
        for expanded in expand(opener if kind is None else opener[1:]):
            by_first[str(expanded[0])[0]].append(expanded)
    anchors = {Anchor.WORD: word_start, Anchor.SENTENCE: sentence_end}
    for character, group in by_first.items():
        rests = dict.fromkeys(((str(one[0])[1:],) if len(str(one[0])) > 1 else ()) + one[1:] for one in group)
        anchor = anchors[kind](re.escape(character)) if kind in anchors else no_end(character, behind=True)
        yield _Group(_cues(group), lazy_pattern(f"{re.escape(character)}{anchor}{_filtered(rests)}"), named=named)


def _cues(openers: Iterable[Opener]) -> tuple[str, ...]:
    return tuple(sorted(frozenset[str]().union(*map(_cues_of, openers))))


def _cues_of(opener: Opener) -> frozenset[str]:
    """Return literals of which every match of an opener contains one: those of the piece that is rarest in prose."""
    certain: list[frozenset[str]] = []
    for piece in opener:
        if isinstance(piece, str):
            signs = _SIGN.findall(piece)  # one character is found fastest
            certain.append(frozenset({min(signs, key=lambda sign: sign in "-'\"():") if signs else piece}))
        elif isinstance(piece, Either) and all(options := [_cues_of(option) for option in piece.options]):
            certain.append(frozenset[str]().union(*options))
    return max(certain, key=lambda cues: min(map(_rarity, cues)), default=frozenset())


def _rarity(cue: str) -> tuple[int, int]:
    common = cue in "-'\"():"
    return (2 - common if _SIGN.fullmatch(cue) else 0), len(cue)


def _filtered(openers: Iterable[Opener]) -> str:
    """Return the pattern source of any of the openers, after a look-ahead for their first letters.

    Without the look-ahead each `<` of a page of HTML costs a try of some 70 openers: a megabyte of `<` took 5 s.
    """
    tame: dict[str, list[Opener]] = {}
    wild: list[Opener] = []
    for opener in openers:
        leads = set(first_letters(opener, barred=True))
        if "" in leads:
            wild.append(opener)
        for lead in leads if "" not in leads else ():
            tame.setdefault(lead, []).append(opener)
    if len(tame) < _LEAD:
        return full_pattern(openers)
    led = full_pattern(dict.fromkeys(itertools.chain(*tame.values())))
    tail = f"|{full_pattern(wild)}" if wild else ""
    return rf"(?:(?={_GAP}{{0,{_LONGEST_GAP}}}{any_of(tame)}){led}{tail})"


# -- openers that the end of the text cuts off -------------------------------------------------------------------------


class _Cut:
    """Search for an opener of one kind that the end of a text cuts off, such as `<tool_c` or `\\n Acti`.

    `places` matches where an opener of the kind may start. `patterns` are the openers by first character; line and text
    openers, which start between two characters, are all under "". `named` matches the part before the name of a tool, and
    any name; None for openers without a name.
    """

    def __init__(self, openers: list[Opener]) -> None:
        (self.kind,) = _by_kind(openers)
        firsts = _first_characters(openers)
        by_first: dict[str, list[Opener]] = {"": openers}
        if self.kind not in (Anchor.LINE, Anchor.TEXT):
            by_first = {first: [one for one in openers if first in _first_characters([one])] for first in firsts}
        self.patterns = {first: full_pattern(some) for first, some in by_first.items()}
        chars = "".join(dict.fromkeys(chars for one in openers for piece in one for chars in _forms(piece).alphabet))
        self._places = lazy_pattern(rf"{_places(self.kind, firsts)}(?=[{chars}]*+\Z)")
        self._reach = max(map(length, openers))
        self.named: re.Pattern[str] | None = None
        if NAME in openers[0]:
            self._head = full_pattern([openers[0][: openers[0].index(NAME)]])
            self.named = lazy_pattern(rf"{self._head}(?P<name>{NAME_CHARS}{{0,{_LONGEST_NAME}}})")

    def place(self, text: str, start: int, names: Collection[str]) -> int | None:
        """Return the first offset from `start` on where an opener may begin that the end of the text cuts off."""
        if self.named is not None and not names:
            return None
        for place in self._places.finditer(text, max(start, len(text) - self._reach)):
            pattern = self.patterns.get("") or self.patterns[text[place.start()]]
            if is_cut(pattern, text, place.start()) and self._may_be_named(text, place.start(), names):
                return place.start()
        return None

    def _may_be_named(self, text: str, at: int, names: Collection[str]) -> bool:
        """Return True if an opener that is cut off lacks its name, or may have one of the names."""
        found = self.named.match(text, at) if self.named is not None else None
        if found is None or is_cut(self._head, text, at):
            return True
        ended, name = found.end() == len(text), found["name"]
        return any(one.startswith(name) if ended else one == name for one in names)


def _places(kind: Anchor | None, firsts: Collection[str]) -> str:
    """Return an expression for the places where an opener of a kind, with one of these first characters, may start."""
    inside = "".join(sorted(map(re.escape, firsts)))
    match kind:
        case Anchor.WORD:
            return rf"[{inside}]{word_start(f'[{inside}]')}"
        case Anchor.SENTENCE:
            return rf"[{inside}]{sentence_end(f'[{inside}]')}"
        case Anchor.LINE:
            return rf"(?m:^)(?=[\s\S])(?=[ \t]{{0,8}}(?:{f'[{inside}]' if inside else NAME_CHARS}|\Z))"
        case Anchor.TEXT:
            return rf"{full_pattern([(Anchor.TEXT,)])}(?=[\s\S])"
        case None:
            plain = "".join(sorted(re.escape(first) for first in firsts if first not in _ENDING))
            options = [*([f"[{plain}]"] if plain else []), *(no_end(one) + one for one in _ENDING if one in firsts)]
            return f"(?:{'|'.join(options)})"


# -- any pattern that the end of the text cuts off ---------------------------------------------------------------------

_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE
"""The flags that both libraries have, with equal values."""
_LAZY = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|([*+?}])\?|.", re.DOTALL)


# Unlike `re`, the `regex` library can match partially. Negative assertions at the end of a pattern are not considered,
# since they need further text.


def may_go_on(pattern: re.Pattern[str], text: str, position: int) -> bool:
    """Return True if the text from `position` to its end matches the pattern or a prefix of a match."""
    return _partial(pattern.pattern, pattern.flags).fullmatch(text, position, partial=True) is not None


def may_match(pattern: re.Pattern[str], text: str) -> bool:
    """Return True if a text begins with a match of the pattern, or is a prefix of one."""
    return pattern.match(text) is not None or may_go_on(pattern, text, 0)


def is_cut(pattern: re.Pattern[str] | str, text: str, position: int = 0) -> bool:
    """Return True if the text from `position` to its end, which is not empty, is a proper prefix of a match."""
    if position >= len(text):
        return False
    source, flags = (pattern, 0) if isinstance(pattern, str) else (pattern.pattern, pattern.flags)
    return _partial(source, flags, "(?!)").fullmatch(text, position, partial=True) is not None


def cut_at(pattern: re.Pattern[str], text: str, start: int, *, whole: bool = False) -> int | None:
    """Return the first offset from `start` on at which the end of the text is a proper prefix of a match.

    `whole`: or a match.
    """
    found = _partial(pattern.pattern, pattern.flags, r"\Z" if whole else "(?!)").search(text, start, partial=True)
    return found.start() if found is not None and found.start() < len(text) else None


@lru_cache(maxsize=1024)
def _partial(source: str, flags: int, after: str = "") -> regex.Pattern[str]:
    # Greedy quantifiers in place of lazy ones: they match equal texts, and `regex` errs about partial matches of lazy ones.
    greedy = _LAZY.sub(lambda token: token[1] or token[0], source)
    return regex.compile(f"(?:{greedy}){after}", int(flags & _FLAGS) | regex.VERSION0)
