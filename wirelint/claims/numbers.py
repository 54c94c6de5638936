"""Single numbers of a reply against the record that it retells: another unit, another amount, one in place of another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.derivation import (
    MONEY,
    MOST_DATA,
    Datum,
    equals,
    is_computed,
    is_of_kind,
    is_said,
)
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import (
    scaled_values,
    stated,
    statements,
)
from wirelint.claims.rows import tables
from wirelint.claims.states import DEEPEST, object_of
from wirelint.claims.toolkinds import name_words
from wirelint.claims.values import Value, unit_of, values
from wirelint.model import Json

_PHRASES = lexicon.Phrases("grounding")


def wrong_unit(turn: Turn) -> Contradiction | None:
    """Return a number of a result in another unit of its dimension: "38 km/h" where the result has `"wind_mph": 38`.

    Units of bytes are not compared: a kilobyte may be 1000 or 1024 of them.
    """
    pool = turn.numbers
    told = values(turn.prose.masked)
    said = stated(turn.prose) if len(pool) < MOST_DATA else []
    for one in said:
        value, unit = one.value, one.value.unit
        if unit is None or unit.dimension == "bytes" or value.ranges or _is_small(value):
            continue
        if "-" in turn.prose.masked[value.start : value.end]:
            continue  # "a 31-day month"
        alike = [datum for datum in pool if not set(value.readings).isdisjoint(datum.value.readings)]
        if any(datum.value.unit is None for datum in alike):
            continue
        if any(not is_of_kind(value, datum.value) for datum in alike) and not _is_in_place(value, alike, pool, told):
            continue
        if any(equals(value, datum.value) for datum in pool) or is_said(value, turn.prose.masked, turn.told):
            continue
        if not alike or one in scaled_values(said, [datum for datum in pool if datum.value.unit is None]):
            continue
        if not is_computed(value, [datum for datum in pool if is_of_kind(value, datum.value)]):
            shown = turn.prose.text[value.start : value.end]
            against = f"{shown!r} has another unit than the result: {alike[0].place} = {alike[0].value.shown}"
            return Contradiction(*one.sentence.span, against)
    return None


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
        cells = (unit_of(cell) for cell in document.values() if isinstance(cell, str) and len(cell) == len("EUR"))
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


_RATE = re.compile(r"(?i)(?<![a-z])(?:rate|kurs|taux|cambio|koers|fx)")
"""A key whose number is in two currencies: "192.8 yen to the pound"."""
_RATE_BEFORE = re.compile(r"(?<![\d.,])1 ?(?:[A-Z]{3}|[€$£¥]) ?[=≈:] ?\Z|[€$£¥] ?1 ?[=≈:] ?\Z")
"""The head of a rate of exchange: `1 EUR = `."""
_AMOUNT = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")


def _is_small(value: Value) -> bool:
    return value.is_whole and max(map(abs, value.readings)) < _TELLING_NUMBER


def _is_in_place(value: Value, alike: Sequence[Datum], pool: Sequence[Datum], told: Sequence[Value]) -> bool:
    """Return True if a number of another dimension takes the place of the only one of its own, which is not told: "68 °C"
    of `{"temp_c": 23.5, "humidity_pct": 68}`.
    """
    own = [datum for datum in pool if is_of_kind(value, datum.value)]
    keys = {word for datum in alike for word in name_words(datum.column)}
    if len(own) != 1 or any(unit_of(word) is value.unit for word in keys):
        return False
    return not any(equals(one, own[0].value) for one in told)


_TELLING_NUMBER = 10
"""Numbers from which on two amounts hardly are the same by chance."""


def wrong_version(turn: Turn) -> Contradiction | None:
    """Return the only version of a reply that no text has, if it leaves out one of a result: `4.12.2` for `4.2.11`."""
    told = [*_VERSION.finditer(turn.prose.text)]
    held = {version for text in turn.returned for version in _VERSION.findall(text)} if told else set()
    unknown = [one for one in told if not any(one[0].lstrip("v") in text for text in turn.texts)]
    left = held - {one[0] for one in told}
    if not left or len({one[0] for one in unknown}) != 1 or (len(told) > 1 and len(left) == len(held)):
        return None
    for sentence in statements(turn.prose):
        before = sentence.masked[: max(unknown[0].end() - sentence.start, 0) + _NEGATED_WITHIN]
        inside = sentence.start <= unknown[0].start() < sentence.end
        if inside and not _PHRASES["negates"].search(before):
            return Contradiction(*sentence.span, f"the results have {min(left)!r}: {turn.good[-1].shown}")
    return None


_NEGATED_WITHIN = 8
"""Characters behind a version in which it may be denied: "4.12.2 is not out"."""
_VERSION = re.compile(r"(?<![\w.-])v?\d{1,4}(?:\.\d{1,4}){2,3}(?![\w.]*\w|/\d)")
