"""Log of a run: one line per exchange, below it one per finding; internal failures; and the layout for a terminal.

    16:20:11 ✓ openai.chat        gpt-4.1-mini        200  1.84 s 1 call   3f2a9c11
    16:20:14 ● anthropic.messages claude-sonnet-4-5   200 12.31 s 2 calls  77c0b1d2
               ● xml-leak (gateway) tool call search_notes leaked into the text  [response /content/0, event 9]
               ✎ xml-leak (safe) promoted a call of search_notes

Lines are plain text and go through `logging`; each record also carries its layout for a terminal. mitmproxy's terminal
handler gets a formatter that uses the layout; other handlers, and a pipe, get the text. Findings of severity `warning`
and `error` are logged as warnings, never as errors: mitmproxy exits on errors during start."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from mitmproxy.addons.termlog import TermLogHandler
from mitmproxy.log import LegacyLogEvents
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wirelint.apis import channel_of
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.rule import AppliedFix, Finding
from wirelint.text.escaping import ERRORS, counted, printable, shorten
from wirelint.view.findings import MARKS, STYLES, known_note, place, tally, title_style, worst
from wirelint.view.screen import Screen, hung
from wirelint.view.totals import Totals

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
    say(exchange_line(checked), level, functools.partial(exchange_look, checked))
    for finding in findings[:_SHOWN]:
        shown = logging.INFO if finding.severity == "info" else logging.WARNING
        say(finding_line(finding), shown, finding_look(finding))
    if len(findings) > _SHOWN:
        _remark(f"… {len(findings) - _SHOWN} more: wirelint show {record.id[:8]}")
    fixes = checked.new_fixes
    for fix in fixes[:_SHOWN]:
        say(f"  fixed {fix.name} [{fix.safety}] {shorten(fix.title, _MESSAGE)}", look=fix_look(fix))
    if len(fixes) > _SHOWN:
        _remark(f"… {len(fixes) - _SHOWN} more fixes: wirelint show {record.id[:8]}")
    for note in record.notes:
        _remark(f"note: {note}")


def log_totals(totals: Totals) -> None:
    """Log the counts of all exchanges: a line per model below their titles."""
    if totals.all.exchanges:
        for number, line in enumerate(totals.table(_PIPE)):
            say(f"  {line.plain}", look=row_look(totals.table, number))


def set_redactor(redactor: Redactor) -> None:
    _redactors[:] = [redactor]


def _remark(text: str) -> None:
    text = _redactors[0].text(text)
    say(f"  {text}", look=beneath(Text(printable(text), "dim")))


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
        facts.append(f"open for {seconds(record.timing.duration)}")
    elif record.timing.duration is not None:
        took = seconds(record.timing.duration)
        token = record.timing.first_token
        facts.append(f"{took} (first token {seconds(token)})" if token is not None and checked.streamed else took)
    if checked.calls:
        facts.append(counted(checked.calls, "call"))
    if record.end != "complete" and not checked.is_open:
        facts.append(record.end)
    who = " ".join(part for part in (checked.api or unread(checked), shorten(checked.model, 48)) if part)
    return f"{who} {', '.join(facts)}: {_counts(checked)} [{record.id[:8]}]"


def finding_line(finding: Finding) -> str:
    """`  error xml-leak [model] response /choices/0/message/content, event 12: …`."""
    head = f"  {finding.severity} {finding.name} [{finding.layer}] {place(finding)}"
    return f"{head}: {shorten(finding.message, _MESSAGE)}"


def is_shown(level: int) -> bool:
    """Return True if lines of this level are displayed. mitmproxy hands each line to every addon, which is slow."""
    return any(one.level <= level and not isinstance(one, LegacyLogEvents) for one in logging.root.handlers)


def say(text: str, level: int = logging.INFO, look: Look | None = None) -> None:
    """Log one line, in characters that the output can encode. `look`: its layout in a terminal."""
    if not is_shown(level):
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    line = printable(_redactors[0].text(text)).encode(encoding, "backslashreplace").decode(encoding)
    logger.log(level, "%s", line, extra={LOOK: look} if look is not None else None)


def _counts(checked: Checked) -> str:
    counts = [part for part in (tally(checked.findings), known_note(len(checked.known))) if part]
    exchange = checked.exchange
    is_judged = exchange is not None and exchange.ok
    if exchange is not None and channel_of(exchange.api) == "mcp":  # an accepted notification has no body
        is_judged = is_judged or (exchange.end != "unread" and 200 <= (exchange.status or 0) < 300)
    counts = counts or ["ok" if is_judged else "not checked"]
    if checked.record.fixes:
        counts.append(f"{len(checked.record.fixes)} fixed")
    return ", ".join(counts) + (" so far" if checked.is_open else "")


class Failures:
    """Log of internal failures: each culprit is logged once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def caught(self, culprit: str) -> FailOpen:
        return FailOpen(culprit, self.log)

    def log(self, culprit: str, error: BaseException) -> None:
        """Log a failure. Its traceback appears with `--set termlog_verbosity=debug`."""
        if culprit in self._logged:
            return
        self._logged.add(culprit)
        with contextlib.suppress(Exception):  # fail open: logging itself failed
            text = f"{culprit} failed: {type(error).__name__}: {shorten(str(error), _MESSAGE)}"
            ends = "traffic passes unchanged, further failures of this are not logged"
            say(f"wirelint: {text}; {ends}", logging.WARNING)
            logger.debug("wirelint: %s failed", culprit, exc_info=error)

    def log_handled(self, faults: Iterable[Finding]) -> None:
        """Log failures that were handled elsewhere and are findings already."""
        for fault in faults:
            culprit = fault.message.partition(" failed: ")[0]
            if culprit not in self._logged:
                self._logged.add(culprit)
                text = shorten(fault.message, _MESSAGE)
                say(f"wirelint: {text}; further failures of this are not logged", logging.WARNING)


