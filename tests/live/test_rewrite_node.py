"""Repaired replies in the hands of the SDKs of Node, which assemble streams by rules of their own.

The packages are installed for the run, into a folder that goes with it. Where node, npm or the registry cannot be had,
the tests skip and say why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.harness import Proxy, Upstream
from tests.live.scenes import CASES, OPENAI, Case, Seen, judge

pytestmark = pytest.mark.complete

SOURCES = Path(__file__).parent / "node"
LEAST_NODE = 20
INSTALL, RUN = 60.0, 25.0
"""Seconds that installing the packages, and one run over all cases, may take."""
_NPM = (
    *("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--prefer-offline"),
    *("--loglevel=error", "--fetch-retries=0", "--fetch-timeout=20000"),
)
_NO_SUCH_VERSION = "ETARGET"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the script and the packages that it needs."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < LEAST_NODE:
        pytest.skip(f"node {version.strip()} is older than {LEAST_NODE}")
    folder = tmp_path_factory.mktemp("node")
    for source in SOURCES.iterdir():
        shutil.copy(source, folder)
    _install(folder)
    yield folder
    shutil.rmtree(folder)


def _install(folder: Path) -> None:
    output = folder / "npm.txt"
    with output.open("wb") as out:
        try:
            done = subprocess.run(
                _NPM, cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=INSTALL
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm install did not end within {INSTALL:.0f} s")
    if done.returncode:
        said = output.read_text("utf-8", "replace").strip()
        assert _NO_SUCH_VERSION not in said, said
        pytest.skip(f"npm install failed: {' '.join(said.split())[:200]}")


def see(folder: Path, base_url: str, cases: Iterable[Case]) -> dict[str, Seen]:
    """What the SDKs made of every case, all asked by one process."""
    asked = [
        {
            "id": case.id,
            "api": case.api,
            "stream": case.stream,
            "headers": {**case.headers, "x-test-id": f"{case.id} node", "session_id": f"{case.id} node"},
            "request": case.request,
        }
        for case in cases
    ]
    done = subprocess.run(
        ["node", "see.mjs"],
        cwd=folder,
        input=json.dumps({"url": base_url, "cases": asked}),
        capture_output=True,
        text=True,
        timeout=RUN,
    )
    assert done.returncode == 0, done.stderr
    return {id_: _seen(told) for id_, told in json.loads(done.stdout).items()}


def comparable(case: Case) -> Case:
    """Of fields that it does not know, the OpenAI SDK keeps the last piece of a stream: no reasoning to compare."""
    if (case.api, case.stream) != (OPENAI, True):
        return case
    return replace(case, scene=replace(case.scene, reasoning=None))


def _seen(told: dict[str, object]) -> Seen:
    calls = told.pop("calls", ())
    assert isinstance(calls, list | tuple)
    return Seen(calls=tuple((id_, name, arguments) for id_, name, arguments in calls), **told)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def direct(node: Path, vendor: Upstream) -> dict[str, Seen]:
    return see(node, vendor.url, CASES)


@pytest.fixture(scope="module")
def repaired(node: Path, vendor: Upstream, repairing: Proxy) -> dict[str, Seen]:
    return see(node, repairing.url, CASES)


def test_without_wirelint_most_faults_are_seen(direct: dict[str, Seen]) -> None:
    """Which ones an SDK stumbles over differs from language to language; most, in each."""
    faulty = [case for case in CASES if not case.scene.healthy and (case.api, case.stream) not in case.scene.immune]
    unseen = [case.id for case in faulty if not judge(comparable(case), direct[case.id])]
    assert len(unseen) < len(faulty) // 10, unseen


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_reply_is_what_it_should_have_been(repaired: dict[str, Seen], case: Case) -> None:
    assert judge(comparable(case), repaired[case.id]) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.scene.healthy], ids=lambda case: case.id)
def test_a_clean_reply_is_as_it_came(direct: dict[str, Seen], repaired: dict[str, Seen], case: Case) -> None:
    assert repaired[case.id] == direct[case.id]
