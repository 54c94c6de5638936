"""A first look at a long text: patterns without regard to case read every character, and take a hundred times longer."""

from __future__ import annotations

from functools import lru_cache

_MARKS = ".,!?:;*()"
_SPACES = str.maketrans(dict.fromkeys(_MARKS, " "))


def mentions(text: str, *groups: tuple[str, ...]) -> bool:
    """Whether a text holds, whatever its case, one string of each group. The strings are in lower case."""
    lower = text.lower()
    return all(any(cue in lower for cue in cues) for cues in groups)


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
