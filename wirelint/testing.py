"""For people's own tests: `assert_clean`, whose failure reads like `wirelint check`, and a real mitmdump with the addon.

Theory of operation of the proxy. The process listens at a free port and prints it. A client has its reply before the
exchange is written down, so reading waits until nothing is pending: `GET /.wirelint/pending` (`addon.status`) answers
`{"pending": 0}`. Every wait has a limit. The process is ended by its pid. The demonstration uses it as well.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self, TypeAlias, TypeVar

from wirelint import settings
from wirelint.capture.format import FormatError, decode
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.engine import Engine
from wirelint.model import Exchange, Json, Severity
from wirelint.policy.checks import RealDisk
from wirelint.policy.file import load
from wirelint.registry import Registry, RuleError, shipped
from wirelint.rule import SEVERITIES, Finding
from wirelint.view.findings import read_finding
from wirelint.view.formats import begin
from wirelint.view.stats import Statistics

_START, _STOP, _WAIT, _QUIET, _POLL = 60.0, 10.0, 10.0, 2.0, 0.02
"""Seconds: to start, to end, for pending exchanges, for those of the test before, between two looks."""
_PATH = "/.wirelint/pending"
_LISTENS = re.compile(r"listening at \S*?:(\d+)\b")
_SHOWN = 600

T = TypeVar("T")
Word = TypeVar("Word", bound=str)


class ProxyError(RuntimeError):
    """The proxy did not start; the text has its output."""


class Process:
    """A mitmdump. `options` by name, with or without the prefix `wirelint_`: `fix="safe"`."""

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
        self._before: set[Path] = set()
        self._before.update(self.files())
        self._output = folder / "output.txt"
        self.port = 0
        folder.mkdir(parents=True, exist_ok=True)
        command, environment = self._command(options, confdir), {**os.environ, "PYTHONUNBUFFERED": "1"}
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd, env=environment
            )
        try:
            self._wait_for_port()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The URL of the proxy, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """The output of the proxy."""
        return self._output.read_text("utf-8", "replace")

    def settle(self, timeout: float = _WAIT) -> bool:
        """Wait until all exchanges are checked and written. Returns False if some are still pending."""
        return bool(_until(lambda: self._pending() == 0, timeout))

    def files(self) -> list[Path]:
        """Return the files of exchanges that this process has written."""
        found = sorted(self.captures.glob("*/exchanges.jsonl")) if self.captures.is_dir() else []
        return [path for path in found if path not in self._before]

    def lines(self) -> list[dict[str, Json]]:
        """Return the exchanges that were written, in the order in which they ended."""
        found: list[dict[str, Json]] = []
        for path in self.files():
            with path.open("rb") as file:
                found += [json.loads(line) for line in file if line.endswith(b"\n")]
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP)
        if self.alive:
            self._process.kill()
            self._process.wait()

    def _command(self, options: Mapping[str, str], confdir: Path) -> list[str]:
        settings = {"confdir": str(confdir), "flow_detail": "0", "wirelint_captures": str(self.captures)}
        settings |= {f"wirelint_{name.removeprefix('wirelint_')}": text for name, text in options.items()}
        status = find_spec("wirelint.addon.status")
        scripts = (str(shipped("addons") / "inspector.py"), str(status.origin if status is not None else ""))
        return [
            # -P: modules in the folder of the tests must not be imported by the proxy.
            *(sys.executable, "-P", "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()"),
            *("--mode", f"reverse:{self.upstream}", "--listen-host", "127.0.0.1", "--listen-port", "0"),
            *(part for script in scripts for part in ("-s", script)),
            *(part for name, text in settings.items() for part in ("--set", f"{name}={text}")),
        ]

    def _wait_for_port(self) -> None:
        found = _until(lambda: _LISTENS.search(self.log) or not self.alive, _START)
        if isinstance(found, re.Match):
            self.port = int(found[1])
            # With a wrong option it listens for a moment before it ends.
            if _until(lambda: self._pending() is not None or not self.alive, _START) and self.alive:
                return
        output = " ".join(line for line in self.log.splitlines() if line.strip())[-_SHOWN:]
        raise ProxyError(f"the proxy in front of {self.upstream} did not start: {output or 'no output'}")

    def _pending(self) -> int | None:
        """Return the number of exchanges not written yet; None if the proxy does not answer, 0 if it has ended."""
        if not self.alive:
            return 0
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_WAIT)
        try:
            connection.request("GET", _PATH)
            answer = json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        pending = answer.get("pending") if isinstance(answer, dict) else None
        return pending if isinstance(pending, int) else None


class Proxy:
    """A running proxy for one test; exchanges of earlier tests are left out."""

    def __init__(self, process: Process) -> None:
        self._process = process
        process.settle(_QUIET)
        self._before, self._began = len(process.lines()), time.time()

    @property
    def url(self) -> str:
        """The base URL for clients, without a path: `f"{proxy.url}/v1"`."""
        return self._process.url

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
        lists = (line.get("findings") for line in self.exchanges)
        found = (read_finding(one) for values in lists if isinstance(values, list) for one in values)
        return [finding for finding in found if finding is not None]

    def wait(self, timeout: float = _WAIT) -> list[dict[str, Json]]:
        """Return the exchanges, once none is pending or the time is over."""
        self._process.settle(timeout)
        return [line for line in self._process.lines()[self._before :] if _started(line) >= self._began]

    def stop(self) -> None:
        """End the process and with it open exchanges."""
        self._process.stop()


def _started(line: Mapping[str, Json]) -> float:
    timing = line.get("timing")
    started = timing.get("started") if isinstance(timing, dict) else None
    return float(started) if isinstance(started, (int, float)) else float("inf")


def _until(ready: Callable[[], T], timeout: float) -> T | None:
    """Return the first true value of `ready`; None when the time is over."""
    end = time.monotonic() + timeout
    while True:
        if found := ready():
            return found
        if time.monotonic() > end:
            return None
        time.sleep(_POLL)


Subject: TypeAlias = "Exchange | Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]"
Rules: TypeAlias = "str | Sequence[str]"


def assert_clean(
    subject: Subject,
    *,
    select: Rules = (),
    ignore: Rules = (),
    least: Severity = "warning",
    isolated: bool = False,
) -> None:
    """Raise AssertionError with all findings if one has the severity `least` or worse.

    `subject` is an `Exchange`, a record (also as the dictionary of a line of exchanges.jsonl), several records in order,
    or the path of a capture or a folder. Rules as in `wirelint check`: by name, code or prefix. The configuration of the
    working directory applies, unless `isolated`. Raises ValueError, in one line, for unknown rules and unreadable input.
    """
    __tracebackhide__ = True
    checked = findings_of(subject, select=select, ignore=ignore, isolated=isolated)
    worst = SEVERITIES[: SEVERITIES.index(least) + 1]
    if any(finding.severity in worst for one in checked for finding in one.findings):
        raise AssertionError(_printed([one.folded for one in checked]))


def findings_of(
    subject: Subject, *, select: Rules = (), ignore: Rules = (), isolated: bool = False
) -> tuple[Checked, ...]:
    """Return the exchanges of a subject with their findings. Arguments and errors as in `assert_clean`."""
    rules = _rules(_names(select), _names(ignore), isolated=isolated)
    if isinstance(subject, Exchange):
        record = Record(subject.id, subject.method, subject.url, source="exchange")
        return (Checked(record, subject, Engine(rules).check(subject)),)
    checked = []
    for item in check(_items(subject), rules):
        if isinstance(item, Problem):
            raise ValueError(str(item))
        checked.append(item)
    return tuple(checked)


def _items(subject: Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]) -> Iterator[
    Record | Problem
]:  # fmt: skip
    match subject:
        case str() | Path():
            yield from read([subject])
        case Record():
            yield subject
        case Mapping():
            yield _record(subject, 1)
        case _:
            for number, one in enumerate(subject, 1):
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
    known = _registry(config.rules)
    given = settings.Layer(select=select or None, ignore=ignore)
    try:
        given.check(known)
    except RuleError as error:
        raise ValueError(str(error)) from error
    config.check(known)
    if config.policy is not None:
        known = known.under(load(config.policy, RealDisk()))
    return config.scopes(known, given)


@functools.cache
def _registry(folders: tuple[Path, ...]) -> Registry:
    return Registry.load(folders)


def _names(given: Rules) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def _printed(checked: Sequence[Checked]) -> str:
    """Return the output of `wirelint check`, without colours."""
    out, counts = io.StringIO(), Statistics()
    writer = begin("full", out)
    for one in checked:
        counts.add(one)
        writer.add(one)
    writer.close()
    lines = "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))
    return f"{counts.summary()}\n\n{lines}"
