"""Parts of OpenAI's messages from events: entries of `tool_calls`, content, and what one chunk can say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wirelint.apis.reading import mapping
from wirelint.apis.writing import MADE
from wirelint.events import CallUpdate, Delta, Event, Finish, Start
from wirelint.model import Json


@dataclass(slots=True)
class Piece:
    """What one chunk says of one candidate."""

    made: int | None = None
    text: list[Delta] = field(default_factory=list)
    reasoning: list[Delta] = field(default_factory=list)
    refusal: list[Delta] = field(default_factory=list)
    calls: dict[int, list[Event]] = field(default_factory=dict)
    legacy: list[Event] = field(default_factory=list)
    reason: str | None = None

    @property
    def empty(self) -> bool:
        return not (self.text or self.reasoning or self.refusal or self.calls or self.legacy or self.reason)


def call_entry(source: Mapping[str, Json], start: Start, events: Sequence[Event], index: int | None) -> Json:
    """An entry of `tool_calls` from the events of one call; `source` is the entry that they were read from."""
    begins = next((event for event in events if isinstance(event, Start)), None)
    label = next((event for event in events if isinstance(event, CallUpdate)), None)
    deltas = [event for event in events if isinstance(event, Delta)]
    custom = start.form == "custom"
    inner = "custom" if custom else "function"
    body = dict(mapping(source.get(inner)))
    entry: dict[str, Json] = {name: value for name, value in source.items() if name not in ("id", inner)}
    named = begins or label
    made: dict[str, Json] = {"index": index} if index is not None else {}
    if named is not None and named.id is not None:
        made["id"] = named.id
    if begins is not None:
        made["type"] = "custom" if custom else "function"
    elif label is None:
        entry.pop("type", None)  # it was told when the call began
    entry = {**made, **entry, **made}
    body.pop("name", None)
    if named is not None and named.name is not None:
        body = {"name": named.name, **body}
    words = "input" if custom else "arguments"
    text = "".join(delta.text for delta in deltas)
    if begins is not None and begins.input is not None and not deltas:
        body[words] = begins.input
    elif deltas or begins is not None:
        body[words] = text
    else:
        body.pop(words, None)
    if body:
        entry[inner] = body
    return entry


def legacy_call(source: Mapping[str, Json], events: Sequence[Event]) -> Json:
    """OpenAI's former `function_call`."""
    begins = next((event for event in events if isinstance(event, Start)), None)
    body = {name: value for name, value in source.items() if name not in ("name", "arguments")}
    if begins is not None and begins.name is not None:
        body["name"] = begins.name
    body["arguments"] = "".join(event.text for event in events if isinstance(event, Delta))
    return body


def content(source: Json, deltas: Sequence[Delta]) -> Json:
    """Text as the content was written: a string, or the parts of a list."""
    if not isinstance(source, list):
        return "".join(delta.text for delta in deltas)
    parts: list[Json] = []
    texts = {delta.item: "" for delta in deltas}
    for delta in deltas:
        texts[delta.item] += delta.text
    for position, part in enumerate(source):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            if position in texts:
                parts.append({**part, "text": texts.pop(position)})
        elif not (isinstance(part, dict) and "thinking" in part):
            parts.append(part)
    parts += [{"type": "text", "text": text} for text in texts.values()]
    return parts


def pieces(events: Sequence[Event], starts: Mapping[int, Start]) -> Iterator[Piece]:
    """What each of the chunks says that the events of one candidate become. `starts`: how their blocks began."""
    piece = Piece()
    for event in events:
        match event:
            case Finish():
                if piece.made is not None:
                    yield piece
                    piece = Piece()
                piece.reason = event.reason
                continue
            case Start() | Delta() | CallUpdate():
                start = starts[event.block]
            case _:
                continue
        made = event.block if start.kind == "tool_call" and event.block >= MADE else None
        if (piece.made is not None or made is not None) and made != piece.made and not piece.empty:
            yield piece
            piece = Piece()
        if piece.reason is not None:
            yield piece
            piece = Piece()
        if start.kind == "tool_call":
            piece.made = made
        put(piece, event, start)
    if not piece.empty:
        yield piece


def put(piece: Piece, event: Start | Delta | CallUpdate, start: Start) -> None:
    """Has a piece say what an event says."""
    match start.kind:
        case "tool_call" if start.form == "legacy":
            piece.legacy.append(event)
        case "tool_call":
            piece.calls.setdefault(event.block, []).append(event)
        case "text" if isinstance(event, Delta):
            piece.text.append(event)
        case "reasoning" if isinstance(event, Delta):
            piece.reasoning.append(event)
        case "refusal" if isinstance(event, Delta):
            piece.refusal.append(event)
        case _:
            pass
