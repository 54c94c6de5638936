"""`wirelint doctor`: clients are really tried, with and without what they need."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Wirelint, wirelint
from tests.live.harness import free_port
from tests.live.test_run import BOUND, clean
from wirelint.launch import doctor
from wirelint.launch.processes import PrivateProxy
from wirelint.mock import MockServer

__all__ = ["wirelint"]

pytestmark = pytest.mark.live

Checks = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("confdir")


def options(confdir: Path, *arguments: str) -> list[str]:
    return ["doctor", "--set", f"confdir={confdir}", "--output-format", "json", *arguments]


def by_name(output: str | bytes) -> Checks:
    return {check["name"]: check for check in json.loads(output)}


@pytest.fixture(scope="module")
def private(confdir: Path) -> Iterator[PrivateProxy]:
    """The private proxy of the commands that run in this process: they differ in what the clients are told."""
    given = ["connection_strategy=lazy", "wirelint_captures=", f"confdir={confdir}"]
    environment = {**clean(), "WIRELINT_DOCTOR": "1"}
    with PrivateProxy([f"https://{doctor.HOST}:443"], given, confdir / "log", environment=environment) as proxy:
        place = proxy.start()
        proxy.start = lambda: place  # type: ignore[method-assign]
        yield proxy


@pytest.fixture
def examined(
    wirelint: Wirelint, private: PrivateProxy, confdir: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, Checks]]:
    """Runs `wirelint doctor` with these variables; gives the exit status and the checks."""
    monkeypatch.setattr(doctor, "PrivateProxy", lambda *_, **__: contextlib.nullcontext(private))

    def run(**variables: str) -> tuple[int, Checks]:
        for name in os.environ.keys() - clean().keys():
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        ran = wirelint(*options(confdir, "--", sys.executable))
        return ran.status, by_name(ran.out)

    return run


def test_a_sound_set_up_has_no_problem(confdir: Path) -> None:
    command = [sys.executable, "-m", "wirelint", *options(confdir, "--captures", "", "--", sys.executable)]
    done = subprocess.run(command, capture_output=True, timeout=BOUND, env=clean(), cwd=confdir, check=False)
    checks = by_name(done.stdout)
    clients = [check for name, check in checks.items() if name.startswith("python")]
    assert {check["state"] for check in clients} == {"ok"}
    assert {check["name"].split()[-1] for check in clients} == {"python", "urllib", "requests", "httpx"}
    assert [check for check in checks.values() if check["state"] == "problem" and check["name"] != "port"] == []
    assert done.returncode == (checks["port"]["state"] == "problem")


def test_an_authority_that_nobody_trusts(confdir: Path, examined: Callable[..., tuple[int, Checks]]) -> None:
    """The proxy of the environment is tried as it is: one client was told to trust, the others were not."""
    with MockServer() as other:
        status, checks = examined(HTTPS_PROXY=other.url, REQUESTS_CA_BUNDLE=str(confdir / "mitmproxy-ca-cert.pem"))
    name = Path(sys.executable).name
    assert status == 1
    assert checks[f"{name} requests"]["state"] == "ok"
    for client in ("urllib", "httpx"):
        assert "does not trust" in checks[f"{name} {client}"]["found"]
        assert "export SSL_CERT_FILE=" in checks[f"{name} {client}"]["cure"]


@pytest.mark.complete
@pytest.mark.parametrize("first", [True, False], ids=["an authority is made first", "there is one"])
def test_an_option_that_is_wrong(confdir: Path, tmp_path: Path, wirelint: Wirelint, first: bool) -> None:
    ran = wirelint(*options(tmp_path if first else confdir, "--set", "wirelint_fix=perhaps"))
    checks = by_name(ran.out)
    assert (ran.status, checks["addon"]["state"]) == (1, "problem")
    assert "wirelint_fix=perhaps" in checks["addon"]["found"]


def test_a_dead_proxy_is_one_problem(examined: Callable[..., tuple[int, Checks]]) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    status, checks = examined(HTTPS_PROXY=dead, HTTP_PROXY=dead)
    assert status == 1
    found = [name for name, check in checks.items() if check["state"] == "problem"]
    assert [name for name in found if name != "port"] == ["HTTP_PROXY"]  # another program may have the usual port
