"""The command line. One module per command, loaded when it is called."""

from __future__ import annotations

import importlib
import sys

import click

from wirelint import __version__

_COMMANDS = {
    "check": "Judge captures: ours, mitmproxy flows, HAR, cassettes, session logs.",
    "export": "Write captures as HAR, as a flow file for mitmweb, or as JSONL.",
    "case": "Make a minimal redacted reproducer of one exchange.",
    "fix": "Repair captures, by the code that repairs live traffic.",
    "rules": "List the rules.",
    "rule": "Print the manual of a rule.",
    "show": "Show one exchange as a conversation, findings beside it.",
    "report": "Write captures as one HTML page.",
    "stats": "Score the models in captures: calls, schema errors, times, findings.",
    "compare": "Hold models against a reference run of the same requests.",
    "proxy": "Start mitmproxy with wirelint in front of an upstream.",
    "mock": "Start a faulty LLM server.",
    "demo": "See it work: a faulty server, a real proxy, real SDKs.",
    "where": "Print where the addon, the rules or the captures are.",
    "new-rule": "Write the first draft of a rule.",
    "docs": "Bring the generated parts of the documentation up to date.",
}


class _Lazy(click.Group):
    """Imports a command's module when the command is used, so that `wirelint rule X` does not load mitmproxy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"wirelint.cli.{name.replace('-', '_')}")
        command = getattr(module, name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="wirelint %(version)s")
def cli() -> None:
    """A linter for LLM wire traffic: what is wrong, and which layer is to blame.

    Live, inside mitmproxy:  wirelint proxy --upstream https://api.openai.com
    Offline, on captures:    wirelint check captures/
    """


def main() -> None:
    """Entry point. Wrong input is one line on stderr and exit status 2; nothing shows a traceback to a user."""
    try:
        status = cli.main(prog_name="wirelint", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        status = 0
    except click.ClickException as error:
        click.echo(f"wirelint: {' '.join(error.format_message().split())}", err=True)
        status = 2
    except click.Abort:
        click.echo("wirelint: interrupted", err=True)
        status = 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing more can be said, and nothing is wrong.
        sys.stderr.close()
        status = 0
    sys.exit(status if isinstance(status, int) else 0)
