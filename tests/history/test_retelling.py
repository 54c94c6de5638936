from __future__ import annotations

import pytest

from tests.tables import rows, tables
from wirelint.history.handed_back import compare_result
from wirelint.text.error_texts import is_own_error

TABLES = tables(__file__)


@rows(TABLES["cases"])
def test_a_result_is_compared_with_what_was_handed_back(told: str, truth: str, expected: str) -> None:
    assert compare_result(told, truth) == expected


def test_long_texts_take_no_more_than_their_length() -> None:
    for text in ("[" * 100_000, '"' * 100_000, "\\" * 200_000, "a " * 200_000, "(" * 200_000):
        assert compare_result(text, text + " b") in ("same", "marked", "shortened", "lost", "altered")


@pytest.mark.parametrize("piece", ["error ", "a error:", "tool x ", "\n    at f(a:1", "not found ", "❌ ", "x: "])
def test_errors_are_sought_in_linear_time(piece: str) -> None:
    assert is_own_error(piece * 50_000, "make") in (True, False)
