"""Calls of a stream that are followed by index: one id for each, an index for each.

Theory of operation. Whether an announcement (an id or a name in a later event) begins another call can depend on what comes
after it; as long as that is open, it and all that follows wait. Nearly always the answer stands in the same frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wirelint.apis.traits import traits
from wirelint.events import (
    CallUpdate,
    Close,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    ReplyMeta,
    Start,
    StreamViolation,
)
from wirelint.fix import AppliedFix, RewriteContext
from wirelint.fixes.names import may_repeat
from wirelint.history.minting import mint
from wirelint.history.succession import CheckResult, Succession
from wirelint.model import Arguments, Json

_BLANK = " \t\r\n"
_MOST_WAITING = 256
"""Events that wait for what follows an announcement; nearly always it is the next one."""


class _Follower:
    """Judges every announcement of a call, and asks a subclass what becomes of it."""

    phase: ClassVar[int] = 1
    heeds_text: ClassVar[bool] = False

    def __init__(self, context: RewriteContext) -> None:
        self._situation = context
        self._own = traits(context.exchange.api)
        self._calls: dict[int, Succession] = {}
        self._choices: dict[int, int] = {}
        self._waiting: list[Event] = []

    @property
    def held(self) -> int | None:
        return self._waiting[0].frame.number if self._waiting and self._waiting[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._waiting:
            return self._take(event)
        label = self._waiting[0]
        assert isinstance(label, CallUpdate)
        follows = self._settles(label, event)
        if follows is None and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(event)
            return ()
        _, *waiting = self._waiting
        self._waiting = []
        out = list(self._judged(label, follows=bool(follows)))
        for one in (*waiting, event):
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        waiting, self._waiting = self._waiting, []
        return [made for event in waiting for made in self._released(event)]

    def _released(self, event: Event) -> Iterable[Event]:
        if isinstance(event, CallUpdate) and event.block in self._calls:
            return self._judged(event, follows=False)
        return self._take(event)

    def _settles(self, label: CallUpdate, event: Event) -> bool | None:
        """Whether argument text follows an announcement; None as long as it may still come."""
        match event:
            case Delta(block=block) if block == label.block:
                return True if event.text.strip(_BLANK) else None
            case CallUpdate(block=block) | Close(block=block) if block == label.block:
                return False
            case Start(choice=choice) | Finish(choice=choice) if choice == self._choices.get(label.block):
                return False
            case Done():
                return False
            case _:
                return None

    def _take(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                given = event.input not in (None, {}, "", [])
                self._calls[event.block] = Succession(event.id, event.name, given=given, repeated=self._own.ends_repeat)
                self._choices[event.block] = event.choice
                return self._begins(event)
            case CallUpdate() if (calls := self._calls.get(event.block)) is not None:
                if calls.undecided(event.id, event.name):
                    self._waiting.append(event)
                    return ()
                return self._judged(event, follows=False)
            case Delta() if (calls := self._calls.get(event.block)) is not None:
                calls.text(event.text)
                return self._goes_on(event)
            case _:
                return self._goes_on(event)

    def _judged(self, label: CallUpdate, *, follows: bool) -> Iterable[Event]:
        calls = self._calls[label.block]
        verdict = calls.judge(label.id, label.name, follows=follows)
        out = self._announced(label, verdict, calls)
        calls.take(verdict, label.id, label.name)
        return out

    def _begins(self, start: Start) -> Iterable[Event]:
        return (start,)

    def _announced(self, label: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        """What becomes of an announcement; `calls` still stands before it."""
        return (label,)

    def _goes_on(self, event: Event) -> Iterable[Event]:
        return (event,)


class CallIds(_Follower):
    """Takes out the ids that come after the first one of a call. `told` gets the announcement and the first id."""

    def __init__(self, context: RewriteContext, told: Callable[[CallUpdate, str], None]) -> None:
        super().__init__(context)
        self._told = told
        self._known: set[int] = set()

    def _announced(self, label: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        if verdict != "stray":
            return (label,)
        if label.block not in self._known:
            self._known.add(label.block)
            self._told(label, calls.id or "")
        return ()


class SaidOnce:
    """Has only the first event of a call say its id and name. `told` gets the event that first says one of them again.

    Delta by delta is written anew, from then on, by what it adds.
    """

    phase: ClassVar[int] = 1
    heeds_text: ClassVar[bool] = False
    held: int | None = None

    def __init__(self, told: Callable[[StreamViolation], None]) -> None:
        self._told = told
        self._starts: dict[int, Start] = {}
        self._acts = False

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                self._starts[event.block] = event
            case StreamViolation(kind="said-again"):
                self._acts = True
                self._told(event)
            case Delta() if self._acts and (start := self._starts.get(event.block)) is not None:
                repeats = any(word and may_repeat(event.frame, word) for word in (start.id, start.name))
                return (event._replace(),) if repeats and event.frame is not start.frame else (event,)
            case CallUpdate() if self._acts and (start := self._starts.get(event.block)) is not None:
                again = event.id in (None, start.id) and event.name in (None, start.name)
                return () if again else (event,)  # under another index, or none
            case _:
                pass
        return (event,)

    def release(self) -> Iterable[Event]:
        return ()


class ReplyIds:
    """Gives every event of a stream the id of the first. `told` gets the first other one and the first."""

    phase: ClassVar[int] = 1
    patient: ClassVar[bool] = True
    held: int | None = None

    def __init__(self, context: RewriteContext, told: Callable[[ReplyMeta, str], None]) -> None:
        self._situation = context
        self._told = told
        self._everywhere = traits(context.exchange.api).head_everywhere
        self._first: str | None = None
        self._stray = self._over = self._known = False
        self._stamped: Frame | None = None

    def push(self, event: Event) -> Iterable[Event]:
        if self._over:
            return (event,)
        if isinstance(event, Failure) or (isinstance(event, StreamViolation) and event.kind == "after-end"):
            self._over = True  # an error has an id of its own, and after the end nobody listens
            return (event,)
        if isinstance(event, ReplyMeta):
            return self._head(event)
        frame = event.frame
        if not self._stray or frame is None or frame is self._stamped or isinstance(event, (Done, StreamViolation)):
            return (event,)
        if not (frame.data or "").lstrip().startswith("{"):
            return (event,)
        self._stamped = frame
        return ReplyMeta(self._first, None, frame), event

    def release(self) -> Iterable[Event]:
        return ()

    def _head(self, head: ReplyMeta) -> Iterable[Event]:
        if not head.id or any(isinstance(event, Failure) for event in self._situation.frame_events):
            self._stray = False
            return (head,)
        self._first = self._first or head.id
        self._stray = head.id != self._first and self._everywhere
        if head.id == self._first:
            return (head,)
        if not self._known:
            self._known = True
            self._told(head, self._first)
        self._stamped = head.frame
        return (ReplyMeta(self._first, head.model, head.frame),)


class CallNumbers(_Follower):
    """Makes a call of its own of each that begins under an index that is taken, and numbers those without an index.

    The number itself is the writer's business: it numbers what begins. `numbered` and `split` make the records of a call
    that had no index, and of one that shared it (the announcement, its new id, the call that held the index).
    """

    def __init__(
        self,
        context: RewriteContext,
        numbered: Callable[[Start], AppliedFix],
        split: Callable[[CallUpdate, str, Succession], AppliedFix],
        *,
        needs_index: bool,
    ) -> None:
        super().__init__(context)
        self._numbered, self._split = numbered, split
        self._needs_index = needs_index
        self._starts: dict[int, Start] = {}
        self._now: dict[int, int] = {}
        """The block that events of a block now belong to, where that is another."""
        self._unnumbered: set[int] = set()
        self._minted: set[int] = set()
        self._open: set[int] = set()
        self._ids: set[tuple[int, str]] = set()

    def _begins(self, start: Start) -> Iterable[Event]:
        self._starts[start.block] = start
        self._open.add(start.block)
        if start.id:
            self._ids.add((start.choice, start.id))
            self._situation.taken.add(start.id)
        if start.wire_index is not None or start.form == "legacy" or not self._needs_index:
            return (start,)
        self._unnumbered.add(start.block)
        self._situation.repairs.append(self._numbered(start))
        return (start._replace(),)

    def _announced(self, label: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        if verdict == "anew":
            return self._another(label, calls)
        block = self._now.get(label.block)
        if block is None and label.block not in self._unnumbered:
            return (label,)
        block = label.block if block is None else block
        id_ = None if block in self._minted or label.id == calls.id else label.id
        name = None if label.name == calls.name else label.name
        return (label._replace(block=block, id=id_, name=name),) if id_ or name else ()

    def _another(self, label: CallUpdate, calls: Succession) -> Iterable[Event]:
        first = self._starts[label.block]
        block = self._situation.new_block()
        id_ = label.id
        if not id_ or (first.choice, id_) in self._ids:
            id_ = mint(self._situation, label.name or calls.name)
            self._minted.add(block)
        self._ids.add((first.choice, id_))
        self._situation.taken.add(id_)
        self._situation.repairs.append(self._split(label, id_, calls))
        before = self._now.get(label.block, label.block)
        closed = [Close(before, label.frame)] if before in self._open and self._own.blocks else []
        self._open.discard(before)
        self._open.add(block)
        self._now[label.block] = block
        start = Start(
            block,
            "tool_call",
            first.pointer,
            first.choice,
            label.frame,
            None,
            id_,
            label.name or calls.name,
            self._input(label.frame),
            first.form,
            max(label.item, 0),
        )
        return *closed, start

    def _goes_on(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, (Delta, Close)):
            return (event,)
        block = self._now.get(event.block, event.block)
        if isinstance(event, Close):
            self._open.discard(block)
        if block == event.block:
            return (event._replace(),) if block in self._unnumbered else (event,)
        return (event._replace(block=block),)

    def _input(self, frame: Frame | None) -> Json:
        """What a block began with, when it began under the index of another."""
        if self._own.arguments == "text":
            return None
        if frame is None or frame.data is None or '"content_block"' not in frame.data:
            return {}
        document = Arguments(frame.data).mapping or {}
        block = document.get("content_block")
        return block.get("input") if isinstance(block, dict) else {}
