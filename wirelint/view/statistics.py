"""Counts per rule, as a table or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

import orjson
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.fix import SAFETIES
from wirelint.model import Json
from wirelint.rule import SEVERITIES, Finding
from wirelint.view.layout import hung
from wirelint.view.screen import Screen
from wirelint.view.writer import STYLES, repair_of

_NONE = "-"


@dataclass(slots=True)
class Statistics:
    """Takes checked exchanges, counts findings by rule, exchanges by whether they were understood."""

    exchanges: int = 0
    unknown: int = 0
    unjudged: int = 0
    """Of these, the exchanges that look like a model's or a tool's."""
    sources: set[str] = field(default_factory=set)
    severities: Counter[str] = field(default_factory=Counter)
    again: int = 0
    """Findings that earlier exchanges had: they count for nothing else."""
    fixes: Counter[str] = field(default_factory=Counter)
    """Findings that can be repaired and were not, by the safety of the fix."""
    _rules: Counter[str] = field(default_factory=Counter)
    _affected: Counter[str] = field(default_factory=Counter)
    _first: dict[str, Finding] = field(default_factory=dict)
    _layers: dict[str, Counter[str]] = field(default_factory=dict)
    _fixable: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, checked: Checked) -> None:
        self.exchanges += 1
        self.sources.add(checked.record.source)
        self.unknown += checked.exchange is None
        self.unjudged += bool(checked.because)
        for finding in checked.findings:
            self._rules[finding.code] += 1
            self._first.setdefault(finding.code, finding)
            self.severities[finding.severity] += 1
            self._layers.setdefault(finding.code, Counter())[finding.layer] += 1
            if finding.fix is not None and repair_of(checked, finding) is None:
                self.fixes[finding.fix.safety] += 1
                self._fixable.setdefault(finding.code, Counter())[finding.fix.safety] += 1
        self.again += len(checked.known)
        self._affected.update({finding.code for finding in (*checked.findings, *checked.known)})

    def write(self, out: TextIO, output_format: str) -> None:
        """The counts: a JSON array for `json`, an object a line for `jsonl`, else a table."""
        rows = list(self._rows())
        if output_format == "json":
            out.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
        elif output_format == "jsonl":
            out.writelines(orjson.dumps(row).decode() + "\n" for row in rows)
        elif rows:
            console = Screen(out)
            for line in _lines(rows, console.width):
                console.print(line, soft_wrap=True)

    def summary(self, problems: int = 0) -> str:
        """One line for the end of a run. `problems`: how many things could not be read, of which nothing is known."""
        counts = [
            f"{self.severities[severity]} {severity if self.severities[severity] == 1 else word}"
            for severity, word in (("error", "errors"), ("warning", "warnings"), ("info", "infos"))
            if self.severities[severity]
        ]
        unjudged = f", {self.unjudged} of them not judged" if self.unjudged else ""
        unknown = f" ({self.unknown} of no known API{unjudged})" if self.unknown else ""
        files = f"{len(self.sources)} file{'' if len(self.sources) == 1 else 's'}"
        nothing = "nothing found in what could be read" if problems else "nothing found"
        if problems and not self.exchanges:
            nothing = "nothing could be read"
        exchanges = f"{self.exchanges} exchange{'' if self.exchanges == 1 else 's'}"
        again = f" ({self.again} more known from earlier turns; --all-occurrences shows them)" if self.again else ""
        return f"{exchanges}{unknown} in {files}: {', '.join(counts) or nothing}{again}"

    def hint(self) -> str:
        """What can be repaired, in one line; empty when nothing can."""
        safe, unsafe = self.fixes["safe"], self.fixes["unsafe"]
        if not safe:
            return f"{unsafe} fixable with wirelint fix --unsafe-fixes" if unsafe else ""
        return f"{safe} fixable with wirelint fix{f' ({unsafe} more with --unsafe-fixes)' if unsafe else ''}"

    def _rows(self) -> Iterator[dict[str, Json]]:
        """A row a rule, the most frequent first; of equally frequent ones the worse first."""
        codes = sorted(self._rules, key=lambda code: (-self._rules[code], _rank(self._first[code]), code))
        for code in codes:
            first = self._first[code]
            layers = dict(self._layers[code].most_common())
            fixable = self._fixable.get(code, Counter())
            yield {
                "code": code,
                "name": first.name,
                "severity": first.severity,
                "findings": self._rules[code],
                "exchanges": self._affected[code],
                "layers": {**layers},
                "fixable": {safety: fixable[safety] for safety in SAFETIES},
            }


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


_COLUMNS = ("count", "rule", "severity", "layer", "fixable")


def _lines(rows: Sequence[dict[str, Json]], width: int) -> Iterator[Text]:
    """The rows under their titles, in columns as wide as what they hold; one that is too wide for the terminal wraps."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *cells, strict=True)]
    titles = [f"{_COLUMNS[0]:>{widths[0]}}"]
    titles += [f"{title:<{size}}" for title, size in zip(_COLUMNS[1:], widths[1:], strict=True)]
    yield Text("  ".join(titles).rstrip(), "dim")
    for row, (count, name, severity, layers, fixable) in zip(rows, cells, strict=True):
        style = STYLES[str(row["severity"])]
        line = Text(f"{count:>{widths[0]}}  ")
        line.append(f"{name:<{widths[1]}}", "bold").append(f"  {severity:<{widths[2]}}", style)
        line.append(f"  {layers:<{widths[3]}}").append(f"  {fixable}", "" if fixable == _NONE else "green")
        line.rstrip()
        yield from hung(line, width, 0, widths[0] + 2)


def _cells(row: dict[str, Json]) -> tuple[str, str, str, str, str]:
    layers, fixable = row["layers"], row["fixable"]
    assert isinstance(layers, dict)
    assert isinstance(fixable, dict)
    return (
        f"{row['findings']}",
        f"{row['code']} {row['name']}",
        f"{row['severity']}",
        ", ".join(layers),
        _repairs(**fixable),  # type: ignore[arg-type]
    )


def _repairs(safe: int, unsafe: int) -> str:
    if safe and unsafe:
        return f"{safe + unsafe} ({unsafe} unsafe)"
    return f"{safe} safe" if safe else f"{unsafe} unsafe" if unsafe else _NONE
