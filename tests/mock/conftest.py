"""A mock server on loopback, and a way to post to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.live import harness
from tests.mock.client import PATHS
from wirelint.mock import MockServer
from wirelint.mock.scenario import HEADER

Post = Callable[..., harness.Reply]
"""(API or path, body, scenario, headers) -> Reply."""


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(seed=7) as server:
        yield server


@pytest.fixture
def post(server: MockServer) -> Post:
    def send(api: str, body: Any, scenario: str | None = None, headers: dict[str, str] | None = None) -> harness.Reply:
        chosen = {} if scenario is None else {HEADER: scenario}
        return harness.post(server.port, PATHS.get(api, api), body, {**(headers or {}), **chosen})

    return send
