"""Items of OpenAI's Responses, written: those that changed, and those that rewriters made.

Text is told several times over: in deltas, when a part ends, when its item ends, and in the response as a whole. A `Change`
is what became of one block; every place that repeats the block is patched by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.apis.openai_responses_parts import CALLS
from wirelint.apis.reading import mapping, number, text
from wirelint.apis.writing import dump
from wirelint.events import Start
from wirelint.model import Json

_OFFSETS = ("start_index", "end_index", "index")


class Cut(NamedTuple):
    """What stands in the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Change:
    """What became of a block. `late` is text that was added behind all that has come of it so far."""

    start: Start
    cuts: list[Cut] = field(default_factory=list)
    late: str = ""
    gone: bool = False
    id: str | None = None
    name: str | None = None
    input: Json = None
    emptied: bool = False
    """Whether the arguments that a call was announced with are gone from its announcement."""
    came: int = 0
    """Characters of the block that have come."""
    item_id: str | None = None
    """The id of its item, where that is a new one."""

    @property
    def changed(self) -> bool:
        return bool(
            self.cuts or self.late or self.gone or self.id or self.name or self.item_id or self.input is not None
        )

    def patched(self, before: str) -> str:
        """The text of the block as it is now; `before` is all of it, or its beginning, as it came.

        Arguments that the end of a call tells otherwise than its deltas stay as they are.
        """
        if self.start.kind == "tool_call" and len(before) != self.came:
            return before
        made: list[str] = []
        position = 0
        for cut in self.cuts:
            made += (before[position : cut.start], cut.text)
            position = cut.end
        return "".join((*made, before[position:], self.late))

    def moved(self, offset: int) -> int:
        """Where a place in the text is now."""
        shift = 0
        for cut in self.cuts:
            if cut.start >= offset:
                break
            shift += len(cut.text) - (min(cut.end, offset) - cut.start)
        return max(offset + shift, 0)


def compared(before: str, after: str) -> list[Cut]:
    """The cut that makes one text of another: all between what they begin and end with alike."""
    if before == after:
        return []
    first = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    start = min(len(before), len(after)) if first is None else first
    left = min(len(before), len(after)) - start
    rest = zip(reversed(before), reversed(after), strict=False)
    last = next((n for n, (one, other) in enumerate(rest) if one != other or n >= left), left)
    return [Cut(start, len(before) - last, after[start : len(after) - last])]


def mended(item: Mapping[str, Json], place: str, changes: Mapping[str, Change]) -> dict[str, Json] | None:
    """A complete item as it is now; None when it is gone."""
    own = changes.get(place)
    if own is not None and own.gone:
        return None
    kind = text(item.get("type")) or "message"
    made = dict(item)
    if own is not None and own.changed and kind in CALLS:
        return _call(made, CALLS[kind][0], own)
    for name in ("content", "summary"):
        listed = item.get(name)
        if isinstance(listed, list):
            made[name] = [mended_part(part, f"{place}/{name}/{n}", changes) for n, part in enumerate(listed)]
        elif isinstance(listed, str) and (change := changes.get(f"{place}/{name}")) is not None:
            made[name] = change.patched(listed)
    return made


def mended_part(part: Json, place: str, changes: Mapping[str, Change]) -> Json:
    """A part of a message or of a thought as it is now."""
    for name in ("text", "refusal"):
        change = changes.get(f"{place}/{name}")
        if isinstance(part, dict) and change is not None and (change.cuts or change.late):
            return spoken_anew(part, name, change)
    return part


def spoken_anew(source: Mapping[str, Json], name: str, change: Change) -> dict[str, Json]:
    """An object that tells a whole text in its member `name`, with what goes by places in that text."""
    made = {**source, name: change.patched(text(source.get(name)) or "")}
    if isinstance(source.get("annotations"), list):
        made["annotations"] = [annotation_moved(one, change) for one in source["annotations"]]  # type: ignore[union-attr]
    if source.get("logprobs"):
        made["logprobs"] = []
    return made


def annotation_moved(annotation: Json, change: Change) -> Json:
    if not isinstance(annotation, dict):
        return annotation
    places = {name: place for name in _OFFSETS if (place := number(annotation.get(name))) is not None}
    return {**annotation, **{name: change.moved(place) for name, place in places.items()}}


def _call(item: dict[str, Json], field_: str, change: Change) -> dict[str, Json]:
    named = labelled(item, change)
    if change.input is not None:
        named[field_] = dump(change.input).decode()
    elif change.cuts or change.late:
        named[field_] = change.patched(text(item.get(field_)) or "")
    return named


def labelled(item: Mapping[str, Json], change: Change) -> dict[str, Json]:
    """A call with the ids and the name that it has now."""
    made = dict(item)
    if change.id is not None:
        made["call_id"] = change.id
    if change.item_id is not None and "id" in made:
        made["id"] = change.item_id
    if change.name is not None:
        made["name"] = change.name
    return made


