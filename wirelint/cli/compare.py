"""`wirelint compare`: one run against another that answered the same requests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import orjson

from wirelint.capture.offline import Checked
from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.cli.guidance import guided
from wirelint.cli.selection import rule_options, selected, tell, tell_failure
from wirelint.rule import Rule
from wirelint.view.scorecard import comparison_document, comparison_tables, picture, write_markdown, write_tables
from wirelint.view.scores import compare as compare_runs


@guided(
    examples=(
        (
            "a run against another of the same requests",
            "wirelint compare captures/samples captures/samples/faults.jsonl",
        ),
        (
            "for a README or an issue",
            "wirelint compare captures/samples captures/samples --output-format markdown",
        ),
    ),
    exits={0: "printed", 2: "something could not be read, or no request occurs in both"},
)
@click.argument("reference", metavar="REF")
@click.argument("candidates", nargs=-1, required=True, metavar="CANDIDATE...")
@rule_options
@click.option(
    "--side",
    type=click.Choice(["upstream", "client"]),
    default="upstream",
    show_default=True,
    help="Compare what the upstreams sent, or what clients got after repairs.",
)
@click.option(
    "--output-format",
    type=click.Choice(["table", "markdown", "json", "svg"]),
    default="table",
    show_default=True,
    help="How to print it.",
)
def compare(
    reference: str,
    candidates: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    side: str,
    output_format: str,
) -> int:
    """Hold models against a reference run of the same requests.

    A request is found again by its messages and tools. Where the reference ends in calls, the candidate should: precision,
    recall and F1 say how well it does. "alike" is the share of requests that end alike: in calls of the same tools, or in
    the same other way. The scorecards below are of these requests alone.
    """
    rules = selected(select, ignore, folders)
    problems: list[Problem] = []
    found, unanswered = compare_runs(
        _judged((reference,), rules, problems), _judged(candidates, rules, problems), delivered=side == "client"
    )
    if not any(made.pairs for made in found):
        raise click.ClickException(
            f"no request of {reference} occurs in {', '.join(candidates)}: replay the same requests, with their tools"
        )
    compared = [made for made in found if made.pairs]
    match output_format:
        case "json":
            rows = [comparison_document(made) for made in found]
            click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        case "svg":
            click.echo(picture([card for made in compared for card in (made.card, made.reference)]))
        case "markdown":
            write_markdown(comparison_tables(compared), sys.stdout)
        case _:
            write_tables(comparison_tables(compared), sys.stdout)
    for made in found:
        if made.unmatched:
            tell(f"{made.model} at {made.provider}: {_requests(made.unmatched)} that the reference never got")
    if unanswered:
        tell(f"{_requests(unanswered)} of the reference that no candidate got")
    return 2 if problems else 0


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _judged(paths: tuple[str, ...], rules: Sequence[Rule], problems: list[Problem]) -> Iterator[Checked]:
    for item in judge(read(paths), rules, tell_failure):
        if isinstance(item, Problem):
            problems.append(item)
            tell(f"wirelint: {item}")
        else:
            yield item
