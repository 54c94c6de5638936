from __future__ import annotations

import pytest

from wirelint.text import prose
from wirelint.text.prose import CODE, QUOTE

MASKED = {
    "code span": ("run `ls -l` now", "run `CCCCC` now"),
    "two backticks": ("a ``x`y`` b", "a ``CCC`` b"),
    "unclosed span": ("a ` b", "a ` b"),
    "span does not cross paragraphs": ("a ` b\n\nc ` d", "a ` b\n\nc ` d"),
    "quotation": ('he said "gone" twice', 'he said "QQQQ" twice'),
    "german quotation": ("sie sagt „weg“.", "sie sagt „QQQ“."),
    "apostrophe": ("I've sent Bo's mail", "I've sent Bo's mail"),
    "fence": ("a\n\n```\nx\n```\nb", "a\n\nQQQ\nQ\nQQQ\nb"),
    "block quote": ("> x\n\ny", "QQQ\n\ny"),
    "indented": ("a\n\n    x\n\nb", "a\n\nQQQQQ\n\nb"),
}


@pytest.mark.parametrize(("text", "expected"), MASKED.values(), ids=MASKED)
def test_code_and_quotations_are_masked(text: str, expected: str) -> None:
    masked = prose.mask(text)
    assert len(masked) == len(text)
    assert masked.replace(CODE, "C").replace(QUOTE, "Q") == expected


SENTENCES = {
    "two": ("One. Two!", ["One.", "Two!"]),
    "file names do not end one": ("I read a.b/c.py today. Fine.", ["I read a.b/c.py today.", "Fine."]),
    "wrapped line": ("I read\nthe file.", ["I read\nthe file."]),
    "list": ("- one\n- two", ["one", "two"]),
    "abbreviation": ("See e.g. this. Done.", ["See e.g. this.", "Done."]),
    "chinese": ("好了。完成！", ["好了。", "完成！"]),
    "only code": ("```\nx\n```", []),
}


@pytest.mark.parametrize(("text", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_prose_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert [text[one.start : one.end] for one in prose.read(text).sentences] == expected


def test_tags_survive_where_only_quoting_counts() -> None:
    assert prose.unquoted("<tool_response>\nx\n\n`<a>`") == f"<tool_response>\nx\n\n`{CODE * 3}`"


def test_a_text_without_end_is_read_at_both_ends() -> None:
    read = prose.read("".join(f"That is {number}. " for number in range(5000)))
    half = prose.MOST_SENTENCES // 2
    told = [*range(half), *range(5000 - half, 5000)]
    # behind the last full stop stands a blank, which is a piece without a sentence
    assert [sentence.masked for sentence in read.sentences] == [
        f"That is {number}." for number in told if number != 5000 - half
    ]
