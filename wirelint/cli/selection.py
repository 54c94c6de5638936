"""Options that several commands share: which rules run, and errors in one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from click.core import ParameterSource

from wirelint.cli import completing
from wirelint.fix import FixPolicy
from wirelint.policy import NO_POLICIES
from wirelint.policy.disk import RealDisk
from wirelint.policy.file import PolicyError
from wirelint.policy.file import load as load_policies
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Limits, Rule
from wirelint.settings.file import NO_CONFIG, Config, ConfigError, find
from wirelint.settings.file import load as load_config
from wirelint.settings.layers import Layer
from wirelint.settings.scopes import Scopes

P = ParamSpec("P")
R = TypeVar("R")


_CONFIG, _ISOLATED, _EXTEND = (f"wirelint.{name}" for name in ("config", "isolated", "extend-select"))


def _keep(name: str) -> Callable[[click.Context, click.Parameter, object], None]:
    """Puts an option's value where `selected` finds it, so that no command has to hand it on."""

    def keep(context: click.Context, _: click.Parameter, value: object) -> None:
        context.meta[name] = value

    return keep


def rule_options(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--select`, `--extend-select`, `--ignore`, `--rules`, `--config` and `--isolated` to a command."""
    command = click.option(
        "--isolated", is_flag=True, expose_value=False, callback=_keep(_ISOLATED), help="Read no configuration."
    )(command)
    command = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        expose_value=False,
        callback=_keep(_CONFIG),
        help="Configuration, instead of the nearest wirelint.toml or pyproject.toml.",
    )(command)
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
    command = click.option(
        "--extend-select",
        multiple=True,
        metavar="RULE",
        expose_value=False,
        callback=_keep(_EXTEND),
        help="Run these rules too, which the configuration leaves out.",
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


def occurrences_option(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--all-occurrences` to a command."""
    return click.option(
        "--all-occurrences",
        is_flag=True,
        help="Show a finding on every turn that it is found again, not only on the first.",
    )(command)


def load(folders: tuple[Path, ...] = (), policy: Path | None = None) -> Registry:
    """The registry, with the argument policies of a file in force. Raises click.ClickException in one line."""
    try:
        policies = load_policies(policy, RealDisk()) if policy is not None else NO_POLICIES
        return Registry.load(folders).under(policies)
    except (RuleError, PolicyError) as error:
        raise click.ClickException(str(error)) from error


def configuration() -> Config:
    """The configuration of this run. Raises click.ClickException in one line."""
    context = click.get_current_context(silent=True)
    given = context.meta if context is not None else {}
    if _CONFIG not in given:  # a command without the options
        return NO_CONFIG
    path = given[_CONFIG]
    if path is not None and given[_ISOLATED]:
        raise click.UsageError("--isolated reads no configuration and --config one; leave out one of them")
    try:
        return NO_CONFIG if given[_ISOLATED] else find(Path.cwd()) if path is None else load_config(path)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def selected(
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None = None,
    limits: Limits | None = None,
) -> Scopes:
    """The rules that the options and the configuration mean. Several may stand in one option, parted by commas."""
    return _scopes(configuration(), _layer(select, ignore), folders, policy, limits)


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
) -> tuple[Scopes, FixPolicy]:
    """The rules that the options and the configuration mean, and the fixes that may be made where no route matches."""
    config = configuration()
    if config.layer.fix != "unsafe":  # what a proxy leaves alone is repaired here: that is what the command is for
        config = dataclasses.replace(config, layer=dataclasses.replace(config.layer, fix="safe"))
    given = dataclasses.replace(
        _layer(select, ignore),
        fix="unsafe" if unsafe else None,
        fixable=_split(fixable) or None,
        unfixable=_split(unfixable) or None,
        clean_history=clean_history or None,
    )
    scopes = _scopes(config, given, folders, policy, limits)
    return scopes, scopes.default.permit


def _layer(select: tuple[str, ...], ignore: tuple[str, ...]) -> Layer:
    context = click.get_current_context(silent=True)
    extend = context.meta.get(_EXTEND, ()) if context is not None else ()
    return Layer(select=_split(select) or None, extend_select=_split(extend), ignore=_split(ignore))


def _scopes(
    config: Config, given: Layer, folders: tuple[Path, ...], policy: Path | None, limits: Limits | None
) -> Scopes:
    registry = load((*config.rules, *folders), policy or config.policy)
    try:
        given.check(registry)
    except RuleError as error:
        raise click.ClickException(f"--{error}") from error
    try:
        config.check(registry)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    limits = _limits(config, limits or Limits())
    return Scopes(Registry(tuple(rule.within(limits) for rule in registry.rules)), config.layer, config.routes, given)


def _limits(config: Config, given: Limits) -> Limits:
    """The times that were given; of those that were not, the configuration's."""
    context = click.get_current_context(silent=True)
    times = {}
    for field in dataclasses.fields(Limits):
        usual = context is None or context.get_parameter_source(field.name) is not ParameterSource.COMMANDLINE
        value: float = getattr(given, field.name)
        times[field.name] = config.time(field.name, value) if usual else value
    return Limits(**times)


def tell(message: str) -> None:
    """Chatter for a person: on stderr, so that results can be piped."""
    click.echo(message, err=True)


def tell_failure(culprit: str, error: Exception) -> None:
    tell(f"wirelint: {culprit} failed: {type(error).__name__}: {error} (its findings are missing; please report it)")


def fixes(rule: Rule) -> str:
    """How safe the fixes of a rule are, as tables show it; `show` for one that only reports."""
    return ", ".join(safeties(rule)) or "show"


def _split(selectors: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for selector in selectors for part in selector.split(",") if part.strip())
