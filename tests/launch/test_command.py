"""The command and its terminal, without a proxy: what it returns, what reaches it, what stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.build import some
from wirelint.cli.run import closing
from wirelint.launch.processes import CommandError, run_command

ROOT = Path(__file__).resolve().parents[2]
BOUND = 30.0
RUN = (
    "import os, sys; from wirelint.launch.processes import run_command; sys.exit(run_command(sys.argv[1:], os.environ))"
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", RUN, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


SCRIPTS = [
    ("exit", "import sys; print(sys.stdin.read()); print('own', file=sys.stderr); sys.exit(3)", 3, "typed\n"),
    ("killed", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + 9, ""),
]


@pytest.mark.parametrize(("script", "status", "out"), [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS])
def test_the_command_is_itself(script: str, status: int, out: str) -> None:
    asked = command(sys.executable, "-c", script)
    done = subprocess.run(asked, capture_output=True, text=True, timeout=BOUND, env=environment(), input="typed")
    assert (done.returncode, done.stdout, done.stderr) == (status, out, "own\n" if status == 3 else "")


@pytest.mark.parametrize(("program", "status"), [("no-such-command-anywhere", 127), ("/", 126)])
def test_what_cannot_start(program: str, status: int) -> None:
    with pytest.raises(CommandError, match=program) as error:
        run_command([program], {})
    assert error.value.status == status


TERMINAL = """
import os, signal, sys, time
signal.signal(signal.SIGWINCH, lambda *_: print("size", os.get_terminal_size().columns, flush=True))
try:
    print("ready", os.isatty(0), os.isatty(1), flush=True)
    for _ in range(800):
        time.sleep(0.05)  # short ones: a signal that comes just before a sleep is not seen until it ends
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(5)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no pseudo-terminals")
def test_the_terminal_is_the_commands() -> None:
    import fcntl
    import pty
    import struct
    import termios

    asked = command(sys.executable, "-c", TERMINAL)
    pid, terminal = pty.fork()
    if not pid:
        # Where the tests run in the background it is ignored, and stays so.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(asked[0], asked, environment())
    # A key that makes a signal is echoed between what the command writes, and has that thrown away, at its own time.
    modes = termios.tcgetattr(terminal)
    modes[3] = modes[3] & ~termios.ECHO | termios.NOFLSH
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    seen = b""

    def until(word: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + BOUND
        while word not in seen:
            assert time.monotonic() < end, seen
            seen += os.read(terminal, 4096)

    try:
        until(b"ready True True")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 93, 0, 0))
        until(b"size 93")
        os.write(terminal, b"\x1a")  # Ctrl-Z: nobody does job control here, so the command goes on
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 94, 0, 0))
        until(b"size 94")
        os.write(terminal, b"\x03")
        until(b"interrupted")
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_what_we_are_told_reaches_the_command() -> None:
    script = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(4)); "
        "print('ready', flush=True); time.sleep(40)"
    )
    asked = command(sys.executable, "-c", script)
    process = subprocess.Popen(asked, env=environment(), stdout=subprocess.PIPE, text=True)
    with process:
        assert some(process.stdout).readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 4


def test_a_run_without_an_exchange_says_what_to_try() -> None:
    """Clients send nothing for this machine through a proxy, and `doctor` finds nothing wrong with that."""
    seen, cure = "wirelint: no exchange with a model was seen", "next: wirelint doctor -- python"
    hint = "if the server is on this machine: wirelint run --loopback -- python"
    assert [*closing([], "captures", ["python", "agent.py"], True)] == [seen, f"{hint} …", cure]
    assert [*closing([], "captures", ["python"], True)] == [seen, hint, cure]
    assert [*closing([], "captures", ["python"], False)] == [seen, cure]
