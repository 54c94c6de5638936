"""Work on captures: in several processes (`--jobs`), with a progress bar on stderr if that is a terminal.

Theory of operation. The unit of work is a partition of the captures (`capture.offline`), so the results do not depend on
the number of processes. A worker loads the rules itself, since modules of rules cannot be pickled. It writes the results
of a task to a temporary file, and this process reads these files in order, so that results wait on disk instead of in
memory. Ctrl-C reaches this process only, which then ends its workers.

The bar's total is the size of all files. The part done is exact between two files, and estimated within one by the bodies
of the records read from it. The bar is drawn when a record has been read, at most ten times a second, and removed before
anything else is printed, so that it never mixes with results on the same terminal. With `--jobs` the worker processes
count records and bytes, and this process only draws.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeAlias, TypeVar

import click
from rich.filesize import decimal

from wirelint.capture import storage
from wirelint.capture.offline import Change, Checked, Partition, Report, partitions
from wirelint.capture.readers import Problem, captures_below
from wirelint.capture.record import Record
from wirelint.cli.options import failure_text, inform
from wirelint.rule import Rule
from wirelint.settings import Scopes
from wirelint.view.screen import Screen

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess
    from multiprocessing.sharedctypes import SynchronizedArray

    from rich.progress import Progress

    from wirelint.cli.judge import Judge

T = TypeVar("T")
Emit = Callable[[Any], None]
Work = Callable[[Scopes, T, Emit, Report], None]
"""Function that works on a task in a worker: (rules, task, receiver of results, receiver of failures)."""


Item = TypeVar("Item", bound="Record | Problem | Checked")

Counts: TypeAlias = "SynchronizedArray[float] | list[float]"
"""The number of records and of bytes that are done; shared by processes, or in a list."""

_PATIENCE = 0.7
"""Seconds in which a command may end without a bar."""
_PAUSE = _POLL = 0.1
_PER_BYTE = 2.0
"""Bytes of a file for each byte of the bodies in it: heads, escapes, arrivals, findings."""


class Meter:
    """Adds records to counts. The bytes of a file are estimated by the bodies, up to its size, until the file is done."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._source: str | None = None
        self._size, self._read = 0, 0.0

    def add(self, record: Record) -> None:
        """Count a record of the next file or of the same one."""
        if record.source != self._source:
            self.close()
            self._source, self._size, self._read = record.source, size_of(record.source), 0.0
        before = self._read
        self._read += (len(record.request_body or b"") + len(record.response_body or b"")) * _PER_BYTE
        self._read = min(self._read, self._size) if self._size else self._read
        self._done(1, self._read - before)

    def close(self) -> None:
        if self._size:
            self._done(0, self._size - self._read)

    def _done(self, records: int, size: float) -> None:
        with contextlib.nullcontext() if isinstance(self._counts, list) else self._counts.get_lock():
            self._counts[0] += records
            self._counts[1] += size


