"""What a reply is spared while it passes: the reading of events that can wait, and rewriters that have nothing to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from wirelint.engine import Session
from wirelint.events import Delta
from wirelint.repair import Situation
from wirelint.rewrite.chain import Chain
from wirelint.rule import Rule

_MOST = 1 << 14
"""Bytes of events that may leave before they are read."""


class Unread:
    """Events that have left and are not read yet.

    Most events are the one before with other text (`apis.likeness`), and in most text nothing can begin. Such an event
    may leave before it is read; the reading is done for many of them together, which takes a fraction of the time.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._events: list[tuple[bytes, float | None, str]] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    @property
    def full(self) -> bool:
        return self._size > _MOST

    def takes(self, data: bytes, at: float | None, chain: Chain) -> bool:
        """Whether these bytes could leave at once, since they are an event that passes by, as one can see."""
        like = self._session.like
        text = like.text(data) if like is not None else None
        if like is None or text is None or not chain.lets_pass(like.block, text):
            return False
        self._events.append((data, at, text))
        self._size += len(data)
        return True

    def read(self) -> Delta | None:
        """Has the session read them. Their text in one piece, with the frame of the last; None when reading is given up.

        Raises what reading raises, and ValueError.
        """
        events, self._events, self._size = self._events, [], 0
        *early, (last, at, _) = events
        for data, when, _ in early:
            self._session.feed(data, when)
        found = [event for frame in self._session.frame(last, at) for event in self._session.read(frame)]
        if self._session.unread:  # there is too much of it
            return None
        event = found[0] if len(found) == 1 else None
        if type(event) is not Delta:
            raise ValueError("an event is not what it is like")
        return event._replace(text="".join([text for _, _, text in events]))


def is_clean(session: Session, situation: Situation, rules: Sequence[Rule]) -> bool:
    """Whether no rule that could repair a whole reply finds anything in it. Rewriters act on what their rules find."""
    reply = session.reply()
    able = [rule for rule in rules if type(rule).rewriter is not Rule.rewriter]
    if reply is None or any(type(rule).check_reply is Rule.check_reply for rule in able):
        return False
    exchange = dataclasses.replace(situation.exchange, reply=reply, end="complete")
    try:
        return not any(list(rule.check_reply(exchange, situation.ledger)) for rule in able)
    except Exception:  # fail open: the rewriters look for themselves, and judging the exchange tells of the rule
        return False
