"""The command of `wirelint run`, as a child process that owns the terminal.

It runs in our process group, so the terminal's keys reach it: Ctrl-C and Ctrl-\\ end it (we ignore them), Ctrl-Z stops
both, a new window size is signalled to it. Signals to us alone (TERM, HUP) are passed on. On Linux the command gets
SIGTERM if we are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

_SETTLE = 0.02
"""Seconds after which a command that was stopped and continued together with us runs again."""
_GRACE = 10.0
"""Seconds that the command has to end after a signal to us."""
_PR_SET_PDEATHSIG = 1

_IGNORED = ("SIGINT", "SIGQUIT")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class CommandError(RuntimeError):
    """A command that cannot be started. `status` is the exit status that a shell would return."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
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
            raise CommandError(f"{command[0]}: no such command; is it on the PATH?", 127) from error
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
            if not pid:
                _stop_too(process.pid)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def _stop_too(pid: int) -> None:
    """Stop this process, so that the shell sees its job stopped; after that, continue the command."""
    if os.isatty(0):
        os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


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
    if not sys.platform.startswith("linux"):
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
