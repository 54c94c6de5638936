"""The option `--jobs`: captures are shared out among processes, with the results of one process.

Each file is checked by itself, with a ledger that begins empty. So a file is the unit of work, and the results do not
depend on the number of processes. A file is never split: its ledger links exchanges of all conversations by ids and
texts, and forgets the oldest.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import click

from wirelint.capture.offline import Checked, Report, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.cli.progress import Bar, size_of
from wirelint.settings import Scopes

if TYPE_CHECKING:
    from wirelint.cli.pool import Emit, Pool, Work

_Captures: TypeAlias = Sequence[str] | Path
"""Captures to check: their paths, or a file of pickled records."""
T = TypeVar("T")

_SMALL = 16 << 20
"""Bytes of captures for which one process is as fast: workers need 0.6 s to start, in which it checks 3 MB."""


class Workers:
    """The processes of a command: `with Workers(jobs, bar, load) as workers: for item in workers.checked(rules): …`.

    `jobs` is the option; None stands for the number of cores, or 1 for small captures. `load` returns the rules in a
    worker; it must be picklable. With `processes` 1, the work is done in this process.
    """

    def __init__(self, jobs: int | None, bar: Bar, load: Callable[[], Scopes]) -> None:
        self._bar, self._load = bar, load
        is_small = jobs is None and bar.size < _SMALL
        if jobs == 1 or is_small or "-" in bar.paths:
            self.processes = 1
        else:
            self.processes = min(jobs or _cores(), len(set(bar.files)))
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def checked(self, rules: Scopes, redactor: Redactor | None = None) -> Iterator[Checked | Problem]:
        """Check the captures of the bar. Yield the results in the order of the captures.

        `redactor` redacts each record before it is checked. It runs in this process, since it learns from earlier records.
        """
        if self.processes == 1:
            yield from check(_records(self._bar.paths, redactor), rules, self._bar.inform_failure)
            return
        try:
            yield from self.results(_check, self._tasks(redactor))
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

    def _tasks(self, redactor: Redactor | None) -> Iterator[_Captures]:
        for number, batch in enumerate(self.batches(self._bar.files, str)):
            if redactor is None:
                yield batch
                continue
            path = self._pool.folder / f"{number}.in"
            with path.open("wb") as file:
                for item in _records(batch, redactor):
                    pickle.dump(item, file)
            yield path

    def batches(self, items: Iterable[T], path_of: Callable[[T], str]) -> Iterator[list[T]]:
        """Group items into tasks of at most a tenth of a worker's share, since a task costs 2 ms. Items of one path stay
        together."""
        most = self._bar.size / self.processes / 10
        batch: list[T] = []
        size = 0
        for path, group in groupby(items, path_of):
            size += size_of(path)
            if batch and size > most:
                yield batch
                batch, size = [], size_of(path)
            batch += group
        yield batch


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _records(paths: Iterable[str], redactor: Redactor | None) -> Iterator[Record | Problem]:
    for item in read(paths):
        yield item if redactor is None or isinstance(item, Problem) else redactor.record(item)


def _check(rules: Scopes, captures: _Captures, emit: Emit, report: Report) -> None:
    """Check captures in a worker."""
    from wirelint.cli.pool import unpickled

    for item in check(unpickled(captures) if isinstance(captures, Path) else read(captures), rules, report):
        emit(item)
