"""What a fix is made of: permission, a record of what was changed, rewriters of replies, edits of requests.

Theory of operation. A reply passes a chain of rewriters, one per rule that can repair replies. Each takes the events of
the reply (`wirelint.events`) one by one and hands on events: the same object where it changes nothing, others where it
does, none where it holds something back or takes it out. What it makes carries the frame of the event that it was made
from, so that a writer can keep what else stood there. A rewriter that holds something back says since which frame; the
frames from there on wait, and so nothing is ever reordered.

A request is whole when it is repaired, so its repairs are edits of places in the body: what no edit touches stays as it
is, to the byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from wirelint.events import Event
from wirelint.model import Exchange, Json, Request, Side

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

Safety = Literal["safe", "unsafe"]
"""`safe` loses nothing and the meaning is certain; `unsafe`: the client will do something it would not have done."""

MOST_HELD = 64 << 10
"""Characters of one block that a rewriter may hold back; above it, it hands on what it has, as it came."""

SAFETIES: tuple[Safety, ...] = ("safe", "unsafe")


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """One change that was made. `title` says what was done: `restored functions.read:0 on the call and its result`.

    `before` and `after` are what stood there and what stands there now, shortened where long; either may be empty.
    `pointer` is a JSON Pointer into the body of `side` as it came, `event` the number of the stream event.
    """

    code: str
    name: str
    safety: Safety
    side: Side
    title: str
    pointer: str | None = None
    event: int | None = None
    before: str = ""
    after: str = ""

    @property
    def patch(self) -> str:
        """The change as lines that begin with `-` and `+`."""
        lines = [f"- {line}" for line in self.before.split("\n")] if self.before else []
        lines += [f"+ {line}" for line in self.after.split("\n")] if self.after else []
        return "\n".join(lines)


class FixPolicy:
    """Which fixes may be made: up to which safety, and of which rules. `NO_FIXES` permits none."""

    __slots__ = ("_allowed", "_rules", "clean_history", "most")

    def __init__(
        self, most: Safety | None, fixable: Callable[[str], bool] = lambda _: True, *, clean_history: bool = False
    ) -> None:
        """`most`: the highest safety that is allowed, None for none. `fixable` is asked with a rule's code.

        `clean_history`: whether earlier turns of the assistant may be rewritten, which costs the vendor's prompt cache.
        """
        self.most = most
        self.clean_history = clean_history
        self._allowed = () if most is None else SAFETIES[: SAFETIES.index(most) + 1]
        self._rules = fixable

    def __bool__(self) -> bool:
        return bool(self._allowed)

    def allows(self, code: str, safety: Safety) -> bool:
        return safety in self._allowed and self._rules(code)


NO_FIXES = FixPolicy(None)


@dataclass(slots=True, eq=False)
class RewriteContext:
    """All that a rewriter may know of the exchange whose reply it repairs.

    `exchange` has no reply yet. `frame_events` are the events, as they were read, of the frame whose events are being
    pushed: all events of the reply when it is a whole body, so that a rewriter can look ahead where that is possible.
    `repairs` is filled by the rewriters as they act.
    """

    exchange: Exchange
    ledger: Ledger
    permit: FixPolicy
    streamed: bool
    own: Request | None = None
    """The client's own request, where the exchange has the one that was sent in its place."""
    frame_events: Sequence[Event] = ()
    repairs: list[AppliedFix] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a person should know about repairs that were not made: limits that were reached."""
    taken: set[str] = field(default_factory=set)
    """Ids of calls that stand in the request or in the reply; a new one must be none of them."""
    next_number: int = 0
    """The number that the next counted id (`functions.NAME:N`) has at least; `text.minting` keeps it."""
    _blocks: int = 1 << 32
    _minted: int = 0

    @property
    def asks_for_counts(self) -> bool:
        """Return True if a repair of the request asks for token counts, for which the client did not ask."""
        return asks_for_counts(self.own, self.exchange.request)

    def event_number(self, event: Event) -> int | None:
        """Return the number of the stream event that `event` was read from; None in a whole body."""
        return event.frame.number if event.frame is not None and self.streamed else None

    def new_block(self) -> int:
        """A number for a block that a rewriter makes; no reader uses it."""
        self._blocks += 1
        return self._blocks

    def seed(self) -> str:
        """Sixty-four hexadecimal digits for an id: another at every call, the same again in every run over the exchange."""
        self._minted += 1
        return hashlib.sha256(f"{self.exchange.id}/{self._minted}".encode("utf-8", "surrogatepass")).hexdigest()


def asks_for_counts(own: Request | None, sent: Request | None) -> bool:
    """The same of the client's own request and the one that was sent in its place."""
    return own is not None and sent is not None and own.wants_usage is None and sent.wants_usage is True


class Rewriter(Protocol):
    """Repairs one reply while it passes. A new one is made for every reply.

    `push` and `release` return events in wire order. They may return the event itself (untouched), events made with
    `event._replace(…)` or from scratch with `frame` set to the frame that they belong to, or nothing.

    `held` is the number of the first frame of which something is held back, None when nothing is. `release` is called
    when the reply is over in any way, when a limit is reached, and when something failed: it hands on all that is held, as
    it came, and the rewriter goes on from there. A reply that ends well has shown that by `Finish` or `Done` before;
    whatever waits for the end of a candidate is decided there.

    A class may say `heeds_text = False`: text and reasoning are nothing to it while it holds nothing. It may say
    `patient = True`: text in which nothing can begin (`rewriters.quiet`) may come to it late and in one piece, once it has
    left already; a property of that name says it for the moment. Where a rewriter in a chain says neither, all text goes
    through it at once. `phase` is its place.

    A class may have a method `note(event: Delta) -> bool`: it is told of such text, of which nothing can come, and only
    keeps what it has to know of it. False: it wants to have it pushed. It may have a method `forget()`: the reply is over,
    and what of it holds itself in a circle is let go of. It may have a method `leave() -> Iterable[Event]`: too much
    markup has come (`text.loops`), so it decides on what has come and then leaves all text as it comes.
    """

    @property
    def held(self) -> int | None: ...

    def push(self, event: Event) -> Iterable[Event]: ...

    def release(self) -> Iterable[Event]: ...


class Edit(NamedTuple):
    """A change at one place of a request's body.

    `replace` puts `value` in the place of what stands at `pointer`, or adds a member to an object that lacks it;
    `remove` takes the member or the array's element out; `insert` puts `value` before the array's element, which stays.
    Pointers are those of the body as it came.
    """

    op: Literal["replace", "remove", "insert"]
    pointer: str
    value: Json = None


class Answer(NamedTuple):
    """The JSON document that a client gets in the place of an upstream's reply, and what to tell about it.

    `edits` leave of the request what is sent all the same; `document` is an array then, and joins the reply to that.
    """

    document: Json
    repair: AppliedFix
    edits: Sequence[Edit] = ()
    status: int = 200


RequestFix: TypeAlias = "tuple[Sequence[Edit], AppliedFix]"
"""Edits that belong together, and what to tell about them."""
