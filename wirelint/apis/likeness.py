"""Events of a stream that are the event before with another piece of text, told by their bytes.

Theory of operation. Nearly every event of a reply is the one before it, but for one string. An event in which its text
stands between quotation marks once, and could stand in no other form, shows what stands around that string. Where the next
event has the same bytes around another string, and says that string in the same place and nothing else, the two are alike.
A third one with those bytes says the same as they, but for its text: it need not be parsed to know that. Such events leave
a reader in the state in which it was, so what the two of them said holds until an event of another kind has come. Beside
their text they may differ in values that nobody reads (`IDLE`).

Nothing is guessed. What differs stands between quotation marks, and is, in both events, the text that a reader made of
them; so it is the string of that text, and no other. What a JSON reader would not take for one string (quotation marks,
control characters, bytes that are no UTF-8) is like nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from wirelint.events import Delta, Event, Frame, Start

IDLE = frozenset({"created", "created_at", "obfuscation", "p", "sequence_number", "service_tier", "system_fingerprint"})
"""Members of an event that no reader of an API looks at, and that change from one event to the next: times, counts, the
padding that hides the length of a text (OpenAI `obfuscation`, Mistral and Bedrock `p`)."""

_NAMES = tuple(b'"%s"' % name.encode() for name in sorted(IDLE))
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


class _Value(NamedTuple):
    """An idle value: where it stands in its event, in bytes, what else may stand there, and the name of a string."""

    start: int
    end: int
    form: re.Pattern[bytes]
    name: str


class _Rest(NamedTuple):
    """What of an event is no idle value: what it begins and ends with, at least, and the gaps between these and the text.

    `before` are those before the text from the first one on, `after` those behind it from the last one on.
    """

    first: bytes
    last: bytes
    before: tuple[_Gap, ...]
    after: tuple[_Gap, ...]
    least: int


class _Varying(NamedTuple):
    """What stands around the text and the one idle value, a string, that changes from event to event.

    `between` stands between the two of them, with so many quotation marks; `place` of the text: before it (0), behind (2).
    """

    head: bytes
    between: str
    quotes: int
    tail: bytes
    place: int


class Likeness:
    """What stands around the text of events of one block: the same bytes, but for idle values."""

    __slots__ = (
        "_frame", "_head", "_last", "_looked", "_rest", "_shown", "_size", "_tail", "_varying", "block", "item"
    )  # fmt: skip

    def __init__(self, event: Delta, frame: Frame, start: int, end: int) -> None:
        self.block, self.item, self._shown = event.block, event.item, event.text
        self._frame = frame
        self._head, self._tail = frame.raw[:start], frame.raw[end:]
        """What stood around the text: most of the time all of it does again, and nobody asks what of it is idle."""
        self._size = len(self._head) + len(self._tail)
        self._rest: _Rest | None = None
        self._looked = False
        self._varying: _Varying | None = None
        self._last: list[bytes] = []
        """The idle values of the last event that was looked at one by one."""

    @classmethod
    def of(cls, event: Delta) -> Likeness | None:
        """What shows in an event that says a piece of text; None where that is unclear. Nothing is known yet of others."""
        span = span_of(event)
        # A CR may be half of a line end, so the event would end elsewhere.
        if span is None or event.frame is None or not event.frame.raw.endswith(b"\n"):
            return None
        return cls(event, event.frame, *span)

    @property
    def shown(self) -> Frame:
        """The event that it was seen in."""
        return self._frame

    @property
    def span(self) -> tuple[int, int]:
        """Where the text stands in that event, in bytes."""
        return len(self._head), len(self._frame.raw) - len(self._tail)

    def is_confirmed_by(self, event: Delta) -> bool:
        """Return True if the next event, of which only this was read, is like the one that this was seen in."""
        same = event.block == self.block and event.item == self.item and event.text != self._shown
        return same and event.frame is not None and self.text(event.frame.raw) == event.text

    def text(self, raw: bytes) -> str | None:
        """The text of an event that is like them; None for any other."""
        if self._varying is not None:
            head, between, quotes, tail, place = self._varying
            if raw.startswith(head) and raw.endswith(tail):
                try:
                    middle = raw[len(head) : -len(tail)].decode()
                except UnicodeDecodeError:
                    return None
                parts = middle.partition(between)
                if parts[1] and middle.count('"') == quotes and "\\" not in middle and middle.isprintable():
                    return parts[place] or None
        if len(raw) > self._size and raw.startswith(self._head) and raw.endswith(self._tail):
            return text_of(raw[len(self._head) : -len(self._tail)])
        if not self._looked:
            self._looked, self._rest = True, _rest(self._frame, len(self._head), len(self._frame.raw) - len(self._tail))
        rest = self._rest
        if rest is None or len(raw) < rest.least or not (raw.startswith(rest.first) and raw.endswith(rest.last)):
            return None
        start, end = len(rest.first), len(raw) - len(rest.last)
        values: list[tuple[int, int]] = []
        for value, beside in rest.before:
            found = value.match(raw, start)
            if found is None or not raw.startswith(beside, found.end()):
                return None
            values.append(found.span())
            start = found.end() + len(beside)
        for value, beside in rest.after:
            begun = raw.rfind(beside[-1:], start, end) + 1
            if value.fullmatch(raw, begun, end) is None or not raw.endswith(beside, start, begun):
                return None
            values.append((begun, end))
            end = begun - len(beside)
        text = text_of(raw[start:end])
        if text is not None:
            self._learn(raw, start, end, values)
        return text

    def _learn(self, raw: bytes, start: int, end: int, values: Sequence[tuple[int, int]]) -> None:
        """Finds out which idle value changes, when it is one of them: such events are told with less."""
        last, self._last = self._last, [raw[begun:ended] for begun, ended in values]
        changed = [place for place, one, other in zip(values, self._last, last, strict=False) if one != other]
        self._varying = None
        if len(changed) != 1 or raw[changed[0][0] - 1 : changed[0][0]] != b'"':
            return
        begun, ended = changed[0]
        before = begun < start
        between = _decoded(raw[ended:start] if before else raw[end:begun])
        if between.isprintable() and between.startswith('"') and between.endswith('"') and "\\" not in between:
            around = (raw[:begun], raw[end:]) if before else (raw[:start], raw[ended:])
            self._varying = _Varying(around[0], between, between.count('"'), around[1], 2 if before else 0)


class Comparison:
    """The events of one stream, each compared with the one before it. `like` is what the next one is probably like."""

    __slots__ = ("_before", "last", "like")

    def __init__(self) -> None:
        self.like: Likeness | None = None
        self.last: Likeness | None = None
        """What the last events of text were like."""
        self._before: Likeness | None = None

    def see(self, frame: Frame, events: Sequence[Event]) -> None:
        """What was read of a frame; anything but text may change what the next ones say."""
        event, before, alone = events[-1] if events else None, self._before, len(events) == 1
        if type(event) is not Delta or event.frame is not frame or not (alone or _begins(events[:-1], event)):
            self.like = self._before = None
            return
        if alone and before is not None and before.is_confirmed_by(event):
            self.like = self.last = before
            self._before = None  # the next one that is compared is not like it
            return
        if not alone:
            self.like = None
        self._before = Likeness.of(event)


def _begins(others: Sequence[Event], event: Delta) -> bool:
    """Return True if a frame begins a block with a piece of its text, and says nothing else."""
    return len(others) == 1 and type(others[0]) is Start and others[0].block == event.block


def span_of(event: Delta) -> tuple[int, int] | None:
    """Where the text of an event stands in its frame, in bytes, between quotation marks; None where that is unclear."""
    if event.frame is None or not _is_plain(event.text):
        return None
    raw, literal = event.frame.raw, b'"%s"' % event.text.encode()
    if raw.count(literal) != 1 or _is_hidden(event.text, raw):
        return None
    start = raw.index(literal) + 1
    if raw[: start - 1].rstrip(b" ").removesuffix(b":").rstrip(b" ").endswith(_NAMES):
        return None
    return start, start + len(literal) - 2


def _is_hidden(text: str, raw: bytes) -> bool:
    """Return True if a text could stand in an event in another form than its own."""
    return b"\\" in raw and (b"\\u" in raw or "/" in text)


def _rest(frame: Frame, start: int, end: int) -> _Rest | None:
    """What of an event with a text from `start` to `end` is no idle value; None where the text stands in one."""
    raw, idle = frame.raw, idle_values(frame)
    before = [value for value in idle if value.end < start]
    after = [value for value in idle if value.start > end]
    if len(before) + len(after) != len(idle):
        return None
    stops = [*(value.start for value in before[1:]), start]
    starts = [end, *(value.end for value in after)]
    first, last = raw[: before[0].start if before else start], raw[starts[-1] :]
    gaps = [_Gap(value.form, raw[value.end : stop]) for value, stop in zip(before, stops, strict=False)]
    others = [_Gap(value.form, raw[begun : value.start]) for value, begun in zip(after, starts, strict=False)]
    least = len(first) + len(last) + 1 + sum(len(gap.beside) for gap in (*gaps, *others))
    return _Rest(first, last, tuple(gaps), tuple(others[::-1]), least)


def idle_values(event: Frame) -> list[_Value]:
    """The idle values of an event, in order: those whose name stands in it once and is that of a member of the document."""
    raw = event.raw
    found = [value for value in _VALUES.finditer(raw) if raw.count(b'"%s"' % value[1]) == 1]
    document = document_of(event) if found else {}
    kinds = [(value, 3 if value[2] is None else 2) for value in found if value[1].decode() in document]
    return [
        _Value(*value.span(kind), _VALUE if kind == 2 else _NUMBER, value[1].decode() if kind == 2 else "")
        for value, kind in kinds
    ]


def document_of(event: Frame) -> dict[str, object]:
    try:
        document = orjson.loads(event.data or "")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _decoded(raw: bytes) -> str:
    """Nothing where it is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ""


def text_of(literal: bytes) -> str | None:
    """What a JSON string says, by what stands between its quotation marks; None where that is no string, or nothing."""
    try:
        text = literal.decode()
        if text.isprintable() and '"' not in text and "\\" not in text:  # nearly all of them: it says itself
            return text or None
        said: str = orjson.loads(f'"{text}"')
    except (UnicodeDecodeError, orjson.JSONDecodeError):
        return None
    return said or None


def _is_plain(text: str) -> bool:
    """Whether a text stands in JSON as it is. What is not printable may be a control character or a lone surrogate."""
    return text.isprintable() and '"' not in text and "\\" not in text and text != ""
