"""The command line. One module per command, loaded when it is called."""

from __future__ import annotations

import importlib
import sys

import click
from click.shell_completion import CompletionItem

from wirelint import __version__
from wirelint.cli.guidance import WIDTH, Context, write_examples
from wirelint.text.escaping import guard
from wirelint.text.signs import settle

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
    "run": "Run a command and judge what it says to language models.",
    "doctor": "Find what is wrong with a set-up, and say the cure.",
    "mock": "Start a faulty LLM server.",
    "demo": "See it work: a faulty server, a real proxy, real SDKs.",
    "where": "Print where the addon, the rules or the captures are.",
    "new-rule": "Write the first draft of a rule.",
    "completion": "Print the script that completes wirelint in a shell.",
    "docs": "Bring the generated parts of the documentation up to date.",
}

_GROUPS = {
    "Watch traffic": ("run", "proxy", "doctor"),
    "Look at captures": ("check", "show", "report", "stats", "compare"),
    "Repair captures, pass them on": ("fix", "export", "case"),
    "Know the rules": ("rules", "rule", "new-rule"),
    "Try it out": ("demo", "mock"),
}
"""The commands by what one wants to do; those that stand nowhere come last."""

_EXITS = (("0", "all is well"), ("1", "something was found"), ("2", "wrong input, in one line on stderr"))
_NAMES = max(map(len, _COMMANDS))
_EXAMPLES = (
    ("see it work, without a key or a vendor", "wirelint demo"),
    ("watch a command and what it says to models", "wirelint run -- python agent.py"),
    ("watch a client live: point it at http://127.0.0.1:8080", "wirelint proxy --upstream https://api.openai.com"),
    ("what is wrong in captures, and who is to blame", "wirelint check captures/"),
    ("what a rule means", "wirelint rule xml-leak"),
)


class _Lazy(click.Group):
    """Imports a command's module when the command is used, so that `wirelint rule X` does not load mitmproxy."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"wirelint.cli.{name.replace('-', '_')}")
        command = getattr(module, name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Of commands the names and what they are for, without loading them."""
        commands = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(formatter, _EXAMPLES)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        placed = {name for names in _GROUPS.values() for name in names}
        others = tuple(name for name in _COMMANDS if name not in placed)
        for heading, names in {**_GROUPS, "More": others}.items():
            known = [(name, _COMMANDS[name]) for name in names if name in _COMMANDS]
            if known:
                with formatter.section(heading):
                    formatter.write_dl([(f"{name:<{_NAMES}}", text) for name, text in known])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl(_EXITS)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH})
@click.version_option(__version__, "-V", "--version", message="wirelint %(version)s")
def cli() -> None:
    """A linter for LLM wire traffic: what is wrong, and which layer is to blame.

    It sits between an agent and the API of its model, live inside mitmproxy or offline on captures.
    Each command tells more: wirelint COMMAND --help.
    """


def main() -> None:
    """Entry point. Wrong input is one line on stderr and exit status 2; nothing shows a traceback to a user."""
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
    except (click.Abort, KeyboardInterrupt):  # the latter while the shell waits for words to complete
        click.echo("wirelint: interrupted", err=True)
        status = 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing more can be said, and nothing is wrong.
        sys.stderr.close()
        status = 0
    return status if isinstance(status, int) else 0
