"""`wirelint fix`: captures in, fixed captures out."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from wirelint.capture.offline import Checked, Fixed
from wirelint.capture.offline import fix as fix_records
from wirelint.capture.readers import Problem, captures_below, open_source, read
from wirelint.capture.replay import mended
from wirelint.capture.writers import Staging, TargetError, write
from wirelint.cli import completion
from wirelint.cli.guidance import guided
from wirelint.cli.options import (
    Selection,
    fix_options,
    force_option,
    format_option,
    inform,
    paths_argument,
    rule_options,
)
from wirelint.cli.progress import Bar
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

    `counts` False: a copy of another file, which is fixed without messages and not counted.
    """

    source: str
    place: str = ""
    counts: bool = True


@guided("fix")
@paths_argument
@click.option(
    "-o", "--output", metavar="OUT", shell_complete=completion.complete_paths,
    help="Where to write the fixed captures; - is standard output.",
)  # fmt: skip
@click.option("--diff", is_flag=True, help="Print the changes as unified diffs and write nothing.")
@fix_options
@rule_options(policy=True, limits=True)
@click.option("--statistics", is_flag=True, help="Print counts per rule instead of the remaining findings.")
@format_option(list(FORMATS), "Format of the remaining findings.")
@force_option
@click.option("--exit-zero", is_flag=True, help="Exit 0 even if findings remain.")
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
    force: bool,
    exit_zero: bool,
) -> int:
    """Fix captures with the code that fixes live traffic.

    Output mirrors input: file to file, folder to folder (captures only); several inputs go to one folder. Records of
    wirelint keep the received bodies and gain `forwarded`, `delivered` and `fixes`; in flow files and HAR the fixed bodies
    replace the others. Fixing starts from the received bodies: running it again changes nothing.
    """
    if diff == (output is not None):
        wrong = (
            "--diff writes nothing; leave out -o"
            if diff
            else "no output named; write with -o OUT, or print the changes with --diff"
        )
        raise click.UsageError(wrong)
    rules, allowed = selection.fixing(
        unsafe=unsafe_fixes, fixable=fixable, unfixable=unfixable, clean_history=clean_history
    )
    to_stdout = output == _STDIO
    writer = None if diff or statistics or to_stdout else begin(output_format, sys.stdout, rules.everywhere)
    try:
        with Bar(paths, "fixing") as bar:
            run = _Run(rules, FixStatistics(allowed), writer, diff, bar)
            written = run.show(paths) if output is None else run.write(paths, output, force=force)
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
    if run.statistics.exchanges or not run.problems:
        inform(run.statistics.summary(done=not diff))
    if written:
        inform(written)
    if run.problems:
        return 2
    return 1 if run.statistics.left and not exit_zero else 0


@dataclass(slots=True)
class _Run:
    """One run of the command."""

    rules: Scopes
    statistics: FixStatistics
    writer: Writer | None
    diff: bool
    bar: Bar
    problems: int = 0
    _fatal: bool = False

    def show(self, paths: tuple[str, ...]) -> str:
        for job in _jobs(paths):
            for _ in self._fixed(job, job.source) if job.counts else ():
                pass
        return ""

    def write(self, paths: tuple[str, ...], output: str, *, force: bool) -> str:
        """Write everything or nothing. Returns a line that says what."""
        folder = len(paths) > 1 or os.path.isdir(paths[0])
        if output == _STDIO:
            if folder:
                raise click.UsageError("several captures cannot go to standard output; name a folder: -o OUT")
            return self._write_to_stdout(paths[0])
        target = Path(output)
        _keep_apart(paths, target)
        jobs = list(_jobs(paths))
        count = 0
        with Staging(target, folder=folder, force=force) as staging:
            for job in jobs:
                count += self._write(job, staging.path / job.place if folder else staging.path)
            if not count:
                return "nothing was written"
            staging.commit()
        return f"wrote {output}{_of(count, paths)}" if folder else f"wrote {output}"

    def _write_to_stdout(self, path: str) -> str:
        with tempfile.TemporaryDirectory(prefix="wirelint-fix-") as scratch:
            made = Path(scratch, "out")
            if self._write(_Job(path), made):
                with made.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
        return ""

    def _write(self, job: _Job, target: Path) -> bool:
        """Write one capture. Returns False if nothing of it can be read."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._fatal = False
        with _on_disk(job.source, target) as source:
            items = self._fixed(job, str(source))
            first = next(items, None)
            if not self._fatal:
                try:
                    write(source, itertools.chain(() if first is None else (first,), items), target)
                except ValueError:  # a truncated HAR, which the reader reports at its end
                    self._fatal = True
                    for _ in items:
                        pass
        if self._fatal:
            if target.is_file():
                target.unlink()
            if first is not None:
                self.bar.hide()
                inform(f"wirelint: {job.source}: left out of the output")
        return not self._fatal

    def _fixed(self, job: _Job, path: str) -> Iterator[Fixed]:
        # A folder is passed on only if it is empty, which the reader reports.
        records = read([path]) if os.path.isdir(path) else open_source(path, job.source)
        for item in self.bar.follow(fix_records(records, self.rules, None, self.bar.inform_failure)):
            if isinstance(item, Problem):
                self.bar.hide()
                self.problems += job.counts
                self._fatal = self._fatal or item.fatal
                sys.stdout.flush()
                if job.counts:
                    inform(f"wirelint: {item}")
                continue
            if job.counts:
                self.statistics.add(item)
                if item.record.fixes or item.remaining:
                    self.bar.hide(sys.stdout)
                if self.diff:
                    write_patch(item, sys.stdout)
                elif self.writer is not None:
                    self.writer.add(Checked(mended(item.record), item.exchange, item.remaining))
            yield item


def _jobs(paths: tuple[str, ...]) -> Iterator[_Job]:
    taken: dict[str, str] = {}
    for path in paths:
        name = os.path.basename(os.path.abspath(path)) if len(paths) > 1 else ""
        if name and taken.setdefault(name, path) != path:
            raise click.UsageError(f"{taken[name]} and {path} would both become {name}; fix them one by one")
        if path == _STDIO or not os.path.isdir(path):
            yield _Job(path, name)
            continue
        found = list(captures_below(path))
        if not found:
            yield _Job(path, name)
        for file, counts in found:
            yield _Job(file, os.path.join(name, os.path.relpath(file, path)), counts)


def _keep_apart(paths: tuple[str, ...], target: Path) -> None:
    """Refuse an output that is an input, or is inside or around one."""
    out = target.resolve()
    for path in paths:
        source = Path(path).resolve()
        if path != _STDIO and (out == source or source in out.parents or out in source.parents):
            raise click.UsageError(f"{target} and {path} overlap; nothing is fixed in place, name another output")


@contextlib.contextmanager
def _on_disk(source: str, target: Path) -> Iterator[Path]:
    """Yield a file that can be read twice: standard input is copied beside the output."""
    if source != _STDIO:
        yield Path(source)
        return
    spool = target.with_name(f"{target.name}.in")
    try:
        with spool.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield spool
    finally:
        spool.unlink(missing_ok=True)


def _of(count: int, paths: tuple[str, ...]) -> str:
    """Return the part of the input that is in the output, in words."""
    files = sum(len(names) for path in paths for _, _, names in os.walk(path))
    files += sum(not os.path.isdir(path) for path in paths)
    others = files - count
    return f": {counted(count, 'capture')}" + (f"; {counted(others, 'other file')} left out" if others > 0 else "")
