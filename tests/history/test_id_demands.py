"""What targets demand of ids, and the ids that are made for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Talk, User, exchange, read
from wirelint.history.id_demands import (
    Anthropic,
    Converse,
    Demand,
    KimiK2,
    Limited,
    Mistral,
    complaint,
    demand_of,
    is_kimi_k2,
    is_kimi_k3,
)


@pytest.mark.parametrize(
    ("model", "k2", "k3"),
    [
        ("kimi-k2.5", True, False),
        ("moonshotai/Kimi-K2-Instruct-0905", True, False),
        ("accounts/fireworks/routers/kimi-k2p6-turbo", True, False),
        ("moonshot.kimi-k2-thinking", True, False),
        ("kimi_k2", True, False),
        ("accounts/fireworks/models/kimi-k3", False, True),
        ("Kimi-K3", False, True),
        ("kimi-k20", False, False),
        ("kimi-latest", False, False),
        ("moonshot-v1-8k", False, False),
        ("llama-k2", False, False),
        ("", False, False),
    ],
)
def test_which_kimi_a_name_means(model: str, k2: bool, k3: bool) -> None:
    assert (is_kimi_k2(model), is_kimi_k3(model)) == (k2, k3)


def target(url: str, model: str, api: str = "openai.chat") -> Demand | None:
    record = Talk((User("Go."),), text="Gone.", model=model).record(api, False)
    return demand_of(read({**record, "request": {**record["request"], "url": url}}))


@pytest.mark.parametrize(
    ("url", "model", "api", "expected"),
    [
        ("https://api.moonshot.ai/v1/chat/completions", "kimi-k2.5", "openai.chat", KimiK2),
        ("https://api.moonshot.ai/anthropic/v1/messages", "kimi-k2.5", "anthropic.messages", KimiK2),
        ("https://api.mistral.ai/v1/chat/completions", "codestral-2508", "openai.chat", Mistral),
        ("https://openrouter.ai/api/v1/chat/completions", "mistralai/devstral", "openai.chat", None),
        ("https://notmistral.ai.example/v1/chat/completions", "mistral-small", "openai.chat", None),
        ("https://api.anthropic.com/v1/messages", "claude-opus-5", "anthropic.messages", Anthropic),
        ("http://gateway:4000/v1/messages", "us.anthropic.claude-opus-5", "anthropic.messages", Anthropic),
        ("http://gateway:4000/v1/messages", "glm-5", "anthropic.messages", None),
        ("https://openrouter.ai/api/v1/chat/completions", "anthropic/claude-opus-5", "openai.chat", None),
        ("https://api.openai.com/v1/chat/completions", "gpt-5", "openai.chat", Limited),
        ("https://x.openai.azure.com/openai/deployments/d/chat/completions", "d", "openai.chat", Limited),
        ("https://openrouter.ai/api/v1/chat/completions", "openai/gpt-5", "openai.chat", None),
        ("https://api.openai.com/v1/responses", "gpt-5", "openai.responses", Limited),
        ("https://chatgpt.com/backend-api/codex/responses", "gpt-5", "openai.responses", Limited),
        ("https://llm.test/v1/responses", "gpt-5", "openai.responses", None),
        ("https://api.mistral.ai/v1/chat/completions", "mistral-small", "mistral.chat", Mistral),
        (
            "https://bedrock.test/model/amazon.nova-pro-v1:0/converse",
            "amazon.nova-pro-v1:0",
            "bedrock.converse",
            Converse,
        ),
        (
            "https://bedrock.test/model/moonshot.kimi-k2-thinking/converse",
            "moonshot.kimi-k2-thinking",
            "bedrock.converse",
            KimiK2,
        ),
        ("https://api.cohere.com/v2/chat", "command-a-03-2025", "cohere.chat", None),
        ("http://localhost:11434/api/chat", "qwen3", "ollama.chat", None),
    ],
)
def test_what_a_target_demands(url: str, model: str, api: str, expected: type | None) -> None:
    demand = target(url, model, api)
    assert demand is None if expected is None else isinstance(demand, expected)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            {"object": "error", "message": "Tool call id was a-1 but must be a-z, A-Z, 0-9, with a length of 9."},
            Mistral,
        ),
        ({"error": "Tool call IDs should be alphanumeric strings with length 9!"}, Mistral),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"message": "Tool call id was x but must be … with a length of 9."}'},
                }
            },
            Mistral,
        ),
        ({"error": {"message": "messages.1.content.0.tool_use.id: String should match '^[a-zA-Z0-9_-]+$'"}}, Anthropic),
        ({"error": {"message": "'messages[3].tool_calls[0].id': expected a string with maximum length 40"}}, Limited),
        ({"error": {"message": "toolUse.toolUseId: tool_use_id length less than or equal to 64"}}, Limited),
        ({"error": {"message": "tools.0.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"}}, None),
        ({"error": {"message": "tool_call_id call_7 is not found"}}, None),
        ({"error": {"message": "maximum length 40 exceeded"}}, None),
        ({"choices": [{"message": {"content": "Tool call id with a length of 9"}}]}, None),
    ],
)
def test_what_an_error_demands(reply: dict[str, Any], expected: type | None) -> None:
    record = exchange(
        "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, reply, status=400
    )
    demand = complaint(read(record))
    assert demand is None if expected is None else isinstance(demand, expected)


@pytest.mark.parametrize(
    ("demand", "id_", "taken", "made"),
    [
        (KimiK2(), "look:7", (), "functions.look:2"),
        (KimiK2(), "look:7", ("functions.look:2",), "functions.look:3"),
        (Mistral(), "tide-1", (), "tide10000"),
        (Mistral(), "call_9QfXb2LmZt7RkVw3Nc8HsYpD", (), "3Nc8HsYpD"),
        (Anthropic(), "functions.look:0", (), "functions_look_0"),
        (Limited(40), "call_" + "a7" * 20, (), ("call_" + "a7" * 20)[:40]),
        (Limited(10), "call_abcd__x", (), "call_abcd"),
        (Converse(), "functions.look:0 ", (), "functions.look:0_"),
        (Converse(claude=True), "functions.look:0", (), "functions_look_0"),
    ],
)
def test_an_id_is_made_from_the_old_one(demand: Demand, id_: str, taken: tuple[str, ...], made: str) -> None:
    assert demand.mint(id_, "look", 2, taken) == made


DEMANDS = [KimiK2(), Mistral(), Anthropic(), Limited(40), Converse(), Converse(claude=True)]


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: demand.form)
@pytest.mark.parametrize("id_", ["look:0", "a/b", "ü", "", "x" * 90, "functions.look", "call_|fc_"])
def test_what_is_made_is_accepted_new_and_always_the_same(demand: Demand, id_: str) -> None:
    taken: list[str] = []
    for ordinal in range(4):
        made = demand.mint(id_, "look", ordinal, taken)
        assert made is not None
        assert demand.fault(made, "look") is None
        assert made not in taken
        assert demand.mint(id_, "look", ordinal, taken) == made
        taken.append(made)


def test_kimi_needs_the_functions_name() -> None:
    assert KimiK2().mint("look:0", None, 0, ()) is None