class FailOpen(NamedTuple):
    """Context that passes an exception in its block to `note`; traffic continues."""

    culprit: str
    note: Callable[[str, Exception], None]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self.note(self.culprit, error)
            return True
        return False


# --- layout for a terminal -------------------------------------------------------------------------------------------

LOOK = "wirelint_look"
"""The attribute of a log record with the layout of its line: a `Look`."""
Look: TypeAlias = Callable[[int], Iterable[Text]]
"""Function from the number of columns of a terminal to the lines after the time; continuation lines begin with
blanks."""

_TIME = len("16:20:11 ")
_BENEATH = 2
"""Columns by which findings are indented, to begin under the API's name."""
_API, _STATUS, _TOOK, _CALLS, _ID = 18, 3, 7, 8, 8
_FORM, _TOKEN = len("stream"), len("first 12.34 s")
_MODEL = (8, 40)
_WIDE, _NARROW = 104, 72
"""Columns of a terminal from which the form and the first token are shown; below which the calls are not."""


def exchange_look(checked: Checked, width: int) -> Iterator[Text]:
    """An exchange that has ended, or is open. One without new findings is a dim line."""
    record, highest = checked.record, worst(checked.findings)
    style = "" if highest else "dim"
    mark = Text(MARKS[highest], STYLES[highest]) if highest else Text("✓", "green dim")
    if not highest and (checked.exchange is None or (record.status or 0) >= 400):
        mark = Text("-", "dim")
    yield _row(checked, mark, style, width)
    if record.end not in ("complete", "unknown"):
        yield Text(f"{' ' * _BENEATH}{record.end}", "yellow")
    if checked.known:
        yield Text(f"{' ' * _BENEATH}{known_note(len(checked.known))}", "dim")


def beneath(text: Text) -> Look:
    return lambda width: hung(text, width, _BENEATH, 2)


def row_look(table: Callable[[int], Sequence[Text]], number: int) -> Look:
    """Return the layout of a row of a table. `table` returns the rows for a width."""
    return lambda width: hung(table(width - _BENEATH)[number], width, _BENEATH, 2)


