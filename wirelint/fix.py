"""Types of fixes: permission, records of changes, rewriters of replies, edits of requests.

Theory of operation. A reply passes a chain of rewriters, one per rule that can fix replies. Each gets the events of the
reply (`wirelint.events`) one by one and returns events: the event itself if it changes nothing, other events if it does,
none if it holds the event back or removes it. A new event carries the frame of the event that it replaces, so that the
writer can keep the rest of the frame. A rewriter that holds events back reports the first frame that waits; later frames
wait too, so nothing is reordered.

A request is complete when it is fixed, so its fixes are edits of places in the body. Bytes outside of the edits stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from wirelint.events import Close, Delta, Done, Event, Finish, Start
from wirelint.model import Exchange, Json, Request, Side

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

Safety = Literal["safe", "unsafe"]
"""`safe` loses nothing and the meaning is certain; `unsafe`: the client will do something it would not have done."""

MOST_HELD = 64 << 10
"""Characters of one block that a rewriter may hold back. Above the limit it releases them unchanged."""

SAFETIES: tuple[Safety, ...] = ("safe", "unsafe")


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """Record of one change. `title` is in the past tense: `restored functions.read:0 on the call and its result`.

    `before` and `after` are the replaced and the new text, shortened if long; either may be empty. `pointer` is a JSON
    Pointer into the original body of `side`, `event` the number of the stream event.
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
        """Return the change as lines that begin with `-` and `+`."""
        lines = [f"- {line}" for line in self.before.split("\n")] if self.before else []
        lines += [f"+ {line}" for line in self.after.split("\n")] if self.after else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class FixPolicy:
    """The fixes that are permitted, by safety and rule. `NO_FIXES` permits none.

    `most`: the highest permitted safety, None for none. `fixable` returns True for the code of a fixable rule.
    `clean_history`: markup may be removed from earlier turns of the assistant. The vendor's prompt cache misses once.
    """

    most: Safety | None
    fixable: Callable[[str], bool] = lambda _: True
    clean_history: bool = True

    def __bool__(self) -> bool:
        return self.most is not None

    def allows(self, code: str, safety: Safety) -> bool:
        permitted = safety == self.most or self.most == "unsafe"
        return permitted and self.fixable(code)


NO_FIXES = FixPolicy(None)


@dataclass(slots=True, eq=False)
class RewriteContext:
    """Facts about the exchange whose reply is fixed, and the records of the changes.

    `exchange` has no reply yet. `frame_events` are the events that were read from the current frame. A whole body is one
    frame, so a rewriter can look ahead in it. Rewriters append to `repairs`.
    """

    exchange: Exchange
    ledger: Ledger
    permit: FixPolicy
    streamed: bool
    own: Request | None = None
    """The client's request, if another one was forwarded instead, which `exchange` has."""
    frame_events: Sequence[Event] = ()
    repairs: list[AppliedFix] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Notes to the user on fixes that were not made because a limit was reached."""
    taken: set[str] = field(default_factory=set)
    """Ids of calls in the request or the reply. A new id must differ from them."""
    answers: dict[int, int] = field(default_factory=dict)
    """By text block, the offset at which an answer begins, after a lone closing tag that a fix has removed."""
    over: dict[int, int] = field(default_factory=dict)
    """By text block, the offset from which on a fix cuts the text, because the turn was over."""
    next_number: int = 0
    """The least number for the next counted id (`functions.NAME:N`); `history.id_demands.mint` updates it."""
    _blocks: int = 1 << 32
    _minted: int = 0

    @property
    def asks_for_counts(self) -> bool:
        """Return True if a fix of the request asks for token counts, and the client's own request does not say."""
        own, sent = self.own, self.exchange.request
        return own is not None and sent is not None and own.wants_usage is None and sent.wants_usage is True

    def event_number(self, event: Event) -> int | None:
        """Return the number of the stream event that `event` was read from; None in a whole body."""
        return event.frame.number if event.frame is not None and self.streamed else None

    def new_block(self) -> int:
        """Return a number for a block that a rewriter makes. Readers use smaller numbers."""
        self._blocks += 1
        return self._blocks

    def seed(self) -> str:
        """Return 64 hexadecimal digits for an id, new at every call, and equal in every run over the exchange."""
        self._minted += 1
        return hashlib.sha256(f"{self.exchange.id}/{self._minted}".encode("utf-8", "surrogatepass")).hexdigest()


