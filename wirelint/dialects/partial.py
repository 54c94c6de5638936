"""Whether text that does not match a pattern might, if it went on.

Python's `re` cannot say so; the `regex` library can, and reads the same patterns.
"""

from __future__ import annotations

import re
from functools import lru_cache

import regex

_FLAGS = {
    re.IGNORECASE: regex.IGNORECASE,
    re.DOTALL: regex.DOTALL,
    re.MULTILINE: regex.MULTILINE,
    re.ASCII: regex.ASCII,
}


@lru_cache(maxsize=1024)
def _compiled(pattern: re.Pattern[str]) -> regex.Pattern[str]:
    flags = regex.VERSION0
    for flag, other in _FLAGS.items():
        if pattern.flags & flag:
            flags |= other
    return regex.compile(_greedy(pattern.pattern), flags)


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|([*+?}])\?|.", re.DOTALL)


def _greedy(pattern: str) -> str:
    """The pattern with its lazy quantifiers made greedy: what can match is the same, and `regex` errs about lazy ones."""
    return _TOKEN.sub(lambda token: token[1] or token[0], pattern)


def may_go_on(pattern: re.Pattern[str], text: str, position: int) -> bool:
    """Whether all of the text from `position` on is what the pattern matches, or a beginning of it.

    Negative assertions at the end of a pattern are not seen: they need the text that is still to come.
    """
    return _compiled(pattern).fullmatch(text, position, partial=True) is not None
