"""How far a long command has come: a bar on stderr while there is a person to see it, and nothing anywhere else.

Theory of operation. The size of the work is the bytes of all files; how much is done is known exactly between two files,
and within one by the bodies of the records that have been read of it. The bar is drawn by nobody's thread: it is drawn when
a record has been read, ten times a second at most, and taken away before anything else is printed, so that the results
of a command on a terminal never mix with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, TextIO, TypeVar

from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, captures_below, read
from wirelint.capture.record import Record
from wirelint.cli.selection import tell, tell_failure
from wirelint.rule import Rule
from wirelint.view.screen import Screen


class _Judged(Protocol):
    @property
    def record(self) -> Record: ...


Item = TypeVar("Item", bound="Record | Problem | _Judged")

_PATIENCE = 0.7
"""Seconds in which a command may end without a bar."""
_PAUSE = 0.1
_PER_RECORD = 2.0
"""Bytes of a file for each byte of the bodies in it: heads, escapes, arrivals, findings."""


class Bar:
    """`with Bar(paths, "checking") as bar: for item in bar.judged(rules): …`.

    Before a result is printed `bar.hide(sys.stdout)`; `bar.tell` says anything else.
    """

    def __init__(self, paths: Iterable[str], verb: str, console: Screen | None = None) -> None:
        self._console = console or Screen(sys.stderr)
        self.on = self._console.is_terminal and not self._console.is_dumb_terminal
        self._paths = tuple(paths)
        self._verb = verb
        self._sizes: dict[str, int] | None = None
        self._began = self._drawn = time.monotonic()
        self._done = 0
        self._behind: list[str] = []
        self._source: str | None = None
        self._read = 0.0
        self._records = 0
        self._progress: Progress | None = None
        self._showing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def judged(self, rules: Sequence[Rule]) -> Iterator[Checked | Problem]:
        """The records of the paths, judged; each counts as done when the next is asked for."""
        return self.follow(check(read(self._paths), rules, self.tell_failure))

    def tell(self, message: str) -> None:
        """Chatter on stderr, with the bar out of its way."""
        self.hide()
        tell(message)

    def tell_failure(self, culprit: str, error: Exception) -> None:
        self.hide()
        tell_failure(culprit, error)

    def follow(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; each counts as done when the next is asked for."""
        for item in items:
            yield item
            if self.on and not isinstance(item, Problem):
                self.seen(item if isinstance(item, Record) else item.record)

    def seen(self, record: Record) -> None:
        """A record was dealt with."""
        if not self.on:
            return
        if record.source != self._source:
            self._behind += [self._source] if self._source is not None else []
            self._source, self._read = record.source, 0.0
        self._read += (len(record.request_body or b"") + len(record.response_body or b"")) * _PER_RECORD
        self._records += 1
        now = time.monotonic()
        if now - self._began >= _PATIENCE and now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw()

    def hide(self, before: TextIO | None = None) -> None:
        """Takes the bar away until the next record. `before`: only where that output is seen on the same terminal."""
        if self._showing and self._progress is not None and (before is None or before.isatty()):
            self._progress.stop()
            self._showing = False

    def _draw(self) -> None:
        if self._progress is None:
            bar = BarColumn(bar_width=20, complete_style="cyan", finished_style="cyan")
            self._progress = Progress(
                TextColumn("{task.description}"), bar, TextColumn("{task.fields[told]}"),
                TimeRemainingColumn(), console=self._console, transient=True, auto_refresh=False,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._progress.add_task(self._verb, total=sum(self._all().values()) or None, told="")
        self._done += sum(map(self._size, self._behind))
        self._behind.clear()
        size = self._size(self._source)
        done = self._done + (min(self._read, size) if size else self._read)
        told = f"{self._records:,} exchanges, {decimal(int(done))}"
        task = self._progress.task_ids[0]
        self._progress.update(task, completed=done, told=told)
        if not self._showing:
            self._progress.start()
            self._showing = True
        self._progress.refresh()

    def _size(self, source: str | None) -> int:
        return self._all().get(source, 0) if source is not None else 0

    def _all(self) -> dict[str, int]:
        """The size of each file that is read."""
        if self._sizes is None:
            self._sizes = dict(_sizes(self._paths))
        return self._sizes


def _sizes(paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    for path in paths:
        files = [file for file, counts in captures_below(path) if counts] if os.path.isdir(path) else [path]
        for file in files:
            try:
                yield file, os.path.getsize(file)
            except OSError:  # what is wrong with it is told by whoever reads it
                yield file, 0
