"""Several rewriters of one rule as one."""

from __future__ import annotations

from collections.abc import Iterable

from wirelint.events import Event
from wirelint.fix import Rewriter
from wirelint.fixes.prefilter import is_patient


class Chained:
    """What the first hands on is pushed into the second, and so on."""

    def __init__(self, phase: float, *rewriters: Rewriter) -> None:
        self.phase = phase
        self.parts = rewriters

    @property
    def patient(self) -> bool:
        return all(map(is_patient, self.parts))

    @property
    def held(self) -> int | None:
        numbers = [held for rewriter in self.parts if (held := rewriter.held) is not None]
        return min(numbers, default=None)

    def push(self, event: Event) -> Iterable[Event]:
        return self._run((event,), 0)

    def release(self) -> Iterable[Event]:
        out: list[Event] = []
        for place, rewriter in enumerate(self.parts):
            out += self._run(rewriter.release(), place + 1)
        return out

    def _run(self, events: Iterable[Event], place: int) -> Iterable[Event]:
        for rewriter in self.parts[place:]:
            events = [made for event in events for made in rewriter.push(event)]
        return events
