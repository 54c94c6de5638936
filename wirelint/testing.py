"""Helpers for users' tests: `assert_clean`, which fails with the output of `wirelint check`, and a mitmdump with the
addon.

A client gets its reply before the exchange is recorded, so reading waits until the proxy has no pending exchange. Every
wait has a limit. `wirelint demo` uses the proxy as well.
"""

from __future__ import annotations

import functools
import io
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from wirelint import settings
from wirelint.capture.format import FormatError, decode, read_lines
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.engine import Engine
from wirelint.jsonvalues import mapping, mappings
from wirelint.launch.processes import PrivateProxy
from wirelint.model import Exchange, Json, Severity
from wirelint.registry import RuleError
from wirelint.rule import SEVERITIES, Finding
from wirelint.view.findings import read_finding
from wirelint.view.formats import begin
from wirelint.view.stats import Statistics

_WAIT, _QUIET, _POLL = 10.0, 2.0, 0.02
"""Seconds to wait: for pending exchanges, for those of the previous test, and between two polls."""


class Process:
    """A mitmdump in front of an upstream. `url` waits until it listens; use nothing else before.

    `options` by name, with or without the prefix `wirelint_`: `fix="safe"`.
    """

    def __init__(
        self,
        upstream: str,
        options: Mapping[str, str],
        folder: Path,
        confdir: Path,
        cwd: Path,
        captures: Path | None = None,
    ) -> None:
        self.upstream, self.captures = upstream, captures or folder / "captures"
        self._output = folder / "output.txt"
        folder.mkdir(parents=True, exist_ok=True)
        given = {"confdir": str(confdir), "wirelint_captures": str(self.captures)}
        given |= {f"wirelint_{name.removeprefix('wirelint_')}": text for name, text in options.items()}
        settings = [f"{name}={text}" for name, text in given.items()]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._process = PrivateProxy([upstream], settings, self._output, environment=environment, cwd=cwd)
        self._process.launch()

    @functools.cached_property
    def url(self) -> str:
        """The URL of the proxy, without a path. Raises StartError."""
        return f"http://127.0.0.1:{self._process.start().bases[self.upstream]}"

    @property
    def alive(self) -> bool:
        return self._process.alive

    @property
    def log(self) -> str:
        return self._output.read_text("utf-8", "replace")

    def settle(self, timeout: float = _WAIT) -> bool:
        """Wait until all exchanges are checked and recorded. Return False if some are still pending at the timeout."""
        end = time.monotonic() + timeout
        while pending := self._process.pending():
            if time.monotonic() > end:
                break
            time.sleep(_POLL)
        return not pending

    def files(self) -> list[Path]:
        """Return the files of exchanges that this process has written."""
        return sorted(path for run in self._process.runs for path in self.captures.glob(f"*{run}/exchanges.jsonl"))

    def lines(self) -> list[dict[str, Json]]:
        """Return the exchanges that were written, in the order in which they ended."""
        return [line for path in self.files() for line in read_lines(path)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.alive:
            self._process.stop(0)


class Proxy:
    """A running proxy for one test; exchanges of earlier tests are left out."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.url = process.url
        """The base URL for clients, without a path: `f"{proxy.url}/v1"`."""
        process.settle(_QUIET)
        self._before, self._began = len(process.lines()), time.time()

    @property
    def upstream(self) -> str:
        return self._process.upstream

    @property
    def log(self) -> str:
        return self._process.log

    @property
    def exchanges(self) -> list[dict[str, Json]]:
        """The test's exchanges as lines of exchanges.jsonl, in the order in which they ended."""
        return self.wait()

    @property
    def findings(self) -> list[Finding]:
        """The findings on the test's exchanges, as reported live."""
        found = (read_finding(one) for line in self.exchanges for _, one in mappings(line.get("findings")))
        return [finding for finding in found if finding is not None]

    def wait(self, timeout: float = _WAIT) -> list[dict[str, Json]]:
        """Return the exchanges, once none is pending or `timeout` seconds have passed."""
        self._process.settle(timeout)
        lines = [(line, mapping(line.get("timing")).get("started")) for line in self._process.lines()[self._before :]]
        return [line for line, at in lines if not isinstance(at, (int, float)) or at >= self._began]

    def stop(self) -> None:
        self._process.stop()


Subject: TypeAlias = "Exchange | Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]"
Rules: TypeAlias = "str | Sequence[str]"


def assert_clean(
    subject: Subject, *, select: Rules = (), ignore: Rules = (), least: Severity = "warning", isolated: bool = False
) -> None:
    """Raise AssertionError with all findings if one has the severity `least` or worse.

    `subject` is an `Exchange`, a record (also as the dictionary of a line of exchanges.jsonl), several records in order,
    or the path of a capture or a folder. Rules as in `wirelint check`: by name, code or prefix. The configuration of the
    working directory applies, unless `isolated`. Raises ValueError, in one line, for unknown rules and unreadable input.
    """
    __tracebackhide__ = True
    names = (settings.split([given] if isinstance(given, str) else given) for given in (select, ignore))
    checked = _checked(subject, _rules(*names, isolated=isolated))
    worst = SEVERITIES[: SEVERITIES.index(least) + 1]
    if any(finding.severity in worst for one in checked for finding in one.findings):
        raise AssertionError(_printed([one.folded for one in checked]))


def _checked(subject: Subject, rules: settings.Scopes) -> Sequence[Checked]:
    if isinstance(subject, Exchange):
        record = Record(subject.id, subject.method, subject.url, source="exchange")
        return [Checked(record, subject, Engine(rules).check(subject))]
    checked = []
    for item in check(_items(subject), rules):
        if isinstance(item, Problem):
            raise ValueError(str(item))
        checked.append(item)
    return checked


def _items(subject: Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]) -> Iterator[
    Record | Problem
]:  # fmt: skip
    if isinstance(subject, str | Path):
        yield from read([subject])
        return
    for number, one in enumerate([subject] if isinstance(subject, Record | Mapping) else subject, 1):
        yield one if isinstance(one, Record) else _record(one, number)


def _record(value: Mapping[str, Json], number: int) -> Record:
    if not isinstance(value, Mapping):
        raise ValueError(f"record {number}: {type(value).__name__} is neither a record nor the dictionary of one")
    try:
        return decode(dict(value), "record", f"record {number}")
    except FormatError as error:
        raise ValueError(f"record {number}: {error}") from error


def _rules(select: tuple[str, ...], ignore: tuple[str, ...], *, isolated: bool) -> settings.Scopes:
    config = settings.NO_CONFIG if isolated else settings.find(Path.cwd())
    known = _load_rules(config.rules, config.policy)
    given = settings.Layer(select=select or None, ignore=ignore)
    try:
        given.check(known)
    except RuleError as error:
        raise ValueError(str(error)) from error
    config.check(known)
    return config.scopes(known, given)


_load_rules = functools.cache(settings.load_rules)


def _printed(checked: Sequence[Checked]) -> str:
    out, counts = io.StringIO(), Statistics()
    writer = begin("full", out)
    for one in checked:
        counts.add(one)
        writer.add(one)
    writer.close()
    lines = "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))
    return f"{counts.summary()}\n\n{lines}"
