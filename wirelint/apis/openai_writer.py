"""OpenAI Chat Completions, written: events of a reply back to chunks, or to the body of a completion.

Theory of operation. A frame whose events came out as they went in is handed on as it is. Any other is made from its
document: what events stand for (content, reasoning, refusal, calls, the finish reason) is taken out of it and put back
from the events, everything else stays where it was (id, created, model, fingerprint, role, what no one knows). Calls that
a rewriter made get a chunk each, and the finish reason after them one of its own, as vendors send them.

Calls are numbered here. As long as nothing was changed the wire's own index holds; from the first change of a call on,
calls are numbered on in the order in which they begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.openai_parts import Piece, call_entry, content, legacy_call, pieces, put
from wirelint.apis.reading import DONE, mapping, mappings, number, stated_reason
from wirelint.apis.writing import MADE, document_of, dump, framed, groups, other_lines, same, spoken, text_of
from wirelint.events import (
    REPEATED,
    CallUpdate,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
    Usage,
)
from wirelint.model import FaultKind, Json, Kind

REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")


class _Writer:
    """What streams and whole bodies have in common: which block is what, and the numbers of calls."""

    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._gone: dict[int, Start] = {}  # calls that were taken out
        self._numbers: dict[int, int] = {}
        self._highest: dict[int, int] = {}
        self._altered: set[int] = set()
        self._known: dict[tuple[int, int], int] = {}
        self._reasoning = "reasoning_content"
        self._last: dict[str, Json] = {}

    def _note(self, out: Sequence[Event]) -> None:
        """Takes in the blocks that begin, and the numbers of calls that leave as they came."""
        for event in out:
            if type(event) is Start:
                self._begin(event)

    def _begin(self, start: Start) -> None:
        known = self._starts.get(start.block)
        if known is not None:
            return
        self._starts[start.block] = start
        if start.kind == "reasoning" and start.block < MADE:
            name = start.pointer.rpartition("/")[2]
            self._reasoning = name if name in REASONING else self._reasoning
        if start.kind != "tool_call" or start.form == "legacy":
            return
        highest = self._highest.get(start.choice, -1)
        own = start.wire_index
        altered = start.choice in self._altered or own is None or start.block >= MADE
        self._numbers[start.block] = found = highest + 1 if altered or own is None else own
        self._highest[start.choice] = max(highest, found)

    def _choice_of(self, event: Event) -> int | None:
        match event:
            case Start(choice=choice) | Finish(choice=choice):
                return choice
            case Delta(block=block) | CallUpdate(block=block):
                start = self._starts.get(block) or self._gone.get(block)
                return start.choice if start is not None else None
            case _:
                return None

    def _kind(self, event: Event) -> Kind | None:
        match event:
            case Start(kind=kind):
                return kind
            case Delta(block=block) | CallUpdate(block=block):
                start = self._starts.get(block) or self._gone.get(block)
                return start.kind if start is not None else None
            case _:
                return None

    def _alter(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        """Notes which candidates have their calls changed: their numbers are ours from now on."""
        left = {id(event) for event in out}
        for event in (*events, *out):
            if isinstance(event, Start) and event.kind == "tool_call":
                gone = id(event) not in left
                moved = event.block >= MADE or event.wire_index is None
                if gone or moved:
                    self._altered.add(event.choice)
                if gone and event.block not in self._starts:
                    self._gone[event.block] = event


class StreamWriter(_Writer):
    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if same(events, out) and not (self._altered and self._moves(frame, out)):
            self._note(out)
            return frame.raw
        self._alter(events, out)
        made: list[bytes] = []
        seen = {id(event.frame) for event in events}
        for place, group in groups(frame, out):
            own = [event for event in events if event.frame is place]
            made += self._group(place, own, group)
            seen.discard(id(place))
        # Documents of which nothing came out: what stood in them beside the events is still to be told, save after the end.
        late = any(isinstance(event, StreamViolation) and event.kind == "after-end" for event in events)
        for event in () if late else events:
            if event.frame is not None and id(event.frame) in seen:
                seen.discard(id(event.frame))
                own = [one for one in events if one.frame is event.frame]
                made += self._group(event.frame, own, [])
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        made: list[bytes] = []
        self._alter((), out)
        if late := [event for event in out if event.frame is not None]:
            document = {name: value for name, value in self._last.items() if name != "usage"}
            frame = Frame(0, b"", None, None)
            made += self._chunks(document, [], late, frame)
        made += [b"data: [DONE]\n\n" for event in out if isinstance(event, Done)]
        return b"".join(made)

    def _moves(self, frame: Frame, out: Sequence[Event]) -> bool:
        """Return True if a call in an untouched frame has got another number, or may be a removed one."""
        calls = (Start, Delta, CallUpdate)
        if '"tool_calls"' in (frame.data or "") and not any(isinstance(event, calls) for event in out):
            return True  # `{"index":0,"function":false}` says nothing, but clients begin a call with it
        for event in out:
            match event:
                case Start(kind="tool_call") if event.choice in self._altered and event.form != "legacy":
                    self._begin(event)
                    if self._numbers[event.block] != event.wire_index:
                        return True
                case Delta() | CallUpdate() if event.block in self._numbers:
                    if self._numbers[event.block] != self._starts[event.block].wire_index:
                        return True
                case _:
                    pass
        return False

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if not document:
            if any(isinstance(event, Done) for event in out):
                said = [event for event in out if not isinstance(event, Done)]
                if said:
                    yield from self._chunks(dict(self._last), [], said, frame)
                yield framed(None, data=DONE)
            elif any(isinstance(event, (Other, StreamViolation)) for event in out):
                yield frame.raw
            elif out:
                yield from self._chunks(dict(self._last), [], out, frame)
            return
        yield from self._chunks(document, own, out, frame)
        if any(isinstance(event, Done) for event in out):  # it stood in the same event as the document
            yield framed(None, data=DONE)

    def _chunks(
        self, document: dict[str, Json], own: Sequence[Event], out: Sequence[Event], frame: Frame
    ) -> Iterator[bytes]:
        """The chunks that a document becomes."""
        self._last = {name: value for name, value in document.items() if name not in ("choices", "usage")}
        self._note(out)
        if frame.data is not None and same(spoken(own), spoken(out)) and not self._moves(frame, out):
            yield framed(None, frame.event, data=frame.data)
            return
        for event in out:
            if isinstance(event, ReplyMeta):
                document = {**document, **({"id": event.id} if event.id is not None and "id" in document else {})}
                self._last.update({"id": document["id"]} if "id" in document else {})
        choices = list(mappings(document.get("choices")))
        listed = {_index(choice, position) for position, choice in choices}
        extra = sorted({c for e in out if (c := self._choice_of(e)) is not None} - listed)
        rows: list[dict[str, Json]] = [choice for _, choice in choices]
        rows += [{"index": c, "delta": {}, "finish_reason": None} for c in extra]
        made = [self._bodies(row, position, own, out) for position, row in enumerate(rows)]
        gone = any(isinstance(event, Usage) for event in own) and not any(isinstance(event, Usage) for event in out)
        if gone:  # the counts were taken out, and with them a chunk that holds nothing else
            document = {name: value for name, value in document.items() if name != "usage"}
        telling = spoken(out) if gone else out
        told = any(_is_told(event) for event in telling)
        made = [bodies for bodies in made if bodies]
        if not made and not told and not document.get("usage"):
            return
        if all(len(bodies) == 1 for bodies in made):
            said = {"choices": [bodies[0] for bodies in made]} if made or "choices" in document else {}
            yield framed({**document, **said}, frame.event)
            return
        plain = {**document, **({"usage": None} if "usage" in document else {})}
        flat: list[Json] = [body for bodies in made for body in bodies]
        for place, body in enumerate(flat):
            yield framed({**(document if place == len(flat) - 1 else plain), "choices": [body]}, frame.event)

    def _bodies(
        self, choice: Mapping[str, Json], position: int, own: Sequence[Event], out: Sequence[Event]
    ) -> list[Json]:
        """A candidate's part of the chunks that its part of one chunk becomes."""
        index = _index(choice, position)
        before = [event for event in own if self._choice_of(event) == index]
        after = [event for event in out if self._choice_of(event) == index]
        field_ = "message" if not mapping(choice.get("delta")) and mapping(choice.get("message")) else "delta"
        source = mapping(choice.get(field_))
        rest = self._rest(source, before, after, index)
        said_by = list(pieces(after, self._starts))
        bodies: list[Json] = []
        if not said_by:
            dropped = bool(before)
            if not dropped or any(value not in (None, "", [], {}) for value in rest.values()):
                reason = None if dropped else stated_reason(choice.get("finish_reason"))
                bodies.append({**choice, field_: rest, "finish_reason": reason})
            return bodies
        kept = self._kept(before, after)
        for place, piece in enumerate(said_by):
            if "text" in kept:
                piece.text = []
            if "reasoning" in kept:
                piece.reasoning = []
            said = dict(rest) if place == 0 else {}
            self._say(said, source, piece)
            body: dict[str, Json] = {**choice, field_: said, "finish_reason": piece.reason}
            if "logprobs" in choice and (place or text_changed(before, after)):
                body["logprobs"] = None
            bodies.append(body)
        return bodies

    def _rest(
        self, source: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event], choice: int
    ) -> dict[str, Json]:
        """What of a delta no event stands for, or is not for this frame's events to say."""
        kinds = {self._kind(event) for event in before} - self._kept(before, after)
        rest = dict(source)
        if "text" in kinds and rest.get("content"):
            rest["content"] = None if rest.get("tool_calls") else ""
        for name in REASONING if "reasoning" in kinds else ():
            if rest.get(name):
                rest.pop(name)
        if "reasoning" in kinds:
            rest.pop("reasoning_details", None)
        if "refusal" in kinds:
            rest.pop("refusal", None)
        rest.pop("function_call", None)
        calls = self._silent_calls(source, before, choice)
        rest.pop("tool_calls", None)
        if calls:
            rest["tool_calls"] = calls
        return rest

    def _kept(self, before: Sequence[Event], after: Sequence[Event]) -> set[Kind | None]:
        """The kinds of text that say what they said before, and may stay in the form in which they stand."""
        kinds: tuple[Kind, ...] = ("text", "reasoning")
        return {kind for kind in kinds if (said := self._said(kind, before)) and said == self._said(kind, after)}

    def _said(self, kind: Kind, events: Sequence[Event]) -> str:
        return "".join(event.text for event in events if isinstance(event, Delta) and self._kind(event) == kind)

    def _silent_calls(self, source: Mapping[str, Json], before: Sequence[Event], choice: int) -> list[Json]:
        """Entries of `tool_calls` that say nothing new (an id repeated), under the numbers that hold now."""
        spoken = {event.item for event in before if isinstance(event, (Start, Delta, CallUpdate))}
        silent: list[Json] = []
        for item, call in mappings(source.get("tool_calls")):
            if item in spoken:
                continue
            index = number(call.get("index")) or 0
            block = next(
                (
                    b
                    for b, s in self._starts.items()
                    if s.choice == choice and s.wire_index == index and b in self._numbers
                ),
                None,
            )
            if block is not None:
                silent.append({**call, "index": self._numbers[block]})
        return silent

    def _say(self, said: dict[str, Json], source: Mapping[str, Json], piece: Piece) -> None:
        if piece.text:
            said["content"] = content(source.get("content"), piece.text)
        if piece.reasoning:
            said[self._reasoning] = "".join(delta.text for delta in piece.reasoning)
        if piece.refusal:
            said["refusal"] = "".join(delta.text for delta in piece.refusal)
        if piece.calls:
            if said.get("content") == "" and not piece.text:
                said.pop("content")
            made: list[Json] = [self._entry(source, events) for events in piece.calls.values()]
            kept = said.get("tool_calls")
            said["tool_calls"] = [*(kept if isinstance(kept, list) else []), *made]
        if piece.legacy:
            said["function_call"] = legacy_call(mapping(source.get("function_call")), piece.legacy)

    def _entry(self, source: Mapping[str, Json], events: Sequence[Event]) -> Json:
        first = next(event for event in events if isinstance(event, (Start, Delta, CallUpdate)))
        start = self._starts[first.block]
        items = dict(mappings(source.get("tool_calls")))
        return call_entry(items.get(first.item, {}), start, events, self._numbers[first.block])


