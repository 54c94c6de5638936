from __future__ import annotations

import pytest

from wirelint.text.families import family, thinks


@pytest.mark.parametrize(
    ("model", "known", "thinker"),
    [
        ("moonshotai/kimi-k2.5", "kimi", True),
        ("accounts/fireworks/models/kimi-k2p6", "kimi", True),
        ("claude-3-opus-20240229", "claude", False),
        ("anthropic/claude-sonnet-4", "claude", True),
        ("claude-3-7-sonnet-latest", "claude", True),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen", False),
        ("Qwen/Qwen3-32B", "qwen", True),
        ("deepseek-r1-distill-llama-70b", "deepseek", True),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes", False),
        ("openai/gpt-oss-20b", "gpt-oss", True),
        ("gpt-4o", "gpt", False),
        ("us.amazon.nova-pro-v1:0", "nova", False),
        ("acme-1", None, False),
        ("", None, False),
    ],
)
def test_a_model_belongs_to_its_family(model: str, known: str | None, thinker: bool) -> None:
    assert family(model) == known
    assert thinks(model) is thinker
