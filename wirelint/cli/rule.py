"""`wirelint rule NAME`: the manual of one rule, with an example that is run while you read."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import orjson
from rich.console import Group
from rich.markdown import Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from wirelint.capture.format import decode
from wirelint.capture.replay import replay
from wirelint.cli import completing
from wirelint.cli.guidance import guided
from wirelint.cli.selection import fixes, load
from wirelint.engine import Engine
from wirelint.model import Json
from wirelint.registry import RuleError
from wirelint.rule import Rule
from wirelint.view.findings import MARKS, STYLES, place
from wirelint.view.screen import Screen


@guided(
    examples=(
        ("why it fires, on what, and what its fix does", "wirelint rule xml-leak"),
        ("the same by its code", "wirelint rule LK101"),
        ("as Markdown", "wirelint rule --markdown mangled-id"),
    ),
    exits={0: "printed", 2: "no such rule"},
)
@click.argument("name", shell_complete=completing.rules)
@click.option(
    "--rules", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Folder with rules of your own, besides the shipped ones.",
)  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print the manual as Markdown, without the examples.")
def rule(name: str, folders: tuple[Path, ...], markdown: bool) -> None:
    """Print the manual of a rule, by name (xml-leak) or code (LK101)."""
    try:
        found = load(folders).get(name)
    except RuleError as error:
        raise click.ClickException(str(error)) from error
    manual = inspect.getdoc(found) or ""
    if markdown:
        click.echo(f"# {found.name} ({found.code})\n\n{manual}")
        return
    console = Screen(sys.stdout)
    style = STYLES[found.severity]
    head = Text.assemble((f"{found.code} {found.name}", "bold"), (f"  {found.severity}", style), f" · {found.layer}")
    head.append(f" · fix: {fixes(found)}")
    console.print(head, Markdown(manual), Text())
    console.print(_example(found, "Fires on", found.fires), _example(found, "Silent on", found.silent))


def _example(rule: Rule, title: str, record: Mapping[str, Json]) -> Group:
    parts = [Text(title, "bold")]
    bodies = [Padding(_body(record, side), (0, 0, 0, 2)) for side in ("request", "response") if record.get(side)]
    engine = Engine([rule])
    earlier = record.get("prior")
    for prior in earlier if isinstance(earlier, list) else ():
        before = replay(decode(dict(prior), "example", "1")) if isinstance(prior, dict) else None
        if isinstance(prior, dict) and before is not None:
            engine.check(before)
            bodies[:0] = [Padding(_body(prior, side), (0, 0, 0, 2)) for side in ("request", "response")]
    exchange = replay(decode(dict(record), "example", "1"))
    verdicts = [
        Padding(
            Text(f"{MARKS[finding.severity]} {finding.message}\n  at {place(finding)}", STYLES[finding.severity]),
            (0, 0, 1, 2),
        )
        for finding in (engine.check(exchange) if exchange is not None else ())
    ]
    return Group(*parts, *bodies, *(verdicts or [Padding(Text("✓ nothing found", "green"), (0, 0, 1, 2))]))


def _body(record: Mapping[str, Json], side: str) -> Syntax:
    message = record[side]
    body = message.get("body") if isinstance(message, dict) else None
    if isinstance(body, str):
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Syntax(body.strip(), "text", theme="ansi_dark", word_wrap=True, background_color="default")
    shown = orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
    return Syntax(shown, "json", theme="ansi_dark", word_wrap=True, background_color="default")
