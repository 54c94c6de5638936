"""The command line. A command's module is imported when the command runs, so `wirelint rule X` does not load mitmproxy."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from wirelint import __version__
from wirelint.cli.guidance import WIDTH, Context, write_examples
from wirelint.text.escaping import guard
from wirelint.text.signs import settle


class Entry(NamedTuple):
    """A command: its group on the help page, the module of `wirelint.cli` that has it, what it does."""

    group: str
    module: str
    about: str


_WATCH, _INSPECT, _FIX, _RULES, _TRY = GROUPS = (
    "Watch traffic",
    "Inspect captures",
    "Fix and share captures",
    "Learn about the rules",
    "Try it out",
)
_MORE = "More"
COMMANDS = {
    "check": Entry(_INSPECT, "check", "Check captures: ours, mitmproxy flows, HAR, cassettes, session logs."),
    "export": Entry(_FIX, "export", "Write captures as HAR, as a flow file for mitmweb, or as JSONL."),
    "case": Entry(_FIX, "case", "Make a minimal redacted reproducer of one exchange."),
    "fix": Entry(_FIX, "fix", "Fix captures with the code that fixes live traffic."),
    "rules": Entry(_RULES, "rules", "List the rules."),
    "rule": Entry(_RULES, "rules", "Print the manual of a rule."),
    "show": Entry(_INSPECT, "show", "Show one exchange as a conversation with its findings."),
    "report": Entry(_INSPECT, "report", "Write captures as one HTML page."),
    "stats": Entry(_INSPECT, "report", "Score the models in captures: calls, schema errors, times, findings."),
    "compare": Entry(_INSPECT, "report", "Compare models with a reference run of the same requests."),
    "proxy": Entry(_WATCH, "run", "Start mitmproxy with wirelint in front of an upstream."),
    "run": Entry(_WATCH, "run", "Run a command and check its traffic with language models."),
    "doctor": Entry(_WATCH, "run", "Diagnose the set-up and suggest fixes."),
    "mock": Entry(_TRY, "mock", "Start a faulty LLM server."),
    "demo": Entry(_TRY, "demo", "See it work: a faulty server, a real proxy, real SDKs."),
    "where": Entry(_MORE, "rules", "Print the path of the addon, the rules or the captures."),
    "new-rule": Entry(_RULES, "rules", "Write the first draft of a rule."),
    "completion": Entry(_MORE, "completion", "Print the script that completes wirelint in a shell."),
    "docs": Entry(_MORE, "docs", "Update the generated parts of the documentation."),
}
_EXITS = (("0", "success"), ("1", "something was found"), ("2", "wrong input, in one line on stderr"))
EXAMPLES = (
    ("see it work, without a key or a vendor", "wirelint demo"),
    ("watch a command and its traffic with models", "wirelint run -- python agent.py"),
    ("watch a client live: point it at http://127.0.0.1:8080", "wirelint proxy --upstream https://api.openai.com"),
    ("what is wrong in captures, and which layer is to blame", "wirelint check captures/"),
    ("what a rule means", "wirelint rule xml-leak"),
)


def command(name: str) -> click.Command:
    """The command of a name in `COMMANDS`."""
    made = getattr(importlib.import_module(f"wirelint.cli.{COMMANDS[name].module}"), name.replace("-", "_"))
    assert isinstance(made, click.Command)
    return made


class _Lazy(click.Group):
    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return command(name) if name in COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing them."""
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
        for group in (*GROUPS, _MORE):
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
