"""Options that several commands share: which rules run, and errors in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from wirelint.cli import completing
from wirelint.policy import NO_POLICIES
from wirelint.policy.disk import RealDisk
from wirelint.policy.file import PolicyError
from wirelint.policy.file import load as load_policies
from wirelint.registry import Registry, RuleError, safeties
from wirelint.repair import Permit
from wirelint.rule import Limits, Rule

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
        "--ignore",
        multiple=True,
        metavar="RULE",
        shell_complete=completing.rules,
        help="Leave out these rules: names, codes or code prefixes.",
    )(command)
    return click.option(
        "--select",
        multiple=True,
        metavar="RULE",
        shell_complete=completing.rules,
        help="Run only these rules: names, codes, code prefixes or ALL.",
    )(command)


def policy_option(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--policy` to a command."""
    return click.option(
        "--policy",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Hold the arguments of calls to the policies of this TOML file.",
    )(command)


def fix_options(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--unsafe-fixes`, `--fixable`, `--unfixable` and `--clean-history` to a command."""
    command = click.option(
        "--clean-history",
        is_flag=True,
        help="Take leaked markup out of earlier turns as well; the vendor's prompt cache does not know them any more.",
    )(command)
    command = click.option(
        "--unfixable",
        multiple=True,
        metavar="RULE",
        shell_complete=completing.rules,
        help="Leave what these rules find as it is.",
    )(command)
    command = click.option(
        "--fixable",
        multiple=True,
        metavar="RULE",
        shell_complete=completing.rules,
        help="Repair only what these rules find: names, codes, prefixes.",
    )(command)
    return click.option(
        "--unsafe-fixes", is_flag=True, help="Repair too where the client will do what it would not have done."
    )(command)


def limit_options(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--stall`, `--burst` and `--hang` to a command: the fields of `Limits`."""
    seconds, usual = click.FloatRange(0, min_open=True), Limits()
    for name, default, text in (
        ("--hang", usual.hang, "Seconds without an answer that are too many."),
        ("--burst", usual.burst, "Seconds of silence after which a stream must not come all at once."),
        ("--stall", usual.stall, "Seconds without an event in a stream that are too many."),
    ):
        option = click.option(name, type=seconds, default=default, show_default=True, metavar="SECONDS", help=text)
        command = option(command)
    return command


def load(folders: tuple[Path, ...] = (), policy: Path | None = None) -> Registry:
    """The registry, with the argument policies of a file in force. Raises click.ClickException in one line."""
    try:
        policies = load_policies(policy, RealDisk()) if policy is not None else NO_POLICIES
        return Registry.load(folders).under(policies)
    except (RuleError, PolicyError) as error:
        raise click.ClickException(str(error)) from error


def selected(
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None = None,
    limits: Limits | None = None,
) -> tuple[Rule, ...]:
    """The rules that the options mean. Several may stand in one option, parted by commas."""
    return _select(load(folders, policy), select, ignore, limits)


def repairing(
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    *,
    unsafe: bool,
    fixable: tuple[str, ...],
    unfixable: tuple[str, ...],
    clean_history: bool,
    policy: Path | None = None,
    limits: Limits | None = None,
) -> tuple[tuple[Rule, ...], Permit]:
    """The rules that the options mean, and the fixes that may be made."""
    registry = load(folders, policy)
    rules = _select(registry, select, ignore, limits)
    try:
        permit = registry.permit("unsafe" if unsafe else "safe", _split(fixable), _split(unfixable), clean_history)
    except RuleError as error:
        raise click.ClickException(str(error)) from error
    return rules, permit


def _select(
    registry: Registry, select: tuple[str, ...], ignore: tuple[str, ...], limits: Limits | None
) -> tuple[Rule, ...]:
    try:
        rules = registry.select(_split(select), _split(ignore))
        return rules if limits is None else tuple(rule.within(limits) for rule in rules)
    except RuleError as error:
        raise click.ClickException(str(error)) from error


def tell(message: str) -> None:
    """Chatter for a person: on stderr, so that results can be piped."""
    click.echo(message, err=True)


def tell_failure(culprit: str, error: Exception) -> None:
    tell(f"wirelint: {culprit} failed: {type(error).__name__}: {error} (its findings are missing; please report it)")


def fixes(rule: Rule) -> str:
    """How safe the fixes of a rule are, as tables show it; `show` for one that only reports."""
    return ", ".join(safeties(rule)) or "show"


def _split(selectors: tuple[str, ...]) -> list[str]:
    return [part.strip() for selector in selectors for part in selector.split(",") if part.strip()]
