"""`wirelint fix`: captures in, fixed captures out."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from wirelint.capture import storage
from wirelint.capture.offline import Checked, Fixed, Report
from wirelint.capture.offline import fix as fix_records
from wirelint.capture.readers import Problem, captures_below, open_source, read
from wirelint.capture.replay import mended
from wirelint.capture.writers import Staging, TargetError, write
from wirelint.cli import guided
from wirelint.cli.jobs import Bar, Workers, size_of
from wirelint.cli.options import Selection, inform, write_capture
from wirelint.settings import Scopes
from wirelint.text.escaping import counted
from wirelint.view.bodies import write_patch
from wirelint.view.findings import Writer
from wirelint.view.formats import FORMATS, begin
from wirelint.view.stats import FixStatistics

_STDIO = "-"


@dataclass(frozen=True, slots=True)
class _Job:
    """A capture to fix. `place` is its path below the output folder, empty if the output is a file.

    `target` is the file to write; None to write none. `counts` False: a copy of another file, which is fixed without
    messages and not counted.
    """

    source: str
    place: str = ""
    counts: bool = True
    target: Path | None = None


@guided("fix", output_format={"choices": list(FORMATS)})
def fix(
    paths: tuple[str, ...],
    output: str | None,
    diff: bool,
    unsafe_fixes: bool,
    fixable: tuple[str, ...],
    unfixable: tuple[str, ...],
    clean_history: bool | None,
    selection: Selection,
    statistics: bool,
    output_format: str,
    jobs: int | None,
    force: bool,
    exit_zero: bool,
) -> int:
    """Fix captures with the code that fixes live traffic.

    Output mirrors input: file to file, folder to folder (captures only); several inputs go to one folder. Records of
    wirelint keep the received bodies and gain `forwarded`, `delivered` and `fixes`; in flow files and HAR the fixed bodies
    replace the others. Fixing starts from the received bodies: running it again changes nothing.
    """
    if diff and output is not None:
        raise click.UsageError("--diff writes nothing; leave out -o")
    if not diff and output is None:
        raise click.UsageError("no output named; write with -o OUT, or print the changes with --diff")
    load = partial(
        selection.fixing, unsafe=unsafe_fixes, fixable=fixable, unfixable=unfixable, clean_history=clean_history
    )
    rules = load()
    to_stdout = output == _STDIO
    writer = None if diff or statistics or to_stdout else begin(output_format, sys.stdout, rules.everywhere)
    try:
        with Bar(paths, "fixing") as bar, Workers(jobs, bar, load) as workers:
            run = _Run(rules, FixStatistics(rules.default.permit), writer, diff, bar, workers)
            written = run.write(paths, output, force=force)
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"{error.filename or output}: {error.strerror or error}; nothing was written"
        raise click.ClickException(message) from error
    except TargetError as error:
        raise click.ClickException(str(error)) from error
    if writer is not None:
        writer.close()
    if statistics and not to_stdout:
        run.statistics.write(sys.stdout)
    if run.statistics.exchanges or not bar.problems:
        inform(run.statistics.summary(done=not diff))
    if written:
        inform(written)
    return 2 if bar.problems else int(run.statistics.left > 0 and not exit_zero)


@dataclass(slots=True)
class _Run:
    rules: Scopes
    statistics: FixStatistics
    writer: Writer | None
    diff: bool
    bar: Bar
    workers: Workers

    def write(self, paths: tuple[str, ...], output: str | None, *, force: bool) -> str:
        """Write everything or nothing, and nothing without an output. Returns a line that says what."""
        if output is None:
            for _ in self._fixed([job for job in _jobs(paths) if job.counts]):
                pass
            return ""
        folder = len(paths) > 1 or storage.is_folder(paths[0])
        if output == _STDIO:
            if folder:
                raise click.UsageError("several captures cannot go to standard output; name a folder: -o OUT")
            with tempfile.TemporaryDirectory(prefix="wirelint-fix-") as scratch:
                made = Path(scratch, "out")
                if all(self._fixed([_Job(paths[0], target=made)])):
                    with made.open("rb") as file:
                        write_capture(file)
            return ""
        target = Path(output)
        _keep_apart(paths, target)
        jobs = list(_jobs(paths))
        with Staging(target, folder=folder, force=force) as staging:
            path = staging.path
            count = sum(self._fixed([replace(one, target=path / one.place if folder else path) for one in jobs]))
            if not count:
                return "nothing was written"
            staging.commit()
        if not folder:
            return f"wrote {output}"
        others = sum(map(_count, paths)) - count
        left_out = f"; {counted(others, 'other file')} left out" if others > 0 else ""
        return f"wrote {output}: {counted(count, 'capture')}{left_out}"

    def _fixed(self, jobs: Sequence[_Job]) -> Iterator[bool]:
        """Fix captures. Yield True for each that is written, False if nothing of it can be read."""
        if self.workers.processes == 1:
            for job in jobs:
                yield self._close(fix_file(self.rules, job, partial(self._take, job), self.bar.inform_failure))
            return
        number = 0
        for item in self.workers.results(_fix_apart, self.workers.batches(jobs, lambda job: size_of(job.source))):
            if isinstance(item, _Outcome):
                yield self._close(item)
                number += 1
            else:
                self._take(jobs[number], item)

    def _take(self, job: _Job, item: Fixed | Problem) -> None:
        if isinstance(item, Problem):
            if job.counts:
                self.bar.report(item)
            return
        if job.counts:
            self.statistics.add(item)
            if item.record.fixes or item.remaining:
                self.bar.hide(sys.stdout)
            if self.diff:
                write_patch(item, sys.stdout)
            elif self.writer is not None:
                self.writer.add(Checked(mended(item.record), item.exchange, item.remaining))
        self.bar.add(item.record)

    def _close(self, outcome: _Outcome) -> bool:
        if outcome.left_out:
            self.bar.inform(f"wirelint: {outcome.left_out}: left out of the output")
        return outcome.is_written


class _Outcome(NamedTuple):
    """What became of a capture. `left_out`: its name, if records of it are read but none can be written."""

    is_written: bool
    left_out: str = ""


def _fix_apart(rules: Scopes, jobs: Sequence[_Job], emit: Callable[[Any], None], report: Report) -> None:
    """Fix captures in a worker. The outcome of each follows its records and problems."""
    for job in jobs:
        emit(fix_file(rules, job, emit, report))


def fix_file(rules: Scopes, job: _Job, emit: Callable[[Fixed | Problem], None], report: Report) -> _Outcome:
    """Fix one capture, and write it to the target of the job, if it has one. `emit` takes each record and problem."""
    if job.target is None:
        for item in _items(rules, job, job.source, report):
            emit(item)
        return _Outcome(is_written=False)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    is_fatal = has_records = False

    def records() -> Iterator[Fixed]:
        nonlocal is_fatal, has_records
        for item in items:
            emit(item)
            if isinstance(item, Problem):
                is_fatal = is_fatal or item.fatal
            else:
                has_records = True
                yield item

    with _on_disk(job.source, job.target) as source:
        items = _items(rules, job, str(source), report)
        found = records()
        first = next(found, None)
        if not is_fatal:
            try:
                write(source, itertools.chain(() if first is None else (first,), found), job.target)
            except ValueError:  # a truncated HAR, which the reader reports at its end
                is_fatal = True
                for _ in found:
                    pass
    if is_fatal and job.target.is_file():
        job.target.unlink()
    return _Outcome(not is_fatal, job.source if is_fatal and has_records else "")


def _items(rules: Scopes, job: _Job, path: str, report: Report) -> Iterator[Fixed | Problem]:
    # A folder is passed on only if it is empty, which the reader reports.
    records = read([path]) if storage.is_folder(path) else open_source(path, job.source)
    return fix_records(records, rules, None, report)


def _jobs(paths: tuple[str, ...]) -> Iterator[_Job]:
    taken: dict[str, str] = {}
    for path in paths:
        name = os.path.basename(os.path.abspath(path)) if len(paths) > 1 else ""
        if name and taken.setdefault(name, path) != path:
            raise click.UsageError(f"{taken[name]} and {path} would both become {name}; fix them one by one")
        if path == _STDIO or not storage.is_folder(path):
            yield _Job(path, name)
            continue
        found = list(captures_below(path))
        if not found:
            yield _Job(path, name)
        for file, counts in found:
            yield _Job(file, os.path.join(name, storage.relative(file, path)), counts)


def _keep_apart(paths: tuple[str, ...], target: Path) -> None:
    """Refuse an output that is an input, or is inside or around one."""
    out = target.resolve()
    for path in paths:
        source = Path(path).resolve()
        overlaps = out == source or source in out.parents or out in source.parents
        if path != _STDIO and not storage.is_url(path) and overlaps:
            raise click.UsageError(f"{target} and {path} overlap; nothing is fixed in place, name another output")


@contextlib.contextmanager
def _on_disk(source: str, target: Path) -> Iterator[Path]:
    """Yield a file that can be read twice: standard input and URLs are copied beside the output."""
    if source != _STDIO and not storage.is_url(source):
        yield Path(source)
        return
    spool = target.with_name(f"{target.name}.in")
    try:
        with spool.open("wb") as file, storage.opened(source) as stream:
            shutil.copyfileobj(stream, file)
        yield spool
    finally:
        spool.unlink(missing_ok=True)


def _count(path: str) -> int:
    if not storage.is_folder(path):
        return 1
    if storage.is_url(path):
        return sum(map(len, storage.files_below(path)))
    return sum(len(names) for _, _, names in os.walk(path))
