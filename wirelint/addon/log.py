"""Log lines of a run: one per exchange, one below it per finding; and the log of internal failures.

Lines are plain text through `logging`; `terminal_log` lays them out for a terminal. Findings of severity `warning` and
`error` are logged as warnings, never as errors: mitmproxy exits on errors during start."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Iterable
from typing import NamedTuple

from mitmproxy.log import LegacyLogEvents
from rich.text import Text

from wirelint.addon import terminal_log
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import channel_of
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.model import Exchange
from wirelint.rule import Finding
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.dashboard import Totals
from wirelint.view.findings import known_note, place, tally

logger = logging.getLogger("wirelint")

_SHOWN = 12
_redactors = [Redactor()]
_MESSAGE = 400
_PIPE = 160
"""Columns of a table in a file or a pipe."""


def log_exchange(checked: Checked) -> None:
    """Log an exchange that has ended or is open, its new findings and its new fixes."""
    if not is_shown(logging.WARNING):
        return
    checked = checked.folded
    record, findings = checked.record, checked.findings
    level = logging.WARNING if checked.is_open else logging.INFO
    say(exchange_line(checked), level, functools.partial(terminal_log.exchange_look, checked))
    for finding in findings[:_SHOWN]:
        log_finding(finding)
    if len(findings) > _SHOWN:
        _remark(f"… {len(findings) - _SHOWN} more: wirelint show {record.id[:8]}")
    fixes = checked.new_fixes
    for fix in fixes[:_SHOWN]:
        line = f"  fixed {fix.name} [{fix.safety}] {shorten(fix.title, _MESSAGE)}"
        say(line, look=terminal_log.fix_look(fix))
    if len(fixes) > _SHOWN:
        _remark(f"… {len(fixes) - _SHOWN} more fixes: wirelint show {record.id[:8]}")
    for note in record.notes:
        _remark(f"note: {note}")


def log_totals(totals: Totals) -> None:
    """Log the counts of all exchanges: a line per model below their titles."""
    if totals.all.exchanges:
        for number, line in enumerate(totals.table(_PIPE)):
            say(f"  {line.plain}", look=terminal_log.row_look(totals.table, number))


def log_finding(finding: Finding) -> None:
    level = logging.INFO if finding.severity == "info" else logging.WARNING
    say(finding_line(finding), level, terminal_log.finding_look(finding))


def set_redactor(redactor: Redactor) -> None:
    """Redact all lines with this redactor."""
    _redactors[:] = [redactor]


def _remark(text: str) -> None:
    text = _redactors[0].text(text)
    say(f"  {text}", look=terminal_log.beneath(Text(printable(text), "dim")))


def exchange_line(checked: Checked) -> str:
    """`openai.chat kimi-k2 200 stream, 1.84 s (first token 0.42 s), 2 calls: 1 error, 2 fixed [3f2a9c11]`.

    Of an open exchange: `openai.chat kimi-k2 200 stream, open for 31.0 s: 1 warning so far [3f2a9c11]`.
    """
    checked = checked.folded
    record = checked.record
    no_reply = "no reply yet" if checked.is_open else "no reply"
    status = no_reply if record.status is None else str(record.status)
    facts = [f"{status} stream" if checked.streamed else status]
    if checked.is_open:
        facts.append(f"open for {terminal_log.seconds(record.timing.duration)}")
    elif record.timing.duration is not None:
        took = terminal_log.seconds(record.timing.duration)
        token = record.timing.first_token
        facts.append(
            f"{took} (first token {terminal_log.seconds(token)})" if token is not None and checked.streamed else took
        )
    if checked.calls:
        facts.append(counted(checked.calls, "call"))
    if record.end != "complete" and not checked.is_open:
        facts.append(record.end)
    who = " ".join(part for part in (checked.api or terminal_log.unread(checked), shorten(checked.model, 48)) if part)
    return f"{who} {', '.join(facts)}: {_counts(checked)} [{record.id[:8]}]"


def finding_line(finding: Finding) -> str:
    """`  error xml-leak [model] response /choices/0/message/content, event 12: …`."""
    head = f"  {finding.severity} {finding.name} [{finding.layer}] {place(finding)}"
    return f"{head}: {shorten(finding.message, _MESSAGE)}"


def log_failure(culprit: str, error: BaseException) -> None:
    """Log an internal failure. Its traceback appears with `--set termlog_verbosity=debug`."""
    say(
        f"wirelint: {culprit} failed: {type(error).__name__}: {shorten(str(error), _MESSAGE)}; traffic passes unchanged, "
        "further failures of this are not logged",
        logging.WARNING,
    )
    logger.debug("wirelint: %s failed", culprit, exc_info=error)


def is_shown(level: int) -> bool:
    """Return True if lines of this level are displayed: not with `-q`. mitmproxy hands each line to every addon, which
    is slow."""
    handlers = [handler for handler in logging.root.handlers if handler.level <= level]
    return bool([handler for handler in handlers if not isinstance(handler, LegacyLogEvents)])


def say(text: str, level: int = logging.INFO, look: terminal_log.Look | None = None) -> None:
    """Log one line, in characters that the output can encode. `look`: its layout in a terminal."""
    if not is_shown(level):
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    line = printable(_redactors[0].text(text)).encode(encoding, "backslashreplace").decode(encoding)
    logger.log(level, "%s", line, extra={terminal_log.LOOK: look} if look is not None else None)


def _is_judged(exchange: Exchange | None) -> bool:
    if exchange is None:
        return False
    settled = exchange.status is not None and 200 <= exchange.status < 300 and exchange.end != "unread"
    return exchange.ok or (settled and channel_of(exchange.api) == "mcp")  # an accepted notification has no body


def _counts(checked: Checked) -> str:
    counts = [part for part in (tally(checked.findings), known_note(len(checked.known))) if part]
    counts = counts or ["ok" if _is_judged(checked.exchange) else "not checked"]
    if checked.record.fixes:
        counts.append(f"{len(checked.record.fixes)} fixed")
    return ", ".join(counts) + (" so far" if checked.is_open else "")


class Failures:
    """Internal failures: each culprit is logged once, and the exchange gets a finding."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def caught(self, culprit: str, recorder: ExchangeRecorder | None = None, *, readable: bool = False) -> FailOpen:
        """Return a context that ends at an exception and notes it: on an exchange, if there is one, and in the log.

        `readable`: the exchange can be parsed further after a failure."""
        return FailOpen(self, culprit, recorder, readable)

    def fail(self, recorder: ExchangeRecorder, culprit: str, error: Exception) -> None:
        """Record a failure after which the exchange cannot be parsed further."""
        recorder.fail(culprit, error)
        self.log(culprit, error)

    def rule(self, name: str, error: Exception) -> None:
        self.log(f"rule {name}", error)

    def log(self, culprit: str, error: BaseException) -> None:
        """Log a failure."""
        if culprit in self._logged:
            return
        self._logged.add(culprit)
        with contextlib.suppress(Exception):  # fail open: logging itself failed
            log_failure(culprit, error)

    def log_handled(self, faults: Iterable[Finding]) -> None:
        """Log failures that were handled elsewhere and are findings already."""
        for fault in faults:
            culprit = fault.message.partition(" failed: ")[0]
            if culprit not in self._logged:
                self._logged.add(culprit)
                text = shorten(fault.message, _MESSAGE)
                say(f"wirelint: {text}; further failures of this are not logged", logging.WARNING)


class FailOpen(NamedTuple):
    """Context of `Failures.caught`: traffic continues after any exception in its block."""

    failures: Failures
    culprit: str
    recorder: ExchangeRecorder | None
    readable: bool

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        if self.recorder is not None and not self.readable:
            self.failures.fail(self.recorder, self.culprit, error)
            return True
        if self.recorder is not None:
            self.recorder.add_fault(self.culprit, error)
        self.failures.log(self.culprit, error)
        return True
