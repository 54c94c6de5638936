"""What clients and gateways say about the conversation that a request belongs to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirelint.history.turns import session_of
from wirelint.model import Request

UUID = "0b9c6a1e-4f7d-7c22-8a55-3d1f0e6b9a47"
OTHER = "7e1d2c3b-0a9f-7b11-9c44-6f5e4d3c2b1a"

SAID: dict[str, tuple[dict[str, str], dict[str, Any], str | None]] = {
    "Claude Code's header": ({"x-claude-code-session-id": UUID}, {}, UUID),
    "Claude Code's user, before 2.1.78": (
        {},
        {"metadata": {"user_id": f"user_{'0f' * 32}_account_{OTHER}_session_{UUID}"}},
        UUID,
    ),
    "Claude Code's user, since then": (
        {},
        {"metadata": {"user_id": json.dumps({"device_id": "d", "account_uuid": OTHER, "session_id": UUID})}},
        UUID,
    ),
    "Codex": ({"session_id": UUID, "conversation_id": UUID}, {"prompt_cache_key": UUID}, UUID),
    "Codex, a thread of a session": ({"session-id": OTHER, "thread-id": UUID}, {}, UUID),
    "OpenCode": ({"x-opencode-session": "ses_6b1f", "x-session-affinity": "ses_6b1f"}, {}, "ses_6b1f"),
    "OpenRouter's header": ({"x-session-id": "conv-31"}, {}, "conv-31"),
    "OpenRouter's field": ({}, {"session_id": "conv-31"}, "conv-31"),
    "LiteLLM's header": ({"x-litellm-session-id": "s-5"}, {}, "s-5"),
    "LiteLLM's field": ({}, {"litellm_session_id": "s-5"}, "s-5"),
    "Langfuse": ({}, {"metadata": {"langfuse_session_id": "s-5"}}, "s-5"),
    "Helicone": ({"helicone-session-id": UUID, "helicone-session-name": "shop"}, {}, UUID),
    "xAI": ({"x-grok-conv-id": UUID}, {}, UUID),
    "another gateway's header": ({"x-acme-agent-session-id": "a7"}, {}, "a7"),
    "Responses, by name": ({}, {"conversation": "conv_68a1"}, "conv_68a1"),
    "Responses, as an object": ({}, {"conversation": {"id": "conv_68a1"}}, "conv_68a1"),
    "a drawn cache key": ({}, {"prompt_cache_key": f"agent:{UUID}"}, f"agent:{UUID}"),
    "metadata of OpenAI": ({}, {"metadata": {"thread_id": "th_1"}}, "th_1"),
    "the key of a prompt": ({}, {"prompt_cache_key": "support-bot-v2"}, None),
    "a person": ({}, {"user": UUID, "safety_identifier": UUID, "metadata": {"user_id": "user-17"}}, None),
    "an editor's window": ({"vscode-sessionid": UUID, "x-request-id": OTHER}, {}, None),
    "a session of a tool server": ({"mcp-session-id": UUID}, {}, None),
    "nothing": ({"x-session-id": "undefined", "session_id": " "}, {"session_id": None, "conversation": {}}, None),
    "broken": ({}, {"metadata": {"user_id": "{broken"}, "conversation": 7}, None),
}


@pytest.mark.parametrize(("headers", "body", "session"), SAID.values(), ids=SAID)
def test_what_a_client_says(headers: dict[str, str], body: dict[str, Any], session: str | None) -> None:
    assert session_of(Request("openai.chat", "m", (), (), body), headers) == session


def test_a_tool_server_has_sessions_of_its_own() -> None:
    request = Request("mcp", "", (), (), {})
    assert session_of(request, {"mcp-session-id": UUID, "x-session-id": OTHER}) == UUID
    assert session_of(request, {"x-session-id": OTHER}) is None
