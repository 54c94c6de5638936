"""Blocks of text on their way, and what waits with them: the state that all repairs of text share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wirelint.events import Event, Start
from wirelint.fix import AppliedFix

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
