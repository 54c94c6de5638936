"""A first look at a long text: patterns without regard to case read every character, and take a hundred times longer."""

from __future__ import annotations

_MARKS = ".,!?:;*()"
_SPACES = str.maketrans(dict.fromkeys(_MARKS, " "))


def mentions(text: str, *groups: tuple[str, ...]) -> bool:
    """Whether a text holds, whatever its case, one string of each group. The strings are in lower case."""
    lower = text.lower()
    return all(any(cue in lower for cue in cues) for cues in groups)


def has_word_of(text: str, words: frozenset[str]) -> bool:
    """Whether a text holds, whatever its case, one of some words in lower case, between white space and such marks."""
    said = set(text.lower().split())  # most words of a long text come again and again
    if not words.isdisjoint(said):
        return True
    return any(not words.isdisjoint(word.translate(_SPACES).split()) for word in said if not word.isalnum())
