"""Pieces of a reply that have come for some time, read in one go."""

from __future__ import annotations

from collections.abc import Iterable

from wirelint.engine import Session


def feed_all(session: Session, pieces: Iterable[tuple[bytes, float | None]]) -> None:
    """Feeds a session pieces of a body, each with its time. Of events that are alike many are taken in together."""
    alike: list[tuple[bytes, float | None, str]] = []
    like = session.like
    for data, at in pieces:
        text = like.text(data) if like is not None else None
        if text is not None:
            alike.append((data, at, text))
            continue
        if like is not None and alike:
            _take(session, like.block, alike)
            alike = []
        session.feed(data, at)
        like = session.like
    if like is not None and alike:
        _take(session, like.block, alike)


def _take(session: Session, block: int, alike: list[tuple[bytes, float | None, str]]) -> None:
    if not session.feed_texts(block, alike):
        for data, at, _ in alike:
            session.feed(data, at)
