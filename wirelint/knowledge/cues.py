"""A first look at a long text: patterns without regard to case read every character, and take a hundred times longer."""

from __future__ import annotations


def mentions(text: str, *groups: tuple[str, ...]) -> bool:
    """Whether a text holds, whatever its case, one string of each group. The strings are in lower case."""
    lower = text.lower()
    return all(any(cue in lower for cue in cues) for cues in groups)
