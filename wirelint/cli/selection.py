"""Options that several commands share: which rules run, and errors in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from wirelint.registry import Registry, RuleError
from wirelint.rule import Rule

P = ParamSpec("P")
R = TypeVar("R")


def rule_options(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--select`, `--ignore` and `--rules` to a command."""
    command = click.option(
        "--rules",
        "folders",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder with rules of your own, besides the shipped ones.",
    )(command)
    command = click.option(
        "--ignore", multiple=True, metavar="RULE", help="Leave out these rules: names, codes or code prefixes."
    )(command)
    return click.option(
        "--select", multiple=True, metavar="RULE", help="Run only these rules: names, codes, code prefixes or ALL."
    )(command)


def load(folders: tuple[Path, ...] = ()) -> Registry:
    """The registry. Raises click.ClickException in one line."""
    try:
        return Registry.load(folders)
    except RuleError as error:
        raise click.ClickException(str(error)) from error


def selected(select: tuple[str, ...], ignore: tuple[str, ...], folders: tuple[Path, ...]) -> tuple[Rule, ...]:
    """The rules that the options mean. Several may stand in one option, parted by commas."""
    registry = load(folders)
    try:
        return registry.select(_split(select), _split(ignore))
    except RuleError as error:
        raise click.ClickException(str(error)) from error


def tell(message: str) -> None:
    """Chatter for a person: on stderr, so that results can be piped."""
    click.echo(message, err=True)


def tell_failure(culprit: str, error: Exception) -> None:
    tell(f"wirelint: {culprit} failed: {type(error).__name__}: {error} (its findings are missing; please report it)")


def _split(selectors: tuple[str, ...]) -> list[str]:
    return [part.strip() for selector in selectors for part in selector.split(",") if part.strip()]
