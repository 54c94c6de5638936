"""mitmdump processes to measure: each with its scripts and options, on a processor of its own where that can be said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

_METER = Path(__file__).resolve().parent / "meter.py"
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A mitmdump with these scripts and options."""

    name: str
    scripts: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()


@contextlib.asynccontextmanager
async def running(contender: Contender, upstream: str, folder: Path, processor: int | None) -> AsyncIterator[int]:
    """The port of a contender in front of `upstream`; it ends with the block."""
    home = folder / contender.name.replace(", ", "-")
    home.mkdir(parents=True)
    arguments = [
        *(sys.executable, "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()", "-q"),
        *(part for script in (_METER, *contender.scripts) for part in ("-s", str(script))),
        *("--listen-host", "127.0.0.1", "-p", "0", "--mode", f"reverse:{upstream}"),
        *(part for setting in (f"confdir={home}", *contender.settings) for part in ("--set", setting)),
    ]
    noted = home / "port"
    environment = {**os.environ, "WIRELINT_BENCH_PORT": str(noted)}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
    try:
        if processor is not None:
            os.sched_setaffinity(process.pid, {processor})
        yield await _port(process, noted, home / "log")
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _port(process: subprocess.Popen[bytes], noted: Path, log: Path) -> int:
    until = time.monotonic() + _PATIENCE
    while not noted.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"mitmdump did not start:\n{log.read_text('utf-8', 'replace')}")
        await asyncio.sleep(0.05)
    return int(noted.read_text())


@contextlib.contextmanager
def apart() -> Iterator[int | None]:
    """Leaves the last processor to what is measured; None where there is but one, or no way to say so."""
    if not hasattr(os, "sched_setaffinity") or len(before := os.sched_getaffinity(0)) < 2:
        yield None
        return
    os.sched_setaffinity(0, before - {max(before)})
    try:
        yield max(before)
    finally:
        os.sched_setaffinity(0, before)
