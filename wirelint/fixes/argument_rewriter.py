"""Arguments of calls, repaired while they stream.

Theory of operation. A watcher follows the text of each call (`wirelint.arguments.argument_watchers`). As long as nothing is
suspicious, deltas pass as they are. From the first suspicious place on, the call's events are kept, and with them what
comes later in the same candidate; when the call is over, its whole text is judged by the function that the rule uses, and
what the verdict has beyond the text that has left is sent in the place of what was kept. A call is over when another part
follows its close, when another call begins and its own text is complete (servers may fill calls in turns), or when the
candidate ends. What the end must confirm, since a cut by length is no fault, waits for it.

A whole body needs no waiting: all of it is there, and what follows a call can be looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import orjson

from wirelint.apis.traits import traits
from wirelint.arguments.argument_faults import REDACTED, claims_all
from wirelint.arguments.argument_repairs import Change
from wirelint.arguments.argument_watchers import Everything, Watcher
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Failure, Finish, Fold, Frame, Start, StreamViolation
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.history.minting import mint_where_used
from wirelint.model import Json, Tool, ToolCall
from wirelint.rule import Rule

# What is known of a call whose arguments are followed, and the queue of a candidate in which its events wait.


@dataclass(slots=True, eq=False)
class Entry:
    """An event in the queue of its candidate. `end`: length of its call's text with it. `out`: what leaves in its place."""

    event: Event
    out: list[Event]
    end: int
    kept: bool

    @property
    def size(self) -> int:
        return len(self.event.text) if isinstance(self.event, Delta) else 0


@dataclass(slots=True, eq=False)
class Call:
    """A call that is followed. `kept` are its entries that must not leave yet, `last` is its last one in the queue.

    Of what has left only the text and the labels stay, and no frames: a frame is many times as long as what it brings.
    """

    start: Start
    name: str | None
    watcher: Watcher | None = None
    length: int = 0
    kept: deque[Entry] = field(default_factory=deque)
    last: Entry | None = None
    closed: bool = False
    tried: bool = False
    _texts: list[str] = field(default_factory=list)
    _labels: list[tuple[int, CallUpdate]] = field(default_factory=list)

    @classmethod
    def of(cls, start: Start) -> Call:
        return cls(start._replace(frame=_bare(start.frame)), start.name)

    @property
    def sent(self) -> int:
        """How much of the text has left."""
        return self.kept[0].end - self.kept[0].size if self.kept else self.length

    def add(self, text: str) -> None:
        self._texts.append(text)
        self.length += len(text)

    def label(self, label: CallUpdate) -> None:
        self._labels.append((self.length, label._replace(frame=_bare(label.frame))))
        self.name = self.name or label.name

    def assembled(self) -> ToolCall:
        """The call as the rules see it."""
        fold = Fold(streamed=True)
        fold.push(self.start)
        text, place = "".join(self._texts), 0
        for offset, label in self._labels:
            fold.push(Delta(self.start.block, text[place:offset], self.start.frame))
            fold.push(label)
            place = offset
        fold.push(Delta(self.start.block, text[place:], self.start.frame))
        return fold.reply().choices[0].calls[0]


def _bare(frame: Frame | None) -> Frame | None:
    return None if frame is None else Frame(frame.number, b"", None, None)


@dataclass(slots=True, eq=False)
class Queue:
    entries: deque[Entry] = field(default_factory=deque)
    size: int = 0


def spread(entries: Sequence[Entry], rest: str) -> None:
    """Lets the kept deltas say `rest`: those that say it already stay, the first other one says what is left."""
    for number, entry in enumerate(entries):
        delta = entry.event
        assert isinstance(delta, Delta)
        last = number + 1 == len(entries)
        if rest.startswith(delta.text) and not (last and len(rest) > len(delta.text)):
            rest = rest[len(delta.text) :]
            continue
        entry.out = [delta._replace(text=rest)] if rest else []
        rest = ""


_MOST_BEHIND = 16 * MOST_HELD
"""Characters of a candidate that may wait behind what is kept."""


