"""OpenAI Responses, written: events of a reply back to the typed events of a stream.

Theory of operation. As long as nothing was changed frames leave as they came, and of their text nothing is kept. From
the first change on every event is written anew: numbered in sequence, with the number that its item has now. A change of
text is remembered by its place in the block, so that it can be made again wherever the text is repeated: when the part
ends, when the item ends, and in the response with which the stream ends.

Items come one after the other, and clients hold one open at a time. So what a rewriter makes (a call out of text, a
thought) is put together here, and leaves as an item of its own as soon as the open one has ended. A message whose text is
gone altogether stays where it was announced, and is empty; in a whole body it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.openai_responses_changes import Changes, Made
from wirelint.apis.openai_responses_items import (
    Change,
    annotation_moved,
    announced,
    ended,
    labelled,
    made_item,
    mended,
    mended_part,
    own_item_id,
    spoken_anew,
    whole_text,
)
from wirelint.apis.reading import mapping, mappings, number, text
from wirelint.apis.writing import document_of, dump, framed, other_lines, same, spoken, text_of, without_earlier
from wirelint.events import Delta, Event, Finish, Frame, Other, ReplyMeta, StreamViolation
from wirelint.model import Json, Kind

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_DELTAS: dict[Kind, str] = {
    "text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning": "response.reasoning_text.delta",
    "tool_call": "response.function_call_arguments.delta",
}
_ITEM_EVENT = b"response.output_item."


class StreamWriter:
    def __init__(self) -> None:
        self._changes = Changes()
        self._places: dict[int, int] = {}  # output_index as it came: as it is now
        self._ids: dict[int, str] = {}
        self._gone: set[int] = set()
        self._open: set[int] = set()
        self._order: list[int | dict[str, Json]] = []
        self._altered = False
        self._sequence: int | None = None
        self._named = False
        self._reply_id: str | None = None
        self._lines: bool | None = None

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if self._lines is None:
            self._lines = frame.raw.lstrip().startswith(b"{")  # of a socket: an event a line
        self._named = self._named or frame.event is not None
        if same(events, out) and not self._altered:
            self._note(frame, events)
            return frame.raw
        self._altered = self._altered or not same(spoken(events), spoken(out))
        made = [part for own, now, place in _documents(frame, events, out) for part in self._document(place, own, now)]
        if not made:
            return b""
        return made[0] if made[0] is frame.raw else other_lines(frame) + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._altered = True
        late = self._changes.take((), out)
        return b"".join([*self._late(late), *self._flush()])

    def _note(self, frame: Frame, events: Sequence[Event]) -> None:
        """Takes in what leaves as it came."""
        if len(events) == 1 and type(events[0]) is Delta:
            return
        self._changes.take(events, events)
        if _ITEM_EVENT in frame.raw:
            for place in {id(event.frame): event.frame for event in events if event.frame is not None}.values():
                document = document_of(place)
                if (kind := document.get("type")) in ("response.output_item.added", "response.output_item.done"):
                    self._item(document, begins=kind == "response.output_item.added")

    def _item(self, document: Mapping[str, Json], *, begins: bool) -> int:
        """Takes in that an item begins or ends; its number as it is now."""
        item = mapping(document.get("item"))
        index = number(document.get("output_index"))
        index = len(self._places) if index is None else index
        if index not in self._places:
            self._places[index] = len(self._order)
            self._order.append(index)
            self._ids[index] = text(item.get("id")) or ""
        if begins:
            self._open.add(index)
        else:
            self._open.discard(index)
        return self._places[index]

    # --- one document -------------------------------------------------------------------------------------------------

    def _document(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if self._sequence is None:
            self._sequence = number(document.get("sequence_number"))
        late = self._changes.take(own, out)
        if own and not out and all(isinstance(event, (Other, StreamViolation)) for event in own):
            return  # it was taken out altogether
        kind = text(document.get("type")) or ""
        yield from self._late(late)
        if kind in _ENDS:
            yield from self._flush()
            yield self._final(document, own, out, frame)
        elif not document:
            if frame.data is not None:
                yield from self._flush()  # `[DONE]`, where the response was never told of as a whole
            yield frame.raw if frame.raw else framed(None, frame.event, data=frame.data or "")
        elif kind == "response.output_item.added":
            yield from self._added(document, frame)
        elif kind == "response.output_item.done":
            yield from self._item_done(document, frame)
        elif "response" in document:
            yield self._numbered({**document, "response": self._headed(document["response"], out)}, frame)
        else:
            yield from self._part(document, own, out, frame)

    def _added(self, document: dict[str, Json], frame: Frame) -> Iterator[bytes]:
        index = number(document.get("output_index"))
        index = len(self._places) if index is None else index
        change = self._changes.by_place.get(f"/output/{index}")
        if change is not None and change.gone:
            self._gone.add(index)
            return
        yield from self._flush()
        item = mapping(document.get("item"))
        others = [id_ for place, id_ in self._ids.items() if place != index]
        now = self._item(document, begins=True)
        if change is not None:
            change.item_id = change.item_id or own_item_id(item, change, others)
            self._ids[index] = change.item_id or self._ids.get(index, "")
            item = labelled(item, change)
            if change.emptied:
                item["arguments"] = ""
        yield self._numbered({**document, "output_index": now, "item": item}, frame)

    def _item_done(self, document: dict[str, Json], frame: Frame) -> Iterator[bytes]:
        index = number(document.get("output_index"))
        item = mapping(document.get("item"))
        if index in self._gone:
            return
        if index is not None:
            changed = mended(item, f"/output/{index}", self._changes.by_place)
            if changed is None and index not in self._places:
                self._gone.add(index)
                return
            item = item if changed is None else changed
        if index not in self._places:
            yield from self._flush()
        now = self._item(document, begins=False)
        yield self._numbered({**document, "output_index": now, "item": item}, frame)
        if not self._open:
            yield from self._flush()

    def _part(
        self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame
    ) -> Iterator[bytes]:
        """What is said of a part of an item: deltas and ends, annotations, the progress of hosted calls."""
        index = number(document.get("output_index"))
        if index in self._gone:
            return
        made = dict(document)
        if index is not None and index in self._places:
            made["output_index"] = self._places[index]
            change = self._changes.by_place.get(f"/output/{index}")
            if change is not None and change.item_id is not None and "item_id" in made:
                made["item_id"] = change.item_id
        kind = text(document.get("type")) or ""
        said = [event for event in own if type(event) is Delta]
        if kind.endswith(".delta") and said:
            words = "".join(event.text for event in out if type(event) is Delta and event.block == said[0].block)
            if words != text_of(said):
                words = self._rest(said, words, text(document.get("delta")) or "")
                if not words:
                    return
                made["delta"] = words
                if made.get("logprobs"):
                    made["logprobs"] = []
        elif index is not None:
            self._repeat(made, f"/output/{index}", document)
        yield self._numbered(made, frame)

    def _rest(self, said: Sequence[Delta], words: str, delta: str) -> str:
        """Return the new text of a delta, without what its item was added with: `{"a":`, and then `1}`.

        The text of such a delta is read with that beginning, which has left with the announcement.
        """
        change = self._changes.by_block.get(said[0].block)
        given = change.start.given if change is not None else ""
        if not given or said[0].item or text_of(said) != given + delta:
            return words
        return words.removeprefix(given) if words.startswith(given) else delta

    def _repeat(self, made: dict[str, Json], item: str, document: Mapping[str, Json]) -> None:
        """Has an event that repeats what deltas have said say what was said in the end."""
        changes = self._changes.by_place
        summary = number(document.get("summary_index"))
        n = number(document.get("content_index")) or 0
        place = f"{item}/summary/{summary}" if summary is not None else f"{item}/content/{n}"
        if "part" in document:
            made["part"] = mended_part(document["part"], place, changes)
            return
        for name in ("text", "refusal"):
            change = changes.get(f"{place}/{name}")
            if change is not None and (change.cuts or change.late):
                if name in document:
                    made.update(spoken_anew(document, name, change))
                elif "annotation" in document:
                    made["annotation"] = annotation_moved(document["annotation"], change)
        own = changes.get(item)
        if own is None or not own.changed:
            return
        for name in ("arguments", "input"):
            if isinstance(given := document.get(name), str):
                made[name] = dump(own.input).decode() if own.input is not None else own.patched(given)
        if own.name is not None and "name" in document:
            made["name"] = own.name

    def _final(self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame) -> bytes:
        response = self._headed(document.get("response"), out)
        listed = response.get("output") if isinstance(response, dict) else None
        if not isinstance(response, dict):
            return self._numbered(document, frame)
        if isinstance(listed, list) and (listed or not self._places):
            output = self._output(listed)
            response = {**response, "output": output}
            if text(response.get("output_text")):
                response["output_text"] = whole_text(output)
        stop = next((event for event in reversed(out) if type(event) is Finish), None)
        if stop is None or any(event is stop for event in own):
            return self._numbered({**document, "response": response}, frame)
        response = ended(response, stop.reason)
        return self._numbered({**document, "type": f"response.{response['status']}", "response": response}, frame)

    def _output(self, listed: Sequence[Json]) -> list[Json]:
        """The items of the whole response, in the order in which the stream told of them."""
        made: list[Json] = []
        items = dict(mappings(list(listed)))
        rest = [index for index in items if index not in self._places and index not in self._gone]
        for entry in (*self._order, *rest):
            if isinstance(entry, dict):
                made.append(entry)
            elif entry in items:
                item = mended(items[entry], f"/output/{entry}", self._changes.by_place)
                if item is not None or entry in self._places:
                    made.append(item if item is not None else items[entry])
        return made

    def _headed(self, response: Json, out: Sequence[Event]) -> Json:
        head = next((event for event in out if type(event) is ReplyMeta and event.id is not None), None)
        if head is not None:
            self._reply_id = head.id
        if self._reply_id is None or not isinstance(response, dict) or "id" not in response:
            return response
        return {**response, "id": self._reply_id}

    # --- what was not there -------------------------------------------------------------------------------------------

    def _late(self, late: Sequence[tuple[Change, str]]) -> Iterator[bytes]:
        """Text that comes out beside a frame that it was not read from."""
        for change, words in late:
            start = change.start
            index = start.wire_index if start.wire_index is not None else -1
            if index not in self._open or start.kind not in _DELTAS:
                self._changes.made.setdefault(start.block, Made(start)).texts.append(words)
                continue
            change.late += words
            custom = start.kind == "tool_call" and start.form == "custom"
            made: dict[str, Json] = {
                "type": "response.custom_tool_call_input.delta" if custom else _DELTAS[start.kind],
                "item_id": self._ids.get(index, ""),
                "output_index": self._places[index],
            }
            if "/summary/" in start.pointer:
                made["type"] = "response.reasoning_summary_text.delta"
            if start.kind != "tool_call":
                name = "summary_index" if "/summary/" in start.pointer else "content_index"
                made[name] = int(start.pointer.rsplit("/", 2)[1])
            yield self._numbered({**made, "delta": words}, None)

    def _flush(self) -> Iterator[bytes]:
        """Tells of the items that rewriters made."""
        made, self._changes.made = self._changes.made, {}
        for block in made.values():
            if block.empty:
                continue
            item = made_item(block.start, block.text, len(self._order))
            place = len(self._order)
            self._order.append(item)
            for document in announced(item, place):
                yield self._numbered(document, None)

    def _numbered(self, document: Mapping[str, Json], frame: Frame | None) -> bytes:
        """An event with its place in the sequence, where the stream counts."""
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
    """The documents of a frame: the events read from each, those that came out, and what holds it.

    What belongs to no document of this frame goes with the first.
    """
    events, out = without_earlier(frame, events), without_earlier(frame, out)
    places = {id(event.frame): event.frame for event in events if event.frame is not None} or {id(frame): frame}
    first = next(iter(places))
    for key, place in places.items():
        own = [event for event in events if id(event.frame) == key]
        now = [event for event in out if (id(event.frame) if id(event.frame) in places else first) == key]
        yield own, now, place
