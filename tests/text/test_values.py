from __future__ import annotations

from typing import Any

from tests.tables import rows, tables
from wirelint.claims.values import values


@rows(tables(__file__)["values"])
def test_values_of_a_text(text: str, expected: list[Any]) -> None:
    found = values(text)
    assert [
        [text[one.start : one.end], list(one.readings), one.unit and one.unit.name, one.ranges] for one in found
    ] == expected
