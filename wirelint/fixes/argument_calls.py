"""What is known of a call whose arguments are followed, and the queue of a candidate in which its events wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from wirelint.arguments.argument_watchers import Watcher
from wirelint.events import CallUpdate, Delta, Event, Fold, Frame, Start
from wirelint.model import ToolCall


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
