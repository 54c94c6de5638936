"""Clients that are there, each made to send a request that only the proxy can answer.

The host does not exist: who asks for it and does not go through the proxy gets no answer at all. So the answer shows that
a client takes the proxy, and over TLS that it trusts its authority as well.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wirelint.launch.authorities import trusted_file
from wirelint.launch.doctor.check import Check, ok, problem, skipped
from wirelint.launch.plan import node_reads_proxies, node_version
from wirelint.launch.variables import ADDING

HOST = "doctor.wirelint.invalid"
PATH = "/wirelint-doctor"
ANSWER = "wirelint-doctor: seen"
_WAIT = 30.0

_PYTHON = """
import json, sys
url, told = sys.argv[1], {}
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
    try: told[client.__name__] = client()
    except ImportError: pass
    except Exception as error: told[client.__name__] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""
_NODE = """
fetch(process.argv[1]).then((reply) => reply.text())
    .then((text) => console.log(text), (error) => console.log(String(error.cause ?? error)));
"""
_UNTRUSTED = re.compile(r"certificate|CERT_|self[- ]signed|unable to get (local )?issuer|\bSSL", re.IGNORECASE)
_VARIABLES = {
    "urllib": "SSL_CERT_FILE",
    "httpx": "SSL_CERT_FILE",
    "requests": "REQUESTS_CA_BUNDLE",
    "curl": "CURL_CA_BUNDLE",
    "node": "NODE_EXTRA_CA_CERTS",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What clients are tried with. `base` is the port of a base URL, for those that know no proxy."""

    environment: Mapping[str, str]
    authority: Path
    base: int | None = None


def pythons(command: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Interpreters by the name that a person has for them: that of the command, else those on the PATH, and ours."""
    path = given.get("PATH")
    if command and (interpreter := interpreter_of(command[0], path)) and "python" in Path(interpreter).name:
        return {Path(command[0]).name: interpreter}
    found: dict[str, str] = {}
    for name in ("python3", "python"):
        if (program := shutil.which(name, path=path)) and Path(program).resolve() not in map(_resolved, found.values()):
            found[name] = program
    return found or {"python": sys.executable}


def _resolved(program: str) -> Path:
    return Path(program).resolve()


def interpreter_of(program: str, path: str | None) -> str | None:
    """The program that runs a command: the one in its first line, when it is a script."""
    where = shutil.which(program, path=path)
    if where is None:
        return None
    try:
        with open(where, "rb") as file:
            line = file.readline(256)
    except OSError:
        return where
    found = re.match(rb"#!\s*(\S+)(?:[ \t]+(?:-\S+[ \t]+)*(\S+))?", line)
    if found is None:
        return where
    runner = found[1].decode(errors="replace")
    if Path(runner).name == "env" and found[2]:
        return shutil.which(found[2].decode(errors="replace"), path=path)
    return runner


def try_all(command: Sequence[str], trial: Trial) -> Iterator[Check]:
    """A check a client that is there."""
    runner = interpreter_of(command[0], trial.environment.get("PATH")) if command else None
    kind = Path(runner).name if runner else ""
    if not kind.startswith("node"):
        for name, program in pythons(command, trial.environment).items():
            yield from _python(name, program, trial)
    if not kind.startswith("python"):
        yield _node(runner if kind.startswith("node") and runner else "node", trial)
    if not command or kind == "curl":
        yield _curl(trial)


def _python(name: str, program: str, trial: Trial) -> Iterator[Check]:
    said = _run([program, "-c", _PYTHON, f"https://{HOST}{PATH}"], trial.environment)
    try:
        told: dict[str, str] = json.loads(said)
    except ValueError:
        yield problem(f"{name}", f"{program} cannot run: {_line(said)}", "repair or reinstall that Python")
        return
    for client, answer in told.items():
        yield judge(f"{name} {client}", client, answer, trial)


def _node(program: str, trial: Trial) -> Check:
    version = node_version(trial.environment, program)
    if version is None:
        return skipped("node", "is not installed")
    shown = f"node {version[0]}.{version[1]}"
    if node_reads_proxies(version):
        return judge(shown, "node", _run(_fetch(program, f"https://{HOST}{PATH}"), trial.environment), trial)
    if trial.base is None:
        cure = "use wirelint run, which gives it base URLs, or Node 24"
        return problem(shown, "takes no proxy from the environment", cure)
    answer = _run(_fetch(program, f"http://127.0.0.1:{trial.base}{PATH}"), trial.environment)
    if answer.strip() != ANSWER:
        return problem(shown, f"does not reach a base URL on this machine: {_line(answer)}", "look for a firewall")
    return ok(shown, "knows no proxy, and is seen by base URLs; with Node 24 the proxy would do")


def _fetch(program: str, url: str) -> list[str]:
    return [program, "-e", _NODE, url]


def _curl(trial: Trial) -> Check:
    if shutil.which("curl", path=trial.environment.get("PATH")) is None:
        return skipped("curl", "is not installed")
    answer = _run(["curl", "-sS", "-m", "10", f"https://{HOST}{PATH}"], trial.environment)
    return judge("curl", "curl", answer, trial)


def judge(name: str, client: str, answer: str, trial: Trial) -> Check:
    """What a client's answer says of the proxy. `client` is its kind (`urllib`, `curl`)."""
    if answer.strip() == ANSWER:
        return ok(name, "goes through the proxy and trusts it")
    if _UNTRUSTED.search(answer):
        cure = f"{_trusting(_VARIABLES[client], trial)}, or use wirelint run"
        return problem(name, f"does not trust the proxy: {_line(answer)}", cure)
    return problem(
        name,
        f"does not go through the proxy: {_line(answer)}",
        "use wirelint run --mode base-url, and see that nothing unsets the proxy variables",
    )


def _trusting(variable: str, trial: Trial) -> str:
    """What makes a client trust the proxy, and go on trusting everybody else."""
    if variable in ADDING:
        return f"export {variable}={trial.authority}"
    # These variables replace what a client trusts, so their file has to hold the system's authorities as well.
    before, bundle = trusted_file(trial.environment, variable), trial.authority.with_name("wirelint-bundle.pem")
    if Path(before) == bundle:  # an earlier cure, with an authority that mitmproxy no longer has
        return f"cat {shlex.quote(str(trial.authority))} >> {shlex.quote(str(bundle))}"
    made = " ".join(shlex.quote(str(part)) for part in (before, trial.authority))
    return f"cat {made} > {shlex.quote(str(bundle))} && export {variable}={shlex.quote(str(bundle))}"


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """What it says, on standard output or else on standard error."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WAIT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    return done.stdout if done.stdout.strip() else done.stderr


def _line(text: str) -> str:
    words = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return words if len(words) <= 140 else f"{words[:139]}…"
