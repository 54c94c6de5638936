"""`wirelint doctor`: what is wrong with a set-up, and the cure, a line each."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.text import Text

from wirelint.cli.guidance import guided
from wirelint.launch.authorities import CA_FILE, write_trust
from wirelint.launch.doctor import clients, surroundings
from wirelint.launch.doctor.check import Check, ok, problem
from wirelint.launch.proxy import Place, PrivateProxy, StartError
from wirelint.launch.variables import PROXIES, environment
from wirelint.view.screen import Screen

_BASE = "https://doctor.wirelint.invalid:443"
_MARKS = {"ok": ("ok", "green"), "problem": ("problem", "bold red"), "skipped": ("skipped", "dim")}


@guided(
    examples=(
        ("this machine, and every kind of client on it", "wirelint doctor"),
        ("the kinds of client that a command may use", "wirelint doctor -- claude"),
    ),
    exits={0: "all is well", 1: "there is a problem"},
    context_settings={"allow_interspersed_args": False},
)
@click.option("--captures", default="captures", show_default=True, metavar="DIR", help="Where captures would go.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(1, 65535), help="A port to be looked at.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of wirelint or of mitmproxy.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print what is found.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] [COMMAND]")
def doctor(captures: str, port: int, settings: tuple[str, ...], output_format: str, command: tuple[str, ...]) -> int:
    """Find what is wrong with a set-up, and say the cure.

    Starts a private proxy, and has every kind of client that is there (Python's urllib, requests and httpx, Node, curl;
    with a COMMAND those that it may use) send a request through it: with the environment as it is where that names a
    proxy, else with the one that `wirelint run` would make. Nothing is sent to any vendor, and COMMAND is not run.
    """
    checks = []
    console = Screen(sys.stdout)
    for check in _checks(captures, port, settings, command):
        checks.append(check)
        if output_format == "text":
            console.print(_line(check), soft_wrap=True)
    problems = sum(check.state == "problem" for check in checks)
    if output_format == "json":
        click.echo(orjson.dumps([asdict(check) for check in checks], option=orjson.OPT_INDENT_2))
    else:
        console.print(f"{problems} problem{'' if problems == 1 else 's'}" if problems else "all is well", style="bold")
    return 1 if problems else 0


def _line(check: Check) -> Text:
    word, style = _MARKS[check.state]
    line = Text.assemble((f"{word:<8}", style), (f"{check.name}: ", "bold"), check.found)
    return line.append(f"; cure: {check.cure}", "cyan") if check.cure else line


def _checks(captures: str, port: int, settings: Sequence[str], command: Sequence[str]) -> Iterator[Check]:
    given = dict(os.environ)
    yield from surroundings.versions()
    yield surroundings.captures(captures)
    yield surroundings.port(port, given)
    yield surroundings.hidden_hosts(given)
    yield from surroundings.base_url_variables(given)
    with tempfile.TemporaryDirectory(prefix="wirelint-doctor-") as scratch:
        folder = Path(scratch)
        options = ["connection_strategy=lazy", "wirelint_captures=", *settings]
        told = {**given, "WIRELINT_DOCTOR": "1"}
        with PrivateProxy([_BASE], options, folder / "log", environment=told) as proxy:
            try:
                place = proxy.start()
            except StartError as error:
                yield problem("addon", str(error), "put that option right, on the command line or in config.yaml")
                return
            yield ok("addon", f"mitmproxy starts with wirelint in it (its files: {place.confdir})")
            yield from surroundings.authority(place.confdir)
            wrong = False
            for check in surroundings.proxy_variables(given, place.confdir):
                wrong = wrong or check.state == "problem"
                yield check
            # A proxy that does not work is one problem; clients are tried as if it were not named.
            yield from clients.try_all(command, _trial(without_proxies(given) if wrong else given, place, folder))


def without_proxies(given: dict[str, str]) -> dict[str, str]:
    """The environment without the variables that name a proxy."""
    names = {form for name in PROXIES for form in (name, name.lower())}
    return {name: value for name, value in given.items() if name not in names}


def _trial(given: dict[str, str], place: Place, folder: Path) -> clients.Trial:
    """With a proxy in the environment it stays as it is, led to ours; it has the same authority."""
    authority = place.confdir / CA_FILE
    set_already = [form for name in PROXIES for form in (name, name.lower()) if given.get(form)]
    if set_already:
        ours = dict.fromkeys(set_already, f"http://127.0.0.1:{place.port}")
        return clients.Trial({**given, **ours}, authority)
    made = environment(given, proxy=place.port, bases={}, trust=write_trust(folder, given, authority))
    return clients.Trial(made, authority, place.bases[_BASE])
