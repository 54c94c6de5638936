"""The command itself, with the terminal in its hands.

It runs in our process group, so the terminal's keys reach it as they always do: Ctrl-C and Ctrl-\\ are its business (we
outlive them), Ctrl-Z stops it and us together, a new window size is told to it. What is sent to us alone (TERM, HUP) is
passed on. Where the system can do that (Linux), the command is told to end when we are killed.
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
"""Seconds in which a command that was stopped and continued together with us is seen to go on."""
_GRACE = 10.0
"""Seconds that the command has to end after it was asked to by a signal to us."""
_PR_SET_PDEATHSIG = 1

_IGNORED = ("SIGINT", "SIGQUIT")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class CommandError(RuntimeError):
    """A command that cannot be started. `status` is what a shell would return."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs it to its end; its exit status, 128 and the number of the signal that ended it. Raises CommandError."""
    process: subprocess.Popen[bytes] | None = None

    def tell(number: int) -> None:
        # Not `send_signal`: it would look for the end of the process, which is for `_wait` to see.
        if process is not None and process.returncode is None:
            os.kill(process.pid, number)

    def pass_on(number: int, frame: FrameType | None) -> None:
        tell(number)
        if number in _ENDING:
            limit = threading.Timer(_GRACE, lambda: tell(signal.SIGKILL))
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
    """Waits, and stops with the command when it is stopped."""
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
    """The shell learns from our stop that its job stands still; continued, we continue the command."""
    if os.isatty(0):
        os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def _handling(pass_on: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    # Functions, not SIG_IGN: what is ignored stays ignored in the command.
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
    """Gives what puts the terminal right after a command that died before it could."""
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
