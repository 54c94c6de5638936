"""The private proxy as a child process: start, ports, end."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wirelint.registry import shipped

_START = 60.0
_STOP = 10.0
_TAIL = 8192


class StartError(RuntimeError):
    """The proxy did not start. The message is a line of its log."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ports of a proxy: one as an HTTP proxy, one per origin; and the folder of its authority."""

    port: int
    bases: Mapping[str, int]
    confdir: Path


def _is_set(name: str, options: Sequence[str]) -> bool:
    return any(option.partition("=")[0] == name for option in options)


class PrivateProxy:
    """mitmproxy with the addon, on ports that the system chose, for as long as the block lasts.

    `origins` are those of base URLs, `options` are mitmproxy's (`NAME=VALUE`), `chain` is a proxy to go through and
    `login` its credentials. mitmproxy prints to the file `log`; None: this process's standard error.
    """

    def __init__(
        self,
        origins: Sequence[str],
        options: Sequence[str],
        log: Path | None,
        *,
        chain: str = "",
        login: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        mode = f"upstream:{chain}" if chain else "regular"
        quiet = [one for one in ("flow_detail=0", "showhost=false") if not _is_set(one.partition("=")[0], options)]
        settings = [*quiet, *options]
        arguments = ["--mode", f"{mode}@127.0.0.1:0", "-s", str(shipped("addons") / "inspector.py")]
        arguments += [part for option in settings for part in ("--set", option)]
        # The folder of the package is last on the path, so that its neighbours hide no other modules.
        package = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path.append({package!r}); from wirelint.addon.private_proxy import main; main()"
        self._command = [sys.executable, "-P", "-c", code, ",".join(origins), *arguments]
        self._environment = {**(os.environ if environment is None else environment), "WIRELINT_UPSTREAM_AUTH": login}
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Place:
        """Start the process; return when it listens. Raises StartError."""
        log = self._log.open("ab") if self._log is not None else None
        try:
            # A session of its own: signals of the terminal (Ctrl-C, a new size) must not reach the proxy.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                start_new_session=os.name == "posix",
            )
        finally:
            if log is not None:
                log.close()
        report = self._first_line()
        if not report:
            self.stop(0)
            raise StartError(f"mitmproxy did not start: {self.last_log_line()}")
        made = json.loads(report)
        if "failed" in made:
            self.stop(0)
            raise StartError(str(made["failed"]))
        return Place(made["port"], made["bases"], Path(made["confdir"]))

    def stop(self, drain: float) -> None:
        """End the process; open exchanges may take `drain` seconds to end."""
        process = self._process
        if process is None:
            return
        try:
            process.communicate(json.dumps({"stop": drain}) + "\n", timeout=drain + _STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def __enter__(self) -> PrivateProxy:
        return self

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self.stop(0)

    def _first_line(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda out=process.stdout: lines.put(out.readline()), daemon=True).start()
        try:
            return lines.get(timeout=_START)
        except queue.Empty:
            return ""

    def last_log_line(self) -> str:
        """Return the last line of the log, without times and colours."""
        if self._log is None:
            return "see the reason above"
        text = self._log.read_bytes()[-_TAIL:].decode(errors="replace")
        lines = [re.sub(r"^\[[\d:.]+\] ?", "", re.sub(r"\x1b\[[\d;]*m", "", line)) for line in text.splitlines()]
        useful = [line for line in lines if line.strip() and not line.startswith("Error logged during")]
        return useful[-1] if useful else "no output"
