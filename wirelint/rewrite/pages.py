"""A whole reply that is written as the last ones of its kind were: that nothing is to be repaired is told by its bytes.

Theory of operation. A server writes its replies of one text in the same way each time. Where two of them were written so,
and were nothing to any rewriter (`plain`), their bytes make a form (`moulds`). A reply that fits it says what those said,
with another text; and whether that is quiet is asked as it always is. It is read when it is judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from wirelint.apis.likeness import span_of
from wirelint.events import Delta, Event, Frame, ReplyMeta
from wirelint.rewrite.moulds import Kinds, Mould, said, source_of
from wirelint.rewrite.pipeline_factory import PipelineFactory

_LONGEST = 1 << 16
"""Bytes of a reply that may fit a form."""
_AROUND = 1 << 13
"""Bytes of a form around its text: one of more takes long to make. Some APIs repeat in each reply what was asked."""


class Pages:
    """The forms of what servers send, by API, URL, model and type of the body."""

    def __init__(self) -> None:
        self._kinds: Kinds[bytes, Mould] = Kinds()

    def say_plainly(self, making: PipelineFactory, body: bytes) -> bool:
        """Return True if a whole reply fits a form, and is nothing to any rewriter. If not, it may be so all the same."""
        known = self._kinds.get(_kind(making))
        if known is None or len(body) > _LONGEST:
            return False
        for form in known.forms:
            found = form.match(body)
            if found is None:
                continue
            text = said(found[form.text])
            if text and making.leaves_alone(text):
                known.fitted(form)
                return True
        return False

    def learn(self, making: PipelineFactory, frame: Frame, events: Sequence[Event], *, plain: bool) -> None:
        """Takes in a reply that was read. `plain`: it was nothing to any rewriter."""
        known = self._kinds.of(_kind(making))
        source = _source(frame, events) if known.may_teach() and plain else None
        if source is not None:
            known.learn(source, Mould.of)


def _kind(making: PipelineFactory) -> tuple[str, ...]:
    return *making.kind, making.session.reply_headers.get("content-type", "")


def _source(frame: Frame, events: Sequence[Event]) -> bytes | None:
    """The form of a reply that says one text; None where it has none."""
    piece = next((event for event in events if type(event) is Delta), None)
    text = span_of(piece) if piece is not None else None
    if text is None or len(frame.raw) - (text[1] - text[0]) > _AROUND:
        return None
    head = next((event for event in events if type(event) is ReplyMeta), None)
    return source_of(frame, events, head.id if head is not None else None, text, _LONGEST)
