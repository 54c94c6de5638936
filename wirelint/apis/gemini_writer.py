r"""Gemini's writers, of streams and of whole bodies, and the conventions of its JSON that readers and writers share.

Members may be in camel case or in snake case. Code Assist (`v1internal:generateContent`) puts each body into another one;
errors have no wrapper. Source: the vendor's API reference (Part) and its Gemini CLI.

    {"response":{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}]},"traceId":"t"}

Theory of operation. A frame is forwarded unchanged if its events are unchanged. From any other frame the writer takes the
document and rebuilds the parts of each changed candidate. A part with unchanged events is kept, a part with other events
is built from them, and a part without events (a signature alone, an unknown kind) keeps its place:

    {"parts":[{"text":"Hello","thoughtSignature":"c2ln"},{"functionCall":{"name":"look","args":{}}}]}

All other members of the document are kept. A call is one part. If a rewriter sends the arguments in pieces, the call is
written when they are complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from wirelint.apis.reading import ReplyWriter, index_of
from wirelint.apis.writing import (
    MADE,
    BodyWriter,
    dump,
    frame_document,
    groups,
    reply_id_of,
    same,
    set_or_drop,
    with_other_lines,
    without_violations,
)
from wirelint.events import Close, Delta, Done, Event, Finish, Frame, Start, Usage
from wirelint.jsonvalues import mapping, mappings, text
from wirelint.model import Arguments, Json


@lru_cache(maxsize=256)
def camel(name: str) -> str:
    """Return a name in camel case.

    >>> camel("max_items")
    'maxItems'
    """
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others) if first and others else name


@lru_cache(maxsize=256)
def snake(name: str) -> str:
    """Return a name in snake case.

    >>> snake("maxItems")
    'max_items'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def member(body: Mapping[str, Json], name: str) -> tuple[str, Json]:
    """Return the spelling and the value of a member in either spelling. `name` is in camel case."""
    if name in body:
        return name, body[name]
    other = snake(name)
    return (other, body[other]) if other in body else (name, None)


def value_of(body: Mapping[str, Json], name: str) -> Json:
    return member(body, name)[1]


