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
from wirelint.lacks import told
from wirelint.model import Exchange, Lack
from wirelint.rule import Finding, Rule

NOT_JUDGED = "IN001"


@dataclass(frozen=True, slots=True)
class Checked:
    """A record with what was made of it. `exchange` is None when it is of no API that is understood.

    `because` says then why that is worth knowing; it is empty for traffic that has nothing to do with models and tools.
    """

    record: Record
    exchange: Exchange | None
    findings: tuple[Finding, ...] = ()
    because: str = ""


def check(
    items: Iterable[Record | Problem],
    rules: Sequence[Rule],
    report: Callable[[str, Exception], None] | None = None,
) -> Iterator[Checked | Problem]:
    """Judges records in order; problems of the reader are handed on in their place."""
    engine = Engine(rules, report=report)
    source: str | None = None
    lacking: frozenset[Lack] = frozenset()
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        if item.source != source:
            source, lacking = item.source, frozenset()
            engine = Engine(rules, report=report)
        checked = _check(item, engine, report)
        if item.lacks - lacking:
            checked = dataclasses.replace(checked, findings=(not_judged(item.lacks - lacking), *checked.findings))
            lacking |= item.lacks
        yield checked


def not_judged(lacks: frozenset[Lack]) -> Finding:
    """What cannot be judged in a file, said at the first exchange of it that lacks something."""
    return Finding(NOT_JUDGED, "not-judged", "info", "high", "wirelint", "response", f"not judged here: {told(lacks)}")


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
