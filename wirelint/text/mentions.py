"""Markup that is spoken of: in code, in quotation marks, or with a word beside it that says what it is."""

from __future__ import annotations

import re

from wirelint.text.quoting import is_quoted

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
# In the middle of a sentence: `it ends with <|eom_id|>, not with <|eot_id|>.` What a template puts somewhere stands
# between lines and sentences.
_TOKENS = r"(?:</?[|｜][^|｜<>\s]{1,40}[|｜]?>?)*"
_WORD_BEFORE = re.compile(
    r"\b(?:with|by|at|on|from|of|as|in|via|than|and|or|has|have|had|is|are|says?|uses?|puts?|nests?|needs?|brackets?|prints?"
    rf"|marks?|writes?|opens?|closes?|mit|durch|und|oder|de|con|par|avec|et),? {_TOKENS}\Z"
)
_GOES_ON = re.compile(rf"{_TOKENS}(?:[.,;:!?)](?=\s|\Z)| (?:[a-z]{{2,}}|a)\b)")
_REACH = 32
_TOKENS_REACH = 128
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`", "(": ")"}


def is_mention(text: str, start: int, end: int) -> bool:
    """Whether the stretch is shown or named in the text rather than being there for what it does."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in _QUOTES and after == _QUOTES[before]:
        return True
    if _BEFORE.search(text, max(start - _REACH, 0), start) or _AFTER.match(text, end, end + _REACH):
        return True
    in_sentence = _WORD_BEFORE.search(text, max(start - _TOKENS_REACH, 0), start)
    if in_sentence and _GOES_ON.match(text, end, end + _TOKENS_REACH):
        return True
    return is_quoted(text, start, end)
