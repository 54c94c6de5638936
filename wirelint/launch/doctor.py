"""The checks of `wirelint doctor`: versions, folders, the authority and the clock, variables, and a request per client.

The clients ask for a host that does not exist, through a private proxy that answers for it. A client that does not go
through the proxy gets no answer; so an answer shows that it uses the proxy, and over TLS that it trusts its authority.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from cryptography import x509

from wirelint.launch import environment as env
from wirelint.launch.processes import Place, PrivateProxy, StartError
from wirelint.text.escaping import shorten

HOST = "doctor.wirelint.invalid"
PATH = "/wirelint-doctor"
ANSWER = "wirelint-doctor: seen"
"""The private proxy answers this to a request of PATH at any host."""

OLDEST, NEWEST = (11, 0, 2), (13,)
"""mitmproxy from the first on, below the second."""
_CONNECT, _CLIENT = 3.0, 30.0
"""Timeouts in seconds: for a connection, and for a client."""
_MAGIC = "http://mitm.it/cert/pem"
"""mitmproxy returns its authority here to clients that come through it."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check in a line; a problem has a cure."""

    name: str
    state: Literal["ok", "problem", "skipped"]
    found: str
    cure: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found)


def problem(name: str, found: str, cure: str) -> Check:
    return Check(name, "problem", found, cure)


def checks(captured: str, port_number: int, settings: Sequence[str], command: Sequence[str]) -> Iterator[Check]:
    """Run all checks. `settings` are options of mitmproxy, `command` limits the clients to those it may use."""
    given = dict(os.environ)
    yield ok("python", f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    yield mitmproxy_version()
    yield captures(captured)
    yield port(port_number, given)
    yield hidden_hosts(given)
    yield from base_url_variables(given)
    with tempfile.TemporaryDirectory(prefix="wirelint-doctor-") as scratch:
        folder = Path(scratch)
        options = ["connection_strategy=lazy", "wirelint_captures=", *settings]
        marked = {**given, "WIRELINT_DOCTOR": "1"}
        with PrivateProxy([f"https://{HOST}:443"], options, folder / "log", environment=marked) as proxy:
            try:
                place = proxy.start()
            except StartError as error:
                yield problem("addon", str(error), "correct that option, on the command line or in config.yaml")
                return
            yield ok("addon", f"mitmproxy starts with wirelint in it (its files: {place.confdir})")
            yield from authority(place.confdir)
            found = list(proxy_variables(given, place.confdir))
            yield from found
            # A broken proxy variable is one problem; clients are tried without it.
            is_broken = any(check.state == "problem" for check in found)
            trial = _trial(env.without_proxies(given) if is_broken else given, place, folder)
            yield from try_clients(command, trial)


# --- the machine ------------------------------------------------------------------------------------------------------


def mitmproxy_version() -> Check:
    cure = f"{sys.executable} -m pip install 'mitmproxy>=11.0.2,<13'"
    try:
        found = version("mitmproxy")
    except PackageNotFoundError:
        return problem("mitmproxy", "is not installed here", cure)
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if OLDEST <= numbers < NEWEST:
        return ok("mitmproxy", f"mitmproxy {found}")
    return problem("mitmproxy", f"mitmproxy {found} is not supported", cure)


def captures(folder: str) -> Check:
    if not folder:
        return Check("captures", "skipped", "none are written")
    path = Path(folder).expanduser().absolute()
    existing = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
    another = "name another with --captures DIR"
    if not existing.is_dir():
        return problem("captures", f"{existing} is not a folder", another)
    if not os.access(existing, os.W_OK | os.X_OK):
        return problem("captures", f"{existing} is not writable", f"{another}, or chmod u+rwx it")
    return ok("captures", f"{path} is writable")


def authority(confdir: Path, now: datetime | None = None) -> Iterator[Check]:
    """Check mitmproxy's authority, and the clock that decides whether it is valid."""
    now = now or datetime.now(UTC)
    file = confdir / env.CA_FILE
    again = f"move {confdir}/mitmproxy-ca* away and start mitmproxy again; it makes a new one"
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except OSError as error:
        cure = "start mitmproxy once as this user; it then makes its authority"
        yield problem("authority", f"{file}: {error.strerror or error}", cure)
        return
    except ValueError:
        yield problem("authority", f"{file} is not a certificate", again)
        return
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin:
        found = f"today is {now:%Y-%m-%d}, before the authority was made ({begin:%Y-%m-%d})"
        yield problem("clock", found, "set the clock right")
    elif now > end:
        yield problem("authority", f"{file} expired on {end:%Y-%m-%d}", again)
    else:
        yield ok("authority", f"{file}, valid until {end:%Y-%m-%d}")
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def port(number: int, given: Mapping[str, str]) -> Check:
    if not _listens("127.0.0.1", number):
        return ok("port", f"{number} is free")
    if any(f":{number}" in given.get(name, "") for name in env.proxy_names()):
        return ok("port", f"{number} is taken by the proxy of the proxy variables")
    cure = "give mitmproxy another with --port (wirelint proxy) or --listen-port; wirelint run takes a free one"
    return problem("port", f"{number} is taken by another program", cure)


def _listens(host: str, number: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, number), _CONNECT):
        return True
    return False


