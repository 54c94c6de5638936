"""The rewriters of one reply, one behind the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirelint.engine import internal
from wirelint.events import Event
from wirelint.repair import Rewriter, Situation
from wirelint.rule import Finding, Rule


class ChainError(Exception):
    """A rewriter raised. `rule` is the name of its rule."""

    def __init__(self, rule: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.rule = rule
        self.error = error


class Chain:
    """What one rewriter hands on is pushed into the next, in the order of their phases, then of their rules' codes."""

    def __init__(self, stages: Sequence[tuple[str, Rewriter]]) -> None:
        self._names = [name for name, _ in stages]
        self._stages = [rewriter for _, rewriter in stages]

    @classmethod
    def of(cls, rules: Iterable[Rule], situation: Situation, faults: list[Finding]) -> Chain:
        """The rewriters that rules have for a reply; a rule that fails to make one goes without, and is told of."""
        made: list[tuple[int, str, str, Rewriter]] = []
        for rule in rules:
            try:
                rewriter = rule.rewriter(situation)
            except Exception as error:  # fail open: the other rules repair what they can
                faults.append(internal(f"the repair of {rule.name}", error))
                continue
            if rewriter is not None:
                made.append((getattr(rewriter, "phase", 3), rule.code, rule.name, rewriter))
        made.sort(key=lambda stage: stage[:2])
        return cls([(name, rewriter) for _, _, name, rewriter in made])

    def __bool__(self) -> bool:
        return bool(self._stages)

    @property
    def held(self) -> int | None:
        """The number of the first frame of which any rewriter holds something back."""
        lowest: int | None = None
        for stage in self._stages:
            held = stage.held
            if held is not None and (lowest is None or held < lowest):
                lowest = held
        return lowest

    def push(self, events: Sequence[Event]) -> Sequence[Event]:
        """What comes out for events that come in. Raises ChainError."""
        return self._run(events, 0)

    def release(self) -> list[Event]:
        """All that is held back, as far as the rewriters can still give it. Raises ChainError for the first that cannot."""
        out: list[Event] = []
        failed: ChainError | None = None
        for place, stage in enumerate(self._stages):
            try:
                out += self._run(list(stage.release()), place + 1)
            except Exception as error:  # fail open: what the others hold must come out all the same
                failed = failed or (error if isinstance(error, ChainError) else ChainError(self._names[place], error))
        if failed is not None:
            failed.args = (out,)
            raise failed
        return out

    def _run(self, events: Sequence[Event], place: int) -> Sequence[Event]:
        for number in range(place, len(self._stages)):
            push = self._stages[number].push
            out: list[Event] = []
            try:
                for event in events:
                    out += push(event)
            except Exception as error:
                raise ChainError(self._names[number], error) from error
            events = out
            if not events:
                break
        return events
