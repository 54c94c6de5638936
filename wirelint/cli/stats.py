"""`wirelint stats`: the scorecard of the models in captures."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.cli.selection import rule_options, selected, tell, tell_failure
from wirelint.report.scorecard import card_document, picture, score_tables, write_markdown, write_tables
from wirelint.scores import Cards, sight

FORMATS = ("table", "markdown", "json", "svg")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@rule_options
@click.option(
    "--side",
    type=click.Choice(["upstream", "client"]),
    default="upstream",
    show_default=True,
    help="Score what the upstream sent, or what clients got after repairs.",
)
@click.option("--output-format", type=click.Choice(FORMATS), default="table", show_default=True)
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

    \b
    Examples:
      wirelint stats captures/
      wirelint stats captures/ --side client          # what the repairs made of it
      wirelint stats run.jsonl --output-format markdown

    Exit status: 0, or 2 if something could not be read.
    """
    rules = selected(select, ignore, folders)
    cards, problems = Cards(), 0
    for item in judge(read(paths), rules, tell_failure):
        if isinstance(item, Problem):
            problems += 1
            tell(f"wirelint: {item}")
        else:
            cards.add(sight(item, delivered=side == "client"))
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