# --- variables --------------------------------------------------------------------------------------------------------


def proxy_variables(given: Mapping[str, str], confdir: Path) -> Iterator[Check]:
    """Check the variables that name a proxy: it must listen, and be a mitmproxy with the local authority."""
    found: dict[str, list[str]] = {}
    for name in env.PROXIES:
        upper, lower = given.get(name), given.get(name.lower())
        if upper and lower and upper != lower:
            cure = f'export {name.lower()}="${name}"'
            yield problem(name, f"{name} and {name.lower()} name different proxies", cure)
        if value := lower or upper:
            found.setdefault(value, []).extend(one for one in (name, name.lower()) if given.get(one))
    if not found:
        yield ok("proxy variables", "none is set; `wirelint run` sets them for its command")
    for value, names in found.items():
        yield _proxy(value, names, confdir)


def _proxy(value: str, names: Sequence[str], confdir: Path) -> Check:
    """Check the proxy at one address; `names` are the variables with this value."""
    name, unset = names[0].upper(), f"unset {' '.join(names)}"
    shown = value.rpartition("@")[2]
    try:
        parts, host, number = env.split_url(value)
    except ValueError as error:
        return problem(name, f"{shown}: {error}", f"export {name}=http://127.0.0.1:8080")
    if parts.scheme.startswith("socks"):
        return problem(name, f"{shown}: many clients support no SOCKS proxy", f"{unset}, or name an HTTP proxy")
    if not _listens(host, number or 80):
        cure = f"start the proxy there, or {unset} and use wirelint run -- COMMAND"
        return problem(name, f"nothing listens at {shown}", cure)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": value}))
    served = own = b""
    with contextlib.suppress(OSError, ValueError), opener.open(_MAGIC, timeout=_CONNECT) as reply:
        served = reply.read(65536)
    if b"BEGIN CERTIFICATE" not in served:
        return ok(name, f"{shown} is not a mitmproxy; `wirelint run` goes through it")
    with contextlib.suppress(OSError):
        own = (confdir / env.CA_FILE).read_bytes()
    if env.certificates(served).keys() != env.certificates(own).keys():
        cure = f"trust that one instead (curl -x {shown} {_MAGIC}), or start mitmproxy with --set confdir={confdir}"
        return problem(name, f"{shown} is a mitmproxy with another authority than {confdir}", cure)
    return ok(name, f"{shown}, a mitmproxy with this authority")


def hidden_hosts(given: Mapping[str, str]) -> Check:
    """Check that `NO_PROXY` hides no model from the proxy."""
    upper, lower = given.get("NO_PROXY"), given.get("no_proxy")
    value = lower or upper or ""
    if upper and lower and upper != lower:
        return problem("NO_PROXY", "NO_PROXY and no_proxy differ", 'export no_proxy="$NO_PROXY"')
    words = value.replace(" ", ",").split(",")
    if "*" in words:
        cure = "unset NO_PROXY no_proxy, or use wirelint run"
        return problem("NO_PROXY", "`*` hides all traffic from the proxy", cure)
    entries = tuple(f".{entry}" for word in words if (entry := word.strip().lower().lstrip("*").lstrip(".")))
    urls = [*env.BASE_URLS.values(), *(given[name] for name in env.KNOWN_BASE_URLS if given.get(name))]
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in urls)
    hidden = [host for host in hosts if f".{host}".endswith(entries)]
    names = ", ".join(host for host in hidden if host not in ("localhost", "127.0.0.1"))
    if names:
        return problem("NO_PROXY", f"it hides {names} from the proxy", f"remove {names} from NO_PROXY")
    found = f"{value} hides no model" if value else "is not set"
    if hidden:
        found = "it hides servers on this machine from a proxy; `wirelint run` gives them ports of their own"
    return ok("NO_PROXY", found)


