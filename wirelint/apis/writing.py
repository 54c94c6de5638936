"""What the writers of all APIs share: frames as bytes, groups of events, what a frame holds beside its data."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.events import REPEATED, Delta, Event, Frame, StreamViolation
from wirelint.model import Json

MADE = 1 << 32
"""Blocks from this number on were made by rewriters (`Situation.new_block`)."""

_OTHER_LINES = re.compile(rb"^(?:id|retry)(?=[:\r\n])[^\r\n]*|^:[^\r\n]*", re.MULTILINE)


def same(events: Sequence[Event], out: Sequence[Event]) -> bool:
    """Return True if the very same events came out, in the same order."""
    return len(events) == len(out) and all(map(operator.is_, events, out))


def spoken(events: Sequence[Event]) -> list[Event]:
    """The events that say something: what is wrong with their frame aside, unless a rewriter can drop it."""
    return [event for event in events if not isinstance(event, StreamViolation) or event.kind in REPEATED]


def groups(frame: Frame, out: Sequence[Event]) -> Iterator[tuple[Frame, list[Event]]]:
    """Neighbouring events of one document, with the frame that holds it; events without a frame go with `frame`.

    Where `frame` holds several documents, each is written by itself. What is wrong with the frame as a whole is nothing to
    write then: its bytes would say all of them again. Nor is what is wrong with a frame before it, which has been written.
    """
    out = without_earlier(frame, out)
    if any(event.frame is not None and event.frame is not frame for event in out):
        out = [event for event in out if not (isinstance(event, StreamViolation) and event.frame is frame)]
    for _, group in itertools.groupby(out, key=lambda event: id(event.frame or frame)):
        events = list(group)
        yield events[0].frame or frame, events


def without_earlier(frame: Frame, events: Sequence[Event]) -> list[Event]:
    """The events without offences of a frame before this one, which has been written."""
    return [event for event in events if not (isinstance(event, StreamViolation) and _is_before(event, frame))]


def _is_before(event: Event, frame: Frame) -> bool:
    return event.frame is not None and event.frame.number < frame.number


def document_of(frame: Frame) -> dict[str, Json]:
    """The JSON document of a frame; empty where it holds none."""
    if frame.data is None:
        return {}
    try:
        document = orjson.loads(frame.data)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def framed(document: Json | Mapping[str, Json], event: str | None = None, *, data: str | None = None) -> bytes:
    """A server-sent event. `data` is the text of the document, where it may stay as it was written."""
    body = dump(document) if data is None else b"\ndata: ".join(line.encode() for line in data.split("\n"))
    return b"event: %s\ndata: %s\n\n" % (event.encode(), body) if event is not None else b"data: %s\n\n" % body


def dump(document: Json | Mapping[str, Json]) -> bytes:
    return orjson.dumps(document)


def other_lines(frame: Frame) -> bytes:
    """Comments, `id` and `retry` of a frame, which a client may want whatever becomes of the rest."""
    lines = _OTHER_LINES.findall(frame.raw)
    return b"".join(line + b"\n" for line in lines)


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))
