"""`wirelint stats`: the scorecard of the models in captures."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from wirelint.capture.readers import Problem
from wirelint.cli import completing
from wirelint.cli.guidance import guided
from wirelint.cli.progress import Bar
from wirelint.cli.selection import rule_options, selected, tell
from wirelint.view.scorecard import card_document, picture, score_tables, write_markdown, write_tables
from wirelint.view.scores import Cards, observe

FORMATS = ("table", "markdown", "json", "svg")


@guided(
    examples=(
        ("how well each model calls its tools", "wirelint stats captures/samples"),
        ("what the repairs made of it", "wirelint stats captures/samples --side client"),
        ("for a README or an issue", "wirelint stats captures/samples --output-format markdown"),
    ),
    exits={0: "printed", 2: "something could not be read"},
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completing.paths)
@rule_options
@click.option(
    "--side",
    type=click.Choice(["upstream", "client"]),
    default="upstream",
    show_default=True,
    help="Score what the upstream sent, or what clients got after repairs.",
)
@click.option(
    "--output-format", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print it."
)
def stats(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    side: str,
    output_format: str,
) -> int:
    """Score the models in captures, by provider: calls, schema errors, times, findings.

    A reply that ends in calls is good when every call names a declared tool and its arguments fit the tool's schema;
    accuracy is the share of the good ones. Reads what `wirelint check` reads.
    """
    rules = selected(select, ignore, folders)
    cards, problems = Cards(), 0
    with Bar(paths, "scoring") as bar:
        for item in bar.judged(rules):
            if isinstance(item, Problem):
                problems += 1
                bar.tell(f"wirelint: {item}")
            else:
                cards.add(observe(item, delivered=side == "client"))
    found = cards.ordered()
    match output_format:
        case "json":
            click.echo(orjson.dumps([card_document(card) for card in found], option=orjson.OPT_INDENT_2).decode())
        case "svg":
            click.echo(picture(found))
        case "markdown":
            write_markdown(score_tables(found), sys.stdout)
        case _ if found:
            write_tables(score_tables(found), sys.stdout)
    if cards.left_out:
        noun = "exchange" if cards.left_out == 1 else "exchanges"
        tell(f"{cards.left_out} {noun} with no model's API that is known, or with a server of tools, left out")
    if not found:
        tell("no exchange with a model")
    return 2 if problems else 0
