"""Pool of worker processes whose results arrive in the order of the tasks.

Theory of operation. A worker loads the rules itself, since modules of rules cannot be pickled. It writes the results of a
task to a temporary file, and this process reads these files in order, so that results wait on disk instead of in memory.
Ctrl-C reaches this process only, which then ends its workers.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import click

from wirelint.capture.offline import Checked, Report
from wirelint.cli.jobs import Bar, Counts, Meter
from wirelint.cli.options import failure_text
from wirelint.settings import Scopes

Task = TypeVar("Task")
Emit = Callable[[Any], None]
Work = Callable[[Scopes, Task, Emit, Report], None]
"""Function that works on a task in a worker: (rules, task, receiver of results, receiver of failures)."""

_POLL = 0.1


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure in a worker, as a message for the user."""

    text: str


class Pool:
    """Worker processes, which end with `close`. `load` returns the rules in a worker; it must be picklable."""

    def __init__(self, processes: int, load: Callable[[], Scopes], bar: Bar) -> None:
        context = multiprocessing.get_context("spawn")
        counts = context.Array("d", 2)
        bar.counts = counts
        self._bar = bar
        self._temporary = tempfile.TemporaryDirectory(prefix="wirelint-jobs-")
        self.folder = Path(self._temporary.name)
        self._executor = ProcessPoolExecutor(processes, context, _begin, (load, counts))

    def results(self, work: Work[Task], tasks: Iterable[Task]) -> Iterator[Any]:
        """Work on tasks. Yield the results of each, in the order of the tasks. Raises OSError."""
        begun: list[tuple[Path, Future[None]]] = []
        for number, task in enumerate(tasks):
            path = self.folder / f"{number}.out"
            with _interrupts_later():
                begun.append((path, self._executor.submit(_run, work, task, path)))
            self._bar.tick()
        for path, future in begun:
            while not wait([future], _POLL).done:
                self._bar.tick()
            try:
                future.result()
            except OSError:
                raise
            except BrokenProcessPool as error:
                message = (
                    "a worker process ended before its work was done, for example for lack of memory; lower --jobs"
                )
                raise click.ClickException(message) from error
            except Exception as error:
                message = f"a worker process failed: {type(error).__name__}: {error}; use --jobs 1"
                raise click.ClickException(message) from error
            for item in unpickled(path):
                if isinstance(item, _Failure):
                    self._bar.inform(item.text)
                else:
                    yield item
            path.unlink()

    def close(self) -> None:
        """End the workers at once: they are idle, or their results are not needed any more."""
        for process in multiprocessing.active_children():
            process.terminate()
        self._executor.shutdown(cancel_futures=True)
        self._temporary.cleanup()


def unpickled(path: Path) -> Iterator[Any]:
    """Yield the objects in a file that `pickle.dump` wrote one by one."""
    with path.open("rb") as file, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(file)


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
    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _rules.append(load())
    _counts.append(counts)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _run(work: Work[Task], task: Task, path: Path) -> None:
    meter = Meter(_counts[0])
    with path.open("wb") as file:

        def emit(item: object) -> None:
            pickle.dump(item, file)
            if isinstance(item, Checked):
                meter.add(item.record)

        work(_rules[0], task, emit, lambda culprit, error: pickle.dump(_Failure(failure_text(culprit, error)), file))
    meter.close()
