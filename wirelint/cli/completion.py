"""`wirelint completion`: the script that has a shell complete wirelint's commands, options, rules and paths."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from wirelint.cli.guidance import guided

_SHELLS = ("bash", "zsh", "fish")


@guided(
    examples=(
        ("bash: in this shell, or in ~/.bashrc for all of them", 'eval "$(wirelint completion bash)"'),
        ("zsh: the same, in ~/.zshrc (after compinit)", 'eval "$(wirelint completion zsh)"'),
        ("fish", "wirelint completion fish > ~/.config/fish/completions/wirelint.fish"),
    ),
    exits={0: "printed", 2: "no such shell"},
)
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the script that completes wirelint in a shell.

    Completed are commands, options and their values, names and codes of rules (several with commas between), paths, and
    the exchanges of a capture. Without a name it is the shell of $SHELL.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _SHELLS else None
    if found is None:
        raise click.UsageError(f"which shell? wirelint completion {'|'.join(_SHELLS)}")
    from wirelint.cli import cli

    click.echo(found(cli, {}, "wirelint", "_WIRELINT_COMPLETE").source())
