"""The command line: help pages with examples that work, options grouped by purpose, and the meaning of each exit status.

A command's module is imported when the command runs, so `wirelint rule X` does not load mitmproxy.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from wirelint import __version__
from wirelint.rule import RuleError
from wirelint.tables import ConfigError, hint
from wirelint.text.escaping import guard, settle

WIDTH = 100
_OF_COMMANDS = ("examples", "exits", "own")


class _Formatter(click.HelpFormatter):
    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{click.style(f'{heading}:', bold=True)}\n")


class Context(click.Context):
    formatter_class = _Formatter


class Guided(click.Command):
    """A command with examples (purpose, command line), exit statuses, and headings for its own options (`own`)."""

    context_class = Context

    def __init__(
        self,
        *args: Any,
        examples: Sequence[Sequence[str]] = (),
        exits: Mapping[str, str] | None = None,
        own: Mapping[str, tuple[str, ...]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples, self.exits, self.own = examples, exits or {}, own or {}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Unusable rules and configurations are reported in one line, like wrong options."""
        try:
            return super().invoke(ctx)
        except (RuleError, ConfigError) as error:
            raise click.ClickException(str(error)) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings = {**self.own, **help_texts()["headings"]}
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*headings, "Options")}
        for param in self.get_params(ctx):
            line = param.get_help_record(ctx)
            if line is not None and (line[1] or isinstance(param, click.Option)):
                found = (heading for heading, names in headings.items() if not set(names).isdisjoint(param.opts))
                groups[next(found, "Options")].append(line)
        for heading, lines in groups.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(formatter, self.examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit status"):
            formatter.write_dl([*self.exits.items()])


def guided(name: str, **given: Mapping[str, Any]) -> Callable[[Callable[..., Any]], Guided]:
    """Make a function a `Guided` command of help.toml. `given`: members of parameters that only code knows."""
    from wirelint.cli.options import collected, parameters  # which the first screen does not need

    text = help_texts()[name]
    context = {"help_option_names": ["-h", "--help"], **text.get("context_settings", {})}
    texts = {key: text[key] for key in _OF_COMMANDS if key in text}
    make = click.command(cls=Guided, name=name, context_settings=context, params=parameters(name, given), **texts)
    return lambda command: make(collected(command))


@cache
def help_texts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))


def write_examples(formatter: click.HelpFormatter, examples: Sequence[Sequence[str]]) -> None:
    with formatter.section("Examples"):
        for purpose, line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{click.style(f'# {purpose}', dim=True)}\n")
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Entry(NamedTuple):
    """A command: its group on the help page, its module in `wirelint.cli`, its description."""

    group: str
    module: str
    about: str


_TEXTS = help_texts()
GROUPS: list[str] = _TEXTS["groups"]
EXAMPLES: list[list[str]] = _TEXTS["examples"]
COMMANDS = {
    name: Entry(text["group"], text["module"], text["about"])
    for name, text in _TEXTS.items()
    if isinstance(text, dict) and "module" in text
}
_EXITS = (("0", "success"), ("1", "something was found"), ("2", "wrong input, in one line on stderr"))


def command(name: str) -> click.Command:
    """Return the command of a name in `COMMANDS`."""
    made = getattr(importlib.import_module(f"wirelint.cli.{COMMANDS[name].module}"), name.replace("-", "_"))
    assert isinstance(made, click.Command)
    return made


class _Lazy(click.Group):
    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return command(name) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            cure = hint(args[0], COMMANDS) or "wirelint --help lists them"
            raise click.UsageError(f"no command {args[0]}; {cure}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(name, help=one.about) for name, one in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(formatter, EXAMPLES)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group):
                entries = ((name, entry) for name, entry in COMMANDS.items() if entry.group == group)
                formatter.write_dl([(f"{name:<{width}}", entry.about) for name, entry in entries])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl(_EXITS)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH})
@click.version_option(__version__, "-V", "--version", message="wirelint %(version)s")
def cli() -> None:
    """A linter for LLM wire traffic: what is wrong, and which layer is to blame.

    It sits between an agent and the API of its model, live inside mitmproxy or offline on captures.
    Help for one command: wirelint COMMAND --help.
    """


def main() -> None:
    """Entry point. Wrong input is one line on stderr and exit status 2; a user never sees a traceback."""
    settle(sys.stdout, sys.stderr)
    with guard():
        status = _run()
    sys.exit(status)


def _run() -> int:
    try:
        status = cli.main(prog_name="wirelint", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        status = 0
    except click.ClickException as error:
        click.echo(f"wirelint: {' '.join(error.format_message().split())}", err=True)
        status = 2
    except (click.Abort, KeyboardInterrupt):  # the latter while the shell waits for completions
        click.echo("wirelint: interrupted", err=True)
        status = 130
    except BrokenPipeError:
        # The reader of our output has exited (`| head`), which is not an error.
        sys.stderr.close()
        status = 0
    return status if isinstance(status, int) else 0
