from __future__ import annotations

from typing import Any

from tests.tables import rows, tables
from wirelint.claims.derivation import table_lines
from wirelint.claims.values import values


@rows(tables(__file__)["values"])
def test_values_of_a_text(text: str, expected: list[Any]) -> None:
    found = values(text)
    assert [
        [text[one.start : one.end], list(one.readings), one.unit and one.unit.name, one.ranges] for one in found
    ] == expected


def test_a_cell_that_is_too_long_for_the_reader_of_csv() -> None:
    lines = table_lines(f'name,count\n"{"x" * 200_000}",1\n"y",2')
    assert [cells for _, cells in lines][1:] == [[f'"{"x" * 200_000}"', "1"], ["y", "2"]]
