"""A flow read as it stands, with the verdict that stands in its metadata: for flows that nobody remembers."""

from __future__ import annotations

import dataclasses
from typing import cast, get_args

from mitmproxy import http

from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import record_of
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.fix import SAFETIES
from wirelint.model import Confidence, Layer, Severity
from wirelint.rule import Finding, Fix

_DETAIL = "wirelint.detail"
_KNOWN = Finding("", "", "info", "high", "wirelint", "request", "")
"""A finding that earlier exchanges had: metadata holds only the number of these."""
_MOST_KNOWN = 100_000
_WORDS = {
    "severity": frozenset(get_args(Severity)),
    "confidence": frozenset(get_args(Confidence)),
    "layer": frozenset(get_args(Layer)),
    "side": frozenset({"request", "response"}),
}


def recall(flow: http.HTTPFlow, engine: Engine, redactor: Redactor) -> tuple[Checked, tuple[str, ...]]:
    """The exchange of a flow with its findings and notes. What was changed since it was judged is judged again."""
    record = redactor.record(record_of(flow))
    exchange = replay(record)
    findings = findings_of(flow)
    if exchange is not None and (findings is None or flow.modified()):  # type: ignore[no-untyped-call, unused-ignore]
        findings = engine.judge(engine.ledger.place(exchange))
    said = flow.metadata.get("wirelint.notes")
    notes = tuple(note for note in said if isinstance(note, str)) if isinstance(said, list) else ()
    known = flow.metadata.get("wirelint.known")
    checked = Checked(record, exchange, findings or ()).folded
    if not checked.known and isinstance(known, int) and 0 < known <= _MOST_KNOWN:
        checked = dataclasses.replace(checked, known=(_KNOWN,) * known)
    return checked, notes


def judged(record: Record, engine: Engine) -> Checked:
    """A record judged in the light of the ledger as it stands, which stays as it is."""
    exchange = replay(record)
    return Checked(record, exchange, engine.judge(engine.ledger.place(exchange)) if exchange is not None else ()).folded


def findings_of(flow: http.HTTPFlow) -> tuple[Finding, ...] | None:
    """The findings in a flow's metadata; None where it has no verdict."""
    details = flow.metadata.get(_DETAIL)
    if not isinstance(details, list):
        return None
    return tuple(finding for detail in details if (finding := _finding(detail)) is not None)


def _finding(detail: object) -> Finding | None:
    """Metadata comes out of files, which may hold anything."""
    if not isinstance(detail, dict):
        return None
    words = [detail.get(name) for name in ("code", "name", "message")]
    if not all(isinstance(word, str) for word in words):
        return None
    if any(not isinstance(detail.get(name), str) or detail[name] not in known for name, known in _WORDS.items()):
        return None
    pointer, event, fix = detail.get("pointer"), detail.get("event"), detail.get("fix")
    return Finding(
        code=cast("str", words[0]),
        name=cast("str", words[1]),
        severity=detail["severity"],
        confidence=detail["confidence"],
        layer=detail["layer"],
        side=detail["side"],
        message=cast("str", words[2]),
        pointer=pointer if isinstance(pointer, str) else None,
        event=event if isinstance(event, int) else None,
        fix=_fix(fix),
    )


def _fix(value: object) -> Fix | None:
    if not isinstance(value, dict) or value.get("safety") not in SAFETIES or not isinstance(value.get("title"), str):
        return None
    return Fix(value["safety"], value["title"])
