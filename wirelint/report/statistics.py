"""Counts per rule, as a table or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

import orjson
from rich.console import Console
from rich.table import Table

from wirelint.capture.offline import Checked
from wirelint.report.writer import STYLES, repair_of
from wirelint.rule import Finding


@dataclass(slots=True)
class Statistics:
    """Takes checked exchanges, counts findings by rule, exchanges by whether they were understood."""

    exchanges: int = 0
    unknown: int = 0
    unjudged: int = 0
    """Of these, the exchanges that look like a model's or a tool's."""
    sources: set[str] = field(default_factory=set)
    severities: Counter[str] = field(default_factory=Counter)
    fixes: Counter[str] = field(default_factory=Counter)
    """Findings that can be repaired and were not, by the safety of the fix."""
    _rules: Counter[str] = field(default_factory=Counter)
    _affected: Counter[str] = field(default_factory=Counter)
    _first: dict[str, Finding] = field(default_factory=dict)

    def add(self, checked: Checked) -> None:
        self.exchanges += 1
        self.sources.add(checked.record.source)
        self.unknown += checked.exchange is None
        self.unjudged += bool(checked.because)
        for finding in checked.findings:
            self._rules[finding.code] += 1
            self._first.setdefault(finding.code, finding)
            self.severities[finding.severity] += 1
            if finding.fix is not None and repair_of(checked, finding) is None:
                self.fixes[finding.fix.safety] += 1
        self._affected.update({finding.code for finding in checked.findings})

    def write(self, out: TextIO, output_format: str) -> None:
        """The counts: a JSON array for `json`, an object a line for `jsonl`, else a table."""
        rows = list(self._rows())
        if output_format == "json":
            out.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
        elif output_format == "jsonl":
            out.writelines(orjson.dumps(row).decode() + "\n" for row in rows)
        elif rows:
            Console(file=out).print(_table(rows))

    def summary(self) -> str:
        """One line for the end of a run."""
        counts = [
            f"{self.severities[severity]} {severity if self.severities[severity] == 1 else word}"
            for severity, word in (("error", "errors"), ("warning", "warnings"), ("info", "infos"))
            if self.severities[severity]
        ]
        unjudged = f", {self.unjudged} of them not judged" if self.unjudged else ""
        unknown = f" ({self.unknown} of no known API{unjudged})" if self.unknown else ""
        files = f"{len(self.sources)} file{'' if len(self.sources) == 1 else 's'}"
        exchanges = f"{self.exchanges} exchange{'' if self.exchanges == 1 else 's'}"
        return f"{exchanges}{unknown} in {files}: {', '.join(counts) or 'nothing found'}"

    def hint(self) -> str:
        """What can be repaired, in one line; empty when nothing can."""
        safe, unsafe = self.fixes["safe"], self.fixes["unsafe"]
        if not safe:
            return f"{unsafe} fixable with wirelint fix --unsafe-fixes" if unsafe else ""
        return f"{safe} fixable with wirelint fix{f' ({unsafe} more with --unsafe-fixes)' if unsafe else ''}"

    def _rows(self) -> Iterator[dict[str, str | int]]:
        for code, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            first = self._first[code]
            yield {
                "code": code,
                "name": first.name,
                "severity": first.severity,
                "findings": count,
                "exchanges": self._affected[code],
            }


def _table(rows: list[dict[str, str | int]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title, justify in (("findings", "right"), ("exchanges", "right")):
        table.add_column(title, justify="right" if justify == "right" else "left")
    for title in ("code", "name", "severity"):
        table.add_column(title)
    for row in rows:
        style = STYLES[str(row["severity"])]
        cells = (str(row["findings"]), str(row["exchanges"]), str(row["code"]), str(row["name"]))
        table.add_row(*cells, f"[{style}]{row['severity']}[/]")
    return table
