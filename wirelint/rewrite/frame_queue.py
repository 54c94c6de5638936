"""The frames of a reply that are not handed out yet, in wire order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wirelint.events import Event, Frame
from wirelint.wire import Framing


@dataclass(slots=True, eq=False)
class Waiting:
    """Frame that is not handed out yet. `out` is what has come out of the pipeline for it; `sent` bytes of it have left.

    `bare`: the frame is known to say one delta and nothing else, so without that delta nothing of it is left.
    """

    frame: Frame
    events: Sequence[Event]
    out: list[Event] = field(default_factory=list)
    sent: int = 0
    bare: bool = False


_FEW = 8
"""Events for which it takes longer to index the queue than to search it."""


def place(events: Sequence[Event], queue: Sequence[Waiting]) -> None:
    """Put events beside the frames that they belong to. Events of frames that have left go to the last frame.

    Thousands of frames may wait for the end of a call, and all of their events then arrive at once.
    """
    last = queue[-1]
    homes = {waiting.frame.number: waiting for waiting in queue} if len(events) > _FEW else None
    for event in events:
        number = event.frame.number if event.frame is not None else last.frame.number
        # What was read with the last frame stays there: an offence may point at a frame before it.
        if number == last.frame.number or any(event is one for one in last.events):
            last.out.append(event)
            continue
        if homes is not None:
            home = homes.get(number, last)
        else:
            home = next((waiting for waiting in queue if waiting.frame.number == number), last)
        home.out.insert(_place_in(home, event) if home.out else 0, event)


def _place_in(home: Waiting, event: Event) -> int:
    """Return the position of an event among others of its frame. Events that were read after it may precede it in
    `out`.
    """
    order = {id(one): number for number, one in enumerate(home.events)}
    own = order.get(id(event), len(order))
    return next((place for place, one in enumerate(home.out) if order.get(id(one), -1) > own), len(home.out))


def apart(events: Iterable[Event], queue: Sequence[Waiting]) -> tuple[list[Event], list[Event]]:
    """Return the events of waiting frames, and those of frames that have left. Events without a frame are in
    neither.
    """
    first = queue[0].frame.number if queue else None
    waiting: list[Event] = []
    gone: list[Event] = []
    for event in events:
        if event.frame is not None:
            (gone if first is None or event.frame.number < first else waiting).append(event)
    return waiting, gone


def missing_end(raw: bytes, framing: Framing) -> bytes:
    """Return the line ends that a stream lacks at its end (`event: pi`, `: bye`, `{"a":1}`) before another event may
    follow.
    """
    if not raw or framing not in ("events", "lines"):
        return b""
    if framing == "lines":
        return b"" if raw.endswith(b"\n") else b"\n"
    if raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
        return b""
    return b"\n" if raw.endswith((b"\n", b"\r")) else b"\n\n"
