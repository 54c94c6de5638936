"""The option `--jobs`: captures are shared out among processes, with the results of one process.

The unit of work is a partition of the captures (`capture.offline`), so the results do not depend on the number of
processes.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from wirelint.capture.offline import Change, Checked, Partition, Report, partitions
from wirelint.capture.readers import Problem
from wirelint.cli.progress import Bar, size_of
from wirelint.settings import Scopes

if TYPE_CHECKING:
    from wirelint.cli.pool import Emit, Pool, Work

T = TypeVar("T")


_SMALL = 16 << 20
"""Bytes of captures for which one process is as fast: workers need 0.6 s to start, in which it checks 3 MB."""


class Workers:
    """The processes of a command: `with Workers(jobs, bar, load) as workers: for item in workers.checked(rules): …`.

    `jobs` is the option; None stands for the number of cores, or 1 for small captures. `load` returns the rules in a
    worker; it must be picklable. With `processes` 1, the work is done in this process. `interleaved`: see `partition`.
    """

    def __init__(self, jobs: int | None, bar: Bar, load: Callable[[], Scopes], *, interleaved: bool = False) -> None:
        self._bar, self._load = bar, load
        self._partitions = list(partitions(bar.files, size_of, interleaved=interleaved))
        is_small = jobs is None and bar.size < _SMALL
        if jobs == 1 or is_small or "-" in bar.paths:
            self.processes = 1
        else:
            self.processes = min(jobs or _cores(), max(len(self._partitions), len(set(bar.files))))
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def checked(self, rules: Scopes, change: Change = iter, *, outline: bool = False) -> Iterator[Checked | Problem]:
        """Check the captures of the bar. Yield the results in the order of the captures.

        `change` replaces the records of a partition before they are checked; it must be picklable. `outline`: exchanges
        without findings are not used; their bodies would take a quarter of the time to come back.
        """
        if self.processes == 1:
            for partition in self._partitions:
                yield from partition.check(rules, self._bar.inform_failure, change)
            return
        try:
            yield from self.results(
                partial(_check, change, outline), self.batches(self._partitions, lambda one: one.size)
            )
        except BrokenPipeError:
            raise
        except OSError as error:
            message = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
            raise click.ClickException(f"{message}; set TMPDIR to a folder with more room, or use --jobs 1") from error

    def results(self, work: Work[T], tasks: Iterable[T]) -> Iterator[Any]:
        """Work on tasks in the worker processes. Yield their results in the order of the tasks. Raises OSError."""
        return self._pool.results(work, tasks)

    @cached_property
    def _pool(self) -> Pool:
        from wirelint.cli.pool import Pool  # 15 ms, which small captures do not need

        pool = Pool(self.processes, self._load, self._bar)
        self._open.callback(pool.close)
        return pool

    def batches(self, items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
        """Group items into tasks of at most a tenth of a worker's share, since a task costs 2 ms."""
        most = self._bar.size / self.processes / 10
        batch: list[T] = []
        size = 0
        for item in items:
            size += size_of(item)
            if batch and size > most:
                yield batch
                batch, size = [], size_of(item)
            batch.append(item)
        yield batch


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(
    change: Change, outline: bool, rules: Scopes, batch: Sequence[Partition], emit: Emit, report: Report
) -> None:
    """Check partitions in a worker."""
    for partition in batch:
        for item in partition.check(rules, report, change):
            emit(item.outline if outline and isinstance(item, Checked) else item)
