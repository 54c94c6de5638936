"""Token counts of every vendor's usage object, and their cost."""

from __future__ import annotations

import pytest

from tests.build import some
from wirelint.model import Json
from wirelint.prices import Tokens, cost, price_table, tokens_of

OPENAI = "https://api.openai.com/v1/chat/completions"
COUNTS: list[tuple[str, dict[str, Json], Tokens | None]] = [
    (
        "openai",
        {
            "prompt_tokens": 100,
            "completion_tokens": 30,
            "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Tokens(100, 64, output=30, reasoning=20),
    ),
    (
        "responses",
        {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 30},
        Tokens(100, 64, output=30),
    ),
    (
        "anthropic counts the cache beside the input",
        {
            "input_tokens": 10,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_1h_input_tokens": 5},
            "output_tokens": 7,
        },
        Tokens(100, 60, 30, 5, 7),
    ),
    (
        "bedrock",
        {"inputTokens": 10, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30, "outputTokens": 7},
        Tokens(100, 60, 30, output=7),
    ),
    (
        "gemini counts thoughts beside the output",
        {"promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 10, "thoughtsTokenCount": 20},
        Tokens(100, 64, output=30, reasoning=20),
    ),
    (
        "xai counts reasoning beside the output",
        {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 130,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Tokens(100, output=30, reasoning=20),
    ),
    ("deepseek", {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Tokens(9, 4, output=2)),
    (
        "cohere",
        {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 90, "output_tokens": 8}},
        Tokens(90, output=8),
    ),
    ("ollama", {"prompt_eval_count": 40, "eval_count": 6}, Tokens(40, output=6)),
    ("no counts", {"prompt_tokens": True, "completion_tokens": "7", "input_tokens": -1, "output_tokens": None}, None),
    ("none", {}, None),
]


@pytest.mark.parametrize(("usage", "tokens"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS])
def test_counts(usage: dict[str, Json], tokens: Tokens | None) -> None:
    assert tokens_of(usage) == tokens
    if tokens is not None:
        assert Tokens.of_document(tokens.document) == tokens


def test_cost_follows_the_kind_of_token() -> None:
    def price(provider: str = OPENAI, **counts: int) -> float:
        return some(cost(Tokens(**counts), "gpt-4o-2024-08-06", provider, 1_760_000_000)).amount

    plain = price(input=1000, output=0)
    assert 0 < price(input=1000, cached=1000) < plain
    assert price(output=1000) > plain
    assert price(output=1000, reasoning=900) == price(output=1000)
    assert price("openai", input=1000) == plain
    assert some(price_table()).startswith("genai-prices ")


@pytest.mark.parametrize(
    ("model", "provider", "at"),
    [
        ("acme-1", OPENAI, None),
        ("gpt-4o", "http://127.0.0.1:8000/v1", None),
        ("gpt-4o", "no-such-provider", None),
        ("gpt-4o", "", None),
        ("", OPENAI, None),
        ("gpt-4o", OPENAI, 1e300),
    ],
)
def test_an_unknown_price_is_not_zero(model: str, provider: str, at: float | None) -> None:
    assert cost(Tokens(10, output=10), model, provider, at) is None
