"""What counts as quoted, with exact offsets."""

from __future__ import annotations

import pytest

from wirelint.text import quoting
from wirelint.text.quoting import fence_is_whole_message, is_mention, is_quoted

SPANS = [
    ("plain", "Nothing here, *not* even <b>this</b>.", []),
    ("empty", "", []),
    ("inline", "use `ls` now", ["`ls`"]),
    ("inline-double", "use `` a`b `` now", ["`` a`b ``"]),
    ("inline-unclosed", "a ` b", []),
    ("inline-escaped", r"a \`b\` c", []),
    ("inline-slash-inside", r"`a\` b`", [r"`a\`"]),
    ("inline-over-lines", "a `b\nc` d", ["`b\nc`"]),
    ("inline-not-over-paragraphs", "a `b\n\nc` d", []),
    ("inline-in-heading", "# The `x` flag #\n", ["`x`"]),
    ("inline-in-list", "- one `x`\n  two `y`\n", ["`x`", "`y`"]),
    ("inline-in-html-attribute", 'a <b title="`">`c`</b>', ["`c`"]),
    ("inline-after-autolink", "<http://a.b/`> `c`", ["`c`"]),
    ("inline-crlf", "a\r\nb `c`\r\nd `e`\r\n", ["`c`", "`e`"]),
    ("fence", "a\n```py\nx\n```\nb", ["```py\nx\n```\n"]),
    ("fence-tilde", "~~~\nx\n~~~", ["~~~\nx\n~~~"]),
    ("fence-unclosed", "a\n```\nx\n\ny", ["```\nx\n\ny"]),
    ("fence-longer", "````\n```\n````\n", ["````\n```\n````\n"]),
    ("fence-closer-with-text", "```json\n{}\n```<x>\nb", ["```json\n{}\n```<x>\nb"]),
    ("fence-in-list", "1. a\n   ```\n   x\n   ```\n2. b", ["   ```\n   x\n   ```\n"]),
    ("fence-crlf", "a\r\n```\r\nx\r\n```\r\nb", ["```\r\nx\r\n```\r\n"]),
    ("indented", "a\n\n    x\n    y\n\nb", ["    x\n    y\n"]),
    ("indented-is-continuation", "a\n    x\n", []),
    ("quote", "a\n\n> b `c`\n> d\n\ne", ["> b `c`\n> d\n"]),
    ("quote-lazy", "> b\nc\n\nd", ["> b\nc\n"]),
    ("quote-in-list", "- > b\n- c", ["- > b\n"]),
    ("html-block", "<invoke name=\"a\">\n```\nx\n</invoke>", []),
    ("html-block-ends", "<div>\n\n```\nx\n```\n</div>", ["```\nx\n```\n"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "quoted"), [case[1:] for case in SPANS], ids=[case[0] for case in SPANS])
def test_quoted_spans_are_found_exactly(text: str, quoted: list[str]) -> None:
    assert [text[start:end] for start, end, _ in quoting._spans(text)] == quoted


IS_QUOTED = [
    ("in-a-fence", "```\n«x»\n```", True),
    ("after-a-fence", "```\na\n```\n«x»", False),
    ("in-inline-code", "`«x»` b", True),
    ("inline-code-itself", "«`x`» b", True),
    ("between-inline-code", "`a` «x» `b`", False),
    ("in-a-quote", "> «x»", True),
    ("begins-before-a-fence", "«x\n```json\n{}\n```»", False),
    ("begins-in-a-fence", "```\n«x\n```\ny»", True),
    ("indented", "a:\n\n    «x\n    y»\n\nb", True),
    ("only-the-first-line-indented", "a\n\n    «x\ny»", False),
    ("indented-inside-a-tag", "<a>\n    «<b>»\n</a>", False),
    ("html-block", "«<a>\nb\n</a>»", False),
]


@pytest.mark.parametrize(("marked", "quoted"), [case[1:] for case in IS_QUOTED], ids=[case[0] for case in IS_QUOTED])
def test_is_quoted(marked: str, quoted: bool) -> None:
    text = marked.replace("«", "").replace("»", "")
    start = marked.index("«")
    assert is_quoted(text, start, marked.index("»") - 1) is quoted


WHOLE = [
    ("fence", "```xml\n<a/>\n```", True),
    ("fence-unclosed", "```\na", True),
    ("indented", "    a\n    b", True),
    ("words-before", "So:\n```\na\n```", False),
    ("two-fences", "```\na\n```\n```\nb\n```", False),
    ("empty", "", False),
]


@pytest.mark.parametrize(("text", "whole"), [case[1:] for case in WHOLE], ids=[case[0] for case in WHOLE])
def test_fence_is_whole_message(text: str, whole: bool) -> None:
    assert fence_is_whole_message(text) is whole


USED = {
    "glued": "Done.<T>",
    "alone on a line": "Done.\n<T>\nMore",
    "in a sentence": "Then he said <T> and left",
    "one quotation mark": 'He said "yes.<T>',
}
SPOKEN = {
    "inline code": "It ends with `<T>` always",
    "fence": "```\n<T>\n```",
    "quotation marks": 'It prints "<T>" twice',
    "curly quotation marks": "It prints “<T>” twice",
    "brackets": "a marker (<T>) of its own",
    "article before": "see the <T> there",
    "its kind before": "The token <T> was new",
    "its kind after": "<T> tokens are special",
    "a verb after": "<T> marks the end",
    "block quote": "> <T>\n\nso it was",
}


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_a_token_in_use_is_no_mention(text: str) -> None:
    start = text.index("<T>")
    assert not is_mention(text, start, start + 3)


@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
def test_a_token_that_is_spoken_of_is_a_mention(text: str) -> None:
    start = text.index("<T>")
    assert is_mention(text, start, start + 3)
