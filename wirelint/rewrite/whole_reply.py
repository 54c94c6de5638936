"""A reply that is there as a whole, repaired in one go: what `ReplyStream` does while it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wirelint.apis.ahead import ReadAhead
from wirelint.engine import Session
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import Request
from wirelint.rewrite.pages import Pages
from wirelint.rewrite.stream import LONGEST_HOLD, ReplyStream
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.wire import Sniffer


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A reply that was repaired in one go. `body` is the very object that came when nothing was changed."""

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
    later: Callable[[Sequence[tuple[bytes, float | None]]], None] | None = None,
    pages: Pages | None = None,
) -> Rewritten:
    """Repairs the body of a reply whose head the session has. `complete`: it ended as HTTP has it.

    `chunks` are its arrivals as they were recorded, (milliseconds after the request, bytes): with them the time for which
    text is held counts as it did live. The session has read the whole body afterwards, whatever came of the repair;
    unless there is somebody who has it read `later`, in these pieces, because nothing is to be repaired. `pages` are what
    replies may be written like, and are learnt from this one.
    """
    rewriting = ReplyStream.begin(session, rules, ledger, permit, longest_hold, request)
    if rewriting is None:
        session.feed(body)
        return Rewritten(body)
    if complete and _says_plainly(rewriting, body, pages):
        pieces = tuple(arrived(body, chunks))
        if later is not None:
            later(pieces)
        else:
            for data, at in pieces:
                session.feed(data, at)
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
    """A body in the pieces in which it came, with their times; in one piece, without, where they are not known."""
    if not chunks or sum(size for _, size in chunks) != len(body):
        yield body, None
        return
    start = 0
    for at, size in chunks:
        yield body[start : start + size], at
        start += size


def _says_plainly(rewriting: ReplyStream, body: bytes, pages: Pages | None) -> bool:
    """Return True if a reply is nothing to any rewriter, told by its events before the session takes them in."""
    making = rewriting.making
    try:
        if pages is not None and pages.say_plainly(making, body):
            return True
        session = making.session
        frame = Sniffer(session.reply_headers).whole(body)
        if frame is None:
            return False
        ahead = ReadAhead(frame, lambda: session.api.reply_reader(streamed=False))
        session.reader = ahead
        plain = making.says_plainly(events := ahead.events)
        if pages is not None:
            pages.learn(making, frame, events, plain=plain)
        return plain
    except Exception as error:  # fail open: it is read as any other
        making.tell("repairing the reply", error)
        return False
