"""A reply that goes as the last ones of its kind went: let by event for event, and read when it is over.

Theory of operation. A server tells most replies in the same events: a head, the text, an end. Where two replies in a row
were told so, and were nothing to any rewriter (`plain`), the bytes of their events make a form (`moulds`). A reply whose
events fit it, one after the other, says what those said, with another text; and whether that is quiet is asked as always.

As long as a reply follows a form nothing of it is read, and its events leave as they came. When one does not fit, all that
have left are read as if they came now, and what came out of them is what has left. If none does, the reply is read when
it is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wirelint.apis.likeness import Likeness
from wirelint.engine import Session
from wirelint.events import Delta, Done, Event, Frame, Head, Start
from wirelint.model import Request
from wirelint.rewrite.chain import Chain, Seen
from wirelint.rewrite.moulds import TEXT, Kinds, Mould, said, source_of
from wirelint.rewrite.plain import is_plain
from wirelint.rewrite.replies import Rewriting
from wirelint.rewriters.quiet import CLEAR, REACH, quiet, still

_MOST = 1 << 16
"""Bytes of a reply that may leave before they are read."""
_MOST_EVENTS = 12
"""Events of an opening, and of an end."""
_MANY = 8
"""Events that left for nothing: they had to be read after all."""
_LONGEST = 1 << 13
"""Bytes of an event that is part of a form."""


class _Source(NamedTuple):
    """Regular expressions (source), one for each event: of the opening, of the text that follows, of the end."""

    opening: tuple[bytes, ...]
    text: bytes
    end: tuple[bytes, ...]


class Form:
    """The events of replies of one kind. The last one of the opening begins the text, which is of `start.block`."""

    def __init__(self, source: _Source, start: Start) -> None:
        self.opening = len(source.opening)
        self.moulds = tuple([Mould.of(one) for one in (*source.opening, *source.end)])
        begins = self.moulds[self.opening - 1]
        self.text = begins if source.text == source.opening[-1] else Mould.of(source.text)
        before, _, behind = source.text.partition(TEXT)
        self.still = Mould.of(before + still() + behind)
        """The same, where one need not know what stood before its text."""
        self.start = start


class Following:
    """One reply that follows a form so far. `left` is what has left of it, with its times."""

    def __init__(self, form: Form, request: Request) -> None:
        self.left: list[tuple[bytes, float | None]] = []
        self._form, self._model = form, request.model or ""
        self._quiet = quiet(names := frozenset([tool.name for tool in request.tools]))
        self._chain = Chain((), names)
        self._next = self._size = 0
        self._id: bytes | None = None
        self._flows = False
        """Whether its text is in the middle of a line."""
        self._unseen = 0
        """Events at the end of `left` of which the chain does not know."""

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self._next == len(self._form.moulds)

    def lets_by(self, data: bytes, at: float | None) -> bool:
        """Whether bytes are the next event, and nothing can begin in their text: then they leave. Not asked after a no."""
        self._size += len(data)
        if self._size > _MOST:
            return False
        still = self._form.still
        found = still.match(data) if self._flows else None
        if found is not None and (not still.id or found[still.id] == self._id):  # most of what comes
            self._unseen += 1
        elif not self._is_next(data):
            return False
        self.left.append((data, at))
        return True

    def _is_next(self, data: bytes) -> bool:
        """The same of any event."""
        form, number = self._form, self._next
        mould = form.text
        found = mould.match(data) if number == form.opening else None
        if found is not None:
            if not self._goes_on(found[mould.text]):
                return False
        else:
            if number >= len(form.moulds):
                return False
            mould = form.moulds[number]
            found = mould.match(data)
            if found is None or (mould.text and not self._begins(found[mould.text])):
                return False
        if mould.id and found[mould.id] != self._id:
            if self._id is not None:
                return False
            self._id = found[mould.id]
        self._next += mould is not form.text or number < form.opening
        self._flows = self._next == form.opening and self._chain.is_in_line(form.start.block)
        return True

    def _begins(self, literal: bytes) -> bool:
        """Whether the first text of the reply begins nothing, as `plain` has it."""
        text = said(literal)
        if not text or not is_plain(text, self._model) or self._quiet(text, False) != CLEAR:
            return False
        start = self._form.start
        events: Sequence[Event] = (start, Delta(start.block, text, None))
        self._chain.know(events)
        self._chain.left(events, untouched=True)
        return True

    def _goes_on(self, literal: bytes) -> bool:
        """Whether nothing can begin in more of the text, nor at its end."""
        self._catch_up()
        text, block = said(literal), self._form.start.block
        if not text or self._chain.lets_by(block, text):
            return bool(text)
        if self._chain.glance(block, text) != CLEAR:
            return False
        self._chain.gone_by(text)
        return True

    def _catch_up(self) -> None:
        """Has the chain know how the text ends that has left."""
        if not self._unseen:
            return
        mould, text = self._form.text, ""
        for place in range(len(self.left) - 1, len(self.left) - 1 - self._unseen, -1):
            found = mould.match(self.left[place][0])
            text = (found[mould.text].decode() if found is not None else "") + text
            if len(text) >= REACH:
                break
        self._unseen = 0
        self._chain.gone_by(text)


class Forms:
    """The forms of what servers send, by API and URL."""

    def __init__(self) -> None:
        self._kinds: Kinds[_Source, Form] = Kinds()

    def following(self, rewriting: Rewriting) -> Following | None:
        """What a reply may follow of which nothing has come yet."""
        making = rewriting.making
        known = self._kinds.get(_kind(making.session))
        if known is None or known.form is None or not known.is_promising or not making.may_sleep:
            return None
        request = making.answered
        return Following(known.form, request) if request is not None else None

    def followed(self, rewriting: Rewriting) -> None:
        """A reply has followed a form to its end."""
        if (known := self._kinds.get(_kind(rewriting.making.session))) is not None:
            known.misses = 0

    def learn(self, rewriting: Rewriting, followed: int | None) -> None:
        """Takes in a reply that was read, and is over. `followed`: the events that had left before it was; None: it had
        nothing to follow."""
        session, seen = rewriting.making.session, rewriting.making.slept
        if not seen and (followed or 0) < _MANY:
            return
        known = self._kinds.of(_kind(session))
        if followed is None and known.form is not None and known.is_promising:
            return  # it had begun before that form was known
        known.misses += 1
        found = _source(session.comparison.last, seen) if seen and known.is_promising else None
        if found is None:
            return
        source, start = found
        known.learn(source, lambda same: Form(same, start))


def _kind(session: Session) -> tuple[str, str]:
    return session.api.NAME, session.url


def _source(like: Likeness | None, seen: Seen) -> tuple[_Source, Start] | None:
    """The form of a reply, and how its text starts; None where it has none."""
    parts: tuple[list[tuple[Frame, list[Event]]], ...] = ([], [])
    text = False
    for frame, events in seen:
        if frame is None:
            if parts[1]:
                return None
            text = True
        else:
            parts[text].append((frame, [event for event in events if event.frame is frame]))
    opening, end = parts
    if (
        max(len(opening), len(end)) > _MOST_EVENTS
        or like is None
        or not text
        or not opening
        or not end
        or type(end[-1][1][-1]) is not Done
    ):
        return None
    begun = [event for _, events in opening for event in events if isinstance(event, Start | Delta)]
    start, piece = begun if len(begun) == 2 else (None, None)
    if not isinstance(start, Start) or not isinstance(piece, Delta) or piece is not opening[-1][1][-1]:
        return None
    # The text has to go on as it is remembered right behind the opening: what a reader knows is the same there.
    first, shown = opening[-1][0], like.shown
    if shown.number not in (first.number, first.number + 1):
        return None
    head = next((event for _, events in opening for event in events if type(event) is Head), None)
    id_ = head.id if head is not None else None
    begins = Likeness.of(piece)
    if begins is None:
        return None
    before = [_mould(frame, events, id_, None) for frame, events in opening[:-1]]
    behind = [_mould(frame, events, id_, None) for frame, events in end]
    texts = (_mould(first, opening[-1][1], id_, begins.span), _mould(shown, (), id_, like.span))
    made = [one for one in (*before, *texts, *behind) if one is not None]
    if len(made) != len(before) + len(texts) + len(behind):
        return None
    split = len(opening)
    return _Source(tuple(made[:split]), made[split], tuple(made[split + 1 :])), start._replace(frame=None)


def _mould(frame: Frame, events: Sequence[Event], id_: str | None, text: tuple[int, int] | None) -> bytes | None:
    # A CR at its end may be half of a line end, so the event would end elsewhere.
    return source_of(frame, events, id_, text, _LONGEST) if frame.raw.endswith(b"\n") else None
