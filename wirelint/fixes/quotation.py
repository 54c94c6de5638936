"""What is quoted in a text that is still coming, told by all of it so far, within a budget."""

from __future__ import annotations

import re

from wirelint.text.markup import MOST_MASKED, OWN_FENCE, masked, may_quote
from wirelint.text.quoting import is_quoted

_PARSES = 4
_LONGEST_PARAGRAPH = 2048
_LOOSE = 256
"""Pieces that are kept one by one; small strings weigh ten times what is in them."""
_SLACK = 1 << 16
_QUOTE_MARK = re.compile(r"[`\t]|~~~| {4}|(?m:^)[ \d.)*+-]{0,64}>")
_FENCE_LINE = re.compile(r"^[ \t>]{0,8}(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


class Quotation:
    """The text of one block. Offsets count its characters from its beginning."""

    def __init__(self) -> None:
        self._whole: list[str] = []
        self._late: list[str] = []
        self._quotes = False
        self._parsed = self._parsed_size = 0
        self._fenced_from = -1
        self._maskable = MOST_MASKED

    def add(self, text: str) -> None:
        self._late.append(text)
        if len(self._late) >= _LOOSE:
            self._whole.append("".join(self._late))
            self._late.clear()

    def mask(self, start: int, end: int) -> None:
        """Makes a leak plain: what stands in it quotes nothing that comes after it."""
        so_far = self.text()
        if self._maskable and may_quote(so_far, start, end):
            self._maskable -= 1
            self._whole = [masked(so_far, start, end)]

    def is_quoted(self, offset: int) -> bool:
        """Whether what begins here is quoted, by the text so far. A fence that is open is parsed once."""
        if self._fenced_from >= 0:
            since = self.text()[self._fenced_from : offset]
            if not _FENCE_LINE.search(since):
                return True
            self._fenced_from = -1
        so_far, start = self.text(), self.readable_from(offset)
        if start is None:
            return True
        shown = so_far[start:]
        if OWN_FENCE.match(so_far, offset):  # it begins a fence, which does not quote it
            shown = f"{so_far[start:offset]}x"
        if not is_quoted(shown, offset - start, offset - start + 1):
            return False
        if start == 0 and is_quoted(so_far + "\n\nx", len(so_far) + 2, len(so_far) + 3):
            self._fenced_from = offset
        return True

    def readable_from(self, offset: int) -> int | None:
        """From where the text is read to tell what is quoted at an offset; None: it counts as quoted, unread.

        Mostly that is the beginning. A text that was read too often is read by paragraphs, if it has no fences.
        """
        so_far = self.text()
        if len(so_far) != self._parsed_size:
            fresh = so_far[max(self._parsed_size - 80, 0) :]
            self._quotes = self._quotes or _QUOTE_MARK.search(fresh) is not None
            self._parsed_size = len(so_far)
            self._parsed += len(so_far) if self._quotes else 0
        if self._parsed <= _PARSES * len(so_far) + _SLACK:
            return 0
        if "```" in so_far or "~~~" in so_far:
            return None
        return max(so_far.rfind("\n\n", 0, offset), offset - _LONGEST_PARAGRAPH, 0)

    def text(self) -> str:
        """All of the text, leaks made plain."""
        if self._late or len(self._whole) > 1:
            self._whole = ["".join((*self._whole, *self._late))]
            self._late.clear()
        return self._whole[0] if self._whole else ""


def open_code(text: str, start: int, end: int) -> int:
    """The number of backticks of inline code that begins before `start` and may yet be closed behind `end`; 0 for none.

    Inline code ends with its paragraph.
    """
    if "`" not in text or _PARAGRAPH_END.search(text, end):
        return 0
    begin = 0
    for paragraph in _PARAGRAPH_END.finditer(text, 0, start):
        begin = paragraph.end()
    opened = 0
    for ticks in _TICKS.finditer(text, begin, start):
        size = len(ticks[0])
        opened = 0 if opened == size else opened or size
    closed = bool(opened) and re.search(rf"(?<!`)`{{{opened}}}(?!`)", text[end:]) is not None
    return 0 if closed else opened
