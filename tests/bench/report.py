"""The tables that the benchmark prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
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
    load = " to ".join(f"{load:.1f}" for load in outcome.load)
    title = (
        "In a real mitmdump, beside one whose addon passes chunks on (JSON, idle: has none)\n"
        f"Medians of {outcome.rounds} rounds; load of the machine {load}, of it about 1 by this bench"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("scenario", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    for name in ("beside", "wirelint", "ratio", "goal"):
        table.add_column(name, justify="right")
    scenario = ""
    for metric in METRICS:
        if scenario and metric.scenario != scenario:
            table.add_section()
        name, scenario = metric.scenario if metric.scenario != scenario else "", metric.scenario
        figures = (outcome.median(contender, metric) for contender in (metric.against, "wirelint"))
        compared = f"{outcome.compared('wirelint', metric):{'+.1f' if metric.added else '.2f'}}"
        table.add_row(
            name, metric.name, *(f"{figure:,.{figure < 100:d}f}" for figure in figures), compared, metric.goal
        )
    console.print(table)
