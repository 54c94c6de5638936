"""Which announcement within a streamed call begins another call, which one merely carries another id.

Theory of operation. The wire's index says which call an event belongs to, and servers get it wrong in two ways: one index
for several calls, and another id with every event of one call. What tells them apart is whether the call before was
complete when the announcement came, and what follows it. A `Succession` follows the calls under one index, event by
event: the rules replay a finished call through it, the repairs ask it while the call passes, so both judge alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from wirelint.apis.traits import traits
from wirelint.arguments.json_continuation import Scanner
from wirelint.model import Piece, ToolCall

CheckResult = Literal["same", "stray", "anew"]
"""`same`: it goes on with the call. `stray`: it does, under another id. `anew`: another call begins."""


class Succession:
    """The calls under one index. `id` and `name` are those of the call that is being written.

    A new id alone may be a server that makes one up for every event, and another name may be the rest of the first; with
    the arguments complete before it, or with both at once, it is another call. Where a server was seen making up ids, an
    announcement after the arguments that says nothing but another id is one more of them, and so it is where the event that
    ends a call repeats its id.
    """

    __slots__ = ("_given", "_repeated", "_scanner", "id", "name", "unstable")

    def __init__(self, id_: str | None, name: str | None, *, given: bool = False, repeated: bool = False) -> None:
        """`given`: the arguments came as a value with the start of the call. `repeated`: its id comes again at its end."""
        self._repeated = repeated
        self.id = id_ or None
        self.name = name or None
        self.unstable = False
        self._given = given
        self._scanner = Scanner()

    @property
    def complete(self) -> bool:
        """Return True if the arguments so far are whole values, the last of them an object."""
        scanner = self._scanner
        return self._given or (scanner.closed is not None and scanner.second is None and scanner.top == "{")

    def text(self, piece: str) -> None:
        """Argument text of the call."""
        while piece:
            before = self._scanner.length
            self._scanner.feed(piece)
            if self._scanner.second is None:
                return
            piece = piece[self._scanner.second - before :] if self._scanner.second >= before else ""
            self._scanner = Scanner()

    def undecided(self, id_: str | None, name: str | None) -> bool:
        """Return True if an announcement can only be judged by what follows it."""
        return self.judge(id_, name, follows=True) != self.judge(id_, name, follows=False)

    def judge(self, id_: str | None, name: str | None, *, follows: bool) -> CheckResult:
        """What an announcement is. `follows`: argument text comes after it, before the next one."""
        other_id = bool(id_ and self.id and id_ != self.id)
        other_name = bool(name and self.name and name != self.name)
        if not other_id and not other_name:
            return "same"
        if other_id and other_name:
            return "anew"
        if not self.complete:
            return "stray" if other_id else "same"
        if name and (follows or not self.unstable):
            return "anew"
        # Without a name it is no call that anybody could run: whatever follows came under a made-up id.
        return "stray" if other_id and (follows or self.unstable or self._repeated) else "same"

    def take(self, verdict: CheckResult, id_: str | None, name: str | None) -> None:
        """Goes on after an announcement that was judged."""
        if verdict == "anew":
            self.id, self.name = id_ or None, name or self.name
            self._given = False
            self._scanner = Scanner()
        elif verdict == "stray":
            self.unstable = True
        else:
            self.id, self.name = self.id or id_ or None, self.name or name or None


class Announced(NamedTuple):
    """A later announcement of a call, as it was judged. `id` is that of the call which it came upon."""

    piece: Piece
    verdict: CheckResult
    id: str | None


def announced(call: ToolCall, api: str) -> Iterator[Announced]:
    """The announcements of a streamed call after its first, judged one by one."""
    if not call.pieces:
        return
    first, *later = call.pieces
    calls = Succession(first.id, first.name, given=call.start_input is not None, repeated=traits(api).ends_repeat)
    calls.text(call.deltas[: later[0].offset] if later else "")
    ends = [*(two.offset for _, two in pairwise(later)), len(call.deltas)]
    for piece, end in zip(later, ends, strict=False):
        text = call.deltas[piece.offset : end]
        verdict = calls.judge(piece.id, piece.name, follows=bool(text.strip(" \t\r\n")))
        yield Announced(piece, verdict, calls.id)
        calls.take(verdict, piece.id, piece.name)
        calls.text(text)