def _is_told(event: Event) -> bool:
    """Return True if a chunk is written for an event that no candidate says."""
    if isinstance(event, StreamViolation):
        return event.kind not in REPEATED
    return isinstance(event, (Other, ReplyMeta, Usage, Failure))


def _dropped(events: Sequence[Event], out: Sequence[Event]) -> set[FaultKind]:
    """Return the kinds of violations by empty members that a rewriter has dropped."""
    kept = {event.kind for event in out if isinstance(event, StreamViolation)}
    return {event.kind for event in events if isinstance(event, StreamViolation)} & REPEATED - kept


def _index(choice: Mapping[str, Json], position: int) -> int:
    """Return the number of a candidate: its `index`, or its position in `choices` where that is no number."""
    index = number(choice.get("index"))
    return position if index is None else index


def _without_empty(choice: dict[str, Json], dropped: set[FaultKind]) -> dict[str, Json]:
    """Return a candidate of a whole body without empty members whose violation was dropped."""
    if "written-null" in dropped and stated_reason(choice.get("finish_reason")) is None:
        choice = {**choice, "finish_reason": None}
    call = mapping(mapping(choice.get("message")).get("function_call"))
    if "empty-call" in dropped and not (call.get("name") or call.get("arguments")):
        choice = {**choice, "message": {k: v for k, v in mapping(choice["message"]).items() if k != "function_call"}}
    return choice


