"""`wirelint report`: captures as one HTML page. `wirelint stats` and `wirelint compare`: scorecards of models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import orjson

from wirelint.capture.offline import Checked
from wirelint.capture.readers.storage import place_of
from wirelint.cli.guidance import guided
from wirelint.cli.jobs import Workers
from wirelint.cli.options import (
    Selection,
    format_option,
    inform,
    jobs_option,
    judge_options,
    occurrences_option,
    paths_argument,
    rule_options,
)
from wirelint.cli.progress import Bar
from wirelint.model import Json
from wirelint.prices import CURE, price_table
from wirelint.text.escaping import counted
from wirelint.view import scorecard, scores
from wirelint.view.findings import Repeats
from wirelint.view.html import write_report

if TYPE_CHECKING:
    from wirelint.cli.judge import Judge

_HEAD = 64


@guided("report")
@paths_argument
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True,
    metavar="FILE", help="The file to write.",
)  # fmt: skip
@click.option("--title", default="", metavar="TEXT", help="Title of the page; by default the names of the captures.")
@rule_options(policy=True, limits=True)
@occurrences_option
@jobs_option
@judge_options()
def report(
    paths: tuple[str, ...],
    out: Path,
    title: str,
    selection: Selection,
    all_occurrences: bool,
    jobs: int | None,
    judge: Judge | None,
) -> int:
    """Write captures as one HTML page: summary, filters, search, every exchange with its findings.

    Reads what `wirelint check` reads. The page needs no network and no other file, so it can be sent or attached to an
    issue; it contains the captured data.
    """
    _refuse(out, paths)
    rules = selection.scopes()
    try:
        with Bar(paths, "reporting") as bar, Workers(jobs, bar, selection.scopes) as workers:
            items = workers.checked(rules)
            written = write_report(
                bar.follow(items if judge is None else judge.judged(items, rules, bar)), out, rules=rules, title=title,
                on_problem=lambda problem: bar.inform(f"wirelint: {problem}"), all_occurrences=all_occurrences,
            )  # fmt: skip
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror or error}; choose another -o") from error
    if not written.exchanges:
        raise click.ClickException(f"no exchange to report; {out} is not written")
    size = written.size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
    inform(f"{counted(written.exchanges, 'exchange')}, {written.affected} with findings ({shown})")
    click.echo(out)
    return 2 if written.problems else 0


def _refuse(out: Path, paths: tuple[str, ...]) -> None:
    """Raise an error if the page would replace a file that is not a page."""
    if str(out) == "-":
        raise click.ClickException("-o -: the page is written to a file; name one")
    if out.is_dir():
        raise click.ClickException(f"{out}: a folder; name a file, as in -o {out / 'report.html'}")
    if not out.parent.is_dir():
        raise click.ClickException(f"{out}: no folder {out.parent}; make it first")
    if not out.exists():
        return
    if not out.is_file() or any(path != "-" and Path(path).exists() and out.samefile(path) for path in paths):
        raise click.ClickException(f"{out}: would be overwritten by the page; choose another -o")
    with open(out, "rb") as file:
        head = file.read(_HEAD).lstrip().lower()
    if head and not head.startswith(b"<!doctype html"):
        raise click.ClickException(f"{out}: not an HTML page, and it would be overwritten; choose another -o")


# --- scorecards -------------------------------------------------------------------------------------------------------


def score_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `stats`, `compare` and `replay`: rules, format, side."""
    command = format_option(["table", "markdown", "json", "svg"])(command)
    side = click.option(
        "--side", type=click.Choice(["upstream", "client"]), default="upstream", show_default=True,
        help="Score what the upstream sent, or what clients received after fixes.",
    )  # fmt: skip
    return rule_options()(side(command))


def _print_scores(
    output_format: str, sheets: Callable[[], Sequence[scorecard.Sheet]], found: Sequence[object], documents: Json
) -> None:
    """Print what was found, in a format. `documents`: as JSON."""
    match output_format:
        case "json":
            click.echo(orjson.dumps(documents, option=orjson.OPT_INDENT_2).decode())
        case "svg":
            click.echo(scorecard.picture([card for card in found if isinstance(card, scores.Card)]))
        case "markdown":
            scorecard.write_markdown(sheets(), sys.stdout)
        case _ if found:
            scorecard.write_tables(sheets(), sys.stdout)