def finding_look(finding: Finding) -> Look:
    name = f"{MARKS[finding.severity]} {finding.name}", title_style(finding)
    text = Text.assemble(name, (f" ({finding.layer})", STYLES[finding.severity]))
    text.append(f" {shorten(printable(finding.message), _MESSAGE)}").append(f"  [{printable(place(finding))}]", "dim")
    return beneath(text)


def fix_look(fix: AppliedFix) -> Look:
    text = Text.assemble((f"✎ {fix.name}", "bold green"), (f" ({fix.safety})", "green"))
    return beneath(text.append(f" {shorten(printable(fix.title), _MESSAGE)}", "green"))


def unread(checked: Checked) -> str:
    """Return the label of an exchange without an API: `unread request` if reading it failed, else `unknown API`."""
    return "unread request" if checked.findings else "unknown API"


def seconds(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    value = milliseconds / 1000
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def _row(checked: Checked, mark: Text, style: str, width: int) -> Text:
    status, timing = checked.record.status, checked.record.timing
    wide, narrow = width + _TIME >= _WIDE, width + _TIME < _NARROW
    columns = (1, _API, _STATUS, _TOOK, _ID, *(() if narrow else (_CALLS,)), *((_FORM, _TOKEN) if wide else ()))
    room = min(max(width - sum(columns) - len(columns), _MODEL[0]), _MODEL[1])
    failed = status is None or status >= 400
    api = _cell(checked.api or unread(checked), _API)
    row = Text.assemble(mark, (f" {api} ", style), (_cell(checked.model, room), style or "bold"))
    row.append(f" {'-' if status is None else status:>{_STATUS}}", "red" if failed else style)
    row.append(f" {seconds(timing.duration):>{_TOOK}} ", style)
    if wide:
        token = f"first {seconds(timing.first_token)}" if timing.first_token is not None and checked.streamed else ""
        row.append(f"{'stream' if checked.streamed else '':<{_FORM}} {token:<{_TOKEN}} ", style)
    calls = "open" if checked.is_open else counted(checked.calls, "call") if checked.calls else ""
    row.append("" if narrow else f"{calls:<{_CALLS}} ", style)
    return row.append(printable(checked.record.id[:_ID]), style or "cyan")


def _cell(text: str, size: int) -> str:
    text = printable(text)
    if cell_len(text) > size:
        text = f"{set_cell_size(text, size - 1).rstrip()}…"
    return set_cell_size(text, size)


class Formatter(logging.Formatter):
    """Formatter that shows wirelint's records in their layout, and all others through the former formatter."""

    def __init__(self, before: logging.Formatter) -> None:
        super().__init__(datefmt="%H:%M:%S")
        self._before = before

    def format(self, record: logging.LogRecord) -> str:
        look: Look | None = getattr(record, LOOK, None)
        if look is None:
            return self._before.format(record)
        width = shutil.get_terminal_size().columns
        lines = list(look(width - _TIME))
        # rich derives the colours from NO_COLOR and the terminal's name in the environment.
        out = io.StringIO()
        console = Screen(out, force_terminal=True, width=width, legacy_windows=False)
        for number, line in enumerate(lines):
            beneath = line.plain.startswith(" ")
            head = " " * _TIME if number or beneath else f"{self.formatTime(record, self.datefmt)} "
            console.print(Text.assemble((head, "dim"), line), soft_wrap=True)
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        return out.getvalue().removesuffix("\n").encode(encoding, ERRORS).decode(encoding)


def settle() -> None:
    """Install the formatter in mitmproxy's terminal handlers."""
    for handler in logging.getLogger().handlers:
        if not (isinstance(handler, TermLogHandler) and handler.has_vt_codes and os.environ.get("TERM") != "dumb"):
            continue
        if not isinstance(handler.formatter, Formatter):
            handler.setFormatter(Formatter(handler.formatter or logging.Formatter()))
