"""How a family declares what its markup begins with, and what follows from that.

An opener is a sequence of pieces over shadow text (see `shadow`). From the same pieces two regular expressions are
made: the full one finds openers, the cut one matches a proper prefix of an opener at the very end of a text, which is
what a stream must hold back. Pieces instead of plain regular expressions, because `re` cannot match partially.
Every piece is bounded in length, so an opener is too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Run:
    """`least` to `most` characters of a class; `chars` is written as between the brackets of a regular expression."""

    chars: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Either:
    """One of several alternatives."""

    options: tuple[Opener, ...]


@dataclass(frozen=True, slots=True)
class LineStart:
    """The beginning of a line; has no length."""


@dataclass(frozen=True, slots=True)
class WordStart:
    """The beginning of a word that is no part of a path, an assignment or a dotted name, and does not go on a sentence.

    What goes on a sentence stands behind a word in small letters, or a comma; only names of roles and channels lead to
    markup like that. Has no length.
    """


@dataclass(frozen=True, slots=True)
class TextStart:
    """The beginning of the text, or of what follows reasoning in it (`</think>`); has no length."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a declared tool. An opener may have one of them, not within alternatives."""


Piece: TypeAlias = str | Run | Either | LineStart | WordStart | TextStart | Name
Opener: TypeAlias = tuple[Piece, ...]

LINE_START = LineStart()
WORD_START = WordStart()
TEXT_START = TextStart()
NAME = Name()
_LONGEST_NAME = 128
NAME_CHARS = r"[\w.-]"
THOUGHT_ENDS = ("</think>", "</thinking>", "[/THINK]", "</seed:think>", "</mm:think>")
BLANKS = Run(r" \t", 0, 8)
SPACES = Run(r"\s", 0, 8)
_HEADS = ("assistant", "analysis", "commentary", "final")
_AFTER_THOUGHT = "|".join(rf"(?<={re.escape(end)})" for end in THOUGHT_ENDS)


def word_start(first: str = "") -> str:
    """A regular expression (source) for the beginning of a word. `first`: its first character has been matched already."""
    inside, goes_on = rf"(?<![\w.=/-]{first})", rf"(?<![a-z\u00df-\u00ff,] {first})"
    return inside + "(?:" + "|".join([goes_on, *(f"(?<={head} {first})" for head in _HEADS)]) + ")"


def goes_on(before: str) -> str:
    """A regular expression (source) for where no word begins anew since a sentence goes on, as `word_start` has it.

    In ASCII. The text may have begun before `before`, behind which there is more of it.
    """
    told = {head[-3:] for head in _HEADS} | {before + head[-size:] for head in _HEADS for size in (1, 2)}
    return "(?<=[a-z,] )" + "".join(f"(?<!{tail} )" for tail in sorted(told))


def either(*options: str | Opener) -> Either:
    return Either(tuple((option,) if isinstance(option, str) else option for option in options))


def maybe(*pieces: Piece) -> Either:
    return Either((pieces, ()))


def has_name(opener: Opener) -> bool:
    return NAME in opener


def begins_with(opener: Opener, character: str) -> bool:
    """Return True if an opener can have a character in front."""
    for at, piece in enumerate(opener):
        match piece:
            case str():
                return piece.startswith(character)
            case Either(options):
                return any(begins_with((*option, *opener[at + 1 :]), character) for option in options)
            case Name():
                return re.match(NAME_CHARS, character) is not None
            case Run(chars, least):
                if re.match(f"[{chars}]", character):
                    return True
                if least:
                    return False
            case LineStart() | WordStart() | TextStart():
                continue
            case _:
                assert_never(piece)
    return True


def length(opener: Opener) -> int:
    """The most characters that an opener can have."""
    return sum(_piece_length(piece) for piece in opener)


def alphabet(openers: Iterable[Opener]) -> str:
    """All that the openers are written in, as between the brackets of a regular expression."""
    return "".join(dict.fromkeys(chars for opener in openers for piece in opener for chars in _alphabet(piece)))


def full_pattern(openers: Iterable[Opener]) -> str:
    """A regular expression (source) that matches any of the openers."""
    return "(?:" + "|".join(_full(opener) for opener in openers) + ")"


def plain_pattern(openers: Iterable[Opener]) -> str:
    """The same without groups; of several openers each may have a name in it."""
    return full_pattern(openers).replace("(?P<name>", "(?:")


def cut_pattern(openers: Iterable[Opener], *, empty: bool = False) -> str:
    """A regular expression (source) that matches a proper prefix of an opener, up to the end of the text.

    `empty`: the prefix may be.
    """
    return ("" if empty else "(?=[\\s\\S])") + "(?:" + "|".join(_cut(opener) for opener in openers) + ")"


def _piece_length(piece: Piece) -> int:
    match piece:
        case str():
            return len(piece)
        case Run():
            return piece.most
        case Name():
            return _LONGEST_NAME
        case Either():
            return max(length(option) for option in piece.options)
        case LineStart() | WordStart() | TextStart():
            return 0
        case _:
            assert_never(piece)


def _alphabet(piece: Piece) -> Iterator[str]:
    match piece:
        case str():
            yield from (re.escape(character) for character in piece)
        case Run():
            yield piece.chars.removesuffix("-") + r"\-" if piece.chars.endswith("-") else piece.chars
        case Either():
            yield from (chars for option in piece.options for inner in option for chars in _alphabet(inner))
        case Name():
            yield NAME_CHARS[1:-2] + r"\-"
        case LineStart() | WordStart() | TextStart():
            return
        case _:
            assert_never(piece)


def _full(opener: Opener) -> str:
    return "".join(_full_piece(piece) for piece in opener)


def _full_piece(piece: Piece) -> str:
    match piece:
        case str():
            return re.escape(piece)
        case Run():
            return f"[{piece.chars}]{{{piece.least},{piece.most}}}"
        case Either():
            return "(?:" + "|".join(_full(option) for option in piece.options) + ")"
        case Name():
            return rf"(?P<name>{NAME_CHARS}{{1,{_LONGEST_NAME}}})"
        case LineStart():
            return "(?m:^)"
        case WordStart():
            return word_start()
        case TextStart():
            return rf"(?:\A|{_AFTER_THOUGHT})"
        case _:
            assert_never(piece)


def _cut(opener: Opener) -> str:
    """Matches a prefix of the opener that is followed by the end of the text; never the whole opener."""
    pattern = "(?!)"
    for piece in reversed(opener):
        pattern = f"(?:{_cut_piece(piece)}|{_full_piece(piece)}{pattern})"
    return pattern


def _cut_piece(piece: Piece) -> str:
    match piece:
        case str():
            pattern = ""
            for character in reversed(piece[:-1]):
                pattern = f"(?:{re.escape(character)}{pattern})?"
            return pattern + r"\Z"
        case Run():
            # A run at the end of the text may always go on, or be followed by the next piece.
            return rf"[{piece.chars}]{{0,{piece.most}}}\Z"
        case Either():
            return "(?:" + "|".join(_cut(option) for option in piece.options) + ")"
        case LineStart() | WordStart() | TextStart() | Name():
            return "(?!)"
        case _:
            assert_never(piece)