# --- items that were not there ----------------------------------------------------------------------------------------


def made_item(start: Start, words: str, ordinal: int) -> dict[str, Json]:
    """A complete item for a block that a rewriter made."""
    prefix, body = _made_body(start, words)
    seed = f"{ordinal}/{start.block}/{start.id}/{start.name}/{words}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:50]
    return {"id": f"{prefix}_{digest}", **body}


def _made_body(start: Start, words: str) -> tuple[str, dict[str, Json]]:
    match start.kind:
        case "tool_call":
            custom = start.form == "custom"
            given = dump(start.input).decode() if start.input is not None and not words else words
            head: dict[str, Json] = {"type": "custom_tool_call" if custom else "function_call", "status": "completed"}
            call: dict[str, Json] = {"call_id": start.id or "", "name": start.name or ""}
            return ("ctc" if custom else "fc"), {**head, **call, ("input" if custom else "arguments"): given}
        case "reasoning":
            part: Json = {"type": "reasoning_text", "text": words}
            return "rs", {"type": "reasoning", "status": "completed", "summary": [], "content": [part]}
        case "refusal":
            return "msg", _message({"type": "refusal", "refusal": words})
        case _:
            return "msg", _message({"type": "output_text", "text": words, "annotations": [], "logprobs": []})


def _message(part: Json) -> dict[str, Json]:
    return {"type": "message", "status": "completed", "role": "assistant", "content": [part]}


def announced(item: Mapping[str, Json], index: int) -> Iterator[dict[str, Json]]:
    """The events that tell of a made item, from its beginning to its end, without their sequence numbers."""
    kind = item["type"]
    begun = {**item, "status": "in_progress"}
    place: dict[str, Json] = {"item_id": item["id"], "output_index": index}
    match kind:
        case "function_call" | "custom_tool_call":
            field_ = CALLS[str(kind)][0]
            stem = f"response.{kind}_{field_}"
            stem = "response.function_call_arguments" if field_ == "arguments" else "response.custom_tool_call_input"
            yield _item_event("added", {**begun, field_: ""}, index)
            yield {"type": f"{stem}.delta", **place, "delta": item[field_]}
            yield {"type": f"{stem}.done", **place, field_: item[field_]}
        case _:
            parts = item["content"]
            part = mapping(parts[0]) if isinstance(parts, list) and parts else {}
            yield _item_event("added", {**begun, "content": []}, index)
            yield from _part_events(part, place)
    yield _item_event("done", item, index)


def _item_event(verb: str, item: Mapping[str, Json], index: int) -> dict[str, Json]:
    return {"type": f"response.output_item.{verb}", "output_index": index, "item": dict(item)}


def _part_events(part: dict[str, Json], item: dict[str, Json]) -> Iterator[dict[str, Json]]:
    kind = str(part["type"])
    name = "refusal" if kind == "refusal" else "text"
    place: dict[str, Json] = {**item, "content_index": 0}
    more: dict[str, Json] = {"logprobs": []} if kind == "output_text" else {}
    yield {"type": "response.content_part.added", **place, "part": {**part, name: ""}}
    yield {"type": f"response.{kind}.delta", **place, "delta": part[name], **more}
    yield {"type": f"response.{kind}.done", **place, name: part[name], **more}
    yield {"type": "response.content_part.done", **place, "part": part}


# --- how a reply ended ------------------------------------------------------------------------------------------------

_CUT: dict[str, str] = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "content_filter": "content_filter",
}
_STATES = frozenset({"failed", "cancelled", "incomplete"})


def ended(response: Mapping[str, Json], reason: str) -> dict[str, Json]:
    """A response with another finish reason. Words of other APIs are understood: all but a few mean `completed`."""
    if reason in _CUT:
        return {**response, "status": "incomplete", "incomplete_details": {"reason": _CUT[reason]}}
    if reason in _STATES:
        return {**response, "status": reason}
    return {**response, "status": "completed", "incomplete_details": None}


def own_item_id(item: Mapping[str, Json], change: Change | None, others: Collection[str]) -> str | None:
    """A new id for the item of a call whose own id is new, if its item shares one of the `others`; None if it need not.

    Clients that keep items by their id would take the two calls for one.
    """
    id_ = text(item.get("id"))
    if change is None or change.id is None or not id_ or id_ not in others:
        return None
    digest = hashlib.sha256(f"{id_}/{change.id}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{id_.partition('_')[0]}_{digest[:50]}"


def whole_text(output: Sequence[Json]) -> str:
    """The `output_text` that some servers put beside the output."""
    items = [item for item in output if isinstance(item, dict) and item.get("type") == "message"]
    lists = [content for item in items if isinstance(content := item.get("content"), list)]
    parts = [part for content in lists for part in content if isinstance(part, dict)]
    return "".join(text(part.get("text")) or "" for part in parts if part.get("type") == "output_text")
