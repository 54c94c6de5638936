"""Layout of log lines for a terminal: in columns, in colour, findings under their exchange.

    16:20:11 ✓ openai.chat        gpt-4.1-mini        200  1.84 s 1 call   3f2a9c11
    16:20:14 ● anthropic.messages claude-sonnet-4-5   200 12.31 s 2 calls  77c0b1d2
               ● xml-leak (gateway) tool call search_notes leaked into the text  [response /content/0, event 9]
               ✎ xml-leak (safe) promoted a call of search_notes

The lines themselves are plain text and go through `logging` (see `log`); each record also carries its layout for a
terminal. mitmproxy's terminal handler gets a formatter that uses the layout; other handlers, and a pipe, get the
text."""

from __future__ import annotations

import io
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from mitmproxy.addons.termlog import TermLogHandler
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.rule import AppliedFix, Finding
from wirelint.text.escaping import ERRORS, counted, printable, shorten
from wirelint.view.findings import MARKS, STYLES, known_note, place, worst
from wirelint.view.screen import Screen, hung

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
_MESSAGE = 400


def exchange_look(checked: Checked, width: int) -> Iterator[Text]:
    """An exchange that has ended, or is open. One without new findings is a dim line."""
    record, highest = checked.record, worst(checked.findings)
    style = "" if highest else "dim"
    mark = Text(MARKS[highest], STYLES[highest]) if highest else Text("✓", "green dim")
    took, token = record.timing.duration, record.timing.first_token
    calls = "open" if checked.is_open else counted(checked.calls, "call") if checked.calls else ""
    if not highest and (checked.exchange is None or (record.status or 0) >= 400):
        mark = Text("-", "dim")
    yield _row(
        mark, checked.api or unread(checked), checked.model, record.status, seconds(took), calls, record.id, style,
        width, checked.streamed, f"first {seconds(token)}" if token is not None and checked.streamed else "",
    )  # fmt: skip
    if record.end not in ("complete", "unknown"):
        yield Text(f"{' ' * _BENEATH}{record.end}", "yellow")
    if checked.known:
        yield Text(f"{' ' * _BENEATH}{known_note(len(checked.known))}", "dim")


def beneath(text: Text) -> Look:
    """Return the layout of a text under its exchange."""
    return lambda width: hung(text, width, _BENEATH, 2)


def row_look(table: Callable[[int], Sequence[Text]], number: int) -> Look:
    """Return the layout of a row of a table. `table` returns the rows for a width."""
    return lambda width: hung(table(width - _BENEATH)[number], width, _BENEATH, 2)


def finding_look(finding: Finding) -> Look:
    style = STYLES[finding.severity]
    text = Text.assemble((f"{MARKS[finding.severity]} {finding.name}", f"bold {style}"), (f" ({finding.layer})", style))
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


def _row(
    mark: Text, api: str, model: str, status: int | None, took: str, calls: str, name: str, style: str, width: int,
    streamed: bool, token: str,
) -> Text:  # fmt: skip
    wide, narrow = width + _TIME >= _WIDE, width + _TIME < _NARROW
    columns = (1, _API, _STATUS, _TOOK, _ID, *(() if narrow else (_CALLS,)), *((_FORM, _TOKEN) if wide else ()))
    room = min(max(width - sum(columns) - len(columns), _MODEL[0]), _MODEL[1])
    failed = status is None or status >= 400
    row = Text.assemble(mark, (f" {_cell(api, _API)} ", style), (_cell(model, room), style or "bold"))
    row.append(f" {'-' if status is None else status:>{_STATUS}}", "red" if failed else style)
    row.append(f" {took:>{_TOOK}} ", style)
    if wide:
        row.append(f"{'stream' if streamed else '':<{_FORM}} {token:<{_TOKEN}} ", style)
    return row.append("" if narrow else f"{calls:<{_CALLS}} ", style).append(printable(name[:_ID]), style or "cyan")


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
