"""Summaries that stand for what was said before: which lines of an answer are telling, and which a text repeats.

A client whose history has grown too long asks for a summary and begins anew with it, between words of its own. So a
summary is known by its long lines, whatever stands around them.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirelint.text.cues import mentions
from wirelint.text.digests import short

_SHORTEST = 200
_LINE = 40
_MOST_KEPT = 4
_MOST_READ = 400
_SAYS_SO = (
    "summar", "compact", "condens", "continu", "previous", "earlier", "so far", "context", "handoff", "history",
)  # fmt: skip


def lines_of(answer: str) -> tuple[bytes, ...]:
    """Marks of the longest lines of an answer that may be a summary; none of a short one."""
    if len(answer) < _SHORTEST:
        return ()
    lines = sorted({line.strip() for line in answer.splitlines()}, key=lambda line: (-len(line), line))
    return tuple(short(line) for line in lines[:_MOST_KEPT] if len(line) >= _LINE)


def quoted_in(text: str) -> Iterator[bytes]:
    """Marks of the lines of a text that says that it tells of something earlier."""
    if len(text) < _SHORTEST or not mentions(text, _SAYS_SO):
        return
    lines = [stripped for line in text.splitlines() if len(stripped := line.strip()) >= _LINE]
    yield from dict.fromkeys(map(short, lines[:_MOST_READ]))
