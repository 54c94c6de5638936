"""`wirelint show`: one exchange, read like a conversation."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import orjson
from rich.console import RenderableType

from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.replay import mended
from wirelint.cli import completing
from wirelint.cli.guidance import guided
from wirelint.cli.selection import occurrences_option, policy_option, rule_options, selected, tell, tell_failure
from wirelint.view.bodies import wire as raw
from wirelint.view.paths import Paths, as_json, path, trails
from wirelint.view.screen import Screen
from wirelint.view.text import conversation, index

_CAPTURES = Path("captures")


@guided(
    examples=(
        ("what is in a capture, a line an exchange", "wirelint show captures/samples/one-call.jsonl"),
        ("one exchange, by its id or the beginning of it", "wirelint show captures/samples/one-call.jsonl answer"),
        ("the same with all that was said and thought", "wirelint show captures/samples/one-call.jsonl answer --full"),
        ("where its calls went", "wirelint show captures/samples/one-call.jsonl ask --path"),
        ("the bytes, event by event", "wirelint show captures/samples/one-call.jsonl answer --wire"),
    ),
    own={
        "How much is shown": ("--full", "--thinking", "--all-occurrences"),
        "Which side": ("--upstream", "--delivered", "--wire"),
        "Following a call": ("--call", "--conversation", "--path", "--output-format"),
    },
    exits={0: "shown", 2: "there is no such exchange, or something could not be read"},
)
@click.argument("target", metavar="ID|PATH", shell_complete=completing.paths)
@click.argument("exchange", required=False, metavar="[ID]", shell_complete=completing.exchanges)
@rule_options
@policy_option
@click.option(
    "--captures",
    type=click.Path(path_type=Path),
    default=_CAPTURES,
    show_default=True,
    metavar="DIR",
    help="Where an ID is looked up.",
)
@occurrences_option
@click.option("--wire", is_flag=True, help="Show the raw request and the reply's events one by one.")
@click.option("--upstream", is_flag=True, help="Show only what came in: the client's request, the upstream's reply.")
@click.option("--delivered", is_flag=True, help="Show only what was sent on: the request and the reply as repaired.")
@click.option("--call", metavar="ID", help="Follow a call through all layers: its id, or its function's name.")
@click.option("--conversation", "named", metavar="ID", help="Follow all calls of a conversation.")
@click.option("--path", "follow", is_flag=True, help="Follow the calls of the exchange; of a capture, all calls.")
@click.option("--output-format", type=click.Choice(["full", "json"]), default="full", help="How to print paths.")
@click.option("--full", is_flag=True, help="Show every message, and all of its text.")
@click.option("--thinking", is_flag=True, help="Show all of what the model thought, not its first words alone.")
def show(
    target: str,
    exchange: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    captures: Path,
    all_occurrences: bool,
    wire: bool,
    upstream: bool,
    delivered: bool,
    full: bool,
    thinking: bool,
    call: str | None,
    named: str | None,
    follow: bool,
    output_format: str,
) -> int:
    """Show one exchange as a conversation, with its findings in the margin; or the path of a call.

    The first argument is an exchange's id (or the beginning of one), looked up in the captures folder, or a capture. Of a
    capture that holds several exchanges a list is shown; name the id after the path.

    Of an exchange that was repaired both sides are shown, and what was done. Results stand beside their calls; thinking is
    folded to its first words (--thinking unfolds it); the evidence of a finding is underlined.

    With --call, --conversation or --path a call is followed instead: from the model that made it through gateway, client
    and tool back to the model, with times, what was changed on the way, and where the path ends.
    """
    if upstream and delivered:
        raise click.UsageError("--upstream and --delivered are two views; choose one, or leave both out to see both")
    rules = selected(select, ignore, folders, policy)
    place, wanted = (target, exchange) if Path(target).exists() or target == "-" else (str(captures), target)
    problems: list[Problem] = []
    checked = judge(_side(read([place]), upstream, delivered), rules, tell_failure)
    if call is not None or named is not None or follow:
        items = list(_pick(checked, None, problems))
        status = _follow(items, place, wanted, call, named, output_format)
        return 2 if _tell(problems) else status
    found = _folded(checked, wanted, problems, all_occurrences)
    console = Screen(sys.stdout)
    if not found:
        if not _tell(problems):
            raise click.ClickException(
                f"{place}: no exchange {wanted or ''}; `wirelint show {place}` lists them".strip()
            )
        return 2
    _tell(problems)
    exact = [checked for checked in found if checked.record.id == wanted]
    chosen = exact or found
    if len(chosen) == 1:
        _print(console, raw(chosen[0]) if wire else conversation(chosen[0], full=full, thinking=thinking))
        if wire and chosen[0].record.fixes:
            tell("this is what came in; --delivered shows what was sent on")
        if calls := _calls_of(chosen[0]):
            shown = f"{calls} call{'s' if calls > 1 else ''} in the reply"
            tell(f"{shown}; where they went: wirelint show {place} {chosen[0].record.id} --path")
    else:
        for line in index(chosen, console.width):
            console.print(line, soft_wrap=True)
        tell(f"{len(chosen)} exchanges; name one: wirelint show {place} ID")
    return 2 if problems else 0


def _print(console: Screen, shown: RenderableType) -> None:
    """Shows something; in a file or a pipe no line ends in blanks."""
    if console.is_terminal:
        console.print(shown)
        return
    with console.capture() as captured:
        console.print(shown)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().removesuffix("\n").split("\n"))


def _follow(
    items: Sequence[Checked], place: str, wanted: str | None, call: str | None, named: str | None, output_format: str
) -> int:
    """Prints the paths of calls: each in full, or of several by conversation or capture a line of each."""
    paths = Paths(items)
    if call is not None:
        found = paths.of_call(call)
    elif named is not None:
        found = paths.of_conversation(named)
    else:
        found = tuple(paths.all()) if wanted is None else paths.of_exchange(_full_id(items, wanted))
    if wanted is not None:
        found = tuple(one for one in found if one.exchange.startswith(wanted))
    if not found:
        raise click.ClickException(f"{place}: no such call; `wirelint show {place} --path` lists them")
    if output_format == "json":
        made = [as_json(one, items) for one in found]
        sys.stdout.write(orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    console = Screen(sys.stdout)
    if len(found) > 1 and call is None and wanted is None:
        console.print(trails(found))
        tell(f"{len(found)} calls; follow one: wirelint show {place} --call ID")
        return 0
    for one in found:
        console.print(path(one))
    return 0


def _calls_of(checked: Checked) -> int:
    reply = checked.exchange.reply if checked.exchange is not None else None
    return sum(len(choice.calls) for choice in reply.choices) if reply is not None else 0


def _full_id(items: Sequence[Checked], wanted: str) -> str:
    return next((checked.record.id for checked in items if checked.record.id.startswith(wanted)), wanted)


def _tell(problems: Sequence[Problem]) -> bool:
    for problem in problems:
        tell(f"wirelint: {problem}")
    return bool(problems)


def _side(items: Iterator[Record | Problem], upstream: bool, delivered: bool) -> Iterator[Record | Problem]:
    """Records as both ends had them, or as they came in."""
    for item in items:
        if delivered and isinstance(item, Record):
            yield mended(item)
        elif upstream and isinstance(item, Record):
            yield dataclasses.replace(item, forwarded=None, delivered=None, fixes=())
        else:
            yield item


def _folded(
    items: Iterator[Checked | Problem], wanted: str | None, problems: list[Problem], all_occurrences: bool
) -> list[Checked]:
    """The exchanges that are wanted, with how often each of their issues was found in all of the capture."""
    occurrences, found = Occurrences(), list[Checked]()
    for item in _pick(items, None, problems):
        occurrences.see(item)
        if wanted is None or item.record.id.startswith(wanted):
            found.append(item if all_occurrences else item.folded)
    return [occurrences.totalled(one) for one in found]


def _pick(items: Iterator[Checked | Problem], wanted: str | None, problems: list[Problem]) -> Iterator[Checked]:
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
        elif wanted is None or item.record.id.startswith(wanted):
            yield item
