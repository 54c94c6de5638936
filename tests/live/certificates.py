"""An authority of the test's own, and a server's certificate by it, for `localhost`."""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509
from mitmproxy import certs


def make_authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The file of the authority, and what a server on loopback presents."""
    store = certs.CertStore.from_store(folder, "test", 2048)
    (folder / "server.pem").write_bytes(store.get_cert("localhost", [x509.DNSName("localhost")]).cert.to_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "test-ca.pem")
    return folder / "test-ca-cert.pem", context
