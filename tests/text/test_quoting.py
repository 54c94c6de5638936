"""What counts as quoted, with exact offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import rows, tables
from wirelint.text.quoting import fence_is_whole_message, is_mention, is_quoted, may_hold_spans, spans

TABLES = tables(__file__)


@rows(TABLES["spans"])
def test_quoted_spans_are_found_exactly(text: str, quoted: list[str]) -> None:
    assert [text[start:end] for start, end, kind in spans(text) if kind != "html"] == quoted


@rows(TABLES["is_quoted"])
def test_is_quoted(marked: str, quoted: bool) -> None:
    text = marked.replace("«", "").replace("»", "")
    start = marked.index("«")
    assert is_quoted(text, start, marked.index("»") - 1) is quoted


@rows(TABLES["whole"])
def test_fence_is_whole_message(text: str, whole: bool) -> None:
    assert fence_is_whole_message(text) is whole


@rows(TABLES["mentions"])
def test_a_token_is_a_mention_or_in_use(text: str, mention: bool) -> None:
    start = text.index("<T>")
    assert is_mention(text, start, start + 3) is mention


PIECES = [
    "a", "b ", " ", "    ", "\t", "\n", "\r\n", "- ", "-", "12) ", "1. ", ">", "> ", "# ", "---", "=", "<b>", "`", "~~~",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_a_text_that_is_not_parsed_holds_no_spans(pieces: list[str]) -> None:
    """A lone backtick in a paragraph of its own is no code, and makes the parser run."""
    text = "".join(pieces)
    if not may_hold_spans(text):
        assert spans(f"{text}\n\n`") == ()


@pytest.mark.parametrize("indented", ["    a", "- b\n\n      a", "b\n\n\ta", "1.      a", ">     a", "-\ta\n\n\t\ta"])
def test_an_indent_at_a_line_start_may_be_code_and_one_within_a_line_is_none(indented: str) -> None:
    assert [span.kind for span in spans(indented)] in (["indented"], ["quote"])
    assert may_hold_spans(indented)
    assert not may_hold_spans("a column    of a table\tand one more")
