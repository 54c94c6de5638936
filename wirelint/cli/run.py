"""`wirelint run`, `proxy` and `doctor`: a private proxy for a command, mitmproxy with the addon, a check of the set-up."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import orjson
from rich.text import Text

from wirelint.capture.format import SHIP_MARK, read_lines
from wirelint.cli import guided
from wirelint.cli.options import inform
from wirelint.jsonvalues import mappings
from wirelint.launch import environment as env
from wirelint.launch.environment import BASE_URLS, AddressError
from wirelint.launch.processes import CommandError, Place, PrivateProxy, StartError, require_command, run_command
from wirelint.model import Json
from wirelint.prices import Spending, Tokens, cost, spending_line
from wirelint.rule import SEVERITIES
from wirelint.text.escaping import counted, no_guard
from wirelint.view.findings import count_by_severity
from wirelint.view.screen import Screen


@guided("run")
def run(
    mode: env.Mode,
    asked: tuple[str, ...],
    loopback: bool,
    fix: str | None,
    settings: tuple[str, ...],
    captures: str,
    ship: str | None,
    log: Path | None,
    live: bool,
    dashboard: bool,
    drain: float,
    quiet: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command and check its traffic with language models.

    A private mitmproxy with wirelint starts on a free port. The command gets variables that lead it there and make it
    trust the proxy; a summary follows on stderr. Terminal, input and output stay the command's own. Only exchanges with
    models and MCP servers are checked and captured; all other traffic passes through.
    """
    if live and log is not None:
        raise click.UsageError("--live and --log FILE exclude each other; choose one")
    try:
        routes = env.routes(mode, command[0], os.environ, _read_pairs(asked))
        chain, login = env.proxy_in(os.environ) or ("", "")
    except AddressError as error:
        raise click.UsageError(str(error)) from error
    options = _options(captures, fix, ship, settings, dashboard=dashboard)
    with tempfile.TemporaryDirectory(prefix="wirelint-run-") as scratch:
        folder = Path(scratch)
        if not any(option.startswith("ssl_verify_upstream_trusted_ca=") for option in settings):
            options.insert(0, f"ssl_verify_upstream_trusted_ca={env.write_upstream(folder, os.environ)}")
        file = None if live else log or folder / "wirelint.log"
        origins = sorted({target.origin for target in routes.bases.values()})
        try:
            require_command(command[0])
            with PrivateProxy(origins, options, file, chain=chain, login=login) as proxy:
                place = proxy.start()
                if not quiet:
                    inform(_opening(routes, place))
                if place.notice:  # also with --quiet: without its address the page cannot be opened
                    inform(place.notice)
                status = run_command(command, _environment(routes, place, folder, loopback))
                survived = proxy.alive
                complaint = proxy.stop(drain, totals=live)
        except (StartError, OSError) as error:
            raise click.ClickException(str(error)) from error
        except CommandError as error:
            inform(f"wirelint: {error}")
            return error.status
        parts = _parts(settings, captures, proxy.runs)
        if complaint:
            inform(f"wirelint: {complaint}")
        if not survived:
            inform(f"wirelint: mitmproxy ended before the command did: {proxy.last_log_line()}")
        if log is None and file is not None and parts:
            shutil.copy(file, parts[0] / "wirelint.log")
    is_blind = routes.proxied and not loopback
    for line in () if quiet else closing(parts, captures, command, is_blind):
        inform(line)
    return status


def _options(
    captures: str, fix: str | None, ship: str | None, settings: Sequence[str], *, dashboard: bool
) -> list[str]:
    """Return the options of mitmproxy: the command's own, and `settings`."""
    values = {"captures": captures, "fix": fix, "ship": ship}
    options = [f"wirelint_{name}={value}" for name, value in values.items() if value or name == "captures"]
    options += settings
    if dashboard and not any(option.startswith("wirelint_dashboard=") for option in settings):
        options.append("wirelint_dashboard=on")
    return options


