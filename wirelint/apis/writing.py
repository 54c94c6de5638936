"""Helpers that the writers of all APIs share: frames as bytes, groups of events, patched whole bodies."""

from __future__ import annotations

import itertools
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import orjson

from wirelint.apis.reading import ReplyWriter
from wirelint.events import REPEATED, CallUpdate, Delta, Event, Finish, Frame, ReplyMeta, Start, StreamViolation
from wirelint.jsonvalues import decode_object
from wirelint.model import Json

MADE = 1 << 32
"""Blocks from this number on were made by rewriters (`RewriteContext.new_block`)."""

_OTHER_LINES = re.compile(rb"^(?:id|retry)(?=[:\r\n])[^\r\n]*|^:[^\r\n]*", re.MULTILINE)
_NO_DATA = re.compile(rb"^(?![ \t]*(?:\xef\xbb\xbf)?(?:data|event)(?:[:\r\n]|\Z))[^\r\n]+", re.MULTILINE)


def same(events: Sequence[Event], out: Sequence[Event]) -> bool:
    """Return True if `out` holds the identical events in the same order."""
    return len(events) == len(out) and all(map(operator.is_, events, out))


def without_violations(events: Iterable[Event]) -> list[Event]:
    """Return the events without violations, except those that a rewriter can drop to have the frame rewritten."""
    return [event for event in events if not isinstance(event, StreamViolation) or event.kind in REPEATED]


def block_events(events: Iterable[Event]) -> list[Start | Delta | CallUpdate]:
    """Return the events that make up the blocks of a whole body."""
    return [event for event in events if isinstance(event, (Start, Delta, CallUpdate))]


def deltas_by_block(events: Iterable[Event]) -> dict[int, list[Delta]]:
    found: dict[int, list[Delta]] = {}
    for event in events:
        if isinstance(event, Delta):
            found.setdefault(event.block, []).append(event)
    return found


def text_of(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def finish_of(events: Iterable[Event]) -> Finish | None:
    """Return the first finish reason."""
    return next((event for event in events if isinstance(event, Finish)), None)


def reply_id_of(events: Iterable[Event]) -> str | None:
    """Return the id of the reply; None if the events have none."""
    return next((event.id for event in events if isinstance(event, ReplyMeta) and event.id is not None), None)


def groups(
    frame: Frame, events: Sequence[Event], out: Sequence[Event]
) -> Iterator[tuple[Frame, list[Event], list[Event]]]:
    """Yield for each document its frame, the `events` that were read from it, and neighbouring events of `out` in it.

    Events without a frame go with `frame`.

    Where `frame` holds several documents, each is written alone, with its id, however late its other events are
    released. Then the violations of the frame as a whole are left out: its bytes would repeat all documents. Violations
    of an earlier frame are left out too, since that frame has been written.
    """
    out = without_earlier(frame, out)
    metas: dict[int, Event] = {}
    if any(event.frame is not None and event.frame is not frame for event in out):
        out = [event for event in out if not (isinstance(event, StreamViolation) and event.frame is frame)]
        metas = {id(event.frame or frame): event for event in out if isinstance(event, ReplyMeta)}
        others = {id(event.frame or frame) for event in out if not isinstance(event, ReplyMeta)}
        out = [event for event in out if not isinstance(event, ReplyMeta) or id(event.frame or frame) not in others]
    for _, group in itertools.groupby(out, key=lambda event: id(event.frame or frame)):
        made = list(group)
        place = made[0].frame or frame
        if (meta := metas.get(id(place))) is not None and made[0] is not meta:
            made.insert(0, meta)
        yield place, [event for event in events if event.frame is place], made


def without_earlier(frame: Frame, events: Sequence[Event]) -> list[Event]:
    """Return the events without violations of a frame before this one, which has been written."""
    return [
        event
        for event in events
        if not isinstance(event, StreamViolation) or event.frame is None or event.frame.number >= frame.number
    ]


def set_or_drop(message: dict[str, Json], name: str, value: Json) -> None:
    """Set a member, or remove it if it would be empty."""
    if value:
        message[name] = value
    else:
        message.pop(name, None)


def frame_document(frame: Frame) -> dict[str, Json]:
    """Return the JSON document of a frame; empty if it holds none."""
    return decode_object(frame.data) if frame.data is not None else {}


def framed(document: Json | Mapping[str, Json], event: str | None = None, *, data: str | None = None) -> bytes:
    """Return a server-sent event. `data` is the original text of the document, to write it unchanged."""
    body = dump(document) if data is None else b"\ndata: ".join(line.encode() for line in data.split("\n"))
    return b"event: %s\ndata: %s\n\n" % (event.encode(), body) if event is not None else b"data: %s\n\n" % body


def dump(document: Json | Mapping[str, Json]) -> bytes:
    return orjson.dumps(document)


def with_other_lines(frame: Frame, made: Sequence[bytes]) -> bytes:
    """Return what was made of a frame, after its comments, `id`, `retry` and unknown lines, unless it is the frame itself.

    A client may need those lines without the data too.
    """
    if not made or (len(made) == 1 and made[0] is frame.raw):
        return b"".join(made)
    has_unknown = any(kind == "unknown-field" for kind, _ in frame.faults)
    lines = (_NO_DATA if has_unknown else _OTHER_LINES).findall(frame.raw)
    return b"".join([*(line + b"\n" for line in lines), *made])


def patched_entries(
    listed: Json,
    events: Sequence[Event],
    out: Sequence[Event],
    starts: Iterable[Start],
    make: Callable[[Start, dict[str, Json], str], Json],
) -> list[Json]:
    """Return the entries of a list in a whole body, one for each of `starts`.

    An entry whose events are unchanged is kept. `make` builds any other from its start, its former entry and its text;
    None leaves it out. Entries that are not objects have no event, and stay after the others.
    """
    source: list[Json] = listed if isinstance(listed, list) else []
    known = {event.block: event for event in events if isinstance(event, Start)}
    before, after = deltas_by_block(events), deltas_by_block(out)
    made: list[Json] = []
    for start in starts:
        entry = source[start.item] if 0 <= start.item < len(source) else None
        own = entry if isinstance(entry, dict) else {}
        deltas = after.get(start.block, [])
        if own and known.get(start.block) is start and same(before.get(start.block, []), deltas):
            made.append(own)
        elif (built := make(start, own, text_of(deltas))) is not None:
            made.append(built)
    return [*made, *(entry for entry in source if not isinstance(entry, dict))]


class BodyWriter(ReplyWriter, ABC):
    """Base class of the writers of whole bodies: it patches the document of the body's only frame."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = frame_document(frame)
        if same(events, out) or not document:
            return frame.raw
        return dump(self.patched(document, events, out))

    def patched(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        """Return a copy of the document with its `events` replaced by `out`."""
        id_ = reply_id_of(out)
        return self.patch(document, events, out) | ({"id": id_} if id_ is not None and "id" in document else {})

    @abstractmethod
    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        """Return a copy with `events` replaced by `out`, apart from the reply's id."""