def base_url_variables(given: Mapping[str, str]) -> Iterator[Check]:
    names = [name for name in env.KNOWN_BASE_URLS if given.get(name)]
    if not names:
        yield ok("base URLs", "none is set; clients use their vendors' URLs")
    for name in names:
        yield _base_url(name, given[name])


def _base_url(name: str, url: str) -> Check:
    try:
        target = env.read_target(name, url)
    except env.AddressError as error:
        return problem(name, str(error), f"unset {name}, or give it a URL")
    parts = urlsplit(target.origin)
    host, number = parts.hostname or "", parts.port or 0
    if target.local and not _listens(host, number):
        where = f"leads to {host}:{number}, where nothing listens"
        return problem(name, where, f"start the server there, or unset {name}")
    if name == "OPENAI_BASE_URL" and not target.rest.strip("/"):
        found = f"{url} has no path; OpenAI's clients add only `/chat/completions`"
        return problem(name, found, f"export {name}={url.rstrip('/')}/v1")
    if name == "ANTHROPIC_BASE_URL" and target.rest.rstrip("/").endswith("/v1"):
        cure = f"export {name}={url.rstrip('/').removesuffix('/v1')}"
        return problem(name, f"{url} ends with /v1, which Anthropic's clients add", cure)
    return ok(name, f"leads to {target.origin}{target.rest}; `wirelint run` redirects it")


# --- clients ----------------------------------------------------------------------------------------------------------

