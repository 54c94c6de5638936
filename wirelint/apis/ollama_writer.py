"""Ollama's chat and generate, written: events of a reply back to JSON lines, or to the body of a whole reply.

Theory of operation. A line is a message with a piece of everything: thinking, text, calls, in that order. A frame whose
events came out as they went in is handed on as it is. From any other, what events stand for is taken out and put back from
the events, as one line for each piece of what is said; all else (model, time, counts, what no one knows) stays in its line.
The line that ends a reply says nothing else, as the vendor's does: what is to be said before goes into lines of its own.

Calls are numbered by their place in the reply where their line says a number at all, and have an id where they came with
one. Rewriters name finish reasons as OpenAI does; here a reply with calls ends with `stop`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from wirelint.apis.reading import mapping, mappings
from wirelint.apis.writing import MADE, document_of, dump, groups, same, spoken
from wirelint.events import CallUpdate, Delta, Done, Event, Failure, Finish, Frame, Other, ReplyMeta, Start, Usage
from wirelint.jsonvalues import Arguments
from wirelint.model import Json

REASONS = {"tool_calls": "stop", "function_call": "stop"}
_ORDER = {"reasoning": 0, "text": 1, "refusal": 1, "tool_call": 2}


@dataclass(slots=True)
class Piece:
    """What one message says, or a piece of it."""

    thinking: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    calls: dict[int, list[Event]] = field(default_factory=dict)

    @property
    def order(self) -> int:
        return 2 if self.calls else 1 if self.text else 0


class _Writer:
    """What lines and whole bodies have in common: where words stand, and how calls are written."""

    def __init__(self, place: str) -> None:
        self._chat = bool(place)
        self._words = "content" if place else "response"
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}

    def _note(self, events: Sequence[Event]) -> None:
        """Takes in the blocks that begin."""
        for event in events:
            if type(event) is Start:
                self._starts.setdefault(event.block, event)

    def _count(self, out: Sequence[Event]) -> None:
        """Numbers the calls that leave."""
        for event in out:
            if type(event) is Start and event.kind == "tool_call":
                self._numbers.setdefault(event.block, len(self._numbers))

    def _moves(self, out: Sequence[Event]) -> bool:
        """Return True if a call has got another number."""
        return any(type(e) is Start and e.kind == "tool_call" and self._numbers[e.block] != e.wire_index for e in out)

    def _message(self, document: Mapping[str, Json]) -> dict[str, Json]:
        return mapping(document.get("message")) if self._chat else dict(document)

    def _put(self, document: Mapping[str, Json], message: Mapping[str, Json]) -> dict[str, Json]:
        return {**document, "message": dict(message)} if self._chat else dict(message)

    def _pieces(self, out: Sequence[Event], *, joined: bool) -> list[Piece]:
        """What is said, in the pieces that it takes. `joined`: in one, whatever the order."""
        pieces = [Piece()]
        for event in out:
            if not isinstance(event, (Start, Delta, CallUpdate)) or event.block not in self._starts:
                continue
            kind = self._starts[event.block].kind
            order = _ORDER.get(kind)
            if order is None or (isinstance(event, Start) and kind != "tool_call"):
                continue
            if not joined and order < pieces[-1].order:
                pieces.append(Piece())
            if kind == "tool_call":
                pieces[-1].calls.setdefault(event.block, []).append(event)
            elif isinstance(event, Delta):
                (pieces[-1].thinking if kind == "reasoning" else pieces[-1].text).append(event.text)
        return [piece for piece in pieces if piece.thinking or piece.text or piece.calls]

    def _say(self, message: Mapping[str, Json], piece: Piece, source: Mapping[str, Json]) -> dict[str, Json]:
        """A message that says a piece. `source` is the message that the events were read from."""
        said: dict[str, Json] = {**({"role": "assistant"} if self._chat else {}), **message}
        said[self._words] = "".join(piece.text)
        for name in ("thinking", "tool_calls"):
            said.pop(name, None)
        if piece.thinking:
            said["thinking"] = "".join(piece.thinking)
        if piece.calls:
            items = dict(mappings(source.get("tool_calls")))
            said["tool_calls"] = [self._entry(items, block, events) for block, events in piece.calls.items()]
        return said

    def _entry(self, items: Mapping[int, dict[str, Json]], block: int, events: Sequence[Event]) -> Json:
        start = self._starts[block]
        own = items.get(start.item, {}) if start.block < MADE else {}
        function = dict(mapping(own.get("function")))
        begins = next((event for event in events if isinstance(event, Start)), start)
        label = next((event for event in events if isinstance(event, CallUpdate)), None)
        name = label.name if label is not None and label.name is not None else begins.name
        number = self._numbers.get(block, len(self._numbers))
        if "index" in function or not own:
            function["index"] = number
        function["name"] = name or ""
        said = "".join(event.text for event in events if isinstance(event, Delta))
        as_text = isinstance(function.get("arguments"), str)
        function["arguments"] = said if as_text else _arguments(begins, said)
        entry: dict[str, Json] = {**own, "function": function}
        if begins.id is not None and (own.get("id") is not None or not own):
            entry = {**entry, "id": begins.id}
        return entry


def _arguments(start: Start, said: str) -> Json:
    """The arguments as an object; as text where they are none, which only happens where they came so."""
    if not said:
        return {} if start.input is None else start.input
    value = Arguments(said).value
    return value if isinstance(value, dict) else said


class StreamWriter(_Writer):
    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._last: dict[str, Json] = {}

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        self._note(events)
        self._note(out)
        self._count(out)
        if same(events, out) and not self._moves(out):
            if not self._last:
                self._last = self._shell(document_of(frame))
            return frame.raw
        made: list[bytes] = []
        for place, group in groups(frame, out):
            made += self._group(place, [event for event in events if event.frame is place], group)
        return b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._note(out)
        self._count(out)
        made = [_line(line) for line in self._lines(self._last, {}, [], out)]
        return b"".join(made) if any(not isinstance(event, (Other, ReplyMeta)) for event in out) else b""

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if not document:
            if any(isinstance(event, Other) for event in out) or same(own, out):
                yield frame.raw
            else:
                yield from map(_line, self._lines(self._last, {}, own, out))
            return
        self._last = self._shell(document)
        if same(spoken(own), spoken(out)) and not self._moves(out):
            yield (frame.data or "").encode() + b"\n"
            return
        yield from map(_line, self._lines(self._last, document, own, out))

    def _shell(self, document: Mapping[str, Json]) -> dict[str, Json]:
        """A line that says nothing yet: what every line of this reply has beside the message."""
        shell = {name: document[name] for name in ("model", "created_at") if name in document}
        return shell if not document or shell else {"model": ""}

    def _lines(
        self, shell: Mapping[str, Json], document: Mapping[str, Json], own: Sequence[Event], out: Sequence[Event]
    ) -> Iterator[dict[str, Json]]:
        """The lines that a line becomes."""
        source = self._message(document) if document else {}
        ends = any(isinstance(event, (Finish, Done)) for event in out)
        told = ends or any(isinstance(event, (Failure, Usage)) for event in out)
        rest = {name: value for name, value in source.items() if name not in (self._words, "thinking", "tool_calls")}
        pieces = self._pieces(out, joined=False)
        opaque = any(isinstance(event, Start) and event.kind == "opaque" for event in out)
        if not document or ends:
            for piece in pieces:
                yield {**self._put(shell, self._say({} if self._chat else shell, piece, source)), "done": False}
            if told or opaque:
                yield self._ending({"done": False, **(document or shell)}, rest, out)
            return
        for place, piece in enumerate(pieces):
            yield self._put(document, self._say(rest if place == 0 or not self._chat else {}, piece, source))
        if not pieces and (told or opaque or not own):
            yield self._put(document, self._say(rest, Piece(), source) if self._words in source or opaque else source)

    def _ending(self, document: Mapping[str, Json], rest: Mapping[str, Json], out: Sequence[Event]) -> dict[str, Json]:
        message = self._say(rest if rest or self._chat else document, Piece(), {})
        last = self._put(document, message)
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            last["done_reason"] = _reason(stop, document)
        if stop is not None or any(isinstance(event, Done) for event in out):
            last["done"] = True
        return last


class WholeWriter(_Writer):
    """The body of a reply, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        self._note(events)
        self._note(out)
        self._count(out)
        changed = dict(document)
        blocks = (Start, Delta, CallUpdate)
        before = [event for event in events if isinstance(event, blocks)]
        after = [event for event in out if isinstance(event, blocks)]
        if not same(before, after):
            source = self._message(document)
            piece = next(iter(self._pieces(out, joined=True)), Piece())
            changed = self._put(document, self._say(source, piece, source))
        stop = next((event for event in out if isinstance(event, Finish)), None)
        if stop is not None:
            changed["done_reason"] = _reason(stop, document)
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it


def _reason(stop: Finish, document: Mapping[str, Json]) -> str:
    return stop.reason if stop.reason == document.get("done_reason") else REASONS.get(stop.reason, stop.reason)


def _line(document: Json | Mapping[str, Json]) -> bytes:
    return orjson.dumps(document) + b"\n"
