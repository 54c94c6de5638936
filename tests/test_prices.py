"""Token counts of every vendor's usage object, and their cost."""

from __future__ import annotations

from tests.build import some
from tests.tables import rows, tables
from wirelint.model import Json
from wirelint.prices import Tokens, cost, price_table, tokens_of

TABLES = tables(__file__)
OPENAI = "https://api.openai.com/v1/chat/completions"


@rows(TABLES["counts"])
def test_counts(usage: dict[str, Json], counts: dict[str, int] | None) -> None:
    tokens = Tokens(**counts) if counts is not None else None
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


@rows(TABLES["unknown"])
def test_an_unknown_price_is_not_zero(model: str, provider: str, at: float | None) -> None:
    assert cost(Tokens(10, output=10), model, provider, at) is None
