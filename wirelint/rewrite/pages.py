"""A whole reply that is written as the last ones of its kind were: that nothing is to be repaired is told by its bytes.

Theory of operation. A server writes its replies of one text in the same way each time. Where two of them in a row were
written so, and were nothing to any rewriter (`plain`), their bytes make a form (`moulds`). A reply that fits it says what
those said, with another text; and whether that is quiet is asked as it always is. It is read when it is judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from wirelint.apis.likeness import span_of
from wirelint.engine import Session
from wirelint.events import Delta, Event, Frame, Head
from wirelint.rewrite.making import Making
from wirelint.rewrite.moulds import Kinds, Mould, said, source_of

_LONGEST = 1 << 16
"""Bytes of a reply that may fit a form."""
_AROUND = 1 << 13
"""Bytes of a form around its text: one of more takes long to make. Some APIs repeat in each reply what was asked."""


class Pages:
    """The forms of what servers send, by API, URL and type of the body."""

    def __init__(self) -> None:
        self._kinds: Kinds[bytes, Mould] = Kinds()

    def say_plainly(self, making: Making, body: bytes) -> bool:
        """Whether a whole reply fits a form, and is nothing to any rewriter. If not, it may be so all the same."""
        known = self._kinds.get(_kind(making.session))
        if known is None or known.form is None or not known.is_promising or len(body) > _LONGEST:
            return False
        form = known.form
        found = form.match(body)
        text = said(found[form.text]) if found is not None else None
        if not text or not making.leaves_alone(text):
            return False
        known.misses = 0
        return True

    def learn(self, making: Making, frame: Frame, events: Sequence[Event], *, plain: bool) -> None:
        """Takes in a reply that was read. `plain`: it was nothing to any rewriter."""
        known = self._kinds.of(_kind(making.session))
        known.misses += 1
        source = _source(frame, events) if plain and known.is_promising else None
        if source is not None:
            known.learn(source, Mould.of)


def _kind(session: Session) -> tuple[str, ...]:
    return session.api.NAME, session.url, session.reply_headers.get("content-type", "")


def _source(frame: Frame, events: Sequence[Event]) -> bytes | None:
    """The form of a reply that says one text; None where it has none."""
    piece = next((event for event in events if type(event) is Delta), None)
    text = span_of(piece) if piece is not None else None
    if text is None or len(frame.raw) - (text[1] - text[0]) > _AROUND:
        return None
    head = next((event for event in events if type(event) is Head), None)
    return source_of(frame, events, head.id if head is not None else None, text, _LONGEST)
