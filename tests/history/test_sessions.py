"""What clients and gateways say about the conversation that a request belongs to."""

from __future__ import annotations

from typing import Any

from tests.tables import rows, tables
from wirelint.history.turns import session_of
from wirelint.model import Request

UUID = "0b9c6a1e-4f7d-7c22-8a55-3d1f0e6b9a47"
OTHER = "7e1d2c3b-0a9f-7b11-9c44-6f5e4d3c2b1a"


@rows(tables(__file__)["said"])
def test_what_a_client_says(headers: dict[str, str], body: dict[str, Any], session: str | None) -> None:
    assert session_of(Request("m", (), (), body, api="openai.chat"), headers) == session


def test_a_tool_server_has_sessions_of_its_own() -> None:
    request = Request("", (), (), {}, api="mcp")
    assert session_of(request, {"mcp-session-id": UUID, "x-session-id": OTHER}) == UUID
    assert session_of(request, {"x-session-id": OTHER}) is None
