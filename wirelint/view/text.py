"""Formats for people: findings grouped by exchange, or a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.rule import Finding
from wirelint.text.escaping import printable
from wirelint.view.carets import excerpt_lines
from wirelint.view.evidence import Source
from wirelint.view.layout import hung
from wirelint.view.screen import Screen
from wirelint.view.writer import MARKS, STYLES, known_note, place, recurrence, remedy, visible

_INDENT = 6


class Full:
    """Each exchange with findings as a block: a head line, then per finding what, where, the evidence, and the repair.

    An exchange of which all findings are known from earlier ones is its head line alone.
    """

    def __init__(self, out: TextIO) -> None:
        self._console = Screen(out)
        self._source: str | None = None

    def add(self, checked: Checked) -> None:
        if not checked.findings and not checked.known:
            return
        if checked.record.source != self._source:
            self._source = checked.record.source
            self._print(hung(Text(visible(self._source), "bold underline"), self._width, 0))
        head = _head(checked)
        if note := known_note(len(checked.known)):
            head.append(f"  {note}", "dim")
        self._print(hung(head, self._width, 2, 2))
        if not checked.findings:
            return
        source = Source(checked)
        for finding in checked.findings:
            self._print(finding_lines(checked, finding, source, self._width))
        self._print([Text()])

    def close(self) -> None:
        self._console.file.flush()

    @property
    def _width(self) -> int:
        return self._console.width

    def _print(self, lines: Iterable[Text]) -> None:
        for line in lines:
            self._console.print(line, soft_wrap=True)


def finding_lines(checked: Checked, finding: Finding, source: Source, width: int) -> Iterator[Text]:
    """A finding as compilers print theirs: what, where, the source with carets at the evidence, the repair."""
    style = STYLES[finding.severity]
    title = Text.assemble((f"{MARKS[finding.severity]} {finding.code} {finding.name}", f"bold {style}"))
    title.append(f"  {finding.severity} · {finding.layer}", style)
    if finding.confidence != "high":
        title.append(f" · {finding.confidence} confidence", "dim")
    yield from hung(title, width, 4, 2)
    yield from hung(Text(finding.message), width, _INDENT)
    yield from hung(Text.assemble(("--> ", "blue"), (visible(place(finding)), "dim")), width, _INDENT, 4)
    for line in excerpt_lines(source.evidence(finding), width - _INDENT, style):
        yield Text(" " * _INDENT).append_text(line)
    if again := recurrence(finding.issue, checked.record.id):
        yield from hung(Text.assemble(("= ", "blue"), (again, "dim")), width, _INDENT, 2)
    if repair := remedy(checked, finding):
        yield from hung(Text.assemble(("= ", "blue"), (repair, "green")), width, _INDENT, 2)


class Concise:
    """One line per finding, made for grep: `source:exchange: CODE name severity layer side pointer: message`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            where = f"{checked.record.source}:{checked.record.id}"
            what = f"{finding.code} {finding.name} {finding.severity} {finding.layer} {place(finding)}"
            self._out.write(printable(f"{where}: {what}: {finding.message}") + "\n")

    def close(self) -> None:
        self._out.flush()


def _head(checked: Checked) -> Text:
    exchange = checked.exchange
    head = Text()
    head.append(visible(checked.record.id), "bold cyan")
    if exchange is None:
        return head
    for word in (exchange.api, exchange.model, "stream" if exchange.reply and exchange.reply.streamed else ""):
        if word:
            head.append(visible(f"  {word}"))
    if exchange.status is not None:
        head.append(f"  {exchange.status}", "green" if exchange.status < 400 else "red")
    return head
