"""What a page says at the top: counts by rule, model, provider, layer and API, and how they lie in time."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.capture.offline import Checked
from wirelint.rule import SEVERITIES, Severity
from wirelint.view.html.exchange import provider, rewritten

_BINS = 60
_WIDTH, _HEIGHT = 600.0, 100.0
_GAP = 0.22
_WIDEST = 24.0


@dataclass(slots=True)
class Count:
    """How often something was seen: exchanges, and findings in them by severity. `note` explains a name."""

    name: str
    note: str = ""
    exchanges: int = 0
    affected: int = 0
    findings: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.findings.values())

    @property
    def weight(self) -> tuple[int, ...]:
        """Findings by severity, errors first."""
        return tuple(self.findings[severity] for severity in SEVERITIES)

    @property
    def worst(self) -> str:
        return next((severity for severity in SEVERITIES if self.findings[severity]), "clean")


class Bar(NamedTuple):
    """A rectangle of the chart, and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


class Chart(NamedTuple):
    bars: Sequence[Bar]
    start: str
    end: str
    timed: bool
    """False: no times are known, and exchanges lie in the order of the capture."""


@dataclass(slots=True)
class Summary:
    """Takes checked exchanges."""

    exchanges: int = 0
    affected: int = 0
    unknown: int = 0
    rewritten: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    severities: Counter[str] = field(default_factory=Counter)
    _kinds: dict[str, dict[str, Count]] = field(default_factory=dict)
    _course: list[tuple[float | None, str]] = field(default_factory=list)

    def add(self, checked: Checked) -> None:
        record, exchange = checked.record, checked.exchange
        found = Counter[str](finding.severity for finding in checked.findings)
        self.exchanges += 1
        self.affected += bool(found)
        self.unknown += exchange is None
        self.rewritten += rewritten(record)
        self.sources[record.source] = None
        self.severities.update(found)
        for kind, name in (
            ("api", exchange.api if exchange is not None else ""),
            ("model", exchange.model if exchange is not None else ""),
            ("provider", provider(checked)),
        ):
            count = self._count(kind, name)
            count.exchanges += 1
            count.affected += bool(found)
            count.findings.update(found)
        for finding in checked.findings:
            self._count("rule", finding.code, finding.name).findings[finding.severity] += 1
            self._count("layer", finding.layer).findings[finding.severity] += 1
        for kind, names in (
            ("rule", {finding.code for finding in checked.findings}),
            ("layer", {str(finding.layer) for finding in checked.findings}),
        ):
            for name in names:
                self._count(kind, name).affected += 1
        worst = next((severity for severity in SEVERITIES if found[severity]), "clean")
        self._course.append((record.timing.started, worst))

    def counts(self, kind: str) -> list[Count]:
        """The counts of `rule`, `model`, `provider`, `layer` or `api`: those with the most errors first, then warnings."""
        counts = self._kinds.get(kind, {}).values()
        return sorted(counts, key=lambda count: (*(-n for n in count.weight), -count.exchanges, count.name))

    def chart(self) -> Chart | None:
        """Exchanges over time, stacked by their gravest finding; None for fewer than two."""
        if len(self._course) < 2:
            return None
        times = [at for at, _ in self._course if at is not None and 0 < at < 1e11]
        timed = len(times) == len(self._course) and max(times) > min(times)
        spots: list[float] = times if timed else [float(n) for n in range(len(self._course))]
        low, high = min(spots), max(spots)
        size = _BINS if timed else min(_BINS, len(spots))
        bins = _filled(zip(spots, (worst for _, worst in self._course), strict=True), low, high, size)
        labels = (moment(low), moment(high)) if timed else ("first exchange", f"exchange {len(self._course)}")
        return Chart(list(_bars(bins, low, high, timed)), *labels, timed)

    def _count(self, kind: str, name: str, note: str = "") -> Count:
        return self._kinds.setdefault(kind, {}).setdefault(name, Count(name, note))


def moment(at: float) -> str:
    """A Unix time for a person, in UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


_STACK: tuple[Severity | str, ...] = (*SEVERITIES, "clean")


def _filled(spots: Iterable[tuple[float, str]], low: float, high: float, size: int) -> list[Counter[str]]:
    bins = [Counter[str]() for _ in range(size)]
    for at, worst in spots:
        bins[min(int((at - low) / (high - low) * size), size - 1)][worst] += 1
    return bins


def _bars(bins: Sequence[Counter[str]], low: float, high: float, timed: bool) -> Iterable[Bar]:
    most = max(sum(counts.values()) for counts in bins)
    step = _WIDTH / len(bins)
    width = min(step * (1 - _GAP), _WIDEST)
    for number, counts in enumerate(bins):
        at = low + (high - low) * number / len(bins)
        where = moment(at) if timed else f"from exchange {int(at) + 1}"
        said = ", ".join(f"{counts[kind]} {_word(kind)}" for kind in _STACK if counts[kind])
        top = _HEIGHT
        for kind in _STACK:
            if counts[kind]:
                height = counts[kind] / most * _HEIGHT
                top -= height
                x = number * step + (step - width) / 2
                yield Bar(round(x, 2), round(top, 2), round(width, 2), round(height, 2), kind, f"{where}: {said}")


def _word(kind: str) -> str:
    return "clean" if kind == "clean" else f"with {'an' if kind in ('error', 'info') else 'a'} {kind}"
