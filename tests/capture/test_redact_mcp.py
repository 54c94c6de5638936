"""Secrets that pass to and from servers of tools, in every shape of a body; the exchange stays readable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import as_record, some
from tests.rules.mcp import call, listed, note, post, request, result, text
from wirelint.capture.format import encode
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import replay
from wirelint.model import Exchange, Rpc, ToolCall

KEY = "sk-proj-Zq81LmN0pXv72RtYc5Wb"
HEARD = {"accept": "text/event-stream", "mcp-session-id": "5f1c"}
ASKED = call("deploy", {"api_key": KEY, "replicas": 3})
GAVE = result(text(f"deployed with {KEY}"), 2)

RECORDS: dict[str, dict[str, Any]] = {
    "a call": post(ASKED, GAVE),
    "a call, streamed": post(ASKED, [note("notifications/message", data=f"token={KEY}"), GAVE], stream=True),
    "a batch": post([note(), ASKED], [GAVE]),
    "a nested value": post(call("deploy", {"env": [{"name": "OPENAI_API_KEY", "value": KEY}]}), GAVE),
    "an error": post(ASKED, {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": f"bad key {KEY}"}}),
    "a stream that is opened": post(None, [GAVE], stream=True, method="GET", headers=HEARD),
    "a resource": post(request("resources/read", 2, uri="env://x"), result({"contents": [{"text": f"key={KEY}"}]}, 2)),
    "a structured result": post(ASKED, result({"content": [], "structuredContent": {"password": KEY}}, 2)),
    "an answer to the server": post(result({"action": "accept", "content": {"token": KEY}}), "", status=202, headers=HEARD),
    "the older transport": post(ASKED, "Accepted", url="http://127.0.0.1:8765/messages/?session_id=7c", status=202),
}  # fmt: skip


def kinds(exchange: Exchange) -> list[Any]:
    """The parts of both sides, without their texts."""
    return [
        (type(part), part.id if isinstance(part, ToolCall | Rpc) else getattr(part, "call_id", None), part.pointer)
        for side in (exchange.request, exchange.reply)
        for part in (side.parts if side is not None else ())
    ]


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_secrets_go_and_messages_stay(record: dict[str, Any]) -> None:
    made = as_record(record)
    clean = Redactor(b"a key for the tests").record(made)
    assert KEY not in str(encode(clean)), clean
    before, after = some(replay(made)), some(replay(clean))
    assert after.api == "mcp"
    assert kinds(before) == kinds(after)


def test_what_is_no_secret_stays() -> None:
    parameters = {"type": "object", "properties": {"token": {"type": "string"}}}
    record = as_record(listed({"search": ("Search for a token or a key.", parameters)}))
    clean = Redactor(b"a key for the tests").record(record)
    assert (clean.request_body, clean.response_body) == (record.request_body, record.response_body)
    session = as_record(post(request("tools/list"), "", headers={"mcp-session-id": "1868a90c-2b4e-4f0a"}))
    assert Redactor(b"a key for the tests").record(session).request_headers == session.request_headers
