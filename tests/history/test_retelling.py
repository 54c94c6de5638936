from __future__ import annotations

import json

import pytest

from wirelint.history.handed_back import compare_result
from wirelint.text.error_texts import is_own_error

CASES = {
    "the same": ("a b", "a b", "same"),
    "wrapped": ("<r>a b</r>", "a b", "same"),
    "two levels of JSON": (json.dumps({"x": json.dumps({"y": 'say "hi"\nnow'})}), 'say "hi"\nnow', "same"),
    "escaped, in no JSON": ('Result: "line one\\nline two"', "line one\nline two", "same"),
    "other letters, escaped": ('Output: [{"text": "caf\\u00e9 \\u4e2d"}]', "café 中", "same"),
    "a number as it was spelled": ('Result: {"price": 12.50}', '{"price": 12.50}', "same"),
    "a number as it is read": ('{"price":12.5}', '{"price": 12.50}', "same"),
    "a whole number": ('{"n": 3.0}', '{"n": 3}', "same"),
    "Python's words": ("{'a': None, 'b': True}", '{"a": null, "b": true}', "same"),
    "other letters": ("見つかりました 3 件", "見つかりました 4 件", "altered"),
    "a number": ("n is 3", "n is 4", "altered"),
    "nothing": ("", "n is 4", "lost"),
    "dress alone": ('{"content": []}', "n is 4", "lost"),
    "a piece": ("n is", "n is 4", "shortened"),
    "a piece that ends within a word": ("the number is forty-t", "the number is forty-two", "shortened"),
    "a piece, told": ("n is …", "n is 4", "marked"),
    "nothing was given": ("(no output)", "", "same"),
    "dots in the truth": ("a... b", "a... c", "altered"),
}


@pytest.mark.parametrize(("told", "truth", "expected"), CASES.values(), ids=CASES)
def test_a_result_is_compared_with_what_was_handed_back(told: str, truth: str, expected: str) -> None:
    assert compare_result(told, truth) == expected


def test_long_texts_take_no_more_than_their_length() -> None:
    for text in ("[" * 100_000, '"' * 100_000, "\\" * 200_000, "a " * 200_000, "(" * 200_000):
        assert compare_result(text, text + " b") in ("same", "marked", "shortened", "lost", "altered")


@pytest.mark.parametrize("piece", ["error ", "a error:", "tool x ", "\n    at f(a:1", "not found ", "❌ ", "x: "])
def test_errors_are_sought_in_linear_time(piece: str) -> None:
    assert is_own_error(piece * 50_000, "make") in (True, False)
