"""`python -m tests.fuzz`: damages bodies in every way, and holds what is read, found and repaired to the contracts."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import click

from tests.fuzz.runner import Outcome, run, write

_ADVERSARIAL = "tests.fuzz.adversarial"
"""Shapes that a model stuck in a loop sends, with the CPU time that they cost."""


@click.command()
@click.option("--seed", type=int, help="Which bodies to make; a random one if it is not given.")
@click.option("--bodies", type=click.IntRange(1), default=10_000, show_default=True, help="Bodies to try at the most.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="Number of the first body.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=math.inf, help="Stop after this time.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(".fuzz"), help="Folder for examples.")
@click.option(
    "--shapes", default=60.0, show_default=True, help="Seconds for adversarial shapes after the bodies; 0: none."
)
def main(seed: int | None, bodies: int, first: int, seconds: float, jobs: int, out: Path, shapes: float) -> None:
    """Exit status 1 when a contract is broken; an example of each is written to a folder."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}, at most {bodies:,} bodies from {first} on, on {jobs} processes", flush=True)
    began = told = time.monotonic()

    def progress(outcome: Outcome) -> None:
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{outcome.bodies:,} bodies, {len(outcome.found)} violations, {told - began:.0f} s", flush=True)

    outcome = run(seed, range(first, first + bodies), seconds, jobs, progress)
    _show(outcome, time.monotonic() - began)
    written: Counter[str] = Counter()
    for found in outcome.found:
        written[found.contract] += 1
        if written[found.contract] <= 20:
            print(f"{found.contract}: body {found.number} ({found.done}): {found.seen[:300]}")
            print(f"  {write(found, seed, out)}")
    status = 1 if outcome.found else 0
    if shapes:
        command = (sys.executable, "-m", _ADVERSARIAL, "--seconds", str(shapes), "--seed", str(seed))
        status = subprocess.run(command, check=False).returncode or status
    sys.exit(status)


def _show(outcome: Outcome, seconds: float) -> None:
    rate = outcome.bodies / seconds if seconds else 0.0
    rows = [
        ("bodies", f"{outcome.bodies:,}"),
        ("bytes of replies", f"{outcome.sizes:,}"),
        ("seconds", f"{seconds:.0f} ({rate:.0f} bodies/s)"),
        ("processor time", f"{outcome.cpu:.0f} s, {1000 * outcome.cpu / max(outcome.bodies, 1):.1f} ms/body"),
        ("slowest body", f"{1000 * outcome.slowest:.0f} ms"),
        *((f"  {kind}", f"{count:,}") for kind, count in sorted(outcome.kinds.items())),
        ("violations", f"{len(outcome.found):,}"),
        *((f"  {name}", f"{count:,}") for name, count in Counter(one.contract for one in outcome.found).most_common()),
    ]
    for name, value in rows:
        print(f"{name:42} {value}")


if __name__ == "__main__":
    main()
