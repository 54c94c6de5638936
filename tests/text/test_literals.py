"""Literals as programs print them."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.text.content_reprs import LiteralReader

VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.integers(-999, 999),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_python_and_json_print_is_read(value: Any) -> None:
    for text in (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False)):
        if any(mark in text for mark in ("\u2028", "\x85")):
            continue
        reader = LiteralReader(f"{text} and more")
        assert reader.read() == (value if text.startswith(("[", "{", "'", '"')) else ast.literal_eval(repr(value)))
        assert not reader.failed
        assert reader.position == len(text)


CASES = {
    "a constructor": ("B(text='a', n=None)", {"text": "a", "n": None}, True),
    "one inside of a list": ("[a.B(x=True), C()]", [{"x": True}, {}], True),
    "a tuple": ("(1, 'a')", [1.0, "a"], True),
    "json": ('{"a": [null, true, -1.5e3, "\\ud83d\\ude00"]}', {"a": [None, True, -1500.0, "😀"]}, False),
    "python": (r"{'it\'s': '\x41\u00e9\U0001f600\n'}", {"it's": "Aé😀\n"}, True),
    "the same key twice": ('{"a": 1, "a": 2}', {"a": 2.0}, False),
}
NONE = [
    "",
    "[",
    "[1",
    "[1,]",
    "[1 2]",
    "{1: 2}",
    "{'a'}",
    "{'a': }",
    "'a",
    '"a\n"',
    "name",
    "B(",
    "B(1)",
    "B(a=)",
    "[" * 99,
    "1x",
]


@pytest.mark.parametrize(("text", "wanted", "pythonic"), CASES.values(), ids=CASES.keys())
def test_values(text: str, wanted: Any, pythonic: bool) -> None:
    reader = LiteralReader(f"..{text}", 2)
    assert reader.read() == wanted
    assert (reader.failed, reader.pythonic, reader.position) == (False, pythonic, len(text) + 2)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_literal(text: str) -> None:
    reader = LiteralReader(text)
    assert reader.read() is None
    assert reader.failed


def test_items_come_one_by_one() -> None:
    reader = LiteralReader("[1, 2, oops]")
    items = reader.read_items()
    assert [next(items), next(items)] == [1.0, 2.0]
    assert list(items) == []
    assert reader.failed
