"""Options that several commands share: paths, the choice of rules, output; their completion; and messages on stderr."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from wirelint.capture.readers.storage import place_of
from wirelint.registry import Registry, RuleError, shipped_names
from wirelint.rule import Limits
from wirelint.settings import NO_CONFIG, Config, Layer, Scopes, find, load_rules, split
from wirelint.settings import load as load_config
from wirelint.text.escaping import guarded

Command = Callable[..., Any]
JUDGE_KEY = "WIRELINT_JUDGE_KEY"
"""Environment variable with the key of the judge's endpoint."""
_MOST = 500
"""Exchanges of a capture that are read for completion, while the user waits."""
_TIMES = tuple(field.name for field in fields(Limits))


# --- messages ---------------------------------------------------------------------------------------------------------


def inform(message: str) -> None:
    """Print a message for a person on stderr; stdout is for results."""
    click.echo(message, err=True)


def failure_text(culprit: str, error: Exception) -> str:
    """Return the message about a failure of a rule or of a reader."""
    return f"wirelint: {culprit} failed: {type(error).__name__}: {error} (its findings are missing; please report it)"


def inform_failure(culprit: str, error: Exception) -> None:
    """Print the failure of a rule or of a reader."""
    inform(failure_text(culprit, error))


# --- shell completion -------------------------------------------------------------------------------------------------


complete_paths = click.Path().shell_complete


def complete_rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of rules, or codes if a code was begun; the last of several separated by commas."""
    before, comma, begun = incomplete.rpartition(",")
    given, names = set(before.split(",")), shipped_names().items()
    words = [(code, name) if begun[:1].isupper() else (name, code) for name, code in names if name not in given]
    words.append(("ALL", "every rule"))
    return [CompletionItem(f"{before}{comma}{word}", help=about) for word, about in words if word.startswith(begun)]


def complete_exchanges(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids in the capture that the first argument names."""
    target = ctx.params.get("target")
    if not isinstance(target, str) or not Path(target).exists():
        return []
    from wirelint.capture.readers import Problem, read

    # The command reports errors in a capture; here an error message would appear in the command line being typed.
    with contextlib.suppress(Exception):
        items = itertools.islice(read([target]), _MOST)
        ids = dict.fromkeys(item.id for item in items if not isinstance(item, Problem))
        return [CompletionItem(name) for name in ids if name.startswith(incomplete)]
    return []


# --- the choice of rules ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selection:
    """The rules that options and configuration choose. Errors have a message of one line."""

    select: Sequence[str] = ()
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    folders: tuple[Path, ...] = ()
    config: Path | None = None
    isolated: bool = False
    policy: Path | None = None
    times: tuple[tuple[str, float], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker process, perhaps on another machine, needs to load the rules: they cannot be pickled."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "configuration": self.configuration,
        }

    def scopes(self) -> Scopes:
        """Return the rules in force. A selector option may hold several names separated by commas."""
        return self._scopes(self.configuration, self._layer())

    def outlines(self) -> Scopes:
        """Return the rules in force, for a list: they report nothing."""
        return self._scopes(self.configuration, self._layer(), self._load(outlines=True))

    def fixing(
        self, *, unsafe: bool, fixable: Sequence[str], unfixable: Sequence[str], clean_history: bool | None
    ) -> Scopes:
        """Return the rules in force, with the fixes that are allowed."""
        config = self.configuration
        if config.layer.fix != "unsafe":  # `fix = "off"` is for proxies; this command was started to fix
            config = replace(config, layer=replace(config.layer, fix="safe"))
        given = replace(
            self._layer(),
            fix="unsafe" if unsafe else None,
            fixable=split(fixable) or None,
            unfixable=split(unfixable) or None,
            clean_history=clean_history,
        )
        return self._scopes(config, given)

    def names(self, selectors: Sequence[str]) -> frozenset[str]:
        """Return the names of the rules that selectors match."""
        return frozenset(rule.name for one in split(selectors) for rule in self._registry.find(one))

    @cached_property
    def configuration(self) -> Config:
        if self.config is not None and self.isolated:
            raise click.UsageError("--isolated reads no configuration and --config one; leave out one of them")
        if self.isolated:
            return NO_CONFIG
        return find(Path.cwd()) if self.config is None else load_config(self.config)

    @cached_property
    def _registry(self) -> Registry:
        return self._load()

    def _load(self, *, outlines: bool = False) -> Registry:
        config = self.configuration
        return load_rules((*config.rules, *self.folders), self.policy or config.policy, outlines=outlines)

    def _layer(self) -> Layer:
        select, extend, ignore = map(split, (self.select, self.extend_select, self.ignore))
        return Layer(select=select or None, extend_select=extend, ignore=ignore)

    def _scopes(self, config: Config, given: Layer, registry: Registry | None = None) -> Scopes:
        registry = registry or self._registry
        try:
            given.check(registry)
        except RuleError as error:
            raise click.ClickException(f"--{error}") from error
        config.check(registry)
        return config.scopes(registry, given, dict(self.times))


def _rule_option(name: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, multiple=True, metavar="RULE", shell_complete=complete_rules, help=text)


