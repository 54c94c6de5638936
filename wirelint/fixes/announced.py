"""Arguments in the announcement of a call, taken out where deltas bring the arguments as well.

`response.output_item.added` of OpenAI's Responses has empty arguments, and clients append the deltas to them. The start of
a call that was announced with arguments waits for its first delta, or for whatever else shows that none comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wirelint.events import Close, Delta, Done, Event, Failure, Finish, Start, StreamViolation


class EmptyStarts:
    """Empties the start of a call whose deltas repeat it. `told` hears of each start that is emptied."""

    phase: ClassVar[int] = 4

    def __init__(self, told: Callable[[Start], None]) -> None:
        self._told = told
        self._waiting: list[Event] = []
        self._open: dict[int, int] = {}
        """The starts among them that nothing has followed yet: by block, their places."""

    @property
    def held(self) -> int | None:
        frame = self._waiting[0].frame if self._waiting else None
        return frame.number if frame is not None else None

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start() if event.given:
                self._open[event.block] = len(self._waiting)
            case StreamViolation("repeated-start", detail):
                self._empty(detail.partition(" ")[0])
            case Delta(block) | Close(block):
                self._open.pop(block, None)
            case Finish() | Done() | Failure():
                self._open.clear()
            case _:
                pass
        if not self._waiting and not self._open:
            return (event,)
        self._waiting.append(event)
        return () if self._open else self.release()

    def release(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        self._open.clear()
        return waiting

    def _empty(self, pointer: str) -> None:
        for place in self._open.values():
            start = self._waiting[place]
            if isinstance(start, Start) and start.pointer == pointer:
                self._told(start)
                self._waiting[place] = start._replace(given="")
