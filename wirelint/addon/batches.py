"""Pieces of a reply that have come for some time, read in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirelint.engine import Session
from wirelint.rewrite.spoken import Spoken


def feed_all(session: Session, pieces: Sequence[tuple[bytes, float | None]], spoken: Spoken | None = None) -> None:
    """Feeds a session pieces of a body, each with its time. Of events that are alike many are taken in together.

    `spoken`: what is known of a reply of which these are the events, each by itself, and what came behind them.
    """
    if spoken is not None and spoken.texts is not None:
        told = zip(pieces[spoken.first : spoken.last], spoken.texts, strict=True)
        _feed_each(session, pieces[: spoken.first])
        _take(session, spoken.block, [(data, at, text) for (data, at), text in told])
        pieces = pieces[spoken.last :]
    _feed_each(session, pieces)


def _feed_each(session: Session, pieces: Iterable[tuple[bytes, float | None]]) -> None:
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