def several(value: Json, place: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the objects of an array with their pointers. An object alone counts as an array of one."""
    if isinstance(value, dict):
        yield place, value
    for n, item in mappings(value):
        yield f"{place}/{n}", item


_KINDS = (
    *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
_BESIDE = frozenset({"thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata"})


def kind_of(part: Mapping[str, Json]) -> tuple[str, str, Json]:
    """Return the kind of a part, and the spelling and the value of the member that names it.

    A part with a signature alone is a text without words.
    """
    for kind in _KINDS:
        name, value = member(part, kind)
        if value is not None:
            return kind, name, value
    for name, value in part.items():
        if name not in _BESIDE and value is not None:
            return name, name, value
    return ("text", "text", "") if value_of(part, "thoughtSignature") else ("", "", None)


# --- the wrapper of Code Assist ---------------------------------------------------------------------------------------

REPLY = "/response"
MEMBERS = frozenset({"candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata"})
"""The members that only a reply has."""


def unwrapped(document: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """Return the reply in a document, and its pointer; the document itself and an empty pointer without a wrapper."""
    inner = document.get("response")
    if isinstance(inner, dict) and "candidates" not in document and not MEMBERS.isdisjoint(inner):
        return inner, REPLY
    return document, ""


_TEXTS = ("text", "reasoning", "refusal")
_SIGNED = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that refuse a history in which a call lacks its signature."""
_NO_SIGNATURE = "skip_thought_signature_validator"
"""The vendor's signature for calls that the model did not make (Thought signatures, FAQ)."""
_PARTIAL = ("partialArgs", "partial_args", "willContinue", "will_continue")

# --- parts of one candidate -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Call:
    """A call that is not written yet. `source`: the part that it was read from."""

    start: Start
    source: Mapping[str, Json]
    texts: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> Json:
        words = "".join(self.texts)
        return Arguments(words).mapping if words else self.start.input

    def part(self) -> dict[str, Json]:
        """Return the part of the whole call. Raise ValueError for arguments that the API cannot express."""
        name = next((one for one in ("functionCall", "function_call") if mapping(self.source.get(one))), "functionCall")
        arguments = self.arguments
        if arguments is None and any(self.texts):
            raise ValueError("arguments that are no object cannot be sent to a client of this API")
        call = {key: value for key, value in mapping(self.source.get(name)).items() if key not in _PARTIAL}
        call |= {key: value for key, value in (("id", self.start.id), ("name", self.start.name)) if value is not None}
        call["args"] = {} if arguments is None else arguments
        return {name: call, **{key: value for key, value in self.source.items() if key != name}}


def _joined(events: Sequence[Event]) -> list[Event]:
    """Return the events with usage first, and with neighbouring texts of a block joined."""
    made: list[Event] = []
    for event in sorted(events, key=lambda one: not isinstance(one, Usage)):
        last = made[-1] if made else None
        if isinstance(event, Delta):
            event = event._replace(item=-1)
            if isinstance(last, Delta) and last.block == event.block and last.frame is event.frame:
                made[-1] = last._replace(text=last.text + event.text)
                continue
        made.append(event)
    return made


class _Parts:
    """Builder of the parts of one candidate in one document."""

    def __init__(self, writer: _Writer, source: Sequence[Json], before: Sequence[Event], model: str) -> None:
        self._writer, self._source, self._model = writer, source, model
        self._before: dict[int, list[Event]] = {}
        self._item_of: dict[int, int] = {}
        for event in before:
            if isinstance(event, (Start, Delta)) and event.item >= 0:
                self._before.setdefault(event.item, []).append(event)
                self._item_of.setdefault(event.block, event.item)
        self._made: list[Json] = []
        self._used: set[int] = set()
        self._coming: set[int] = set()
        self._text: tuple[int, int] | None = None
        """Block and item of the last part, if it is a text."""

    def build(self, after: Sequence[Event], *, last: bool) -> list[Json]:
        """Return the parts for these events. `last`: no later document can complete a call."""
        now: dict[int, list[Event]] = {}
        for event in after:
            if isinstance(event, (Start, Delta)):
                now.setdefault(self._item(event), []).append(event)
        self._coming = now.keys() & self._before.keys()
        kept = {item for item, events in self._before.items() if self._writer.is_unchanged(events, now.get(item, []))}
        for event in after:
            match event:
                case Start() | Delta():
                    self._finish_all(event.block)
                    item = self._item(event)
                    if item not in kept:
                        self._write(event, item)
                        continue
                    if type(event) is Start and event.kind == "tool_call":
                        self._writer.forwarded.add(event.block)
                    if item not in self._used:
                        self._add_silent(item)
                        self._used.add(item)
                        self._add(self._source[item])
                case Close(block=block) if block in self._writer.pending:
                    self._add(self._writer.pending.pop(block).part())
        self._finish_all(None, last=last)
        self._add_silent(len(self._source))
        return self._made

    def _item(self, event: Start | Delta) -> int:
        """Return the part that an event was read from, or that it replaces."""
        return event.item if event.item >= 0 else self._item_of.get(event.block, -1)

    def _add(self, part: Json) -> None:
        self._made.append(part)
        self._text = None

    def _add_silent(self, until: int) -> None:
        """Add parts before `until` that have no events, and the signatures of removed texts."""
        for item in range(until):
            if item in self._used or item in self._coming:
                continue
            self._used.add(item)
            part = self._source[item]
            if item not in self._before:
                self._add(part)
            elif isinstance(part, dict) and kind_of(part)[0] == "text" and value_of(part, "thoughtSignature"):
                self._add({**part, "text": ""})

    def _take(self, item: int) -> Mapping[str, Json]:
        """Return the part of the source that the next part is made from."""
        if item < 0 or item >= len(self._source) or item in self._used:
            return {}
        self._add_silent(item)
        self._used.add(item)
        self._coming.discard(item)
        return mapping(self._source[item])

    def _write(self, event: Start | Delta, item: int) -> None:
        start = event if isinstance(event, Start) else self._writer.starts[event.block]
        if start.kind == "tool_call":
            self._call(event, item)
        elif start.kind not in _TEXTS or start.form == "opaque":
            if item >= 0 and isinstance(event, Start) and (part := self._take(item)):
                self._add(dict(part))
        elif isinstance(event, Delta) and event.text:
            self._write_text(event, start, item)

    def _write_text(self, delta: Delta, start: Start, item: int) -> None:
        last = self._made[-1] if self._made else None
        continues = self._text is not None and self._text[0] == delta.block and item in (-1, self._text[1])
        if continues and isinstance(last, dict):
            last["text"] = f"{last['text']}{delta.text}"
            return
        part: dict[str, Json] = {**self._take(item), "text": delta.text}
        part.pop("thought", None)
        if start.kind == "reasoning":
            part["thought"] = True
        self._made.append(part)
        self._text = (delta.block, item)

    def _call(self, event: Start | Delta, item: int) -> None:
        pending = self._writer.pending
        if isinstance(event, Start):
            source = self._take(item)
            if event.block >= MADE and not self._has_call() and _SIGNED.search(self._model):
                source = {"thoughtSignature": _NO_SIGNATURE}
            pending[event.block] = _Call(event, source)
            self._text = None
            return
        call = pending.get(event.block)
        if call is None:
            if event.block in self._writer.forwarded:
                raise ValueError("a call that has left in part cannot be changed")
            return
        call.texts.append(event.text)
        if item >= 0:
            self._used.add(item)

    def _has_call(self) -> bool:
        """Return True if there is a call already: the first one of a turn has the signature."""
        calls = [part for part in self._made if isinstance(part, dict) and kind_of(part)[0] == "functionCall"]
        return bool(calls) or any(block >= MADE for block in self._writer.pending)

    def _finish_all(self, but: int | None, *, last: bool = False) -> None:
        """Write the complete calls. The call `but` may still get more arguments."""
        pending = self._writer.pending
        for block in [
            block for block, call in pending.items() if block != but and (last or call.arguments is not None)
        ]:
            self._add(pending.pop(block).part())


class _Writer:
    def __init__(self) -> None:
        self.starts: dict[int, Start] = {}
        self.pending: dict[int, _Call] = {}
        """Calls that are not complete yet."""
        self.forwarded: set[int] = set()
        """Calls whose first part was forwarded unchanged."""

    def note(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        for event in (*events, *out):
            if type(event) is Start:
                self.starts.setdefault(event.block, event)

    def is_unchanged(self, events: Sequence[Event], out: Sequence[Event]) -> bool:
        """Return True if the content is equal, apart from the splitting of texts and the place of the usage.

        Events of a pending call are a change.
        """
        if any(isinstance(event, (Delta, Close)) and event.block in self.pending for event in out):
            return False
        return same(events, out) or _joined(events) == _joined(out)

    def _choice_of(self, event: Event) -> int | None:
        """Return the candidate of an event; None without one, and for a refused prompt, which is outside of them."""
        start = event if isinstance(event, (Start, Finish)) else self.starts.get(getattr(event, "block", -1))
        return None if start is None or start.pointer.removeprefix(REPLY).startswith("/prompt") else start.choice

    def _patched(
        self, document: Mapping[str, Json], own: Sequence[Event], out: Sequence[Event], *, last: bool
    ) -> dict[str, Json]:
        """Return the document with `own` replaced by `out`. `last`: no later document can complete a call."""
        inner, place = unwrapped(dict(document))
        if place:
            return {**document, "response": self._patched(inner, own, out, last=last)}
        made = dict(document)
        if (id_ := reply_id_of(out)) is not None and (name := member(document, "responseId")[0]) in document:
            made[name] = id_
        listed = document.get("candidates")
        rows: list[Json] = list(listed) if isinstance(listed, list) else []
        known = {index_of(row, position) for position, row in mappings(rows)}
        new = {choice for event in out if (choice := self._choice_of(event)) is not None} - known
        rows += [{"content": {"role": "model"}, "index": choice} for choice in sorted(new)]
        for position, row in mappings(rows):
            choice = index_of(row, position)
            before, after = ([event for event in some if self._choice_of(event) == choice] for some in (own, out))
            waiting = last and any(call.start.choice == choice for call in self.pending.values())
            if waiting or not self.is_unchanged(before, after):
                model = text(value_of(made, "modelVersion")) or ""
                rows[position] = self._candidate(row, model, before, after, last=last)
        if rows or "candidates" in document:
            made["candidates"] = rows
        return made

    def _candidate(
        self, row: dict[str, Json], model: str, before: Sequence[Event], after: Sequence[Event], *, last: bool
    ) -> dict[str, Json]:
        content = mapping(row.get("content"))
        listed = content.get("parts")
        source: list[Json] = listed if isinstance(listed, list) else [listed] if isinstance(listed, dict) else []
        rebuilt = dict(content)
        set_or_drop(rebuilt, "parts", _Parts(self, source, before, model).build(after, last=last))
        changed: dict[str, Json] = {**row, "content": {**rebuilt, "role": rebuilt.get("role", "model")}}
        name, _ = member(row, "finishReason")
        stops = [event for event in after if isinstance(event, Finish)]
        if stops and not any(stops[-1] is event for event in before):
            changed[name] = stops[-1].reason
        elif not stops and any(isinstance(event, Finish) for event in before):
            changed.pop(name, None)
        return changed


class StreamWriter(_Writer, ReplyWriter):
    """Writer of server-sent events or of the elements of an array, as the first frame is."""

    def __init__(self) -> None:
        super().__init__()
        self._array: bool | None = None
        self._begun = self._ended = False
        self._line_end = b"\r\n"
        self._last: dict[str, Json] = {}
        """Members of a reply beside its candidates, for replies that the upstream did not send."""
        self._wrapped = False

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if self._array is None:
            self._array = frame.raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        self._begun = self._begun or self._array
        self._ended = self._ended or any(isinstance(event, Done) for event in events)
        self.note(events, out)
        if self.is_unchanged(events, out):
            self._forward(out)
            self._remember(frame)
            return frame.raw
        if self._array:  # an element holds one document
            return b"".join(self._group(frame, events, out))
        made = [part for each in groups(frame, events, out) for part in self._group(*each)]
        return with_other_lines(frame, made)

    def close(self, out: Sequence[Event]) -> bytes:
        self.note((), out)
        made = [] if self._ended else list(self._new(out, last=True))
        if self._array and not self._ended and any(isinstance(event, Done) for event in out):
            self._ended = True
            made.append(b"\n]")
        return b"".join(made)

    def _forward(self, events: Sequence[Event]) -> None:
        self.forwarded.update(event.block for event in events if type(event) is Start and event.kind == "tool_call")

    def _remember(self, frame: Frame) -> None:
        if self._last and not self.pending:
            return
        document, place = unwrapped(frame_document(frame))
        if document:
            self._wrapped = self._wrapped or bool(place)
            names = {member(document, name)[0] for name in ("modelVersion", "responseId", "createTime")}
            self._last = {name: value for name, value in document.items() if name in names} or self._last
            self._line_end = b"\r\n" if frame.raw.endswith(b"\r\n\r\n") else b"\n"

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = frame_document(frame)
        if not document:
            yield from self._new(out, last=bool(self._array) and self._ended)
            if frame.raw and _stays(out):
                yield frame.raw
            return
        self._remember(frame)
        if self.is_unchanged(without_violations(own), without_violations(out)):
            self._forward(out)
            data = (frame.data or "").encode()
        else:
            last = any(isinstance(event, (Finish, Done)) for event in out)
            data = dump(self._patched(document, own, out, last=last))
        yield frame.raw[: frame.raw.index(b"{")] + data if self._array else self._framed(data)

    def _new(self, out: Sequence[Event], *, last: bool) -> Iterator[bytes]:
        """Yield a reply for events without a document."""
        made = self._patched(self._last, (), out, last=last)
        if not made.get("candidates"):
            return
        made = {"response": made} if self._wrapped else made
        if self._array:
            yield (b",\n" if self._begun else b"[") + dump(made)
            self._begun = True
        else:
            yield self._framed(dump(made))

    def _framed(self, data: bytes) -> bytes:
        lines = (b"data: " + line for line in data.split(b"\n"))
        return self._line_end.join(lines) + 2 * self._line_end


class WholeWriter(BodyWriter, _Writer):
    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        return frame.raw if self.is_unchanged(events, out) else super().write(frame, events, out)

    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        self.note(events, out)
        return self._patched(document, events, out, last=True)


def _stays(out: Sequence[Event]) -> bool:
    """Return True if a frame without a document still has a closing bracket, a comment or a violation in `out`."""
    return any(not isinstance(event, (Start, Delta, Close, Finish)) for event in out)
