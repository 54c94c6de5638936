"""The environment of a command whose traffic goes through the proxy: proxy variables, base URLs, trusted certificates.

Clients read different variables. Most read the proxy variables, in upper or lower case; others can be given a base URL
instead. For trust, some variables replace the built-in authorities (`REPLACING`), others add to them (`ADDING`). The
machine's own configuration is not changed: the files are in a folder of the run.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import shutil
import ssl
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

import certifi

Mode = Literal["auto", "proxy", "base-url"]
_TABLE = tomllib.loads(Path(__file__).with_name("environment.toml").read_text(encoding="utf-8"))
PROXIES: list[str] = _TABLE["proxies"]
REPLACING: list[str] = _TABLE["replacing"]
ADDING: list[str] = _TABLE["adding"]
BASE_URLS: dict[str, str] = _TABLE["base_urls"]
"""Variables that clients read, with their default URLs."""
CLIENT_TRUST: dict[str, str] = _TABLE["client_trust"]
KNOWN_BASE_URLS = [*BASE_URLS, *_TABLE["redirected_if_set"]]
CA_FILE = "mitmproxy-ca-cert.pem"
"""mitmproxy's own authority, in its `confdir`."""
_SYSTEM: list[str] = _TABLE["system_authorities"]
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOCAL = ("localhost", "127.0.0.1")
_READ_PROXIES = frozenset[str](_TABLE["read_proxies"])


class AddressError(ValueError):
    """A URL that traffic cannot be sent to. The text is one line: variable, value, cure."""


# --- addresses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """A base URL in two parts: the origin of a reverse proxy, with its port, and the path and query."""

    origin: str
    rest: str

    @property
    def local(self) -> bool:
        """Return True if the origin is this machine."""
        return is_loopback(urlsplit(self.origin).hostname or "")


def split_url(url: str) -> tuple[SplitResult, str, int | None]:
    """Return a URL's parts, its host and its port; without a scheme it is http. Raises ValueError."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return parts, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def read_target(name: str, url: str) -> Target:
    """Split `https://openrouter.ai/api/v1` into `https://openrouter.ai:443` and `/api/v1`. Raises AddressError."""
    cure = "give a URL such as https://api.openai.com/v1"
    try:
        parts, host, port = split_url(url)
    except ValueError as error:
        raise AddressError(f"{name}={url}: {error}; {cure}") from error
    if not host or port is None or parts.scheme not in _DEFAULT_PORTS:
        raise AddressError(f"{name}={url}: not an HTTP address; {cure}")
    if parts.username is not None:
        raise AddressError(f"{name}={parts.hostname}: a base URL must not contain credentials; {cure}")
    if "OLLAMA" in name and parts.port is None and "://" not in url:
        port = 11434
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    rest = urlunsplit(("", "", parts.path, parts.query, ""))
    return Target(f"{parts.scheme}://{_bracketed(host)}:{port}", rest)


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine."""
    bare = host.strip("[]").lower().removesuffix(".")
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(bare).is_loopback
    return f".{bare}".endswith(".localhost")


