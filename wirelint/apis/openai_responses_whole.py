"""OpenAI Responses, written: the body of a response, patched."""

from __future__ import annotations

from collections.abc import Sequence

from wirelint.apis.openai_responses_changes import TEXTS, Changes
from wirelint.apis.openai_responses_items import ended, made_item, mended, own_item_id, whole_text
from wirelint.apis.openai_responses_parts import CALLS
from wirelint.apis.reading import mappings, text
from wirelint.apis.writing import document_of, dump, same
from wirelint.events import CallUpdate, Delta, Event, Finish, Frame, ReplyMeta, Start
from wirelint.model import Json


class WholeWriter:
    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        changes = Changes()
        changes.take(events, out)
        changed = dict(document)
        listed = document.get("output")
        if isinstance(listed, list) and not same(_blocks(events), _blocks(out)):
            _part_items(listed, changes)
            changed["output"] = output = _whole_output(listed, changes, out)
            if text(document.get("output_text")):
                changed["output_text"] = whole_text(output)
        stop = next((event for event in reversed(out) if type(event) is Finish), None)
        if stop is not None and not any(event is stop for event in events):
            changed = ended(changed, stop.reason)
        head = next((event for event in out if type(event) is ReplyMeta and event.id is not None), None)
        if head is not None and "id" in document:
            changed["id"] = head.id
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it


def _part_items(listed: Sequence[Json], changes: Changes) -> None:
    """Gives items of calls with new ids an id of their own, where an item before them has the same."""
    seen: set[str] = set()
    for index, item in mappings(list(listed)):
        change = changes.by_place.get(f"/output/{index}")
        if change is not None:
            change.item_id = change.item_id or own_item_id(item, change, seen)
        seen.add(text(item.get("id")) or "")


def _blocks(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, (Start, Delta, CallUpdate))]


def _whole_output(listed: Sequence[Json], changes: Changes, out: Sequence[Event]) -> list[Json]:
    """The items of a body, with those that were made where their text came out among the others."""
    made: list[Json] = []
    position = 0
    told: set[int] = set()
    for event in out:
        if not isinstance(event, (Start, Delta)) or event.block in told:
            continue
        block = changes.made.get(event.block)
        known = changes.by_block.get(event.block)
        start = block.start if block is not None else known.start if known is not None else None
        if start is None or (isinstance(event, Start) and start.kind in TEXTS and start.form != "opaque"):
            continue  # text has its place where its first word stands
        told.add(event.block)
        if block is not None:
            if not block.empty:
                made.append(made_item(block.start, block.text, len(made)))
        elif start.wire_index is not None:
            while position <= start.wire_index and position < len(listed):
                made += _kept(listed[position], position, changes)
                position += 1
    for place in range(position, len(listed)):
        made += _kept(listed[place], place, changes)
    return made


def _kept(item: Json, index: int, changes: Changes) -> list[Json]:
    """An item as it is now: without the parts, and not at all, where nothing is left of what it said."""
    if not isinstance(item, dict):
        return [item]
    place = f"/output/{index}"
    now = mended(item, place, changes.by_place)
    if now is None:
        return []
    dropped = False
    for name in ("content", "summary"):
        parts = now.get(name)
        if isinstance(parts, list):
            kept = [part for n, part in enumerate(parts) if not _emptied(part, f"{place}/{name}/{n}", changes)]
            dropped = dropped or len(kept) < len(parts)
            now[name] = list(kept)
    empty = dropped and text(item.get("type")) not in CALLS and not now.get("content") and not now.get("summary")
    return [] if empty else [now]


def _emptied(part: Json, place: str, changes: Changes) -> bool:
    """Return True if all text of a part was taken out."""
    for name in ("text", "refusal"):
        change = changes.by_place.get(f"{place}/{name}")
        if change is not None and change.cuts and isinstance(part, dict) and part.get(name) == "":
            return True
    return False
