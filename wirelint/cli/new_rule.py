"""`wirelint new-rule`: write the first draft of a rule and its cases. The draft passes the tests."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import get_args

import click

from wirelint.cli.guidance import guided
from wirelint.cli.selection import load
from wirelint.registry import shipped
from wirelint.rule import SEVERITIES, Layer

_LAYERS = [layer for layer in get_args(Layer) if layer != "wirelint"]
_TEMPLATES = Path(__file__).with_name("templates")


@guided(
    examples=(
        ("in a folder of your own", "wirelint new-rule XX901 shouting-reply --folder my-rules"),
        ("then run it", "wirelint check --rules my-rules captures/samples"),
    ),
    exits={0: "written", 2: "not written: a file exists already, or the arguments are invalid"},
)
@click.argument("code")
@click.argument("name")
@click.option(
    "--severity",
    type=click.Choice(list(SEVERITIES)),
    default="warning",
    show_default=True,
    help="Severity of its findings.",
)
@click.option("--layer", type=click.Choice(_LAYERS), default="model", show_default=True, help="Layer at fault.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder for the rule and its cases; by default the rules of this checkout.",
)
def new_rule(code: str, name: str, severity: str, layer: str, folder: Path | None) -> None:
    """Write the first draft of a rule.

    The draft is a working rule with a manual, an example and cases; replace these with your own.
    """
    if not re.fullmatch(r"[A-Z]{2}\d{3}", code):
        raise click.ClickException(f"code {code!r}: write two capitals and three digits, as in XX901")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise click.ClickException(f"name {name!r}: write small letters and hyphens, as in shouting-reply")
    for rule in load().rules:
        if rule.code == code or rule.name == name:
            raise click.ClickException(f"{code} {name}: {rule.code} {rule.name} exists already; choose others")
    snake = name.replace("-", "_")
    words = {
        "code": code,
        "name": name,
        "snake": snake,
        "title": "".join(part.capitalize() for part in name.split("-")),
        "words": name.replace("-", " "),
        "severity": severity,
        "layer": layer,
    }
    home = folder or shipped("rules")
    if folder is None and not (home.parent / "tests").is_dir():
        raise click.ClickException("not a checkout: name a folder for your rule, as in --folder my-rules")
    for suffix, template in ((".py", "rule.txt"), (".json", "cases.txt")):
        text = Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)
        _write(home / f"{code.lower()}_{snake}{suffix}", text)
    using = f"wirelint check --rules {folder} …" if folder else f"make test, or pytest tests/rules -k {name}"
    click.echo(f"edit both files, then run: {using}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise click.ClickException(f"{path}: exists already; nothing was overwritten") from error
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}; name a writable folder with --folder") from error
    click.echo(f"wrote {path}")
