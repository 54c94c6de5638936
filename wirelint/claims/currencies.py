"""Amounts of a reply in another currency than their object in a result names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint import lexicon
from wirelint.claims.derivation import (
    MONEY,
    is_said,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.rows import tables
from wirelint.claims.states import DEEPEST, object_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Value, unit_of, values
from wirelint.model import Json

_PHRASES = lexicon.Phrases("grounding")


def wrong_currency(turn: Turn) -> Contradiction | None:
    """Return an amount of money in another currency than its object names: €6,310.40 of `"balance": 6310.4` in USD."""
    told = [one for one in values(turn.prose.masked) if one.unit is not None and one.unit.dimension in MONEY]
    named: dict[float, set[str]] = {}
    for text in turn.returned if told else ():
        document = object_of(text) or [dict(row.cells) for table in tables(text) for row in table]
        for amount, currency in _with_currency(document, "", 0):
            named.setdefault(amount, set()).add(currency)
    for value in told:
        known = set[str]().union(*(named.get(one, ()) for one in value.readings))
        if value.unit is None or len(known) != 1 or value.unit.dimension in known or "" in known:
            continue
        if _is_small(value) or is_said(value, turn.prose.masked, turn.told):
            continue
        if _RATE_BEFORE.search(turn.prose.masked[: value.start]):
            continue
        sentence = next((one for one in turn.prose.sentences if one.start <= value.start < one.end), None)
        span = sentence.span if sentence is not None else (value.start, value.end)
        shown = turn.prose.text[value.start : value.end]
        return Contradiction(*span, f"{shown!r} has another currency than the result, {known.pop().upper()}")
    return None


def _with_currency(document: Json, currency: str, depth: int) -> Iterator[tuple[float, str]]:
    """Yield the numbers of a document with the dimension of the currency that their object, or one around it, names."""
    if isinstance(document, dict):
        short = [(key, cell) for key, cell in document.items() if isinstance(cell, str) and len(cell) == len("EUR")]
        cells = (unit_of(cell) for key, cell in short if key not in _THINGS)
        own = {unit.dimension for unit in cells if unit is not None and unit.dimension in MONEY}
        currency = own.pop() if len(own) == 1 else "" if own else currency
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    inner = ((str(key), one) for key, one in pairs if _RATE.search(str(key)) is None)
    for key, one in inner if depth < DEEPEST else ():
        if isinstance(one, (int, float, str)) and _AMOUNT.fullmatch(str(one)):
            unit = unit_of("".join(name_words(key)[-1:]).upper())  # `"amount": 12.0, "currency": "USD", "krw": 17280`
            yield float(one), unit.dimension if unit is not None and unit.dimension in MONEY else currency
        else:
            yield from _with_currency(one, currency, depth + 1)


_THINGS = frozenset({"code", "base", "from", "to", "symbol"})
"""Keys of currencies that have a rate, and are not that of an amount: `"code": "SEK", "mid": 0.087`."""
_RATE = re.compile(r"(?i)(?<![a-z])(?:rate|kurs|taux|cambio|koers|fx)")
"""A key whose number is in two currencies: "192.8 yen to the pound"."""
_RATE_BEFORE = re.compile(r"(?<![\d.,])1 ?(?:[A-Z]{3}|[€$£¥]) ?[=≈:] ?\Z|[€$£¥] ?1 ?[=≈:] ?\Z")
"""The head of a rate of exchange: `1 EUR = `."""
_AMOUNT = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")


def _is_small(value: Value) -> bool:
    return value.is_whole and max(map(abs, value.readings)) < _TELLING_NUMBER


_TELLING_NUMBER = 10
"""Numbers from which on two amounts hardly are the same by chance."""
