"""Captures repaired offline, by the code that repairs live traffic; a ledger of its own for every file.

Theory of operation. Repair begins with what came in, always: the request as the client sent it, the reply as the upstream
sent it. What a live run had forwarded or delivered instead is replaced, or taken away where nothing is to be repaired any
more. So the result depends on the bytes and the options alone: repairing a capture twice gives what repairing it once
gave, and with the options of the live run it gives what that run gave. Only what is no work of a repair stays: a side whose
original is lost, and a reply of which the client got less than came.

Findings are those on what came in, as `wirelint check` has them. What remains is judged on the repaired exchange. For
what passed the ledger takes the exchange with the reply that was delivered: by this repair, else by the live run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wirelint.capture.readers import Problem
from wirelint.capture.record import Form, Headers, Record, Sent
from wirelint.capture.replay import begin, delivered_reply, finish, mended, replay, respond
from wirelint.engine import Engine, Session, internal
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import Exchange, Json, MissingInfo, Request, Side
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Finding, Rule
from wirelint.settings.scopes import Scope

Report = Callable[[str, Exception], None]

_WRITTEN: frozenset[Form] = frozenset({"wirelint", "mitmproxy", "har"})
_OTHERS: dict[Form, str] = {
    "vcr": "a cassette",
    "lhar": "an LHAR",
    "claude-code": "a session log",
    "k2vv": "a file of results",
}
_CURE = "`wirelint export` makes a capture of it, and that can be repaired"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A record with its repairs: `forwarded`, `delivered` and `fixes`, empty where nothing was changed.

    `findings` are on what came in, `remaining` on what there is after the repair. `exchange` is None when the record is
    of no API that is understood; it is left as it was then.
    """

    record: Record
    exchange: Exchange | None
    findings: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()


def fix(
    items: Iterable[Record | Problem],
    rules: Sequence[Rule],
    permit: FixPolicy | None,
    report: Report | None = None,
) -> Iterator[Fixed | Problem]:
    """Repairs records in order; problems of the reader are handed on in their place.

    `permit` None: what may be repaired in an exchange is what the rules' own scopes say (`settings.scopes`).
    """
    engine = Engine(rules, report=report)
    source: str | None = None
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        if item.source != source:
            source = item.source
            engine = Engine(rules, report=report)
            if item.form not in _WRITTEN:
                yield Problem(source, "", f"{_OTHERS[item.form]} is not written", _CURE, fatal=True)
        if item.form not in _WRITTEN:
            continue
        yield _attempt(item, engine, permit, report)


def _attempt(record: Record, engine: Engine, permit: FixPolicy | None, report: Report | None) -> Fixed:
    try:
        return _fix(record, engine, permit)
    except Exception as error:  # fail open: one record that we cannot repair stays as it was, and hides no other
        if report is not None:
            report("repairing an exchange", error)
        finding = internal("repairing an exchange", error)
        return Fixed(record, None, (finding,), (finding,))


def _fix(record: Record, engine: Engine, permit: FixPolicy | None) -> Fixed:
    session = begin(_named_by_place(record))
    if session is None:
        return Fixed(record, None)
    scope = engine.rules.of(session.head())
    work = _Work(engine, scope if permit is None else Scope(scope.rules, permit), record.missing)
    forwarded = work.mend(session, record)
    respond(session, record)
    delivered = work.rewrite(session, record)
    fixed = dataclasses.replace(
        record,
        forwarded=forwarded,
        delivered=delivered,
        fixes=tuple(work.repairs),
        annotations=_with_notes(record, work.notes),
    )
    exchange = engine.ledger.place(finish(session, record, delivered_reply(fixed if delivered is not None else record)))
    remaining = _remaining(fixed, exchange, engine) if work.changed else None
    findings = engine.check(exchange)
    faults = tuple(work.faults)
    return Fixed(fixed, exchange, (*faults, *findings), (*faults, *(findings if remaining is None else remaining)))


class _Work:
    """The repair of one record: what is sent on in the place of what came, and all there is to tell about it."""

    def __init__(self, engine: Engine, scope: Scope, missing: frozenset[MissingInfo]) -> None:
        self.repairs: list[AppliedFix] = []
        self.notes: list[str] = []
        self.faults: list[Finding] = []
        self.changed = False
        self._rules = tuple(rule for rule in scope.rules if not rule.needs & missing)
        self._ledger, self._permit = engine.ledger, scope.permit
        self._asked: Request | None = None

    def mend(self, session: Session, record: Record) -> Sent | None:
        """The request to be forwarded; None when it stays as it is."""
        body = record.request_body
        if not body or session.request is None or "request" in record.missing:
            return self._keep(record.forwarded, record, "request")
        made = mend_request(session.head(), body, self._rules, self._ledger, self._permit)
        self.faults += made.faults
        if made.body == body:
            return None
        self._asked = made.request
        return self._sent(record.forwarded, record.request_headers, made.body, made.repairs)

    def rewrite(self, session: Session, record: Record) -> Sent | None:
        """The reply to be delivered; None when it stays as it is. The session has read the body afterwards."""
        body = record.response_body
        if not body:
            return self._keep(record.delivered, record, "response")
        made = rewrite_reply(
            session,
            body,
            self._rules,
            self._ledger,
            self._permit,
            # A file that does not say how an exchange ended is taken to hold all of it.
            complete=record.end in ("complete", "unknown"),
            chunks=record.chunks,
            request=self._asked,
        )
        self.faults += made.faults
        self.notes += made.notes
        if made.body == body:
            repaired = any(repair.side == "response" for repair in record.fixes)
            return None if repaired else record.delivered
        return self._sent(record.delivered, record.response_headers, made.body, made.repairs)

    def _keep(self, sent: Sent | None, record: Record, side: Side) -> Sent | None:
        """What a live run sent on, where what came in is lost."""
        self.repairs += [repair for repair in record.fixes if repair.side == side]
        return sent

    def _sent(self, live: Sent | None, headers: Headers, body: bytes, repairs: Sequence[AppliedFix]) -> Sent:
        self.changed = True
        self.repairs += repairs
        # The head under which the same body was really sent says more than one that is made up.
        return live if live is not None and live.body == body else Sent(true_headers(headers, body), body)


def _named_by_place(record: Record) -> Record:
    """A record whose name does not hang on that of its file: ids of calls that a repair makes are drawn from it."""
    return dataclasses.replace(record, id=record.place) if record.id.startswith(f"{record.source}:") else record


def true_headers(headers: Headers, body: bytes) -> Headers:
    """Headers made true for a body without content codings: no content-encoding, and a content-length that is right."""
    made: list[tuple[str, str]] = []
    length = False
    for name, value in headers:
        match name.lower():
            case "content-encoding":
                continue
            case "content-length":
                if not length:
                    made.append((name, str(len(body))))
                length = True
            case _:
                made.append((name, value))
    return tuple(made)


def _remaining(fixed: Record, came: Exchange, engine: Engine) -> tuple[Finding, ...]:
    """Findings on a repaired exchange, in the conversation of what came in and in the light of the ledger as it stands."""
    exchange = replay(mended(fixed))
    if exchange is None:
        return ()
    return engine.judge(dataclasses.replace(exchange, conversation=came.conversation, link=came.link))


def _with_notes(record: Record, notes: Sequence[str]) -> dict[str, Json]:
    annotations = dict(record.annotations)
    if notes:
        before = annotations.get("notes")
        kept: list[Json] = list(before) if isinstance(before, list) else []
        annotations["notes"] = [*kept, *(note for note in notes if note not in kept)]
    return annotations
