from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirelint.claims.values import values

ROWS: list[Any] = json.loads(Path(__file__).with_name("values.json").read_text(encoding="utf-8"))["values"]


@pytest.mark.parametrize(("text", "expected"), ROWS, ids=[row[0][:24] for row in ROWS])
def test_values_of_a_text(text: str, expected: list[Any]) -> None:
    found = values(text)
    assert [
        [text[one.start : one.end], list(one.readings), one.unit and one.unit.name, one.ranges] for one in found
    ] == expected
