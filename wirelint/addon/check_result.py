"""Check of an exchange that has ended, and its result.

Findings are a function of the captured bytes. If redaction changes a body, the exchange is parsed again from the
redacted bytes, so that no finding quotes a secret, the ledger equals that of a reader of the captures, and `wirelint
check` agrees with the live run. Otherwise the parse made in transit is used."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import delivered_reply, replay
from wirelint.capture.streams import StreamStrings
from wirelint.engine import Engine, internal, lower
from wirelint.lexicon import compile_patterns
from wirelint.model import End, Exchange, Reply, Timing
from wirelint.rule import SEVERITIES, Finding, Rule
from wirelint.state.ledger import Unnamed

_SAMPLE = Record(
    "sample",
    "POST",
    "https://localhost/v1/chat/completions",
    request_body=b"""{"model": "sample", "messages": [{"role": "user", "content": "Please send it."}], "tools": [
    {"type": "function", "function": {"name": "send_mail", "parameters": {"type": "object", "properties": {}}}}]}""",
    status=200,
    response_body=b"""{"choices": [{"index": 0, "finish_reason": "stop", "message":
    {"role": "assistant", "content": "I've sent the mail `now` for 5 USD. <tool_call>"}}, {"index": 1, "finish_reason":
    "tool_calls", "message": {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function":
    {"name": "send_mail", "arguments": "{'to': 'Ann'"}}]}}]}""",
    end="complete",
)
"""A reply with a claim, a number, code, the beginning of markup, and arguments that are no JSON."""


class Reading(NamedTuple):
    """Redacted record of an ended exchange and its parse; None if there is nothing to check."""

    record: Record
    exchange: Exchange | None


def read(
    recorder: ExchangeRecorder, end: End, error: str | None, duration: float | None, redactor: Redactor
) -> Reading:
    """Parse and redact a recorder; safe in a thread, since only the recorder and the redactor are used. Raises parse
    errors."""
    exchange = _read(recorder, end, error)
    if exchange is not None:
        recorder.notes += [note for note in exchange.notes if note not in recorder.notes]
    timing = Timing(recorder.started, recorder.first_byte, exchange.timing.first_token if exchange else None, duration)
    record = recorder.record(exchange.end if exchange else end, error, exchange.chunks if exchange else (), timing)
    strings = StreamStrings()
    delivered = delivered_reply(record, strings) if exchange is not None else None
    clean = redactor.record(record, recorder.strings, strings)
    if exchange is not None:
        if delivered is not None and record.delivered != clean.delivered:
            delivered = delivered_reply(clean)
        same = clean.request_body == record.request_body and clean.response_body == record.response_body
        exchange = _under(exchange, clean, delivered) if same and not recorder.must_reread else replay(clean)
    return Reading(clean, exchange)


def judge(recorder: ExchangeRecorder, reading: Reading, engine: Engine, redactor: Redactor) -> Checked:
    """Check an ended exchange. Raises the errors of the engine."""
    clean, exchange = reading
    findings = _faults(recorder, redactor)
    if exchange is not None:
        if clean.notes or exchange.notes:
            exchange = exchange.but(notes=clean.notes)
        exchange = engine.ledger.place(exchange)
        findings += engine.check(exchange, rules=recorder.rules)
    elif recorder.is_readable and not recorder.is_unread:
        findings.append(
            internal("reading the exchange without its secrets", ValueError("it has no known API without them"))
        )
    return _result(recorder, clean, exchange, findings, redactor)


def warm_up(rules: Sequence[Rule]) -> None:
    """Compile all patterns and judge a sample; safe in a thread.

    Patterns are compiled and some modules imported at their first use, which would hold up all traffic for 0.1 s.
    """
    compile_patterns()
    exchange = replay(_SAMPLE)
    if exchange is not None:
        Engine(rules).judge(exchange)


def unchecked_result(recorder: ExchangeRecorder, end: End, error: str | None, redactor: Redactor) -> Checked:
    """Return the result if checking itself failed: the record and the failures."""
    clean = redactor.record(recorder.record(end, error, (), Timing(recorder.started, recorder.first_byte)))
    return _result(recorder, clean, None, _faults(recorder, redactor), redactor)


def _read(recorder: ExchangeRecorder, end: End, error: str | None) -> Exchange | None:
    if recorder.session is None or not recorder.is_readable:
        return None
    if recorder.status is None:
        # A reader of captures cannot distinguish "no head" from "an empty reply"; neither is checked.
        recorder.session.respond(None, {})
    return recorder.session.finish(end, error=error)


def _under(exchange: Exchange, clean: Record, delivered: Reply | None) -> Exchange:
    """Replace URL, headers and derived fields by the redacted ones. `delivered`: the changed reply."""
    redacted = exchange.but(
        url=clean.url,
        request_headers=lower(clean.request_headers),
        response_headers=lower(clean.response_headers),
        error=clean.error,
        timing=clean.timing,
        delivered=delivered,
    )
    return Unnamed.of(redacted)  # a redacted value may name the session of a client


def _faults(recorder: ExchangeRecorder, redactor: Redactor) -> list[Finding]:
    """Return internal failures; the text of an exception may quote secrets, so it is redacted."""
    return [dataclasses.replace(fault, message=redactor.text(fault.message)) for fault in recorder.faults]


def _result(
    recorder: ExchangeRecorder, clean: Record, exchange: Exchange | None, findings: list[Finding], redactor: Redactor
) -> Checked:
    session = recorder.session
    asked = session.request if session is not None and exchange is None else None
    names = session.api.name if session is not None else "", redactor.text(asked.model) if asked is not None else ""
    return Checked(clean, exchange, tuple(findings), names=names)


def with_faults(checked: Checked, faults: list[Finding]) -> Checked:
    """Return a result with the failures that came after it."""
    return dataclasses.replace(checked, findings=(*checked.findings, *faults)) if faults else checked


def names_of(findings: tuple[Finding, ...]) -> list[str]:
    """Return the names of findings, each once, worst and surest first."""
    return list(dict.fromkeys(finding.name for finding in sorted(findings, key=_rank))) if findings else []


def _rank(finding: Finding) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), ("high", "medium", "low").index(finding.confidence)
