"""`wirelint completion`, and shell completion of arguments: rules, paths, exchanges of a capture."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from wirelint.cli.guidance import guided
from wirelint.registry import shipped

_SHELLS = ("bash", "zsh", "fish")
_MOST = 500
"""Exchanges of a capture that are read for completion, while the user waits."""


@guided("completion")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the script that completes wirelint in a shell.

    Completed are commands, options and their values, names and codes of rules (several separated by commas), paths, and
    the exchanges of a capture. The default shell is that of $SHELL.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _SHELLS else None
    if found is None:
        raise click.UsageError(f"name a shell: wirelint completion {'|'.join(_SHELLS)}")
    from wirelint.cli import cli

    click.echo(found(cli, {}, "wirelint", "_WIRELINT_COMPLETE").source())


def complete_rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of rules, or codes if a code was begun; the last of several separated by commas."""
    before, comma, begun = incomplete.rpartition(",")
    given = set(before.split(","))
    words = [(code, name) if begun[:1].isupper() else (name, code) for code, name in _shipped() if name not in given]
    words.append(("ALL", "every rule"))
    return [CompletionItem(f"{before}{comma}{word}", help=about) for word, about in words if word.startswith(begun)]


def complete_paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders, by the shell itself."""
    return [CompletionItem(incomplete, type="file")]


def complete_exchanges(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids in the capture that the first argument names."""
    target = ctx.params.get("target")
    if not isinstance(target, str) or not Path(target).exists():
        return []
    # The command reports errors in a capture; here an error message would appear in the command line being typed.
    with contextlib.suppress(Exception):
        return [CompletionItem(name) for name in dict.fromkeys(_ids(target)) if name.startswith(incomplete)]
    return []


def _ids(target: str) -> Iterator[str]:
    from wirelint.capture.readers import Problem, read

    for item in itertools.islice(read([target]), _MOST):
        if not isinstance(item, Problem):
            yield item.id


def _shipped() -> Iterator[tuple[str, str]]:
    """Code and name of each shipped rule by its file name, without loading it."""
    for path in sorted(shipped("rules").glob("[a-z][a-z][0-9][0-9][0-9]_*.py")):
        code, _, name = path.stem.partition("_")
        yield code.upper(), name.replace("_", "-")
