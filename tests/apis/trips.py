"""Replies read, changed event by event, written, and read again: what a client then makes of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.apis.shape import Shape
from wirelint.apis import ApiSpec, by_name
from wirelint.apis.writing import MADE
from wirelint.events import CallUpdate, Close, Delta, Event, Finish, Fold, Frame, Start, StreamViolation
from wirelint.model import Kind, Part, Reasoning, Refusal, Reply, Text, ToolCall
from wirelint.wire import Sniffer

Change = Callable[[Sequence[Event]], Iterator[Event]]
"""Events of one frame in, events out. A new one is made for every reply, for it may remember."""


def the(name: str) -> ApiSpec:
    api = by_name(name)
    assert api is not None
    return api


def body_of(shape: Shape, form: str) -> bytes:
    given = json.dumps(shape.whole) if form == "whole" else shape.stream or ""
    return given if isinstance(given, bytes) else given.encode()


def raw(given: Any) -> bytes:
    """The bytes of a body: a document, or the text of a stream."""
    return (given if isinstance(given, str) else json.dumps(given)).encode()


def params(api: str, shapes: Mapping[str, Shape], *, sound: bool = False) -> list[Any]:
    """Every shape in every form that it has. `sound`: only those in which nothing is wrong with the stream."""
    return [
        pytest.param(api, shape, form, id=f"{api}-{name}-{form}")
        for name, shape in shapes.items()
        for form in ("whole", "stream")
        if getattr(shape, form) is not None and not (sound and shape.faults)
    ]


def frames_of(body: bytes) -> tuple[list[Frame], bool]:
    sniffer = Sniffer({})
    frames = [*sniffer.feed(body), *sniffer.close()]
    return frames, sniffer.streamed


def reply_of(api: str, body: bytes) -> Reply:
    frames, streamed = frames_of(body)
    reader, fold = the(api).reply_reader(streamed=streamed), Fold(streamed=streamed)
    for event in [event for frame in frames for event in reader.read(frame)] + reader.close():
        fold.push(event)
    return fold.reply()


def trip(api: str, body: bytes, change: Change) -> bytes:
    """The body that a reply becomes when its events are changed."""
    frames, streamed = frames_of(body)
    reader, writer = the(api).reply_reader(streamed=streamed), the(api).reply_writer(streamed=streamed)
    written = b""
    for frame in frames:
        events = reader.read(frame)
        written += writer.write(frame, events, list(change(events)))
    late = [
        event for event in change(reader.close()) if not isinstance(event, StreamViolation)
    ]  # their frames have left
    return written + writer.close(late)


def untouched(events: Sequence[Event]) -> Iterator[Event]:
    yield from events


def rebuilt(events: Sequence[Event]) -> Iterator[Event]:
    """Says the same in other events, so that everything has to be written anew."""
    yield from (event._replace() if isinstance(event, Start | Delta | Finish) else event for event in events)


def without(kind: Kind, first: int | None = None) -> Change:
    """Takes out the blocks of a kind, or only the first so many of them."""
    gone: set[int] = set()
    counted = itertools.count(1)

    def change(events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Start) and event.kind == kind and (first is None or next(counted) <= first):
                gone.add(event.block)
            if not (isinstance(event, Start | Delta | CallUpdate | Close) and event.block in gone):
                yield event

    return change


def reworded(kind: Kind, reword: Callable[[str], str]) -> Change:
    """Has each piece of the text of a kind say something else."""
    blocks: set[int] = set()

    def change(events: Sequence[Event]) -> Iterator[Event]:
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
    """Puts calls before the finish reason, and another reason in its place, as a rewriter does."""

    def change(events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if not isinstance(event, Finish):
                yield event
                continue
            for number, (name, arguments) in enumerate(calls, 1):
                block = MADE + number
                yield Start(block, "tool_call", "/made", 0, event.frame, None, f"call_{number}", name)
                yield Delta(block, arguments, event.frame)
                yield Close(block, event.frame)
            yield event._replace(reason=reason)

    return change


def thinking(said: str) -> Change:
    """Makes the first piece of text the reasoning that it was, and `said` the text after it."""
    moved: list[int] = []

    def change(events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Delta) and not moved:
                moved.append(event.block)
                yield Start(MADE + 9, "reasoning", "/made", 0, event.frame)
                yield Delta(MADE + 9, event.text, event.frame)
                yield Close(MADE + 9, event.frame)
                yield event._replace(text=said)
            elif not (isinstance(event, Delta) and event.block in moved):
                yield event

    return change


def said(reply: Reply) -> list[Any]:
    """What a reply says, part by part: kinds and words, then the finish reasons."""
    return [
        *(shown(part) for choice in reply.choices for part in choice.parts),
        *(c.finish_reason for c in reply.choices),
    ]


def shown(part: Part) -> tuple[str, str]:
    match part:
        case ToolCall():
            return "call", f"{part.name} {part.arguments.text}"
        case Text() | Refusal():
            return "text", part.text
        case Reasoning():
            return "reasoning", part.text
        case _:
            return type(part).__name__, part.pointer


def documents(words: Sequence[str], values: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Documents of an API's members, at any place and with anything in them."""
    scalars = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(values)
    anything = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=5),
        max_leaves=20,
    )
    return st.dictionaries(st.sampled_from(words), anything, max_size=6)


def survives(api: str, body: bytes) -> None:
    """Whatever the body: nothing fails, nothing is lost, and what is written anew can be read."""
    assert trip(api, body, untouched) == body
    changes = (rebuilt, calling(("go", "{}")), without("tool_call", 1), reworded("text", str.upper), thinking("!"))
    for change in changes:
        reply_of(api, trip(api, body, change))