folders_option = click.option(
    "--rules", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Folder with your own rules, in addition to the shipped ones.",
)  # fmt: skip
policy_option = click.option(
    "--policy", type=click.Path(path_type=Path), metavar="FILE",
    help="Apply the argument policies in this TOML file.",
)  # fmt: skip
_RULES = (
    _rule_option("--select", "Run only these rules: names, codes, code prefixes or ALL."),
    _rule_option("--extend-select", "Also run these rules, which the configuration leaves out."),
    _rule_option("--ignore", "Leave out these rules: names, codes or code prefixes."),
    folders_option,
    click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE",
        help="Configuration file instead of the nearest wirelint.toml or pyproject.toml.",
    ),
    click.option("--isolated", is_flag=True, help="Read no configuration."),
)  # fmt: skip


_LIMITS = tuple(
    click.option(
        f"--{name}", type=click.FloatRange(0, min_open=True), default=getattr(Limits(), name), show_default=True,
        metavar="SECONDS", help=text,
    )
    for name, text in (
        ("stall", "Report streams silent for longer than this."),
        ("burst", "Report streams that arrive all at once after a silence longer than this."),
        ("hang", "Report requests without a response for longer than this."),
    )
)  # fmt: skip


def rule_options(*, policy: bool = False, limits: bool = False) -> Callable[[Command], Command]:
    """Add the options that choose rules; the command receives them as one argument, `selection`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            times = {name: given.pop(name) for name in _TIMES if limits}
            chosen = {field.name: given.pop(field.name) for field in fields(Selection) if field.name in given}
            set_ = tuple((name, time) for name, time in times.items() if source(name) is ParameterSource.COMMANDLINE)
            return command(selection=Selection(**chosen, times=set_), **given)

        options = (*_RULES, *((policy_option,) if policy else ()), *(_LIMITS if limits else ()))
        for option in reversed(options):
            call = option(call)
        return call

    return decorate


def fix_options(command: Command) -> Command:
    """Add `--unsafe-fixes`, `--fixable`, `--unfixable` and `--clean-history/--keep-history`."""
    for option in (
        click.option(
            "--clean-history/--keep-history", default=None,
            help="With unsafe fixes, remove leaked markup from earlier turns, or keep it there. Default: remove.",
        ),
        _rule_option("--unfixable", "Do not fix findings of these rules."),
        _rule_option("--fixable", "Fix only findings of these rules: names, codes, prefixes."),
        click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what the client will do."),
    ):  # fmt: skip
        command = option(command)
    return command


def judge_options(*, fails: bool = False) -> Callable[[Command], Command]:
    """Add `--judge` and its options; the command receives them as one argument, `judge`. `fails`: also `--judge-fails`."""
    ask = (
        f"Ask the OpenAI-compatible endpoint at URL about replies that the rules leave open. Its key is in {JUDGE_KEY}."
    )
    most = "Most calls of the endpoint; answers in the cache are free."
    options = (
        click.option("--judge", metavar="URL", help=ask),
        click.option("--judge-model", default="default", show_default=True, metavar="NAME", help="The model to ask."),
        click.option("--judge-budget", type=click.IntRange(0), default=50, show_default=True, metavar="N", help=most),
        click.option("--judge-fails", is_flag=True, help="Count the findings of the judge for the exit status."),
    )

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(
            judge: str | None, judge_model: str, judge_budget: int, judge_fails: bool = False, **given: Any
        ) -> Any:
            if judge is None and (judge_fails or judge_model != "default"):
                raise click.UsageError("--judge-model and --judge-fails need --judge URL")
            if judge is None:
                return command(judge=None, **given)
            from wirelint.cli.judge import Judge  # the library of HTTP clients, which few runs need

            return command(judge=Judge(judge, judge_model, judge_budget, fails=judge_fails), **given)

        for option in reversed(options if fails else options[:-1]):
            call = option(call)
        return call

    return decorate


# --- input and output -------------------------------------------------------------------------------------------------


paths_argument = click.argument(
    "paths", type=place_of, nargs=-1, required=True, metavar="PATH...", shell_complete=complete_paths
)
occurrences_option = click.option(
    "--all-occurrences", is_flag=True, help="Show a finding on every turn that repeats it, not only on the first."
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1), metavar="N",
    help="Processes that share the files. Default: one for each core; 1 for small captures.",
)  # fmt: skip
output_option = click.option("-o", "--output", metavar="FILE", help="Write the results to this file.")
force_option = click.option("--force", is_flag=True, help="Replace an existing output.")


def format_option(names: Sequence[str], text: str = "Format of the output.") -> Callable[[Command], Command]:
    """Add `--output-format`; the first name is the default."""
    return click.option("--output-format", type=click.Choice(names), default=names[0], show_default=True, help=text)


@contextlib.contextmanager
def results(path: str | None) -> Iterator[TextIO]:
    """Yield standard output, or a file that replaces an existing one if the block ends well."""
    if path is None or path == "-":
        yield sys.stdout
        return
    is_special = os.path.lexists(path) and not os.path.isfile(path)  # a pipe, a terminal
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(0, "a folder")
        if os.path.isfile(path):
            with open(path, "ab"):  # it may be read-only
                pass
        file: Any = click.open_file(os.path.realpath(path), "w", encoding="utf-8", atomic=not is_special)
    except OSError as error:
        message = f"--output {path}: {error.strerror or error}; name a place for a file"
        raise click.ClickException(message) from error
    with file:
        yield guarded(file)
