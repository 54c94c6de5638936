"""Events of a stream that are the event before with another piece of text, told by their bytes.

Theory of operation. Nearly every event of a reply is the one before it, but for one string. Two events whose bytes differ
in that string alone show what stands around it. An event with the same bytes around a string of its own says the same as
they, but for its text: it need not be parsed to know that. Such events leave a reader in the state in which it was, so what
the last two of them said holds until an event of another kind has come. Beside their text they may differ in values that
nobody reads (`IDLE`).

Nothing is guessed. The bytes that differ stand between quotation marks, and are, in both events, the text that a reader
made of them; so they are the string of that text, and no other. What a JSON reader would not take for one string
(quotation marks, control characters, bytes that are no UTF-8) is like nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from wirelint.events import Delta, Frame

IDLE = frozenset({"created", "created_at", "obfuscation", "p", "sequence_number", "service_tier", "system_fingerprint"})
"""Members of an event that no reader of an API looks at, and that change from one event to the next: times, counts, the
padding that hides the length of a text (OpenAI `obfuscation`, Mistral and Bedrock `p`)."""

_VALUES = re.compile(
    rb'"(%s)" ?: ?(?:"([^"\\\x00-\x1f\x7f-\xff]*)"|(0|[1-9][0-9]{0,17})(?=[ ,}]))'
    % b"|".join(sorted(map(str.encode, IDLE)))
)
_VALUE = re.compile(rb'[^"\\\x00-\x1f\x7f-\xff]*')
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,17}")


class _Gap(NamedTuple):
    """An idle value, and the bytes between it and the text, or the next such value on the way there."""

    value: re.Pattern[bytes]
    beside: bytes


class Likeness:
    """What stands around the text of events of one block: the same bytes, but for idle values."""

    __slots__ = ("_after", "_before", "_first", "_last", "_least", "block", "item")

    def __init__(
        self,
        block: int,
        item: int,
        first: bytes,
        last: bytes,
        before: tuple[_Gap, ...] = (),
        after: tuple[_Gap, ...] = (),
    ) -> None:
        self.block, self.item = block, item
        self._first, self._last = first, last
        self._before, self._after = before, after
        """The idle values before the text from the first one on, and those behind it from the last one on."""
        self._least = len(first) + len(last) + 1 + sum(len(gap.beside) for gap in (*before, *after))

    @classmethod
    def of(cls, before: Delta, event: Delta) -> Likeness | None:
        """The likeness of two events, each all that was read from its frame; None where they have none."""
        if before.block != event.block or before.item != event.item or before.text == event.text:
            return None
        if before.frame is None or event.frame is None:
            return None
        if not (_is_plain(before.text) and _is_plain(event.text)):
            return None
        one, other = before.frame.raw, event.frame.raw
        if not other.endswith(b"\n"):  # a CR may be half of a line end, so the event would end elsewhere
            return None
        if (around := _around(one, before.text, other, event.text)) is not None:
            return cls(event.block, event.item, *around)
        gaps = _idle_gaps(one, event.frame)
        if not gaps:
            return None
        ones, others, kinds = gaps
        changed = [place for place, (a, b) in enumerate(zip(ones, others, strict=True)) if a != b]
        if len(changed) != 1:
            return None
        here = changed[0]
        if (around := _around(ones[here], before.text, others[here], event.text)) is None:
            return None
        left, right = [*others[:here], around[0]], [around[1], *others[here + 1 :]]
        head = tuple(map(_Gap, kinds[:here], left[1:]))
        tail = tuple(map(_Gap, kinds[here:], right[:-1]))
        return cls(event.block, event.item, left[0], right[-1], head, tail[::-1])

    def text(self, raw: bytes) -> str | None:
        """The text of an event that is like them; None for any other."""
        if len(raw) < self._least or not raw.startswith(self._first) or not raw.endswith(self._last):
            return None
        start, end = len(self._first), len(raw) - len(self._last)
        for value, beside in self._before:
            found = value.match(raw, start)
            if found is None or not raw.startswith(beside, found.end()):
                return None
            start = found.end() + len(beside)
        for value, beside in self._after:
            begun = raw.rfind(beside[-1:], start, end) + 1
            if value.fullmatch(raw, begun, end) is None or not raw.endswith(beside, start, begun):
                return None
            end = begun - len(beside)
        try:
            text = raw[start:end].decode()
            return text if _is_plain(text) else _unescaped(text)
        except (UnicodeDecodeError, orjson.JSONDecodeError):
            return None


def _around(one: bytes, text: str, other: bytes, new: str) -> tuple[bytes, bytes] | None:
    """What stands before and behind the text of two events, if that is all in which they differ."""
    literal = b'"%s"' % new.encode()
    start = other.find(literal)
    while start >= 0:
        first, last = other[: start + 1], other[start + len(literal) - 1 :]
        if one == first + text.encode() + last:
            return first, last
        start = other.find(literal, start + 1)
    return None


def _idle_gaps(one: bytes, event: Frame) -> tuple[list[bytes], list[bytes], list[re.Pattern[bytes]]] | None:
    """Two events, each cut at the idle values in which they differ, and of what kind these are; None without any.

    A value counts as idle where its name stands once in the event and is that of a member of the document itself.
    """
    other = event.raw
    mine, yours = list(_VALUES.finditer(one)), list(_VALUES.finditer(other))
    if [found[1] for found in mine] != [found[1] for found in yours]:
        return None
    ones: list[bytes] = []
    others: list[bytes] = []
    kinds: list[re.Pattern[bytes]] = []
    at = there = 0
    for a, b in zip(mine, yours, strict=True):
        kind = 2 if b[2] is not None else 3
        if a[kind] is None or a[kind] == b[kind]:
            continue
        ones.append(one[at : a.start(kind)])
        others.append(other[there : b.start(kind)])
        kinds.append(_VALUE if kind == 2 else _NUMBER)
        at, there = a.end(kind), b.end(kind)
        name = b[1]
        if other.count(b'"%s"' % name) != 1 or not _is_member(name.decode(), event):
            return None
    return ([*ones, one[at:]], [*others, other[there:]], kinds) if kinds else None


def _is_member(name: str, event: Frame) -> bool:
    try:
        document = orjson.loads(event.data or "")
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and name in document


def _unescaped(text: str) -> str | None:
    """What stands between the quotation marks of a JSON string. Raises orjson.JSONDecodeError."""
    plain: str = orjson.loads(f'"{text}"')
    return plain or None


def _is_plain(text: str) -> bool:
    """Whether a text stands in JSON as it is. What is not printable may be a control character or a lone surrogate."""
    return text.isprintable() and '"' not in text and "\\" not in text and text != ""
