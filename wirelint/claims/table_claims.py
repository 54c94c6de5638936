"""Sentences that say that the values of a table are within their bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from wirelint import lexicon
from wirelint.claims.evidence import Contradiction, Turn
from wirelint.claims.grounding import statements
from wirelint.claims.rows import Named, Row
from wirelint.claims.states import pattern_of
from wirelint.claims.toolkinds import name_words
from wirelint.model import Json

_PHRASES = lexicon.Phrases("table_claims")
_OF_GROUNDING = lexicon.Phrases("grounding")


def out_of_bounds(turn: Turn, around: Json, table: Sequence[Row], parts: Sequence[Named]) -> Contradiction | None:
    """Return "all values are in range" or "potassium is normal" if the value of a row is outside its own bounds.

    Rows without bounds have those of `around`, the document: `{"lower": 2, "upper": 3, "samples": [{"value": 3.1}]}`.
    """
    bounds = _low_and_high(around if isinstance(around, dict) else {})
    outside = {row.place: why for row in table if (why := _outside(row.cells, bounds)) is not None}
    others = (one.masked for one in turn.sentences if _OF_GROUNDING["negates"].search(one.masked) is None)
    told = outside and any(map(_PHRASES["out_of_range"].search, others))
    for sentence in statements(turn.prose) if outside else ():
        inside = _PHRASES["in_range"].search(sentence.masked)
        answer = _ANSWER.match(sentence.masked)
        start = answer.end() if answer is not None else 0
        if inside is None or _OF_GROUNDING["negates"].search(sentence.masked, start, inside.end()):
            continue
        told_of = [
            (span[0], row)
            for part, found in parts
            if sentence.start <= part[0] < sentence.end
            for span, row, _ in found
        ]
        named = {row.place for start, row in told_of if start < sentence.start + inside.end()}
        if _PHRASES["out_of_range"].search(sentence.masked):
            continue
        of_all = not named and not told and pattern_of("all").search(sentence.masked) is not None
        place = next((one for one in outside if one in named or of_all), None)
        if place is not None:
            return Contradiction(*sentence.span, f"{place}: {outside[place]}")
    return None


_ANSWER = re.compile(r"(?i)\W*(?:no|nein|non|nee|não|nie|hayır|нет|いいえ|아니요?)[,.!—–-]")
"""The "no" that answers "anything abnormal?"."""


_Bounds = tuple[float | None, float | None]


def _low_and_high(row: Mapping[str, Json]) -> _Bounds:
    return next(_bound(row, "low"), None), next(_bound(row, "high"), None)


def _outside(row: Mapping[str, Json], around: _Bounds) -> str | None:
    """Return how the value of a row is outside its own bounds or, if it has none, those around it."""
    for key, cell in row.items():
        words, ends = name_words(key), _ends(cell)
        if len(ends) == len(words) == 2 and words[1] in _BOUNDS["range"]:  # `humidity_pct` and `humidity_range`
            for other, number in row.items():
                same = other != key and name_words(other)[:1] == words[:1] and type(number) in (int, float)
                if same and not ends[0] <= float(str(number)) <= ends[1]:
                    return f"{other} = {number} is not in {key}"
    own = _low_and_high(row)
    low, high = around if own == (None, None) else own
    value = next(_bound(row, "value"), next(_only_other(row), None))
    if value is not None and high is not None and value > high:
        return f"{value:g} is above {high:g}"
    return f"{value:g} is below {low:g}" if value is not None and low is not None and value < low else None


def _only_other(row: Mapping[str, Json]) -> Iterator[float]:
    """Yield the only number of a row with the unit of its bounds: `"moisture_pct": 19` beside `min_pct` and `max_pct`."""
    keys = {key: name_words(key) for key, cell in row.items() if type(cell) in (int, float)}
    ends = [key for key, words in keys.items() if len(words) > 1 and words[0] in _BOUNDS["low"] | _BOUNDS["high"]]
    units = {keys[key][-1] for key in ends}
    other = [key for key, words in keys.items() if words[-1] in units and key not in ends]
    if len(ends) == 2 and len(units) == len(other) == 1:
        yield float(str(row[other[0]]))


def _bound(row: Mapping[str, Json], end: str) -> Iterator[float]:
    """Yield the numbers of a row that are its value or one end of its range: `"low": 3.5`, `"ref": "3.5-5.1"`."""
    for key, cell in row.items():
        words = frozenset(name_words(key.replace(" ", "_")))
        ends = _ends(cell) if words & _BOUNDS["range"] else []
        side = _ONE_SIDED.fullmatch(cell) if isinstance(cell, str) and words & _BOUNDS["range"] else None
        if len(ends) == 2 and end != "value":
            yield ends[end == "high"]
        elif side is not None and end == ("high" if side[1][0] in "<≤" else "low"):
            yield float(side[2])
        elif isinstance(cell, (int, float)) and not isinstance(cell, bool) and words & _BOUNDS[end]:
            yield float(cell)


def _ends(cell: Json) -> list[float]:
    if isinstance(cell, list):
        return [float(one) for one in cell if isinstance(one, (int, float))]
    found = _RANGE.fullmatch(cell) if isinstance(cell, str) else None
    return [float(one) for one in found.groups()] if found is not None else []


_RANGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*[-–—]\s*(\d+(?:\.\d+)?)\s*\D{0,12}")
_ONE_SIDED = re.compile(r"\s*([<>≤≥]=?)\s*(\d+(?:\.\d+)?)\s*\D{0,12}")
"""A range with one end: `<3.5`."""
_BOUNDS = {
    "low": frozenset(_PHRASES.words("bounds_low")),
    "high": frozenset(_PHRASES.words("bounds_high")),
    "range": frozenset(_PHRASES.words("bounds_range")),
    "value": frozenset(_PHRASES.words("bounds_value")),
}
