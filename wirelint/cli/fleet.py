"""The option `--ray`: the workers of a Ray cluster check captures, and write the tables of their findings.

Theory of operation. A partition of the captures (`capture.offline`), the unit of `--jobs`, is a plain task of Ray: it
is a chain of files with a ledger, it writes its results itself, and only counts come back. Ray Data would move blocks of
rows between steps, and here is one step.

A task writes tables into a scratch folder, copies them to the output under names made from the partition, and last
writes `_done/<name>.json`: a fingerprint of its input, the files, the counts. If this record has the right fingerprint,
the partition is not checked again; else its files are removed first. A task whose worker is killed runs again, and
writes the same files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
import orjson

from wirelint import __version__
from wirelint.capture import storage
from wirelint.capture.offline import Checked, Partition, partitions
from wirelint.capture.readers import Problem
from wirelint.capture.redact import new_key, redacted
from wirelint.cli.export import judged
from wirelint.cli.jobs import Bar, size_of
from wirelint.cli.options import Selection, failure_text, inform
from wirelint.settings import Scopes
from wirelint.text.escaping import counted, printable
from wirelint.view.findings import count_by_severity

_DONE = "_done"
_MOST_WAITING = 1_000
"""Tasks that Ray holds at once."""
_POLL = 0.2


@dataclass(slots=True)
class Totals:
    """Counts of checked partitions. `severities`: of new findings. `memory`: most bytes of a worker."""

    exchanges: int = 0
    files: int = 0
    severities: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    memory: int = 0

    def add(self, other: Totals) -> None:
        for name in ("exchanges", "files", "severities", "problems"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.memory = max(self.memory, other.memory)


@dataclass(frozen=True, slots=True)
class _Task:
    """A partition to check. `name`: of its files in the output. `key`: of the redaction, one for all workers."""

    partition: Partition
    name: str
    fingerprint: str
    output: str
    folder: str
    key: bytes


def check_on_ray(
    address: str,
    paths: Sequence[str],
    output: str | None,
    selection: Selection,
    jobs: int | None,
    interleaved: bool,
    has_others: bool,
) -> int:
    """Check captures on a Ray cluster, or on one that is started here if the address is empty. Return the exit status.

    Raises click.ClickException without the extra `ray`, if there is no such cluster, for an unusable output, and if there
    are other options that `--ray` excludes.
    """
    if output is None or output == "-" or "-" in paths or has_others:
        raise click.UsageError(
            "--ray writes tables: name a folder or bucket with -o, and leave out -, --baseline, --watch and --judge"
        )
    output = storage.place_of(output)
    try:
        import ray

        from wirelint.view.parquet import write_tables
    except ImportError as error:
        raise click.ClickException("--ray needs Ray and DuckDB: pip install 'wirelint[ray]'") from error
    rules, totals, folder, key = selection.scopes(), Totals(), os.getcwd(), new_key()
    with Bar(paths, "checking") as bar:
        units = partitions(bar.files, size_of, interleaved=interleaved)
        tasks = [_Task(one, *_named(one, rules, selection), output, folder, key) for one in units]
        left = []
        for task in tasks:
            match _record_of(task):
                case (task.fingerprint, _, before):
                    totals.add(before)
                case _:
                    left.append(task)
        totals.memory = 0
        if left:
            _connect(ray, address, jobs)
            for task, made in _results(ray, left, selection.scopes, bar):
                totals.add(made)
                bar.counts[0] += made.exchanges
                bar.counts[1] += task.partition.size
            # Each table once without rows, so that queries find its columns.
            with tempfile.TemporaryDirectory(prefix="wirelint-ray-") as scratch:
                write_tables(Path(scratch), ())
                try:
                    for path in Path(scratch).rglob("*.parquet"):
                        storage.upload(path, output, path.relative_to(scratch).as_posix())
                except OSError as error:
                    raise click.ClickException(f"{output}: {error.strerror or error}") from error
    for problem in totals.problems:
        inform(f"wirelint: {problem}")
    found = count_by_severity(totals.severities) or "nothing found"
    inform(f"{counted(totals.exchanges, 'exchange')} in {counted(totals.files, 'file')}: {found}")
    used = f"; at most {totals.memory >> 20} MiB for a worker" if totals.memory else ""
    inform(f"wrote {output}: {counted(len(left), 'task')}, {len(tasks) - len(left)} done before{used}")
    if totals.problems:
        return 2
    return 1 if totals.severities["error"] + totals.severities["warning"] else 0


def _connect(ray: Any, address: str, jobs: int | None) -> None:
    """Connect to a cluster, or start one on this machine. Raises click.ClickException."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports the use of a cluster that it starts
    if ray.is_initialized():
        return
    place: dict[str, Any] = {"address": address or None}
    if not address and "RAY_ADDRESS" not in os.environ:
        place = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    try:
        if found := re.fullmatch(r"(?:ray://)?([^/:]+):(\d{1,5})", address):
            socket.create_connection((found[1], int(found[2])), 10).close()  # Ray would try for minutes
        ray.init(**place, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        reason = printable(" ".join(str(error).split()))[:160]
        raise click.ClickException(
            f"--ray {address or 'here'}: no connection: {reason}; check the address of the head node"
        ) from error


def _results(ray: Any, tasks: Sequence[_Task], load: Callable[[], Scopes], bar: Bar) -> Iterator[tuple[_Task, Totals]]:
    """Yield each task with its counts when it is done. A task that fails is a problem of the captures it is about."""
    work, shared = ray.remote(max_retries=3)(_work), ray.put(load)
    waiting: dict[Any, _Task] = {}
    rest = iter(tasks)
    while True:
        while len(waiting) < _MOST_WAITING and (task := next(rest, None)) is not None:
            waiting[work.remote(shared, task)] = task
        if not waiting:
            return
        done, _ = ray.wait(list(waiting), timeout=_POLL)
        for reference in done:
            task = waiting.pop(reference)
            try:
                made = ray.get(reference)
            except Exception as error:
                made = Totals(problems=[_explained(task, error)])
            yield task, made
        bar.tick()


def _explained(task: _Task, error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    files = list(task.partition.files)
    place = f"{files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''}"
    text = " ".join(str(cause).split()) or type(cause).__name__
    if type(error).__name__ in ("WorkerCrashedError", "OutOfMemoryError"):
        text = "the worker was killed several times, for example for lack of memory; give the nodes more"
    return printable(f"{place}: not checked: {text[:200]} (run the command again for the rest)")


def _named(partition: Partition, rules: Scopes, selection: Selection) -> tuple[str, str]:
    """Return the name of a partition, which stays while captures grow, and the fingerprint of its input."""
    files = list(partition.files)
    name = f"{hashlib.sha256(files[0].encode()).hexdigest()[:12]}-{partition.number}"
    options = [str(value) for value in selection.__getstate__().values()]
    said = [__version__, *options, *(rule.code for rule in rules.everywhere), f"{partition.slices}"]
    said += [f"{file} {size_of(file)}" for file in files]
    return name, hashlib.sha256("\n".join(said).encode("utf-8", "replace")).hexdigest()[:16]


def _record_of(task: _Task) -> tuple[str, list[str], Totals] | None:
    """Return fingerprint, files and counts of the last complete run of a partition; None if there is none."""
    try:
        with storage.opened(storage.joined(task.output, f"{_DONE}/{task.name}.json")) as file:
            value = orjson.loads(file.read())
        totals = Totals(**value["counts"])
        totals.severities = Counter(totals.severities)
        return value["fingerprint"], value["tables"], totals
    except FileNotFoundError:
        return None
    except storage.StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise click.ClickException(f"{task.output}: {error.message} ({error.cure})") from error
    except (ValueError, KeyError, TypeError):  # half written
        return None


# --- in a worker ------------------------------------------------------------------------------------------------------


@cache
def _loaded(load: Callable[[], Scopes]) -> Scopes:
    return load()


def _work(load: Callable[[], Scopes], task: _Task) -> Totals:
    """Check a partition and write its tables. Raises OSError."""
    import resource

    from wirelint.view.parquet import write_rows

    if os.path.isdir(task.folder):
        os.chdir(task.folder)  # paths are those of the command
    totals = Totals(files=len(list(task.partition.files)))
    if (before := _record_of(task)) is not None:
        files, root = storage.filesystem_of(task.output)
        for name in (f"{_DONE}/{task.name}.json", *before[1]):
            with contextlib.suppress(FileNotFoundError):
                files.rm_file(f"{root.rstrip('/')}/{name}")
    with tempfile.TemporaryDirectory(prefix="wirelint-ray-") as scratch:
        write_rows(Path(scratch), _counted(task, _loaded(load), totals), task.name)
        tables = sorted(path.relative_to(scratch).as_posix() for path in Path(scratch).rglob("*.parquet"))
        for table in tables:
            storage.upload(Path(scratch, table), task.output, table)
        record = Path(scratch, "record.json")
        record.write_bytes(orjson.dumps({"fingerprint": task.fingerprint, "tables": tables, "counts": totals}))
        storage.upload(record, task.output, f"{_DONE}/{task.name}.json")
    totals.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return totals


def _counted(task: _Task, rules: Scopes, totals: Totals) -> Iterator[Checked]:
    def report(culprit: str, error: Exception) -> None:
        totals.problems.append(failure_text(culprit, error).removeprefix("wirelint: "))

    for item in task.partition.check(rules, report, partial(redacted, task.key)):
        if isinstance(item, Problem):
            totals.problems.append(str(item))
            continue
        item = judged(item)
        totals.exchanges += 1
        totals.severities.update(finding.severity for finding in item.findings if not finding.is_known)
        yield item
