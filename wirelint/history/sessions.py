"""What a client itself says about the conversation that a request belongs to: session headers, and fields of the body.

The names are those of OpenAI's Responses API (`conversation`), Claude Code (`x-claude-code-session-id`,
`metadata.user_id`), Codex (`session_id`, `thread-id`, `conversation_id`), OpenCode (`x-opencode-session`,
`x-session-affinity`), OpenRouter (`session_id`, `x-session-id`), LiteLLM (`litellm_session_id`), Langfuse, Helicone and xAI
(`x-grok-conv-id`). `user`, and a `metadata.user_id` without a session in it, name a person, who has many conversations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from wirelint.model import Json, Request

_HEADERS = (
    "x-claude-code-session-id",
    "x-conversation-id",
    "conversation_id",
    "conversation-id",
    "x-grok-conv-id",
    "thread-id",
    "x-session-id",
    "session_id",
    "session-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-litellm-session-id",
    "helicone-session-id",
    "langfuse_session_id",
    "langfuse-session-id",
)
"""Where a client sends several, the one that stands for less counts: a thread, then a session."""

_KNOWN_HEADERS = frozenset(_HEADERS)
_NAMED = re.compile(r"x-[a-z0-9-]{1,40}-(?:session|conversation)-id")
"""Whatever else a client or its gateway calls it."""

_FIELDS = ("conversation_id", "session_id", "litellm_session_id")
_METADATA = (
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "session_id",
    "sessionId",
    "litellm_session_id",
    "langfuse_session_id",
)
_CLAUDE_CODE = re.compile(r"_session_(?P<session>[0-9A-Za-z-]{8,})\Z")
_EMPTY = frozenset({"", "-", "0", "null", "nil", "none", "undefined", "default", "unknown", "[object object]"})
_DRAWN = re.compile(
    r"(?=[\w-]{0,199}[0-9])(?=[\w-]{0,199}[A-Za-z])[A-Za-z0-9]{12,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-"
)


def session_of(request: Request, headers: Mapping[str, str]) -> str | None:
    """The name that the client gives the conversation, as it stands there; None when it gives none.

    `headers` are lower-cased. A `prompt_cache_key` counts where it was drawn for one conversation (`019a…-73c1-…`): what
    can be read (`support-bot-v2`) is mostly the name of a prompt that many conversations share.
    """
    if request.api == "mcp":
        return headers.get("mcp-session-id") or None
    named = next(_said(headers, request.body), None)
    if named is not None:
        return named
    key = request.body.get("prompt_cache_key")
    return key if isinstance(key, str) and _DRAWN.search(key) else None


def _said(headers: Mapping[str, str], body: Mapping[str, Json]) -> Iterator[str]:
    candidates: list[Json] = []
    if not _KNOWN_HEADERS.isdisjoint(headers):
        candidates += [headers.get(name) for name in _HEADERS]
    candidates += [value for name, value in headers.items() if name[:2] == "x-" and _NAMED.fullmatch(name)]
    conversation = body.get("conversation")
    candidates.append(conversation.get("id") if isinstance(conversation, dict) else conversation)
    candidates += [body.get(name) for name in _FIELDS]
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        candidates += [metadata.get(name) for name in _METADATA]
        candidates.append(_claude_code(metadata.get("user_id")))
    for candidate in candidates:
        if isinstance(candidate, str) and candidate.strip().lower() not in _EMPTY:
            yield candidate.strip()


def _claude_code(user: Json) -> Json:
    """The session in what Claude Code sends as its user: `user_…_session_…`, since 2.1.78 a JSON object."""
    if not isinstance(user, str):
        return None
    if user.startswith("{"):
        try:
            document: Json = orjson.loads(user)
        except orjson.JSONDecodeError:
            return None
        return document.get("session_id") if isinstance(document, dict) else None
    found = _CLAUDE_CODE.search(user)
    return found["session"] if found is not None else None
