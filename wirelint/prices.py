"""Token counts of replies, and their cost by a price table.

The counts are read from the usage object of any API. The table is that of the package `genai-prices`, which is
optional (`pip install 'wirelint[prices]'`): it knows a provider by the URL of its API, and a model by its name at that
provider. A model that it does not list has no cost, never a cost of 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from wirelint.jsonvalues import mapping, number
from wirelint.lexicon import load
from wirelint.model import Json

_TABLE = {key: [name.partition(".")[::2] for name in names] for key, names in load("apis")["tokens"].items()}
"""The fields of a count, each with the field inside it or an empty string: `details.cached_tokens` is in an object."""
CURE = "costs need the price table: pip install 'wirelint[prices]'"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts. `cached` (read from a cache) and `written` (to a cache; `written_1h` for an hour) are parts of
    `input`, and `reasoning` is a part of `output`."""

    input: int = 0
    cached: int = 0
    written: int = 0
    written_1h: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(*(getattr(self, one.name) + getattr(other, one.name) for one in dataclasses.fields(self)))

    @property
    def document(self) -> dict[str, Json]:
        return {**dataclasses.asdict(self)}

    @classmethod
    def of_document(cls, value: Mapping[str, Json]) -> Tokens:
        """Return the counts of a `document`; missing ones are 0."""
        return cls(*(max(number(value.get(one.name)) or 0, 0) for one in dataclasses.fields(cls)))


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost in US dollars. `model`: the model of the table, as `provider/model`."""

    amount: float
    model: str


def tokens_of(usage: Mapping[str, Json] | None) -> Tokens | None:
    """Return the counts of a usage object of any API; None if it has none.

    Some vendors count cached input or reasoning beside the total, others within it.
    """
    counts = usage or {}
    if isinstance(inner := counts.get("tokens"), dict):  # Cohere, beside its `billed_units`
        counts = inner
    found = {name: list(_counts(counts, fields)) for name, fields in _TABLE.items()}
    if not found["input"] and not found["output"]:
        return None
    first = {name: some[0] if some else 0 for name, some in found.items()}
    received, reasoning = first["input"] + sum(found["input_beside"]), first["reasoning"]
    beside = sum(found["output_beside"])
    if not beside and reasoning and first["total"] == received + first["output"] + reasoning:
        beside = reasoning  # xAI
    cached, written = min(first["cached"], received), min(first["written"], received)
    return Tokens(received, cached, written, first["written_1h"], first["output"] + beside, reasoning)


def cost(usage: Tokens | Mapping[str, Json] | None, model: str, provider: str, at: float | None = None) -> Cost | None:
    """Return the cost of a reply; None if the counts, the provider, its model or the table itself are missing.

    `usage`: counts, or the usage object of a reply. `provider`: a URL of its API, or its id in the table (`openai`).
    `at`: time of the request in seconds since 1970, for prices that change; now by default.
    """
    tokens = usage if isinstance(usage, Tokens) else tokens_of(usage)
    if tokens is None or not model or not provider:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    counts: dict[str, int | None] = {
        "input_tokens": tokens.input,
        "cache_read_tokens": tokens.cached or None,
        "cache_write_tokens": tokens.written or None,
        "output_tokens": tokens.output,
    }
    fine = {"cache_write_1h_tokens": tokens.written_1h, "output_reasoning_tokens": tokens.reasoning}
    try:
        when = datetime.fromtimestamp(at, UTC) if at is not None else None
        try:
            made = Usage(**counts, **{name: count for name, count in fine.items() if count})
        except TypeError:  # before 0.1 of the package
            made = Usage(**counts)
        if "://" in provider:
            priced = calc_price(made, model, provider_api_url=provider, genai_request_timestamp=when)
        else:
            priced = calc_price(made, model, provider_id=provider, genai_request_timestamp=when)
    except (LookupError, ValueError, OverflowError, OSError):  # also a time that no calendar has
        return None
    return Cost(float(priced.total_price), f"{priced.provider.id}/{priced.model.id}")


@cache
def price_table() -> str | None:
    """Return name, version and date of the price table; None if it is not installed.

    The package states no date of its own, so the date is that of the newest price in force that has one.
    """
    try:
        from genai_prices import data_snapshot
    except ImportError:
        return None
    models = (model for provider in data_snapshot.get_snapshot().providers for model in provider.models)
    prices = (price for model in models if isinstance(model.prices, list) for price in model.prices)
    dates = (f"{getattr(price.constraint, 'start_date', None) or ''}" for price in prices)
    newest = max((date for date in dates if date <= f"{datetime.now(UTC):%Y-%m-%d}"), default="")
    return f"genai-prices {version('genai-prices')}{f', newest dated price of {newest}' if newest else ''}"


def dollars(amount: float) -> str:
    """Return an amount as text: `$12.34`, `$0.0042`."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}" if amount >= 0.0001 else "<$0.0001"


@dataclass(slots=True)
class Spending:
    """Tokens and cost of some exchanges. `cost` in US dollars, of `priced` exchanges. `counted`: exchanges with a usage."""

    exchanges: int = 0
    counted: int = 0
    priced: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost: float = 0.0

    def add(self, tokens: Tokens | None, spent: float | None) -> None:
        self.exchanges += 1
        if tokens is not None:
            self.counted += 1
            self.tokens += tokens
        if spent is not None:
            self.priced += 1
            self.cost += spent

    def merge(self, other: Spending) -> None:
        for one in dataclasses.fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def spending_line(spent: Spending) -> str:
    """Return tokens and cost as text: `12,345 in (8,000 cached), 678 out (90 thinking); cost $0.0312 (genai-prices …)`."""
    tokens = spent.tokens
    cached = f" ({tokens.cached:,} cached)" if tokens.cached else ""
    thought = f" ({tokens.reasoning:,} thinking)" if tokens.reasoning else ""
    table = price_table()
    priced = f"; cost {cost_text(spent)} ({table})" if table else ""
    return f"{tokens.input:,} in{cached}, {tokens.output:,} out{thought}{priced}"


def cost_text(spent: Spending) -> str:
    """Return the cost as text: `$0.0312`, `$0.0312 + 2 unknown`, `unknown`, `no usage`."""
    if not spent.counted:
        return "no usage" if spent.exchanges else "-"
    unknown = spent.exchanges - spent.priced
    known = dollars(spent.cost)
    return "unknown" if not spent.priced else f"{known} + {unknown} unknown" if unknown else known


def _counts(counts: Mapping[str, Json], fields: Iterable[tuple[str, str]]) -> Iterator[int]:
    """Yield those counts of a usage object that it has."""
    for outer, inner in fields:
        value = mapping(counts.get(outer)).get(inner) if inner else counts.get(outer)
        if (count := number(value)) is not None and count >= 0:
            yield count