def text_changed(before: Sequence[Event], after: Sequence[Event]) -> bool:
    return [id(event) for event in before if isinstance(event, Delta)] != [
        id(event) for event in after if isinstance(event, Delta)
    ]


class WholeWriter(_Writer):
    """The body of a completion, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if same(events, out):
            return frame.raw
        document = document_of(frame)
        if not document:
            return frame.raw
        self._alter(events, out)
        self._note(events)
        self._note(out)
        choices: list[Json] = []
        listed = document.get("choices")
        dropped = _dropped(events, out)
        for position, choice in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(choice, dict):
                choice = self._choice(_without_empty(choice, dropped), position, events, out)
            choices.append(choice)
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        changed: dict[str, Json] = {**document, "choices": choices}
        if head is not None and "id" in document:
            changed["id"] = head.id
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it

    def _choice(
        self, choice: dict[str, Json], position: int, events: Sequence[Event], out: Sequence[Event]
    ) -> dict[str, Json]:
        index = _index(choice, position)
        before = [event for event in events if self._choice_of(event) == index]
        after = [event for event in out if self._choice_of(event) == index]
        if same(before, after):
            return choice
        name = "delta" if mapping(choice.get("delta")) else "message"
        source = mapping(choice.get(name))
        message = dict(source)
        piece = Piece()
        for event in after:
            if isinstance(event, Finish):
                piece.reason = event.reason
            elif isinstance(event, (Start, Delta, CallUpdate)):
                put(piece, event, self._starts[event.block])
        self._text(message, source, piece, before)
        self._calls(message, source, piece, before)
        changed = {**choice, name: message}
        if piece.reason is not None:
            changed["finish_reason"] = piece.reason
        return changed

    def _text(
        self, message: dict[str, Json], source: Mapping[str, Json], piece: Piece, before: Sequence[Event]
    ) -> None:
        texts = [event for event in before if isinstance(event, Delta) and self._kind(event) == "text"]
        if text_of(texts) != text_of(piece.text):
            text = content(source.get("content"), piece.text)
            message["content"] = text or None
        thoughts = [event for event in before if isinstance(event, Delta) and self._kind(event) == "reasoning"]
        if text_of(thoughts) != text_of(piece.reasoning):
            for name in REASONING if thoughts else ():
                message.pop(name, None)
            message.pop("reasoning_details", None)
            if said := "".join(delta.text for delta in piece.reasoning):
                message[self._reasoning] = said
        refusals = [event for event in before if isinstance(event, Delta) and self._kind(event) == "refusal"]
        if not same(refusals, piece.refusal):
            message["refusal"] = "".join(delta.text for delta in piece.refusal) or None

    def _calls(
        self, message: dict[str, Json], source: Mapping[str, Json], piece: Piece, before: Sequence[Event]
    ) -> None:
        known = [event for event in before if self._kind(event) == "tool_call"]
        calls = [event for events in piece.calls.values() for event in events]
        if not same([event for event in known if self._starts[event.block].form != "legacy"], calls):  # type: ignore[union-attr]
            items = dict(mappings(source.get("tool_calls")))
            made: list[Json] = [
                call_entry(items.get(begun.item, {}), begun, events, None)
                for block, events in piece.calls.items()
                if (begun := self._starts[block])
            ]
            if made:
                message["tool_calls"] = made
            else:
                message.pop("tool_calls", None)
        legacy = [event for event in known if self._starts[event.block].form == "legacy"]  # type: ignore[union-attr]
        if not same(legacy, piece.legacy):
            if piece.legacy:
                message["function_call"] = legacy_call(mapping(source.get("function_call")), piece.legacy)
            else:
                message.pop("function_call", None)
