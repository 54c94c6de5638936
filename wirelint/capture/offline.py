"""Captures checked offline: the same session, the same engine, a ledger of its own for every file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wirelint.apis.unknown import unknown_because
from wirelint.capture.readers import Problem
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.engine import Engine, internal, lower
from wirelint.missing import told
from wirelint.model import Exchange, MissingInfo
from wirelint.rule import Finding, Rule
from wirelint.state.issues import Issue

NOT_JUDGED = "IN001"


@dataclass(frozen=True, slots=True)
class Checked:
    """A record with what was made of it. `exchange` is None when it is of no API that is understood.

    `because` says then why that is worth knowing; it is empty for traffic that has nothing to do with models and tools.
    `known` are findings that earlier exchanges had (`folded`); where nobody folds, all of them are in `findings`.
    """

    record: Record
    exchange: Exchange | None
    findings: tuple[Finding, ...] = ()
    because: str = ""
    known: tuple[Finding, ...] = ()

    @property
    def folded(self) -> Checked:
        """The exchange with the findings that are new in `findings`, and those that earlier exchanges had in `known`."""
        if not any(finding.is_known for finding in self.findings):
            return self
        new = tuple(finding for finding in self.findings if not finding.is_known)
        known = tuple(finding for finding in self.findings if finding.is_known)
        return dataclasses.replace(self, findings=new, known=(*self.known, *known))


class Occurrences:
    """How often each issue was found in some files, once all exchanges of them have been seen."""

    def __init__(self) -> None:
        self._again: dict[tuple[str, str, str], tuple[str, int]] = {}

    def see(self, checked: Checked) -> None:
        """Counts the findings of an exchange that earlier ones had."""
        for finding in (*checked.findings, *checked.known):
            issue = finding.issue
            if issue is not None and issue.known:
                key = checked.record.source, issue.first, issue.id
                self._again[key] = issue.last, self._again.get(key, ("", 0))[1] + 1

    def total(self, source: str, issue: Issue) -> Issue:
        """An issue with the exchange that had it last, and the number of all that had it."""
        last, count = self._again.get((source, issue.first, issue.id), (issue.last, 0))
        return dataclasses.replace(issue, last=last, count=count + 1)

    def totalled(self, checked: Checked) -> Checked:
        """An exchange whose findings have the totals of their issues."""
        source = checked.record.source
        return dataclasses.replace(
            checked,
            findings=tuple(
                dataclasses.replace(finding, issue=self.total(source, finding.issue)) if finding.issue else finding
                for finding in checked.findings
            ),
        )


def check(
    items: Iterable[Record | Problem],
    rules: Sequence[Rule],
    report: Callable[[str, Exception], None] | None = None,
) -> Iterator[Checked | Problem]:
    """Judges records in order; problems of the reader are handed on in their place."""
    engine = Engine(rules, report=report)
    source: str | None = None
    lacking: frozenset[MissingInfo] = frozenset()
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        if item.source != source:
            source, lacking = item.source, frozenset()
            engine = Engine(rules, report=report)
        checked = _check(item, engine, report)
        if item.missing - lacking:
            checked = dataclasses.replace(checked, findings=(not_judged(item.missing - lacking), *checked.findings))
            lacking |= item.missing
        yield checked


def not_judged(missing: frozenset[MissingInfo]) -> Finding:
    """What cannot be judged in a file, said at the first exchange of it that lacks something."""
    return Finding(
        NOT_JUDGED, "not-judged", "info", "high", "wirelint", "response", f"not judged here: {told(missing)}"
    )


def _check(record: Record, engine: Engine, report: Callable[[str, Exception], None] | None) -> Checked:
    try:
        exchange = replay(record)
        if exchange is None:
            headers = lower(record.request_headers)
            because = unknown_because(record.method, record.url, headers, record.request_body or b"")
            return Checked(record, None, because=because)
        exchange = engine.ledger.place(exchange)
        return Checked(record, exchange, engine.check(exchange))
    except Exception as error:  # fail open: one record that we cannot read does not hide the others
        if report is not None:
            report("the reader", error)
        return Checked(record, None, (internal("the reader", error),))
