"""What all repairs of text share: the text of a block is held back no longer than it takes to decide on it.

Theory of operation. A block of text is a row of deltas. A `Judge` looks at the text as it comes and says up to which
offset it is decided (`sure`), and what becomes of stretches before that offset: they stay, they go (`cut`), or they are
moved to another block (`move`). A delta leaves when all of it is decided: the event itself where nothing in it changes,
so that its frame leaves byte for byte, else what is left of it. One whose end is open waits as a whole.

Within a candidate nothing overtakes anything. The start of a block waits for its first text that stays: a block of which
nothing stays never was. Whatever else comes in the candidate makes the judges decide on what they have; at its end they
are told so, and may put something before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start
from wirelint.fix import AppliedFix, RewriteContext

# A text that arrives piece by piece, and is put together only when somebody looks at all of it.

_LOOSE = 256


class Pieces:
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
        """Another text in the place of all that there is."""
        self._joined = [text] if text else []
        self._late.clear()


# Blocks of text on their way, and what waits with them: the state that all repairs of text share.

MakeRepair = Callable[..., AppliedFix]
"""`Rule.repair` of the rule that hands a rewriter out."""

Pause = Literal["other", "close", "stop"]
"""Why no more text may come: something else begins, the block is closed, the candidate ends."""


class Judge(Protocol):
    """Decides on the text of one block.

    `add` is told of more text, `pause` that something else has come: it decides on what it can, on everything unless it
    waits for what comes after its block. Both answer by `strand.sure`, `strand.cut` and `strand.move`.
    `give_up` lets go of everything undecided. `leave` decides on what can be decided, as `add` does in a stream, and leaves
    all else as it comes; only what is being moved or cut is moved or cut to its end. `note` keeps text in which nothing can
    begin, while all is decided; False:
    it has to be added.
    """

    def add(self, text: str) -> None: ...

    def note(self, text: str) -> bool: ...

    def pause(self, why: Pause) -> None: ...

    def give_up(self) -> None: ...

    def leave(self) -> None: ...


@dataclass(slots=True)
class Region:
    """A stretch of a block that does not stay. `text` to put in its place, `lane` 1 for what moves to another block."""

    start: int
    end: int
    moves: bool = False


@dataclass(slots=True, eq=False)
class TextBlock:
    """One block on its way. Offsets count the characters of its text from its beginning.

    `opened` is the start event while it waits, `block` the number under which text leaves now.
    """

    start: Start
    length: int = 0
    sure: int = 0
    block: int = -1
    opened: bool = False
    changed: bool = False
    closed: bool = False
    busy: bool = False
    """Set by a judge for which a pause matters though all text is decided."""
    regions: deque[Region] = field(default_factory=deque)
    places: deque[tuple[int, int]] = field(default_factory=deque)
    """(offset, frame number) of the deltas that are waiting."""
    judge: Judge | None = None

    @property
    def choice(self) -> int:
        return self.start.choice

    @property
    def waits(self) -> bool:
        """Whether the block's start is held back, in the place where it came."""
        return not (self.opened or self.changed or self.closed)

    def cut(self, start: int, end: int) -> None:
        if end > start:
            self.regions.append(Region(start, end))

    def move(self, start: int, end: int) -> None:
        """Marks a stretch as moving. A stretch that goes on from the last one extends it."""
        last = self.regions[-1] if self.regions else None
        if last is not None and last.moves and last.end == start:
            last.end = end
        elif end > start:
            self.regions.append(Region(start, end, moves=True))

    def frame_at(self, offset: int) -> int | None:
        """The number of the frame with which the text at an offset came, as long as it waits."""
        found = None
        for place, number in self.places:
            if place > offset:
                break
            found = number
        return found


@dataclass(slots=True)
class Item:
    """An event that waits; a delta with the stretch of its block that it holds."""

    event: Event
    strand: TextBlock | None = None
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Candidate:
    """What is known of one candidate: its strands in the order of their appearance, and what waits."""

    number: int
    strands: list[TextBlock] = field(default_factory=list)
    queue: deque[Item] = field(default_factory=deque)
    ended: bool = False


