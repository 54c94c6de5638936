"""`wirelint doctor`: clients are really tried, with and without what they need."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import Wirelint
from tests.live.harness import free_port
from tests.live.test_run import clean
from wirelint.launch import doctor
from wirelint.launch.processes import Place, PrivateProxy
from wirelint.mock import MockServer

Checks = dict[str, dict[str, Any]]
Doctor = Callable[..., tuple[int, Checks]]


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("confdir")


@pytest.fixture(scope="module")
def shared() -> Iterator[type[PrivateProxy]]:
    """A private proxy for all commands of this module. The first one starts it."""
    begun: list[tuple[PrivateProxy, Place]] = []

    class Shared(PrivateProxy):
        def start(self) -> Place:
            if not begun:
                begun.append((self, super().start()))
            return begun[0][1]

        def __exit__(self, *_: object) -> None:
            """Leave it to the end of the module."""

    yield Shared
    for proxy, _ in begun:
        proxy.stop(0)


@pytest.fixture
def examine(wirelint: Wirelint, confdir: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs `wirelint doctor` with these variables; gives the exit status and the checks by name."""
    for name in os.environ.keys() - clean().keys():
        monkeypatch.delenv(name)

    def run(*arguments: str, folder: Path = confdir, **variables: str) -> tuple[int, Checks]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        ran = wirelint("doctor", "--set", f"confdir={folder}", "--output-format", "json", *arguments)
        return ran.status, {check["name"]: check for check in json.loads(ran.out)}

    return run


@pytest.fixture
def sharing(examine: Doctor, shared: type[PrivateProxy], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    monkeypatch.setattr(doctor, "PrivateProxy", shared)
    return examine


def test_a_sound_set_up_has_no_problem(sharing: Doctor) -> None:
    status, checks = sharing("--captures", "", "--", sys.executable)
    clients = [check for name, check in checks.items() if name.startswith("python")]
    assert {check["state"] for check in clients} == {"ok"}
    assert {check["name"].split()[-1] for check in clients} == {"python", "urllib", "requests", "httpx"}
    assert [check for check in checks.values() if check["state"] == "problem" and check["name"] != "port"] == []
    assert status == (checks["port"]["state"] == "problem")


def test_an_authority_that_nobody_trusts(confdir: Path, sharing: Doctor) -> None:
    """The proxy of the environment is tried as it is: one client was told to trust, the others were not."""
    with MockServer() as other:
        more = {"HTTPS_PROXY": other.url, "REQUESTS_CA_BUNDLE": str(confdir / "mitmproxy-ca-cert.pem")}
        status, checks = sharing("--", sys.executable, **more)
    name = Path(sys.executable).name
    assert status == 1
    assert checks[f"{name} requests"]["state"] == "ok"
    for client in ("urllib", "httpx"):
        assert "does not trust" in checks[f"{name} {client}"]["found"]
        assert "export SSL_CERT_FILE=" in checks[f"{name} {client}"]["cure"]


@pytest.mark.complete
@pytest.mark.parametrize("first", [True, False], ids=["an authority is made first", "there is one"])
def test_an_option_that_is_wrong(examine: Doctor, confdir: Path, tmp_path: Path, first: bool) -> None:
    status, checks = examine("--set", "wirelint_fix=perhaps", folder=tmp_path if first else confdir)
    assert (status, checks["addon"]["state"]) == (1, "problem")
    assert "wirelint_fix=perhaps" in checks["addon"]["found"]


def test_a_dead_proxy_is_one_problem(sharing: Doctor) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    status, checks = sharing("--", sys.executable, HTTPS_PROXY=dead, HTTP_PROXY=dead)
    assert status == 1
    found = [name for name, check in checks.items() if check["state"] == "problem"]
    assert [name for name in found if name != "port"] == ["HTTP_PROXY"]  # another program may have the usual port