@guided("stats")
@paths_argument
@click.option(
    "--by", type=click.Choice(["model", "conversation", "run", "issue"]), default="model", show_default=True,
    help="Score models; count tokens and cost of conversations or of files; or list faults, each once.",
)  # fmt: skip
@score_options
@jobs_option
@judge_options()
def stats(
    paths: tuple[str, ...],
    by: str,
    selection: Selection,
    side: str,
    output_format: str,
    jobs: int | None,
    judge: Judge | None,
) -> int:
    """Score the models in captures, by provider: calls, schema errors, tokens, cost, times, findings.

    A reply that ends in calls is good if every call names a declared tool and its arguments fit the tool's schema;
    accuracy is the share of good ones. Reads what `wirelint check` reads. Costs are those of a price table
    (pip install 'wirelint[prices]').
    """
    if by != "model" and output_format == "svg":
        raise click.UsageError("--output-format svg: only for --by model; choose table, markdown or json")
    if by == "issue":
        return _list_issues(paths, selection, output_format, jobs, judge)
    if by != "model":
        return _list_bills(paths, selection, "run" if by == "run" else "conversation", output_format, jobs)
    rules, cards = selection.scopes(), scores.Cards()
    with Bar(paths, "scoring") as bar, Workers(jobs, bar, selection.scopes) as workers:
        for item in bar.checked(workers.checked(rules), rules, judge):
            cards.add(scores.observe(item, delivered=side == "client"))
    found = cards.ordered()
    documents: Json = [scorecard.card_document(card) for card in found]
    _print_scores(output_format, lambda: scorecard.score_tables(found), found, documents)
    if cards.left_out:
        inform(f"{counted(cards.left_out, 'exchange')} left out: not with a model's API, or unrecognised")
    if not found:
        inform("no exchange with a model")
    if any(card.spending.counted for card in found) and price_table() is None:
        inform(CURE)
    return 2 if bar.problems else 0


def _list_bills(
    paths: tuple[str, ...],
    selection: Selection,
    by: Literal["conversation", "run"],
    output_format: str,
    jobs: int | None,
) -> int:
    """Print tokens and cost of conversations or runs."""
    rules, bills = selection.scopes(), scores.Bills(by)
    with Bar(paths, "counting") as bar, Workers(jobs, bar, selection.scopes) as workers:
        for item in bar.checked(workers.checked(rules), rules):
            bills.add(item)
    found = bills.all
    documents: Json = [scorecard.bill_document(bill) for bill in found]
    _print_scores(output_format, lambda: [scorecard.bill_table(found)] if found else [], found, documents)
    if bills.left_out:
        inform(f"{counted(bills.left_out, 'exchange')} left out: not with a model's API, or unrecognised")
    if not found:
        inform("no exchange with a model")
    elif price_table() is None:
        inform(CURE)
    return 2 if bar.problems else 0


def _list_issues(
    paths: tuple[str, ...], selection: Selection, output_format: str, jobs: int | None, judge: Judge | None
) -> int:
    """Print each fault once, with the number of exchanges that have it, the first and the last."""
    rules, repeats = selection.scopes(), Repeats()
    with Bar(paths, "checking") as bar, Workers(jobs, bar, selection.scopes) as workers:
        for item in bar.checked(workers.checked(rules), rules, judge):
            repeats.add(item.folded)
    found = repeats.ordered()
    documents: Json = [one.document for one in found]
    _print_scores(output_format, lambda: [scorecard.issue_table(found)], found, documents)
    inform(f"{counted(len(found), 'issue')} in {counted(repeats.exchanges, 'exchange')}")
    return 2 if bar.problems else 0


@guided("compare")
@click.argument("reference", type=place_of, metavar="REF")
@click.argument("candidates", type=place_of, nargs=-1, required=True, metavar="CANDIDATE...")
@score_options
@jobs_option
def compare(
    reference: str,
    candidates: tuple[str, ...],
    selection: Selection,
    side: str,
    output_format: str,
    jobs: int | None,
) -> int:
    """Compare models with a reference run of the same requests.

    Requests are matched by their messages and tools. Where the reference ends in calls, the candidate should: precision,
    recall and F1 measure that. "similar" is the share of requests that end alike: in calls of the same tools, or in the
    same other way. The scorecards below cover these requests only.
    """
    return print_comparison((reference,), candidates, selection, side, output_format, jobs=jobs)


def print_comparison(
    references: tuple[str, ...],
    paths: tuple[str, ...],
    selection: Selection,
    side: str,
    output_format: str,
    candidates: Callable[[Iterator[Checked]], Iterator[Checked]] = iter,
    *,
    jobs: int | None = 1,
) -> int:
    """Print the comparison of captures with reference captures. Return the exit status.

    `candidates` chooses exchanges of `paths`. Raises click.ClickException if no request occurs in both.
    """
    rules = selection.scopes()
    with (
        Bar(references, "reading") as first, Workers(1, first, selection.scopes) as one,
        Bar(paths, "comparing") as second, Workers(jobs, second, selection.scopes) as others,
    ):  # fmt: skip
        runs = first.checked(one.checked(rules), rules), candidates(second.checked(others.checked(rules), rules))
        found, unanswered = scores.compare(*runs, delivered=side == "client")
    compared = [made for made in found if made.pairs]
    if not compared:
        names = ", ".join(references), ", ".join(paths)
        message = f"no request of {names[0]} occurs in {names[1]}: replay the same requests, with their tools"
        raise click.ClickException(message)
    cards = [card for made in compared for card in (made.card, made.reference)]
    documents: Json = [scorecard.comparison_document(made) for made in found]
    _print_scores(output_format, lambda: scorecard.comparison_tables(compared), cards, documents)
    for made in found:
        if made.unmatched:
            inform(f"{made.model} at {made.provider}: {counted(made.unmatched, 'request')} not in the reference")
    if unanswered:
        inform(f"{counted(unanswered, 'request')} of the reference not in any candidate")
    return 2 if first.problems or second.problems else 0
