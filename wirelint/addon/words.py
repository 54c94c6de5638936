"""Text of the wire in one line that a terminal cannot be made to obey."""

from __future__ import annotations

from wirelint.text.escaping import printable


def one_line(text: str) -> str:
    """Without line ends, control characters, lone surrogates and marks that turn the writing direction: they are shown."""
    return printable(text)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
