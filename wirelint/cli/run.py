"""`wirelint run -- COMMAND`: a command, and a proxy with wirelint that is its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from wirelint.cli.guidance import guided
from wirelint.cli.selection import tell
from wirelint.launch import child, plan
from wirelint.launch.authorities import CA_FILE, write_trust, write_upstream
from wirelint.launch.proxy import Place, PrivateProxy, StartError
from wirelint.launch.summary import Summary
from wirelint.launch.variables import BASE_URLS, AddressError, chained, environment, read_target


@guided(
    examples=(
        ("an agent", "wirelint run -- claude"),
        ("a program, with what can be repaired repaired", "wirelint run --fix unsafe -- python agent.py"),
        ("a model server on this machine", "wirelint run --loopback -- python agent.py"),
        (
            "a client that reads a variable of its own",
            "wirelint run --base-url MY_API=https://llm.example/v1 -- ./client",
        ),
    ),
    exits={
        2: "we could not start",
        126: "the command cannot be run",
        127: "there is no such command",
        128: "and the number of a signal: it ended the command; else the command's own status",
    },
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--mode",
    type=click.Choice(["auto", "proxy", "base-url"]),
    default="auto",
    show_default=True,
    help="How the command is brought to use the proxy: by proxy variables, by base URLs, or by what it needs.",
)
@click.option(
    "--base-url",
    "asked",
    multiple=True,
    metavar="NAME[=URL]",
    help="Set this variable to a port that leads to URL: --base-url MY_API=https://llm.example/v1.",
)
@click.option("--loopback", is_flag=True, help="See traffic to servers on this machine as well: taken out of NO_PROXY.")
@click.option(
    "--fix", type=click.Choice(["safe", "unsafe"]), help="Repair traffic while it passes; `unsafe`: all that can be."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="An option of wirelint or of mitmproxy.")
@click.option(
    "--captures",
    default="captures",
    show_default=True,
    metavar="DIR",
    help="Where the captures go; empty writes none.",
)
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where the live lines go.")
@click.option("--live", is_flag=True, help="Print the live lines on stderr, among what the command prints.")
@click.option(
    "--drain",
    type=click.FloatRange(0, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long exchanges may go on after the command has ended.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing of our own unless something goes wrong.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND [ARGS]...")
def run(
    mode: plan.Mode,
    asked: tuple[str, ...],
    loopback: bool,
    fix: str | None,
    settings: tuple[str, ...],
    captures: str,
    log: Path | None,
    live: bool,
    drain: float,
    quiet: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command and judge what it says to language models.

    A private mitmproxy with wirelint starts on a free port, the command is given the variables that lead it there and make
    it trust the proxy, and a summary stands at the end, on stderr. Terminal, input and output are the command's own. Only
    exchanges with models and MCP servers are judged and written down; all else passes.
    """
    if live and log is not None:
        raise click.UsageError("--live prints the lines that --log FILE would take; choose one")
    try:
        routes = plan.routes(mode, command[0], os.environ, _read_pairs(asked))
        chain, login = chained(os.environ) or ("", "")
    except AddressError as error:
        raise click.UsageError(str(error)) from error
    since = datetime.now(UTC)
    options = [f"wirelint_captures={captures}", *([f"wirelint_fix={fix}"] if fix else []), *settings]
    with tempfile.TemporaryDirectory(prefix="wirelint-run-") as scratch:
        folder = Path(scratch)
        if not any(option.startswith("ssl_verify_upstream_trusted_ca=") for option in settings):
            options.insert(0, f"ssl_verify_upstream_trusted_ca={write_upstream(folder, os.environ)}")
        file = None if live else log or folder / "wirelint.log"
        origins = sorted({target.origin for target in routes.bases.values()})
        try:
            with PrivateProxy(origins, options, file, chain=chain, login=login) as proxy:
                place = proxy.start()
                if not quiet:
                    tell(_opening(routes, place))
                made = _environment(routes, place, folder, loopback)
                status = child.run(command, made)
                survived = proxy.alive
                proxy.stop(drain)
        except (StartError, OSError) as error:
            raise click.ClickException(str(error)) from error
        except child.CommandError as error:
            tell(f"wirelint: {error}")
            return error.status
        parts = _parts(settings, captures, proxy.pid, since)
        if not survived:
            tell(f"wirelint: mitmproxy ended before the command did: {proxy.last_words()}")
        if log is None and file is not None and parts:
            shutil.copy(file, parts[0] / "wirelint.log")
    if not quiet:
        for line in _closing(parts, captures, command):
            tell(line)
    return status


def _read_pairs(asked: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in asked:
        name, _, url = pair.partition("=")
        url = url or os.environ.get(name, "") or BASE_URLS.get(name, "")
        if not name or not url:
            raise click.UsageError(f"--base-url {pair}: where does it lead? Write {name or 'NAME'}=https://…")
        if "://" not in url and "OLLAMA" not in name:  # Ollama's own may be an address alone
            raise click.UsageError(f"--base-url {pair}: {url} is no URL; write {name}=https://{url}")
        found[name] = url
    return found


def _environment(routes: plan.Routes, place: Place, folder: Path, loopback: bool) -> dict[str, str]:
    return environment(
        os.environ,
        proxy=place.port if routes.proxied else None,
        bases={name: (target, place.bases[target.origin]) for name, target in routes.bases.items()},
        trust=write_trust(folder, os.environ, place.confdir / CA_FILE),
        loopback=loopback,
    )


def _opening(routes: plan.Routes, place: Place) -> str:
    ways = [f"proxy at port {place.port}"] if routes.proxied else []
    usual = {name: read_target(name, url) for name, url in BASE_URLS.items()}
    names = [
        name if usual.get(name) == target else f"{name} ({target.origin})" for name, target in routes.bases.items()
    ]
    if names:
        ways.append(f"base URLs in {', '.join(names)}")
    return f"wirelint: {'; '.join(ways)}"


def _parts(settings: Sequence[str], captures: str, pid: int, since: datetime) -> list[Path]:
    """The folders that this run has written. They are named by the time and the process that wrote."""
    given = [value for name, _, value in (one.partition("=") for one in settings) if name == "wirelint_captures"]
    where = (given or [captures])[-1]
    if not where:
        return []
    named = re.compile(rf"(\d+T\d+Z)-{pid}(?:-\d+)?")
    found = ((path, named.fullmatch(path.name)) for path in Path(where).expanduser().glob(f"*Z-{pid}*"))
    return sorted(path for path, match in found if match and match[1] >= f"{since:%Y%m%dT%H%M%SZ}")


def _closing(parts: list[Path], captures: str, command: Sequence[str]) -> Iterator[str]:
    summary = Summary.of(parts)
    if not summary.exchanges:
        if captures:
            yield "wirelint: no exchange with a model was seen"
            yield f"next: wirelint doctor -- {shlex.quote(command[0])}"
        return
    first, *more = summary.lines()
    yield f"wirelint: {first}"
    yield from more
    yield f"captures: {' '.join(str(part) for part in parts)}"
    yield f"next: wirelint show {parts[-1]}" + (f", wirelint rule {summary.worst}" if summary.rules else "")
