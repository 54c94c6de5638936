"""Wording of one-line messages: excerpts, lists and counts."""

from __future__ import annotations

from collections.abc import Sequence

REDACTED = "[redacted:"
"""Beginning of the text that redaction puts in the place of a secret."""


def excerpt(text: str, limit: int = 60) -> str:
    """Fold white space and leave out the middle of a long text."""
    folded = " ".join(text.split())
    if len(folded) <= limit:
        return folded
    head = (limit - 1) * 2 // 3
    return f"{folded[:head]}…{folded[len(folded) - (limit - 1 - head) :]}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first `most` names, and how many more there are: `a, b and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(count: int, noun: str) -> str:
    """Return `a call` for one, `3 calls` for more."""
    return f"a {noun}" if count == 1 else f"{count} {noun}s"
