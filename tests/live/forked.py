"""Processes of mitmproxy's tools that share one import.

Importing mitmproxy and wirelint and compiling their patterns takes three seconds of CPU, and the tests start a hundred
proxies. So one process does it (`tests.live.warmed`), and each start is a fork of it: from there on it is the tool itself,
with its own arguments, environment, folder and output. Starts that import something else get a new interpreter.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

WITHOUT = "TEST_WITHOUT"
"""The environment variable with the modules that cannot be imported in a forked process."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.live.warmed"])


def _run(tool: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, output: Path) -> None:
    """Be the tool, in the process that was forked."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with output.open("ab") as out, open(os.devnull, "rb") as nothing:
        for number, file in enumerate((nothing, out, out)):
            os.dup2(file.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in environment.get(WITHOUT, "").split():
        sys.modules[name] = None  # type: ignore[assignment]
    sys.argv = [tool, *arguments]
    module, name = ("wirelint.cli", "main") if tool == "wirelint" else ("mitmproxy.tools.main", tool)
    getattr(importlib.import_module(module), name)()


class Forked:
    """A started tool of mitmproxy, or `wirelint`, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, tool: str, arguments: Sequence[str], folder: Path, output: Path) -> None:
        self._process = _CONTEXT.Process(
            target=_run, args=(tool, list(arguments), dict(os.environ), folder, output), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked tool", timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