def proxy_in(given: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the proxy that the environment names, as (URL, `user:password` or nothing). Raises AddressError."""
    names = [form for name in ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY") for form in (name, name.lower())]
    if (name := next(filter(given.get, names), None)) is None:
        return None
    try:
        parts, host, port = split_url(given[name])
    except ValueError as error:
        raise AddressError(f"{name}: {error}; set it to a URL such as http://proxy:3128") from error
    if parts.scheme not in _DEFAULT_PORTS or not host or port is None:
        raise AddressError(f"{name}: wirelint can go through HTTP proxies only; unset it for this command")
    login = f"{parts.username}:{parts.password or ''}" if parts.username else ""
    return f"{parts.scheme}://{_bracketed(host)}:{port}", login


# --- routes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes to the proxy. `proxied`: by proxy variables; `bases`: base URLs by variable."""

    proxied: bool
    bases: Mapping[str, Target]


def routes(mode: Mode, program: str, given: Mapping[str, str], requested: Mapping[str, str]) -> Routes:
    """Choose the routes for a command. Raises AddressError.

    `auto` sets proxy variables, and base URLs too if the command may use a Node that reads no proxy variables. Other base
    URLs are those that `requested` has and, except with `proxy`, those that lead to this machine, which clients reach
    without a proxy.
    """
    found: dict[str, Target] = {}
    if mode != "proxy":
        found = {name: read_target(name, given[name]) for name in KNOWN_BASE_URLS if given.get(name)}
        if mode == "base-url" or not reads_proxies(program, given):
            found = {name: read_target(name, url) for name, url in BASE_URLS.items()} | found
        else:
            found = {name: target for name, target in found.items() if target.local}
    return Routes(mode != "base-url", found | {name: read_target(name, url) for name, url in requested.items()})


def reads_proxies(program: str, given: Mapping[str, str]) -> bool:
    """Return True if a program, and every program that it may start, reads proxy variables."""
    name = Path(program).name.lower().removesuffix(".exe")
    if name in _READ_PROXIES or re.match(r"(python|pypy|ipython|pytest)", name):
        return True
    return (version := node_version(given)) is None or node_reads_proxies(version)


def node_version(given: Mapping[str, str], program: str = "node") -> tuple[int, int] | None:
    """Return (major, minor) of the Node on the PATH; None if there is none."""
    path = shutil.which(program, path=given.get("PATH", os.defpath))
    if path is None:
        return None
    try:
        found = re.match(r"v(\d+)\.(\d+)", run_quietly([path, "--version"], 5).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (int(found[1]), int(found[2])) if found else None


def run_quietly(
    command: Sequence[str], timeout: float, given: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without input and keep its output. Raises OSError and TimeoutExpired."""
    return subprocess.run(
        command, env=given, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def node_reads_proxies(version: tuple[int, int]) -> bool:
    """Return True for 24.0 and later, and for 22.21: they have `NODE_USE_ENV_PROXY`. https://nodejs.org/api/cli.html"""
    return version >= (24, 0) or (22, 21) <= version < (23, 0)


# --- trust ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trust:
    """Two files of authorities: all of them, and only the proxy's with those of the variables in `ADDING`."""

    bundle: Path
    extra: Path


def known_authorities(given: Mapping[str, str]) -> list[bytes]:
    """Return the certificates that a command trusts by its environment and system, without repetitions."""
    own = ssl.get_default_verify_paths()
    files = [given[name] for name in (*REPLACING, *ADDING) if given.get(name)]
    return _read([*files, *_SYSTEM, *filter(None, (own.cafile, own.openssl_cafile)), certifi.where()])


def write_upstream(folder: Path, given: Mapping[str, str]) -> Path:
    """Write the authorities that the proxy trusts: those of the command."""
    return _write(folder / "upstream.pem", known_authorities(given))


def write_trust(folder: Path, given: Mapping[str, str], authority: Path) -> Trust:
    """Write the files for the command. Raises OSError if the proxy's authority cannot be read."""
    own = _CERTIFICATE.findall(authority.read_bytes())
    more = _read([given[name] for name in ADDING if given.get(name)])
    everyone = [*known_authorities(given), *own]
    return Trust(_write(folder / "all.pem", everyone), _write(folder / "extra.pem", [*more, *own]))


def trusted_file(given: Mapping[str, str], variable: str) -> str:
    """Return the file of certificates that a client trusts now: the one that a variable names, else the system's."""
    own = ssl.get_default_verify_paths()
    files = [given.get(variable, ""), *_SYSTEM, own.cafile or "", own.openssl_cafile]
    return next((file for file in files if file and Path(file).is_file()), certifi.where())


def _read(files: Iterable[str]) -> list[bytes]:
    found: dict[bytes, bytes] = {}
    for file in files:
        # `wirelint doctor` reports a file that cannot be read; the command could not use it either.
        with contextlib.suppress(OSError):
            found |= certificates(Path(file).read_bytes())
    return list(found.values())


def certificates(pem: bytes) -> dict[bytes, bytes]:
    """Return the certificates of a file by their content without white space."""
    return {b"".join(one.split()): one for one in _CERTIFICATE.findall(pem)}


def _write(path: Path, certificates: list[bytes]) -> Path:
    path.write_bytes(b"\n".join(certificates) + b"\n")
    return path


# --- variables --------------------------------------------------------------------------------------------------------


def environment(
    given: Mapping[str, str],
    *,
    proxy: int | None,
    bases: Mapping[str, tuple[Target, int]],
    trust: Trust,
    loopback: bool = False,
) -> dict[str, str]:
    """Return the environment of the command. `proxy` is a port or None, `bases` has targets and ports by variable.

    With `loopback`, traffic to servers on this machine takes the proxy too.
    """
    made = dict(given)
    for name, (target, port) in bases.items():
        made[name] = f"http://127.0.0.1:{port}{target.rest}"
    if proxy is not None:
        for name in PROXIES:
            made[name] = made[name.lower()] = f"http://127.0.0.1:{proxy}"
        made["NODE_USE_ENV_PROXY"] = "1"
        made |= dict.fromkeys(REPLACING, str(trust.bundle)) | dict.fromkeys(ADDING, str(trust.extra))
    if proxy is not None or bases:
        hidden = exceptions(given, loopback=loopback)
        made = {name: value for name, value in made.items() if name not in ("NO_PROXY", "no_proxy")}
        made |= {"NO_PROXY": hidden, "no_proxy": hidden} if hidden else {}
    return made


def without_proxies(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in proxy_names()}


def proxy_names() -> tuple[str, ...]:
    """Return the names of proxy variables in both cases."""
    return tuple(form for name in PROXIES for form in (name, name.lower()))


def exceptions(given: Mapping[str, str], *, loopback: bool) -> str:
    """Return `NO_PROXY` for the command. `*` is left out, because it would hide all traffic."""
    value = given.get("no_proxy") or given.get("NO_PROXY") or ""
    hosts = [host for host in (part.strip() for part in value.replace(" ", ",").split(",")) if host and host != "*"]
    if loopback:
        addresses = {host: host.partition("://")[2] or host for host in hosts}
        for host, bare in addresses.items():
            if bare.startswith("[") or bare.count(":") > 1:
                addresses[host] = bare.partition("]")[0].strip("[]")
            else:
                addresses[host] = bare.partition(":")[0].partition("/")[0].lstrip(".")
        hosts = [host for host in hosts if not is_loopback(addresses[host])]
    else:
        hosts += [host for host in _LOCAL if host not in hosts]
    return ",".join(hosts)
