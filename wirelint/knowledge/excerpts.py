"""Evidence for one-line messages."""

from __future__ import annotations


def excerpt(text: str, limit: int = 60) -> str:
    """White space folded, the middle left out when it is long."""
    folded = " ".join(text.split())
    if len(folded) <= limit:
        return folded
    head = (limit - 1) * 2 // 3
    return f"{folded[:head]}…{folded[len(folded) - (limit - 1 - head) :]}"


def printable(text: str, keep: str = "") -> str:
    """Text of the wire as a terminal may get it: every character that it would obey is shown escaped, `keep` excepted."""
    if text.isprintable():
        return text
    return "".join(char if char in keep or char.isprintable() else f"\\u{ord(char):04x}" for char in text)