_PYTHON = """
import json, sys
url, answers = sys.argv[1], {}
def urllib():
    import urllib.request
    with urllib.request.urlopen(url, timeout=10) as reply: return reply.read().decode()
def requests():
    import requests
    return requests.get(url, timeout=10).text
def httpx():
    import httpx
    return httpx.get(url, timeout=10).text
for client in (urllib, requests, httpx):
    try: answers[client.__name__] = client()
    except ImportError: pass
    except Exception as error: answers[client.__name__] = f"{type(error).__name__}: {error}"
print(json.dumps(answers))
"""
_NODE = """
fetch(process.argv[1]).then((reply) => reply.text())
    .then((text) => console.log(text), (error) => console.log(String(error.cause ?? error)));
"""
_UNTRUSTED = re.compile(r"certificate|CERT_|self[- ]signed|unable to get (local )?issuer|\bSSL", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trial:
    """The set-up for clients. `base` is the port of a base URL, for clients that read no proxy variables."""

    environment: Mapping[str, str]
    authority: Path
    base: int | None = None


def _trial(given: dict[str, str], place: Place, folder: Path) -> Trial:
    """Return the set-up. Proxy variables, if any, are redirected to the private proxy."""
    file = place.confdir / env.CA_FILE
    names = [name for name in env.proxy_names() if given.get(name)]
    if names:
        return Trial({**given, **dict.fromkeys(names, f"http://127.0.0.1:{place.port}")}, file)
    made = env.environment(given, proxy=place.port, bases={}, trust=env.write_trust(folder, given, file))
    return Trial(made, file, place.bases[f"https://{HOST}:443"])


def try_clients(command: Sequence[str], trial: Trial) -> Iterator[Check]:
    runner = interpreter_of(command[0], trial.environment.get("PATH")) if command else None
    kind = Path(runner).name if runner else ""
    if not kind.startswith("node"):
        for name, program in _pythons(command, trial.environment).items():
            output = _run([program, "-c", _PYTHON, f"https://{HOST}{PATH}"], trial.environment)
            try:
                answers: dict[str, str] = json.loads(output)
            except ValueError:
                yield problem(name, f"{program} cannot run: {_line(output)}", "repair or reinstall that Python")
                continue
            for client, answer in answers.items():
                yield judge(f"{name} {client}", client, answer, trial)
    if not kind.startswith("python"):
        yield _try_node(runner if kind.startswith("node") and runner else "node", trial)
    if not command or kind == "curl":
        found = shutil.which("curl", path=trial.environment.get("PATH"))
        answer = _run(["curl", "-sS", "-m", "10", f"https://{HOST}{PATH}"], trial.environment) if found else ""
        yield judge("curl", "curl", answer, trial) if found else Check("curl", "skipped", "is not installed")


def _pythons(command: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return interpreters by name: the command's, else those on the PATH, else the running one."""
    path = given.get("PATH")
    if command and (interpreter := interpreter_of(command[0], path)) and "python" in Path(interpreter).name:
        return {Path(command[0]).name: interpreter}
    found: dict[Path, tuple[str, str]] = {}
    for name in ("python3", "python"):
        if program := shutil.which(name, path=path):
            found.setdefault(Path(program).resolve(), (name, program))
    return dict(found.values()) or {"python": sys.executable}


def interpreter_of(program: str, path: str | None) -> str | None:
    """Return the program that runs a command: the one in a script's first line, else the command itself."""
    where = shutil.which(program, path=path)
    if where is None:
        return None
    line = b""
    with contextlib.suppress(OSError), open(where, "rb") as file:
        line = file.readline(256)
    found = re.match(rb"#!\s*(\S+)(?:[ \t]+(?:-\S+[ \t]+)*(\S+))?", line)
    if found is None:
        return where
    runner = found[1].decode(errors="replace")
    if Path(runner).name == "env" and found[2]:
        return shutil.which(found[2].decode(errors="replace"), path=path)
    return runner


def _try_node(program: str, trial: Trial) -> Check:
    found = env.node_version(trial.environment, program)
    if found is None:
        return Check("node", "skipped", "is not installed")
    shown = f"node {found[0]}.{found[1]}"
    if env.node_reads_proxies(found):
        return judge(shown, "node", _run([program, "-e", _NODE, f"https://{HOST}{PATH}"], trial.environment), trial)
    if trial.base is None:
        return problem(shown, "ignores proxy variables", "use wirelint run, which gives it base URLs, or Node 24")
    answer = _run([program, "-e", _NODE, f"http://127.0.0.1:{trial.base}{PATH}"], trial.environment)
    if answer.strip() != ANSWER:
        return problem(shown, f"cannot reach a base URL on this machine: {_line(answer)}", "look for a firewall")
    return ok(shown, "ignores proxy variables; base URLs are used instead (Node 24+ supports proxies)")


def judge(name: str, client: str, answer: str, trial: Trial) -> Check:
    """Return the check for a client's answer. `client` is its kind (`urllib`, `curl`)."""
    if answer.strip() == ANSWER:
        return ok(name, "goes through the proxy and trusts it")
    if _UNTRUSTED.search(answer):
        cure = f"{_trust_command(env.CLIENT_TRUST[client], trial)}, or use wirelint run"
        return problem(name, f"does not trust the proxy: {_line(answer)}", cure)
    cure = "use wirelint run --mode base-url, and check that nothing unsets the proxy variables"
    return problem(name, f"does not go through the proxy: {_line(answer)}", cure)


def _trust_command(variable: str, trial: Trial) -> str:
    """Return a shell command that makes a client trust the proxy besides the authorities that it trusts already."""
    if variable in env.ADDING:
        return f"export {variable}={trial.authority}"
    # These variables replace the trusted certificates, so their file needs the system's authorities too.
    before, bundle = env.trusted_file(trial.environment, variable), trial.authority.with_name("wirelint-bundle.pem")
    own, target = shlex.quote(str(trial.authority)), shlex.quote(str(bundle))
    if Path(before) == bundle:  # an earlier cure, with an authority that mitmproxy no longer has
        return f"cat {own} >> {target}"
    return f"cat {shlex.quote(str(before))} {own} > {target} && export {variable}={target}"


def _run(command: Sequence[str], given: Mapping[str, str]) -> str:
    """Return the output of a program, its messages if it has none, or why it did not run."""
    try:
        done = env.run_quietly(command, _CLIENT, given)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    return done.stdout if done.stdout.strip() else done.stderr


def _line(text: str) -> str:
    return shorten(" ".join("".join(one if one.isprintable() else " " for one in text).split()), 140)
