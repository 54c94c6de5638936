"""`python -m tests.bench [engine|live]`: measures and prints, for about two minutes; without a name, both."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console

from tests.bench.offline import exchange_costs, throughput
from tests.bench.online import TINY, Scale, measure
from tests.bench.report import show_costs, show_outcome, show_throughput


@click.command()
@click.argument("part", type=click.Choice(["all", "engine", "live"]), default="all")
@click.option("--seconds", default=60.0, help="How long the rounds of the live part go on, about.")
@click.option("--tiny", is_flag=True, help="As little of everything as shows that it runs; the figures mean nothing.")
def main(part: str, seconds: float, tiny: bool) -> None:
    """The engine in MB/s beside orjson, and mitmdump with wirelint beside mitmdump without."""
    console = Console()
    if part != "live":
        size, each = (5_000, 0.0) if tiny else (500_000, 0.2)
        show_throughput(console, throughput(size, each))
        show_costs(console, exchange_costs(each / 4))
    if part != "engine":
        with tempfile.TemporaryDirectory(prefix="wirelint-bench-") as folder:
            show_outcome(console, measure(Path(folder), 0.0 if tiny else seconds, TINY if tiny else Scale()))


if __name__ == "__main__":
    main()
