"""Events of a stream that are the event before with another piece of text, told by their bytes.

Theory of operation. Nearly every event of a reply is the one before it, but for one string. Two events whose bytes differ
in that string alone show what stands around it. An event with the same bytes around a string of its own says the same as
they, but for its text: it need not be parsed to know that. Such events leave a reader in the state in which it was, so what
the last two of them said holds until an event of another kind has come.

Nothing is guessed. The bytes that differ stand between quotation marks, and are, in both events, the text that a reader
made of them; so they are the string of that text, and no other. What a JSON reader would not take for one string
(quotation marks, control characters, bytes that are no UTF-8) is like nothing.
"""

from __future__ import annotations

import orjson

from wirelint.events import Delta


class Likeness:
    """What stands around the text of events of one block."""

    __slots__ = ("_first", "_last", "_least", "block", "item")

    def __init__(self, block: int, item: int, first: bytes, last: bytes) -> None:
        self.block, self.item = block, item
        self._first, self._last = first, last
        self._least = len(first) + len(last) + 1

    @classmethod
    def of(cls, before: Delta, event: Delta) -> Likeness | None:
        """The likeness of two events, each all that was read from its frame; None where they have none."""
        if before.block != event.block or before.item != event.item or before.text == event.text:
            return None
        if before.frame is None or event.frame is None:
            return None
        if not (_is_plain(before.text) and _is_plain(event.text)):
            return None
        raw, literal = event.frame.raw, b'"%s"' % event.text.encode()
        if not raw.endswith(b"\n"):  # a CR may be half of a line end, so the event would end elsewhere
            return None
        start = raw.find(literal)
        while start >= 0:
            first, last = raw[: start + 1], raw[start + len(literal) - 1 :]
            if before.frame.raw == first + before.text.encode() + last:
                return cls(event.block, event.item, first, last)
            start = raw.find(literal, start + 1)
        return None

    def text(self, raw: bytes) -> str | None:
        """The text of an event that is like them; None for any other."""
        if len(raw) < self._least or not raw.startswith(self._first) or not raw.endswith(self._last):
            return None
        try:
            text = raw[len(self._first) : -len(self._last)].decode()
            return text if _is_plain(text) else _unescaped(text)
        except (UnicodeDecodeError, orjson.JSONDecodeError):
            return None


def _unescaped(text: str) -> str | None:
    """What stands between the quotation marks of a JSON string. Raises orjson.JSONDecodeError."""
    plain: str = orjson.loads(f'"{text}"')
    return plain or None


def _is_plain(text: str) -> bool:
    """Whether a text stands in JSON as it is. What is not printable may be a control character or a lone surrogate."""
    return text.isprintable() and '"' not in text and "\\" not in text and text != ""
