"""Driver for tests of fixes: replies are fixed like live traffic."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.build import REGISTRY, as_record, some
from tests.cuts import events_of, split
from wirelint.apis import channel_of
from wirelint.capture.record import Record
from wirelint.capture.replay import begin, replay, respond
from wirelint.engine import Engine, Session
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import Choice, Exchange
from wirelint.rewrite import ReplyStream
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

UNSAFE = FixPolicy("unsafe")
SAFE = FixPolicy("safe")


@dataclass(frozen=True)
class Result:
    """A reply after its repair. `pieces` are what the client got, one entry a piece.

    The exchanges, and what is found in them, are made when a test first asks for them: they cost most of its time.
    """

    passage: _Passage
    pieces: tuple[bytes, ...]
    rewriting: ReplyStream | None

    @property
    def delivered(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def repairs(self) -> tuple[AppliedFix, ...]:
        return tuple(self.rewriting.repairs) if self.rewriting is not None else ()

    @property
    def sent(self) -> tuple[bytes, tuple[AppliedFix, ...]]:
        return self.delivered, self.repairs

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.rewriting.notes) if self.rewriting is not None else ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(self.rewriting.faults) if self.rewriting is not None else ()

    @property
    def changed(self) -> bool:
        return self.rewriting is not None and self.rewriting.changed

    @functools.cached_property
    def before(self) -> Exchange:
        return some(replay(self.passage.record))

    @functools.cached_property
    def after(self) -> Exchange:
        """The exchange as the client has it."""
        return some(replay(dataclasses.replace(self.passage.record, response_body=self.delivered)))

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        return self.passage.check(self.before)

    @functools.cached_property
    def left(self) -> tuple[Finding, ...]:
        return self.passage.check(self.after)

    @property
    def choice(self) -> Choice:
        """The one candidate of the reply after its repair; an empty one if there is none."""
        choices = self.after.reply.choices if self.after.reply is not None else ()
        assert len(choices) < 2
        return choices[0] if choices else Choice(0, (), None, "")

    @property
    def said(self) -> tuple[object, ...]:
        calls = [(call.name, call.arguments.value) for call in self.choice.calls]
        return self.choice.text, self.choice.reasoning, calls, self.choice.finish_reason


Case = Mapping[str, Any] | Record | Sequence[Mapping[str, Any] | Record]


def run(
    case: Case,
    rules: Sequence[str] | Sequence[Rule] = (),
    permit: FixPolicy = UNSAFE,
    *,
    cuts: Iterable[int] = (),
    complete: bool = True,
    longest_hold: float = 30_000.0,
    step: float | None = None,
    flush: bool = False,
) -> Result:
    """Repairs the reply of a record, or of the last of several that pass one after the other.

    `rules` are names or codes (none: all), or rules themselves. `cuts` are the places at which the bytes of the reply are
    cut, `step` the milliseconds between two pieces. `flush`: after each piece it is said that there may be no more.
    `complete` False: the upstream died at the end of the bytes.
    """
    passage = _Passage(case, rules)
    record = passage.record
    rewriting = ReplyStream.begin(open_session(record), passage.rules, passage.ledger, permit, longest_hold)
    came = split(record.response_body or b"", [*cuts])
    if rewriting is None:
        return Result(passage, tuple(came), None)
    pieces: list[bytes] = []
    for number, data in enumerate(came):
        at = None if step is None else number * step
        pieces += rewriting.feed(data, at)
        pieces += rewriting.flush() if flush else []
    pieces += rewriting.end() if complete else rewriting.flush()
    return Result(passage, tuple(pieces), rewriting)


def without_end(record: Mapping[str, Any], drop: int = 2) -> Record:
    """A record whose stream ends before its last `drop` events."""
    made = as_record(record)
    return dataclasses.replace(made, response_body=b"".join(events_of(made.response_body or b"")[:-drop]))


class _Passage:
    """The last of some records, and what is known when its reply comes."""

    def __init__(self, case: Case, rules: Sequence[str] | Sequence[Rule]) -> None:
        records = [case] if isinstance(case, (Mapping, Record)) else list(case)
        made = [one if isinstance(one, Record) else as_record(one, number) for number, one in enumerate(records, 1)]
        names = [rule for rule in rules if isinstance(rule, str)]
        given = [rule for rule in rules if isinstance(rule, Rule)]
        self.rules: Sequence[Rule] = given or (REGISTRY.select(names) if names else REGISTRY.rules)
        self.ledger = Ledger()
        for record in made[:-1]:
            if (exchange := replay(record)) is not None:
                self.ledger.record(self.ledger.place(exchange))
        self.record = made[-1]

    def check(self, exchange: Exchange) -> tuple[Finding, ...]:
        """Findings, without the ledger taking the exchange in."""
        engine, channel = Engine(self.rules, self.ledger), channel_of(exchange.api)
        found = (f for rule in self.rules if channel in rule.channels for f in engine.run(rule, exchange))
        return tuple(sorted(found, key=lambda f: (f.event or 0, f.code)))


def open_session(record: Record) -> Session:
    session = begin(record)
    assert session is not None, "a request of no known API"
    respond(session, record)
    return session
