"""The two processes of `wirelint run`: the private proxy, and the command, which owns the terminal.

The command runs in wirelint's process group, so it gets the terminal's signals: Ctrl-C and Ctrl-\\ end it (wirelint
ignores them), Ctrl-Z stops both, a new window size is signalled to it. Signals to wirelint alone (TERM, HUP) are passed
on. On Linux the command gets SIGTERM if wirelint is killed. The proxy has its own session, which signals of the
terminal do not reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from wirelint.registry import shipped

_START = 60.0
_STOP = 10.0
_TAIL = 8192


class StartError(RuntimeError):
    """The proxy cannot start. The message is one line: setting, reason, cure, or the last line of its log."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ports of a proxy, as an HTTP proxy and per origin; the folder of its authority; the notice of its dashboard."""

    port: int
    bases: Mapping[str, int]
    confdir: Path
    notice: str = ""


class PrivateProxy:
    """mitmproxy with the addon, on ports that the system chose, for as long as the block lasts.

    `origins` are those of base URLs, `options` are mitmproxy's (`NAME=VALUE`), `chain` is a proxy to go through and
    `login` its credentials. mitmproxy runs in the folder `cwd`; it prints to the file `log`, None: this process's standard
    error.
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
        cwd: Path | None = None,
    ) -> None:
        self._log, self._cwd = log, cwd
        mode = f"upstream:{chain}" if chain else "regular"
        given = {option.partition("=")[0] for option in options}
        quiet = [one for one in ("flow_detail=0", "showhost=false") if one.partition("=")[0] not in given]
        settings = [*quiet, *options]
        arguments = ["--mode", f"{mode}@127.0.0.1:0", "-s", str(shipped("addons") / "inspector.py")]
        arguments += [part for option in settings for part in ("--set", option)]
        # The folder of the package is last on the path, so that its neighbours hide no other modules.
        package = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path.append({package!r}); from wirelint.addon.proxy import main; main()"
        self._command = [sys.executable, "-P", "-c", code, ",".join(origins), *arguments]
        self._environment = {**(os.environ if environment is None else environment), "WIRELINT_UPSTREAM_AUTH": login}
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self.runs: list[str] = []
        """How the names of the folders of captures end."""

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process, and return at once."""
        with self._log.open("ab") if self._log is not None else contextlib.nullcontext() as log:
            # A separate session: signals of the terminal (Ctrl-C, a new size) must not reach the proxy.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                cwd=self._cwd,
                start_new_session=os.name == "posix",
            )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def start(self) -> Place:
        """Start the process unless it was launched; return when it listens. Raises StartError."""
        if self._process is None:
            self.launch()
        made = json.loads(self._line(_START) or "{}")
        if "port" not in made:
            self.stop(0)
            raise StartError(str(made.get("failed") or f"mitmproxy did not start: {self.last_log_line()}"))
        self.runs = made["runs"]
        return Place(made["port"], made["bases"], Path(made["confdir"]), made["notice"])

    def stop(self, drain: float, *, totals: bool = False) -> str:
        """End the process; open exchanges may take `drain` seconds to end. `totals`: a table of counts ends its log.

        Return why files of the settings that changed meanwhile are not in force; empty if they are."""
        process = self._process
        if process is None:
            return ""
        self._say({"stop": drain, "totals": totals})
        try:
            process.wait(drain + _STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for last in (json.loads(line) for line in iter(lambda: self._line(_STOP), "")):
            if "complaint" in last:
                self.runs = last["runs"]
                return str(last["complaint"])
        return ""

    def pending(self) -> int:
        """Return the number of exchanges in progress or not yet written; 0 if the process has ended."""
        if not self.alive:
            return 0
        self._say({"pending": True})
        line = self._line(_STOP)
        # A process that ends may write the reason instead: `{"failed": …}`.
        return int(json.loads(line).get("pending", 0)) if line else 1

    def __enter__(self) -> PrivateProxy:
        return self

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self.stop(0)

    def _say(self, value: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, and its pipe is closed
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Queue the lines of the process, and "" at their end; close the pipes."""
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as out:
            for line in out:
                self._lines.put(line)
        self._lines.put("")
        with contextlib.suppress(OSError):
            process.stdin.close()

    def _line(self, timeout: float) -> str:
        """Return the next line of the process; "" if the process has ended, or after `timeout` seconds."""
        line = ""
        with contextlib.suppress(queue.Empty):
            line = self._lines.get(timeout=timeout)
            if not line:
                self._lines.put("")  # the end stays the end
        return line

    def last_log_line(self) -> str:
        """Return the last line of the log, without times and colours."""
        if self._log is None:
            return "see the reason above"
        text = self._log.read_bytes()[-_TAIL:].decode(errors="replace")
        lines = [re.sub(r"^\[[\d:.]+\] ?", "", re.sub(r"\x1b\[[\d;]*m", "", line)) for line in text.splitlines()]
        useful = [line for line in lines if line.strip() and not line.startswith("Error logged during")]
        return useful[-1] if useful else "no output"


_SETTLE = 0.02
"""Seconds after which a command that was stopped and continued together with wirelint runs again."""
_GRACE = 10.0
"""Seconds that the command has to end after a signal to wirelint."""
_PR_SET_PDEATHSIG = 1

_IGNORED = ("SIGINT", "SIGQUIT")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class CommandError(RuntimeError):
    """A command that cannot be started. `status` is the exit status that a shell would return."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def require_command(name: str) -> None:
    """Raise CommandError if a command without a folder in its name is not on the PATH."""
    if not os.path.dirname(name) and shutil.which(name) is None:
        raise _missing(name)


def _missing(name: str) -> CommandError:
    return CommandError(f"{name}: no such command; is it on the PATH?", 127)


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command; return its exit status, or 128 plus the number of the signal that ended it. Raises CommandError."""
    process: subprocess.Popen[bytes] | None = None

    def send(number: int) -> None:
        # Not `send_signal`: it would reap the process, which `_wait` does.
        if process is not None and process.returncode is None:
            os.kill(process.pid, number)

    def pass_on(number: int, frame: FrameType | None) -> None:
        send(number)
        if number in _ENDING:
            limit = threading.Timer(_GRACE, lambda: send(signal.SIGKILL))
            limit.daemon = True
            limit.start()

    with _handling(pass_on), _terminal() as restore:
        try:
            process = subprocess.Popen(command, env=dict(environment), preexec_fn=_end_with_us())
        except FileNotFoundError as error:
            raise _missing(command[0]) from error
        except OSError as error:
            raise CommandError(f"{command[0]}: {error.strerror or error}", 126) from error
        status = _wait(process)
        restore(status)
    return status if status >= 0 else 128 - status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of the command; stop and continue together with it."""
    if os.name != "posix":
        return process.wait()
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            time.sleep(_SETTLE)
            pid, status = os.waitpid(process.pid, os.WNOHANG | os.WCONTINUED)
            if not pid:  # stop this process, so that the shell sees its job stopped; then continue the command
                if os.isatty(0):
                    os.kill(os.getpid(), signal.SIGSTOP)
                os.kill(process.pid, signal.SIGCONT)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


@contextlib.contextmanager
def _handling(pass_on: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    # Functions, not SIG_IGN: the command would inherit an ignored signal.
    handlers = [(name, lambda number, frame: None) for name in _IGNORED] + [(name, pass_on) for name in _PASSED_ON]
    before = {
        number: signal.signal(number, handler)
        for name, handler in handlers
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _terminal() -> Iterator[Callable[[int], None]]:
    """Yield a function that restores the terminal after a command that died without doing so."""
    if os.name != "posix" or not os.isatty(0):
        yield lambda status: None
        return
    import termios

    before = termios.tcgetattr(0)

    def restore(status: int) -> None:
        hidden = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with contextlib.suppress(OSError, termios.error):
                if os.tcgetpgrp(0) != os.getpgrp():
                    os.tcsetpgrp(0, os.getpgrp())
                if status < 0:
                    termios.tcsetattr(0, termios.TCSADRAIN, before)
        finally:
            signal.signal(signal.SIGTTOU, hidden)

    yield restore


def _end_with_us() -> Callable[[], None] | None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            prctl = ctypes.CDLL(None).prctl
            return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return None
