"""A reply that goes as the last ones of its kind went: let by event for event, and read when it is over.

Theory of operation. A server tells most replies in the same events: a head, the text, an end. Where two replies were told
alike, and were nothing to any rewriter (`plain`), the bytes of their events make a form (`moulds`). A reply whose events
fit it, one after the other, says what those said, with another text; and whether that is quiet is asked as always. Of
several forms that are known, a reply follows those that its events have fitted so far.

As long as a reply follows a form nothing of it is read, and its events leave as they came, or wait for more of the text
where they would if they were read (`unread.Pending`). When one does not fit, all that have come before it are read as if
they came now, each as of its time, and what comes out of them is what has left. If none does, the reply is read when it is
judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from wirelint.apis.likeness import Likeness
from wirelint.events import Delta, Done, Event, Finish, Frame, ReplyMeta, Start
from wirelint.fixes.prefilter import CLEAR, REACH, quiet, still
from wirelint.model import Request
from wirelint.rewrite.moulds import TEXT, Kinds, Mould, said, source_of
from wirelint.rewrite.pipeline import Chain, Seen
from wirelint.rewrite.plain import is_plain
from wirelint.rewrite.spoken import Spoken
from wirelint.rewrite.stream import ReplyStream
from wirelint.rewrite.unread import Pending

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
    """The events of replies of one kind. The last one of the opening begins the text, which is of `start.block`.

    `stops`: whether the end begins with the end of the text itself.
    """

    def __init__(self, source: _Source, start: Start, *, stops: bool) -> None:
        self.opening = len(source.opening)
        self.moulds = tuple([Mould.of(one) for one in (*source.opening, *source.end)])
        begins = self.moulds[self.opening - 1]
        self.text = begins if source.text == source.opening[-1] else Mould.of(source.text)
        before, _, behind = source.text.partition(TEXT)
        self.still = Mould.of(before + still() + behind)
        """The same, where one need not know what stood before its text."""
        self.start, self.block, self.stops = start, start.block, stops

    def at(self, number: int, data: bytes, id_: bytes | None) -> re.Match[bytes] | None:
        """What of an event fits the one of a number, text apart that goes on."""
        mould = self.moulds[number] if number < len(self.moulds) else None
        found = mould.match(data) if mould is not None else None
        if found is None or mould is None:
            return None
        return found if not mould.id or id_ is None or found[mould.id] == id_ else None


class Following:
    """One reply that follows forms so far. `left` is what has left of it, with its times; `waiting` what has not."""

    def __init__(self, forms: Sequence[Form], request: Request, longest_hold: float) -> None:
        """`longest_hold`: milliseconds for which text may wait."""
        self.left: list[tuple[bytes, float | None]] = []
        self.holding: float | None = None
        """Since when anything waits (ms after the request)."""
        self._forms, self._model, self._longest_hold = list(forms), request.model or "", longest_hold
        """Those that it has followed so far; where their texts begin they are alike up to there."""
        self._quiet = quiet(names := frozenset([tool.name for tool in request.tools]))
        self._chain = Chain((), names)
        self._next = self._size = self._seen = 0
        """`_seen`: of so many events of `left` the chain knows."""
        self._id: bytes | None = None
        self._still: Mould | None = None
        """What more of its text is like while that is in the middle of a line, and nothing waits."""
        self._pending: Pending[tuple[bytes, float | None]] = Pending()

    @property
    def waiting(self) -> list[tuple[bytes, float | None]]:
        return self._pending.waiting

    @property
    def over(self) -> Form | None:
        """The form to the end of which it has come."""
        return next((form for form in self._forms if len(form.moulds) == self._next), None)

    def came(self) -> tuple[list[tuple[bytes, float | None]], Spoken | None]:
        """All that has come, with its times; and what is known of it, when that is a reply to its end."""
        form, pieces = self.over, [*self.left, *self.waiting]
        return pieces, Spoken(form, pieces) if form is not None else None

    def due(self, at: float) -> float | None:
        """Milliseconds until what waits has to leave; None when nothing does."""
        return max(self.holding + self._longest_hold - at, 0.0) if self.holding is not None else None

    def passes(self, data: bytes, at: float | None) -> list[bytes] | None:
        """What leaves now that the next event has come; None if it does not fit, or something may begin in its text.

        Not asked after that.
        """
        if self._is_more_text(data):
            self.left.append((data, at))
            return [data]
        self._size += len(data)
        return self._take(data, at) if self._size <= _MOST else None

    def _is_more_text(self, data: bytes) -> bool:
        """Return True if an event says more text in the middle of a line, with nothing held before it."""
        still, size = self._still, self._size + len(data)
        if still is None or size > _MOST:
            return False
        found = still.match(data)
        if found is None or (still.id and found[still.id] != self._id):
            return False
        self._size = size
        return True

    def stop(self) -> None:
        """It is followed no more."""
        self._still = None

    def _take(self, data: bytes, at: float | None) -> list[bytes] | None:
        """The same of any event."""
        if self.holding is not None and at is not None and round(at, 3) - self.holding >= self._longest_hold:
            return None  # as `ReplyStream` has it
        form, ready = self._forms[0], [(data, at)]
        found = form.text.match(data) if self._next == form.opening else None
        if found is not None:
            if form.text.id:
                if self._id is not None and found[form.text.id] != self._id:
                    return None
                self._id = found[form.text.id]
            going = self._goes_on(found[form.text.text], (data, at))
            if going is None:
                return None
            ready = going
        elif not self._is_next(data):
            return None
        elif self._pending.waiting:
            ready = [*self._pending.waiting, (data, at)]
            self._pending = Pending()
        self.left += ready
        self._seen = len(self.left)
        waits = bool(self._pending.waiting)
        if ready or not waits:
            self.holding = None
        if waits and self.holding is None:
            self.holding = round(at, 3) if at is not None else None
        form = self._forms[0]
        flows = not waits and self._next == form.opening and self._chain.is_in_line(form.block)
        self._still = form.still if flows else None
        return [one for one, _ in ready]

    def _is_next(self, data: bytes) -> bool:
        """Whether an event is the next one of the opening or of the end, and what waits may leave with it."""
        number = self._next
        fits = [(form, found) for form in self._forms if (found := form.at(number, data, self._id)) is not None]
        if self._pending.waiting:
            fits = [one for one in fits if one[0].stops]
            if not fits or not self._chain.ends_in_a_word(self._forms[0].block, self._pending.text):
                return False
        if not fits:
            return False
        form, found = fits[0]
        mould = form.moulds[number]
        if mould.id:
            self._id = found[mould.id]
        if mould.text:
            if not self._begins(form, found[mould.text]):
                return False
            self._forms = [one for one, _ in fits if (one.opening, one.text) == (form.opening, form.text)]
        else:
            self._forms = [one for one, _ in fits if not one.moulds[number].text]
        self._next += 1
        return True

    def _begins(self, form: Form, literal: bytes) -> bool:
        """Whether the first text of the reply begins nothing, as `plain` has it."""
        text = said(literal)
        if not text or not is_plain(text, self._model) or self._quiet(text, False) != CLEAR:
            return False
        events: Sequence[Event] = (form.start, Delta(form.block, text, None))
        self._chain.know(events)
        self._chain.left(events, untouched=True)
        return True

    def _goes_on(self, literal: bytes, new: tuple[bytes, float | None]) -> list[tuple[bytes, float | None]] | None:
        """What leaves now that there is more of the text; None if something may begin in it."""
        self._catch_up()
        text, block = said(literal), self._forms[0].block
        if not text:
            return None
        if not self._pending.waiting and self._chain.try_fast_path(block, text):
            return [new]
        return self._pending.ripe(new, block, text, self._chain)

    def _catch_up(self) -> None:
        """Has the chain know how the text ends that has left."""
        if self._seen == len(self.left):
            return
        mould, text = self._forms[0].text, ""
        for place in range(len(self.left) - 1, self._seen - 1, -1):
            found = mould.match(self.left[place][0])
            text = (found[mould.text].decode() if found is not None else "") + text
            if len(text) >= REACH:
                break
        self._seen = len(self.left)
        self._chain.advance_tail(text)


class Forms:
    """The forms of what servers send, by API, URL and model."""

    def __init__(self) -> None:
        self._kinds: Kinds[_Source, Form] = Kinds()

    def following(self, rewriting: ReplyStream) -> Following | None:
        """What a reply may follow of which nothing has come yet."""
        making = rewriting.making
        known = self._kinds.get(making.kind)
        request = making.answered
        if known is None or not known.forms or not making.may_sleep or request is None or making.takes_counts_out:
            return None
        return Following(known.forms, request, rewriting.longest_hold)

    def followed(self, rewriting: ReplyStream, form: Form) -> None:
        """A reply has followed a form to its end."""
        if (known := self._kinds.get(rewriting.making.kind)) is not None:
            known.fitted(form)

    def learn(self, rewriting: ReplyStream, followed: int | None) -> None:
        """Takes in a reply that was read, and is over. `followed`: the events that had left before it was; None: it had
        nothing to follow."""
        making = rewriting.making
        session, seen = making.session, making.slept
        if not seen and (followed or 0) < _MANY:
            return
        known = self._kinds.of(making.kind)
        if followed is None and known.forms:
            return  # it had begun before they were known
        if not known.may_teach():
            return
        found = _source(session.comparison.last, seen) if seen else None
        if found is not None:
            source, start, stops = found
            known.learn(source, lambda same: Form(same, start, stops=stops))


def _source(like: Likeness | None, seen: Seen) -> tuple[_Source, Start, bool] | None:
    """The form of a reply, how its text starts, and whether its end begins with a stop; None where it has none."""
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
    head = next((event for _, events in opening for event in events if type(event) is ReplyMeta), None)
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
    source = _Source(tuple(made[:split]), made[split], tuple(made[split + 1 :]))
    return source, start._replace(frame=None), type(end[0][1][0]) is Finish


def _mould(frame: Frame, events: Sequence[Event], id_: str | None, text: tuple[int, int] | None) -> bytes | None:
    # A CR at its end may be half of a line end, so the event would end elsewhere.
    return source_of(frame, events, id_, text, _LONGEST) if frame.raw.endswith(b"\n") else None
