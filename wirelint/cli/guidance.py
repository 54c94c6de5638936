"""Help pages with examples that work, options grouped by purpose, and the meaning of each exit status."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from wirelint.rule import RuleError
from wirelint.tables import ConfigError

WIDTH = 100
_TEXTS = ("examples", "exits", "own")


class _Formatter(click.HelpFormatter):
    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{click.style(f'{heading}:', bold=True)}\n")


class Context(click.Context):
    formatter_class = _Formatter


class Guided(click.Command):
    """A command with examples (purpose, command line) and the meaning of each exit status.

    `own`: headings for options of this command only, with the options.
    """

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


def guided(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Guided]:
    """Decorator that makes a function a `Guided` command with the help of that name in help.toml."""
    text = help_texts()[name]
    context = {"help_option_names": ["-h", "--help"], **settings.pop("context_settings", {})}
    texts = {key: text[key] for key in _TEXTS if key in text}
    return click.command(cls=Guided, name=name, context_settings=context, **texts, **settings)


@cache
def help_texts() -> dict[str, Any]:
    """Return the contents of help.toml."""
    return tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))


def write_examples(formatter: click.HelpFormatter, examples: Sequence[Sequence[str]]) -> None:
    with formatter.section("Examples"):
        for purpose, line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{click.style(f'# {purpose}', dim=True)}\n")
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
