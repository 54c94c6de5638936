from __future__ import annotations

import pytest

from wirelint.text.quoting import is_mention

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
def test_used(text: str) -> None:
    start = text.index("<T>")
    assert not is_mention(text, start, start + 3)


@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
def test_spoken_of(text: str) -> None:
    start = text.index("<T>")
    assert is_mention(text, start, start + 3)
