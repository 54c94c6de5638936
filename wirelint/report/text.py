"""Formats for people: findings grouped by exchange, or a line each."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.report.writer import MARKS, STYLES, place, remedy, visible
from wirelint.rule import Finding


class Full:
    """Each exchange with findings as a block: a head line, then per finding what, where, who, and the repair."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=False)
        self._source: str | None = None

    def add(self, checked: Checked) -> None:
        if not checked.findings:
            return
        if checked.record.source != self._source:
            self._source = checked.record.source
            self._console.print(Text(self._source, "bold"), overflow="fold")
        self._console.print(_head(checked), overflow="fold")
        for finding in checked.findings:
            self._finding(checked, finding)
        self._console.print()

    def close(self) -> None:
        self._console.file.flush()

    def _finding(self, checked: Checked, finding: Finding) -> None:
        style = STYLES[finding.severity]
        title = Text.assemble((f"{MARKS[finding.severity]} {finding.code} {finding.name}", f"bold {style}"))
        title.append(f"  {finding.severity} · {finding.layer}", style)
        if finding.confidence != "high":
            title.append(f" · {finding.confidence} confidence", "dim")
        self._console.print(Padding(title, (0, 0, 0, 4)))
        self._console.print(Padding(Text(finding.message, overflow="fold"), (0, 0, 0, 6)))
        self._console.print(Padding(Text(f"at {place(finding)}", "dim", overflow="fold"), (0, 0, 0, 6)))
        if repair := remedy(checked, finding):
            self._console.print(Padding(Text(repair, "green", overflow="fold"), (0, 0, 0, 6)))


class Concise:
    """One line per finding, made for grep: `source:exchange: CODE name severity layer side pointer: message`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            where = visible(f"{checked.record.source}:{checked.record.id}")
            what = f"{finding.code} {finding.name} {finding.severity} {finding.layer} {place(finding)}"
            self._out.write(f"{where}: {what}: {finding.message}\n")

    def close(self) -> None:
        self._out.flush()


def _head(checked: Checked) -> Text:
    exchange = checked.exchange
    head = Text("  ")
    head.append(visible(checked.record.id), "bold cyan")
    if exchange is None:
        return head
    for word in (exchange.api, exchange.model, "stream" if exchange.reply and exchange.reply.streamed else ""):
        if word:
            head.append(visible(f"  {word}"))
    if exchange.status is not None:
        head.append(f"  {exchange.status}", "green" if exchange.status < 400 else "red")
    return head
