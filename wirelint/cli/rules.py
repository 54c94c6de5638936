"""`wirelint rules`: the catalogue."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import orjson
from rich.text import Text

from wirelint.cli.guidance import guided
from wirelint.cli.selection import fixes, rule_options, selected
from wirelint.registry import safeties, summary
from wirelint.rule import Rule
from wirelint.view.findings import STYLES
from wirelint.view.screen import Screen, hung

_TITLES = ("code", "name", "severity", "layer", "fix")
_WIDEST = 60
"""Columns that the summary of a rule wants."""


@guided(
    examples=(
        ("all of them", "wirelint rules"),
        ("those about identifiers", "wirelint rules --select ID"),
        ("for a program", "wirelint rules --output-format json"),
    ),
    exits={0: "printed", 2: "no such rule"},
)
@rule_options
@click.option(
    "--output-format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print them.",
)
def rules(select: tuple[str, ...], ignore: tuple[str, ...], folders: tuple[Path, ...], output_format: str) -> None:
    """List the rules, with what each says is wrong."""
    chosen = selected(select, ignore, folders)
    if output_format == "json":
        rows = [
            {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.graded or rule.severity,
                "layer": rule.layer,
                "fixes": list(safeties(rule)),
                "summary": summary(rule),
            }
            for rule in chosen
        ]
        click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    console = Screen(sys.stdout)
    for line in _lines(chosen, console.width):
        console.print(line, soft_wrap=True)


def _lines(rules: Sequence[Rule], width: int) -> Iterator[Text]:
    """A line a rule; where there is no room for it, what is wrong stands beneath."""
    rows = [(rule.code, rule.name, rule.graded or rule.severity, rule.layer, fixes(rule)) for rule in rules]
    widths = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    room = sum(widths) + 2 * len(widths)
    titles = "".join(f"{title:<{size}}  " for title, size in zip(_TITLES, widths, strict=True))
    yield Text(f"{titles}what is wrong" if width >= room + _WIDEST else titles.rstrip(), "dim")
    for rule, row in zip(rules, rows, strict=True):
        line = Text()
        for number, (cell, size) in enumerate(zip(row, widths, strict=True)):
            style = "bold" if number == 1 else STYLES[rule.graded or rule.severity] if number == 2 else ""
            line.append(f"{cell:<{size}}", style).append("  ")
        if width >= room + _WIDEST:
            yield from hung(line.append(summary(rule)), width, 0, room)
        else:
            line.rstrip()
            yield line
            yield from hung(Text(summary(rule), "dim"), width, widths[0] + 2)
