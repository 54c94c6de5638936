"""Closing tags alone at the end of a text: what is left of a call whose head was taken away.

`Done.</parameter></function></tool_call>` holds no call any more, and still no user was meant to see it. Several known
closers in a row count, or one on a line of its own that tells enough, unless its opener stands in the text too: then it
belongs to something that was looked at already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wirelint.dialects.family import Family, Found
from wirelint.dialects.reader import Reader

_LONGEST_CLOSER = 64
_CONTROL_TOKEN = re.compile(r"(?:<\|[^|<>\s]{1,40}\|>|</s>|\[e~\[)\Z")
_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}(?P<tag>[\w:]{1,40})\s{0,3}>\Z")
_BEFORE_TAG = re.compile(r"<\s{0,3}/\s{0,3}")


class Tails:
    """The closers of all families."""

    def __init__(self, families: Iterable[Family]) -> None:
        closers = [(tags, dialect) for family in families for tags, dialect in family.closers.items()]
        self._closers = [(re.compile(tags), dialect) for tags, dialect in closers]
        self._lone = frozenset[str]().union(*(family.lone for family in families))

    def find(self, reader: Reader) -> Found | None:
        """The run of closers that ends the text, after the reader's floor."""
        tags: list[tuple[str, str | None]] = []
        start = end = self._before_control_tokens(reader)
        at = end
        while closer := self._closer_before(reader, at):
            tag, dialect, place = closer
            tags.append((tag, dialect))
            start, at = place, _back_over_space(reader, place)
        if not tags or any(self._opened(reader, tag, start) for tag, _ in tags):
            return None
        line_start = reader.shadow.rfind("\n", reader.floor, start) + 1
        alone = not reader.shadow[max(line_start, reader.floor) : start].strip()
        if len(tags) == 1 and not (alone and tags[0][0] in self._lone):
            return None
        # The innermost closer tells the dialect, unless several share it.
        dialect = next((dialect for _, dialect in reversed(tags) if dialect is not None), None)
        return Found(dialect, start, end, (), "generic", malformed=True) if dialect is not None else None

    def may_stand(self, text: str) -> bool:
        """Whether the closer of a dialect stands at the beginning of a text, however that goes on."""
        before = _BEFORE_TAG.match(text)
        return before is not None and any(tags.match(text, before.end()) is not None for tags, _ in self._closers)

    def _before_control_tokens(self, reader: Reader) -> int:
        """The end of the text, without white space and the control tokens that run on after it."""
        end = _back_over_space(reader, reader.size)
        while token := _CONTROL_TOKEN.search(reader.shadow, max(reader.floor, end - _LONGEST_CLOSER), end):
            end = _back_over_space(reader, token.start())
        return end

    def _closer_before(self, reader: Reader, end: int) -> tuple[str, str | None, int] | None:
        closer = _CLOSER.search(reader.shadow, max(reader.floor, end - _LONGEST_CLOSER), end)
        if closer is None:
            return None
        for tags, dialect in self._closers:
            if tags.fullmatch(closer["tag"]):
                return closer["tag"], dialect, closer.start()
        return None

    def _opened(self, reader: Reader, tag: str, before: int) -> bool:
        return re.compile(rf"<\s{{0,3}}{tag}\b").search(reader.shadow, reader.floor, before) is not None


def _back_over_space(reader: Reader, end: int) -> int:
    while end > reader.floor and reader.shadow[end - 1].isspace():
        end -= 1
    return end
