r"""Writers of OpenAI Responses: events back to a `response` body, or to the typed events of a stream.

Theory of operation. A stream repeats each text: in deltas, at the end of its part, at the end of its item, and in the
response that ends the stream:

    data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}
    data: {"type":"response.output_text.done","output_index":0,"content_index":0,"text":"Hi"}
    data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"text":"Hi"}]}}

A `Change` records what rewriters did to one block; each place that repeats the block is patched with it. Frames leave as
they came until the first change. From there on each event is written anew, with the next sequence number and with the
number that its item has now.

Items follow one another, and clients keep one open at a time. An item that a rewriter makes (a call from text, a thought)
is therefore collected here, and leaves as soon as the open item has ended. A message that lost all its text is kept in
a stream, because its start has been sent, and is removed from a whole body.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from wirelint.apis.reading import ReplyWriter
from wirelint.apis.traits import Ending, ending
from wirelint.apis.writing import (
    BodyWriter,
    block_events,
    deltas_by_block,
    dump,
    frame_document,
    framed,
    reply_id_of,
    same,
    text_of,
    with_other_lines,
    without_earlier,
    without_violations,
)
from wirelint.events import CallUpdate, Delta, Event, Finish, Frame, Other, Start, StreamViolation
from wirelint.jsonvalues import common_length, mapping, mappings, number, text
from wirelint.lexicon import load
from wirelint.model import Json, Kind

_TEXTS: tuple[Kind, ...] = ("text", "reasoning", "refusal")
_OFFSETS = ("start_index", "end_index", "index")
"""Members of annotations that are offsets into the text."""
CALLS: dict[str, list[str]] = load("apis")["calls"]["openai.responses"]
"""Calls that the client may have to run: the member with their arguments, and their name if the item has none."""


@dataclass(slots=True)
class Change:
    """Changes of one block. `late`: text to add after the last character that the wire has sent of the block."""

    start: Start
    cuts: list[tuple[int, int, str]] = field(default_factory=list)
    """Replacements of text: offsets of the first character and after the last one, and the new text."""
    late: str = ""
    gone: bool = False
    id: str | None = None
    name: str | None = None
    input: Json = None
    emptied: bool = False
    """True if the arguments in the announcement of a call were removed."""
    received: int = 0
    """Characters of the block that the wire has sent."""
    item_id: str | None = None
    """The new id of its item; None if the item keeps its id."""

    @property
    def has_cuts(self) -> bool:
        return bool(self.cuts or self.late)

    def patched(self, before: str) -> str:
        """Return the new text of the block. `before`: the text on the wire, complete or its beginning.

        If the complete arguments at the end of a call differ from its deltas, they are returned unchanged.
        """
        if self.input is not None:
            return dump(self.input).decode()
        if self.start.kind == "tool_call" and len(before) != self.received:
            return before
        made: list[str] = []
        position = 0
        for start, end, new in self.cuts:
            made += (before[position:start], new)
            position = end
        return "".join((*made, before[position:], self.late))

    def moved(self, offset: int) -> int:
        """Return the new offset of a place in the text."""
        shift = 0
        for start, end, new in self.cuts:
            if start >= offset:
                break
            shift += len(new) - (min(end, offset) - start)
        return max(offset + shift, 0)

    def add(self, before: Sequence[Delta], new: str) -> None:
        """Record that the deltas of a frame became `new`."""
        old, start = text_of(before), before[0].item
        self.received = before[-1].item + len(before[-1].text)
        if self.late:
            self.cuts.append((start, start, self.late))
            self.late = ""
        if old != new:
            first = common_length(old, new)
            last = common_length(old[first:][::-1], new[first:][::-1])
            self.cuts.append((start + first, start + len(old) - last, new[first : len(new) - last]))


Made = tuple[Start, list[str]]
"""A block that a rewriter made, with the pieces of its text so far."""


class Changes:
    def __init__(self) -> None:
        self.by_place: dict[str, Change] = {}
        self.by_block: dict[int, Change] = {}
        self.made: dict[int, Made] = {}

    def take(self, own: Sequence[Event], out: Sequence[Event]) -> list[tuple[Change, str]]:
        """Record that the events `own` became `out`. Return text of known blocks from other frames' events."""
        begun = {event.block: event for event in out if type(event) is Start}
        updates = {event.block: event for event in out if type(event) is CallUpdate}
        for event in own:
            if type(event) is Start:
                self._begin(event, begun.pop(event.block, None))
            elif type(event) is CallUpdate and (change := self.by_block.get(event.block)) is not None:
                update = updates.get(event.block)
                if update is None:
                    change.id, change.name = change.id or change.start.id, change.name or change.start.name
                elif update is not event:
                    change.id, change.name = update.id or change.id, update.name or change.name
        for block, start in begun.items():
            self.made[block] = (start, [])
        before, after = deltas_by_block(own), deltas_by_block(out)
        late: list[tuple[Change, str]] = []
        for block in dict.fromkeys((*before, *after)):
            new = text_of(after.get(block, ()))
            if block in self.made:
                self.made[block][1].append(new)
            elif block in self.by_block and block in before:
                self.by_block[block].add(before[block], new)
            elif block in self.by_block and new:
                late.append((self.by_block[block], new))
        return late

    def _begin(self, start: Start, now: Start | None) -> None:
        change = self.by_block[start.block] = self.by_place[start.pointer] = Change(start)
        if now is None:
            change.gone = start.kind not in _TEXTS
        elif now is not start:
            change.id = now.id if now.id != start.id else None
            change.name = now.name if now.name != start.name else None
            change.input = now.input if now.input != start.input else None
            change.emptied = (bool(start.given) and not now.given) or (start.input is not None and now.input is None)
            change.item_id = now.item_id

    # --- patched documents

    def item(self, item: Mapping[str, Json], place: str, *, keep_empty: bool = True) -> dict[str, Json] | None:
        """Return a complete item with the changes; None if it was removed.

        Without `keep_empty`, parts that lost their text are left out, and so is an item without any other part.
        """
        own = self.by_place.get(place)
        if own is not None and own.gone:
            return None
        kind = text(item.get("type")) or "message"
        made = dict(item)
        if own is not None and kind in CALLS:
            member = CALLS[kind][0]
            if own.input is not None or own.has_cuts:
                made[member] = own.patched(text(item.get(member)) or "")
            return _labelled(made, own)
        dropped = False
        for name in ("content", "summary"):
            listed = item.get(name)
            if isinstance(listed, list):
                parts = [self.part(part, f"{place}/{name}/{n}") for n, part in enumerate(listed)]
                kept = [part for part, is_emptied in parts if keep_empty or not is_emptied]
                dropped = dropped or len(kept) < len(parts)
                made[name] = kept
            elif isinstance(listed, str) and (change := self.by_place.get(f"{place}/{name}")) is not None:
                made[name] = change.patched(listed)
        return None if dropped and not made.get("content") and not made.get("summary") else made

    def part(self, part: Json, place: str) -> tuple[Json, bool]:
        """Return a part of a message or of reasoning with the changes, and whether it lost its text."""
        for name in ("text", "refusal") if isinstance(part, dict) else ():
            if (change := self.by_place.get(f"{place}/{name}")) is not None and change.has_cuts:
                made = _patched_text(mapping(part), name, change)
                return made, made[name] == ""
        return part, False


