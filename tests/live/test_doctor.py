"""`wirelint doctor`: clients are really tried, with and without what they need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.harness import free_port
from tests.live.test_run import BOUND, clean
from wirelint.mock import MockServer

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("confdir")


def examine(confdir: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    command = [sys.executable, "-m", "wirelint", "doctor", "--set", f"confdir={confdir}", "--output-format", "json"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, timeout=BOUND, env=clean(**variables), cwd=confdir
    )
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def test_a_sound_set_up_has_no_problem(confdir: Path) -> None:
    status, checks = examine(confdir, "--captures", "", "--", sys.executable)
    clients = [check for name, check in checks.items() if name.startswith("python")]
    assert {check["state"] for check in clients} == {"ok"}
    assert {check["name"].split()[-1] for check in clients} == {"python", "urllib", "requests", "httpx"}
    assert [check for check in checks.values() if check["state"] == "problem" and check["name"] != "port"] == []
    assert status == (checks["port"]["state"] == "problem")


def test_an_authority_that_nobody_trusts(confdir: Path) -> None:
    """The proxy of the environment is tried as it is: one client was told to trust, the others were not."""
    with MockServer() as other:
        more = {"HTTPS_PROXY": other.url, "REQUESTS_CA_BUNDLE": str(confdir / "mitmproxy-ca-cert.pem")}
        status, checks = examine(confdir, "--", sys.executable, **more)
    name = Path(sys.executable).name
    assert status == 1
    assert checks[f"{name} requests"]["state"] == "ok"
    for client in ("urllib", "httpx"):
        assert "does not trust" in checks[f"{name} {client}"]["found"]
        assert "export SSL_CERT_FILE=" in checks[f"{name} {client}"]["cure"]


@pytest.mark.complete
@pytest.mark.parametrize("first", [True, False], ids=["an authority is made first", "there is one"])
def test_an_option_that_is_wrong(confdir: Path, tmp_path: Path, first: bool) -> None:
    status, checks = examine(tmp_path if first else confdir, "--set", "wirelint_fix=perhaps")
    assert (status, checks["addon"]["state"]) == (1, "problem")
    assert "wirelint_fix=perhaps" in checks["addon"]["found"]


def test_a_dead_proxy_is_one_problem(confdir: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    status, checks = examine(confdir, "--", sys.executable, HTTPS_PROXY=dead, HTTP_PROXY=dead)
    assert status == 1
    found = [name for name, check in checks.items() if check["state"] == "problem"]
    assert [name for name in found if name != "port"] == ["HTTP_PROXY"]  # another program may have the usual port
