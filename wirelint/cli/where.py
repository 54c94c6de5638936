"""`wirelint where`: paths for scripts, as in `mitmdump -s "$(wirelint where addon)"`."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.cli.guidance import guided
from wirelint.registry import shipped


@guided(
    examples=(
        ("load the addon into a mitmproxy of your own", 'mitmdump -s "$(wirelint where addon)"'),
        ("read how a rule is written", 'ls "$(wirelint where rules)"'),
    ),
    exits={0: "printed"},
)
@click.argument("what", type=click.Choice(["addon", "rules", "captures"]))
def where(what: str) -> None:
    """Print the path of the addon script, of the shipped rules, or of where captures go."""
    match what:
        case "addon":
            click.echo(shipped("addons") / "inspector.py")
        case "rules":
            click.echo(shipped("rules"))
        case _:
            click.echo(Path("captures").resolve())