class Rewriter(Protocol):
    """Fixes one reply in transit. A new one is made for every reply.

    `push` and `release` return events in wire order: the event itself (unchanged), events made with `event._replace(…)`,
    new events whose `frame` is the frame that they belong to, or nothing.

    `held` is the number of the first frame of which something is held back, else None. `release` is called when the reply
    is over in any way, when a limit is reached, and after a failure: it returns all held events unchanged, and the
    rewriter continues from there. A reply that ends well has a `Finish` or a `Done` before that; decisions that need the
    end of a candidate are made at that event.

    Optional members of a class. `phase`: its place in the chain. `heeds_text = False`: text and reasoning do not matter to
    it while it holds nothing. `patient = True`, or a property of that name: harmless text (`fixes.prefilter`) may come late
    and in one piece, after it has left, without token counts beside it (`Usage`). Text passes all rewriters at once if one
    of them has neither of these two.

    `push_all(events)` gives the events of pushing several one after another, for less than pushing each.

    `forget()` breaks reference cycles when the reply is over. `leave() -> Iterable[Event]` is called when the reply holds
    too much markup (`text.loops`): the rewriter decides on the text so far and lets all later text pass.
    """

    @property
    def held(self) -> int | None: ...

    def push(self, event: Event) -> Iterable[Event]: ...

    def release(self) -> Iterable[Event]: ...


class PassingRewriter:
    """A rewriter that holds nothing back. A subclass overrides `push`."""

    phase: ClassVar[float] = 1
    heeds_text: ClassVar[bool] = True

    @property
    def held(self) -> int | None:
        return None

    def release(self) -> Iterable[Event]:
        return ()


E = TypeVar("E", bound=Event)


class WaitingRewriter(Generic[E]):
    """A rewriter that holds an event and all later ones until a later event decides about the first.

    `take` gets the events while nothing is held. To start holding it calls `wait_for` and returns nothing. `decides` then
    gets each later event; once it returns True or False, or too many events wait, `settle` returns the events to send
    instead of the first, and the others are pushed again.
    """

    phase: float = 1
    heeds_text: ClassVar[bool] = False
    most_waiting: ClassVar[int] = 256

    _first: E

    def __init__(self) -> None:
        self._held: list[Event] = []

    @property
    def held(self) -> int | None:
        return first_frame(self._held)

    def push(self, event: Event) -> Iterable[Event]:
        if not self._held:
            return self.take(event)
        decided = self.decides(self._first, event)
        if decided is None and len(self._held) < self.most_waiting:
            self._held.append(event)
            return ()
        held, self._held = self._held, []
        out = list(self.settle(self._first, held[1:], event, bool(decided)))
        for one in (*held[1:], event):
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        held, self._held = self._held, []
        return held

    def wait_for(self, event: E) -> Iterable[Event]:
        """Start to hold events back, from this one on."""
        self._first = event
        self._held.append(event)
        return ()

    def take(self, event: Event) -> Iterable[Event]:
        """Return the events to send instead of `event` while nothing is held."""
        return (event,)

    def decides(self, first: E, event: Event) -> bool | None:
        """Return the decision on the first held event, given the next event; None if it is still open."""
        return False

    def settle(self, start: E, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        """Return the events to send instead of the first held event. `event`, after the `later` ones, decided."""
        return (start,)


def first_frame(events: Iterable[Event]) -> int | None:
    """Return the lowest number of a frame of which one of some waiting events is; None without one.

    It need not be the first: an event that another rewriter held may wait behind events of later frames.
    """
    return min((event.frame.number for event in events if event.frame is not None), default=None)


def ends_call(start: Start, event: Event) -> bool:
    """Return True if an event shows that a call is over: its block closes, another part begins, its candidate ends."""
    match event:
        case Close(block=block):
            return block == start.block
        case Start(choice=choice) | Finish(choice=choice):
            return choice == start.choice
        case Done():
            return True
        case _:
            return False


def completes_name(start: Start, event: Event) -> bool:
    """Return True if an event shows that the name of a call is complete: its arguments begin, or it is over."""
    if isinstance(event, Delta):
        return event.block == start.block and bool(event.text)
    return ends_call(start, event)


class Edit(NamedTuple):
    """A change at one place of a request's body.

    `replace` sets the value at `pointer`, or adds a member to an object; `remove` deletes a member or an array's element;
    `insert` puts `value` before an array's element. Pointers refer to the original body.
    """

    op: Literal["replace", "remove", "insert"]
    pointer: str
    value: Json = None


class Answer(NamedTuple):
    """The JSON document that a client gets instead of the upstream's reply, and its record.

    For a batch, `edits` reduce the request to the rest, which is forwarded; `document` is an array that joins the reply.
    """

    document: Json
    repair: AppliedFix
    edits: Sequence[Edit] = ()
    status: int = 200


RequestFix: TypeAlias = "tuple[Sequence[Edit], AppliedFix]"
"""Edits of one fix, and its record."""
