r"""Pattern of a stream's text deltas: it gives the text of an event without its reader.

Nearly every event of a streamed reply is the one before it with another text:

    data: {"id":"a","choices":[{"index":0,"delta":{"content":" ferry"}}]}\n\n
    data: {"id":"a","choices":[{"index":0,"delta":{"content":" leaves"}}]}\n\n

A pattern is made from one parsed event and confirmed by the next one. An event matches if its name is equal, and its
document is equal but for the text and the members that no reader looks at (`IGNORED`). So reading it would give the
same block with another text. A pattern holds until an event of another kind arrives. Without it a delta takes 7 µs
more, of some 45 (one reply with repairs and captures).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from wirelint.events import Delta, Event, Frame, Start
from wirelint.jsonvalues import Path, decode_object
from wirelint.model import Json

IGNORED = frozenset(
    {"created", "created_at", "obfuscation", "p", "sequence_number", "service_tier", "system_fingerprint"}
)
"""Top-level members that no reader looks at and that change between events: times, counts, padding that hides the length
of a text (OpenAI `obfuscation`, Mistral and Bedrock `p`)."""

_MOST_FAILURES = 4
"""Events in a row that were not confirmed. Making a pattern costs as much as parsing an event."""


class DeltaPattern:
    """Pattern of the text deltas of one block, made from `event`, whose text is at `path` in its document."""

    __slots__ = ("_event", "_name", "_path", "_rest", "block", "document", "item")

    def __init__(self, event: Delta, path: Path) -> None:
        self.block, self.item = event.block, event.item
        self._event, self._path = event, path
        self._name = event.frame.event if event.frame is not None else None
        self.document = _document(event.frame)
        """The document of the event that the pattern was made from."""
        self._rest = self._divide(_document(event.frame))[1]

    @property
    def example(self) -> str:
        """The text of the event that the pattern was made from."""
        return self._event.text

    @classmethod
    def of(cls, event: Delta) -> DeltaPattern | None:
        """Return the pattern of an event, None where the place of its text in the document is ambiguous."""
        places = list(_places(_document(event.frame), event.text)) if event.text else []
        return cls(event, places[0]) if len(places) == 1 and places[0][0] not in IGNORED else None

    def is_confirmed_by(self, event: Delta) -> bool:
        """Return True if the next event of the stream, a single delta, matches with the parsed text."""
        same = event.block == self.block and event.item == self.item and event.text != self._event.text
        return same and event.frame is not None and self.text(event.frame) == event.text

    def text(self, frame: Frame) -> str:
        """Return the text of an event that matches; empty for any other event."""
        if frame.event != self._name:
            return ""
        text, rest = self._divide(_document(frame))
        return text if rest == self._rest else ""

    def _divide(self, document: dict[str, Json]) -> tuple[str, bytes]:
        """Return the text at the pattern's place, and the rest of the document; an empty text if there is none."""
        for name in IGNORED.intersection(document):
            del document[name]
        holder: Json = document
        *path, last = self._path
        try:
            for step in path:
                holder = holder[step]  # type: ignore[index]
            text, holder[last] = holder[last], ""  # type: ignore[index]
        except (LookupError, TypeError):
            return "", b""
        return (text, orjson.dumps(document)) if isinstance(text, str) else ("", b"")


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


def _document(frame: Frame | None) -> dict[str, Json]:
    """Return the document of a frame; an empty one if the frame is damaged or holds no document."""
    return decode_object(frame.data) if frame is not None and frame.data is not None and not frame.faults else {}


def _places(value: Json, text: str, path: Path = ()) -> Iterator[Path]:
    """Yield the places of the strings in a document that are equal to a text."""
    if isinstance(value, str):
        if value == text:
            yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, text, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, text, (*path, number))
