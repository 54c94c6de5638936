"""`wirelint run`: clients of every kind are led to the proxy and trust it; the command notices nothing else of us."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command import Wirelint
from tests.live.certificates import make_authority
from tests.live.harness import wait_until
from tests.selection import is_complete
from wirelint.mock import MockServer

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("run_clients.py")
PYTHON = ("urllib", "requests", "httpx", "openai", *(["anthropic"] if is_complete() else []))
BOUND = 60.0


@dataclass
class Ran:
    status: int
    out: str
    err: str
    exchanges: list[dict[str, Any]]

    @property
    def found(self) -> dict[str, set[str]]:
        """Model → names of findings."""
        return {one["model"]: {finding["name"] for finding in one["findings"]} for one in self.exchanges}


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One authority for all runs: to make one takes longer than a run."""
    return tmp_path_factory.mktemp("confdir")


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MockServer, Path]]:
    authority, context = make_authority(tmp_path_factory.mktemp("tls"))
    with MockServer(seed=1, tls=context) as server:
        yield server, authority


def clean(**more: str) -> dict[str, str]:
    """The environment without what would lead elsewhere."""
    left_out = ("PROXY", "_BASE_URL", "_CA_", "SSL_CERT", "NODE_", "WIRELINT")
    kept = {name: value for name, value in os.environ.items() if not any(one in name.upper() for one in left_out)}
    return kept | {"PYTHONPATH": str(ROOT)} | more


def command(folder: Path, confdir: Path, *arguments: str) -> list[str]:
    options = ["--captures", str(folder / "captures"), "--set", f"confdir={confdir}"]
    return [sys.executable, "-m", "wirelint", "run", *options, *arguments]


def run(folder: Path, confdir: Path, *arguments: str, **variables: str) -> Ran:
    done = subprocess.run(
        command(folder, confdir, *arguments),
        capture_output=True,
        text=True,
        timeout=BOUND,
        env=clean(**variables),
        cwd=folder,
        input="typed",
    )
    files = sorted((folder / "captures").glob("*/exchanges.jsonl"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    return Ran(done.returncode, done.stdout, done.stderr, [json.loads(line) for line in lines])


def test_clients_are_led_through_the_proxy_and_trust_it(
    tmp_path: Path, confdir: Path, vendor: tuple[MockServer, Path]
) -> None:
    """The vendor's certificate is by an authority that only the user's environment names; ours trusts it as well."""
    server, authority = vendor
    base = f"https://localhost:{server.port}/v1"
    clients = [*PYTHON, *(["curl"] if shutil.which("curl") else [])]
    options = ("--mode", "proxy", "--loopback", "--live", "--dashboard")
    asked = (*options, "--", sys.executable, str(DRIVER), *clients)
    ran = run(tmp_path, confdir, *asked, TEST_BASE_URL=base, SSL_CERT_FILE=str(authority))
    assert {name: text for name, text in json.loads(ran.out).items() if "<invoke" not in text} == {}
    assert ran.status == 7
    assert ran.found == {name: {"xml-leak"} for name in clients}
    assert f"{len(clients)} errors" in ran.err
    _check_live_log(ran.err, clients)


def _check_live_log(log: str, clients: list[str]) -> None:
    """`--dashboard`, `--live`: the address is printed once; the totals end the live log, above the summary."""
    lines = log.splitlines()
    assert len(re.findall(r"wirelint: dashboard at http://127\.0\.0\.1:\d+/\?token=", log)) == 1
    assert "client connect" not in log
    titles = next(n for n, line in enumerate(lines) if "totals" in line)
    totals = "\n".join(lines[titles + 1 :][: len(clients)])
    assert [model for model in clients if not re.search(rf" {model} +1 +\d+ +\d+ ", totals)] == [], totals
    assert any(line.startswith(f"wirelint: {len(clients)} exchanges") for line in lines[titles + len(clients) :])


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_clients_without_proxies_are_led_by_a_base_url(
    tmp_path: Path, confdir: Path, vendor: tuple[MockServer, Path]
) -> None:
    """A Node that knows no proxies; repairs are asked for, and reach it."""
    server, authority = vendor
    base = f"https://localhost:{server.port}/v1"
    asked = ("--mode", "base-url", "--fix", "unsafe", "--", sys.executable, str(DRIVER), "node-fetch", "urllib")
    ran = run(tmp_path, confdir, *asked, OPENAI_BASE_URL=base, NODE_EXTRA_CA_CERTS=str(authority))
    assert [text for text in json.loads(ran.out).values() if "<invoke" in text or "failed" in text] == []
    assert ran.found == {name: {"xml-leak"} for name in ("node-fetch", "urllib")}
    assert all(one["fixes"] for one in ran.exchanges)


@pytest.mark.complete
def test_what_passes_twice_is_seen_once(tmp_path: Path, confdir: Path) -> None:
    """A base URL on loopback, and a proxy that sees loopback."""
    with MockServer() as server:
        asked = ("--loopback", "--", sys.executable, str(DRIVER), "httpx", "urllib")
        ran = run(tmp_path, confdir, *asked, OPENAI_BASE_URL=f"{server.url}/v1")
    assert sorted(one["model"] for one in ran.exchanges) == ["httpx", "urllib"]


WRONG = [
    (("--", "no-such-command-anywhere"), 127, "no-such-command-anywhere"),
    (("--set", "wirelint_fix=perhaps", "--", "true"), 2, "wirelint_fix=perhaps"),
    (("--base-url", "MINE", "--", "true"), 2, "--base-url MINE"),
]


@pytest.mark.parametrize(("asked", "status", "words"), WRONG, ids=[str(row[1]) + row[2] for row in WRONG])
def test_what_cannot_start_is_refused_in_one_line(
    wirelint: Wirelint, tmp_path: Path, confdir: Path, asked: tuple[str, ...], status: int, words: str
) -> None:
    ran = wirelint(*command(tmp_path, confdir, "--quiet", *asked)[3:])
    assert (ran.status, ran.err.count("\n")) == (status, 1), ran.err
    assert words in ran.err


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux's /proc")
def test_nothing_stays_behind_when_we_are_killed(tmp_path: Path, confdir: Path) -> None:
    script = "import time; print('ready', flush=True); time.sleep(40)"
    asked = command(tmp_path, confdir, "--quiet", "--", sys.executable, "-c", script)
    env = clean(TMPDIR=str(tmp_path))  # nobody can remove the folder of a killed process
    process = subprocess.Popen(asked, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = children(process.pid)
    assert len(started) == 2
    process.kill()
    assert process.wait(BOUND) == -signal.SIGKILL
    wait_until(lambda: all(map(gone, started)), f"the end of {started}")
    process.stdout.close()