class Bar:
    """A progress bar: `with Bar(paths, "checking") as bar: for item in bar.follow(items): …`.

    Call `bar.hide(out)` before printing. `counts` may be replaced by those of other processes that do the work.
    """

    def __init__(self, paths: Iterable[str], verb: str, console: Screen | None = None) -> None:
        self._console, self._verb = console or Screen(sys.stderr), verb
        self.is_on = self._console.is_terminal and not self._console.is_dumb_terminal
        self.problems = 0
        self.paths = tuple(paths)
        self.counts: Counts = [0.0, 0.0]
        self._meter = Meter(self.counts)
        self._began = self._drawn = time.monotonic()
        self._note = ""
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    @cached_property
    def files(self) -> Sequence[str]:
        return [file for path in self.paths for file in files_of(path)]

    @cached_property
    def size(self) -> int:
        return sum(map(size_of, self.files))

    def checked(
        self, items: Iterable[Checked | Problem], rules: Sequence[Rule], judge: Judge | None = None
    ) -> Iterator[Checked]:
        """Yield checked records, with the findings of the judge. Problems of reading are printed and counted."""
        for item in self.follow(items if judge is None else judge.judged(items, rules, self)):
            if isinstance(item, Problem):
                self.report(item)
            else:
                yield item

    def report(self, problem: Problem) -> None:
        """Count and print a problem of reading."""
        self.problems += 1
        sys.stdout.flush()
        self.inform(f"wirelint: {problem}")

    def note(self, text: str) -> None:
        """Show a text beside the counts at once, because a slow step follows."""
        self._note = f", {text}"
        if self.is_on:
            self._draw()

    def inform(self, message: str) -> None:
        """Print a message on stderr with the bar out of the way."""
        self.hide()
        inform(message)

    def inform_failure(self, culprit: str, error: Exception) -> None:
        self.inform(failure_text(culprit, error))

    def follow(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; each counts as done when the next is requested."""
        for item in items:
            yield item
            if self.is_on and not isinstance(item, Problem):
                self.add(item if isinstance(item, Record) else item.record)

    def add(self, record: Record) -> None:
        """Count a record, unless other processes count."""
        if isinstance(self.counts, list):
            self._meter.add(record)
        self.tick()

    def tick(self) -> None:
        """Draw the bar if it is time to."""
        now = time.monotonic()
        if self.is_on and now - self._began >= _PATIENCE and now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw()

    def hide(self, before: TextIO | None = None) -> None:
        """Remove the bar until the next record. `before`: only if this output is on a terminal too."""
        if self._progress is not None and self._progress.live.is_started and (before is None or before.isatty()):
            self._progress.stop()

    def _draw(self) -> None:
        records, done = self.counts[0], self.counts[1]
        text = f"{int(records):,} exchanges, {decimal(int(done))}{self._note}"
        if self._progress is None:
            # 20 ms, which few runs need.
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(20, complete_style="cyan", finished_style="cyan"),
                TextColumn("{task.fields[text]}"), TransferSpeedColumn(), TimeRemainingColumn(),
                console=self._console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._progress.add_task(self._verb, total=self.size or None, text="")
        self._progress.update(self._progress.task_ids[0], completed=done, text=text)
        self._progress.start()
        self._progress.refresh()


def files_of(path: str) -> Sequence[str]:
    """Return the captures that a path names; a folder without captures stands for itself."""
    try:
        below = [file for file, counts in captures_below(path) if counts] if storage.is_folder(path) else []
    except OSError:  # the reader reports the error
        below = []
    return below or [path]


def size_of(file: str) -> int:
    """Return the size of a file in bytes; 0 for standard input, for folders, and for what cannot be read."""
    try:
        return 0 if storage.is_folder(file) else storage.size_of(file)
    except OSError:  # the reader reports the error
        return 0


# --- worker processes -----------------------------------------------------------------------------------------------


_SMALL = 16 << 20
"""Bytes of captures for which one process is as fast: workers need 0.6 s to start, in which it checks 3 MB."""


class Workers(contextlib.ExitStack):
    """The processes of a command: `with Workers(jobs, bar, load) as workers: for item in workers.checked(rules): …`.

    `jobs` is the option; None stands for the number of cores, or 1 for small captures. `load` returns the rules in a
    worker; it must be picklable. With `processes` 1, the work is done in this process. `interleaved`: see `partition`.
    """

    def __init__(self, jobs: int | None, bar: Bar, load: Callable[[], Scopes], *, interleaved: bool = False) -> None:
        super().__init__()
        self._bar, self._load = bar, load
        self._partitions = list(partitions(bar.files, size_of, interleaved=interleaved))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        is_small = jobs is None and bar.size < _SMALL
        if jobs == 1 or is_small or "-" in bar.paths:
            self.processes = 1
        else:
            self.processes = min(jobs or cores, max(len(self._partitions), len(set(bar.files))))

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
        import multiprocessing  # with its pool 15 ms, which small captures do not need
        from concurrent.futures import ProcessPoolExecutor, wait

        others = multiprocessing.active_children()

        def end() -> None:  # at once: the workers are idle, or their results are not needed any more
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            executor.shutdown(cancel_futures=True)

        context = multiprocessing.get_context("spawn")
        self._bar.counts = counts = context.Array("d", 2)
        folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="wirelint-jobs-")))
        executor = ProcessPoolExecutor(self.processes, context, _begin, (self._load, counts))
        self.callback(end)
        begun: list[tuple[Path, Future[None]]] = []
        for number, task in enumerate(tasks):
            path = folder / f"{number}.out"
            with _interrupts_later():
                begun.append((path, executor.submit(_run, work, task, path)))
            self._bar.tick()
        for path, future in begun:
            while not wait([future], _POLL).done:
                self._bar.tick()
            _require_success(future)
            with path.open("rb") as file, contextlib.suppress(EOFError):
                while True:
                    item = pickle.load(file)
                    if isinstance(item, _Failure):
                        self._bar.inform(item)
                    else:
                        yield item
            path.unlink()

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


def _check(
    change: Change, outline: bool, rules: Scopes, batch: Sequence[Partition], emit: Emit, report: Report
) -> None:
    for partition in batch:
        for item in partition.check(rules, report, change):
            emit(item.outline if outline and isinstance(item, Checked) else item)


class _Failure(str):
    """The message about a failure of a rule or of a reader."""

    __slots__ = ()


def _require_success(future: Future[None]) -> None:
    """Raise OSError of a task that has ended, and click.ClickException for other failures of its process."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        future.result()
    except OSError:
        raise
    except BrokenProcessPool as error:
        message = "a worker process ended before its work was done, for example for lack of memory; lower --jobs"
        raise click.ClickException(message) from error
    except Exception as error:
        message = f"a worker process failed: {type(error).__name__}: {error}; use --jobs 1"
        raise click.ClickException(message) from error


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Hold back Ctrl-C. Processes that start meanwhile never get it: they inherit the mask of signals."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a worker ------------------------------------------------------------------------------------------------------

_rules: list[Scopes] = []
_counts: list[Counts] = []


def _begin(load: Callable[[], Scopes], counts: Counts) -> None:
    """Prepare a worker: load the rules, and end with the parent process, even if that is killed."""
    from multiprocessing import parent_process

    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _rules.append(load())
    _counts.append(counts)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _run(work: Work[T], task: T, path: Path) -> None:
    meter = Meter(_counts[0])
    with path.open("wb") as file:

        def emit(item: object) -> None:
            pickle.dump(item, file)
            if isinstance(item, Checked):
                meter.add(item.record)

        work(_rules[0], task, emit, lambda culprit, error: pickle.dump(_Failure(failure_text(culprit, error)), file))
    meter.close()