def _patched_text(source: Mapping[str, Json], name: str, change: Change) -> dict[str, Json]:
    """Return an object whose member `name` is a whole text with the changes, and with moved annotations."""
    made = {**source, name: change.patched(text(source.get(name)) or "")}
    if isinstance(annotations := source.get("annotations"), list):
        made["annotations"] = [_moved(one, change) for one in annotations]
    if source.get("logprobs"):
        made["logprobs"] = []
    return made


def _moved(annotation: Json, change: Change) -> Json:
    if not isinstance(annotation, dict):
        return annotation
    places = {name: place for name in _OFFSETS if (place := number(annotation.get(name))) is not None}
    return {**annotation, **{name: change.moved(place) for name, place in places.items()}}


def _labelled(item: Mapping[str, Json], change: Change) -> dict[str, Json]:
    new = {"call_id": change.id, "id": change.item_id if "id" in item else None, "name": change.name}
    return {**item, **{name: value for name, value in new.items() if value is not None}}


def _separate_id(item: Mapping[str, Json], change: Change, *, is_shared: bool) -> str | None:
    """Return a new id for the item of a call with a new call id, if an earlier item has the id of this one.

    Clients that store items by id would merge the two calls.
    """
    id_ = text(item.get("id"))
    if change.id is None or not id_ or not is_shared:
        return None
    return f"{id_.partition('_')[0]}_{_digest(f'{id_}/{change.id}')}"


