"""The lines of a run: one per exchange, one under it per finding. Plain text here; a terminal shows them as `screen` says.

They go through `logging`, so mitmdump prints them, and mitmweb and the console show them in their event logs. Findings
are warnings there from the severity `warning` on. Nothing is an error: mitmproxy would take that for a reason to stop.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from mitmproxy.log import LegacyLogEvents

from wirelint.addon import terminal_log
from wirelint.addon.verdict import CheckResult
from wirelint.addon.words import one_line, shorten
from wirelint.apis import channel_of
from wirelint.capture.redact import Redactor
from wirelint.model import Exchange
from wirelint.rule import SEVERITIES, AppliedFix, Finding
from wirelint.view.findings import known_note, place

logger = logging.getLogger("wirelint")

_SHOWN = 12
_redactors = [Redactor()]
_MESSAGE = 400


def log_exchange(verdict: CheckResult) -> None:
    """The line of an exchange, and those of its findings and fixes."""
    if not is_shown(logging.WARNING):
        return
    say(exchange_line(verdict), look=terminal_log.exchange_look(verdict))
    new = verdict.new
    for finding in new[:_SHOWN]:
        say_finding(finding)
    if len(new) > _SHOWN:
        _remark(f"… {len(new) - _SHOWN} more: wirelint show {verdict.record.id[:8]}")
    fixes = verdict.record.fixes
    for fix in fixes[:_SHOWN]:
        say(fix_line(fix), look=terminal_log.fix_look(fix))
    if len(fixes) > _SHOWN:
        _remark(f"… {len(fixes) - _SHOWN} more fixes: wirelint show {verdict.record.id[:8]}")
    for note in verdict.notes:
        _remark(f"note: {note}")


def log_early(exchange: Exchange, model: str, findings: Sequence[Finding]) -> None:
    """The lines of an exchange that is still open, and of what is wrong with it already."""
    say(early_line(exchange, model, findings), logging.WARNING, terminal_log.early_look(exchange, model, findings))
    for finding in findings:
        say_finding(finding)


def say_finding(finding: Finding) -> None:
    level = logging.INFO if finding.severity == "info" else logging.WARNING
    say(finding_line(finding), level, terminal_log.finding_look(finding))


def redact_with(redactor: Redactor) -> None:
    """Take credentials out of all lines by this redactor, which knows those that requests carried, or lets them stand."""
    _redactors[:] = [redactor]


def _remark(text: str) -> None:
    text = _redactors[0].text(text)
    say(f"  {text}", look=terminal_log.note_look(text))


def exchange_line(verdict: CheckResult) -> str:
    """`openai.chat kimi-k2 200 stream, 1.84 s (first token 0.42 s), 2 calls: 1 error, 2 fixed [3f2a9c11]`."""
    record = verdict.record
    status = "no reply" if record.status is None else str(record.status)
    facts = [f"{status} stream" if verdict.streamed else status]
    if record.timing.duration is not None:
        took = terminal_log.seconds(record.timing.duration)
        token = record.timing.first_token
        facts.append(
            f"{took} (first token {terminal_log.seconds(token)})" if token is not None and verdict.streamed else took
        )
    if verdict.calls:
        facts.append("1 call" if verdict.calls == 1 else f"{verdict.calls} calls")
    if record.end != "complete":
        facts.append(record.end)
    who = " ".join(part for part in (verdict.api or terminal_log.unread(verdict), shorten(verdict.model, 48)) if part)
    return f"{who} {', '.join(facts)}: {_counts(verdict)} [{record.id[:8]}]"


def early_line(exchange: Exchange, model: str, findings: Sequence[Finding]) -> str:
    """`openai.chat kimi-k2 200 stream, open for 31.0 s: 1 warning so far [3f2a9c11]`."""
    status = "no reply yet" if exchange.status is None else str(exchange.status)
    if exchange.reply is not None and exchange.reply.streamed:
        status += " stream"
    who = " ".join(part for part in (exchange.api, shorten(model, 48)) if part)
    lasted = terminal_log.seconds(exchange.timing.duration or 0.0)
    return f"{who} {status}, open for {lasted}: {', '.join(_tally(findings))} so far [{exchange.id[:8]}]"


def finding_line(finding: Finding) -> str:
    """`  error xml-leak [model] response /choices/0/message/content, event 12: …`."""
    head = f"  {finding.severity} {finding.name} [{finding.layer}] {place(finding)}"
    return f"{head}: {shorten(finding.message, _MESSAGE)}"


def fix_line(fix: AppliedFix) -> str:
    """`  fixed xml-leak [unsafe] promoted to a call of get_weather`."""
    return f"  fixed {fix.name} [{fix.safety}] {shorten(fix.title, _MESSAGE)}"


def log_fault(fault: Finding) -> None:
    """A failure of our own that was dealt with where it happened, and became a finding there."""
    say(f"wirelint: {shorten(fault.message, _MESSAGE)}; further failures of this are not logged", logging.WARNING)


def log_failure(culprit: str, error: BaseException) -> None:
    """A failure of our own. Its traceback shows at `--set termlog_verbosity=debug`."""
    say(
        f"wirelint: {culprit} failed: {type(error).__name__}: {shorten(str(error), _MESSAGE)}; traffic passes as it is, "
        "further failures of this are not logged",
        logging.WARNING,
    )
    logger.debug("wirelint: %s failed", culprit, exc_info=error)


def is_shown(level: int) -> bool:
    """Return True if a line of this level is shown anywhere: after `-q` it is not.

    mitmproxy hands every line on to all of its addons as well, in a hook that is out of use: that alone takes longer than
    to judge a short exchange.
    """
    handlers = [handler for handler in logging.root.handlers if handler.level <= level]
    return bool([handler for handler in handlers if not isinstance(handler, LegacyLogEvents)])


def say(text: str, level: int = logging.INFO, look: terminal_log.Look | None = None) -> None:
    """One line, in characters that the output can show. `look`: how a terminal shows it, when not as it is."""
    if not is_shown(level):
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    line = one_line(_redactors[0].text(text)).encode(encoding, "backslashreplace").decode(encoding)
    logger.log(level, "%s", line, extra={terminal_log.LOOK: look} if look is not None else None)


def _is_judged(verdict: CheckResult) -> bool:
    exchange = verdict.exchange
    if exchange is None:
        return False
    settled = exchange.status is not None and 200 <= exchange.status < 300 and exchange.end != "unread"
    return exchange.ok or (settled and channel_of(exchange.api) == "mcp")  # what is only taken has no body


def _counts(verdict: CheckResult) -> str:
    counts = _tally(verdict.new)
    if verdict.known:
        counts.append(known_note(verdict.known))
    counts = counts or ["ok" if _is_judged(verdict) else "not judged"]
    if verdict.record.fixes:
        counts.append(f"{len(verdict.record.fixes)} fixed")
    return ", ".join(counts)


def _tally(findings: Sequence[Finding]) -> list[str]:
    counts = []
    for severity in SEVERITIES:
        count = sum(finding.severity == severity for finding in findings)
        if count:
            counts.append(f"{count} {severity if count == 1 or severity == 'info' else severity + 's'}")
    return counts
