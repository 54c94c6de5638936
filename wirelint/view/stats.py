"""Counts per rule: of findings, for `check --statistics`, and of applied fixes, for `fix --statistics`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO

import orjson
from rich.text import Text

from wirelint.capture.offline import Checked, Fixed
from wirelint.fix import SAFETIES, FixPolicy
from wirelint.model import Json
from wirelint.rule import SEVERITIES, Finding
from wirelint.text.escaping import counted
from wirelint.view.findings import STYLES, count_by_severity, fix_of
from wirelint.view.screen import Screen, hung, in_columns

_COLUMNS = ("count", "rule", "severity", "layer", "fixable")
_FIX_COLUMNS = ("safe", "unsafe", "exchanges", "remaining", "code", "name")


@dataclass(slots=True)
class _RuleCounts:
    """The findings of one rule. `first` is one of them; `exchanges` also counts those with known findings only."""

    first: Finding
    findings: int = 0
    exchanges: int = 0
    layers: Counter[str] = field(default_factory=Counter)
    fixable: Counter[str] = field(default_factory=Counter)

    @property
    def document(self) -> dict[str, Json]:
        return {
            "code": self.first.code,
            "name": self.first.label,
            "severity": self.first.severity,
            "findings": self.findings,
            "exchanges": self.exchanges,
            "layers": {**dict(self.layers.most_common())},
            "fixable": {safety: self.fixable[safety] for safety in SAFETIES},
        }

    @property
    def cells(self) -> tuple[Text, ...]:
        first, layers = self.first, ", ".join(layer for layer, _ in self.layers.most_common())
        safe, unsafe = self.fixable["safe"], self.fixable["unsafe"]
        fixable = f"{safe} safe" if safe else f"{unsafe} unsafe" if unsafe else "-"
        if safe and unsafe:
            fixable = f"{safe + unsafe} ({unsafe} unsafe)"
        fix, name = Text(fixable, "green" if safe or unsafe else ""), Text(f"{first.code} {first.label}", "bold")
        return Text(f"{self.findings}"), name, Text(first.severity, STYLES[first.severity]), Text(layers), fix


@dataclass(slots=True)
class Statistics:
    """Counts of checked exchanges. `skipped`: unrecognised ones that look like an API of a model or a tool server.

    `again`: findings that earlier exchanges had, which are in no other count. `fixes`: findings that can be fixed and
    were not, by the safety of the fix. `unread`: exchanges with a body that could not be decoded. `partial`: exchanges that
    exceed a limit of the reading (`engine`).
    """

    exchanges: int = 0
    unrecognised: int = 0
    skipped: int = 0
    again: int = 0
    unread: int = 0
    partial: int = 0
    sources: set[str] = field(default_factory=set)
    severities: Counter[str] = field(default_factory=Counter)
    fixes: Counter[str] = field(default_factory=Counter)
    _rules: dict[str, _RuleCounts] = field(default_factory=dict)

    def add(self, checked: Checked) -> None:
        self.exchanges += 1
        self.sources.add(checked.record.source)
        self.unrecognised += checked.exchange is None
        self.skipped += bool(checked.because)
        self.unread += checked.record.end == "unread"
        if checked.exchange is not None and checked.record.end != "unread":
            self.partial += bool(checked.exchange.notes)
        for finding in checked.findings:
            rule = self._rules.setdefault(f"{finding.code} {finding.label}", _RuleCounts(finding))
            rule.findings += 1
            rule.layers[finding.layer] += 1
            self.severities[finding.severity] += 1
            if finding.fix is not None and fix_of(checked, finding) is None:
                self.fixes[finding.fix.safety] += 1
                rule.fixable[finding.fix.safety] += 1
        self.again += len(checked.known)
        titles = {f"{finding.code} {finding.label}" for finding in (*checked.findings, *checked.known)}
        for title in titles & self._rules.keys():
            self._rules[title].exchanges += 1

    @property
    def faults(self) -> int:
        """Findings that make the exit status 1: errors and warnings."""
        return self.severities["error"] + self.severities["warning"]

    def write(self, out: TextIO, output_format: str) -> None:
        """Write the counts: a JSON array for `json`, an object per line for `jsonl`, else a table."""

        def order(item: tuple[str, _RuleCounts]) -> tuple[int, int, str]:
            return -item[1].findings, SEVERITIES.index(item[1].first.severity), item[0]

        rules = [rule for _, rule in sorted(self._rules.items(), key=order)]
        rows = [rule.document for rule in rules]
        if output_format == "json":
            out.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
        elif output_format == "jsonl":
            out.writelines(orjson.dumps(row).decode() + "\n" for row in rows)
        elif rows:
            console = Screen(out)
            cells = [rule.cells for rule in rules]
            hang = max(len(_COLUMNS[0]), *(count.cell_len for count, *_ in cells)) + 2
            title, *lines = in_columns([[Text(title, "dim") for title in _COLUMNS], *cells], {0})
            console.print_lines([title, *(part for line in lines for part in hung(line, console.width, 0, hang))])

    def summary(self, problems: int = 0, *, hints: bool = False) -> str:
        """Return one line for the end of a run. `problems`: inputs that could not be read and are not counted as clean.
        `hints`: add a line with the number of fixable findings and the command, if there are any."""
        found = count_by_severity(self.severities)
        skipped = f" ({self.skipped} skipped)" if self.skipped else ""
        unrecognised = f" ({self.unrecognised} unrecognised{skipped})" if self.unrecognised else ""
        nothing = "nothing found in what could be read" if problems or self.unread or self.partial else "nothing found"
        if problems and not self.exchanges:
            nothing = "nothing could be read"
        read = f"{counted(self.exchanges, 'exchange')}{unrecognised} in {counted(len(self.sources), 'file')}"
        line = f"{read}: {found or nothing}"
        if self.unread:
            line += f"; bodies of {counted(self.unread, 'exchange')} not read (too large or damaged)"
        if self.partial:
            line += f"; {counted(self.partial, 'exchange')} read in part (wirelint show has the reasons)"
        if self.again:
            line += f" ({self.again} more known from earlier turns; --all-occurrences shows them)"
        safe, unsafe = self.fixes["safe"], self.fixes["unsafe"]
        if not hints or not (safe or unsafe):
            return line
        if not safe:
            return f"{line}\n{unsafe} fixable with wirelint fix --unsafe-fixes"
        return f"{line}\n{safe} fixable with wirelint fix{f' ({unsafe} more with --unsafe-fixes)' if unsafe else ''}"


@dataclass(slots=True)
class _FixCounts:
    name: str
    applied: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    remaining: int = 0
    severity: str = ""


@dataclass(slots=True)
class FixStatistics:
    """Counts of fixed exchanges: fixes and remaining findings by rule. `remaining`: findings by severity."""

    policy: FixPolicy
    exchanges: int = 0
    fixed: int = 0
    remaining: Counter[str] = field(default_factory=Counter)
    _unsafe: int = 0
    _rules: dict[str, _FixCounts] = field(default_factory=dict)

    def add(self, fixed: Fixed) -> None:
        made = fixed.record.fixes if fixed.record.forwarded or fixed.record.delivered else ()
        self.exchanges += 1
        self.fixed += bool(made)
        for fix in made:
            self._rules.setdefault(fix.code, _FixCounts(fix.name)).applied[fix.safety] += 1
        for code in {fix.code for fix in made}:
            self._rules[code].exchanges += 1
        for finding in fixed.remaining:
            rule = self._rules.setdefault(finding.code, _FixCounts(finding.name))
            rule.remaining += 1
            rule.severity = rule.severity or finding.severity
            self.remaining[finding.severity] += 1
            self._unsafe += finding.fix is not None and finding.fix.safety == "unsafe"

    @property
    def left(self) -> int:
        """Findings that remain and make the exit status 1."""
        return self.remaining["error"] + self.remaining["warning"]

    def summary(self, *, done: bool) -> str:
        """`Fixed 12 problems (8 safe, 4 unsafe) in 7 of 40 exchanges; 3 remain`. Not `done`: what would be fixed."""
        counts = {safety: sum(rule.applied[safety] for rule in self._rules.values()) for safety in SAFETIES}
        kinds = ", ".join(f"{count} {safety}" for safety, count in counts.items() if count)
        where = f" in {self.fixed} of {counted(self.exchanges, 'exchange')}"
        problems = counted(sum(counts.values()), "problem")
        line = f"{'Fixed' if done else 'Would fix'} {problems}{f' ({kinds})' if kinds else ''}{where}"
        line += f"; {self.left} remain{'s' if self.left == 1 else ''}" if self.left else "; nothing remains"
        more = self._unsafe if self.policy.most == "safe" else 0
        return f"{line} ({more} fixable with --unsafe-fixes)" if more else line

    def write(self, out: TextIO) -> None:
        if not self._rules:
            return
        rows = [[Text(title, "dim") for title in _FIX_COLUMNS]]
        for code, rule in sorted(self._rules.items(), key=lambda item: (-item[1].applied.total(), item[0])):
            left = Text(str(rule.remaining), STYLES[rule.severity] if rule.remaining else "")
            counts = (Text(str(count)) for count in (*(rule.applied[safety] for safety in SAFETIES), rule.exchanges))
            rows.append([*counts, left, Text(code), Text(rule.name)])
        Screen(out).print_lines(in_columns(rows, range(4)))
