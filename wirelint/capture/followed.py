"""Streamed bodies that go as others went: of these only what is new is searched for secrets.

Theory of operation. A body is told by a form: a sequence of events whose bytes are fixed but for gaps. Once the quick look
(`probe`) has proved such a body harmless as a whole, no fixed text of the form gives a secret away: not by a shape, not by
a name before a gap. Of the next one the events that say more than a piece of text are looked at as they stand, and of all
others what stands in their gaps, joined as a client joins it.
"""

from __future__ import annotations

from typing import Protocol

from wirelint.capture.fragments import APART, is_harmless_stream
from wirelint.capture.literals import is_near
from wirelint.capture.probe import harmless

_MOST = 64


class Followed(Protocol):
    """What is known of a streamed body. `form` is equal for bodies whose fixed text is the same.

    `documents` are its events, but of those that say a piece of text and nothing else only the first, in lines of their
    own; `strings` what stands in the gaps of one name in all events, joined, where that changes. `size`: bytes of the body
    of which all this is told.
    """

    @property
    def form(self) -> object: ...

    @property
    def documents(self) -> str: ...

    @property
    def strings(self) -> tuple[str, ...]: ...

    @property
    def size(self) -> int: ...


class Forms:
    """The forms of which a body was looked at, and whether that was harmless. Safe to use from several threads.

    Of a form whose first body was not every body is searched, as one of no form is: it is not looked at for nothing again.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[object, bool], ...] = ()

    def clear(self, body: str, followed: Followed, known: tuple[str, ...]) -> bool:
        """Return True if a quick look proves that a body holds neither a secret nor one of those that are known."""
        if any(is_near(secret, text) for secret in known for text in (body, *followed.strings)):
            return False
        for form, is_harmless in self._known:
            if form == followed.form:
                return is_harmless and harmless(APART.join([followed.documents, *followed.strings]))
        is_harmless = is_harmless_stream(body)
        self._known = ((followed.form, is_harmless), *self._known)[:_MOST]
        return is_harmless
