"""Partitions of captures: the units that one process checks with one ledger.

    captures/20260131T094500Z-3f2a9c11/exchanges.jsonl
    captures/20260131T213007Z-3f2a9c11/exchanges.jsonl

A proxy writes its run in parts. A conversation goes on from part to part, and so does the ledger: the parts that a run
began on one day are one partition. Every other capture is a partition by itself.

Large partitions are cut into slices by the root of a conversation, which the proxy wrote beside each exchange. A slice
also reads the exchanges without a root (tool servers), since they are evidence for all conversations. The number of
slices depends on the size of the captures alone, so results do not depend on the number of processes.

Behind a balancer that does not keep a session on one proxy, a conversation is in the captures of several: `interleaved`
puts the runs of a day together, in order of time.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from wirelint.capture.offline import Checked, Report, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.readers.source import as_string
from wirelint.capture.record import Record
from wirelint.rule import Rule

Change: TypeAlias = Callable[[Iterator[Record | Problem]], Iterable[Record | Problem]]
"""Function that replaces records before they are checked."""
_PART = re.compile(r"(.*[/\\]|)(\d{8})T\d{6}Z-([0-9a-f]{8})(?:-\d+)?[/\\](exchanges\.jsonl|flows\.mitm)", re.DOTALL)
_SLICE = 32 << 20
"""Bytes of a slice."""
_MOST_SLICES = 8
"""Every slice reads the whole partition, which takes about a hundredth of the time of checking it."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Captures that are checked with one ledger: the files of each run in order. `size`: their bytes.

    `number` of `slices`: the conversations whose exchanges are reported.
    """

    runs: tuple[tuple[str, ...], ...]
    size: int
    number: int = 0
    slices: int = 1

    @property
    def files(self) -> Iterator[str]:
        return (file for run in self.runs for file in run)

    def records(self) -> Iterator[Record | Problem]:
        """Yield the records that the ledger needs, those of several runs in order of time, and the problems."""
        runs = (_timed(read(files)) for files in self.runs)
        for _, item in heapq.merge(*runs, key=itemgetter(0)):
            if isinstance(item, Problem) or self._slice_of(item) in (self.number, None):
                yield item

    def check(
        self,
        rules: Sequence[Rule],
        report: Report | None = None,
        change: Change = iter,
    ) -> Iterator[Checked | Problem]:
        """Check the partition. Yield the results of its slice. `change` replaces records before they are checked."""
        for item in check(change(self.records()), rules, report, together=True):
            record = item.record if isinstance(item, Checked) else None
            if self.number in (0, self._slice_of(record) if record is not None else None):
                yield item

    def _slice_of(self, record: Record) -> int | None:
        """Return the number of the slice of a record; None if it has no root."""
        root = as_string(record.annotations.get("root")) if self.slices > 1 else ""
        return sum(root.encode("utf-8", "replace")) % self.slices if root else None


def run_of(source: str) -> str:
    """Return the day and run of a part of a capture, with its folder; the source itself if it is no such part."""
    found = _PART.fullmatch(source)
    return "".join((found[1], found[2], found[3], found[4])) if found is not None else source


def partitions(
    files: Iterable[str], size_of: Callable[[str], int], *, interleaved: bool = False
) -> Iterator[Partition]:
    """Yield the partitions of captures, in the order of their first files. `interleaved`: those of a day are one."""
    groups: dict[str, dict[str, list[str]]] = {}
    for number, file in enumerate(files):
        found = _PART.fullmatch(file)
        day = found[2] if found is not None and interleaved else ""
        run = run_of(file) if found is not None else f"{number} {file}"
        groups.setdefault(day or run, {}).setdefault(run, []).append(file)
    for runs in groups.values():
        chains = tuple(tuple(chain) for chain in runs.values())
        size = sum(size_of(file) for chain in chains for file in chain)
        has_roots = all(map(_PART.fullmatch, chains[0]))
        slices = min(max(size // _SLICE, 1), _MOST_SLICES) if has_roots else 1
        for number in range(slices):
            yield Partition(chains, size // slices, number, slices)


def _timed(items: Iterable[Record | Problem]) -> Iterator[tuple[float, Record | Problem]]:
    """Yield the items of a run, each with the time at which it ended, or that of the item before it."""
    latest = 0.0
    for item in items:
        if isinstance(item, Record) and item.timing.started is not None:
            latest = max(latest, item.timing.started + (item.timing.duration or 0.0) / 1000)
        yield latest, item