def _digest(seed: str) -> str:
    return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:50]


def _made_item(block: Made, ordinal: int) -> dict[str, Json] | None:
    """Return the complete item of a block that a rewriter made; None for text without a character."""
    start, words = block[0], "".join(block[1])
    if start.kind != "tool_call" and not words:
        return None
    digest = _digest(f"{ordinal}/{start.block}/{start.id}/{start.name}/{words}")
    if start.kind == "tool_call":
        prefix, kind = ("ctc", "custom_tool_call") if start.form == "custom" else ("fc", "function_call")
        given = dump(start.input).decode() if start.input is not None and not words else words
        more: dict[str, Json] = {"call_id": start.id or "", "name": start.name or "", CALLS[kind][0]: given}
    elif start.kind == "reasoning":
        prefix, kind = "rs", "reasoning"
        more = {"summary": [], "content": [{"type": "reasoning_text", "text": words}]}
    else:
        prefix, kind = "msg", "message"
        shown: dict[str, Json] = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
        refused: dict[str, Json] = {"type": "refusal", "refusal": words}
        more = {"role": "assistant", "content": [refused if start.kind == "refusal" else shown]}
    return {"id": f"{prefix}_{digest}", "type": kind, "status": "completed", **more}


def _item_events(item: Mapping[str, Json], index: int) -> Iterator[dict[str, Json]]:
    """Yield the events of a new item, without sequence numbers."""
    kind, place = str(item["type"]), {"item_id": item["id"], "output_index": index}
    member = CALLS[kind][0] if kind in CALLS else "content"
    begun: dict[str, Json] = {**item, "status": "in_progress", member: "" if kind in CALLS else []}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if kind in CALLS:
        stem = "response.function_call_arguments" if member == "arguments" else "response.custom_tool_call_input"
        yield {"type": f"{stem}.delta", **place, "delta": item[member]}
        yield {"type": f"{stem}.done", **place, member: item[member]}
    else:
        ((_, part),) = mappings(item["content"])
        kind, place = str(part["type"]), {**place, "content_index": 0}
        name = "refusal" if kind == "refusal" else "text"
        more: dict[str, Json] = {"logprobs": []} if kind == "output_text" else {}
        yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
        yield {"type": f"response.{kind}.delta", **place, "delta": part[name], **more}
        yield {"type": f"response.{kind}.done", **place, name: part[name], **more}
        yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": dict(item)}


_CUT_SHORT: dict[Ending, str] = {"length": "max_output_tokens", "filtered": "content_filter"}
_STATES = frozenset({"failed", "cancelled", "incomplete"})


