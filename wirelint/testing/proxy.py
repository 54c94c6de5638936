"""A real mitmdump with the addon in front of an upstream, for tests and the demonstration.

Theory of operation. The process listens at a free port and prints it. A client has its reply before the exchange is written
down, so reading waits until nothing is pending: `GET /.wirelint/pending` (`addon.status`) answers `{"pending": 0}`. Every
wait has a limit. The process is ended by its pid.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Self, TypeVar, get_args

from wirelint.model import Confidence, Json, Layer, Severity, Side
from wirelint.registry import shipped
from wirelint.rule import Finding, Fix, Safety

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
        return [
            read_finding(one) for found in lists if isinstance(found, list) for one in found if isinstance(one, dict)
        ]

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


def read_finding(value: Mapping[str, Json]) -> Finding:
    """Return a finding of a capture. Members that are not understood get their lowest value."""
    fix, event = value.get("fix"), value.get("event")
    return Finding(
        code=_text(value, "code"),
        name=_text(value, "name"),
        severity=_word(value, "severity", get_args(Severity), "info"),
        confidence=_word(value, "confidence", get_args(Confidence), "low"),
        layer=_word(value, "layer", get_args(Layer), "wirelint"),
        side=_word(value, "side", get_args(Side), "response"),
        message=_text(value, "message"),
        pointer=_text(value, "pointer") or None,
        event=event if isinstance(event, int) else None,
        fix=Fix(_word(fix, "safety", get_args(Safety), "unsafe"), _text(fix, "title"))
        if isinstance(fix, dict)
        else None,
    )


def _text(value: Mapping[str, Json], key: str) -> str:
    return text if isinstance(text := value.get(key), str) else ""


def _word(value: Mapping[str, Json], key: str, words: tuple[Word, ...], lowest: Word) -> Word:
    return next((word for word in words if word == value.get(key)), lowest)
