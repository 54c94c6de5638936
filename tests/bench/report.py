"""The tables that the benchmark prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.offline import Cost, Throughput
from tests.bench.online import METRICS, Outcome

_SHOWN = 14


def show_throughput(console: Console, results: Sequence[Throughput]) -> None:
    ways = list(results[0].ways)
    title = "The engine, MB/s (in brackets: of what orjson and a split reach)"
    table = Table(title=title, title_justify="left")
    table.add_column("body")
    for way in ways:
        table.add_column(way, justify="right")
    for result in results:
        base = result.ways[ways[0]]
        figures = [f"{speed:,.0f} ({speed / base:.2g})" for speed in result.ways.values()]
        table.add_row(f"{result.what}, {result.size / 1000:,.0f} KB", f"{base:,.0f}", *figures[1:])
    console.print(table)


def show_costs(console: Console, costs: Sequence[Cost]) -> None:
    table = Table(title="One exchange, 8 KB asked, 4 KB answered, warm", title_justify="left")
    table.add_column("step")
    table.add_column("µs", justify="right")
    for cost in costs[:_SHOWN]:
        table.add_row(cost.step, f"{cost.microseconds:,.0f}")
    rest = costs[_SHOWN:]
    if rest:
        table.add_row(f"{len(rest)} more rules", f"{sum(cost.microseconds for cost in rest):,.0f}")
    console.print(table)


def show_outcome(console: Console, outcome: Outcome) -> None:
    title = f"In a real mitmdump: medians, and ratios within each of {outcome.rounds} rounds"
    table = Table(title=title, title_justify="left")
    table.add_column("scenario")
    table.add_column("metric")
    for name in outcome.figures:
        table.add_column(name, justify="right")
    for metric in METRICS:
        cells = []
        for name in outcome.figures:
            figure = f"{outcome.median(name, metric):,.{metric.digits}f}"
            cells.append(figure if name == metric.against else f"{figure} ({outcome.ratio(name, metric):.2f})")
        table.add_row(metric.scenario, metric.name, *cells)
    grown = [f"{outcome.growth[name]:,.1f}" for name in outcome.figures]
    table.add_row("a long stream", "memory against a tenth of it, MB", *grown)
    console.print(table)
