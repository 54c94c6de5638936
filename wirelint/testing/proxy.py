"""A real mitmdump with the addon in front of an upstream, for tests: started, asked what it found, ended by its pid.

Theory of operation. The process listens at a port of its own choice and says so in its output. A test reads what the
proxy has written down. A client has its reply before that, so the proxy is asked until nothing is on its way to the disk
(`addon.status`). Every wait is bounded.
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
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from wirelint.model import Json
from wirelint.registry import shipped
from wirelint.rule import Finding
from wirelint.testing.findings import read_finding

_START = 60.0
_STOP = 10.0
_WAIT = 10.0
_QUIET = 2.0
_POLL = 0.02
_PATH = "/.wirelint/pending"
_LISTENS = re.compile(r"listening at \S*?:(\d+)\b")
_SAID = 600

T = TypeVar("T")


class ProxyError(RuntimeError):
    """The proxy did not start. The text says why, in its own words."""


class Process:
    """A mitmdump. `options` by name, with or without `wirelint_` before it: `fix="safe"`."""

    def __init__(self, upstream: str, options: Mapping[str, str], folder: Path, confdir: Path, cwd: Path) -> None:
        self.upstream, self.captures = upstream, folder / "captures"
        self._output = folder / "output.txt"
        self.port = 0
        folder.mkdir(parents=True, exist_ok=True)
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                self._command(options, confdir),
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        try:
            self._wait_for_port()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """Where clients find the upstream, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """All that the proxy has said."""
        return self._output.read_text("utf-8", "replace")

    def settle(self, timeout: float = _WAIT) -> bool:
        """Waits until all that has passed is judged and written down. False: something is still under way."""
        return bool(_until(lambda: self._pending() == 0, timeout))

    def lines(self) -> list[dict[str, Json]]:
        """The exchanges that have been written down, in the order in which they ended."""
        found: list[dict[str, Json]] = []
        for path in sorted(self.captures.glob("*/exchanges.jsonl")):
            with path.open("rb") as file:
                found += [json.loads(line) for line in file if line.endswith(b"\n")]
        return found

    def stop(self) -> None:
        if self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP)
        if self.alive:
            self._process.kill()
            self._process.wait()

    def _command(self, options: Mapping[str, str], confdir: Path) -> list[str]:
        settings = {
            "confdir": str(confdir),
            "flow_detail": "0",
            "wirelint_captures": str(self.captures),
            **{name if name.startswith("wirelint_") else f"wirelint_{name}": text for name, text in options.items()},
        }
        status = find_spec("wirelint.addon.status")
        scripts = (str(shipped("addons") / "inspector.py"), str(status.origin if status is not None else ""))
        return [
            # -P: the modules of the folder that the tests run in are no business of the proxy.
            *(sys.executable, "-P", "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()"),
            *("--mode", f"reverse:{self.upstream}", "--listen-host", "127.0.0.1", "--listen-port", "0"),
            *(part for script in scripts for part in ("-s", script)),
            *(part for name, text in settings.items() for part in ("--set", f"{name}={text}")),
        ]

    def _wait_for_port(self) -> None:
        found = _until(lambda: _LISTENS.search(self.log) or not self.alive, _START)
        if isinstance(found, re.Match):
            self.port = int(found[1])
            # It listens for a moment even when it has found fault with its options.
            if _until(lambda: self._pending() is not None or not self.alive, _START) and self.alive:
                return
        said = " ".join(line for line in self.log.splitlines() if line.strip())[-_SAID:]
        raise ProxyError(f"the proxy in front of {self.upstream} did not start: {said or 'it said nothing'}")

    def _pending(self) -> int | None:
        """What is not on disk yet; None when the proxy does not answer, and 0 when it has ended."""
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
    """A running proxy, as one test sees it: what passed before it is not its own."""

    def __init__(self, process: Process) -> None:
        self._process = process
        process.settle(_QUIET)
        self._before = len(process.lines())
        self._began = time.time()

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
        """The test's exchanges as records, as lines of exchanges.jsonl, in the order in which they ended."""
        return self.wait()

    @property
    def findings(self) -> list[Finding]:
        """What the rules found in them, as it was said live."""
        return list(_findings(self.exchanges))

    def wait(self, timeout: float = _WAIT) -> list[dict[str, Json]]:
        """The exchanges, once nothing is under way any more, or when the time is over: all that there are by then."""
        self._process.settle(timeout)
        return [line for line in self._process.lines()[self._before :] if _started(line) >= self._began]

    def stop(self) -> None:
        """Ends the process, which cuts what is still under way."""
        self._process.stop()


def _started(line: Mapping[str, Json]) -> float:
    timing = line.get("timing")
    started = timing.get("started") if isinstance(timing, dict) else None
    return float(started) if isinstance(started, (int, float)) else float("inf")


def _findings(lines: list[dict[str, Json]]) -> Iterator[Finding]:
    for line in lines:
        found = line.get("findings")
        yield from (read_finding(one) for one in (found if isinstance(found, list) else []) if isinstance(one, dict))


def _until(ready: Callable[[], T], timeout: float) -> T | None:
    """What `ready` gives as soon as that is something, None when the time is over."""
    end = time.monotonic() + timeout
    while True:
        if found := ready():
            return found
        if time.monotonic() > end:
            return None
        time.sleep(_POLL)
