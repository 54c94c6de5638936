"""Contracts that hold for any bytes. Each violation is a name and what was seen."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Iterator, Sequence

from tests.build import REGISTRY, some
from tests.cuts import split
from wirelint.capture.record import Record
from wirelint.capture.replay import begin, finish, respond
from wirelint.engine import INTERNAL, Engine, Session
from wirelint.fix import MOST_HELD, NO_FIXES, FixPolicy
from wirelint.model import Exchange
from wirelint.rewrite import ReplyStream, rewrite_reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Finding
from wirelint.state.ledger import Ledger

UNSAFE = FixPolicy("unsafe")
SECONDS, SECONDS_PER_BYTE = 1.0, 100e-6
"""Processor time that all work on one exchange may take: about fifty times what it takes on a slow machine."""
_SLACK = 4 * MOST_HELD + (1 << 20)
"""Bytes that may have come and not left: the text that several rewriters hold, and one event."""

Violation = tuple[str, str]


def violations(record: Record, chance: random.Random) -> Iterator[Violation]:
    """Every contract that an exchange breaks. `chance` cuts the bytes."""
    start = time.process_time()
    yield from _asked(record)
    yield from _answered(record, chance)
    took = time.process_time() - start
    size = len(record.request_body or b"") + len(record.response_body or b"")
    if took > SECONDS + SECONDS_PER_BYTE * size:
        yield "bounded time", f"{took:.1f} s for {size} bytes"


def _asked(record: Record) -> Iterator[Violation]:
    """Contracts of the request."""
    body = record.request_body
    head = _head(record)
    if not body or head is None:
        return
    if mend_request(head, body, REGISTRY.rules, Ledger(), NO_FIXES).body is not body:
        yield "without repairs nothing changes", "the request"
    mended = mend_request(head, body, REGISTRY.rules, Ledger(), UNSAFE)
    yield from _faults("repairing the request", mended.faults)
    again = _head(dataclasses.replace(record, request_body=mended.body))
    if again is None:
        yield "a repair leaves what can be read", "the request"
        return
    twice = mend_request(again, mended.body, REGISTRY.rules, Ledger(), UNSAFE)
    if twice.body != mended.body:
        first, second = ([repair.title for repair in made.repairs] for made in (mended, twice))
        yield "a second repair changes nothing", f"the request: {first} and then {second}"


def _answered(record: Record, chance: random.Random) -> Iterator[Violation]:
    """Contracts of the reply."""
    body = record.response_body or b""
    cuts = _cuts(len(body), chance)
    whole = _read(record, [body])
    if whole is None:
        return
    findings = _judge(whole)
    yield from _faults("judging", findings)
    for places in cuts:
        other = some(_read(record, split(body, places)))
        if repr(other.reply) != repr(whole.reply):  # a reply is equal to itself alone
            yield "any cut reads the same", f"cut at {places[:8]}"
            break
        if (told := _judge(other)) != findings:
            yield "any cut finds the same", f"cut at {places[:8]}: {_differ(findings, told)}"
            break
    session = some(_session(record))
    if rewrite_reply(session, body, REGISTRY.rules, Ledger(), NO_FIXES).body is not body:
        yield "without repairs nothing changes", "the reply"
    yield from _repaired(record, body, cuts)


def _repaired(record: Record, body: bytes, cuts: Sequence[Sequence[int]]) -> Iterator[Violation]:
    got, rewriting, held = _rewrite(record, [body])
    if rewriting is None:
        return
    yield from _faults("repairing the reply", rewriting.faults)
    if not rewriting.changed and got != body:
        yield "unchanged is as it came", "the reply"
    for places in cuts:
        other, cut, held = _rewrite(record, split(body, places))
        if other != got:
            titles = [[repair.title for repair in one.repairs] for one in (rewriting, cut) if one is not None]
            yield "any cut repairs the same", f"cut at {places[:8]}: {titles}"
            break
        if held > _SLACK:
            yield "held text is bounded", f"{held} bytes, cut at {places[:8]}"
    if not rewriting.changed:
        return
    twice, again, _ = _rewrite(dataclasses.replace(record, response_body=got), [got])
    if twice != got and again is not None:
        first, second = ([repair.title for repair in one.repairs] for one in (rewriting, again))
        yield "a second repair changes nothing", f"the reply: {first} and then {second}"


def _cuts(size: int, chance: random.Random) -> list[tuple[int, ...]]:
    """Two sets of places at which a body is cut: a few random ones, and now and then every byte."""
    if size < 2:
        return []
    few = tuple(sorted({chance.randrange(1, size) for _ in range(chance.choice((1, 2, 5, 20)))}))
    if size <= 2000 and chance.random() < 0.1:
        return [few, tuple(range(1, size))]
    return [few]


def _session(record: Record) -> Session | None:
    session = begin(record)
    if session is not None:
        respond(session, record)
    return session


def _head(record: Record) -> Exchange | None:
    session = begin(record)
    return session.head() if session is not None and session.request is not None else None


def _read(record: Record, pieces: Sequence[bytes]) -> Exchange | None:
    session = _session(record)
    if session is None:
        return None
    for piece in pieces:
        session.feed(piece)
    return dataclasses.replace(finish(session, record), chunks=())


def _judge(exchange: Exchange) -> tuple[Finding, ...]:
    return Engine(REGISTRY.rules).check(exchange)


def _rewrite(record: Record, pieces: Sequence[bytes]) -> tuple[bytes, ReplyStream | None, int]:
    """What the client gets, and the most bytes that had come and not left."""
    session = some(_session(record))
    rewriting = ReplyStream.begin(session, REGISTRY.rules, Ledger(), UNSAFE)
    if rewriting is None:
        return b"".join(pieces), None, 0
    out: list[bytes] = []
    came = left = most = 0
    for piece in pieces:
        made = rewriting.feed(piece)
        came, left = came + len(piece), left + sum(map(len, made))
        most = max(most, came - left) if session.streamed else 0
        out += made
    out += rewriting.end() if record.end in ("complete", "unknown") else rewriting.flush()
    return b"".join(out), rewriting, most


def _faults(doing: str, found: Sequence[Finding]) -> Iterator[Violation]:
    for finding in found:
        if finding.code == INTERNAL:
            yield "nothing raises", f"{doing}: {finding.message}"


def _differ(one: Sequence[Finding], other: Sequence[Finding]) -> str:
    for left, right in itertools.zip_longest(one, other):
        if left != right:
            return f"{left} / {right}"
    return ""
