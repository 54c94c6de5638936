"""Driver for tests of fixes: replies are fixed like live traffic."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from tests.build import REGISTRY, as_record, some
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
    """`pieces` are what the client got, one entry a piece; `after` is the exchange as the client has it."""

    pieces: tuple[bytes, ...]
    repairs: tuple[AppliedFix, ...]
    before: Exchange
    after: Exchange
    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]
    notes: tuple[str, ...]
    faults: tuple[Finding, ...]
    changed: bool

    @property
    def delivered(self) -> bytes:
        return b"".join(self.pieces)


Case = Mapping[str, Any] | Record | Sequence[Mapping[str, Any] | Record]


class How(TypedDict, total=False):
    """How a reply arrives. `cuts` are the places at which its bytes are cut, `step` the milliseconds between two pieces.

    `flush`: after each piece it is said that there may be no more. `complete` False: the upstream died at the end of the
    bytes.
    """

    cuts: Iterable[int]
    complete: bool
    longest_hold: float
    step: float | None
    flush: bool


def run(
    case: Case, rules: Sequence[str] | Sequence[Rule] = (), permit: FixPolicy = UNSAFE, **how: Unpack[How]
) -> Result:
    """Repairs the reply of a record, or of the last of several that pass one after the other.

    `rules` are names or codes (none: all), or rules themselves.
    """
    passed = _Passage(case, rules)
    pieces, rewriting = passed.send(permit, **how)
    before = replay(passed.record)
    assert before is not None, "of no known API"
    after_record = dataclasses.replace(passed.record, response_body=b"".join(pieces))
    after = some(replay(after_record))
    return Result(
        pieces=tuple(pieces),
        repairs=tuple(rewriting.repairs) if rewriting is not None else (),
        before=before,
        after=after,
        findings=_check(before, passed.ledger, passed.rules),
        left=_check(after, passed.ledger, passed.rules),
        notes=tuple(rewriting.notes) if rewriting is not None else (),
        faults=tuple(rewriting.faults) if rewriting is not None else (),
        changed=rewriting is not None and rewriting.changed,
    )


def deliver(
    case: Case, rules: Sequence[str] | Sequence[Rule] = (), permit: FixPolicy = UNSAFE, **how: Unpack[How]
) -> tuple[bytes, tuple[AppliedFix, ...]]:
    """What `run` delivers and the repairs, without judging the reply before and after, which costs most of its time."""
    pieces, rewriting = _Passage(case, rules).send(permit, **how)
    return b"".join(pieces), tuple(rewriting.repairs) if rewriting is not None else ()


@dataclass(frozen=True)
class Passed:
    """A reply after its repair, as a client reads it."""

    choice: Choice
    changed: bool
    repairs: tuple[AppliedFix, ...]
    notes: tuple[str, ...]

    @property
    def said(self) -> tuple[object, ...]:
        calls = [(call.name, call.arguments.value) for call in self.choice.calls]
        return self.choice.text, self.choice.reasoning, calls, self.choice.finish_reason


def send(
    case: Case, rules: Sequence[str], permit: FixPolicy = UNSAFE, *, complete: bool = True, drop: int = 0
) -> Passed:
    """Repair a reply of one candidate, without checking it. `drop`: number of last events to leave out."""
    passage = _Passage(case, rules)
    if drop:
        events = (passage.record.response_body or b"").split(b"\n\n")[: -1 - drop]
        passage.record = dataclasses.replace(passage.record, response_body=b"\n\n".join([*events, b""]))
    pieces, rewriting = passage.send(permit, complete=complete)
    reply = some(replay(dataclasses.replace(passage.record, response_body=b"".join(pieces)))).reply
    choices = reply.choices if reply is not None else ()
    assert len(choices) < 2
    return Passed(
        choices[0] if choices else Choice(0, (), None, ""),
        rewriting is not None and rewriting.changed,
        tuple(rewriting.repairs) if rewriting is not None else (),
        tuple(rewriting.notes) if rewriting is not None else (),
    )


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

    def send(
        self,
        permit: FixPolicy,
        *,
        cuts: Iterable[int] = (),
        complete: bool = True,
        longest_hold: float = 30_000.0,
        step: float | None = None,
        flush: bool = False,
    ) -> tuple[list[bytes], ReplyStream | None]:
        rewriting = ReplyStream.begin(open_session(self.record), self.rules, self.ledger, permit, longest_hold)
        body = self.record.response_body or b""
        edges = [0, *cuts, len(body)]
        pieces: list[bytes] = []
        for number, (start, end) in enumerate(itertools.pairwise(edges)):
            at = None if step is None else number * step
            if rewriting is None:
                pieces.append(body[start:end])
            else:
                pieces += rewriting.feed(body[start:end], at)
                pieces += rewriting.flush(at) if flush else []
        if rewriting is not None:
            pieces += rewriting.end() if complete else rewriting.flush()
        return pieces, rewriting


def open_session(record: Record) -> Session:
    session = begin(record)
    assert session is not None, "a request of no known API"
    respond(session, record)
    return session


def _check(exchange: Exchange, ledger: Ledger, rules: Sequence[Any]) -> tuple[Finding, ...]:
    """Findings, without the ledger taking the exchange in."""
    engine, channel = Engine(rules, ledger), channel_of(exchange.api)
    found = (f for rule in rules if channel in rule.channels for f in engine.run(rule, exchange))
    return tuple(sorted(found, key=lambda f: (f.event or 0, f.code)))
