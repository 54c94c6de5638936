"""The environment of a command, by table."""

from __future__ import annotations

from pathlib import Path

import certifi
import pytest

from tests.build import complaint
from tests.tables import rows, tables
from wirelint.launch.environment import (
    AddressError,
    Target,
    Trust,
    environment,
    exceptions,
    known_authorities,
    node_reads_proxies,
    proxy_in,
    read_target,
    routes,
    write_trust,
    write_upstream,
)

TABLES = tables(__file__)
TRUST = Trust(Path("/all.pem"), Path("/extra.pem"))


@rows(TABLES["targets"])
def test_targets(name: str, url: str, origin: str, rest: str) -> None:
    assert read_target(name, url) == Target(origin, rest)


@pytest.mark.parametrize(
    "url", ["ftp://x.example", "https://", "http://x.example:99999", "https://me:secret@x.example"]
)
def test_what_is_no_target(url: str) -> None:
    said = complaint(AddressError, lambda: read_target("OPENAI_BASE_URL", url))
    assert ("OPENAI_BASE_URL=" in said, "secret" in said) == (True, False)


@rows(TABLES["no_proxy"])
def test_exceptions_from_the_proxy(given: str, loopback: bool, expected: str) -> None:
    assert exceptions({"NO_PROXY": given}, loopback=loopback) == expected


def test_by_proxy() -> None:
    made = environment({"PATH": "/bin", "no_proxy": "*"}, proxy=4000, bases={}, trust=TRUST, loopback=True)
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        assert made[name] == "http://127.0.0.1:4000"
    assert (made["SSL_CERT_FILE"], made["REQUESTS_CA_BUNDLE"], made["CURL_CA_BUNDLE"]) == ("/all.pem",) * 3
    assert (made["NODE_EXTRA_CA_CERTS"], made["NODE_USE_ENV_PROXY"], made["PATH"]) == ("/extra.pem", "1", "/bin")
    assert "NO_PROXY" not in made
    assert "no_proxy" not in made


def test_by_base_url() -> None:
    targets = routes(
        "base-url", "python", {"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"}, {"MINE": "http://h:1/x"}
    ).bases
    bases = {name: (target, 4000 + at) for at, (name, target) in enumerate(targets.items())}
    made = environment({}, proxy=None, bases=bases, trust=TRUST)
    assert made["OPENAI_BASE_URL"] == "http://127.0.0.1:4000/api/v1"
    assert made["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert made["MINE"].endswith("/x")
    assert targets["MINE"].origin == "http://h:1"
    assert not {"HTTPS_PROXY", "SSL_CERT_FILE"} & made.keys()


def test_an_old_node_gets_base_urls_as_well(tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v20.1.0\n")
    node.chmod(0o755)
    assert "OPENAI_BASE_URL" in routes("auto", "npx", {"PATH": str(tmp_path)}, {}).bases
    assert not routes("auto", "npx", {"PATH": str(tmp_path / "none")}, {}).bases
    assert not routes("proxy", "npx", {"PATH": str(tmp_path)}, {}).bases
    assert [node_reads_proxies(one) for one in ((20, 9), (22, 20), (22, 21), (23, 9), (24, 0))] == [0, 0, 1, 0, 1]


def test_bundles_contain_trusted_authorities_and_the_proxy(tmp_path: Path) -> None:
    def certificate(word: bytes) -> bytes:
        return b"-----BEGIN CERTIFICATE-----\n" + word + b"\n-----END CERTIFICATE-----"

    mine, ours = tmp_path / "mine.pem", tmp_path / "ca.pem"
    mine.write_bytes(b"# corp\n" + certificate(b"corp"))
    ours.write_bytes(certificate(b"ours"))
    given = {"NODE_EXTRA_CA_CERTS": str(mine), "CURL_CA_BUNDLE": str(tmp_path / "missing.pem")}
    trust = write_trust(tmp_path, given, ours)
    assert trust.extra.read_bytes() == certificate(b"corp") + b"\n" + certificate(b"ours") + b"\n"
    bundle = trust.bundle.read_bytes()
    assert (
        bundle.count(b"BEGIN") == len(known_authorities(given)) + 1 > Path(certifi.where()).read_bytes().count(b"BEGIN")
    )
    upstream = write_upstream(tmp_path, given).read_bytes()
    assert certificate(b"corp") in upstream
    assert certificate(b"ours") not in upstream


def test_existing_proxy() -> None:
    assert proxy_in({"https_proxy": "http://me:pw@corp:3128"}) == ("http://corp:3128", "me:pw")
    assert proxy_in({"HTTP_PROXY": "corp"}) == ("http://corp:80", "")
    assert proxy_in({}) is None
    with pytest.raises(AddressError, match="ALL_PROXY"):
        proxy_in({"ALL_PROXY": "socks5://corp:1080"})


@pytest.mark.parametrize(
    ("given", "bases"), [({}, set()), ({"OPENAI_BASE_URL": "http://localhost:8000/v1"}, {"OPENAI_BASE_URL"})]
)
def test_a_server_on_loopback_is_led_by_its_base_url(given: dict[str, str], bases: set[str]) -> None:
    made = routes("auto", "python", given, {})
    assert (made.proxied, set(made.bases)) == (True, bases)
