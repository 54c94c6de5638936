"""The environment of a command whose traffic is to be seen.

Clients differ in what they read. Most take a proxy from the environment, in one case or the other; those that do not can
be given a base URL instead. For trust, some variables name the only authorities there are (`REPLACING`), others name
authorities besides the built-in ones (`ADDING`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
REPLACING = (
    "SSL_CERT_FILE",  # OpenSSL, and with it Python's ssl and httpx; Go; uv
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
)
ADDING = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")

BASE_URLS = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "CO_API_URL": "https://api.cohere.com",
    "GROQ_BASE_URL": "https://api.groq.com",
}
"""Variables that clients read, and where these go without them."""

KNOWN_BASE_URLS = (
    *BASE_URLS,
    "OPENAI_API_BASE",
    "AZURE_OPENAI_ENDPOINT",
    "ANTHROPIC_VERTEX_BASE_URL",
    "OLLAMA_HOST",
)
"""Those, and what is led through a port of ours only where it is set: it has no usual place, or would overrule another."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_STAY_OUT = ("localhost", "127.0.0.1")


class AddressError(ValueError):
    """A URL that traffic cannot be led to. One line: variable, value, cure."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a base URL leads: the origin of a reverse proxy, with its port, and what the client keeps of the path."""

    origin: str
    rest: str
    """Path and query."""

    @property
    def local(self) -> bool:
        return is_loopback(urlsplit(self.origin).hostname or "")


def read_target(name: str, url: str) -> Target:
    """`https://openrouter.ai/api/v1` is `https://openrouter.ai:443` and `/api/v1`. Raises AddressError."""
    cure = "give a URL such as https://api.openai.com/v1"
    try:
        # Ollama's variable may hold an address without a scheme.
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError as error:
        raise AddressError(f"{name}={url}: {error}; {cure}") from error
    if not host or port is None or parts.scheme not in _DEFAULT_PORTS:
        raise AddressError(f"{name}={url}: not an HTTP address; {cure}")
    if parts.username is not None:
        raise AddressError(f"{name}={parts.hostname}: credentials do not belong into a base URL; {cure}")
    if "OLLAMA" in name and parts.port is None and "://" not in url:
        port = 11434
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    address = f"[{host}]" if ":" in host else host
    rest = urlunsplit(("", "", parts.path, parts.query, ""))
    return Target(f"{parts.scheme}://{address}:{port}", rest)


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine."""
    bare = host.strip("[]").lower().removesuffix(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def base_urls(given: Mapping[str, str], asked: Mapping[str, str], *, everywhere: bool) -> dict[str, Target]:
    """The variables to set, with where each leads: what was asked for, else what stands there, else the usual place.

    Without `everywhere` only what was asked for, and what leads to this machine: clients do not go there through a proxy.
    Raises AddressError.
    """
    found = {name: read_target(name, given[name]) for name in KNOWN_BASE_URLS if given.get(name)}
    if everywhere:
        found = {name: read_target(name, url) for name, url in BASE_URLS.items()} | found
    else:
        found = {name: target for name, target in found.items() if target.local}
    return found | {name: read_target(name, url) for name, url in asked.items()}


@dataclass(frozen=True, slots=True)
class Trust:
    """Two files of authorities: all there are, and those that come with the proxy (and what stood in `ADDING`)."""

    bundle: Path
    extra: Path


def environment(
    given: Mapping[str, str],
    *,
    proxy: int | None,
    bases: Mapping[str, tuple[Target, int]],
    trust: Trust,
    loopback: bool = False,
) -> dict[str, str]:
    """The environment of the command. `proxy` is a port, None leaves proxies alone; `bases` has a port a variable.

    With `loopback`, traffic to servers on this machine takes the proxy as well.
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
        made["NO_PROXY"] = made["no_proxy"] = hidden
        if not hidden:
            del made["NO_PROXY"], made["no_proxy"]
    return made


def exceptions(given: Mapping[str, str], *, loopback: bool) -> str:
    """`NO_PROXY` of the command. A `*` would hide all there is to see, so it goes."""
    value = given.get("no_proxy") or given.get("NO_PROXY") or ""
    hosts = [host for host in (part.strip() for part in value.replace(" ", ",").split(",")) if host and host != "*"]
    if loopback:
        hosts = [host for host in hosts if not is_loopback(_host_of(host))]
    else:
        hosts += [host for host in _STAY_OUT if host not in hosts]
    return ",".join(hosts)


def _host_of(entry: str) -> str:
    bare = entry.partition("://")[2] or entry
    if bare.startswith("[") or bare.count(":") > 1:
        return bare.partition("]")[0].strip("[]")
    return bare.partition(":")[0].partition("/")[0].lstrip(".")


def chained(given: Mapping[str, str]) -> tuple[str, str] | None:
    """The proxy that is used already, as (URL, `user:password` or nothing): ours goes through it. Raises AddressError."""
    names = [form for name in ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY") for form in (name, name.lower())]
    name = next((name for name in names if given.get(name)), None)
    if name is None:
        return None
    url = given[name]
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError as error:
        raise AddressError(f"{name}: {error}; set it to a URL such as http://proxy:3128") from error
    if parts.scheme not in _DEFAULT_PORTS or not host or port is None:
        raise AddressError(f"{name}: only an HTTP proxy can be gone through; unset it for this command")
    login = f"{parts.username}:{parts.password or ''}" if parts.username else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}", login
