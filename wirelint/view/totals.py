"""Counts of the exchanges that have ended, in all and by model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.text import Text as Line

from wirelint.capture.offline import Checked
from wirelint.model import Json
from wirelint.prices import Spending, cost_text, price_table, tokens_of
from wirelint.rule import SEVERITIES
from wirelint.text.escaping import printable, shorten
from wirelint.view.findings import MARKS, STYLES
from wirelint.view.screen import in_columns

_MOST_MODELS = 200
_NAME = 48


@dataclass(slots=True)
class Sums:
    """Counts of exchanges. Times are in milliseconds: `first_token` and `took` are sums, `timed` the number of streams with
    a first token. `spending`: the cost, which the board counts."""

    exchanges: int = 0
    sent: int = 0
    received: int = 0
    fixed: int = 0
    timed: int = 0
    first_token: float = 0.0
    took: float = 0.0
    spending: Spending = field(default_factory=Spending)
    severities: Counter[str] = field(default_factory=Counter)

    def add(self, checked: Checked) -> None:
        """Count an exchange that has ended. Findings of earlier exchanges are not counted again."""
        timing = checked.record.timing
        self.exchanges += 1
        if checked.reply is not None and (tokens := tokens_of(checked.reply.usage)) is not None:
            self.sent += tokens.input
            self.received += tokens.output
        if checked.streamed and timing.first_token is not None:
            self.timed += 1
            self.first_token += timing.first_token
        self.took += timing.duration or 0.0
        self.fixed += len(checked.new_fixes) if checked.record.fixes else 0
        for finding in checked.findings:
            if not finding.is_known:
                self.severities[finding.severity] += 1

    @property
    def mean_first_token(self) -> float | None:
        """The mean time to the first token in milliseconds; None without streams."""
        return self.first_token / self.timed if self.timed else None

    @property
    def document(self) -> dict[str, Json]:
        """The counts as JSON. `cost`: None without token counts or without a price table."""
        first, spent = self.mean_first_token, self.spending
        return {
            "exchanges": self.exchanges,
            "in": self.sent,
            "out": self.received,
            "fixed": self.fixed,
            "cost": cost_text(spent) if spent.counted and price_table() else None,
            "first": round(first, 1) if first is not None else None,
            "took": round(self.took, 1),
            "issues": {severity: self.severities[severity] for severity in SEVERITIES},
        }


class Totals:
    """Counts of all exchanges, and by model (without one, by API); above a limit of models as `others`."""

    def __init__(self) -> None:
        self.all = Sums()
        self._models: dict[str, Sums] = {}
        self._rules: Counter[tuple[int, str, str]] = Counter()

    def add(self, checked: Checked) -> None:
        self.all.add(checked)
        for finding in checked.findings:
            if not finding.is_known:
                self._rules[SEVERITIES.index(finding.severity), finding.code, finding.name] += 1
        name = checked.model[:_NAME] or checked.api or "unknown API"
        if name not in self._models and len(self._models) >= _MOST_MODELS:
            name = "others"
        self._models.setdefault(name, Sums()).add(checked)

    def table(self, width: int) -> list[Line]:
        """Return the counts by model and of all in columns. Without room, names are shortened and times left out."""
        models = sorted(self._models.items(), key=lambda item: -item[1].exchanges)
        rows = [_cells(printable(name), sums) for name, sums in models]
        if len(rows) > 1:
            rows.append(_cells("all", self.all))
        titles = [Line(title, "dim") for title in (_TITLES if width >= _WIDE else _SHORT)]
        places = [*range(len(_TITLES))] if width >= _NARROW else [0, 1, 2, 3, 6]
        grid = [[row[place] for place in places] for row in (titles, *rows)]
        name, *widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        name = min(name, max(width - sum(widths) - 2 * len(widths), _SHORTEST))
        for row in grid:
            row[0] = Line(shorten(row[0].plain, name), row[0].style)
        return list(in_columns(grid, range(1, len(places) - 1)))

    def issues(self) -> Line:
        """Return the number of findings by rule, the worst first: `● xml-leak 3  ▲ missing-usage 12`."""
        found = [(SEVERITIES[place], name, count) for (place, _, name), count in sorted(self._rules.items())]
        parts = [Line(f"{MARKS[severity]} {name} {count}", STYLES[severity]) for severity, name, count in found]
        return Line("  ").join(parts)


_TITLES = ("totals", "exchanges", "tokens in", "out", "first token", "time", "issues")
_SHORT = ("totals", "exchanges", "in", "out", "first", "time", "issues")
_WIDE, _NARROW, _SHORTEST = 90, 62, 10
"""Columns of a terminal from which the titles are long, and the times are shown; and those of the shortest name."""


def _cells(name: str, sums: Sums) -> list[Line]:
    first, found = sums.mean_first_token, [one for one in SEVERITIES if sums.severities[one]]
    issues = " ".join(f"{MARKS[one]} {sums.severities[one]}" for one in found)
    times = (f"{first / 1000:.2f} s" if first is not None else "-", f"{sums.took / 1000:.1f} s")
    counts = (f"{sums.exchanges}", f"{sums.sent:,}", f"{sums.received:,}", *times)
    return [Line(name, "bold"), *map(Line, counts), Line(issues or "none", STYLES[found[0]] if found else "green")]
