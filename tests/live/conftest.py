"""One upstream, one mitmdump that observes and one that repairs: the tests of all files share them, since each start
takes seconds. So the value of `x-test-id` names one exchange in all files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.harness import Proxy, Upstream, running
from tests.live.scenes import CASES, Playing
from wirelint.mock.service import Service


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/live/"):
            item.add_marker("live")


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.close()
    assert not upstream.failures


@pytest.fixture(scope="session")
def proxy(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), upstream.url) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def mock(upstream: Upstream) -> Playing:
    """What the upstream answers to requests without a script."""
    upstream.default = played = Playing(Service(seed=3))
    return played


@pytest.fixture(scope="session")
def vendor(upstream: Upstream, mock: Playing) -> Upstream:
    """The upstream with all scenes: the mock's faults by name, and those that are scripted."""
    upstream.scripts |= {case.id: case.script for case in CASES if case.scene.replies}
    return upstream


@pytest.fixture(scope="session")
def repairing(vendor: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("repairing"), vendor.url, "wirelint_fix=unsafe") as proxy:
        yield proxy
