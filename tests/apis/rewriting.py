"""A reply read, changed event by event and written again: what the tests of writers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wirelint.apis import ApiSpec, by_name
from wirelint.events import Delta, Event, Start
from wirelint.wire import Sniffer

Change = Callable[[Event], Iterable[Event]]
BLOCK = (1 << 32) + 1


def the(name: str) -> ApiSpec:
    api = by_name(name)
    assert api is not None
    return api


def rewrite(api: str, body: bytes, change: Change) -> bytes:
    """The body with each event in the place of which `change` gives others."""
    sniffer = Sniffer({})
    frames = [*sniffer.feed(body), *sniffer.close()]
    reader = the(api).reply_reader(streamed=sniffer.streamed)
    writer = the(api).reply_writer(streamed=sniffer.streamed)
    made = b""
    for frame in frames:
        events = reader.read(frame)
        made += writer.write(frame, events, [other for event in events for other in change(event)])
    return made + writer.close([other for event in reader.close() for other in change(event)])


def unchanged(event: Event) -> Iterable[Event]:
    return [event]


def instead(text: str, other: str) -> Change:
    """Says something else where a delta says `text`; an empty one is left out."""

    def change(event: Event) -> Iterable[Event]:
        if not isinstance(event, Delta) or event.text != text:
            return [event]
        return [event._replace(text=other)] if other else []

    return change


def without(block: int) -> Change:
    """Takes a block out."""
    return lambda event: [] if getattr(event, "block", None) == block else [event]


def renamed(block: int, **names: str) -> Change:
    """Gives a call another id or name."""
    return lambda event: [event._replace(**names)] if isinstance(event, Start) and event.block == block else [event]  # type: ignore[arg-type]
