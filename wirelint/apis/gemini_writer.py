"""Gemini's replies, written: events back to the parts of a content, in a stream of replies or in a whole one.

Theory of operation. A frame whose events came out as they went in is handed on as it is. Of any other the document is
taken, and in each candidate that has changed the parts are put together anew: a part of which all events came out stays as
it stands, one of which other events came out is made from them, and what no event stands for (text without words,
signatures, parts that nobody knows) keeps its place. Everything else of the document stays.

A call is one part. Should its arguments come in pieces from a rewriter, it is written once they are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.gemini_parts import Calls, Parts, alike
from wirelint.apis.gemini_schema import member, value_of
from wirelint.apis.gemini_wrapper import REPLY, unwrapped
from wirelint.apis.reading import mapping, mappings, number, text
from wirelint.apis.writing import document_of, dump, groups, other_lines, spoken
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, ReplyMeta, Start
from wirelint.model import Json


class _Writer:
    """What streams and whole bodies have in common: a document and the events that it is to say."""

    def __init__(self) -> None:
        self._calls = Calls()

    def _choice_of(self, event: Event) -> int | None:
        match event:
            case Start(choice=choice) | Finish(choice=choice):
                return choice
            case Delta(block=block) | CallUpdate(block=block) | Close(block=block):
                start = self._calls.starts.get(block)
                return start.choice if start is not None else None
            case _:
                return None

    def _patch(
        self, document: Mapping[str, Json], own: Sequence[Event], out: Sequence[Event], *, last: bool
    ) -> dict[str, Json]:
        """The document, saying `out` in the place of `own`. `last`: nothing comes that could complete a call."""
        inner, place = unwrapped(dict(document))
        if place:
            return {**document, "response": self._patch(inner, own, out, last=last)}
        made = dict(document)
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        if head is not None and (name := member(document, "responseId")[0]) in document:
            made[name] = head.id
        listed = document.get("candidates")
        rows: list[Json] = list(listed) if isinstance(listed, list) else []
        known: set[int] = set()
        for position, row in mappings(listed):
            index = number(row.get("index"))
            choice = position if index is None else index
            known.add(choice)
            rows[position] = self._candidate(row, choice, made, own, out, last=last)
        for choice in sorted({c for event in out if (c := self._choice_of(event)) is not None} - known):
            row = {"content": {"role": "model"}, "index": choice}
            changed = self._candidate(row, choice, made, (), out, last=last)
            if changed is not row:
                rows.append(changed)
        if rows or "candidates" in document:
            made["candidates"] = rows
        return made

    def _candidate(
        self,
        row: dict[str, Json],
        choice: int,
        document: Mapping[str, Json],
        own: Sequence[Event],
        out: Sequence[Event],
        *,
        last: bool,
    ) -> dict[str, Json]:
        before = [event for event in own if self._choice_of(event) == choice and not self._is_aside(event)]
        after = [event for event in out if self._choice_of(event) == choice and not self._is_aside(event)]
        waiting = last and any(call.start.choice == choice for call in self._calls.pending.values())
        if alike(before, after) and not waiting and not self._calls.absorb(after):
            return row
        content = mapping(row.get("content"))
        listed = content.get("parts")
        source: list[Json] = listed if isinstance(listed, list) else [listed] if isinstance(listed, dict) else []
        parts = Parts(self._calls, source, before, text(value_of(document, "modelVersion")) or "")
        made = parts.put(after, last=last)
        said: dict[str, Json] = {**content, "parts": made}
        if not made:
            said.pop("parts")
        changed: dict[str, Json] = {**row, "content": {**said, "role": said.get("role", "model")}}
        name, _ = member(row, "finishReason")
        stops = [event for event in after if isinstance(event, Finish)]
        if stops and not any(stops[-1] is event for event in before):
            changed[name] = stops[-1].reason
        elif not stops and any(isinstance(event, Finish) for event in before):
            changed.pop(name, None)
        return changed

    def _is_aside(self, event: Event) -> bool:
        """Return True if an event is about a prompt that was refused, which no candidate says."""
        start = event if isinstance(event, (Start, Finish)) else self._calls.starts.get(getattr(event, "block", -1))
        return start is not None and start.pointer.removeprefix(REPLY).startswith("/prompt")


class StreamWriter(_Writer):
    """Server-sent events, or the elements of an array; which of them the first frame shows."""

    def __init__(self) -> None:
        super().__init__()
        self._array: bool | None = None
        self._begun = self._ended = False
        self._line_end = b"\r\n"
        self._last: dict[str, Json] = {}
        self._wrapped = False

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        if self._array is None:
            self._array = frame.raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        self._begun = self._begun or self._array
        self._ended = self._ended or any(isinstance(event, Done) for event in events)
        self._calls.note(events)
        self._calls.note(out)
        if alike(events, out) and not self._calls.absorb(out):
            self._calls.pass_by(out)
            self._remember(frame)
            return frame.raw
        if self._array:
            return self._element(frame, events, out)
        made: list[bytes] = []
        for place, group in groups(frame, out):
            made += self._group(place, [event for event in events if event.frame is place], group)
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._calls.note(out)
        made = [] if self._ended else list(self._new(out, last=True))
        if self._array and not self._ended and any(isinstance(event, Done) for event in out):
            self._ended = True
            made.append(b"\n]")
        return b"".join(made)

    def _remember(self, frame: Frame) -> None:
        """Keeps how the stream ends its lines, and what a reply of it has beside candidates."""
        if self._last and not self._calls.pending:
            return
        document, place = unwrapped(document_of(frame))
        if document:
            self._wrapped = self._wrapped or bool(place)
            names = {member(document, name)[0] for name in ("modelVersion", "responseId", "createTime")}
            self._last = {name: value for name, value in document.items() if name in names} or self._last
            self._line_end = b"\r\n" if frame.raw.endswith(b"\r\n\r\n") else b"\n"

    def _element(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        self._remember(frame)
        if not document:
            return b"".join(self._new(out, last=self._ended)) + (frame.raw if _stays(out) else b"")
        changed = self._patch(document, own, out, last=_is_last(out))
        return frame.raw[: frame.raw.index(b"{")] + dump(changed)

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        if not document:
            yield from self._new(out, last=False)
            if frame.raw and _stays(out):
                yield frame.raw
            return
        self._remember(frame)
        if alike(spoken(own), spoken(out)) and not self._calls.absorb(out):
            self._calls.pass_by(out)
            yield self._framed((frame.data or "").encode())
        else:
            yield self._framed(dump(self._patch(document, own, out, last=_is_last(out))))

    def _new(self, out: Sequence[Event], *, last: bool) -> Iterator[bytes]:
        """A reply of its own for what no document is there for."""
        made = self._patch(self._last, (), out, last=last)
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


class WholeWriter(_Writer):
    """The body of a reply, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if alike(events, out) or not document:
            return frame.raw
        self._calls.note(events)
        self._calls.note(out)
        return dump(self._patch(document, events, out, last=True))

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it


def _stays(out: Sequence[Event]) -> bool:
    """Return True if a frame without a document is not dropped: its closing bracket, comment or offence came out."""
    return any(not isinstance(event, (Start, Delta, CallUpdate, Close, Finish)) for event in out)


def _is_last(out: Sequence[Event]) -> bool:
    return any(isinstance(event, (Finish, Done)) for event in out)
