"""Replies read, changed event by event, written, and read again: the tools of the tests of all APIs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.build import some
from wirelint.apis import ApiSpec, by_name
from wirelint.apis.writing import MADE
from wirelint.events import CallUpdate, Close, Delta, Event, Finish, Fold, Frame, ReplyMeta, Start, StreamViolation
from wirelint.model import (
    HostedCall,
    HostedResult,
    Kind,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Rpc,
    Text,
    ToolCall,
    ToolResult,
)
from wirelint.wire import Sniffer

ITEMS: dict[str, Any] = json.loads(
    Path(__file__).with_name("shapes").joinpath("items.json").read_text(encoding="utf-8")
)
"""Events of Claude on Bedrock, and a message of Responses with a citation."""


@dataclass(frozen=True)
class Shape:
    """A reply in one of the forms that an API sends, and what a client reads in it.

    A whole body, a stream, or both, which must read alike. `parts` lists (kind, words) for each candidate. The words of a
    call are its name and arguments, those of a hosted call its name.
    """

    parts: Sequence[Sequence[tuple[str, str]]] = ()
    finish: Sequence[str | None] = ()
    whole: Any = None
    stream: str | bytes | None = None
    error: bool = False
    usage: Mapping[str, Any] | None = None
    faults: Sequence[str] = ()
    terminated: bool = True
    id: str | None = None


def the(name: str) -> ApiSpec:
    return some(by_name(name))


def raw(given: Any) -> bytes:
    """Return the bytes of a body: a document, or the text or the bytes of a stream."""
    if isinstance(given, bytes):
        pytest.importorskip("botocore", reason="event streams of AWS need a decoder")
        return given
    return (given if isinstance(given, str) else json.dumps(given)).encode()


def body_of(shape: Shape, form: str) -> bytes:
    return raw(getattr(shape, form))


def bodies(shapes: Mapping[str, Mapping[str, Shape]], *, sound: bool = False) -> list[Any]:
    """Return (API, shape, form) for each shape in each form that it has. `sound`: without errors and violations."""
    return [
        pytest.param(api, shape, form, id=f"{api}-{name}-{form}")
        for api, named in shapes.items()
        for name, shape in named.items()
        for form in ("whole", "stream")
        if getattr(shape, form) is not None and not (sound and (shape.faults or shape.error))
    ]


def frames_of(pieces: Iterable[bytes]) -> tuple[list[Frame], bool]:
    sniffer = Sniffer({})
    return [frame for piece in pieces for frame in sniffer.feed(piece)] + sniffer.close(), sniffer.streamed


def folded(events: Iterable[Event], streamed: bool) -> Reply:
    fold = Fold(streamed=streamed)
    for event in events:
        fold.push(event)
    return fold.reply()


def understood(api: str, *pieces: bytes) -> tuple[list[Frame], list[Event], Reply | None]:
    """Return the frames of a body, their events, and the reply."""
    frames, streamed = frames_of(pieces)
    if not frames:
        return [], [], None
    reader = the(api).reply_reader(streamed=streamed)
    events = [event for frame in frames for event in reader.read(frame)] + reader.close()
    return frames, events, folded(events, streamed)


def reply_of(api: str, body: bytes) -> Reply:
    return some(understood(api, body)[2])


def facts(reply: Reply | None) -> Any:
    """Return a reply as a value that can be compared."""
    return reply and tuple(getattr(reply, name) for name in Reply.__dataclass_fields__)


def shown(part: Part) -> tuple[str, str]:
    match part:
        case Text(text):
            return "text", text
        case Reasoning(text, opaque=opaque):
            return ("sealed" if opaque else "reasoning"), text
        case Refusal(text):
            return "refusal", text
        case ToolCall():
            return "call", f"{part.name} {part.arguments.text}"
        case HostedCall():
            return "hosted", part.name or ""
        case HostedResult():
            return "hosted", part.kind
        case Rpc():
            return "rpc", f"{part.form} {part.method}"
        case Opaque():
            return "opaque", part.kind
        case ToolResult():
            return "result", part.text


def essence(reply: Reply) -> list[list[tuple[str, str]]]:
    return [[shown(part) for part in choice.parts] for choice in reply.choices]


# --- changes ----------------------------------------------------------------------------------------------------------

Change = Callable[[Sequence[Event]], Iterable[Event]]
"""The events of one frame in, events out. Tests make a new one for each reply, since it may have a state."""


def rewritten(api: str, body: bytes, change: Change) -> tuple[bytes, Reply]:
    """Return the bytes that a reply becomes when its events are changed, and the reply that the new events amount to."""
    frames, streamed = frames_of([body])
    reader, writer = the(api).reply_reader(streamed=streamed), the(api).reply_writer(streamed=streamed)
    written, after = b"", list[Event]()
    for frame in frames:
        events = reader.read(frame)
        out = list(change(events))
        after += out
        written += writer.write(frame, events, out)
    # The frames of late violations have left.
    late = [event for event in change(reader.close()) if not isinstance(event, StreamViolation)]
    return written + writer.close(late), folded([*after, *late], streamed)


def rewrite(api: str, body: Any, change: Change) -> bytes:
    return rewritten(api, raw(body), change)[0]


def untouched(events: Sequence[Event]) -> Iterable[Event]:
    return list(events)


def rebuilt(events: Sequence[Event]) -> Iterable[Event]:
    """Replace events by equal ones, so that everything is written anew."""
    return [event._replace() if isinstance(event, Start | Delta | Finish) else event for event in events]


def without(kind: Kind, first: int | None = None) -> Change:
    """Remove all blocks of one kind, or only the first ones."""
    gone: set[int] = set()
    counted = itertools.count(1)

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for event in events:
            if isinstance(event, Start) and event.kind == kind and (first is None or next(counted) <= first):
                gone.add(event.block)
            if not (isinstance(event, Start | Delta | CallUpdate | Close) and event.block in gone):
                yield event

    return change


def reworded(kind: Kind, reword: Callable[[str], str]) -> Change:
    """Replace the text of every delta in blocks of one kind. Deltas that become empty are dropped."""
    blocks: set[int] = set()

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for event in events:
            if isinstance(event, Start) and event.kind == kind:
                blocks.add(event.block)
            if isinstance(event, Delta) and event.block in blocks:
                if text := reword(event.text):
                    yield event._replace(text=text)
            else:
                yield event

    return change


def calling(*calls: tuple[str, str], reason: str = "tool_calls") -> Change:
    """Insert calls before the finish reason of the first candidate, and replace that reason."""

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for event in events:
            if not isinstance(event, Finish) or event.choice:
                yield event
                continue
            for number, (name, arguments) in enumerate(calls, 1):
                block = MADE + number
                yield Start(block, "tool_call", "/made", 0, event.frame, None, f"made_{number}", name)
                yield Delta(block, arguments, event.frame)
                yield Close(block, event.frame)
            yield event._replace(reason=reason)

    return change


def thinking(said: str) -> Change:
    """Turn the first piece of text into reasoning, and replace the text behind it by `said`."""
    moved: list[int] = []
    blocks: set[int] = set()

    def change(events: Sequence[Event]) -> Iterable[Event]:
        for event in events:
            if isinstance(event, Start) and event.kind == "text" and not moved:
                blocks.add(event.block)
            if isinstance(event, Delta) and event.block in blocks and not moved:
                moved.append(event.block)
                yield Start(MADE + 9, "reasoning", "/made", 0, event.frame)
                yield Delta(MADE + 9, event.text, event.frame)
                yield Close(MADE + 9, event.frame)
                yield event._replace(text=said)
            elif not (isinstance(event, Delta) and event.block in moved):
                yield event

    return change


def relabelled(id_: str, name: str) -> Change:
    """Give each call another id and name."""
    return lambda events: [
        event._replace(id=id_, name=name) if isinstance(event, Start) and event.kind == "tool_call" else event
        for event in events
    ]


def stopped(reason: str) -> Change:
    return lambda events: [event._replace(reason=reason) if isinstance(event, Finish) else event for event in events]


def identified(id_: str) -> Change:
    """Give the reply another id."""
    return lambda events: [
        event._replace(id=id_) if isinstance(event, ReplyMeta) and event.id else event for event in events
    ]
