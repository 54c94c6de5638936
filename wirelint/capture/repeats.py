"""What is new in a document: an agent sends its whole history with every request, and nearly all of it again and again.

Theory of operation. A few documents that hold no secret are kept. Of one that begins and ends like one of these only what
lies between is looked at, from a quotation mark with a comma to a quotation mark with a comma. No sign of a secret that
`probe` knows goes over both: shapes have no quotation mark in them, and names none but those that are passed over, and no
comma. So what is harmless in parts that meet there is harmless as a whole.
"""

from __future__ import annotations

from wirelint.capture.probe import harmless

_MOST = 8
_SHORTEST, _LONGEST = 1 << 11, 1 << 19
"""Bounds of a document that is kept, in characters: below, nothing is gained; above, it takes too much memory."""

_SEAM = '",'
_NEAR = 64
"""How far from where two documents part the search for that place may stop; also how much of them is compared before it."""


class Repeats:
    """The last documents that were found to be harmless. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: tuple[str, ...] = ()

    def harmless(self, text: str) -> bool:
        """What `probe.harmless` says of a document, or True where that only says of its parts that they are."""
        if not _SHORTEST <= len(text) <= _LONGEST:
            return harmless(text)
        kept = self._kept
        before = _like(text, kept)
        if not harmless(text if before is None else _news(text, before)):
            return False
        self._kept = (text, *[other for other in kept if other is not before])[:_MOST]
        return True


def _like(text: str, kept: tuple[str, ...]) -> str | None:
    """The one of some documents that shares its middle with this one, or its first quarter at least."""
    for part in (2, 4):
        for other in kept:
            place = len(other) // part
            if text.startswith(other[place : place + _NEAR], place):
                return other
    return None


def _news(text: str, before: str) -> str:
    """What stands between the beginning and the end that a document shares with another, seams included."""
    start = text.rfind(_SEAM, 0, _shared(text, before))
    end = text.find(_SEAM, max(len(text) - _shared_at_the_end(text, before), start, 0))
    return text[max(start, 0) : end + len(_SEAM) if end >= 0 else len(text)]


def _shared(text: str, before: str) -> int:
    """About how many characters two documents begin with both, and never more."""
    start, end = 0, min(len(text), len(before))
    if text[:end] == before[:end]:
        return end
    while end - start > _NEAR:
        middle = (start + end) // 2
        if text[start:middle] == before[start:middle]:
            start = middle
        else:
            end = middle
    return start


def _shared_at_the_end(text: str, before: str) -> int:
    """About how many characters two documents end with both, and never more."""
    start, end = 0, min(len(text), len(before))
    while end - start > _NEAR:
        middle = (start + end) // 2
        if text[len(text) - middle : len(text) - start] == before[len(before) - middle : len(before) - start]:
            start = middle
        else:
            end = middle
    return start
