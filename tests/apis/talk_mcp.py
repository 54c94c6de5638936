"""A `Talk` written for servers of tools: a call of the first tool, answered by what the talk says."""

from __future__ import annotations

import json
from typing import Any

from tests.apis.shapes_mcp import answer, events, said
from tests.build import Talk, exchange


def record(talk: Talk, streamed: bool) -> dict[str, Any]:
    params = {"name": next(iter(talk.tools), "look"), "arguments": {"q": "sky"}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    reply = answer(said(*[text for text in (talk.reasoning, talk.text) if text]))
    return exchange(
        "/mcp",
        body,
        events(reply) if streamed else json.dumps(reply, ensure_ascii=False),
        content_type="text/event-stream" if streamed else "application/json",
        status=talk.status,
    )
