"""What counts as quoted, with exact offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.text import quoting
from wirelint.text.quoting import fence_is_whole_message, is_mention, is_quoted, may_hold_spans, spans

TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("quoting.json").read_text(encoding="utf-8"))

SPANS: list[Any] = TABLES["spans"]


@pytest.mark.parametrize(("text", "quoted"), [case[1:] for case in SPANS], ids=[case[0] for case in SPANS])
def test_quoted_spans_are_found_exactly(text: str, quoted: list[str]) -> None:
    assert [text[start:end] for start, end, kind in quoting.spans(text) if kind != "html"] == quoted


IS_QUOTED: list[Any] = TABLES["is_quoted"]


@pytest.mark.parametrize(("marked", "quoted"), [case[1:] for case in IS_QUOTED], ids=[case[0] for case in IS_QUOTED])
def test_is_quoted(marked: str, quoted: bool) -> None:
    text = marked.replace("«", "").replace("»", "")
    start = marked.index("«")
    assert is_quoted(text, start, marked.index("»") - 1) is quoted


WHOLE: list[Any] = TABLES["whole"]


@pytest.mark.parametrize(("text", "whole"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE])
def test_fence_is_whole_message(text: str, whole: bool) -> None:
    assert fence_is_whole_message(text) is whole


USED: dict[str, Any] = TABLES["used"]
SPOKEN: dict[str, Any] = TABLES["spoken"]


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_a_token_in_use_is_no_mention(text: str) -> None:
    start = text.index("<T>")
    assert not is_mention(text, start, start + 3)


@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
def test_a_token_that_is_spoken_of_is_a_mention(text: str) -> None:
    start = text.index("<T>")
    assert is_mention(text, start, start + 3)


PIECES = (
    "a",
    "b ",
    " ",
    "    ",
    "\t",
    "\n",
    "\r\n",
    "- ",
    "-",
    "12) ",
    "1. ",
    ">",
    "> ",
    "# ",
    "---",
    "=",
    "<b>",
    "`",
    "~~~",
)


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
