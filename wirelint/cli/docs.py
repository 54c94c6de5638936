"""`wirelint docs`: the generated parts of the documentation, written or checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from wirelint.cli.selection import fixes, load
from wirelint.registry import shipped, summary


def _rule_table() -> str:
    rows = [
        "| code | name | severity | layer | fix | what is wrong |",
        "|---|---|---|---|---|---|",
        *(
            f"| {rule.code} | `{rule.name}` | {rule.severity} | {rule.layer} | {fixes(rule)} | {summary(rule)} |"
            for rule in load().rules
        ),
    ]
    return "\n".join(rows)


def _options() -> str:
    from wirelint.addon.options import OPTIONS

    rows = ["| option | default | what it does |", "|---|---|---|"]
    for option in OPTIONS:
        default = f"`{option.default}`" if option.default else "none"
        rows.append(f"| `{option.name}` | {default} | {option.help} |")
    return "\n".join(rows)


def _commands() -> str:
    from wirelint.cli import _COMMANDS

    return "\n".join(
        [
            "| command | what it does |",
            "|---|---|",
            *(f"| `wirelint {name}` | {text} |" for name, text in _COMMANDS.items()),
        ]
    )


_PARTS: dict[str, Callable[[], str]] = {"rules": _rule_table, "options": _options, "commands": _commands}


def refreshed(text: str) -> str:
    """A page with every generated part between its `<!-- name -->` and `<!-- /name -->` made anew."""
    for name, make in _PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in text and end in text:
            head, rest = text.split(begin, 1)
            tail = rest.split(end, 1)[1]
            text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


@click.command()
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when something is out of date.")
def docs(only_check: bool) -> int:
    """Bring the generated parts of the documentation up to date."""
    root = shipped("rules").parent
    stale = 0
    for path in (root / "README.md", root / "CONTRIBUTING.md"):
        if not path.is_file():
            raise click.ClickException(f"{path}: not there; run this in a checkout")
        text = path.read_text(encoding="utf-8")
        made = refreshed(text)
        if made == text:
            continue
        stale += 1
        if only_check:
            click.echo(f"{Path(path.name)} is out of date; run `make docs`")
        else:
            path.write_text(made, encoding="utf-8")
            click.echo(f"wrote {path.name}")
    return 1 if stale and only_check else 0
