"""Byte pattern of a stream's text deltas: it gives the text of an event without parsing the event.

Nearly every event of a streamed reply is the one before it with another text:

    data: {"id":"a","choices":[{"index":0,"delta":{"content":" ferry"}}]}\\n\\n
    data: {"id":"a","choices":[{"index":0,"delta":{"content":" leaves"}}]}\\n\\n

A pattern is made from one parsed event and confirmed by the next one: all bytes are fixed but the text, the members
that no reader looks at (`IGNORED`), and blanks between the closing brackets (Anthropic pads its events with them:
`"}       }`). A matching event has a text and no other member that a reader uses, so parsing would give the same text.
The text's gap matches a JSON string without an unescaped quotation mark, and in the two events that made the pattern
the text occurs only there; so the match is certain. A pattern holds until an event of another kind arrives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

import orjson

from wirelint.events import Delta, Event, Frame, Start
from wirelint.jsonvalues import decode_object
from wirelint.model import Json

IGNORED = frozenset(
    {"created", "created_at", "obfuscation", "p", "sequence_number", "service_tier", "system_fingerprint"}
)
"""Top-level members that no reader looks at and that change between events: times, counts, padding that hides the length
of a text (OpenAI `obfuscation`, Mistral and Bedrock `p`)."""


_MEMBERS = re.compile(
    rb'"(%s)" ?: ?(?:"([^"\\\x00-\x1f\x7f-\xff]*)"|(0|[1-9][0-9]{0,17})(?=[ ,}]))'
    % b"|".join(sorted(map(str.encode, IGNORED)))
)
_STRING = re.compile(rb'[^"\\\x00-\x1f\x7f-\xff]*+')
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,17}")
_TEXT = re.compile(rb'[^"\\\x00-\x1f]++(?:\\.[^"\\\x00-\x1f]*+)*+|(?:\\.[^"\\\x00-\x1f]*+)++', re.DOTALL)
_BRACKETS = re.compile(rb"(?<=[}\]]) *(?=[}\]])")
_MOST_FAILURES = 4
"""Events in a row that were not confirmed. Making a pattern costs as much as parsing an event."""


class DeltaPattern:
    """Pattern of the text deltas of one block, made from `event`, whose text is at `span` in its frame."""

    __slots__ = ("_closing", "_event", "_fixed", "_gaps", "_span", "block", "item")

    def __init__(self, event: Delta, span: tuple[int, int]) -> None:
        self.block, self.item = event.block, event.item
        self._event, self._span = event, span
        self._gaps: list[tuple[bytes, re.Pattern[bytes]]] = []
        """Fixed bytes, and the pattern of the value after them. Empty until the first event is compared."""
        self._fixed = self._closing = b""
        """Bytes after the last value: up to the last string, and after it, without blanks between closing brackets."""

    @property
    def example(self) -> str:
        """The text of the event that the pattern was made from."""
        return self._event.text

    @property
    def document(self) -> dict[str, Json]:
        """The document of the event that the pattern was made from, decoded again."""
        assert self._event.frame is not None
        return decode_object(self._event.frame.data or "")

    @classmethod
    def of(cls, event: Delta) -> DeltaPattern | None:
        """Return the pattern of an event, None where the place of its text in the frame is ambiguous."""
        span = _span_of(event)
        # A CR may be half of a line end, so the event would end elsewhere.
        if span is None or event.frame is None or not event.frame.raw.endswith(b"\n"):
            return None
        if any(start < span[1] and span[0] < end for start, end, _ in _ignored(event.frame)):
            return None
        return cls(event, span)

    def is_confirmed_by(self, event: Delta) -> bool:
        """Return True if the next event of the stream, a single delta, matches with the parsed text."""
        same = event.block == self.block and event.item == self.item and event.text != self._event.text
        return same and event.frame is not None and self.text(event.frame.raw) == event.text

    def text(self, raw: bytes) -> str | None:
        """Return the text of an event that matches, None for any other event and for an empty text."""
        if not self._gaps:
            self._divide()
        at, text = 0, b""
        for fixed, gap in self._gaps:
            found = gap.match(raw, at + len(fixed)) if raw.startswith(fixed, at) else None
            if found is None:
                return None
            at = found.end()
            if gap is _TEXT:
                text = found[0]
        if not raw.startswith(self._fixed, at):
            return None
        closing = raw[at + len(self._fixed) :]
        return _decoded(text) if closing == self._closing or _BRACKETS.sub(b"", closing) == self._closing else None

    def _divide(self) -> None:
        """Divide the event into fixed bytes and gaps."""
        frame, at = self._event.frame, 0
        assert frame is not None
        raw = frame.raw
        for start, stop, gap in sorted([*_ignored(frame), (*self._span, _TEXT)], key=itemgetter(0)):
            self._gaps.append((raw[at:start], gap))
            at = stop
        last = max(at, raw.rfind(b'"') + 1)
        self._fixed, self._closing = raw[at:last], _BRACKETS.sub(b"", raw[last:])


class PatternLearner:
    """Makes a pattern from the events of one stream. The next event probably matches `pattern`."""

    __slots__ = ("_before", "_failures", "pattern")

    def __init__(self) -> None:
        self.pattern: DeltaPattern | None = None
        self._before: DeltaPattern | None = None
        self._failures = 0

    def see(self, frame: Frame, events: Sequence[Event]) -> None:
        """Record the parsed events of the next frame. Any event other than a text delta drops the pattern."""
        event, before, alone = events[-1] if events else None, self._before, len(events) == 1
        if type(event) is not Delta or event.frame is not frame or not (alone or _begins(events[:-1], event)):
            self.pattern = self._before = None
            return
        if alone and before is not None:
            if before.is_confirmed_by(event):
                self.pattern, self._before, self._failures = before, None, 0
                return
            self._failures += 1
        if not alone:
            self.pattern = None
        self._before = DeltaPattern.of(event) if self._failures < _MOST_FAILURES else None


def _begins(others: Sequence[Event], event: Delta) -> bool:
    """Return True if a frame only begins a block and gives a piece of its text."""
    return len(others) == 1 and type(others[0]) is Start and others[0].block == event.block


def _span_of(event: Delta) -> tuple[int, int] | None:
    """Return the place of an event's text in its frame, in bytes, without the quotation marks. None if ambiguous."""
    text = event.text
    if event.frame is None or not text.isprintable() or '"' in text or "\\" in text or not text:
        return None  # a character that is not printable may be escaped in JSON
    raw, literal = event.frame.raw, b'"%s"' % text.encode()
    if raw.count(literal) != 1 or (b"\\" in raw and (b"\\u" in raw or "/" in text)):
        return None  # an escaped form of the text could be elsewhere
    start = raw.index(literal) + 1
    return start, start + len(literal) - 2


def _ignored(frame: Frame) -> list[tuple[int, int, re.Pattern[bytes]]]:
    """Return the ignored values of a frame: start, end, pattern. Their names occur once and at the top of the document."""
    raw = frame.raw
    found = [value for value in _MEMBERS.finditer(raw) if raw.count(b'"%s"' % value[1]) == 1]
    members = decode_object(frame.data or "") if found else {}
    kinds = [(value, 3 if value[2] is None else 2) for value in found if value[1].decode() in members]
    return [(*value.span(kind), _STRING if kind == 2 else _NUMBER) for value, kind in kinds]


def _decoded(literal: bytes) -> str | None:
    """Return the text of a JSON string given without its quotation marks, None if it is not valid."""
    try:
        text = literal.decode()
        if text.isprintable() and "\\" not in text:  # nearly every text
            return text
        decoded: str = orjson.loads(f'"{text}"')
    except (UnicodeDecodeError, orjson.JSONDecodeError):
        return None
    return decoded or None
