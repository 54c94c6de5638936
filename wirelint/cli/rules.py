"""`wirelint rules`: the catalogue."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.table import Table

from wirelint.cli.selection import fixes, rule_options, selected
from wirelint.registry import safeties, summary
from wirelint.report.writer import STYLES


@click.command()
@rule_options
@click.option("--output-format", type=click.Choice(["table", "json"]), default="table", show_default=True)
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
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("code", "name", "severity", "layer"):
        table.add_column(column, no_wrap=True)
    table.add_column("fix", width=len("unsafe"))
    table.add_column("what is wrong")
    for rule in chosen:
        shown = rule.graded or rule.severity
        severity = f"[{STYLES[shown]}]{shown}[/]"
        table.add_row(rule.code, f"[bold]{rule.name}[/]", severity, rule.layer, fixes(rule), summary(rule))
    Console(file=sys.stdout).print(table)
