"""Text of the wire in one line that a terminal cannot be made to obey."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Without line ends, control characters, lone surrogates and marks that turn the writing direction: they are shown."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
