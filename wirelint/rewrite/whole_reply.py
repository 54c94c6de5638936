"""A reply that is there as a whole, repaired in one go: what `ReplyStream` does while it passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wirelint.engine import Session
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import Request
from wirelint.rewrite.stream import LONGEST_HOLD, ReplyStream
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A whole reply after its repair. `body` is the original object if nothing was changed."""

    body: bytes
    repairs: tuple[AppliedFix, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[Finding, ...] = ()


def rewrite_reply(
    session: Session,
    body: bytes,
    rules: Sequence[Rule],
    ledger: Ledger,
    permit: FixPolicy,
    *,
    complete: bool = True,
    chunks: Sequence[tuple[float, int]] = (),
    longest_hold: float = LONGEST_HOLD,
    request: Request | None = None,
) -> Rewritten:
    """Repair the body of a reply whose head the session has read. `complete`: the body ended as HTTP asks.

    `chunks` are the recorded arrivals, (milliseconds after the request, bytes): with them held text is released at the
    time at which it was released live. Afterwards the session has read the whole body.
    """
    rewriting = ReplyStream.begin(session, rules, ledger, permit, longest_hold, request)
    if rewriting is None:
        session.feed(body)
        return Rewritten(body)
    out: list[bytes] = []
    for data, at in arrived(body, chunks):
        out += rewriting.feed(data, at)
    out += rewriting.end() if complete else rewriting.flush()
    return Rewritten(
        b"".join(out) if rewriting.changed else body,
        tuple(rewriting.repairs) if rewriting.changed else (),
        tuple(rewriting.notes),
        tuple(rewriting.faults),
    )


def arrived(body: bytes, chunks: Sequence[tuple[float, int]]) -> Iterable[tuple[bytes, float | None]]:
    """Return a body in the pieces in which it arrived, with their times; in one piece if they are not known."""
    if not chunks or sum(size for _, size in chunks) != len(body):
        yield body, None
        return
    start = 0
    for at, size in chunks:
        yield body[start : start + size], at
        start += size
