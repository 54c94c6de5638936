"""The replies that need no rewriter: a text in which nothing can begin, from its first piece on, and its end.

Theory of operation. Making the rewriters of a reply costs more than all that they do for most replies. What a frame says
is told here to be nothing to any of them, as long as all that came before was: the head of the reply, a text of which the
first piece begins nothing (that is told by what the rewriters themselves ask of a beginning), its end, the usage, the
terminator. Text after the first piece is the business of `rewriters.quiet`. Anything else wakes the rewriters (`chain`).

That is known of the repairs that are shipped. A rule of the user's own may act on anything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from wirelint.apis.traits import ending, traits
from wirelint.dialects import OPENERS
from wirelint.dialects.openers import heads
from wirelint.events import Close, Delta, Done, Event, Finish, Other, ReplyMeta, Start, Usage
from wirelint.fixes.prefilter import CLEAR, Quiet, any_of
from wirelint.registry import shipped
from wirelint.rule import Rule
from wirelint.text.control_tokens import may_hold_token, residue, residue_may_come
from wirelint.text.thinking import may_hold_thinking, may_open, residue_head

_BEGUN = re.compile(any_of({head for opener in OPENERS.kinds.get("text", ()) for head in heads(opener)}, cut=True))
"""What markup at the beginning of a text begins with, names of tools aside."""

_FIRST_WORDS = 24
"""Characters of a first piece that is remembered: models begin with few words, again and again."""

_BEGINNING = 256
"""Characters of a text by which what its beginning is can be told."""


class Plain:
    """Looks at the frames of one reply, in order, as long as all of them are plain."""

    __slots__ = ("_begins_nothing", "_choice", "_counts", "_headed", "_model", "_over", "_stopped")

    def __init__(self, model: str, begins_nothing: Callable[[str, bool], int], *, counts: bool = False) -> None:
        """`begins_nothing` is `rewriters.quiet` for the tools of the request. `counts`: a rewriter acts on token counts."""
        self._counts = counts
        self._model = model
        self._begins_nothing = begins_nothing
        self._choice: int | None = None
        self._headed = self._stopped = self._over = False

    def takes(self, events: Sequence[Event]) -> bool:
        """Whether the events of the next frame are nothing to any rewriter. If not, nothing may be asked any more."""
        if self._over or not events:
            return False
        first, last = events[0], events[-1]
        alone = first is last
        match last:
            case Delta():
                return self._begins(events[:-1], last)
            case ReplyMeta() if alone:
                fresh, self._headed = not self._headed, True
                return fresh
            case Other(frame) if alone:
                return frame is not None and frame.data is None
            case Finish() if alone:
                return self._ends(last)
            case Usage():
                return not self._counts and (
                    alone or (len(events) == 2 and type(first) is Finish and self._ends(first))
                )
            case Done() if alone:
                self._over = True
                return self._stopped
            case _:
                return False

    def _begins(self, before: Sequence[Event], piece: Delta) -> bool:
        """Whether a frame begins the only text with a piece of which nothing can come."""
        start = before[-1] if before else None
        if self._choice is not None or type(start) is not Start or start.kind != "text" or start.block != piece.block:
            return False
        if len(before) > 1:
            if len(before) > 2 or self._headed or type(before[0]) is not ReplyMeta:
                return False
            self._headed = True
        self._choice = start.choice
        return is_plain(piece.text, self._model) and self._begins_nothing(piece.text, False) == CLEAR

    def _ends(self, stop: Finish) -> bool:
        fresh, self._stopped = not self._stopped, True
        return fresh and stop.choice == self._choice and ending(stop.reason) != "calls"


def says_plainly(events: Iterable[Event], model: str, quiet: Quiet) -> bool:
    """Whether a whole reply, by all of its events, is nothing to any rewriter: one text and its end, all of it as above."""
    start: Start | None = None
    piece: Delta | None = None
    stop: Finish | None = None
    for event in events:
        match event:
            case Start(kind="text") if start is None:
                start = event
            case Delta() if piece is None:
                piece = event
            case Finish() if stop is None:
                stop = event
            case ReplyMeta() | Usage() | Close() | Done():
                pass
            case _:
                return False
    if start is None or piece is None or stop is None or (start.block, start.choice) != (piece.block, stop.choice):
        return False
    return ending(stop.reason) != "calls" and begins_nothing(piece.text, model, quiet)


def begins_nothing(text: str, model: str, quiet: Quiet) -> bool:
    """Whether nothing can begin in all the text of a reply."""
    # As if it came in two pieces: the rest of a text cannot make anything of what its beginning is not.
    return is_plain(text[:_BEGINNING], model) and not quiet.may_hold(text)


def is_plain(text: str, model: str) -> bool:
    """Whether the first piece of a text begins nothing that only the beginning of a text can, where it is quiet as well."""
    return _is_plain_again(text, model) if len(text) <= _FIRST_WORDS else _is_plain(text, model)


def _is_plain(text: str, model: str) -> bool:
    if not text or text[0].isspace() or _BEGUN.match(text) is not None:
        return False
    if may_hold_token(text) or may_hold_thinking(text) or may_open(text, 0):
        return False
    if residue(text, model) or residue_may_come(text, model):
        return False
    return residue_head(text, 0, model) is False


_is_plain_again = lru_cache(maxsize=1024)(_is_plain)


def are_late(rules: Sequence[Rule], api: str) -> bool:
    """Whether all repairs of these rules leave plain frames of an API alone. Where it has blocks, their starts wait."""
    return not traits(api).blocks and are_known(tuple(rules))


@lru_cache(maxsize=32)
def are_known(rules: tuple[Rule, ...]) -> bool:
    """Whether it is known of all repairs of replies by these rules what they leave alone."""
    return all(_is_known(type(rule)) for rule in rules)


def _is_known(kind: type[Rule]) -> bool:
    """Whether a rule repairs no replies, or is shipped."""
    if kind.rewriter is Rule.rewriter:
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and Path(file).parent == shipped("rules")
