"""What a run of repairs came to: a line, and counts per rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO

from rich.table import Table
from rich.text import Text

from wirelint.capture.fixing import Fixed
from wirelint.fix import SAFETIES, FixPolicy
from wirelint.view.screen import Screen
from wirelint.view.writer import STYLES


@dataclass(slots=True)
class _Row:
    """The counts of one rule."""

    name: str
    safe: int = 0
    unsafe: int = 0
    exchanges: int = 0
    remaining: int = 0
    severity: str = ""


@dataclass(slots=True)
class RepairStatistics:
    """Takes repaired exchanges, counts repairs and what remains by rule."""

    permit: FixPolicy
    exchanges: int = 0
    repaired: int = 0
    remaining: Counter[str] = field(default_factory=Counter)
    """Findings that remain, by severity."""
    _unsafe: int = 0
    _rules: dict[str, _Row] = field(default_factory=dict)

    def add(self, fixed: Fixed) -> None:
        made = fixed.record.fixes if fixed.record.forwarded or fixed.record.delivered else ()
        self.exchanges += 1
        self.repaired += bool(made)
        for repair in made:
            row = self._rules.setdefault(repair.code, _Row(repair.name))
            row.safe += repair.safety == "safe"
            row.unsafe += repair.safety == "unsafe"
        for code in {repair.code for repair in made}:
            self._rules[code].exchanges += 1
        for finding in fixed.remaining:
            row = self._rules.setdefault(finding.code, _Row(finding.name))
            row.remaining += 1
            row.severity = row.severity or finding.severity
            self.remaining[finding.severity] += 1
            self._unsafe += finding.fix is not None and finding.fix.safety == "unsafe"

    @property
    def left(self) -> int:
        """Findings that remain and count for the exit status."""
        return self.remaining["error"] + self.remaining["warning"]

    def summary(self, *, done: bool) -> str:
        """`Fixed 12 problems (8 safe, 4 unsafe) in 7 of 40 exchanges; 3 remain`. Not `done`: what would be fixed."""
        counts = {safety: sum(getattr(row, safety) for row in self._rules.values()) for safety in SAFETIES}
        total = sum(counts.values())
        problems = f"{total} problem{'' if total == 1 else 's'}"
        kinds = ", ".join(f"{count} {safety}" for safety, count in counts.items() if count)
        where = f" in {self.repaired} of {self.exchanges} exchange{'' if self.exchanges == 1 else 's'}"
        said = f"{'Fixed' if done else 'Would fix'} {problems}{f' ({kinds})' if kinds else ''}{where}"
        said += f"; {self.left} remain{'s' if self.left == 1 else ''}" if self.left else "; nothing remains"
        more = self._unsafe if self.permit.most == "safe" else 0
        return f"{said} ({more} fixable with --unsafe-fixes)" if more else said

    def write(self, out: TextIO) -> None:
        """The counts as a table."""
        if not self._rules:
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in ("safe", "unsafe", "exchanges", "remaining"):
            table.add_column(title, justify="right")
        for title in ("code", "name"):
            table.add_column(title)
        for code, row in sorted(self._rules.items(), key=lambda item: (-item[1].safe - item[1].unsafe, item[0])):
            left = Text(str(row.remaining), STYLES[row.severity] if row.remaining else "")
            table.add_row(str(row.safe), str(row.unsafe), str(row.exchanges), left, code, row.name)
        Screen(out).print(table)
