"""Checked exchanges as one HTML page that needs nothing else: `wirelint report`, and whoever has judged some traffic.

    from wirelint.view.html import write_report
    written = write_report(check(read(["captures"]), rules), Path("report.html"), rules=rules)

Theory of operation. Exchanges come one by one and are written one by one, compressed, to a temporary file; only their
lines in the list and the counts are kept. At the end the page is put together: summary and manuals as HTML made by a
template that escapes all it is given, then the data as it was written, then the script, which makes boxes of what somebody
looks at. It makes elements and texts, never HTML. The page appears under its name when it is whole.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.readers import Problem
from wirelint.model import Json
from wirelint.rule import Rule
from wirelint.state.issues import Issue
from wirelint.view import scorecard
from wirelint.view.html.blocks import Blocks, element
from wirelint.view.html.exchange import detail, row, unshown, worst_first
from wirelint.view.html.manuals import manuals
from wirelint.view.html.page import Section, write_page
from wirelint.view.html.plain import Object, dump
from wirelint.view.html.summary import Summary
from wirelint.view.scores import Cards, sight
from wirelint.view.writer import recurrence

__all__ = ["Section", "Written", "write_report"]


@dataclass(frozen=True, slots=True)
class Written:
    """A page that was written. `size` is in bytes, `problems` what could not be read."""

    path: Path
    size: int
    exchanges: int
    affected: int
    problems: int


def write_report(
    items: Iterable[Checked | Problem],
    out: Path,
    *,
    rules: Sequence[Rule] = (),
    title: str = "",
    sections: Sequence[Section] = (),
    on_problem: Callable[[Problem], None] = lambda problem: None,
    all_occurrences: bool = False,
) -> Written:
    """Writes a page of `items` to `out`, replacing what is there when the page is whole. Raises OSError.

    `rules` are those whose manuals the page has, for what they found. `sections` stand beneath the summary, below the
    scorecard. Where there is no exchange at all, nothing is written (`exchanges` is 0). Findings that earlier exchanges had
    are counted and not shown again, unless `all_occurrences`.
    """
    summary, cards, problems, rows = Summary(), Cards(), list[str](), list[Json]()
    anchors, recurrences = Counter[str](), _Recurrences()
    with tempfile.TemporaryFile() as data:
        blocks = Blocks(data)
        for item in items:
            if isinstance(item, Problem):
                problems.append(str(item))
                on_problem(item)
                continue
            item = item if all_occurrences else item.folded
            summary.add(item)
            cards.add(sight(item))
            rows.append(recurrences.add(item, _anchored(row(item), anchors)))
            blocks.exchange(_detail(item, blocks))
        blocks.close()
        if not rows:
            return Written(out, 0, 0, 0, len(problems))
        recurrences.close()
        index = element("index", dump({"blocks": blocks.firsts, "rows": rows}))
        with _replacing(out) as page:
            write_page(
                page,
                title=title or ", ".join(summary.sources),
                summary=summary,
                manuals=manuals(rules, (count.name for count in summary.counts("rule"))),
                sections=[*_scorecard(cards), *sections],
                problems=problems,
                data=data,
                index=index,
            )
    return Written(out, out.stat().st_size, summary.exchanges, summary.affected, len(problems))


class _Recurrences:
    """Tells the findings in rows how often their issues were found again, when all exchanges have been seen."""

    def __init__(self) -> None:
        self._occurrences = Occurrences()
        self._findings: list[tuple[str, str, Issue, Object]] = []

    def add(self, checked: Checked, made: Object) -> Object:
        self._occurrences.see(checked)
        shown = made["findings"]
        for finding, told in zip(worst_first(checked.findings), shown if isinstance(shown, list) else (), strict=False):
            if finding.issue is not None and isinstance(told, dict):
                self._findings.append((checked.record.source, checked.record.id, finding.issue, told))
        return made

    def close(self) -> None:
        for source, here, issue, told in self._findings:
            if again := recurrence(self._occurrences.total(source, issue), here):
                told["again"] = again


def _scorecard(cards: Cards) -> Iterator[Section]:
    """How the replies of each model ended, where any of them made calls."""
    ordered = cards.ordered()
    if any(card.calls for card in ordered):
        yield Section(scorecard.title(ordered), scorecard.section(ordered))


def _detail(item: Checked, blocks: Blocks) -> Object:
    try:
        return detail(item, blocks)
    except Exception as error:  # fail open: one exchange that we cannot lay out does not take the others with it
        return unshown(item, error)


def _anchored(made: Object, anchors: Counter[str]) -> Object:
    """With `anchor`, by which links name it: its id, with a number where another had that before."""
    name = str(made["id"] or made["place"] or "exchange")
    anchors[name] += 1
    return made | {"anchor": name if anchors[name] == 1 else f"{name}~{anchors[name]}"}


@contextlib.contextmanager
def _replacing(out: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when it has been written; until then, and if that fails, what is there stays."""
    beside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
        os.replace(beside, out)
    finally:
        beside.unlink(missing_ok=True)
