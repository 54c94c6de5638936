"""`wirelint show`: one exchange, read like a conversation."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from wirelint.capture.offline import Checked
from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.replay import mended
from wirelint.cli.selection import policy_option, rule_options, selected, tell, tell_failure
from wirelint.report.conversation import conversation, index
from wirelint.report.raw import wire as raw

_CAPTURES = Path("captures")


@click.command()
@click.argument("target", metavar="ID|PATH")
@click.argument("exchange", required=False, metavar="[ID]")
@rule_options
@policy_option
@click.option("--captures", type=click.Path(path_type=Path), default=_CAPTURES, show_default=True, metavar="DIR")
@click.option("--wire", is_flag=True, help="Show the raw request and the reply's events one by one.")
@click.option("--upstream", is_flag=True, help="Show only what came in: the client's request, the upstream's reply.")
@click.option("--delivered", is_flag=True, help="Show only what was sent on: the request and the reply as repaired.")
@click.option("--full", is_flag=True, help="Show every message, and all of its text.")
def show(
    target: str,
    exchange: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    captures: Path,
    wire: bool,
    upstream: bool,
    delivered: bool,
    full: bool,
) -> int:
    """Show one exchange as a conversation, with its findings in the margin.

    The first argument is an exchange's id (or the beginning of one), looked up in the captures folder, or a capture. Of a
    capture that holds several exchanges a list is shown; name the id after the path.

    Of an exchange that was repaired both sides are shown, and what was done.
    """
    if upstream and delivered:
        raise click.UsageError("--upstream and --delivered are two views; choose one, or leave both out to see both")
    rules = selected(select, ignore, folders, policy)
    path, wanted = (target, exchange) if Path(target).exists() or target == "-" else (str(captures), target)
    problems: list[Problem] = []
    found = list(_pick(judge(_side(read([path]), upstream, delivered), rules, tell_failure), wanted, problems))
    console = Console(file=sys.stdout, highlight=False)
    for problem in problems:
        tell(f"wirelint: {problem}")
    if not found:
        if not problems:
            raise click.ClickException(f"{path}: no exchange {wanted or ''}; `wirelint show {path}` lists them".strip())
        return 2
    exact = [checked for checked in found if checked.record.id == wanted]
    chosen = exact or found
    if len(chosen) == 1:
        console.print(raw(chosen[0]) if wire else conversation(chosen[0], full=full))
        if wire and chosen[0].record.fixes:
            tell("this is what came in; --delivered shows what was sent on")
    else:
        console.print(index(chosen))
        tell(f"{len(chosen)} exchanges; name one: wirelint show {path} ID")
    return 2 if problems else 0


def _side(items: Iterator[Record | Problem], upstream: bool, delivered: bool) -> Iterator[Record | Problem]:
    """Records as both ends had them, or as they came in."""
    for item in items:
        if delivered and isinstance(item, Record):
            yield mended(item)
        elif upstream and isinstance(item, Record):
            yield dataclasses.replace(item, forwarded=None, delivered=None, fixes=())
        else:
            yield item


def _pick(items: Iterator[Checked | Problem], wanted: str | None, problems: list[Problem]) -> Iterator[Checked]:
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
        elif wanted is None or item.record.id.startswith(wanted):
            yield item
