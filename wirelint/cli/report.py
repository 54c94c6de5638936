"""`wirelint report`: captures as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.cli import completing
from wirelint.cli.guidance import guided
from wirelint.cli.progress import Bar
from wirelint.cli.selection import limit_options, occurrences_option, policy_option, rule_options, selected, tell
from wirelint.rule import Limits
from wirelint.view.html import write_report

_HEAD = 64


@guided(
    examples=(
        ("a page to look through, or to mail", "wirelint report captures/samples -o report.html"),
        ("of some rules alone", "wirelint report captures/samples --select LK,FB -o leaks.html"),
    ),
    exits={0: "the page is written", 2: "something could not be read"},
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completing.paths)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="Where to write the page.",
)
@click.option("--title", default="", metavar="TEXT", help="What the page is called; else the names of the captures.")
@rule_options
@policy_option
@limit_options
@occurrences_option
def report(
    paths: tuple[str, ...],
    out: Path,
    title: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    stall: float,
    burst: float,
    hang: float,
    all_occurrences: bool,
) -> int:
    """Write captures as one HTML page: summary, filters, search, every exchange with its findings at their place.

    Reads what `wirelint check` reads. The page needs no network and no other file, so it can be mailed or attached to an
    issue; what was captured is in it.
    """
    _refuse(out, paths)
    rules = selected(select, ignore, folders, policy, Limits(stall, burst, hang))
    try:
        with Bar(paths, "reporting") as bar:
            written = write_report(
                bar.judged(rules), out, rules=rules, title=title,
                on_problem=lambda problem: bar.tell(f"wirelint: {problem}"), all_occurrences=all_occurrences,
            )  # fmt: skip
    except OSError as error:
        raise click.ClickException(f"{out}: cannot be written: {error.strerror or error}; choose another -o") from error
    if not written.exchanges:
        raise click.ClickException(f"no exchange to report; {out} is not written")
    tell(
        f"{written.exchanges} exchange{'' if written.exchanges == 1 else 's'}, {written.affected} with findings "
        f"({_size(written.size)})"
    )
    click.echo(out)
    return 2 if written.problems else 0


def _refuse(out: Path, paths: tuple[str, ...]) -> None:
    """Raises where the page would take the place of something that is no page."""
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


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(count / 1e3, 0.1):.1f} kB"
