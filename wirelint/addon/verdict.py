"""What is said about an exchange when it has ended.

Findings are a function of what will be written down. Where redaction changes a body, the exchange is read again from the
redacted bytes: so no finding quotes a secret, the ledger holds what a reader of the captures would put into it, and
`wirelint check` of the captures says the same as the live run. Without a secret the reading that was made while the bytes
passed is used, and nothing is read twice.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import delivered_reply, replay
from wirelint.engine import Engine, internal, lower
from wirelint.model import End, Exchange, Json, Timing
from wirelint.rule import SEVERITIES, Finding
from wirelint.state.ledger import Unnamed
from wirelint.view.findings import flat


@dataclass(frozen=True, slots=True, eq=False)
class CheckResult:
    """`record` is what may be written: without secrets, unless redaction is off. `exchange` None: it could not be read."""

    record: Record
    exchange: Exchange | None
    findings: tuple[Finding, ...]
    api: str
    model: str
    notes: tuple[str, ...] = ()

    @property
    def new(self) -> tuple[Finding, ...]:
        """The findings that no earlier exchange of the conversation had."""
        return tuple([finding for finding in self.findings if not finding.is_known])

    @property
    def known(self) -> int:
        """The number of the others: they are written down, and not told again."""
        return len(self.findings) - len(self.new)

    @property
    def worst(self) -> str:
        """The highest severity of the new findings, empty when there are none."""
        return worst_of(self.new)

    @property
    def calls(self) -> int:
        """Tool calls that the client is to run."""
        if self.exchange is None or self.exchange.reply is None:
            return 0
        return sum([len(choice.calls) for choice in self.exchange.reply.choices])

    @property
    def streamed(self) -> bool:
        return self.exchange is not None and self.exchange.reply is not None and self.exchange.reply.streamed

    @property
    def fixed(self) -> list[str]:
        """The names of the rules whose fixes were made, each once."""
        return list(dict.fromkeys(fix.name for fix in self.record.fixes)) if self.record.fixes else []

    def with_fault(self, fault: Finding) -> CheckResult:
        return dataclasses.replace(self, findings=(*self.findings, fault))

    def annotations(self) -> dict[str, Json]:
        """What `exchanges.jsonl` has beside the bytes."""
        checked = Checked(self.record, self.exchange, self.findings)
        return {
            "api": self.api or None,
            "model": self.model or None,
            "conversation": self.exchange.conversation if self.exchange is not None else None,
            "findings": [flat(checked, finding) for finding in self.findings],
            "notes": list(self.notes),
        }


class Reading(NamedTuple):
    """A visit that has ended, without secrets: what is written down, and what is judged. `exchange` None: nothing is."""

    record: Record
    exchange: Exchange | None


def read(visit: ExchangeRecorder, end: End, error: str | None, duration: float | None, redactor: Redactor) -> Reading:
    """Reads a visit that has ended; nobody else may use it meanwhile. Raises what reading raises.

    The work grows with the bytes of the exchange. Nothing but the visit and the redactor is touched.
    """
    exchange = _read(visit, end, error)
    timing = Timing(visit.started, visit.first_byte, exchange.timing.first_token if exchange else None, duration)
    record = visit.record(exchange.end if exchange else end, error, exchange.chunks if exchange else (), timing)
    clean = redactor.record(record)
    if exchange is not None:
        same = clean.request_body == record.request_body and clean.response_body == record.response_body
        exchange = _under(exchange, clean) if same and not visit.reread else replay(clean)
    return Reading(clean, exchange)


def judge(visit: ExchangeRecorder, reading: Reading, engine: Engine, redactor: Redactor) -> CheckResult:
    """The verdict on a visit that has ended. Raises what judging raises."""
    clean, exchange = reading
    findings = _faults(visit, redactor)
    if exchange is not None:
        if visit.notes or exchange.notes:
            exchange = exchange.but(notes=tuple(visit.notes))
        exchange = engine.ledger.place(exchange)
        findings += engine.check(exchange)
    elif visit.readable and not visit.unread:
        findings.append(internal("reading the exchange without its secrets", ValueError("it is of no known API then")))
    return _verdict(visit, clean, exchange, findings, redactor)


def without_judgement(visit: ExchangeRecorder, end: End, error: str | None, redactor: Redactor) -> CheckResult:
    """The verdict when judging itself has failed: what passed, and the failures."""
    clean = redactor.record(visit.record(end, error, (), Timing(visit.started, visit.first_byte)))
    return _verdict(visit, clean, None, _faults(visit, redactor), redactor)


def _read(visit: ExchangeRecorder, end: End, error: str | None) -> Exchange | None:
    if visit.session is None or not visit.readable:
        return None
    if visit.status is None:
        # A reader of captures cannot tell "no head" from "an empty reply"; neither is judged.
        visit.session.respond(None, {})
    return visit.session.finish(end, error=error)


def _under(exchange: Exchange, clean: Record) -> Exchange:
    """The exchange with the redacted URL and headers, and what is made of them."""
    redacted = exchange.but(
        url=clean.url,
        request_headers=lower(clean.request_headers),
        response_headers=lower(clean.response_headers),
        error=clean.error,
        timing=clean.timing,
        delivered=delivered_reply(clean),
    )
    return Unnamed.of(redacted)  # a client may tell of its session in what was taken out


def _faults(visit: ExchangeRecorder, redactor: Redactor) -> list[Finding]:
    """Failures of our own; the text of an exception may quote what it failed on."""
    return [dataclasses.replace(fault, message=redactor.text(fault.message)) for fault in visit.faults]


def _verdict(
    visit: ExchangeRecorder, clean: Record, exchange: Exchange | None, findings: list[Finding], redactor: Redactor
) -> CheckResult:
    session = visit.session
    model = exchange.model if exchange is not None else ""
    if not model and session is not None and session.request is not None:
        model = redactor.text(session.request.model)
    return CheckResult(
        record=clean,
        exchange=exchange,
        findings=tuple(findings),
        api=session.api.name if session is not None else "",
        model=model,
        notes=tuple(visit.notes),
    )


def names_of(findings: tuple[Finding, ...]) -> list[str]:
    """The names of findings, each once, the worst and surest first."""
    return list(dict.fromkeys(finding.name for finding in sorted(findings, key=_rank))) if findings else []


def worst_of(findings: tuple[Finding, ...]) -> str:
    """The highest severity of findings, empty when there are none."""
    if not findings:
        return ""
    severities = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in severities), "")


def _rank(finding: Finding) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), ("high", "medium", "low").index(finding.confidence)
