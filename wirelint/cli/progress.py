"""Progress of a long command: a bar on stderr if that is a terminal.

Theory of operation. The total is the size of all files. The part done is exact between two files, and estimated within one
by the bodies of the records read from it. The bar is drawn when a record has been read, at most ten times a second, and
removed before anything else is printed, so that it never mixes with results on the same terminal.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TextIO, TypeVar

from rich.filesize import decimal

from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, captures_below, read
from wirelint.capture.record import Record
from wirelint.cli.options import inform, inform_failure
from wirelint.rule import Rule
from wirelint.view.screen import Screen

if TYPE_CHECKING:
    from rich.progress import Progress

    from wirelint.cli.judge import Judge


class _HasRecord(Protocol):
    @property
    def record(self) -> Record: ...


Item = TypeVar("Item", bound="Record | Problem | _HasRecord")

_PATIENCE = 0.7
"""Seconds in which a command may end without a bar."""
_PAUSE = 0.1
_PER_BYTE = 2.0
"""Bytes of a file for each byte of the bodies in it: heads, escapes, arrivals, findings."""


class Bar:
    """A progress bar: `with Bar(paths, "checking") as bar: for item in bar.checked(rules): …`.

    Call `bar.hide(out)` before printing.
    """

    def __init__(self, paths: Iterable[str], verb: str, console: Screen | None = None) -> None:
        self._console, self._verb = console or Screen(sys.stderr), verb
        self.is_on = self._console.is_terminal and not self._console.is_dumb_terminal
        self.problems = 0
        self._paths = tuple(paths)
        self._began = self._drawn = time.monotonic()
        self._source: str | None = None
        self._done = self._read = 0.0
        self._records = 0
        self._note = ""
        self._sizes = dict(_sizes(self._paths)) if self.is_on else {}
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def checked(
        self, rules: Sequence[Rule], records: Iterator[Record | Problem] | None = None, judge: Judge | None = None
    ) -> Iterator[Checked]:
        """Yield the records (by default those of the paths), checked. Problems of reading are printed and counted."""
        found = read(self._paths) if records is None else records
        items = check(found, rules, self.inform_failure)
        for item in self.follow(items if judge is None else judge.judged(items, rules, self)):
            if isinstance(item, Problem):
                self.problems += 1
                sys.stdout.flush()
                self.inform(f"wirelint: {item}")
            else:
                yield item

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
        self.hide()
        inform_failure(culprit, error)

    def follow(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; each counts as done when the next is requested."""
        for item in items:
            yield item
            if self.is_on and not isinstance(item, Problem):
                self._advance(item if isinstance(item, Record) else item.record)

    def hide(self, before: TextIO | None = None) -> None:
        """Remove the bar until the next record. `before`: only if this output is on a terminal too."""
        if self._progress is not None and self._progress.live.is_started and (before is None or before.isatty()):
            self._progress.stop()

    def _make(self) -> Progress:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # 20 ms, which few runs need

        made = Progress(
            TextColumn("{task.description}"), BarColumn(20, complete_style="cyan", finished_style="cyan"),
            TextColumn("{task.fields[text]}"), TimeRemainingColumn(),
            console=self._console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        made.add_task(self._verb, total=sum(self._sizes.values()) or None, text="")
        return made

    def _advance(self, record: Record) -> None:
        if record.source != self._source:
            self._done += self._sizes.get(self._source or "", 0)
            self._source, self._read = record.source, 0.0
        self._read += (len(record.request_body or b"") + len(record.response_body or b"")) * _PER_BYTE
        self._records += 1
        now = time.monotonic()
        if now - self._began >= _PATIENCE and now - self._drawn >= _PAUSE:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        size = self._sizes.get(self._source or "", 0)
        done = self._done + (min(self._read, size) if size else self._read)
        text = f"{self._records:,} exchanges, {decimal(int(done))}{self._note}"
        if self._progress is None:
            self._progress = self._make()
        self._progress.update(self._progress.task_ids[0], completed=done, text=text)
        self._progress.start()
        self._progress.refresh()


def _sizes(paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    for path in paths:
        files = [file for file, counts in captures_below(path) if counts] if os.path.isdir(path) else [path]
        for file in files:
            try:
                yield file, os.path.getsize(file)
            except OSError:  # the reader reports the error
                yield file, 0