class TextRewriter:
    """The common part; a repair says what judges which block, and what it puts before the end of a candidate."""

    phase: ClassVar[float] = 3

    @property
    def patient(self) -> bool:
        return True

    def __init__(self, context: RewriteContext, repair: MakeRepair) -> None:
        self.context = context
        self.repair = repair
        self._strands: dict[int, TextBlock] = {}
        self._homes: dict[int, int] = {}
        self._candidates: dict[int, Candidate] = {}
        self._left = False

    # --- what a repair says -------------------------------------------------------------------------------------------

    def judge(self, strand: TextBlock) -> Judge | None:
        """What decides on a block's text; None for blocks that are left alone."""
        return None

    def meet(self, start: Start) -> None:
        """Something else begins in a candidate."""

    def moved(self, strand: TextBlock, text: str, offset: int, frame: Frame | None) -> Iterable[Event]:
        """What becomes of text that moves, from an offset in the block."""
        return ()

    def landed(self, strand: TextBlock, frame: Frame | None) -> Iterable[Event]:
        """What comes between the last text that has moved and text that stays."""
        return ()

    def ending(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        """What leaves at the end of a candidate: the event that ends it, and what comes before it."""
        return (event,)

    def dying(self, candidate: Candidate) -> Iterable[Event]:
        """What leaves when a reply breaks off, of what is no longer in the queue."""
        return ()

    # --- the way through ----------------------------------------------------------------------------------------------

    @property
    def held(self) -> int | None:
        lowest: int | None = None
        for candidate in self._candidates.values():
            for frame in self._waiting(candidate):
                if frame is not None and (lowest is None or frame.number < lowest):
                    lowest = frame.number
                    break
        return lowest

    def _waiting(self, candidate: Candidate) -> Iterator[Frame | None]:
        """The frame of the first event that waits."""
        for strand in candidate.strands[-2:]:
            if strand.waits:
                yield strand.start.frame
        if candidate.queue:
            yield candidate.queue[0].event.frame

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Delta(block, text):
                strand = self._strands.get(block)
                if strand is None:
                    return self._other(event, self._homes.get(block))
                return self._text(strand, event, text)
            case Start():
                return self._start(event)
            case Close(block):
                strand = self._strands.get(block)
                return self._other(event, self._homes.get(block)) if strand is None else self._close(strand, event)
            case CallUpdate(block):
                return self._other(event, self._homes.get(block))
            case Finish(choice):
                return self._stop(self._candidate(choice), event)
            case Done():
                out: list[Event] = []
                for candidate in self._candidates.values():
                    out += [one for one in self._stop(candidate, event) if one is not event]
                return [*out, event]
            case _:
                return self._last(event)

    def note(self, event: Delta) -> bool:
        strand = self._strands.get(event.block)
        if strand is None or strand.judge is None or strand.sure != strand.length or not strand.opened:
            return False
        candidate = self._candidates[strand.choice]
        if strand.regions or candidate.queue or len(candidate.strands) > 1 or not strand.judge.note(event.text):
            return False
        strand.length = strand.sure = strand.length + len(event.text)
        return True

    def release(self) -> Iterable[Event]:
        out: list[Event] = []
        for candidate in self._candidates.values():
            for strand in candidate.strands:
                if strand.judge is not None:
                    strand.judge.give_up()
                    strand.sure = strand.length
            out += self._flush(candidate)
            out += [self._begin(strand) for strand in candidate.strands if strand.waits]
            out += self.dying(candidate)
        return out

    def leave(self) -> Iterable[Event]:
        self._left = True
        out: list[Event] = []
        for candidate in self._candidates.values():
            for strand in candidate.strands:
                if strand.judge is not None:
                    strand.judge.leave()
            out += self._flush(candidate)
        return out

    def forget(self) -> None:
        """The reply is over: what holds itself in a circle is let go of."""
        for strand in self._strands.values():
            strand.judge = None
        self._strands.clear()
        self._candidates.clear()

    def _candidate(self, number: int) -> Candidate:
        found = self._candidates.get(number)
        if found is None:
            found = self._candidates[number] = Candidate(number)
        return found

    def _start(self, event: Start) -> Iterable[Event]:
        candidate = self._candidate(event.choice)
        self._homes[event.block] = event.choice
        self.meet(event)
        # In a whole body a block is complete when the next one begins.
        out = [] if self.context.streamed else self._pause(candidate, "close")
        out += self._pause(candidate, "other")
        for strand in candidate.strands:
            if strand.changed:
                out += self.landed(strand, event.frame)
            elif strand.waits and not strand.length:
                out.append(self._begin(strand))
        candidate.strands = [strand for strand in candidate.strands if not strand.closed]
        strand = TextBlock(event, block=event.block)
        strand.judge = self.judge(strand) if not self._left else None
        if strand.judge is None:
            if candidate.queue:
                candidate.queue.append(Item(event))
                return out
            return [*out, event]
        self._strands[event.block] = strand
        candidate.strands.append(strand)
        if not traits(self.context.exchange.api).blocks:  # where a start has no form on the wire
            strand.opened = True
            out.append(event)
        return out

    def _text(self, strand: TextBlock, event: Delta, text: str) -> Iterable[Event]:
        judge = strand.judge
        assert judge is not None
        candidate = self._candidates[strand.choice]
        out: list[Event] = []
        if len(candidate.strands) > 1:
            out = self._pause_others(candidate, strand)
        start = strand.length
        strand.length = start + len(text)
        if strand.sure != start or not strand.opened:
            strand.places.append((start, event.frame.number if event.frame is not None else 0))
        judge.add(text)
        if strand.sure == strand.length and strand.opened and not (strand.regions or candidate.queue):
            if strand.block != event.block:
                event = event._replace(block=strand.block)
            return (event,) if not out else [*out, event]  # nearly all of them
        if not strand.places:
            strand.places.append((start, event.frame.number if event.frame is not None else 0))
        candidate.queue.append(Item(event, strand, start, strand.length))
        out += self._flush(candidate)
        return out

    def _close(self, strand: TextBlock, event: Close) -> Iterable[Event]:
        candidate = self._candidates[strand.choice]
        out = self._pause_others(candidate, strand)
        if strand.judge is not None and (strand.sure < strand.length or strand.busy):
            strand.judge.pause("close")
        candidate.queue.append(Item(event, strand, strand.length, strand.length))
        return [*out, *self._flush(candidate)]

    def _stop(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        out = self._pause(candidate, "stop")
        for strand in candidate.strands:
            if strand.changed:
                out += self.landed(strand, event.frame)
            elif strand.waits:  # nothing was ever said in it
                out.append(self._begin(strand))
        if candidate.ended:  # text behind its end becomes nothing else, and leaves before the stream ends
            return [*out, *self.dying(candidate), event]
        candidate.ended = True
        return [*out, *self.ending(candidate, event)]

    def _other(self, event: Event, choice: int | None) -> Iterable[Event]:
        if choice is None:
            return (event,)
        candidate = self._candidates[choice]
        if not candidate.queue and not any(map(_is_undecided, candidate.strands)):
            return (event,)
        out = self._pause(candidate, "other")
        if candidate.queue:
            candidate.queue.append(Item(event))
            return out
        return [*out, event]

    def _last(self, event: Event) -> Iterable[Event]:
        """A whole body may lack a finish reason; then its last event ends it."""
        events = self.context.frame_events
        if self.context.streamed or not events or events[-1] is not event:
            return (event,)
        out: list[Event] = []
        for candidate in self._candidates.values():
            out += [one for one in self._stop(candidate, event) if one is not event]
        return [*out, event]

    def _pause(self, candidate: Candidate, why: Pause) -> list[Event]:
        for strand in candidate.strands:
            if strand.judge is not None and _is_undecided(strand):
                strand.judge.pause(why)
        return self._flush(candidate)

    def _pause_others(self, candidate: Candidate, strand: TextBlock) -> list[Event]:
        for other in candidate.strands:
            if other is not strand and other.judge is not None and (other.sure < other.length or other.busy):
                other.judge.pause("other")
        return self._flush(candidate)

    # --- what leaves --------------------------------------------------------------------------------------------------

    def _flush(self, candidate: Candidate) -> list[Event]:
        out: list[Event] = []
        queue = candidate.queue
        while queue:
            item = queue[0]
            strand = item.strand
            if strand is None:
                out.append(item.event)
            elif isinstance(item.event, Close):
                if strand.sure < strand.length:
                    break
                out += self._end(strand, item.event)
            elif isinstance(item.event, Delta):
                if strand.sure < item.end:
                    break
                out += self._cut_up(strand, item)
                while strand.places and strand.places[0][0] < item.end:
                    strand.places.popleft()
            queue.popleft()
        return out

    def _end(self, strand: TextBlock, event: Close) -> Iterator[Event]:
        strand.closed = True
        if strand.changed:
            yield from self.landed(strand, event.frame)
            if not strand.opened:
                return  # nothing of it stays
        elif not strand.opened:
            yield strand.start
            strand.opened = True
        if strand.block == event.block:
            yield event
        elif strand.block >= 0:
            yield event._replace(block=strand.block)

    def _cut_up(self, strand: TextBlock, item: Item) -> Iterator[Event]:
        """What is left of a delta, in order."""
        event = item.event
        assert isinstance(event, Delta)
        place = item.start
        if not event.text:
            yield from self._keep(strand, event, None)
        while strand.regions and strand.regions[0].start < item.end:
            region = strand.regions[0]
            start, end = max(region.start, item.start), min(region.end, item.end)
            if start > place:
                yield from self._keep(strand, event, event.text[place - item.start : start - item.start])
            strand.changed = True
            if region.moves and end > start:
                yield from self.moved(strand, event.text[start - item.start : end - item.start], start, event.frame)
            place = max(place, end)
            if region.end > item.end:
                break
            strand.regions.popleft()
        if place == item.start and item.end > place:
            yield from self._keep(strand, event, None)
        elif place < item.end:
            yield from self._keep(strand, event, event.text[place - item.start :])

    @staticmethod
    def _begin(strand: TextBlock) -> Start:
        strand.opened = True
        return strand.start

    def _keep(self, strand: TextBlock, event: Delta, text: str | None) -> Iterator[Event]:
        """Text that stays; None: the whole delta, as it is."""
        if strand.changed:
            yield from self.landed(strand, event.frame)
        if not strand.opened:
            strand.opened = True
            yield strand.start._replace(frame=event.frame) if strand.changed else strand.start
        if text is not None:
            event = event._replace(text=text)
        yield event if strand.block == event.block else event._replace(block=strand.block)


def _is_undecided(strand: TextBlock) -> bool:
    """Whether a pause has something to decide in a block."""
    return strand.judge is not None and (strand.sure < strand.length or strand.busy)
