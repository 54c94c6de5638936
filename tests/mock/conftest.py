"""A mock server on loopback, and a way to post to it over one kept-alive connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mock.client import PATHS, Post, Response
from wirelint.mock import MockServer


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(seed=7) as server:
        yield server


@pytest.fixture
def post(server: MockServer) -> Iterator[Post]:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)

    def send(api: str, body: Any, scenario: str | None = None, headers: dict[str, str] | None = None) -> Response:
        head = {"content-type": "application/json", **(headers or {})}
        if scenario is not None:
            head["x-wirelint-mock"] = scenario
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", PATHS.get(api, api), data, head)
        response = connection.getresponse()
        return Response(response.status, {name.lower(): one for name, one in response.getheaders()}, response.read())

    yield send
    connection.close()
