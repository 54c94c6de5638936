"""The parameters of commands, made from help.toml; the choice of rules; completion; output; and messages on stderr."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from wirelint.capture.storage import place_of
from wirelint.cli import help_texts
from wirelint.registry import Registry, RuleError, shipped_names
from wirelint.rule import Limits
from wirelint.settings import NO_CONFIG, Config, Layer, Scopes, find, load_rules, split
from wirelint.settings import load as load_config
from wirelint.text.escaping import guarded

if TYPE_CHECKING:
    from wirelint.cli.judge import Judge

Command = Callable[..., Any]
JUDGE_KEY = "WIRELINT_JUDGE_KEY"
"""Environment variable with the key of the judge's endpoint."""
_MOST = 500
"""Exchanges of a capture that are read for completion, while the user waits."""
_TIMES = tuple(field.name for field in fields(Limits))


def inform(message: str) -> None:
    """Print a message for a person on stderr; stdout is for results."""
    click.echo(message, err=True)


def write_capture(lines: Iterable[bytes]) -> None:
    """Write the lines of a capture to standard output; on a terminal through its guard, elsewhere unchanged."""
    if sys.stdout.isatty():
        sys.stdout.writelines(line.decode("utf-8", "replace") for line in lines)
    else:
        sys.stdout.buffer.writelines(lines)
    sys.stdout.flush()


def failure_text(culprit: str, error: Exception) -> str:
    """Return the message about a failure of a rule or of a reader."""
    return f"wirelint: {culprit} failed: {type(error).__name__}: {error} (its findings are missing; please report it)"


def inform_failure(culprit: str, error: Exception) -> None:
    inform(failure_text(culprit, error))


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
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"configuration": self.configuration}

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
        given = replace(self._layer(), fix="unsafe" if unsafe else None, clean_history=clean_history)
        given = replace(given, fixable=split(fixable) or None, unfixable=split(unfixable) or None)
        return self._scopes(config, given)

    def names(self, selectors: Sequence[str]) -> frozenset[str]:
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


# --- parameters of commands -------------------------------------------------------------------------------------------


_TYPES: Mapping[str, Any] = {
    "path": click.Path(path_type=Path),
    "place": place_of,
    "raw": click.UNPROCESSED,
    "int": int,
}
_CLASSES: Mapping[str, Callable[..., click.ParamType[Any]]] = {
    "FloatRange": click.FloatRange,
    "IntRange": click.IntRange,
    "Path": functools.partial(click.Path, path_type=Path),
}
_COMPLETIONS = {"paths": click.Path().shell_complete, "rules": complete_rules, "exchanges": complete_exchanges}


def parameters(command: str, given: Mapping[str, Mapping[str, Any]]) -> list[click.Parameter]:
    """Return the arguments and options of a command, which help.toml lists. `given`: further members, by parameter."""
    shared, listed = help_texts()["params"], help_texts()[command].get("params", {})
    names = ((name, own) for key, own in listed.items() for name in _spread(key))
    return [_parameter(name, {**shared.get(name, {}), **own, **given.get(name, {})}) for name, own in names]


def _spread(key: str) -> Iterator[str]:
    """Yield the parameters of a set such as `@rules`; a parameter stands for itself."""
    if not key.startswith("@"):
        yield key
        return
    for one in help_texts()["sets"][key[1:]]:
        yield from _spread(one)


def _parameter(name: str, members: dict[str, Any]) -> click.Parameter:
    flags = members.pop("flags", f"--{name.replace('_', '-')}").split()
    kind, choices = members.pop("type", None), members.pop("choices", None)
    match kind:
        case str():
            kind = _TYPES[kind]
        case dict():
            ((class_, arguments),) = kind.items()
            kind = _CLASSES[class_](**arguments)
    members["type"] = kind if choices is None else click.Choice(choices)
    members["shell_complete"] = _COMPLETIONS.get(members.pop("complete", ""))
    if members.pop("unset", False):
        members["default"] = None
    if name in _TIMES:
        members["default"] = getattr(Limits(), name)
    if members.pop("argument", False):
        return click.Argument([name], **members)
    return click.Option([*flags, name], **members)


def collected(command: Command) -> Command:
    """Return a function of the parameters of a command that makes its arguments `selection` and `judge` of theirs."""
    wanted = inspect.signature(command).parameters

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        for name, collect in (("selection", _collect_selection), ("judge", _collect_judge)):
            if name in wanted:
                given[name] = collect(given)
        return command(**given)

    return call


def _collect_selection(given: dict[str, Any]) -> Selection:
    source = click.get_current_context().get_parameter_source
    times = {name: given.pop(name) for name in _TIMES if name in given}
    chosen = {field.name: given.pop(field.name) for field in fields(Selection) if field.name in given}
    set_ = tuple((name, time) for name, time in times.items() if source(name) is ParameterSource.COMMANDLINE)
    return Selection(**chosen, times=set_)


def _collect_judge(given: dict[str, Any]) -> Judge | None:
    url, model, budget = (given.pop(name) for name in ("judge", "judge_model", "judge_budget"))
    fails = given.pop("judge_fails", False)
    if url is None and (fails or model != "default"):
        raise click.UsageError("--judge-model and --judge-fails need --judge URL")
    if url is None:
        return None
    from wirelint.cli.judge import Judge  # the library of HTTP clients, which few runs need

    return Judge(url, model, budget, fails=fails)


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
