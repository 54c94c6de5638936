"""`wirelint report`: captures as one HTML page. `wirelint stats` and `wirelint compare`: scorecards of models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from wirelint.capture import storage
from wirelint.capture.offline import Checked
from wirelint.cli import guided
from wirelint.cli.jobs import Bar, Workers
from wirelint.cli.options import Selection, inform
from wirelint.model import Json
from wirelint.prices import CURE, price_table
from wirelint.text.escaping import counted
from wirelint.view import scorecard, scores
from wirelint.view.findings import Repeats
from wirelint.view.html import write_report

if TYPE_CHECKING:
    from wirelint.cli.judge import Judge

_HEAD = 64
_OF_TABLES = "findings of tables are those of their export; tables have no bodies, so no prompts are shown"


@guided("report")
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
                on_problem=bar.report, all_occurrences=all_occurrences,
            )  # fmt: skip
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror or error}; choose another -o") from error
    if not written.exchanges:
        raise click.ClickException(f"no exchange to report; {out} is not written")
    shown = f"{written.size / 1e6:.1f} MB" if written.size >= 1e6 else f"{max(written.size / 1e3, 0.1):.1f} kB"
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


def _print_scores(
    output_format: str,
    sheets: Callable[[], Sequence[scorecard.Sheet]],
    found: Sequence[object],
    documents: Iterable[dict[str, Json]],
) -> None:
    """Print what was found, in a format. `documents`: as JSON."""
    match output_format:
        case "json":
            click.echo(orjson.dumps([*documents], option=orjson.OPT_INDENT_2).decode())
        case "svg":
            click.echo(scorecard.picture([card for card in found if isinstance(card, scores.Card)]))
        case "markdown":
            scorecard.write_markdown(sheets(), sys.stdout)
        case _ if found:
            scorecard.write_tables(sheets(), sys.stdout)


@guided("stats")
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
    accuracy is the share of good ones. Reads what `wirelint check` reads, and tables of `wirelint export`. Costs are
    those of a price table (pip install 'wirelint[prices]').
    """
    if by != "model" and output_format == "svg":
        raise click.UsageError("--output-format svg: only for --by model; choose table, markdown or json")
    verb = {"model": "scoring", "issue": "checking"}.get(by, "counting")
    with _Inputs(paths, selection, verb, jobs, side, judge) as inputs:
        if by == "issue":
            repeats = Repeats()
            for item in inputs.checked():
                repeats.add(item.folded)
            found = repeats.ordered()
            documents = (one.document for one in found)
            _print_scores(output_format, lambda: [scorecard.issue_table(found)], found, documents)
            inform(f"{counted(len(found), 'issue')} in {counted(repeats.exchanges, 'exchange')}")
        else:
            _print_counts(inputs, by, output_format)
        if inputs.tables:
            inform(_OF_TABLES)
    return 2 if inputs.bar.problems else 0


