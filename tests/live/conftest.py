"""One upstream and one mitmdump with the addon per module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.harness import Proxy, Upstream, running


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.close()
    assert not upstream.failures


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), upstream.url) as proxy:
        yield proxy