class ArgumentRewriter(ABC):
    """What the three repairs share. A subclass says what to watch for and what to make of a call."""

    phase: ClassVar[int] = 4
    heeds_text: ClassVar[bool] = False
    ends_whole: ClassVar[bool] = True
    """Whether a call is judged only when it is known that it was not cut."""

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule = rule
        self._situation = context
        self._own = traits(context.exchange.api)
        self._choices: dict[int, int] = {}
        self._calls: dict[int, Call] = {}
        self._queues: dict[int, Queue] = {}
        self._keeping: dict[int, dict[int, Call]] = {}
        """By candidate and block: the calls of which something is kept."""
        self._fresh: dict[int, dict[int, Call]] = {}
        """Those that the next start may settle."""
        self._reasons: dict[int, str] = {}
        self._last: dict[int, int] = {}
        """By candidate: the block of its last call so far; where blocks do not overlap, of its last part."""
        self._tools: dict[str, Tool | None] = {}
        self._unread = self._failed = False
        self._looked_ahead = False

    # What a subclass says.

    @abstractmethod
    def watch(self, call: Call) -> Watcher | None:
        """Follows the argument text of a call; None when there is nothing to repair in it."""

    @abstractmethod
    def keeps_start(self, start: Start) -> bool:
        """Whether the input of a start may have to be changed."""

    @abstractmethod
    def judge(self, call: ToolCall) -> Change | None:
        """What to make of a call that is over."""

    def over_at_close(self, call: Call) -> bool:
        """Whether the close of a block alone shows that nothing is wrong with what is kept."""
        return call.watcher is None or not call.watcher.suspicious

    # --- the interface of the pipeline ------------------------------------------------------------------------------

    @property
    def held(self) -> int | None:
        if not self._queues:
            return None
        frames = [queue.entries[0].event.frame for queue in self._queues.values()]
        return min((frame.number for frame in frames if frame is not None), default=None)

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Delta():
                return self._delta(event)
            case Start():
                return self._start(event)
            case CallUpdate(block):
                return self._label(event, self._calls.get(block))
            case Close(block):
                return self._close(event, self._calls.get(block))
            case Finish(choice, reason):
                self._reasons[choice] = reason
                return [*self._settle(choice), event]
            case Done():
                return [*self._settle_all(), event]
            case Failure():
                self._failed = True
                return [*self.release(), event]
            case StreamViolation("broken-json"):
                self._unread = True
                return (event,)
            case _:
                return (event,)

    def release(self) -> Sequence[Event]:
        for keeping in self._keeping.values():
            for call in list(keeping.values()):
                self._leave(call)
        return [event for choice in list(self._queues) for event in self._flush(choice)]

    # --- events -----------------------------------------------------------------------------------------------------

    def _delta(self, event: Delta) -> Iterable[Event]:
        call = self._calls.get(event.block)
        if call is None:
            return self._pass(event, self._choices.get(event.block, 0)) if self._queues else (event,)
        call.add(event.text)
        if call.watcher is None:
            call.watcher = self.watch(call)
            if call.watcher is None:
                self._leave(call)
                return self._pass(event, call.start.choice)
        safe = call.watcher.feed(event.text)
        if not self._queues and safe >= call.length:
            return (event,)
        self._let_go(call, safe)
        kept = safe < call.length
        if kept and self._situation.streamed and call.length - safe > MOST_HELD:
            self._note(call)
            self._leave(call)
            kept = False
        return self._pass(event, call.start.choice, call, kept=kept)

    def _start(self, event: Start) -> Iterable[Event]:
        self._choices[event.block] = event.choice
        if self._situation.streamed and (self._own.blocks or event.kind == "tool_call"):
            self._last[event.choice] = event.block
        out = self._settle_before(event)
        if event.kind != "tool_call" or event.form == "custom":
            return [*out, *self._pass(event, event.choice)]
        call = Call.of(event)
        self._calls[event.block] = call
        kept = self.keeps_start(event)
        if kept:
            call.watcher = Everything()
        return [*out, *self._pass(event, event.choice, call, kept=kept)]

    def _label(self, event: CallUpdate, call: Call | None) -> Iterable[Event]:
        if call is not None:
            call.label(event)
        return self._pass(event, self._choices.get(event.block, 0), call)

    def _close(self, event: Close, call: Call | None) -> Iterable[Event]:
        choice = self._choices.get(event.block, 0)
        out = self._pass(event, choice, call)
        if call is None:
            return out
        call.closed = True
        if not call.kept or self.over_at_close(call):
            self._leave(call)
            out = [*out, *self._flush(choice)]
        return out

    # --- the queue of a candidate -------------------------------------------------------------------------------------

    def _pass(self, event: Event, choice: int, call: Call | None = None, *, kept: bool = False) -> Sequence[Event]:
        """Lets an event go, or puts it behind what is kept of its candidate."""
        queue = self._queues.get(choice)
        if queue is None:
            if not kept:
                return (event,)
            queue = self._queues[choice] = Queue()
        entry = Entry(event, [event], call.length if call is not None else 0, kept)
        queue.entries.append(entry)
        queue.size += entry.size
        if call is not None and kept:
            call.kept.append(entry)
            self._keep(call)
        if call is not None and call.kept:
            call.last = entry
        if queue.size > _MOST_BEHIND and self._situation.streamed:
            for other in list(self._keeping.get(choice, {}).values()):
                self._note(other)
                self._leave(other)
        if not self._situation.streamed and call is not None and kept:
            self._look_ahead()
            self._decide(call, final=True)
        return self._flush(choice)

    def _keep(self, call: Call) -> None:
        choice, block = call.start.choice, call.start.block
        self._keeping.setdefault(choice, {})[block] = call
        if not call.tried:
            self._fresh.setdefault(choice, {})[block] = call

    def _let_go(self, call: Call, safe: int | None = None) -> None:
        """The entries of a call up to this length of its text need not be kept any longer; all of them by default."""
        while call.kept and (safe is None or call.kept[0].end <= safe):
            call.kept.popleft().kept = False
        if not call.kept:
            call.last = None
            self._keeping.get(call.start.choice, {}).pop(call.start.block, None)
            self._fresh.get(call.start.choice, {}).pop(call.start.block, None)

    def _leave(self, call: Call) -> None:
        """Follows a call no further; what is still kept of it leaves."""
        self._let_go(call)
        self._calls.pop(call.start.block, None)

    def _note(self, call: Call) -> None:
        self._situation.notes.append(
            f"{self._rule.name}: the arguments of {call.name or 'a call'} are too long to be held back; left as they came"
        )

    def _flush(self, choice: int) -> list[Event]:
        queue = self._queues.get(choice)
        out: list[Event] = []
        if queue is None:
            return out
        while queue.entries and not queue.entries[0].kept:
            entry = queue.entries.popleft()
            queue.size -= entry.size
            out += entry.out
        if not queue.entries:
            del self._queues[choice]
        return out

    # --- the end of a call --------------------------------------------------------------------------------------------

    def _settle_before(self, start: Start) -> list[Event]:
        """What another part of the candidate settles: the calls that are closed, or complete when a call follows."""
        fresh = self._fresh.get(start.choice)
        if not fresh:
            return []
        for block, call in list(fresh.items()):
            if call.closed or start.kind == "tool_call":
                fresh.pop(block, None)
                self._decide(call, final=call.closed)
        return self._flush(start.choice)

    def _settle(self, choice: int) -> list[Event]:
        """The candidate is over."""
        for call in list(self._keeping.get(choice, {}).values()):
            self._decide(call, final=True)
        return self._flush(choice)

    def _settle_all(self) -> list[Event]:
        return [event for choice in list(self._queues) for event in self._settle(choice)]

    def _decide(self, call: Call, *, final: bool) -> None:
        watcher = call.watcher
        if watcher is None or not watcher.suspicious:
            if watcher is None or final or watcher.complete:
                self._let_go(call)
            return
        if call.tried and not final:
            return
        call.tried = True
        made = call.assembled()
        change = self.judge(made) if self._is_over(call.start, made) else None
        if change is not None and not self._situation.permit.allows(self._rule.code, change.safety):
            change = None
        if change is not None and change.text.startswith(made.deltas[: call.sent]):
            self._carry_out(call, made, change)
        elif final or (made.arguments.values and not made.arguments.rest):
            self._leave(call)

    def _is_over(self, start: Start, call: ToolCall) -> bool:
        """Whether a call may be judged: the same question that the rules ask."""
        if self.ends_whole and (self._unread or REDACTED in call.arguments.text):
            return False
        if self._last.get(start.choice) != start.block:
            return True  # what cuts a reply cuts its last call
        reason = self._reasons.get(start.choice)
        return not self._failed and (not self.ends_whole or reason is None or claims_all(reason))

    def _tool(self, name: str | None) -> Tool | None:
        request = self._situation.exchange.request
        if name is None or request is None:
            return None
        if name not in self._tools:
            self._tools[name] = request.tool(name)
        return self._tools[name]

    # --- the repair ---------------------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, made: ToolCall, change: Change) -> None:
        rest = change.text[call.sent :]
        entries = list(call.kept)
        where = next((entry for entry in entries if entry.end > change.offset), entries[0]).event.frame
        if isinstance(entries[0].event, Start):
            rest = self._refill(entries[0], rest, alone=len(entries) == 1)
            del entries[0]
        spread(entries, rest)
        if change.separated:
            self._separate(call, change)
        came = [made.start_input.text] if made.start_input is not None else []
        self._situation.repairs.append(
            self._rule.repair(
                "response",
                change.safety,
                f"{made.name or 'a call without a name'}: {change.done}",
                made.pointer,
                event=where.number if where is not None and self._situation.streamed else None,
                before="\n".join([*came, made.deltas] if made.deltas else came),
                after="\n".join([change.text, *(separated.text for separated in change.separated)]),
            )
        )
        self._leave(call)

    def _refill(self, entry: Entry, text: str, *, alone: bool) -> str:
        """Changes the input of a start; gives the text that is left for deltas. `alone`: the call has no deltas."""
        start = entry.event
        assert isinstance(start, Start)
        if alone and self._own.arguments != "text":
            given: Json = orjson.loads(text)
            entry.out = [start._replace(input=given)]
            return ""
        entry.out = [start._replace(input={} if self._own.arguments == "block" else None)]
        if not alone:
            return text
        entry.out.append(Delta(start.block, text, start.frame, start.item))
        return ""

    def _separate(self, call: Call, change: Change) -> None:
        """Puts calls of their own behind the call that they were glued to. Its labels that named them go."""
        choice = call.start.choice
        for entry in self._queues[choice].entries:
            event = entry.event
            if isinstance(event, CallUpdate) and event.block == call.start.block and entry.end >= change.offset:
                entry.out = []
        last = call.last
        assert last is not None
        taken = self._situation.taken
        for separated in change.separated:
            known = separated.id is not None and separated.id not in taken
            id_ = separated.id if known else mint_where_used(self._situation, separated.name)
            if id_ is not None:
                taken.add(id_)
            last.out += self._made(call.start, separated.text, separated.name, id_, last.event.frame)

    def _made(self, like: Start, text: str, name: str | None, id_: str | None, frame: Frame | None) -> list[Event]:
        block = self._situation.new_block()
        self._choices[block] = like.choice
        return [
            Start(block, "tool_call", like.pointer, like.choice, frame, None, id_, name),
            Delta(block, text, frame),
            Close(block, frame),
        ]

    # --- whole bodies ---------------------------------------------------------------------------------------------------

    def _look_ahead(self) -> None:
        """Notes how each candidate of a whole body ends."""
        if self._looked_ahead:
            return
        self._looked_ahead = True
        for event in self._situation.frame_events:
            match event:
                case Start(kind=kind):
                    if self._own.blocks or kind == "tool_call":
                        self._last[event.choice] = event.block
                case Finish(choice, reason):
                    self._reasons[choice] = reason
                case Failure():
                    self._failed = True
                case StreamViolation("broken-json"):
                    self._unread = True
                case _:
                    pass
