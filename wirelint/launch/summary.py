"""The summary of a run, from its captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from wirelint.model import Json
from wirelint.rule import SEVERITIES
from wirelint.view.findings import count_by_severity, counted

_RULES_SHOWN = 8


@dataclass(slots=True)
class Summary:
    """Counts of exchanges by API and model, of findings by rule, and of fixes."""

    exchanges: int = 0
    fixes: int = 0
    spoken: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(code, name, severity) of findings."""

    @classmethod
    def of(cls, parts: Iterable[Path]) -> Summary:
        """Read the exchanges of some capture folders; an incomplete last line is left out."""
        summary = cls()
        for part in parts:
            summary._read(part / "exchanges.jsonl")
        return summary

    @property
    def worst(self) -> str:
        """The rule with the worst severity, then with the most findings; there must be one."""
        order: dict[str, int] = {severity: number for number, severity in enumerate(SEVERITIES)}
        return min(self.rules, key=lambda rule: (order.get(rule[2], len(order)), -self.rules[rule]))[1]

    def lines(self) -> Iterator[str]:
        """Yield a line of counts and a line per rule."""
        severities: Counter[str] = Counter()
        for (_, _, severity), count in self.rules.items():
            severities[severity] += count
        counts = [count_by_severity(severities)] if severities else []
        if self.fixes:
            counts.append(f"{self.fixes} fixed")
        spoken = ", ".join(name if count == 1 else f"{count} × {name}" for name, count in self.spoken.most_common(4))
        yield f"{counted(self.exchanges, 'exchange')} ({spoken}): {', '.join(counts) or 'nothing found'}"
        width = max((len(name) for _, name, _ in self.rules), default=0)
        shown = self.rules.most_common(_RULES_SHOWN)
        for (code, name, severity), count in shown:
            yield f"  {code}  {name:<{width}}  {severity:<7}  {count}"
        if len(self.rules) > len(shown):
            yield f"  … and {len(self.rules) - len(shown)} more rules"

    def _read(self, file: Path) -> None:
        try:
            lines = file.open("rb")
        except OSError:
            return
        with lines:
            for line in lines:
                try:
                    record: Json = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(record, dict):
                    self._add(record)

    def _add(self, record: dict[str, Json]) -> None:
        self.exchanges += 1
        fixes, findings = record.get("fixes"), record.get("findings")
        self.fixes += len(fixes) if isinstance(fixes, list) else 0
        who = " ".join(str(record[key]) for key in ("api", "model") if record.get(key))
        self.spoken[_plain(who) or "unread"] += 1
        for finding in findings if isinstance(findings, list) else ():
            if isinstance(finding, dict) and finding.get("first_seen", record.get("id")) == record.get("id"):
                code, name, severity = (_plain(str(finding.get(key))) for key in ("code", "name", "severity"))
                self.rules[code, name, severity] += 1


def _plain(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:80]
