"""Pieces of a reply that have come for some time, read in one go."""

from __future__ import annotations

from collections.abc import Iterable

from wirelint.apis.likeness import Likeness
from wirelint.engine import Session
from wirelint.rewrite.following import Spoken


def feed_all(session: Session, pieces: Iterable[tuple[bytes, float | None]], spoken: Spoken | None = None) -> None:
    """Feeds a session pieces of a body, each with its time. Of events that are alike many are taken in together.

    `spoken`: what is known of the texts of a body of which this is the beginning, each piece an event.
    """
    alike: list[tuple[bytes, float | None, str]] = []
    like: Likeness | Spoken | None = session.like
    for number, (data, at) in enumerate(pieces, 1):
        text = like.text(data) if like is not None else None
        if text is not None:
            alike.append((data, at, text))
            continue
        if like is not None and alike:
            _take(session, like.block, alike)
            alike = []
        session.feed(data, at)
        like = spoken if spoken is not None and number >= spoken.first else session.like
    if like is not None and alike:
        _take(session, like.block, alike)


def _take(session: Session, block: int, alike: list[tuple[bytes, float | None, str]]) -> None:
    if not session.feed_texts(block, alike):
        for data, at, _ in alike:
            session.feed(data, at)
