"""OpenAI Completions, written: events of a reply back to events of a stream, or to the body of a completion.

Theory of operation. A frame whose events came out as they went in is handed on as it is. Any other is made from its
document: the text, the reasoning and the finish reason of each candidate are those of the events, everything else stays.
The API has text and nothing else: an event that it has no form for raises, and the reply goes on as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirelint.apis.reading import DONE, mappings, number
from wirelint.apis.writing import document_of, dump, framed, groups, other_lines, same
from wirelint.events import (
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
from wirelint.model import Json, Kind

_TOLD = (ReplyMeta, Usage, Failure, Other)
_REASONING = ("reasoning", "reasoning_content")


class FormError(ValueError):
    """A change that the API has no form for."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f"a raw completion has no {kind}")


class _Writer:
    """Which block is what, and which candidate an event is of."""

    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._reasoning = "reasoning"

    def _note(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Start) and event.block not in self._starts:
                self._starts[event.block] = event
                name = event.pointer.rpartition("/")[2]
                self._reasoning = name if event.kind == "reasoning" and name in _REASONING else self._reasoning

    def _check(self, out: Sequence[Event]) -> None:
        for event in out:
            if isinstance(event, Start) and event.kind not in ("text", "reasoning"):
                raise FormError(event.kind)

    def _choice_of(self, event: Event) -> int | None:
        match event:
            case Start(choice=choice) | Finish(choice=choice):
                return choice
            case Delta(block=block) | CallUpdate(block=block) if block in self._starts:
                return self._starts[block].choice
            case _:
                return None

    def _row(self, choice: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event]) -> dict[str, Json]:
        """A candidate with what its events say in the place of what they said."""
        row = dict(choice)
        changed = self._said(before, "text") != self._said(after, "text")
        row["text"] = self._said(after, "text")
        if changed and row.get("logprobs") is not None:
            row["logprobs"] = None  # they are of other tokens
        thought = self._said(after, "reasoning")
        if self._said(before, "reasoning") != thought:
            for name in _REASONING:
                row.pop(name, None)
            if thought:
                row[self._reasoning] = thought
        stop = next((event for event in after if isinstance(event, Finish)), None)
        row["finish_reason"] = stop.reason if stop is not None else None
        return row

    def _said(self, events: Sequence[Event], kind: Kind) -> str:
        return "".join(
            event.text for event in events if isinstance(event, Delta) and self._starts[event.block].kind == kind
        )


class StreamWriter(_Writer):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Json] = {}

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        self._note(events)
        if same(events, out):
            self._remember(frame)
            return frame.raw
        self._check(out)
        self._note(out)
        made: list[bytes] = []
        seen = {id(event.frame) for event in out}
        for place, group in groups(frame, out):
            made += self._group(place, [event for event in events if event.frame is place], group)
        # Documents of which nothing came out: what stood in them beside the events is still to be told, save after the end.
        late = any(isinstance(event, StreamViolation) and event.kind == "after-end" for event in events)
        for event in () if late else events:
            if event.frame is not None and id(event.frame) not in seen:
                seen.add(id(event.frame))
                made += self._group(event.frame, [one for one in events if one.frame is event.frame], [])
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self._check(out)
        self._note(out)
        said = [event for event in out if isinstance(event, (Start, Delta, Finish))]
        made = list(self._chunk(self._last, [], said)) if said else []
        made += [framed(None, data=DONE) for event in out if isinstance(event, Done)]
        return b"".join(made)

    def _remember(self, frame: Frame) -> None:
        """Keeps what a chunk that is made here has to say beside its text."""
        if not self._last and frame.data is not None:
            self._last = {
                name: value for name, value in document_of(frame).items() if name not in ("choices", "usage", "error")
            }

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = document_of(frame)
        self._remember(frame)
        done = any(isinstance(event, Done) for event in out)
        said = [event for event in out if not isinstance(event, Done)]
        if document:
            yield from self._chunk(document, own, said)
        elif said and any(isinstance(event, (Start, Delta, Finish)) for event in said):
            yield from self._chunk(self._last, [], said)
        elif not done and any(isinstance(event, (Other, StreamViolation)) for event in out):
            yield frame.raw
        if done:
            yield framed(None, data=DONE)

    def _chunk(self, document: Mapping[str, Json], own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        changed = {**document, **({"id": head.id} if head is not None and "id" in document else {})}
        if not own:  # of a frame that is gone: what it said beside these events has been told
            changed.pop("usage", None)
        rows: list[Json] = []
        listed: set[int] = set()
        for position, choice in mappings(document.get("choices")):
            index = number(choice.get("index"))
            index = position if index is None else index
            listed.add(index)
            before = [event for event in own if self._choice_of(event) == index]
            after = [event for event in out if self._choice_of(event) == index]
            if after:
                rows.append(self._row(choice, before, after))
            elif own and not before:
                rows.append(choice)
        for index in sorted({c for e in out if (c := self._choice_of(e)) is not None} - listed):
            empty: dict[str, Json] = {"index": index, "text": "", "logprobs": None, "finish_reason": None}
            rows.append(self._row(empty, [], [event for event in out if self._choice_of(event) == index]))
        if rows or changed.get("usage") or any(isinstance(event, _TOLD) for event in out):
            yield framed({**changed, "choices": rows} if "choices" in document or rows else changed)


class WholeWriter(_Writer):
    """The body of a completion, patched."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        self._check(out)
        self._note(events)
        self._note(out)
        listed = document.get("choices")
        rows: list[Json] = []
        for position, choice in enumerate(listed if isinstance(listed, list) else []):
            rows.append(self._choice(choice, position, events, out) if isinstance(choice, dict) else choice)
        head = next((event for event in out if isinstance(event, ReplyMeta) and event.id is not None), None)
        changed: dict[str, Json] = {**document, "choices": rows}
        if head is not None and "id" in document:
            changed["id"] = head.id
        return dump(changed)

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it

    def _choice(
        self, choice: dict[str, Json], position: int, events: Sequence[Event], out: Sequence[Event]
    ) -> dict[str, Json]:
        index = number(choice.get("index"))
        index = position if index is None else index
        before = [event for event in events if self._choice_of(event) == index]
        after = [event for event in out if self._choice_of(event) == index]
        return choice if same(before, after) else self._row(choice, before, after)
