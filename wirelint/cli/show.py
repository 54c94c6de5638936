"""`wirelint show`: one exchange as a conversation, or the path of a call."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import orjson
from rich.console import RenderableType
from rich.text import Text as Line

from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.readers import Problem
from wirelint.capture.record import Record
from wirelint.capture.replay import mended
from wirelint.capture.storage import is_url
from wirelint.cli import guided
from wirelint.cli.jobs import Bar, Workers
from wirelint.cli.options import Selection, inform
from wirelint.model import Reasoning, Refusal, Text, ToolCall, ToolResult
from wirelint.text.escaping import counted
from wirelint.view.bodies import render_wire
from wirelint.view.paths import Paths, path_document, render_path, render_trails
from wirelint.view.screen import Screen
from wirelint.view.text import list_conversations, render_conversation, render_difference


@guided("show")
def show(
    target: str,
    exchange: str | None,
    selection: Selection,
    captures: Path,
    all_occurrences: bool,
    wire: bool,
    upstream: bool,
    delivered: bool,
    full: bool,
    thinking: bool,
    other: str | None,
    model: str | None,
    having: tuple[str, ...],
    text: str | None,
    call: str | None,
    named: str | None,
    follow: bool,
    output_format: str,
) -> int:
    """List conversations, show one exchange as a conversation with its findings, or the path of a call.

    The first argument is an exchange's id (or the beginning of one) in the captures folder, or a capture. A capture with
    several exchanges is listed by conversation: time, prompt, tokens, and the exchanges with model and findings (--model,
    --rule and --text choose some). Name an id after the path to see one; its last exchange shows a whole conversation.

    For an exchange that was fixed, both sides and the fixes are shown. Results follow their calls; thinking is folded to
    its first words (--thinking unfolds it); the evidence of a finding is underlined.

    With --call, --conversation or --path a call is followed: from the model through gateway, client and tool back to the
    model, with times, changes on the way, and where the path ends.
    """
    if upstream and delivered:
        raise click.UsageError("--upstream and --delivered exclude each other; leave both out to see both sides")
    rules, names = selection.scopes(), selection.names(having)
    is_place = target == "-" or is_url(target) or Path(target).exists()
    place, wanted = (target, exchange) if is_place else (str(captures), target)
    with Bar([place], "reading") as bar:
        sided = functools.partial(_side, upstream=upstream, delivered=delivered)
        items = list(bar.checked(Workers(1, bar, selection.scopes).checked(rules, sided), rules))
    if call is not None or named is not None or follow:
        _follow(items, place, wanted, call, named, output_format)
        return 2 if bar.problems else 0
    found = _matching(items, wanted, all_occurrences)
    if not found:
        if bar.problems:
            return 2
        raise click.ClickException(f"{place}: no exchange {wanted or ''}; `wirelint show {place}` lists them")
    chosen, console = _choose(found, wanted, place, model or "", names, text or ""), Screen(sys.stdout)
    if other is not None:
        pair = _only(chosen, place, wanted), _only(_matching(items, other, all_occurrences), place, other)
        _print(console, *render_difference(*pair))
    elif len(chosen) > 1:
        _print(console, *list_conversations(chosen, console.width, full=full))
        inform(f"{len(chosen)} exchanges; name one: wirelint show {place} ID")
    else:
        (one,) = chosen
        _print(console, render_wire(one) if wire else render_conversation(one, full=full, thinking=thinking))
        _hint(one, place, wire)
    return 2 if bar.problems else 0


def _choose(
    found: Sequence[Checked], wanted: str | None, place: str, model: str, rules: frozenset[str], text: str
) -> list[Checked]:
    """Return the exchange with the id `wanted`, else all, that pass the filters. Raises click.ClickException."""

    def passes(one: Checked) -> bool:
        if model.lower() not in one.model.lower():
            return False
        if rules and not any(finding.name in rules for finding in (*one.findings, *one.known)):
            return False
        return not text or any(text.lower() in said.lower() for said in _texts(one))

    if chosen := [one for one in [one for one in found if one.record.id == wanted] or found if passes(one)]:
        return chosen
    raise click.ClickException(f"{place}: no exchange matches --model, --rule and --text; leave one out")


def _texts(checked: Checked) -> Iterator[str]:
    for side in (checked.request, checked.reply):
        for part in side.parts if side is not None else ():
            match part:
                case ToolCall():
                    yield f"{part.name} {part.arguments.text}"
                case Text() | Reasoning() | Refusal() | ToolResult():
                    yield part.text


def _only(found: Sequence[Checked], place: str, wanted: str | None) -> Checked:
    exact = [checked for checked in found if checked.record.id == wanted] or list(found)
    if len(exact) != 1:
        what = f"no exchange {wanted}" if not exact else f"{len(exact)} exchanges; name two of them: A --diff B"
        raise click.ClickException(f"{place}: {what}; `wirelint show {place}` lists them")
    return exact[0]


def _print(console: Screen, *shown: RenderableType) -> None:
    """Print; to a terminal through its pager, if the text is longer than the screen."""
    with console.capture() as captured:
        for one in shown:
            console.print(one, soft_wrap=isinstance(one, Line))
    text = captured.get()
    if console.is_terminal and sys.stdin.isatty() and text.count("\n") >= console.height:
        click.echo_via_pager(text, color=True)
    else:
        console.file.write(text)


def _hint(checked: Checked, place: str, wire: bool) -> None:
    if wire and checked.record.fixes:
        inform("this is what was received; --delivered shows what was sent on")
    if calls := checked.calls:
        inform(f"{counted(calls, 'call')} in the reply; their path: wirelint show {place} {checked.record.id} --path")


def _follow(
    items: Sequence[Checked], place: str, wanted: str | None, call: str | None, named: str | None, output_format: str
) -> None:
    """Print the paths of calls: each in full, or for a conversation or a capture two lines each."""
    paths = Paths(items)
    found = paths.of_call(call) if call is not None else tuple(paths.all())
    if call is None and named is not None:
        found = tuple(path for path in found if path.conversation == named)
    elif call is None and wanted is not None:
        ids = (checked.record.id for checked in items)
        id_ = next((id_ for id_ in ids if id_.startswith(wanted)), wanted)
        found = tuple(path for path in found if path.exchange == id_)
    if wanted is not None:
        found = tuple(one for one in found if one.exchange.startswith(wanted))
    if not found:
        raise click.ClickException(f"{place}: no such call; `wirelint show {place} --path` lists them")
    console = Screen(sys.stdout)
    if output_format == "json":
        made = [path_document(one, items) for one in found]
        sys.stdout.write(orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif len(found) > 1 and call is None and wanted is None:
        _print(console, render_trails(found))
        inform(f"{len(found)} calls; follow one: wirelint show {place} --call ID")
    else:
        _print(console, *map(render_path, found))


def _side(items: Iterator[Record | Problem], upstream: bool, delivered: bool) -> Iterator[Record | Problem]:
    for item in items:
        if delivered and isinstance(item, Record):
            yield mended(item)
        elif upstream and isinstance(item, Record):
            yield dataclasses.replace(item, forwarded=None, delivered=None, fixes=())
        else:
            yield item


def _matching(items: Sequence[Checked], wanted: str | None, all_occurrences: bool) -> list[Checked]:
    """Return the exchanges whose ids begin with `wanted`, with how often each issue was found in the capture."""
    occurrences = Occurrences()
    for item in items:
        occurrences.see(item)
    found = [item for item in items if wanted is None or item.record.id.startswith(wanted)]
    return [occurrences.totalled(item if all_occurrences else item.folded) for item in found]
