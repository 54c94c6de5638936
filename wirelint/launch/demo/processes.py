"""The two processes of the demonstration, and the captures as they grow. Only what was started here is ended."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wirelint.registry import shipped

_START = 30.0
_STOP = 10.0
_POLL = 0.02


class StartError(RuntimeError):
    """A process did not come up. The text says which, and where its output is."""


@contextmanager
def mock_server(log: Path) -> Iterator[str]:
    """`wirelint mock` on a free port; gives its URL."""
    command = [sys.executable, "-m", "wirelint", "mock", "--port", "0", "--seed", "7"]
    with _process(command, log) as process:
        found = _wait(lambda: re.search(r"http://[\d.]+:\d+", log.read_text(encoding="utf-8")), process)
        if found is None:
            raise StartError(f"the mock server did not start; see {log}")
        yield found.group()


@contextmanager
def proxy(upstream: str, captures: Path, confdir: Path, log: Path, *options: str) -> Iterator[str]:
    """A real mitmdump with the addon in front of `upstream`; gives its URL. `options` as in `wirelint_fix=unsafe`."""
    port = _free_port()
    command = [
        *(sys.executable, "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()"),
        *("-s", str(shipped("addons") / "inspector.py")),
        *("--mode", f"reverse:{upstream}", "--listen-host", "127.0.0.1", "--listen-port", str(port)),
        *("--set", f"confdir={confdir}", "--set", f"wirelint_captures={captures}"),
        *(part for option in options for part in ("--set", option)),
    ]
    with _process(command, log) as process:
        if not _wait(lambda: _accepts(port), process):
            raise StartError(f"mitmdump did not start; see {log}")
        yield f"http://127.0.0.1:{port}"


class Captures:
    """The lines of `exchanges.jsonl` below a folder, as they are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = set(folder.glob("*/exchanges.jsonl")) if folder.is_dir() else set()
        self._read: dict[Path, int] = {}

    @property
    def files(self) -> list[Path]:
        """The files that this run has written."""
        found = set(self._folder.glob("*/exchanges.jsonl")) if self._folder.is_dir() else set()
        return sorted(found - self._before)

    def wait(self, count: int) -> list[dict[str, Any]]:
        """The next `count` exchanges, fewer when they do not come in time."""
        lines: list[dict[str, Any]] = []
        end = time.monotonic() + _START
        while len(lines) < count and time.monotonic() < end:
            lines += self._new()
            if len(lines) < count:
                time.sleep(_POLL)
        return lines

    def _new(self) -> Iterator[dict[str, Any]]:
        for path in self.files:
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written: what came of it next would begin in its middle
                    self._read[path] = self._read.get(path, 0) + len(line)
                    yield json.loads(line)


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(ready: Any, process: subprocess.Popen[bytes]) -> Any:
    end = time.monotonic() + _START
    while time.monotonic() < end and process.poll() is None:
        if found := ready():
            return found
        time.sleep(_POLL)
    return None


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
