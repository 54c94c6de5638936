"""Which requests of JSON-RPC an exchange asks, and which it answers, by their ids."""

from __future__ import annotations

from wirelint.model import Reply, Request, Rpc, ToolCall, ToolResult


def asked_ids(request: Request | None) -> set[str]:
    """The ids of what a post wants to have answered."""
    parts = [part for message in request.messages for part in message.parts] if request is not None else []
    asked = [
        part.id for part in parts if isinstance(part, ToolCall) or (isinstance(part, Rpc) and part.form == "request")
    ]
    return {id_ for id_ in asked if id_ is not None}


def answered_ids(reply: Reply | None) -> set[str]:
    """The ids that the answers in a reply have."""
    found: set[str] = set()
    for part in (part for choice in reply.choices for part in choice.parts) if reply is not None else ():
        if isinstance(part, ToolResult) and part.call_id is not None:
            found.add(part.call_id)
        elif isinstance(part, Rpc) and part.form in ("result", "error") and part.id is not None:
            found.add(part.id)
    return found
