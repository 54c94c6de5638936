"""A first look at a long text: patterns without regard to case read every character, and take a hundred times longer."""

from __future__ import annotations

from functools import lru_cache

_MARKS = ".,!?:;*()"
_SPACES = str.maketrans(dict.fromkeys(_MARKS, " "))


_RARE = "zqxj"
"""Letters that few words have, the rarest first."""


class Cues:
    """Strings of which one is looked for in a text, as they are written.

    Each stands behind its rarest sign, for a single character is found, or missed, at once; all those behind a sign that is
    not there are passed over.
    """

    __slots__ = ("_groups", "_last", "words")

    def __init__(self, *words: str) -> None:
        self.words = words
        groups: dict[str, list[str]] = {}
        for word in words:
            groups.setdefault(_rarest(word), []).append(word)
        self._groups = tuple((sign, tuple(behind)) for sign, behind in groups.items())
        self._last = ("", "" in words)

    def stand_in(self, text: str) -> bool:
        """Whether a text holds one of them.

        That of the last text is kept: a whole reply is looked at to be repaired, and again when it is judged.
        """
        last, found = self._last
        if last is not text:
            found = self._stand_in(text)
            self._last = text, found
        return found

    def _stand_in(self, text: str) -> bool:
        for sign, words in self._groups:
            if sign in text:
                for word in words:
                    if word in text:
                        return True
        return False


def _rarest(word: str) -> str:
    """The sign of a word that the fewest texts have; the empty string, which any text has, where all are common."""
    marks = [sign for sign in word if not sign.isalnum() and not sign.isspace()]
    capitals = [sign for sign in word if not ("a" <= sign <= "z") and not sign.isspace()]
    return next(iter((*marks, *capitals, *(sign for sign in _RARE if sign in word))), "")


def mentions(text: str, *groups: tuple[str, ...]) -> bool:
    """Whether a text holds, whatever its case, one string of each group. The strings are in lower case."""
    lower = text.lower()
    for cues in groups:
        for cue in cues:
            if cue in lower:
                break
        else:
            return False
    return True


def has_word_of(text: str, words: frozenset[str]) -> bool:
    """Whether a text holds, whatever its case, one of some words in lower case, between white space and such marks."""
    return not words.isdisjoint(_said(text))


def has_word_at_end(text: str, tail: str, words: frozenset[str]) -> bool:
    """The same of the end of a text, told by the whole of it, which has mostly been read before.

    `tail` begins where `text` may have been cut within a word.
    """
    if words.isdisjoint(_said(text)):
        cut = tail.split(None, 1)
        return bool(cut) and has_word_of(cut[0], words)
    return has_word_of(tail, words)


@lru_cache(maxsize=8)
def _said(text: str) -> frozenset[str]:
    """The words of a text, as they stand and between marks: several rules ask for them, each for words of its own."""
    said = set(text.lower().split())  # most words of a long text come again and again
    for word in [word for word in said if not word.isalnum()]:
        said.update(word.translate(_SPACES).split())
    return frozenset(said)
