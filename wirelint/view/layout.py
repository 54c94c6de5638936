"""Lines for people: wrapped to the width there is, under a hanging indent, without blanks at their ends."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

_LEAST = 20
_MEASURE = Console(width=80, color_system=None)
"""`Text.wrap` asks for a console, and wants nothing of it that would differ between consoles."""


def hung(text: Text, width: int, indent: int, hang: int = 0) -> Iterator[Text]:
    """The lines of a text that begins in column `indent`; the lines after the first begin `hang` columns further in."""
    room = max(width - indent, _LEAST)
    lines = text.wrap(_MEASURE, room, overflow="fold")
    if hang and len(lines) > 1:
        end = len(lines[0])
        rest = text[end:]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip(" ")) :]
        lines = [lines[0], *rest.wrap(_MEASURE, max(room - hang, _LEAST), overflow="fold")]  # type: ignore[assignment]
    for number, line in enumerate(lines):
        line.rstrip()
        yield Text(" " * (indent + (hang if number else 0))).append_text(line)