def _with_finish(response: dict[str, Json], own: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
    """Return a response with the last finish reason of `out`, unless the upstream sent it.

    The reason may be a word of any API. Most words mean `completed`.
    """
    last = next((event for event in reversed(out) if type(event) is Finish), None)
    if last is None or any(event is last for event in own):
        return response
    reason = last.reason
    if (why := _CUT_SHORT.get(ending(reason))) is not None:
        return {**response, "status": "incomplete", "incomplete_details": {"reason": why}}
    if reason in _STATES:
        return {**response, "status": reason}
    return {**response, "status": "completed", "incomplete_details": None}


def _with_output(response: dict[str, Json], output: list[Json]) -> dict[str, Json]:
    """Return a response with these items, also in the `output_text` that some servers put beside the output."""
    if not text(response.get("output_text")):
        return {**response, "output": output}
    messages = [item for _, item in mappings(output) if item.get("type") == "message"]
    parts = [part for item in messages for _, part in mappings(item.get("content"))]
    words = "".join(text(part.get("text")) or "" for part in parts if part.get("type") == "output_text")
    return {**response, "output": output, "output_text": words}


class WholeWriter(BodyWriter):
    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        changes = Changes()
        changes.take(events, out)
        changed = dict(document)
        listed = document.get("output")
        if isinstance(listed, list) and not same(block_events(events), block_events(out)):
            seen: set[str] = set()
            for index, item in mappings(listed):
                id_ = text(item.get("id")) or ""
                if (change := changes.by_place.get(f"/output/{index}")) is not None:
                    change.item_id = change.item_id or _separate_id(item, change, is_shared=id_ in seen)
                seen.add(id_)
            changed = _with_output(changed, _whole_output(listed, changes, out))
        return _with_finish(changed, events, out)


def _whole_output(listed: Sequence[Json], changes: Changes, out: Sequence[Event]) -> list[Json]:
    """Return the items of a body, and new items at the place of their first text in `out`."""
    made: list[Json] = []
    rest = deque(enumerate(listed))

    def keep_until(last: int) -> None:
        while rest and rest[0][0] <= last:
            index, item = rest.popleft()
            now = changes.item(item, f"/output/{index}", keep_empty=False) if isinstance(item, dict) else item
            made.extend([now] if now is not None or item is None else [])

    seen: set[int] = set()
    for event in out:
        if not isinstance(event, (Start, Delta)) or event.block in seen:
            continue
        block, known = changes.made.get(event.block), changes.by_block.get(event.block)
        start = block[0] if block is not None else known.start if known is not None else None
        if start is None or (isinstance(event, Start) and start.kind in _TEXTS and start.form != "opaque"):
            continue  # an item is placed at its first text
        seen.add(event.block)
        if block is None:
            keep_until(-1 if start.wire_index is None else start.wire_index)
        elif (item := _made_item(block, len(made))) is not None:
            made.append(item)
    keep_until(len(listed))
    return made


# --- streams ----------------------------------------------------------------------------------------------------------

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_DELTAS: dict[Kind, str] = {
    "text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning": "response.reasoning_text.delta",
    "tool_call": "response.function_call_arguments.delta",
}
_ITEM_EVENT = b"response.output_item."
_ITEM_EVENTS = ("response.output_item.added", "response.output_item.done")


class StreamWriter(ReplyWriter):
    def __init__(self) -> None:
        self._changes = Changes()
        self._places: dict[int, int] = {}
        """The new `output_index` by the original one."""
        self._taken: set[int] = set()
        self._ids: dict[int, str] = {}
        self._by_id: dict[str, int] = {}
        """Number of each item by its first id, for events without `output_index`."""
        self._gone: set[int] = set()
        self._open: set[int] = set()
        self._made: list[tuple[int, dict[str, Json]]] = []
        """The items that rewriters made, with their numbers."""
        self._altered = False
        self._sequence: int | None = None
        self._named = False
        self._reply_id: str | None = None
        self._lines: bool | None = None
        """True in a WebSocket, where each event is a line of JSON."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if self._lines is None:
            self._lines = frame.raw.lstrip().startswith(b"{")
        self._named = self._named or frame.event is not None
        if same(events, out) and not self._altered:
            self._note(frame, events)
            return frame.raw
        self._altered = self._altered or not same(without_violations(events), without_violations(out))
        made = [part for own, now, place in _documents(frame, events, out) for part in self._document(place, own, now)]
        return with_other_lines(frame, made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._altered = True
        late = self._changes.take((), out)
        return b"".join([*self._late(late), *self._flush()])

    def _note(self, frame: Frame, events: Sequence[Event]) -> None:
        """Record the items and blocks of a frame that is forwarded unchanged."""
        if len(events) == 1 and type(events[0]) is Delta:
            return
        self._changes.take(events, events)
        if _ITEM_EVENT in frame.raw:
            for place in {id(event.frame): event.frame for event in events if event.frame is not None}.values():
                document = frame_document(place)
                if (kind := document.get("type")) in _ITEM_EVENTS:
                    self._item(document, self._index(document), begins=kind == _ITEM_EVENTS[0])

    def _item(self, document: Mapping[str, Json], index: int | None, *, begins: bool) -> int:
        """Record that an item begins or ends. Return its new number."""
        index = len(self._places) if index is None else index
        if index not in self._places:
            self._places[index] = self._number(index)
            self._taken.add(self._places[index])
            self._ids[index] = text(mapping(document.get("item")).get("id")) or ""
            self._by_id.setdefault(self._ids[index], index)
        (self._open.add if begins else self._open.discard)(index)
        return self._places[index]

    def _number(self, index: int) -> int:
        """Return the new number of an item: removed items before it no longer count, and new ones before it do."""
        place = index - sum(gone < index for gone in self._gone)
        for made, _ in self._made:
            place += made <= place
        while place in self._taken:
            place += 1  # items do not come in the order of their numbers
        return place

    def _index(self, document: Mapping[str, Json]) -> int | None:
        """Return the number of the item of an event, by its id if it has no number; None for an unknown id."""
        index = number(document.get("output_index"))
        return self._by_id.get(text(mapping(document.get("item")).get("id")) or "") if index is None else index

    def _document(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = frame_document(frame)
        if not self._altered or self._sequence is None:
            self._sequence = number(document.get("sequence_number"))
        late = self._changes.take(own, out)
        if own and not out and all(isinstance(event, (Other, StreamViolation)) for event in own):
            return  # a rewriter dropped the document
        kind = text(document.get("type")) or ""
        yield from self._late(late)
        if kind in ENDS:
            yield from self._flush()
            yield self._final(document, own, out, frame)
        elif not document:
            if frame.data is not None:
                yield from self._flush()  # `[DONE]` of a server that never sends the whole response
            yield frame.raw if frame.raw else framed(None, frame.event, data=frame.data or "")
        elif kind in _ITEM_EVENTS:
            yield from self._item_event(document, frame, begins=kind.endswith("added"))
        elif "response" in document:
            yield self._numbered({**document, "response": self._with_id(document["response"], out)}, frame)
        else:
            yield from self._part(document, own, out, frame)

    def _item_event(self, document: dict[str, Json], frame: Frame, *, begins: bool) -> Iterator[bytes]:
        """Yield the event that begins or ends an item."""
        index, item = self._index(document), mapping(document.get("item"))
        index = len(self._places) if index is None and begins else index
        change = self._changes.by_place.get(f"/output/{index}")
        if change is not None and change.gone and index is not None and (begins or index not in self._places):
            self._gone.add(index)
        if index in self._gone:
            return
        if begins or index not in self._places:
            yield from self._flush()
        now = self._item(document, index, begins=begins)
        if not begins:
            item = self._changes.item(item, f"/output/{index}") or item
        elif change is not None and index is not None:
            is_shared = self._by_id.get(text(item.get("id")) or "", index) != index
            change.item_id = change.item_id or _separate_id(item, change, is_shared=is_shared)
            self._ids[index] = change.item_id or self._ids.get(index, "")
            item = _labelled(item, change)
            if change.emptied:
                item["arguments"] = ""
        yield self._numbered({**document, "output_index": now, "item": item}, frame)
        if not begins and not self._open:
            yield from self._flush()

    def _part(
        self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame
    ) -> Iterator[bytes]:
        """Yield an event about a part of an item: a delta, an end, an annotation, the progress of a hosted call."""
        index = number(document.get("output_index"))
        if index in self._gone:
            return
        made = dict(document)
        if index is not None and index in self._places:
            made["output_index"] = self._places[index]
            change = self._changes.by_place.get(f"/output/{index}")
            if change is not None and change.item_id is not None and "item_id" in made:
                made["item_id"] = change.item_id
        deltas = [event for event in own if type(event) is Delta]
        if deltas and (text(document.get("type")) or "").endswith(".delta"):
            words = "".join(event.text for event in out if type(event) is Delta and event.block == deltas[0].block)
            if words != text_of(deltas):
                words = self._without_given(deltas, words, text(document.get("delta")) or "")
                if not words:
                    return
                made["delta"] = words
                if made.get("logprobs"):
                    made["logprobs"] = []
        elif index is not None:
            self._patch_repeated(made, f"/output/{index}", document)
        yield self._numbered(made, frame)

    def _without_given(self, deltas: Sequence[Delta], words: str, delta: str) -> str:
        """Return the new text of a delta without the arguments in the announcement of its item: `{"a":`, then `1}`.

        The reader puts such a beginning before the text of the first delta. The client has it already from the
        announcement.
        """
        change = self._changes.by_block.get(deltas[0].block)
        given = change.start.given if change is not None else ""
        if not given or deltas[0].item or text_of(deltas) != given + delta:
            return words
        return words.removeprefix(given) if words.startswith(given) else delta

    def _patch_repeated(self, made: dict[str, Json], item: str, document: Mapping[str, Json]) -> None:
        """Patch an event that repeats the text of deltas."""
        changes = self._changes.by_place
        summary = number(document.get("summary_index"))
        n = number(document.get("content_index")) or 0
        place = f"{item}/summary/{summary}" if summary is not None else f"{item}/content/{n}"
        if "part" in document:
            made["part"], _ = self._changes.part(document["part"], place)
            return
        for name in ("text", "refusal"):
            change = changes.get(f"{place}/{name}")
            if change is not None and change.has_cuts:
                if name in document:
                    made.update(_patched_text(document, name, change))
                elif "annotation" in document:
                    made["annotation"] = _moved(document["annotation"], change)
        if (own := changes.get(item)) is None:
            return
        for name in ("arguments", "input"):
            if isinstance(given := document.get(name), str):
                made[name] = own.patched(given)
        if own.name is not None and "name" in document:
            made["name"] = own.name

    def _final(self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame) -> bytes:
        response = self._with_id(document.get("response"), out)
        if not isinstance(response, dict):
            return self._numbered(document, frame)
        listed = response.get("output")
        if isinstance(listed, list) and (listed or not self._places):
            response = _with_output(response, self._output(listed))
        finished = _with_finish(response, own, out)
        renamed = {"type": f"response.{finished['status']}"} if finished is not response else {}
        return self._numbered({**document, **renamed, "response": finished}, frame)

    def _output(self, listed: Sequence[Json]) -> list[Json]:
        """Return the items of the whole response, in the order of their numbers in the stream."""
        made = list(self._made)
        for index, source in mappings(list(listed)):
            place = self._places.get(index)
            item = self._changes.item(source, f"/output/{index}")
            if place is not None:
                made.append((place, item if item is not None else dict(source)))
            elif item is not None and index not in self._gone:
                made.append((self._number(index), item))
        return [item for _, item in sorted(made, key=itemgetter(0))]

    def _with_id(self, response: Json, out: Sequence[Event]) -> Json:
        if (id_ := reply_id_of(out)) is not None:
            self._reply_id = id_
        if self._reply_id is None or not isinstance(response, dict) or "id" not in response:
            return response
        return {**response, "id": self._reply_id}

    def _late(self, late: Sequence[tuple[Change, str]]) -> Iterator[bytes]:
        """Yield events for text that was released with the events of another frame."""
        for change, words in late:
            start = change.start
            index = start.wire_index if start.wire_index is not None else -1
            if index not in self._open or start.kind not in _DELTAS:
                self._changes.made.setdefault(start.block, (start, []))[1].append(words)
                continue
            change.late += words
            kind, name = _DELTAS[start.kind], "content_index"
            if start.kind == "tool_call" and start.form == "custom":
                kind = "response.custom_tool_call_input.delta"
            elif "/summary/" in start.pointer:
                kind, name = "response.reasoning_summary_text.delta", "summary_index"
            place: dict[str, Json] = {"item_id": self._ids.get(index, ""), "output_index": self._places[index]}
            if start.kind != "tool_call":
                place[name] = int(start.pointer.rsplit("/", 2)[1])
            yield self._numbered({"type": kind, **place, "delta": words}, None)

    def _flush(self) -> Iterator[bytes]:
        """Yield the events of the new items."""
        made, self._changes.made = self._changes.made, {}
        for block in made.values():
            if (item := _made_item(block, len(self._places) + len(self._made))) is not None:
                place = max(self._taken, default=-1) + 1
                self._taken.add(place)
                self._made.append((place, item))
                for document in _item_events(item, place):
                    yield self._numbered(document, None)

    def _numbered(self, document: Mapping[str, Json], frame: Frame | None) -> bytes:
        """Return an event, with the next sequence number if the stream has such numbers."""
        made = dict(document)
        if self._sequence is not None:
            made["sequence_number"] = self._sequence
            self._sequence += 1
        named = frame.event is not None if frame is not None else self._named
        name = (text(made.get("type")) or (frame.event if frame is not None else None)) if named else None
        return dump(made) + b"\n" if self._lines else framed(made, name)


def _documents(
    frame: Frame, events: Sequence[Event], out: Sequence[Event]
) -> Iterator[tuple[list[Event], list[Event], Frame]]:
    """Yield the documents of a frame: the events read from each, those that replace them, and the frame that holds the
    document.

    Events that belong to no document of this frame go with the first. A frame of several documents is not one itself: its
    bytes would repeat them all.
    """
    events, out = without_earlier(frame, events), without_earlier(frame, out)
    places = {id(event.frame): event.frame for event in events if event.frame is not None} or {id(frame): frame}
    if len(places) > 1 and not frame_document(frame):
        places.pop(id(frame), None)
    first = next(iter(places))
    for key, place in places.items():
        own = [event for event in events if id(event.frame) == key]
        now = [event for event in out if (id(event.frame) if id(event.frame) in places else first) == key]
        yield own, now, place
