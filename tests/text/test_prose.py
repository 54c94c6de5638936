from __future__ import annotations

import itertools

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
def test_mask(text: str, expected: str) -> None:
    masked = prose.mask(text)
    assert len(masked) == len(text)
    assert masked.replace(CODE, "C").replace(QUOTE, "Q") == expected


PIECES = ("a", " ", "\n", "\r", "<b>", "<!--", ">", "- ", "1) ", "+")


@pytest.mark.parametrize("first", PIECES)
def test_only_texts_without_blocks_are_not_parsed(first: str) -> None:
    for pieces in itertools.product(PIECES, repeat=3):
        text = "".join((first, *pieces))
        if not prose._may_hold_blocks(text):
            assert prose._mask_blocks(text) == text


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
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[one.start : one.end] for one in prose.read(text).sentences] == expected


def test_questions_and_bullets_are_told_apart() -> None:
    one, two = prose.read("- Is it?\n- It is.").sentences
    assert (one.question, two.question, one.bullet) == (True, False, True)


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


def test_every_sentence_of_a_long_reply_is_read() -> None:
    assert len(prose.read("The ferry leaves at nine and is back at six. " * 400).sentences) == 400
