"""A `Talk` written for servers of tools: a call of the first tool, answered by what the talk says."""

from __future__ import annotations

import json
from typing import Any

from tests.build import Talk


def record(talk: Talk, streamed: bool) -> dict[str, Any]:
    params = {"name": next(iter(talk.tools), "look"), "arguments": {"q": "sky"}}
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    blocks = [{"type": "text", "text": text} for text in (talk.reasoning, talk.text) if text]
    reply = {"jsonrpc": "2.0", "id": 3, "result": {"content": blocks}}
    event = f"event: message\ndata: {json.dumps(reply, ensure_ascii=False)}\n\n"
    return talk.answered("/mcp", body, event if streamed else reply)
