"""What a reply is spared while it passes: the reading of events that can wait, and rewriters that have nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from wirelint.engine import Session, within_limits
from wirelint.events import Delta
from wirelint.fix import RewriteContext
from wirelint.fixes.prefilter import CLEAR, LOUD
from wirelint.rewrite.pipeline import Chain, ChainError
from wirelint.rule import Rule
from wirelint.settings.scopes import Kind

T = TypeVar("T")

_MOST = 1 << 14
"""Bytes of events that may leave before they are read."""
_MOST_WAITING = 1 << 9
"""Characters that wait for what comes next; they are looked at again with each piece."""


@dataclass(slots=True)
class Passing:
    """An event that says a piece of text and nothing else. `event` is what was read from it, if it was read."""

    data: bytes
    at: float | None
    block: int
    text: str
    event: Delta | None = None


_Left: TypeAlias = "tuple[bytes, float | None, str]"
"""The data, time and text of one that has left."""


class Pending(Generic[T]):
    """Text at the end of what has come that may begin something, and whatever says it (`waiting`).

    It is a word, most of the time, that turns out to be another with the next piece. Then it waits here for the next one,
    without the rewriters being asked. Whether there is a quiet text or not is told by both together.
    """

    def __init__(self) -> None:
        self.waiting: list[T] = []
        """What has not left: its end has to be seen with what comes next."""
        self.text = ""
        """What all of that says."""

    def ripe(self, new: T, block: int, said: str, chain: Chain) -> list[T] | None:
        """What leaves now that something has come that says more of a text, in order. None if it may not leave unseen; then
        nothing was done."""
        waiting = self.waiting
        text = self.text + said if waiting else said
        place = chain.glance(block, text) if not waiting or len(text) <= _MOST_WAITING else LOUD
        if place == LOUD:
            return None
        if place == CLEAR:
            chain.advance_tail(text)
            ready, self.waiting, self.text = [*waiting, new], [], ""
            return ready
        # Nothing of it leaves alone: a rewriter that got it without what follows would hold its end.
        waiting.append(new)
        self.text = text
        return []


class Unread(Pending[Passing]):
    """Events that have left and are not read yet, and those before the next of them.

    Most events are the one before with other text (`apis.likeness`), and in most text nothing can begin. Such an event
    may leave before it is read; the reading is done for many of them together, which takes a fraction of the time.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._left: list[_Left] = []
        self._block = 0
        """Whose text has left."""
        self._size = 0
        self.full = False
        """Whether so much has left that it should be read."""

    def __bool__(self) -> bool:
        return bool(self._left)

    def try_fast_path(self, data: bytes, at: float | None, chain: Chain) -> bool:
        """Whether bytes leave at once, since they are an event of text in which nothing can begin, and nothing waits.

        That is most of what comes, so that all of it is done here. If not, or when this raises, nothing was done.
        """
        like = self._session.like
        if like is None or self.waiting or self.full:
            return False
        text = like.text(data)
        if text is None or not chain.try_fast_path(like.block, text):
            return False
        self._left.append((data, at, text))
        self._block = like.block
        self._size += len(data)
        self.full = self._size > _MOST
        return True

    def look(self, data: bytes, at: float | None) -> Passing | None:
        """What bytes say that are an event of text, as one can see; None for others."""
        like = self._session.like
        text = like.text(data) if like is not None else None
        return Passing(data, at, like.block, text) if like is not None and text is not None else None

    def passes(self, new: Passing, chain: Chain) -> list[bytes] | None:
        """What leaves now that an event has come, if it may leave unseen, or waits here for more; None if it may not.

        Raises ChainError; then all that waits, this event with it, is to leave (`settle`).
        """
        waiting = self.waiting
        try:
            return self._passes(new, chain)
        except Exception as error:
            self.waiting = together = [*waiting, new]
            for one in together:
                if one.event is None and not any(one.data is data for data, *_ in self._left):
                    self._leave(one)
            raise error if isinstance(error, ChainError) else ChainError("quiet text", error) from error

    def _passes(self, new: Passing, chain: Chain) -> list[bytes] | None:
        ready = self.ripe(new, new.block, new.text, chain)
        if ready is None:
            return None
        for one in ready:
            if one.event is None:
                self._leave(one)
            else:
                chain.take_later(one.event)
        return [one.data for one in ready]

    def _leave(self, one: Passing) -> None:
        self._left.append((one.data, one.at, one.text))
        self._block = one.block
        self._size += len(one.data)
        self.full = self._size > _MOST

    def read(self) -> Delta | None:
        """Has the session read what has left. Its text in one piece, with the frame of the last; None if nothing is.

        Raises what reading raises, and ValueError.
        """
        left, self._left, self._size, self.full = self._left, [], 0, False
        if not left:
            return None
        *before, (data, at, _) = left
        if before and not self._session.feed_texts(self._block, before):
            for one, when, _ in before:
                self._session.feed(one, when)
        event = self._read(data, at)
        return event._replace(text="".join([text for *_, text in left])) if event is not None else None

    def read_waiting(self) -> None:
        """Has the session read what waits, once it has read what has left. Raises what reading raises, and ValueError."""
        for one in self.waiting:
            one.event = one.event or self._read(one.data, one.at)

    def settle(self) -> list[Passing]:
        """What waits, which has been read, and waits no more."""
        waiting, self.waiting, self.text = self.waiting, [], ""
        return waiting

    def _read(self, data: bytes, at: float | None) -> Delta | None:
        """None when reading is given up: there is too much of it."""
        found = [event for frame in self._session.frame(data, at) for event in self._session.read(frame)]
        if self._session.unread:
            return None
        event = found[0] if len(found) == 1 else None
        if type(event) is not Delta:
            raise ValueError("an event is not what it is like")
        return event


def is_clean(session: Session, context: RewriteContext, rules: Sequence[Rule]) -> bool:
    """Whether no rule that could repair a whole reply finds anything in it. Rewriters act on what their rules find."""
    reply = session.reply()
    able = [rule for rule in rules if type(rule).rewriter is not Rule.rewriter]
    if reply is None or any(type(rule).check_reply is Rule.check_reply for rule in able):
        return False
    exchange = context.exchange.but(reply=reply, end="complete")
    if within_limits(exchange) is not exchange:
        return False  # the rules see only its beginning; the rewriters say that its rest is left as it came
    holds = Kind.of(exchange).holds
    try:
        return not any(
            list(rule.check_reply(exchange, context.ledger)) for rule in able if rule.requires_in_reply <= holds
        )
    except Exception:  # fail open: the rewriters look for themselves, and judging the exchange tells of the rule
        return False
