"""Whom the command trusts: the authorities of the system and of the user, and the one of the private proxy."""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

import certifi

from wirelint.launch.variables import ADDING, REPLACING, Trust

CA_FILE = "mitmproxy-ca-cert.pem"
"""mitmproxy's own authority, in its `confdir`."""

_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def known(given: Mapping[str, str]) -> list[bytes]:
    """The certificates that a command would trust by its environment and system, each once."""
    own = ssl.get_default_verify_paths()
    files = [given[name] for name in (*REPLACING, *ADDING) if given.get(name)]
    return _read([*files, *_SYSTEM, *filter(None, (own.cafile, own.openssl_cafile)), certifi.where()])


def write_upstream(folder: Path, given: Mapping[str, str]) -> Path:
    """Whom the proxy trusts: whom the command would have trusted."""
    return _write(folder / "upstream.pem", known(given))


def write_trust(folder: Path, given: Mapping[str, str], authority: Path) -> Trust:
    """The files for the command. Raises OSError where the proxy's authority cannot be read."""
    own = _CERTIFICATE.findall(authority.read_bytes())
    more = _read([given[name] for name in ADDING if given.get(name)])
    return Trust(_write(folder / "all.pem", [*known(given), *own]), _write(folder / "extra.pem", [*more, *own]))


def trusted_file(given: Mapping[str, str], variable: str) -> str:
    """The file of certificates that a client trusts now: the one that a variable names, else the system's."""
    own = ssl.get_default_verify_paths()
    files = [given.get(variable, ""), *_SYSTEM, own.cafile or "", own.openssl_cafile]
    return next((file for file in files if file and Path(file).is_file()), certifi.where())


def _read(files: Iterable[str]) -> list[bytes]:
    certificates: dict[bytes, bytes] = {}
    for file in files:
        # What is named and cannot be read is the business of `wirelint doctor`; the command had no use for it either.
        with contextlib.suppress(OSError):
            for one in _CERTIFICATE.findall(Path(file).read_bytes()):
                certificates.setdefault(b"".join(one.split()), one)
    return list(certificates.values())


def _write(path: Path, certificates: list[bytes]) -> Path:
    path.write_bytes(b"\n".join(certificates) + b"\n")
    return path
