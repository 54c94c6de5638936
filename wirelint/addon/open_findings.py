"""What is said of an exchange before it has ended, because something about it will not wait.

It stands on the flow and in the log at once. None of it is written down: when the exchange has ended, its verdict takes the
place of all that was said before.
"""

from __future__ import annotations

import dataclasses

from mitmproxy import http

from wirelint.addon.annotate import annotate, early_annotation, take_back
from wirelint.addon.log import log_early
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.redact import Redactor
from wirelint.model import Exchange
from wirelint.rule import Finding


def announce(
    flow: http.HTTPFlow, visit: ExchangeRecorder, exchange: Exchange, findings: tuple[Finding, ...], redactor: Redactor
) -> None:
    """Tells of findings in an open exchange."""
    clean = [dataclasses.replace(finding, message=redactor.text(finding.message)) for finding in findings]
    model = redactor.text(exchange.model)
    visit.early += clean
    log_early(exchange, model, clean)
    withdraw(flow, visit)
    made = early_annotation(exchange, model, tuple(visit.early))
    visit.shown = (made.comment, "" if flow.marked else made.marker)
    annotate(flow, made)


def withdraw(flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
    """Takes back what was put on a flow."""
    if visit.shown is not None:
        take_back(flow, *visit.shown)
        visit.shown = None
