"""Content parts that were printed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.text.content_reprs import find_reprs, unwrap

TABLES = tables(__file__)

PARTS = st.lists(st.text(max_size=12), min_size=1, max_size=3)


@given(PARTS)
def test_what_was_printed_is_found_and_undone(texts: list[str]) -> None:
    printed = repr([{"type": "text", "text": text} for text in texts])
    assert [(one.start, one.end, one.whole) for one in find_reprs(printed)] == [(0, len(printed), True)]
    said = "".join(texts)
    if not find_reprs(said):
        assert unwrap(printed) == said


@rows(TABLES["raw"])
def test_printed_parts_in_a_prompt_are_unwrapped(text: str, wanted: str) -> None:
    assert unwrap(text) == wanted
    assert find_reprs(wanted) == ()


@in_batches(
    "text",
    TABLES["other_texts_stay"],
    ids=lambda text: text[:30],
)
def test_other_texts_stay(text: str) -> None:
    assert find_reprs(text) == ()
    assert unwrap(text) == text
