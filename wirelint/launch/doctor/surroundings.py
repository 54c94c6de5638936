"""Checks that only look: versions, folders, the authority and the clock, the variables."""

from __future__ import annotations

import os
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from wirelint.launch.authorities import CA_FILE
from wirelint.launch.doctor.check import Check, ok, problem, skipped
from wirelint.launch.variables import BASE_URLS, KNOWN_BASE_URLS, PROXIES, AddressError, read_target

OLDEST, NEWEST = (11, 0, 2), (13,)
"""mitmproxy from the first on, below the second."""
_WAIT = 3.0
_MAGIC = "http://mitm.it/cert/pem"
"""Where mitmproxy gives its authority to clients that come through it."""


def versions() -> Iterator[Check]:
    yield ok("python", f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    try:
        found = version("mitmproxy")
    except PackageNotFoundError:
        yield problem("mitmproxy", "is not installed here", f"{sys.executable} -m pip install 'mitmproxy>=11.0.2,<13'")
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if OLDEST <= numbers < NEWEST:
        yield ok("mitmproxy", f"mitmproxy {found}")
    else:
        cure = f"{sys.executable} -m pip install 'mitmproxy>=11.0.2,<13'"
        yield problem("mitmproxy", f"mitmproxy {found} is not one that wirelint was tried with", cure)


def captures(folder: str) -> Check:
    if not folder:
        return skipped("captures", "none are written")
    path = Path(folder).expanduser().absolute()
    existing = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
    if not existing.is_dir():
        return problem("captures", f"{existing} is no folder", "name another with --captures DIR")
    if not os.access(existing, os.W_OK | os.X_OK):
        return problem(
            "captures", f"{existing} cannot be written to", "name another with --captures DIR, or chmod u+rwx it"
        )
    return ok("captures", f"{path} can be written to")


def authority(confdir: Path, now: datetime | None = None) -> Iterator[Check]:
    """mitmproxy's authority, and the clock that it is judged by."""
    now = now or datetime.now(UTC)
    file = confdir / CA_FILE
    again = f"move {confdir}/mitmproxy-ca* away and start mitmproxy again; it makes a new one"
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except OSError as error:
        yield problem(
            "authority",
            f"{file}: {error.strerror or error}",
            "start mitmproxy once as this user; it makes its authority then",
        )
        return
    except ValueError:
        yield problem("authority", f"{file} is no certificate", again)
        return
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin:
        yield problem(
            "clock",
            f"it is {now:%Y-%m-%d} here, before the authority was made ({begin:%Y-%m-%d})",
            "set the clock right",
        )
    elif now > end:
        yield problem("authority", f"{file} has ended on {end:%Y-%m-%d}", again)
    else:
        yield ok("authority", f"{file}, until {end:%Y-%m-%d}")
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def proxy_variables(given: Mapping[str, str], confdir: Path) -> Iterator[Check]:
    """Variables that lead to a proxy already: whether one is there, and whether it is mitmproxy with our authority."""
    found: dict[str, list[str]] = {}
    for name in PROXIES:
        upper, lower = given.get(name), given.get(name.lower())
        if upper and lower and upper != lower:
            yield problem(
                name, f"{name} and {name.lower()} lead to different proxies", f'export {name.lower()}="${name}"'
            )
        if value := lower or upper:
            found.setdefault(value, []).extend(one for one in (name, name.lower()) if given.get(one))
    if not found:
        yield ok("proxy variables", "none is set; `wirelint run` sets them for its command")
    for value, names in found.items():
        yield _proxy(value, names, confdir)


def _proxy(value: str, names: Sequence[str], confdir: Path) -> Check:
    """What is there at a proxy's address, which all variables of `names` have."""
    name, unset = names[0].upper(), f"unset {' '.join(names)}"
    shown = value.rpartition("@")[2]
    parts = urlsplit(value if "://" in value else f"http://{value}")
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        return problem(name, f"{shown}: {error}", f"export {name}=http://127.0.0.1:8080")
    if parts.scheme.startswith("socks"):
        return problem(name, f"{shown}: many clients take no SOCKS proxy", f"{unset}, or name an HTTP proxy")
    if not _listens(host, port):
        return problem(
            name,
            f"nothing listens at {shown}",
            f"start the proxy there, or {unset} and use wirelint run -- COMMAND",
        )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": value}))
    try:
        with opener.open(_MAGIC, timeout=_WAIT) as reply:
            served = reply.read(65536)
    except (OSError, urllib.error.URLError, ValueError):
        served = b""
    if b"BEGIN CERTIFICATE" not in served:
        return ok(name, f"{shown}, which is no mitmproxy; `wirelint run` goes through it")
    try:
        own = (confdir / CA_FILE).read_bytes()
    except OSError:
        own = b""
    if _der(served) != _der(own):
        cure = f"trust that one instead (curl -x {shown} {_MAGIC}), or start mitmproxy with --set confdir={confdir}"
        return problem(name, f"{shown} is a mitmproxy with another authority than {confdir}", cure)
    return ok(name, f"{shown}, a mitmproxy with this authority")


def _der(pem: bytes) -> bytes:
    found = re.search(rb"BEGIN CERTIFICATE-----(.+?)-----END", pem, re.DOTALL)
    return b"".join(found[1].split()) if found else b""


def hidden_hosts(given: Mapping[str, str]) -> Check:
    """What `NO_PROXY` keeps from a proxy that ought to be seen."""
    value = given.get("no_proxy") or given.get("NO_PROXY") or ""
    upper, lower = given.get("NO_PROXY"), given.get("no_proxy")
    if upper and lower and upper != lower:
        return problem("NO_PROXY", "NO_PROXY and no_proxy differ", 'export no_proxy="$NO_PROXY"')
    entries = [entry.strip().lower().lstrip("*").lstrip(".") for entry in value.replace(" ", ",").split(",")]
    if "*" in value.replace(" ", ",").split(","):
        return problem(
            "NO_PROXY", "`*` keeps everything from the proxy", "unset NO_PROXY no_proxy, or use wirelint run"
        )
    urls = [*BASE_URLS.values(), *(given[name] for name in KNOWN_BASE_URLS if given.get(name))]
    hosts = list(dict.fromkeys(urlsplit(url).hostname or "" for url in urls))
    hidden = [
        host for host in hosts if any(entry and (host == entry or host.endswith(f".{entry}")) for entry in entries)
    ]
    local = [host for host in hidden if host in ("localhost", "127.0.0.1")]
    if set(hidden) - set(local):
        names = ", ".join(host for host in hidden if host not in local)
        return problem("NO_PROXY", f"it keeps {names} from the proxy", f"take {names} out of NO_PROXY")
    if local:
        return ok(
            "NO_PROXY", "servers on this machine go unseen by a proxy; `wirelint run` gives them ports of their own"
        )
    return ok("NO_PROXY", f"{value} hides no model" if value else "is not set")


def base_url_variables(given: Mapping[str, str]) -> Iterator[Check]:
    found = {name: given[name] for name in KNOWN_BASE_URLS if given.get(name)}
    if not found:
        yield ok("base URLs", "none is set; clients go to their vendors")
    for name, url in found.items():
        try:
            target = read_target(name, url)
        except AddressError as error:
            yield problem(name, str(error), f"unset {name}, or give it a URL")
            continue
        parts = urlsplit(target.origin)
        host, port = parts.hostname or "", parts.port or 0
        if target.local and not _listens(host, port):
            yield problem(
                name, f"leads to {host}:{port}, where nothing listens", f"start the server there, or unset {name}"
            )
        elif name == "OPENAI_BASE_URL" and not target.rest.strip("/"):
            yield problem(
                name,
                f"{url} has no path; OpenAI's clients add `/chat/completions` alone",
                f"export {name}={url.rstrip('/')}/v1",
            )
        elif name == "ANTHROPIC_BASE_URL" and target.rest.rstrip("/").endswith("/v1"):
            cut = url.rstrip("/").removesuffix("/v1")
            yield problem(name, f"{url} ends with /v1, which Anthropic's clients add", f"export {name}={cut}")
        else:
            yield ok(name, f"leads to {target.origin}{target.rest}, and not past `wirelint run`")


def port(number: int, given: Mapping[str, str]) -> Check:
    """The port at which mitmproxy listens unless told otherwise."""
    led = any(f":{number}" in (given.get(name) or given.get(name.lower()) or "") for name in PROXIES)
    if not _listens("127.0.0.1", number):
        return ok("port", f"{number} is free")
    if led:
        return ok("port", f"{number} is taken, by what the proxy variables name")
    cure = "give mitmproxy another with --port (wirelint proxy) or --listen-port; wirelint run takes a free one"
    return problem("port", f"{number} is taken by another program", cure)


def _listens(host: str, number: int) -> bool:
    try:
        with socket.create_connection((host, number), _WAIT):
            return True
    except OSError:
        return False