def _read_pairs(asked: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in asked:
        name, _, url = pair.partition("=")
        url = url or os.environ.get(name, "") or BASE_URLS.get(name, "")
        if not name or not url:
            raise click.UsageError(f"--base-url {pair}: the URL is missing; write {name or 'NAME'}=https://…")
        if "://" not in url and "OLLAMA" not in name:  # OLLAMA_HOST may be an address without a scheme
            raise click.UsageError(f"--base-url {pair}: {url} is not a URL; write {name}=https://{url}")
        found[name] = url
    return found


def _environment(routes: env.Routes, place: Place, folder: Path, loopback: bool) -> dict[str, str]:
    proxy = place.port if routes.proxied else None
    bases = {name: (target, place.bases[target.origin]) for name, target in routes.bases.items()}
    trust = env.write_trust(folder, os.environ, place.confdir / env.CA_FILE)
    return env.environment(os.environ, proxy=proxy, bases=bases, trust=trust, loopback=loopback)


def _opening(routes: env.Routes, place: Place) -> str:
    ways = [f"proxy at port {place.port}"] if routes.proxied else []
    usual = {name: env.read_target(name, url) for name, url in BASE_URLS.items()}
    names = [name if usual.get(name) == one else f"{name} ({one.origin})" for name, one in routes.bases.items()]
    if names:
        ways.append(f"base URLs in {', '.join(names)}")
    return f"wirelint: {'; '.join(ways)}"


def _parts(settings: Sequence[str], captures: str, runs: Sequence[str]) -> list[Path]:
    given = [value for name, _, value in (one.partition("=") for one in settings) if name == "wirelint_captures"]
    where = Path((given or [captures])[-1]).expanduser()
    return sorted(path for run in runs for end in ("", "-*") for path in where.glob(f"*Z-{run}{end}"))


def closing(parts: list[Path], captures: str, command: Sequence[str], is_blind: bool) -> Iterator[str]:
    """Yield the summary and what to do next. `is_blind`: clients use no proxy for servers on this machine."""
    summary = Summary.of(parts)
    if not summary.spoken:
        if captures:
            name = shlex.quote(command[0])
            yield "wirelint: no exchange with a model was seen"
            if is_blind:
                yield f"if the server is on this machine: wirelint run --loopback -- {name}{' …' * (len(command) > 1)}"
            yield f"next: wirelint doctor -- {name}"
        return
    first, *more = summary.lines()
    yield f"wirelint: {first}"
    yield from more
    yield f"captures: {' '.join(str(part) for part in parts)}"
    if any((part / SHIP_MARK).exists() for part in parts):
        yield "the captures are not uploaded yet (see wirelint.log there); the next run with their folder does it"
    yield f"next: wirelint show {parts[-1]}" + (f", wirelint rule {summary.worst}" if summary.rules else "")


# --- a summary --------------------------------------------------------------------------------------------------------

_RULES_SHOWN = 8


@dataclass(slots=True)
class Summary:
    """Counts of exchanges by API and model, of findings by rule, and of fixes."""

    fixes: int = 0
    spoken: Counter[str] = field(default_factory=Counter)
    spending: Spending = field(default_factory=Spending)
    rules: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(code, name, severity) of findings."""

    @classmethod
    def of(cls, parts: Iterable[Path]) -> Summary:
        """Read the exchanges of some capture folders."""
        summary = cls()
        for part in parts:
            for record in read_lines(part / "exchanges.jsonl"):
                summary._add(record)
        return summary

    @property
    def worst(self) -> str:
        """The rule with the worst severity, then with the most findings; there must be one."""
        order: dict[str, int] = {severity: number for number, severity in enumerate(SEVERITIES)}
        return min(self.rules, key=lambda rule: (order.get(rule[2], len(order)), -self.rules[rule]))[1]

    def lines(self) -> Iterator[str]:
        """Yield a line of counts and a line per rule."""
        severities = Counter[str]()
        for (_, _, severity), count in self.rules.items():
            severities[severity] += count
        counts = [count_by_severity(severities)] if severities else []
        if self.fixes:
            counts.append(f"{self.fixes} fixed")
        spoken = ", ".join(name if count == 1 else f"{count} × {name}" for name, count in self.spoken.most_common(4))
        yield f"{counted(self.spoken.total(), 'exchange')} ({spoken}): {', '.join(counts) or 'nothing found'}"
        if self.spending.counted:
            yield f"tokens: {spending_line(self.spending)}"
        width = max((len(name) for _, name, _ in self.rules), default=0)
        for (code, name, severity), count in self.rules.most_common(_RULES_SHOWN):
            yield f"  {code}  {name:<{width}}  {severity:<7}  {count}"
        if len(self.rules) > _RULES_SHOWN:
            yield f"  … and {len(self.rules) - _RULES_SHOWN} more rules"

    def _add(self, record: dict[str, Json]) -> None:
        self.fixes += len(mappings(record.get("fixes")))
        who = " ".join(str(record[key]) for key in ("api", "model") if record.get(key))
        self.spoken[_plain(who) or "unread"] += 1
        match record:
            case {"tokens": dict(counts), "model": str(model), "request": {"url": str(url)}}:
                tokens = Tokens.of_document(counts)
                found = cost(tokens, model, url)
                self.spending.add(tokens, found.amount if found is not None else None)
        for _, finding in mappings(record.get("findings")):
            if finding.get("first_seen", record.get("id")) == record.get("id"):
                code, name, severity = (_plain(str(finding.get(key))) for key in ("code", "name", "severity"))
                self.rules[code, name, severity] += 1


def _plain(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:80]


@guided("proxy")
def proxy(
    upstream: str | None,
    host: str,
    port: int,
    web: bool,
    console: bool,
    live: bool,
    dashboard: bool,
    ship: str | None,
    extra: tuple[str, ...],
) -> int:
    """Start mitmproxy with wirelint in front of an upstream.

    Without --web or --console it is mitmdump. Point the client at http://127.0.0.1:PORT and keep its path. All other
    options go to mitmproxy: wirelint proxy --upstream https://api.openai.com --set wirelint_ignore=think-leak.
    """
    from wirelint.addon.proxy import Tool, run

    if upstream is None:
        raise click.UsageError(
            "--upstream URL is missing: give the API's address, as in --upstream https://api.openai.com"
        )
    if web and console:
        raise click.UsageError("--web and --console are two tools; choose one")
    if live and console:
        raise click.UsageError("--live and --console both need the terminal; choose one, or --dashboard with --console")
    if dashboard and not any(word.startswith("wirelint_dashboard=") for word in extra):
        extra = ("--set", "wirelint_dashboard=on", *extra)
    if ship:
        extra = ("--set", f"wirelint_ship={ship}", *extra)
    try:
        with no_guard():  # mitmproxy sets colours itself
            tool: Tool = "mitmweb" if web else "mitmproxy" if console else "mitmdump"
            return run(tool, upstream, host, port, extra, live=live)
    except StartError as error:
        raise click.UsageError(str(error)) from error


_MARKS = {"ok": ("ok", "green"), "problem": ("problem", "bold red"), "skipped": ("skipped", "dim")}


@guided("doctor")
def doctor(captures: str, port: int, settings: tuple[str, ...], output_format: str, command: tuple[str, ...]) -> int:
    """Diagnose the set-up and suggest fixes.

    Starts a private proxy, and sends a request through it with every kind of client that is installed (Python's urllib,
    requests and httpx, Node, curl; with a COMMAND those it may use): with the environment's own proxy variables if there
    are any, else with those of `wirelint run`. Nothing is sent to any vendor, and COMMAND is not run.
    """
    from wirelint.launch.doctor import checks as run_checks

    checks = []
    console = Screen(sys.stdout)
    for check in run_checks(captures, port, settings, command):
        checks.append(check)
        if output_format == "text":
            word, style = _MARKS[check.state]
            line = Text.assemble((f"{word:<8}", style), (f"{check.name}: ", "bold"), check.found)
            console.print(line.append(f"; cure: {check.cure}" if check.cure else "", "cyan"), soft_wrap=True)
    problems = sum(check.state == "problem" for check in checks)
    if output_format == "json":
        click.echo(orjson.dumps([asdict(check) for check in checks], option=orjson.OPT_INDENT_2))
    else:
        console.print(counted(problems, "problem") if problems else "no problem found", style="bold")
    return 1 if problems else 0
