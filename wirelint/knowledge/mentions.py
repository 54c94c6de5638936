"""Markup that is spoken of: in code, in quotation marks, or with a word beside it that says what it is."""

from __future__ import annotations

import re

from wirelint.knowledge.quoting import is_quoted

_KIND = (
    r"(?:tags?|tokens?|markers?|delimiters?|blocks?|elements?|sequences?|strings?|placeholders?|separators?|wrappers?)"
)
_BEFORE = re.compile(
    r"(?:\b(?:the|an?|this|that|each|every|no|literal|closing|opening|closed by|ends? with|starts? with|begins? with"
    r"|between|inside|within|called|named|like|using|emits?|emitted|prints?|inserts?|appends?|writes?|strips?"
    rf"|{_KIND}:?))[ \t]+\Z",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"[ \t]+(?:{_KIND}|is|are|was|were|means?|marks?|denotes?|closes?|opens?|ends?|starts?|begins?|separates?|has|have"
    r"|should|can|may|must|will|and [<`\[◁]|or [<`\[◁]|… |\.\.\.)(?=$|[\s.,;:!?…<`\[◁])"
)
_REACH = 32
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`", "(": ")"}


def is_mention(text: str, start: int, end: int) -> bool:
    """Whether the stretch is shown or named in the text rather than being there for what it does."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in _QUOTES and after == _QUOTES[before]:
        return True
    if _BEFORE.search(text, max(start - _REACH, 0), start) or _AFTER.match(text, end, end + _REACH):
        return True
    return is_quoted(text, start, end)
