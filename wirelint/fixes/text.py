"""Base classes of fixes that change text. They hold a text back only until they have decided on it.

Theory of operation. A block of text arrives as deltas: `"<thi"`, `"nk>The"`, ` user wants`. A `TextDecider` per block reads
them. It sets the offset up to which the text is decided (`sure`), and marks stretches before that offset that are
removed or go to another block (`cut`). A delta is sent when all of its text is decided: the event itself if
its text is unchanged, so that its frame is sent byte for byte, else an event with the rest of its text. A delta whose
end is undecided waits as a whole.

Within a candidate no event overtakes another. The start of a block waits for the first text that is kept; a block
without kept text never appears. Any other event of the candidate is a pause: deciders then decide on as much text as
they can. At the end of the candidate they decide on everything, and the rewriter may put events before the end.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start
from wirelint.fix import AppliedFix, RewriteContext, Safety
from wirelint.model import Kind

_LOOSE = 256
"""Most pieces that a buffer keeps unjoined. A small string takes ten times the memory of its characters."""


class TextBuffer:
    """A text that arrives in pieces, joined when it is read."""

    __slots__ = ("_joined", "_late")

    def __init__(self) -> None:
        self._joined: list[str] = []
        self._late: list[str] = []

    def add(self, text: str) -> None:
        self._late.append(text)
        if len(self._late) >= _LOOSE:
            self._joined.append("".join(self._late))
            self._late.clear()

    def text(self) -> str:
        if self._late or len(self._joined) > 1:
            self._joined = ["".join((*self._joined, *self._late))]
            self._late.clear()
        return self._joined[0] if self._joined else ""

    def replace(self, text: str) -> None:
        self._joined = [text] if text else []
        self._late.clear()


MakeRepair = Callable[..., AppliedFix]
"""`Rule.repair` of the rule that makes the rewriter."""

Pause = Literal["other", "close", "stop"]
"""Why a text may be over: another part begins, the block closes, the candidate ends."""


@dataclass(slots=True)
class Region:
    """A stretch of a block that is removed. `moves`: it goes to another block."""

    start: int
    end: int
    moves: bool = False


@dataclass(slots=True)
class Item:
    """A waiting event; for a delta, with its block and the offsets of its text there."""

    event: Event
    block: TextBlock | None = None
    start: int = 0
    end: int = 0


@dataclass(slots=True, eq=False)
class TextBlock:
    """A block of text in transit. Offsets count the characters of its text.

    `number` is the block number under which its text is sent. `opened`: its start has been sent. `changed`: part of it
    was cut or moved. `busy`: the decider needs pauses although all text is decided. `queue` holds the waiting events of
    its candidate, `latest` is the last delta. `gone`: number of removed characters.
    """

    start: Start
    queue: deque[Item]
    number: int
    latest: Delta | None = None
    length: int = 0
    sure: int = 0
    gone: int = 0
    opened: bool = False
    changed: bool = False
    closed: bool = False
    busy: bool = False
    regions: deque[Region] = field(default_factory=deque)
    decider: TextDecider = field(init=False)

    @property
    def choice(self) -> int:
        return self.start.choice

    @property
    def waits(self) -> bool:
        """Return True if the start of the block is held back in its place."""
        return not (self.opened or self.changed or self.closed)

    @property
    def undecided(self) -> bool:
        """Return True if the decider needs to know of a pause."""
        return self.sure < self.length or self.busy

    def cut(self, start: int, end: int, *, moves: bool = False) -> None:
        """Mark a stretch as removed, or as moving to another block. A stretch that moves on from the last extends it."""
        if end <= start:
            return
        self.gone += end - start
        last = self.regions[-1] if self.regions else None
        if moves and last is not None and last.moves and last.end == start:
            last.end = end
        else:
            self.regions.append(Region(start, end, moves))

    def frame_at(self, offset: int) -> int | None:
        """Return the number of the frame that brought the text at an offset, while it waits."""
        if self.latest is not None and offset >= self.length - len(self.latest.text):
            return self.latest.frame.number if self.latest.frame is not None else 0
        found = None
        for item in self.queue:
            if item.block is self and isinstance(item.event, Delta):
                if item.start > offset:
                    break
                found = item.event.frame.number if item.event.frame is not None else 0
        return found


@dataclass(slots=True)
class Candidate:
    """The state of a candidate: its open text blocks in order, and the events that wait."""

    number: int
    blocks: list[TextBlock] = field(default_factory=list)
    queue: deque[Item] = field(default_factory=deque)
    ended: bool = False


class TextDecider(ABC):
    """Decides on the text of one block, through `block.sure` and `block.cut`. Subclasses override methods.

    `left`: nothing more is decided; all later text is forwarded, and no method is called.
    """

    def __init__(self, rewriter: TextRewriter, block: TextBlock) -> None:
        self.rewriter = rewriter
        self.block = block
        self.streamed = rewriter.context.streamed
        self.left = False

    @property
    def is_open(self) -> bool:
        """Return True if later text may change how the text so far is read."""
        return False

    @abstractmethod
    def add(self, text: str) -> None:
        """Read more text, which `block.length` includes already."""

    @abstractmethod
    def pause(self, why: Pause) -> None:
        """Decide on all text, unless the decision depends on the part after the block."""

    def give_up(self) -> None:
        """Release all undecided text unchanged."""
        self.let_go()

    @abstractmethod
    def leave(self) -> None:
        """Decide on as much text as possible, and forward all other text from now on. A cut or a move is still
        completed."""

    def let_go(self) -> None:
        self.block.sure = self.block.length

    def abandon(self, note: str) -> None:
        """Forward the text and all later text, with a note to the user."""
        self.rewriter.warn(note)
        self.stop()

    def stop(self) -> None:
        """Forward the text and all later text."""
        self.left = True
        self.let_go()

    def event_at(self, offset: int) -> int | None:
        """Return the number of the stream event that brought the text at an offset."""
        return self.block.frame_at(offset) if self.streamed else None


class TextRewriter:
    """Passes text blocks through their deciders. A subclass names the class of the deciders."""

    phase: ClassVar[float] = 3

    kinds: ClassVar[tuple[Kind, ...]] = ("text",)
    """Kinds of the blocks that may change."""
    decider: ClassVar[type[TextDecider]]

    @property
    def patient(self) -> bool:
        """Return False while later text may change the reading of text that has been sent."""
        return not any(block.decider.is_open for block in self._blocks.values())

    def __init__(self, context: RewriteContext, repair: MakeRepair) -> None:
        self.context = context
        self.repair = repair
        self._blocks: dict[int, TextBlock] = {}
        self._homes: dict[int, int] = {}
        self._candidates: dict[int, Candidate] = {}
        self._calling: set[int] = set()
        self._left = False

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def meet(self, start: Start) -> None:
        if start.kind == "tool_call":
            self._calling.add(start.choice)

    def has_calls(self, choice: int) -> bool:
        """Return True if a structured call of the candidate is known."""
        return choice in self._calling

    def moved(self, block: TextBlock, text: str, offset: int, frame: Frame | None) -> Iterable[Event]:
        """Return the events for moved text, which began at an offset of its block."""
        return ()

    def landed(self, block: TextBlock, frame: Frame | None) -> Iterable[Event]:
        """Return the events between moved text and kept text."""
        return ()

    def ending(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        """Return the events for the end of a candidate: `event`, and events before it."""
        return (event,)

    def dying(self, candidate: Candidate) -> Iterable[Event]:
        """Return events that a broken reply still needs, besides the queue."""
        return ()

    def record(
        self,
        block: TextBlock,
        title: str,
        *,
        event: int | None,
        before: str,
        after: str = "",
        safety: Safety = "unsafe",
    ) -> None:
        made = self.repair("response", safety, title, block.start.pointer, event=event, before=before, after=after)
        self.context.repairs.append(made)

    def warn(self, note: str) -> None:
        """Add a note for the user about a fix that was not made, once."""
        if note not in self.context.notes:
            self.context.notes.append(note)

    # --- the interface of the pipeline --------------------------------------------------------------------------------

    @property
    def held(self) -> int | None:
        firsts = (next(self._waiting(candidate), None) for candidate in self._candidates.values())
        return min((frame.number for frame in firsts if frame is not None), default=None)

    def _waiting(self, candidate: Candidate) -> Iterator[Frame]:
        """Yield the frames of the events that wait, the earliest first."""
        for block in candidate.blocks[-2:]:
            if block.waits and block.start.frame is not None:
                yield block.start.frame
        if candidate.queue and (frame := candidate.queue[0].event.frame) is not None:
            yield frame

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Delta(number):
                block = self._blocks.get(number)
                return self._text(block, (event,)) if block is not None else self._other(event, number)
            case Start():
                return self._start(event)
            case Close(number):
                block = self._blocks.get(number)
                if block is None:
                    return self._other(event, number)
                candidate = self._candidates[block.choice]
                out = self._pause(candidate, "other", but=block)
                if block.undecided:
                    block.decider.pause("close")
                candidate.queue.append(Item(event, block, block.length, block.length))
                return [*out, *self._flush(candidate)]
            case CallUpdate(number):
                return self._other(event, number)
            case Finish(choice):
                return self._stop(self._candidate(choice), event)
            case Done():
                return self._stop_all(event)
            case _:
                # A whole body may lack a finish reason; then its last event ends it.
                events = self.context.frame_events
                last = not self.context.streamed and bool(events) and events[-1] is event
                return self._stop_all(event) if last else (event,)

    def push_all(self, events: Sequence[Event]) -> Iterable[Event]:
        """Push several events. Consecutive deltas of one text are decided on together.

        The previous rewriter may release thousands at once: one by one, 270 deltas of a character took 70 ms.
        """
        for block, run in itertools.groupby(events, key=self._text_of):
            if block is not None:
                yield from self._text(block, [event for event in run if isinstance(event, Delta)])
            else:
                yield from (one for event in run for one in self.push(event))

    def _text_of(self, event: Event) -> TextBlock | None:
        return self._blocks.get(event.block) if isinstance(event, Delta) else None

    def release(self) -> Iterable[Event]:
        out: list[Event] = []
        for candidate in self._candidates.values():
            for block in candidate.blocks:
                if not block.decider.left:
                    block.decider.give_up()
                block.sure = block.length
            out += self._flush(candidate)
            out += [self._begin(block) for block in candidate.blocks if block.waits]
            out += self.dying(candidate)
        return out

    def leave(self) -> Iterable[Event]:
        self._left = True
        out: list[Event] = []
        for candidate in self._candidates.values():
            for block in candidate.blocks:
                if not block.decider.left:
                    block.decider.leave()
            out += self._flush(candidate)
        return out

    def forget(self) -> None:
        """Break reference cycles when the reply is over: collecting them as garbage would stop the proxy for a while."""
        for block in set(self._blocks.values()):  # a block may have two numbers
            del block.decider
            block.queue.clear()
        self._blocks.clear()
        self._candidates.clear()

    # --- events -------------------------------------------------------------------------------------------------------

    def _candidate(self, number: int) -> Candidate:
        return self._candidates.setdefault(number, Candidate(number))

    def _start(self, event: Start) -> Iterable[Event]:
        candidate = self._candidate(event.choice)
        self._homes[event.block] = event.choice
        self.meet(event)
        # In a whole body a block is complete when the next one begins.
        out = [] if self.context.streamed else self._pause(candidate, "close")
        out += self._pause(candidate, "other")
        for block in candidate.blocks:
            if block.changed:
                out += self.landed(block, event.frame)
            elif block.waits and not block.length:
                out.append(self._begin(block))
        candidate.blocks = [block for block in candidate.blocks if not block.closed]
        if self._left or event.kind not in self.kinds or event.form == "opaque":
            if candidate.queue:
                candidate.queue.append(Item(event))
                return out
            return [*out, event]
        block = TextBlock(event, candidate.queue, event.block)
        block.decider = self.decider(self, block)
        self._blocks[event.block] = block
        candidate.blocks.append(block)
        if not traits(self.context.exchange.api).has_block_events:  # the start has no form on the wire
            block.opened = True
            out.append(event)
        return out

    def _text(self, block: TextBlock, events: Sequence[Delta]) -> Iterable[Event]:
        """Return the events that are sent after consecutive deltas of a block."""
        candidate = self._candidates[block.choice]
        if block.closed and block not in candidate.blocks:  # text after the stop of its block
            candidate.blocks.append(block)
        out = self._pause(candidate, "other", but=block) if len(candidate.blocks) > 1 else []
        *before, event = events
        for one in before:
            candidate.queue.append(Item(one, block, block.length, block.length + len(one.text)))
            block.length += len(one.text)
        start = block.length
        block.length = start + len(event.text)
        block.latest = event
        if block.decider.left:
            block.decider.let_go()
        else:
            block.decider.add("".join([one.text for one in events]) if before else event.text)
        if block.sure == block.length and block.opened and not (block.regions or candidate.queue):  # the usual case
            event = event if block.number == event.block else event._replace(block=block.number)
            return (event,) if not out else [*out, event]
        candidate.queue.append(Item(event, block, start, block.length))
        return [*out, *self._flush(candidate)]

    def _stop_all(self, event: Event) -> Iterable[Event]:
        stops = [one for candidate in self._candidates.values() for one in self._stop(candidate, event)]
        return [*(one for one in stops if one is not event), event]

    def _stop(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        out = self._pause(candidate, "stop")
        for block in candidate.blocks:
            if block.changed:
                out += self.landed(block, event.frame)
            elif block.waits:  # it never had text
                out.append(self._begin(block))
        if candidate.ended:  # a second end changes nothing; kept events are sent before the stream ends
            return [*out, *self.dying(candidate), event]
        candidate.ended = True
        return [*out, *self.ending(candidate, event)]

    def _other(self, event: Event, number: int) -> Iterable[Event]:
        choice = self._homes.get(number)
        if choice is None:
            return (event,)
        candidate = self._candidates[choice]
        if not candidate.queue and not any(block.undecided for block in candidate.blocks):  # the usual case
            return (event,)
        out = self._pause(candidate, "other")
        if candidate.queue:
            candidate.queue.append(Item(event))
            return out
        return [*out, event]

    def _pause(self, candidate: Candidate, why: Pause, but: TextBlock | None = None) -> list[Event]:
        for block in candidate.blocks:
            if block is not but and block.undecided:
                block.decider.pause(why)
        return self._flush(candidate)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _flush(self, candidate: Candidate) -> list[Event]:
        out: list[Event] = []
        queue = candidate.queue
        while queue:
            item = queue[0]
            if item.block is None:
                out.append(item.event)
            elif item.block.sure < item.end:
                break
            elif isinstance(item.event, Close):
                out += self._end(item.block, item.event)
            elif isinstance(item.event, Delta):
                out += self._cut_up(item.block, item.event, item)
            queue.popleft()
        return out

    def _end(self, block: TextBlock, event: Close) -> Iterator[Event]:
        block.closed = True
        if block.changed:
            yield from self.landed(block, event.frame)
            if not block.opened:
                return  # no text of the block is kept
        elif not block.opened:
            yield self._begin(block)
        yield event if block.number == event.block else event._replace(block=block.number)

    def _cut_up(self, block: TextBlock, event: Delta, item: Item) -> Iterator[Event]:
        """Yield the events for a decided delta, in the order of its text."""
        place = item.start
        if not event.text:
            yield from self._keep(block, event, None)
        while block.regions and block.regions[0].start < item.end:
            region = block.regions[0]
            start, end = max(region.start, item.start), min(region.end, item.end)
            if start > place:
                yield from self._keep(block, event, event.text[place - item.start : start - item.start])
            block.changed = True
            if region.moves and end > start:
                yield from self.moved(block, event.text[start - item.start : end - item.start], start, event.frame)
            place = max(place, end)
            if region.end > item.end:
                break
            block.regions.popleft()
        if place == item.start and item.end > place:
            yield from self._keep(block, event, None)
        elif place < item.end:
            yield from self._keep(block, event, event.text[place - item.start :])

    @staticmethod
    def _begin(block: TextBlock) -> Start:
        block.opened = True
        return block.start

    def _keep(self, block: TextBlock, event: Delta, text: str | None) -> Iterator[Event]:
        """Yield the events for kept text. `text` None: the whole delta is unchanged."""
        if block.changed:
            yield from self.landed(block, event.frame)
        if not block.opened:
            start = self._begin(block)
            yield start._replace(frame=event.frame) if block.changed else start
        if text is not None:
            event = event._replace(text=text)
        yield event if block.number == event.block else event._replace(block=block.number)
