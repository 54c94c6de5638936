"""Calls of a reply under other ids than they came with.

Theory of operation. An id is judged together with the name of its call; where one of both is missing, the call waits for it
until its arguments begin. Servers that repeat the id with every event do so in the frames of the arguments, so these are
written anew too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

import orjson

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Event, Frame, Start
from wirelint.fix import AppliedFix, RewriteContext
from wirelint.fixes.names import may_repeat, settles
from wirelint.model import Json

# A call that a repair makes, as the events that the API of the reply has for it.


def make_call(
    context: RewriteContext,
    choice: int,
    name: str | None,
    id_: str | None,
    arguments: dict[str, Json],
    frame: Frame | None,
    pointer: str | None = None,
) -> Iterator[Event]:
    """The events of a whole call. `pointer`: its place, where it is not simply behind the others of its candidate."""
    own = traits(context.exchange.api)
    block = context.new_block()
    place = (own.calls_at or "").format(choice) if pointer is None else pointer
    held = own.start_holds_arguments(streamed=context.streamed)
    given: Json = arguments if held else {} if own.arguments == "block" else None
    yield Start(block, "tool_call", place, choice, frame, None, id_, name, given)
    if not held:
        yield Delta(block, write_arguments(arguments), frame)
    yield Close(block, frame)


def write_arguments(arguments: dict[str, Json]) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):  # integers of more than 64 bits, lone surrogates
        return json.dumps(arguments)


Choose = Callable[[Start, str | None, str | None], "tuple[str, AppliedFix] | None"]
"""The new id of a call, by its start, its id and its name, with the record of the change; None: it keeps its own."""

_MOST_WAITING = 256


class NewIds:
    """Gives calls the ids that a rule chooses. It asks in the order in which the calls begin, for every call.

    It comes after the repairs of names, since an id may hold the name.
    """

    phase: ClassVar[int] = 3
    heeds_text: ClassVar[bool] = False

    def __init__(self, context: RewriteContext, choose: Choose) -> None:
        self._situation = context
        self._choose = choose
        self._held: list[Event] = []
        self._renamed: dict[int, str] = {}

    @property
    def held(self) -> int | None:
        return self._held[0].frame.number if self._held and self._held[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._held:
            return self._take(event)
        start = self._held[0]
        assert isinstance(start, Start)
        if not settles(start, event) and len(self._held) < _MOST_WAITING:
            self._held.append(event)
            return ()
        held, self._held = self._held, []
        told: list[Start | CallUpdate] = [start]
        told += [one for one in held if isinstance(one, CallUpdate) and one.block == start.block]
        id_ = next((one.id for one in told if one.id), None)
        name = next((one.name for one in told if one.name), None)
        out: list[Event] = [self._begin(start, id_, name)]
        for one in (*held[1:], event):
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        held, self._held = self._held, []
        return held

    def _take(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                if (event.id and event.name) or not self._situation.streamed:  # a whole reply says all of it at once
                    return (self._begin(event, event.id, event.name),)
                self._held.append(event)
                return ()
            case CallUpdate() if event.block in self._renamed:
                return (event._replace(id=None),) if event.name else ()
            case Delta() if event.block in self._renamed and may_repeat(event.frame, self._renamed[event.block]):
                return (event._replace(),)
            case _:
                return (event,)

    def _begin(self, start: Start, id_: str | None, name: str | None) -> Start:
        chosen = self._choose(start, id_, name)
        if chosen is None:
            if id_:
                self._situation.taken.add(id_)
            return start
        new, repair = chosen
        self._situation.taken.add(new)
        self._situation.repairs.append(repair)
        self._renamed[start.block] = id_ or ""
        return start._replace(id=new)