class _Inputs(ExitStack):
    """The exchanges of captures, and of tables of `wirelint export`. Raises click.UsageError for what tables lack.

    `keyed`: with the keys for a comparison. `chosen`: chooses exchanges of the captures. `left_out` counts exchanges that
    are not with a model.
    """

    def __init__(
        self,
        paths: Sequence[str],
        selection: Selection,
        verb: str,
        jobs: int | None,
        side: str,
        judge: Judge | None = None,
        *,
        keyed: bool = False,
        chosen: Callable[[Iterator[Checked]], Iterator[Checked]] = iter,
    ) -> None:
        super().__init__()
        self.tables = [path for path in paths if _is_tables(path)]
        if self.tables and (side == "client" or judge is not None):
            option, lack = ("--judge", "texts") if judge is not None else ("--side client", "replies as delivered")
            raise click.UsageError(f"{option}: {self.tables[0]} holds tables, which have no {lack}; name the captures")
        self._selection, self._rules, self._judge = selection, selection.scopes(), judge
        self._observe, self._chosen = partial(scores.observe, delivered=side == "client", keyed=keyed), chosen
        self.bar = self.enter_context(Bar([path for path in paths if path not in self.tables], verb))
        self._workers = self.enter_context(Workers(jobs, self.bar, selection.scopes))
        self.left_out = 0

    def checked(self) -> Iterator[Checked]:
        """Yield all exchanges with their findings; those of tables have nothing else."""
        yield from chain(self._read(), (checked for _, checked in self._rows()))

    def seen(self) -> Iterator[scores.Observation]:
        """Yield the figures of all exchanges with a model, and count the others."""
        for seen in chain(map(self._observe, self._read()), (seen for seen, _ in self._rows())):
            if seen is None:
                self.left_out += 1
            else:
                yield seen

    def _read(self) -> Iterator[Checked]:
        return self._chosen(self.bar.checked(self._workers.checked(self._rules), self._rules, self._judge))

    def _rows(self) -> Iterator[tuple[scores.Observation | None, Checked]]:
        if not self.tables:
            return
        try:
            from wirelint.view.parquet import read_tables
        except ImportError as error:
            message = f"{self.tables[0]}: tables need DuckDB: pip install 'wirelint[tables]'"
            raise click.ClickException(message) from error
        left_out = self._selection.names(("ALL",)) - {rule.name for rule in self._rules.everywhere}
        for path in self.tables:
            try:
                yield from read_tables(path, lambda name: name not in left_out)
            except storage.StorageError as error:
                raise click.ClickException(f"{path}: {error.message} ({error.cure})") from error


def _is_tables(path: str) -> bool:
    """Return True if a path is a folder that `wirelint export --format parquet` wrote."""
    try:
        return path != "-" and all(storage.is_folder(storage.joined(path, name)) for name in ("exchanges", "findings"))
    except storage.StorageError:  # the reader of captures reports it
        return False


def _print_counts(inputs: _Inputs, by: str, output_format: str) -> None:
    """Print a scorecard for each model, or tokens and cost of conversations or runs."""
    found: Sequence[scores.Card | scores.Bill]
    if by == "model":
        found = cards = scores.cards_of(inputs.seen())
        documents = map(scorecard.card_document, cards)
        _print_scores(output_format, lambda: scorecard.score_tables(cards), cards, documents)
    else:
        found = bills = scores.bills_of(inputs.seen(), by)
        documents = map(scorecard.bill_document, bills)
        _print_scores(output_format, lambda: [scorecard.bill_table(bills)] if bills else [], bills, documents)
    if inputs.left_out:
        inform(f"{counted(inputs.left_out, 'exchange')} left out: not with a model's API, or unrecognised")
    if not found:
        inform("no exchange with a model")
    if price_table() is None and any(one.spending.counted for one in found):
        inform(CURE)


@guided("compare")
def compare(
    reference: str, candidates: tuple[str, ...], selection: Selection, side: str, output_format: str, jobs: int | None
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
    with (
        _Inputs(references, selection, "reading", 1, side, keyed=True) as first,
        _Inputs(paths, selection, "comparing", jobs, side, keyed=True, chosen=candidates) as second,
    ):
        found, unanswered = scores.compare(first.seen(), second.seen())
    if first.tables or second.tables:
        inform(_OF_TABLES)
    compared = [made for made in found if made.pairs]
    if not compared:
        names = ", ".join(references), ", ".join(paths)
        message = f"no request of {names[0]} occurs in {names[1]}: replay the same requests, with their tools"
        raise click.ClickException(message)
    cards = [card for made in compared for card in (made.card, made.reference)]
    documents = map(scorecard.comparison_document, found)
    _print_scores(output_format, lambda: scorecard.comparison_tables(compared), cards, documents)
    for made in found:
        if made.unmatched:
            inform(f"{made.model} at {made.provider}: {counted(made.unmatched, 'request')} not in the reference")
    if unanswered:
        inform(f"{counted(unanswered, 'request')} of the reference not in any candidate")
    return 2 if first.bar.problems or second.bar.problems else 0
